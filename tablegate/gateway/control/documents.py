"""Shared functions of the operations of the control API: parsing of documents, and errors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeVar

from tablegate.gateway.dialects.dialect import Dialect
from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.tables.tables import is_reserved_namespace
from tablegate.gateway.security.gate import run_one

R = TypeVar("R")
AdministratorOperation = tuple[str, str, Callable[[dict[str, Any]], dict[str, Any]]]
"""Method, path and function of an operation: a document is its argument, another one its reply."""


class BadRequest(ValueError):
    """A malformed request. The text says what is expected."""


class OperationRejected(Exception):
    """A valid request that cannot be carried out in the present state. The text gives the reason."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def only(given: dict[str, Any], **kinds: type | tuple[type, ...]) -> dict[str, Any]:
    """Return a document, after a check of the names and types of its members. All are optional. Raises BadRequest."""
    for name, value in given.items():
        if name not in kinds:
            raise BadRequest(f"{name} is unknown. Known members: {', '.join(sorted(kinds)) or 'none'}")
        kind = kinds[name]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise BadRequest(f"{name} has the wrong type")
    return given


def members_of(given: dict[str, Any], **kinds: type | tuple[type, ...]) -> dict[str, Any]:
    """Return a document after a check of its members (see `only`). No database stores the character NUL in a text."""
    members = only(given, **kinds)
    for name, value in members.items():
        if isinstance(value, str) and "\0" in value:
            raise BadRequest(f"{name} must not contain the character NUL")
    return members


def required(members: Mapping[str, Any], name: str) -> str:
    """Return a text of a document. Raises BadRequest if it is absent or empty."""
    if not members.get(name):
        raise BadRequest(f"{name} is missing")
    return str(members[name])


def dialects_of(given: Mapping[str, Any], dialects: Sequence[Dialect]) -> list[Dialect]:
    """Return the dialects that have the `dialect` and `operation` of a document. Raises BadRequest if none has."""
    found = [each for each in dialects if given.get("dialect", each.name) == each.name]
    if not found:
        raise BadRequest(f"dialect must be one of {', '.join(each.name for each in dialects)}")
    operation = given.get("operation")
    if operation is None:
        return found
    having = [each for each in found if operation in each.operations]
    if not having:
        known = sorted({*itertools.chain(*(each.operations for each in found))})
        similar = get_close_matches(operation, known) or known
        raise BadRequest(
            f"operation: {', '.join(each.name for each in found)} has no {operation[:255]}. "
            f"Similar ones: {', '.join(similar)}"
        )
    return having


def names_of(value: Any, member: str) -> frozenset[str] | None:
    """Return a list of texts as a set. None stays None. Raises BadRequest."""
    if value is None:
        return None
    if not all(isinstance(name, str) for name in value):
        raise BadRequest(f"{member} must be a list of texts")
    return frozenset(value)


def namespace_of(given: dict[str, Any]) -> str | None:
    """Return the `namespace` of a document, or None. Raises BadRequest for a reserved one."""
    namespace: str | None = given.get("namespace")
    if namespace is not None and (not namespace or is_reserved_namespace(namespace)):
        raise BadRequest("namespace must be the namespace of tables, for example aws/000000000000/us-east-1")
    return namespace


def run(engine: Engine, command: Command[R]) -> R:
    """Return the outcome of one command of the administrator. Raises GatewayError."""
    return run_one(engine, command, None)
