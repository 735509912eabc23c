"""Short forms of grants: a word for what may be done, and a pattern of table names.

    {"read": ["orders*"], "write": ["orders*"], "keys": ["u1*"], "attributes": ["pk", "name"]}

The pattern of a table also covers its indexes, streams, backups, exports and imports. It covers the table alone if the grant
is limited to keys or attributes: an index is read by another key, and a stream shows all of every row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tablegate.gateway.model.authorization.conditions import Condition, ConditionKey, Quantifier
from tablegate.gateway.model.authorization.globs import Glob
from tablegate.gateway.model.authorization.grants import Effect, Policy, Resources, Statement
from tablegate.gateway.model.authorization.permissions import (
    DEFINING,
    READING,
    STREAMING,
    Channel,
    GrantAction,
    Permission,
)
from tablegate.gateway.security.policies.errors import BadPolicy

_P = Permission
WORDS: Mapping[str, frozenset[Permission]] = {
    "read": frozenset({_P.READ}),
    "query": frozenset({_P.QUERY}),
    "scan": frozenset({_P.SCAN, _P.SEARCH, _P.SPLIT}),
    "write": frozenset({_P.PUT, _P.UPDATE, _P.CHECK, _P.BEGIN, _P.COMMIT, _P.ABORT}),
    "delete": frozenset({_P.DELETE}),
    "define": DEFINING,
    "stream": STREAMING,
    "admin": frozenset(Permission),
}
"""What each word lets be done to tables of a pattern."""

LIMITS = ("keys", "attributes")
_OF_LIMITS = {"keys": ConditionKey.LEADING_KEYS, "attributes": ConditionKey.ATTRIBUTES}
_LISTING = frozenset(
    {_P.LIST, _P.LIST_STREAMS, _P.LIST_FEATURES, _P.READ_ACCOUNT, _P.LIST_BACKUPS, _P.LIST_JOBS}
)
"""Permissions on an account as a whole. Their answers have only names, or only entries of tables that the caller may list."""
_ROWS = READING | {_P.PUT, _P.UPDATE, _P.CHECK, _P.DELETE}


def short_policy(document: Mapping[str, Any]) -> Policy:
    """The policy that a short form is. `deny`: true refuses instead. Raises BadPolicy."""
    unknown = document.keys() - {*WORDS, *LIMITS, "deny"}
    if unknown:
        raise BadPolicy(f"a grant has no {', '.join(sorted(unknown))}")
    effect = Effect.DENY if document.get("deny") else Effect.ALLOW
    limits = {name: _texts(document[name]) for name in LIMITS if document.get(name)}
    statements: list[Statement] = []
    for word, permissions in WORDS.items():
        for pattern in _texts(document.get(word, [])):
            statements += _statements(effect, permissions, pattern, limits)
    if not statements:
        raise BadPolicy(f"a grant says one of {', '.join(WORDS)}")
    return Policy(tuple(statements))


def _texts(given: Any) -> list[str]:
    if not isinstance(given, (list, tuple)) or not all(isinstance(text, str) and text for text in given):
        raise BadPolicy("tables, keys and attributes are lists of texts")
    return list(given)


def _statements(
    effect: Effect, permissions: frozenset[Permission], pattern: str, limits: Mapping[str, list[str]]
) -> Iterator[Statement]:
    table = Resources(Glob.of(pattern, "/"))
    if limits and not permissions <= _ROWS | {_P.BEGIN, _P.COMMIT, _P.ABORT}:
        raise BadPolicy("keys and attributes go with read, query, scan, write and delete")
    if limits:
        conditions = tuple(_condition(name, values, effect) for name, values in limits.items())
        yield Statement(effect, _doors(permissions), (table,), conditions)
        return
    parts = Resources(Glob.of(f"{pattern}/*/*", "/"))
    if effect is Effect.ALLOW:
        permissions |= {_P.DESCRIBE}
    yield Statement(effect, _doors(permissions), (table, parts))
    of_account = permissions if pattern == "*" else permissions & _LISTING
    if of_account and (effect is Effect.ALLOW or pattern == "*"):
        yield Statement(effect, _doors(of_account), (Resources(Glob.literal("")),))


def _doors(permissions: frozenset[Permission]) -> frozenset[GrantAction]:
    return frozenset((permission, way) for permission in permissions for way in Channel)


def _condition(name: str, values: list[str], effect: Effect) -> Condition:
    globs = [Glob.of(value) for value in values]
    quantifier = Quantifier.ALL if effect is Effect.ALLOW else Quantifier.ANY
    return Condition(
        _OF_LIMITS[name], lambda value: any(glob.matches(value) for glob in globs), quantifier=quantifier
    )
