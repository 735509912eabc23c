"""IAM policy documents, as policies (model/authorization/grants.py) for one caller.

Identity policies (of credentials) have no Principal. Resource policies (of tables and streams) have one in each statement.
A document with an unsupported part is refused as a whole (BadPolicy) before it is stored. Sources: "Grammar of the IAM JSON
policy language", and for names of resources the service authorization reference of DynamoDB.
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
from tablegate.gateway.security.policies.iam_actions import everything_but, is_known, pairs_of
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
            if not is_known(action):
                raise BadPolicy(f"{action} is not an action")
        if name == "NotAction":
            return everything_but(actions)
        return pairs_of(actions, effect is grants.Effect.DENY)

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
