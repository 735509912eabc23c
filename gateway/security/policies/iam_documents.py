"""IAM policy documents -> policies (model/authorization/grants.py), for one caller.

Policies of identities (what a credential may do) have no Principal; those of resources (who may do something to a table or a
stream) have one in each statement.
Whatever is not understood is refused as a whole, BadPolicy, before anything is stored. Grammar: "Grammar of the IAM JSON policy
language"; names of resources: service authorization reference of DynamoDB.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from tablegate.gateway.model.authorization import grants
from tablegate.gateway.model.authorization.authorizations import CallerIdentity, ResourceDecision
from tablegate.gateway.model.authorization.globs import EVERY, Glob
from tablegate.gateway.model.authorization.permissions import GrantAction
from tablegate.gateway.security.policies.errors import BadPolicy
from tablegate.gateway.security.policies.iam_actions import doors_of, everything_but, is_known
from tablegate.gateway.security.policies.iam_conditions import conditions_of

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
MOST_CHARACTERS = 20_480
"""20 KB: those of a resource policy of DynamoDB. A policy of an identity may have fewer there ("IAM and AWS STS quotas")."""
_OF_PRINCIPALS = frozenset({"Principal", "NotPrincipal"})
_ARN_OF_PRINCIPAL = re.compile(r"arn:[a-z-]+:(?:iam|sts)::(\d{12}):([^\s*?]+)", re.ASCII)
_ACCOUNT = re.compile(r"\d{12}", re.ASCII)
_READ_KEPT = 1024


def read_document(text: str) -> dict[str, Any]:
    """The JSON object that a policy is. Raises BadPolicy."""
    if len(text) > MOST_CHARACTERS:
        raise BadPolicy(f"a policy is at most {MOST_CHARACTERS} characters long")
    try:
        document = json.loads(text, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        if isinstance(error, BadPolicy):
            raise
        raise BadPolicy("the policy is no JSON") from None
    if not isinstance(document, dict):
        raise BadPolicy("a policy is a JSON object")
    return document


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise BadPolicy("a member is there twice")
    return found


def identity_policy(text: str, identity: CallerIdentity) -> grants.Policy:
    """The policy that a document is for the caller who holds it. Raises BadPolicy."""
    reader = _Reader(read_document(text), identity)
    return grants.Policy(tuple(reader.statement(element) for element in reader.statements()))


class Principals(NamedTuple):
    """Whom a statement of a resource policy is about: callers by ARN, accounts, or everybody."""

    arns: frozenset[str] = frozenset()
    accounts: frozenset[str] = frozenset()
    is_everybody: bool = False


def resource_policy(text: str, identity: CallerIdentity) -> ResourceDecision:
    """What the policy of a resource says of a caller. Raises BadPolicy, whomever the wrong part is about."""
    reader = _Reader(read_document(text), identity, _OF_PRINCIPALS)
    sufficient: list[grants.Statement] = []
    delegating: list[grants.Statement] = []
    for element in reader.statements():
        principals, statement = _principals(element), reader.statement(element)
        if principals.is_everybody or identity.arn in principals.arns:
            sufficient.append(statement)
        elif identity.account in principals.accounts:
            delegating.append(statement)
    return ResourceDecision(grants.Policy(tuple(sufficient)), grants.Policy(tuple(delegating)))


@lru_cache(_READ_KEPT)
def stored_resource_policy(text: str, identity: CallerIdentity) -> ResourceDecision:
    """What a policy that was stored says of a caller. One that can no longer be read (it was stored by another release) refuses
    everything: nobody knows what it refused."""
    try:
        return resource_policy(text, identity)
    except BadPolicy as error:
        _log.error("the policy of a table cannot be read, so that nothing is allowed there: %s", error)
        return ResourceDecision(grants.DENY_ALL, grants.NOTHING)


def _principals(element: dict[str, Any]) -> Principals:
    if "NotPrincipal" in element:
        raise BadPolicy("NotPrincipal is not supported")
    given = element.get("Principal")
    if given == "*":
        return Principals(is_everybody=True)
    if not isinstance(given, dict) or not given:
        raise BadPolicy("a statement of a resource policy has a Principal, which is * or an object")
    unknown = given.keys() - {"AWS", "Service", "Federated", "CanonicalUser"}
    if unknown:
        raise BadPolicy(f"there is no Principal {', '.join(sorted(unknown))}")
    arns: set[str] = set()
    accounts: set[str] = set()
    is_everybody = False
    for kind, named in given.items():
        for name in _texts(named, "Principal"):
            if kind != "AWS":
                continue  # nobody here is any of these
            match = _ARN_OF_PRINCIPAL.fullmatch(name)
            if name == "*":
                is_everybody = True
            elif _ACCOUNT.fullmatch(name):
                accounts.add(name)
            elif match is None:
                raise BadPolicy(f"{name} names no principal")
            elif match[2] == "root":
                accounts.add(match[1])
            else:
                arns.add(name)
    return Principals(frozenset(arns), frozenset(accounts), is_everybody)


def _texts(given: Any, what: str) -> list[str]:
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise BadPolicy(f"{what} is a text or a list of texts")
    return texts


class _Reader:
    """Reads the statements of one document for one caller."""

    def __init__(
        self, document: dict[str, Any], identity: CallerIdentity, besides: frozenset[str] = frozenset()
    ) -> None:
        """`besides`: the members of a statement that are none of this reader's business."""
        self._document = document
        self._members = _STATEMENT_MEMBERS | besides
        self._variables = {
            "aws:username": identity.access_id,
            "aws:userid": identity.access_id,
            "aws:principalarn": identity.arn,
            "aws:principalaccount": identity.account,
            "aws:principaltype": "User",
        }
        self._version = document.get("Version", "2008-10-17")

    def statements(self) -> Iterator[dict[str, Any]]:
        """The statements as they are written."""
        unknown = self._document.keys() - _MEMBERS
        if unknown:
            raise BadPolicy(f"a policy has no {', '.join(sorted(unknown))}")
        if self._version not in _VERSIONS:
            raise BadPolicy(f"there is no policy version {self._version}")
        given = self._document.get("Statement")
        listed = [given] if isinstance(given, dict) else given
        if not isinstance(listed, list) or not listed:
            raise BadPolicy("a policy has a Statement")
        for element in listed:
            if not isinstance(element, dict):
                raise BadPolicy("a Statement is an object")
            yield element

    def statement(self, element: dict[str, Any]) -> grants.Statement:
        """One statement. Raises BadPolicy."""
        unknown = element.keys() - self._members
        if unknown:
            raise BadPolicy(f"a statement has no {', '.join(sorted(unknown))}")
        try:
            effect = {"Allow": grants.Effect.ALLOW, "Deny": grants.Effect.DENY}[element.get("Effect", "")]
        except (KeyError, TypeError):
            raise BadPolicy("Effect is Allow or Deny") from None
        doors = self._doors(element, effect)
        excludes = "NotResource" in element
        if excludes is ("Resource" in element):
            raise BadPolicy("a statement has a Resource or a NotResource")
        names = _texts(element["NotResource" if excludes else "Resource"], "Resource")
        resources = tuple(self._resources(name) for name in names)
        conditions = tuple(conditions_of(element.get("Condition", {}), self._glob))
        return grants.Statement(effect, doors, resources, conditions, excludes)

    def _doors(self, element: dict[str, Any], effect: grants.Effect) -> frozenset[GrantAction]:
        if ("Action" in element) is ("NotAction" in element):
            raise BadPolicy("a statement has an Action or a NotAction")
        name = "Action" if "Action" in element else "NotAction"
        actions = _texts(element[name], name)
        for action in actions:
            if not is_known(action):
                raise BadPolicy(f"{action} is no action")
        if name == "NotAction":
            return everything_but(actions)
        return doors_of(actions, effect is grants.Effect.DENY)

    def _resources(self, name: str) -> grants.Resources:
        """arn:aws:dynamodb:REGION:ACCOUNT:table/T, .../index/I, .../stream/L; or *."""
        if name == "*":
            return grants.Resources(EVERY)
        parts = name.split(":", 5)
        if len(parts) != 6 or parts[0] != "arn":
            raise BadPolicy(f"{name} is no ARN")
        _, _, service, region, account, rest = parts
        if not Glob.of(service).matches("dynamodb"):
            return grants.Resources(Glob.literal("\x00"))  # of another service: nothing here
        if rest == "*":
            return grants.Resources(EVERY, self._glob(region), self._glob(account))
        kind, _, path = rest.partition("/")
        if not Glob.of(kind).matches("table"):
            return grants.Resources(Glob.literal("\x00"))
        return grants.Resources(self._glob(path), self._glob(region), self._glob(account))

    def _glob(self, text: str) -> Glob:
        """A pattern with policy variables, which only documents of the newer version have. What a variable stands for is literal:
        a `*` in a name is no wildcard. Raises BadPolicy for a variable that has no value."""
        made = Glob(())
        end = 0
        for found in _VARIABLE.finditer(text):
            if self._version != "2012-10-17":
                raise BadPolicy("policy variables need Version 2012-10-17")
            made += Glob.of(text[end : found.start()]) + Glob.literal(self._value(found[1]))
            end = found.end()
        return made + Glob.of(text[end:])

    def _value(self, variable: str) -> str:
        if variable in _ESCAPES:
            return _ESCAPES[variable]
        name, _, default = variable.partition(",")
        value = self._variables.get(name.strip().lower())
        if value is not None:
            return value
        default = default.strip()
        if len(default) >= 2 and default[0] == default[-1] == "'":
            return default[1:-1]
        raise BadPolicy(f"the policy variable ${{{variable}}} has no value here")
