"""Short forms of grants: actions with patterns of table names, and Azure's built-in roles.

    {"read": ["orders*"], "write": ["orders*"], "keys": ["u1*"], "attributes": ["pk", "name"]}

The pattern of a table includes its indexes, streams, backups, exports and imports. With a limit to keys or attributes it covers
the table only, because an index has another key, and a stream contains all attributes of every row.

Names and ids of the roles: "Azure built-in roles for Storage" (Microsoft Learn). Their permissions for each operation:
"Authorize with Microsoft Entra ID", permissions for calling data operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tablegate.gateway.model.authorization.conditions import EVERY, Condition, ConditionKey, Glob, Quantifier
from tablegate.gateway.model.authorization.grants import Effect, Policy, Resources, Statement
from tablegate.gateway.model.authorization.permissions import (
    DEFINING,
    READING,
    STREAMING,
    WRITING,
    Channel,
    GrantAction,
    Permission,
)
from tablegate.gateway.security.iam_conditions import BadPolicy

_P = Permission
WORDS: Mapping[str, frozenset[Permission]] = {
    "read": frozenset({_P.READ}),
    "query": frozenset({_P.QUERY}),
    "scan": frozenset({_P.SCAN, _P.SEARCH, _P.SPLIT}),
    "write": WRITING - {_P.DELETE},
    "delete": frozenset({_P.DELETE}),
    "define": DEFINING,
    "stream": STREAMING,
    "admin": frozenset(Permission),
}
"""The permissions of each action on the tables of a pattern."""

READ_ONLY = ("read", "query", "scan")
READ_WRITE = (*READ_ONLY, "write", "delete")
"""The actions of the two most common grants."""

LIMITS = ("keys", "attributes")
_OF_LIMITS = {"keys": ConditionKey.LEADING_KEYS, "attributes": ConditionKey.ATTRIBUTES}
_LISTING = frozenset(
    {_P.LIST, _P.LIST_STREAMS, _P.LIST_FEATURES, _P.READ_ACCOUNT, _P.LIST_BACKUPS, _P.LIST_JOBS}
)
"""Permissions on an account as a whole. Their answers have only names, or only entries of tables that the caller may list."""
_LIMITED = READING | WRITING | {_P.SPLIT}
"""Permissions of the actions that can have limits."""


def short_policy(document: Mapping[str, Any]) -> Policy:
    """Return the policy of a short form. The member `deny` with true makes it a denial. Raises BadPolicy."""
    unknown = document.keys() - {*WORDS, *LIMITS, "deny"}
    if unknown:
        raise BadPolicy(f"unknown members of a grant: {', '.join(sorted(unknown))}")
    effect = Effect.DENY if document.get("deny") else Effect.ALLOW
    limits = {name: _texts(document[name]) for name in LIMITS if document.get(name)}
    statements: list[Statement] = []
    for word, permissions in WORDS.items():
        for pattern in _texts(document.get(word, [])):
            statements += _statements(effect, permissions, pattern, limits)
    if not statements:
        raise BadPolicy(f"a grant must have at least one of {', '.join(WORDS)}")
    return Policy(tuple(statements))


def _texts(element: Any) -> list[str]:
    if not isinstance(element, (list, tuple)) or not all(isinstance(text, str) and text for text in element):
        raise BadPolicy("tables, keys and attributes must be lists of texts")
    return list(element)


def _statements(
    effect: Effect, permissions: frozenset[Permission], pattern: str, limits: Mapping[str, list[str]]
) -> Iterator[Statement]:
    table = Resources(Glob.of(pattern, "/"))
    if limits and not permissions <= _LIMITED:
        raise BadPolicy("keys and attributes are allowed with read, query, scan, write and delete only")
    if limits:
        if effect is Effect.ALLOW:
            permissions -= {_P.SPLIT}  # split points are keys of all rows
        conditions = tuple(_condition(name, values, effect) for name, values in limits.items())
        yield Statement(effect, _pairs(permissions), (table,), conditions)
        return
    parts = Resources(Glob.of(f"{pattern}/*/*", "/"))
    if effect is Effect.ALLOW:
        permissions |= {_P.DESCRIBE}
    yield Statement(effect, _pairs(permissions), (table, parts))
    of_account = permissions if pattern == "*" else permissions & _LISTING
    if of_account and (effect is Effect.ALLOW or pattern == "*"):
        yield Statement(effect, _pairs(of_account), (Resources(Glob.literal("")),))


def _pairs(permissions: frozenset[Permission]) -> frozenset[GrantAction]:
    return frozenset((permission, channel) for permission in permissions for channel in Channel)


def _condition(name: str, values: list[str], effect: Effect) -> Condition:
    globs = [Glob.of(value) for value in values]
    quantifier = Quantifier.ALL if effect is Effect.ALLOW else Quantifier.ANY
    return Condition(
        _OF_LIMITS[name], lambda value: any(glob.matches(value) for glob in globs), quantifier=quantifier
    )


_READER = frozenset(
    {Permission.READ, Permission.QUERY, Permission.SCAN, Permission.LIST, Permission.DESCRIBE}
)
_CONTRIBUTOR = _READER | {
    Permission.PUT, Permission.UPDATE, Permission.DELETE, Permission.CHECK, Permission.CREATE, Permission.DROP,
}  # fmt: skip

AZURE_ROLES: Mapping[str, frozenset[Permission]] = {
    "Storage Table Data Reader": _READER,
    "76199698-9eea-4c19-bc75-cec21354c6b6": _READER,
    "Storage Table Data Contributor": _CONTRIBUTOR,
    "0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3": _CONTRIBUTOR,
}
"""Permissions on all tables of an account, by name or id of the role."""


def policy_of_azure_roles(roles: Iterable[str]) -> Policy:
    """Return the policy of these roles. Roles that are not built in allow nothing."""
    permissions = frozenset().union(*(AZURE_ROLES.get(role, frozenset()) for role in roles))
    pairs = frozenset((permission, channel) for permission in permissions for channel in Channel)
    return Policy((Statement(Effect.ALLOW, pairs, (Resources(EVERY),)),) if pairs else ())
