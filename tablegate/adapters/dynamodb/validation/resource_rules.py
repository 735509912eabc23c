"""Rules about requests on resources by their ARN: several members of tag and stream requests, and policy documents.

Order of the rules about members: dynalite validations/*.js, nubo-db/dynamodb-conformance (May 2026).

The documents of PutResourcePolicy and CreateTable are checked and brought into their stored form.
gateway/security/iam_policies.py interprets statements, and rejects features that this server does not
support. Rules, texts and the canonical form: ack-api-quirks, measured in October 2026 (findings 205 to 212 and
351 to 356). Rules of public access: developer guide, "Blocking public access with resource-based policies".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tablegate.adapters.dynamodb.wire import error_texts, limits
from tablegate.adapters.dynamodb.wire.arns import tagged_table
from tablegate.adapters.dynamodb.wire.errors import RuleContext, ServiceError, validation

# Members of requests


Input = dict[str, Any]

# Tags. tables/tags.py checks their contents, for CreateTable too.


def tag_resource(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for a TagResource without a table's ARN, or without tags."""
    arn = _resource(data, context)
    if "Tags" not in data:
        raise context.refused("tags-missing")
    tagged_table(arn)
    if not data["Tags"]:
        raise context.refused("tags-none")


def untag_resource(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for an UntagResource without a table's ARN, or without tag keys."""
    arn = _resource(data, context)
    if "TagKeys" not in data:
        raise context.refused("tag-keys-missing")
    tagged_table(arn)
    if not data["TagKeys"]:
        raise context.refused("tag-keys-none")


def list_tags(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for a ListTagsOfResource without a table's ARN."""
    tagged_table(_resource(data, context))


def _resource(data: Input, context: RuleContext) -> str:
    """Return the ARN. Raises ServiceError if it is missing."""
    if "ResourceArn" not in data:
        raise context.refused("arn-missing")
    return str(data["ResourceArn"])


# Streams


def get_shard_iterator(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for a GetShardIterator with a missing or superfluous sequence number."""
    kind = data["ShardIteratorType"]
    needs_number = kind in ("AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER")
    if needs_number and "SequenceNumber" not in data:
        raise context.refused("sequence-missing", type=kind)
    if not needs_number and "SequenceNumber" in data:
        raise context.refused("sequence-spare", type=kind)


# Policy documents


DEFAULT_VERSION = "2008-10-17"

_PUBLIC = (
    "Resource-based policy grants unbounded access in one or more elements. "
    "Please revise the policy to ensure least-privilege form of access"
)
_NO_JSON = "This policy contains invalid Json"
_DOCUMENT_ORDER = ("Version", "Id", "Statement")
_STATEMENT_ORDER = (
    "Sid", "Effect", "Principal", "NotPrincipal", "Action", "NotAction", "Resource", "NotResource", "Condition",
)  # fmt: skip
_REQUIRED = (("Effect",), ("Principal", "NotPrincipal"), ("Action", "NotAction"), ("Resource", "NotResource"))
_EFFECTS = {"allow": "Allow", "deny": "Deny"}
_ACCOUNT = re.compile(r"\d{12}", re.ASCII)
_PRINCIPAL_ARN = re.compile(r"arn:[a-z-]+:(?:iam|sts)::\d{12}:[^\s*?]+", re.ASCII)
_BARE_PRINCIPAL = re.compile(r'"Principal"\s*:\s*(?="(?!\*"))')
_STREAM_ACTIONS = frozenset({"describestream", "getrecords", "getsharditerator"})
_POLICY_ACTIONS = frozenset({"getresourcepolicy", "putresourcepolicy", "deleteresourcepolicy"})
_TRUSTED_KEYS = frozenset(
    {
        "aws:principalaccount", "aws:principalarn", "aws:principalorgid", "aws:principalorgpaths", "aws:sourceaccount",
        "aws:sourcearn", "aws:userid",
    }
)  # fmt: skip
_RESTRICTING = re.compile(r"(?:foranyvalue:)?(?:string(?:equals(?:ignorecase)?|like)|arn(?:equals|like))")


def canonical_document(text: str, path: str, partition: str) -> str:
    """Return the canonical form of the policy of a table or stream. Two policies with one canonical form are the
    same policy.

    path: TABLE or TABLE/stream/LABEL. partition: the partition of the ARNs that replace account ids. Raises
    ServiceError.
    """
    if len(text.encode()) > limits.RESOURCE_POLICY_BYTES:
        raise validation(
            f"{error_texts.INVALID}Maximum policy size of {limits.RESOURCE_POLICY_BYTES} bytes exceeded"
        )
    document = _parse(text)
    member = document.get("Statement")
    statements = [member] if isinstance(member, dict) else member
    if member is None:
        raise _policy_error("Missing required field Statement")
    if isinstance(statements, list) and not statements:
        raise _policy_error("Could not parse the policy: Statement is empty!")
    if not isinstance(statements, list) or not all(isinstance(statement, dict) for statement in statements):
        raise _policy_error("a Statement is an object")
    _check(statements, path, text)
    statements = [_canonical_statement(statement, partition) for statement in statements]
    if any(_is_public(statement) for statement in statements):
        raise validation(_PUBLIC)
    return _minify(_in_order({**document, "Statement": statements}, _DOCUMENT_ORDER))


def with_version(text: str) -> str:
    """Return a stored policy as GetResourcePolicy shows it: with the default version if it has none."""
    document = json.loads(text)
    if "Version" in document:
        return text
    return _minify({"Version": DEFAULT_VERSION, **document})


def _minify(document: Mapping[str, Any]) -> str:
    """Return JSON without white space.

    Raises ServiceError for a lone surrogate, which JSON can escape but UTF-8 cannot encode, and for a document
    that is nested too deep.
    """
    try:
        text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
        text.encode()
    except (UnicodeEncodeError, RecursionError):
        raise _policy_error(_NO_JSON) from None
    return text


def _policy_error(text: str) -> ServiceError:
    return validation(f"{error_texts.INVALID}Invalid policy document: {text}")


def _parse(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise _policy_error(_NO_JSON)
    return document


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("repeated member")
    return members


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _check(statements: list[dict[str, Any]], path: str, text: str) -> None:
    for statement in statements:
        for names in _REQUIRED:
            if not any(name in statement for name in names):
                raise _policy_error(f"Missing required field {names[0]}")
    sids = [statement["Sid"] for statement in statements if statement.get("Sid")]
    if len({str(sid) for sid in sids}) < len(sids):
        raise _policy_error("The Statement Ids in the policy are not unique")
    bare = _BARE_PRINCIPAL.search(text)
    if bare is not None:
        line = text.count("\n", 0, bare.end()) + 1
        column = bare.end() - (text.rfind("\n", 0, bare.end()) + 1) + 1
        raise _policy_error(f"Syntax error at position ({line},{column})")
    of_stream = "/stream/" in path
    for statement in statements:
        for name in ("Resource", "NotResource"):
            _check_resources(statement.get(name), of_stream)
        for name in ("Action", "NotAction"):
            _check_actions(statement.get(name), of_stream)
        _check_principal(statement.get("Principal"))


def _check_resources(member: Any, of_stream: bool) -> None:
    for arn in _texts(member):
        kind, _, relative = arn.partition(":table/")
        is_stream = "/stream/" in relative
        if relative and is_stream is not of_stream and not (of_stream and relative.endswith("*")):
            raise _policy_error(f'The relative-id "table/{relative}" is invalid for ARN "{arn}"')
        if arn != "*" and kind.count(":") >= 2 and kind.split(":")[2] not in ("dynamodb", "*"):
            raise _policy_error(f'The vendor "{kind.split(":")[2]}" is invalid for ARN "{arn}"')


def _check_actions(member: Any, of_stream: bool) -> None:
    """Reject stream actions for a table, and table actions for a stream. The service lists them in reverse order."""
    wrong = [action for action in _texts(member) if not _is_action(action.lower(), of_stream)]
    if wrong:
        names = ", ".join(f'"{action}"' for action in reversed(wrong))
        raise _policy_error(f"The following action names are invalid: {names}")


def _is_action(action: str, of_stream: bool) -> bool:
    service, _, name = action.partition(":")
    if "*" in name or "?" in name or service != "dynamodb":
        return True  # iam_policies.py checks these
    if of_stream:
        return name in _STREAM_ACTIONS | _POLICY_ACTIONS
    return name not in _STREAM_ACTIONS | {"liststreams", "listtables"}


def _check_principal(principal: Any) -> None:
    if not isinstance(principal, dict):
        return
    for name in _texts(principal.get("AWS")):
        if name != "*" and not _ACCOUNT.fullmatch(name) and not _PRINCIPAL_ARN.fullmatch(name):
            raise validation(f"{error_texts.INVALID}Invalid principal in policy document.")


def _canonical_statement(statement: Mapping[str, Any], partition: str) -> dict[str, Any]:
    copy = dict(statement)
    effect = statement["Effect"]
    if isinstance(effect, str):
        copy["Effect"] = _EFFECTS.get(effect.lower(), effect)
    for name in ("Action", "NotAction", "Resource", "NotResource"):
        if name in copy:
            copy[name] = _single_or_list(copy[name])
    for name in ("Principal", "NotPrincipal"):
        if isinstance(copy.get(name), dict):
            copy[name] = {kind: _principals(principals, partition) for kind, principals in copy[name].items()}
    if isinstance(copy.get("Condition"), dict):
        copy["Condition"] = {
            operator: _with_single_values(keys) for operator, keys in copy["Condition"].items()
        }
    return _in_order(copy, _STATEMENT_ORDER)


def _principals(principals: Any, partition: str) -> Any:
    if not _texts(principals):
        return principals
    root = f"arn:{partition}:iam::{{}}:root"
    arns = [root.format(name) if _ACCOUNT.fullmatch(name) else name for name in _texts(principals)]
    return _single_or_list(list(dict.fromkeys(arns)))


def _is_public(statement: Mapping[str, Any]) -> bool:
    """True if a statement allows everyone something, and no condition on a trusted key restricts it."""
    principal = statement.get("Principal")
    everybody = principal == "*" or (isinstance(principal, dict) and "*" in _texts(principal.get("AWS")))
    return statement["Effect"] == "Allow" and everybody and not any(_narrowing(statement.get("Condition")))


def _narrowing(condition: Any) -> Iterator[bool]:
    if not isinstance(condition, dict):
        return
    for operator, keys in condition.items():
        if _RESTRICTING.fullmatch(operator.lower()) and isinstance(keys, dict):
            for key, values in keys.items():
                fixed = _texts(values) and not any(set("*?$") & set(value) for value in _texts(values))
                yield key.lower() in _TRUSTED_KEYS and bool(fixed)


def _texts(member: Any) -> list[str]:
    """Return the texts of a text or a list of texts. Empty for any other value."""
    texts = [member] if isinstance(member, str) else member
    return texts if isinstance(texts, list) and all(isinstance(element, str) for element in texts) else []


def _single_or_list(member: Any) -> Any:
    return member[0] if isinstance(member, list) and len(member) == 1 else member


def _with_single_values(keys: Any) -> Any:
    return {key: _single_or_list(values) for key, values in keys.items()} if isinstance(keys, dict) else keys


def _in_order(members: Mapping[str, Any], order: tuple[str, ...]) -> dict[str, Any]:
    """Return known members in their order, then the others, which are rejected later."""
    return {name: members[name] for name in (*order, *members) if name in members}
