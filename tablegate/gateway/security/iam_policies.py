"""IAM policy documents, as policies (model/authorization/grants.py) for one caller.

Identity policies (of credentials) have no Principal. Resource policies (of tables and streams) have one in each statement.
A document with an unsupported part is refused as a whole (BadPolicy) before it is stored. Sources: "Grammar of the IAM JSON
policy language", and for names of resources the service authorization reference of DynamoDB.

Each DynamoDB action is a set of (permission, channel) pairs. An Allow covers only the pairs of its action, as in the service.
BatchGetItem is not GetItem, and PartiQL has its own actions ("Actions, resources, and condition keys for Amazon DynamoDB",
service authorization reference). A Deny covers the permission in all channels. So if DeleteItem is denied, batches, statements
and other dialects cannot delete rows either. This is stricter than the service (docs/operate/grants.md).
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from tablegate.gateway.model.authorization import grants
from tablegate.gateway.model.authorization.authorizations import CallerIdentity, ResourceDecision
from tablegate.gateway.model.authorization.conditions import EVERY, Glob
from tablegate.gateway.model.authorization.permissions import Channel, GrantAction, Permission
from tablegate.gateway.security.iam_conditions import BadPolicy, conditions_of

_P = Permission
_BY_ITSELF = (Channel.SINGLE, Channel.TRANSACTION)
_BY_STATEMENT = (Channel.STATEMENT, Channel.STATEMENT_TRANSACTION)


def _pairs(
    permissions: Iterable[Permission], channels: Iterable[Channel] = (Channel.SINGLE,)
) -> frozenset[GrantAction]:
    channels = tuple(channels)
    return frozenset((permission, channel) for permission in permissions for channel in channels)


ACTIONS: Mapping[str, frozenset[GrantAction]] = {
    "GetItem": _pairs([_P.READ], _BY_ITSELF),
    "Query": _pairs([_P.QUERY], _BY_ITSELF),
    "Scan": _pairs([_P.SCAN, _P.SPLIT], _BY_ITSELF),
    "SearchVectors": _pairs([_P.SEARCH]),
    "PutItem": _pairs([_P.PUT], _BY_ITSELF),
    "UpdateItem": _pairs([_P.UPDATE], (*_BY_ITSELF, Channel.BATCH)),  # the service has no batch of updates
    "DeleteItem": _pairs([_P.DELETE], _BY_ITSELF),
    "ConditionCheckItem": _pairs([_P.CHECK], _BY_ITSELF),
    "BatchGetItem": _pairs([_P.READ, _P.QUERY], [Channel.BATCH]),  # of an index, a row of a batch is read as a page
    "BatchWriteItem": _pairs([_P.PUT, _P.DELETE], [Channel.BATCH]),
    "PartiQLSelect": _pairs([_P.READ, _P.QUERY, _P.SCAN, _P.CHECK], _BY_STATEMENT),
    "PartiQLInsert": _pairs([_P.PUT], _BY_STATEMENT),
    "PartiQLUpdate": _pairs([_P.UPDATE], _BY_STATEMENT),
    "PartiQLDelete": _pairs([_P.DELETE], _BY_STATEMENT),
    "ListTables": _pairs([_P.LIST]),
    "DescribeTable": _pairs([_P.DESCRIBE]),
    "CreateTable": _pairs([_P.CREATE]),
    "UpdateTable": _pairs([_P.ALTER, _P.CREATE_INDEX, _P.DROP_INDEX, _P.ADD_COLUMNS, _P.DROP_COLUMNS]),
    "DeleteTable": _pairs([_P.DROP]),
    "DescribeTimeToLive": _pairs([_P.DESCRIBE_EXPIRY]),
    "UpdateTimeToLive": _pairs([_P.ALTER_EXPIRY]),
    "ListTagsOfResource": _pairs([_P.READ_TAGS]),
    "TagResource": _pairs([_P.TAG]),
    "UntagResource": _pairs([_P.UNTAG]),
    "GetResourcePolicy": _pairs([_P.READ_POLICY]),
    "PutResourcePolicy": _pairs([_P.WRITE_POLICY]),
    "DeleteResourcePolicy": _pairs([_P.REMOVE_POLICY]),
    "UpdateContinuousBackups": _pairs([_P.ALTER_RECOVERY]),
    "CreateBackup": _pairs([_P.CREATE_BACKUP]),
    "DescribeBackup": _pairs([_P.DESCRIBE_BACKUP]),
    "ListBackups": _pairs([_P.LIST_BACKUPS]),
    "DeleteBackup": _pairs([_P.DELETE_BACKUP]),
    "RestoreTableFromBackup": _pairs([_P.RESTORE_BACKUP]),
    "RestoreTableToPointInTime": _pairs([_P.RESTORE_MOMENT]),
    "ListStreams": _pairs([_P.LIST_STREAMS]),
    "DescribeStream": _pairs([_P.DESCRIBE_STREAM]),
    "GetShardIterator": _pairs([_P.POSITION_STREAM]),
    "GetRecords": _pairs([_P.READ_STREAM]),
    "DescribeLimits": _pairs([_P.READ_ACCOUNT]),
    "DescribeEndpoints": _pairs([_P.READ_ACCOUNT]),
    **dict.fromkeys(
        (
            "DescribeContinuousBackups", "DescribeContributorInsights", "DescribeKinesisStreamingDestination",
            "DescribeTableReplicaAutoScaling", "DescribeGlobalTable", "DescribeGlobalTableSettings",
        ),
        _pairs([_P.DESCRIBE_FEATURES]),
    ),
    **dict.fromkeys(
        ("ListContributorInsights", "ListGlobalTables"),
        _pairs([_P.LIST_FEATURES]),
    ),
    "ExportTableToPointInTime": _pairs([_P.EXPORT]),
    "ImportTable": _pairs([_P.IMPORT]),
    "StartBulkPutItems": _pairs([_P.LOAD]),
    "CancelBulkOperation": _pairs([_P.CANCEL_JOB]),
    **dict.fromkeys(("ListExports", "ListImports", "ListBulkOperations"), _pairs([_P.LIST_JOBS])),
    **dict.fromkeys(("DescribeExport", "DescribeImport", "DescribeBulkOperation"), _pairs([_P.DESCRIBE_JOB])),
    "UpdateContributorInsights": _pairs([_P.ALTER_INSIGHTS]),
    **dict.fromkeys(
        (
            "EnableKinesisStreamingDestination", "DisableKinesisStreamingDestination",
            "UpdateKinesisStreamingDestination",
        ),
        _pairs([_P.ALTER_DELIVERIES]),
    ),
    **dict.fromkeys(
        (
            "UpdateTableReplicaAutoScaling", "CreateGlobalTable", "UpdateGlobalTable", "UpdateGlobalTableSettings",
        ),
        _pairs([_P.ALTER_FEATURES]),
    ),
}  # fmt: skip
"""The pairs that an Allow of each action covers. Actions of the service that are not listed have no operation here."""


def pairs_of_actions(patterns: Iterable[str], is_refusal: bool) -> frozenset[GrantAction]:
    """Return the pairs that an Allow or a Deny of action patterns covers (`dynamodb:Get*`, without case)."""
    result: set[GrantAction] = set()
    for pattern in patterns:
        service, separator, name = pattern.lower().partition(":")
        if not separator:
            service, name = ("*", "*") if pattern == "*" else ("", "")
        if not Glob.of(service).matches("dynamodb"):
            continue
        actions = Glob.of(name)
        if name == "*":
            result |= _EVERY
        for action, pairs in ACTIONS.items():
            if actions.matches(action.lower()):
                result |= _denied_pairs(action, pairs) if is_refusal else pairs
    return frozenset(result)


_EVERY = frozenset((permission, channel) for permission in Permission for channel in Channel)


def _denied_pairs(action: str, pairs: frozenset[GrantAction]) -> frozenset[GrantAction]:
    """Return the pairs that a Deny of an action covers: all channels, except for actions of batches and statements."""
    if action.startswith(("Batch", "PartiQL")):
        return pairs
    return frozenset((permission, channel) for permission, _ in pairs for channel in Channel)


def pairs_of_other_actions(patterns: Iterable[str]) -> frozenset[GrantAction]:
    """Return the pairs of NotAction: all pairs that these actions do not cover."""
    return _EVERY - pairs_of_actions(patterns, is_refusal=False)


def is_known_action(pattern: str) -> bool:
    """True if a pattern of actions is `*`, or a service and a name."""
    return pattern == "*" or pattern.count(":") == 1


_log = logging.getLogger(__name__)

_VERSIONS = ("2012-10-17", "2008-10-17")
_MEMBERS = frozenset({"Version", "Id", "Statement"})
_STATEMENT_MEMBERS = frozenset(
    {
        "Sid", "Effect", "Action", "NotAction", "Resource", "NotResource", "Condition",
    }
)  # fmt: skip
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_ESCAPES = {"*": "*", "?": "?", "$": "$"}
MAX_CHARACTERS = 20_480
"""The maximum of a resource policy of DynamoDB, 20 KB. That of an identity policy is lower ("IAM and AWS STS quotas")."""
_OF_PRINCIPALS = frozenset({"Principal", "NotPrincipal"})
_ARN_OF_PRINCIPAL = re.compile(r"arn:[a-z-]+:(?:iam|sts)::(\d{12}):([^\s*?]+)", re.ASCII)
_ACCOUNT = re.compile(r"\d{12}", re.ASCII)
_READ_KEPT = 1024


def read_document(text: str) -> dict[str, Any]:
    """Return the JSON object of a policy. Raises BadPolicy."""
    if len(text) > MAX_CHARACTERS:
        raise BadPolicy(f"a policy is at most {MAX_CHARACTERS} characters long")
    try:
        document = json.loads(text, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        if isinstance(error, BadPolicy):
            raise
        raise BadPolicy("the policy is not JSON") from None
    if not isinstance(document, dict):
        raise BadPolicy("a policy is a JSON object")
    return document


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise BadPolicy("an object has two members of one name")
    return members


def identity_policy(text: str, identity: CallerIdentity) -> grants.Policy:
    """Return the policy of a document for its caller. Raises BadPolicy."""
    reader = _Reader(read_document(text), identity)
    return grants.Policy(tuple(reader.statement(element) for element in reader.statements()))


class Principals(NamedTuple):
    """The principals of a statement of a resource policy: callers by ARN, accounts, or all callers."""

    arns: frozenset[str] = frozenset()
    accounts: frozenset[str] = frozenset()
    includes_all: bool = False


def resource_policy(text: str, identity: CallerIdentity) -> ResourceDecision:
    """Return the decision of a resource policy for a caller. Raises BadPolicy, also for statements on other callers."""
    reader = _Reader(read_document(text), identity, _OF_PRINCIPALS)
    sufficient: list[grants.Statement] = []
    delegating: list[grants.Statement] = []
    for element in reader.statements():
        principals, statement = _principals(element), reader.statement(element)
        if principals.includes_all or identity.arn in principals.arns:
            sufficient.append(statement)
        elif identity.account in principals.accounts:
            delegating.append(statement)
    return ResourceDecision(grants.Policy(tuple(sufficient)), grants.Policy(tuple(delegating)))


@lru_cache(_READ_KEPT)
def stored_resource_policy(text: str, identity: CallerIdentity) -> ResourceDecision:
    """Return the decision of a stored resource policy for a caller.

    A policy that cannot be read (stored by another release) refuses everything, because it may contain a denial.
    """
    try:
        return resource_policy(text, identity)
    except BadPolicy as error:
        _log.error("cannot read the resource policy of a table, so all access to it is refused: %s", error)
        return ResourceDecision(grants.DENY_ALL, grants.NOTHING)


def _principals(element: dict[str, Any]) -> Principals:
    if "NotPrincipal" in element:
        raise BadPolicy("NotPrincipal is not supported")
    principal = element.get("Principal")
    if principal == "*":
        return Principals(includes_all=True)
    if not isinstance(principal, dict) or not principal:
        raise BadPolicy("the Principal of a statement must be * or an object")
    unknown = principal.keys() - {"AWS", "Service", "Federated", "CanonicalUser"}
    if unknown:
        raise BadPolicy(f"unknown kind of Principal: {', '.join(sorted(unknown))}")
    arns: set[str] = set()
    accounts: set[str] = set()
    includes_all = False
    for kind, names in principal.items():
        for name in _texts(names, "Principal"):
            if kind != "AWS":
                continue  # no caller of this server is of these kinds
            match = _ARN_OF_PRINCIPAL.fullmatch(name)
            if name == "*":
                includes_all = True
            elif _ACCOUNT.fullmatch(name):
                accounts.add(name)
            elif match is None:
                raise BadPolicy(f"{name} is not a principal")
            elif match[2] == "root":
                accounts.add(match[1])
            else:
                arns.add(name)
    return Principals(frozenset(arns), frozenset(accounts), includes_all)


def _texts(element: Any, name: str) -> list[str]:
    texts = [element] if isinstance(element, str) else element
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise BadPolicy(f"{name} must be a text or a list of texts")
    return texts


class _Reader:
    """A reader of the statements of one document for one caller."""

    def __init__(
        self,
        document: dict[str, Any],
        identity: CallerIdentity,
        ignored_members: frozenset[str] = frozenset(),
    ) -> None:
        """`ignored_members`: further members of a statement, which the reader accepts and ignores."""
        self._document = document
        self._members = _STATEMENT_MEMBERS | ignored_members
        self._variables = {
            "aws:username": identity.access_id,
            "aws:userid": identity.access_id,
            "aws:principalarn": identity.arn,
            "aws:principalaccount": identity.account,
            "aws:principaltype": "User",
        }
        self._version = document.get("Version", "2008-10-17")

    def statements(self) -> Iterator[dict[str, Any]]:
        """Yield the statements of the document. Raises BadPolicy."""
        unknown = self._document.keys() - _MEMBERS
        if unknown:
            raise BadPolicy(f"unknown members of a policy: {', '.join(sorted(unknown))}")
        if self._version not in _VERSIONS:
            raise BadPolicy(f"unknown policy version: {self._version}")
        statement = self._document.get("Statement")
        elements = [statement] if isinstance(statement, dict) else statement
        if not isinstance(elements, list) or not elements:
            raise BadPolicy("a policy must have a Statement")
        for element in elements:
            if not isinstance(element, dict):
                raise BadPolicy("a Statement must be an object")
            yield element

    def statement(self, element: dict[str, Any]) -> grants.Statement:
        """Return a statement. Raises BadPolicy."""
        unknown = element.keys() - self._members
        if unknown:
            raise BadPolicy(f"unknown members of a statement: {', '.join(sorted(unknown))}")
        try:
            effect = {"Allow": grants.Effect.ALLOW, "Deny": grants.Effect.DENY}[element.get("Effect", "")]
        except (KeyError, TypeError):
            raise BadPolicy("Effect must be Allow or Deny") from None
        pairs = self._pairs(element, effect)
        excludes = "NotResource" in element
        if excludes is ("Resource" in element):
            raise BadPolicy("a statement must have either Resource or NotResource")
        names = _texts(element["NotResource" if excludes else "Resource"], "Resource")
        resources = tuple(self._resources(name) for name in names)
        conditions = tuple(conditions_of(element.get("Condition", {}), self._glob))
        return grants.Statement(effect, pairs, resources, conditions, excludes)

    def _pairs(self, element: dict[str, Any], effect: grants.Effect) -> frozenset[GrantAction]:
        if ("Action" in element) is ("NotAction" in element):
            raise BadPolicy("a statement has an Action or a NotAction")
        name = "Action" if "Action" in element else "NotAction"
        actions = _texts(element[name], name)
        for action in actions:
            if not is_known_action(action):
                raise BadPolicy(f"{action} is not an action")
        if name == "NotAction":
            return pairs_of_other_actions(actions)
        return pairs_of_actions(actions, effect is grants.Effect.DENY)

    def _resources(self, name: str) -> grants.Resources:
        """Return the resources of *, or arn:aws:dynamodb:REGION:ACCOUNT:table/T with or without /index/I or /stream/L."""
        if name == "*":
            return grants.Resources(EVERY)
        parts = name.split(":", 5)
        if len(parts) != 6 or parts[0] != "arn":
            raise BadPolicy(f"{name} is not an ARN")
        _, _, service, region, account, part = parts
        if not Glob.of(service).matches("dynamodb"):
            return grants.Resources(Glob.literal("\x00"))  # of another service: matches nothing
        if part == "*":
            return grants.Resources(EVERY, self._glob(region), self._glob(account))
        kind, _, path = part.partition("/")
        if not Glob.of(kind).matches("table"):
            return grants.Resources(Glob.literal("\x00"))
        return grants.Resources(self._glob(path), self._glob(region), self._glob(account))

    def _glob(self, text: str) -> Glob:
        """Return a pattern with policy variables. Raises BadPolicy for a variable without value.

        Only documents of the newer version have variables. Their values are literal: a `*` in a name is not a wildcard.
        """
        pattern = Glob(())
        end = 0
        for match in _VARIABLE.finditer(text):
            if self._version != "2012-10-17":
                raise BadPolicy("policy variables require Version 2012-10-17")
            pattern += Glob.of(text[end : match.start()]) + Glob.literal(self._value(match[1]))
            end = match.end()
        return pattern + Glob.of(text[end:])

    def _value(self, variable: str) -> str:
        if variable in _ESCAPES:
            return _ESCAPES[variable]
        name, _, default = variable.partition(",")
        value = self._variables.get(name.strip().lower())
        if value:
            return value
        default = default.strip()
        if len(default) >= 2 and default[0] == default[-1] == "'":
            return default[1:-1]
        raise BadPolicy(f"the policy variable ${{{variable}}} has no value here")
