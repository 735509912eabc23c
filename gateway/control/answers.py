"""What operations of the control API share: how they read what is given, and how they refuse."""

from __future__ import annotations

from typing import Any, TypeVar

from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.tables.namespaces import is_reserved
from tablegate.gateway.security.gate import run_one

R = TypeVar("R")


class BadRequest(ValueError):
    """What is given cannot be read. The text says what would be right."""


class OperationRejected(Exception):
    """What is asked for cannot be done now. The text says why."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def only(given: dict[str, Any], **kinds: type | tuple[type, ...]) -> dict[str, Any]:
    """The members of a document, which has these and no others, each of its kind or absent. Raises BadRequest."""
    for name, value in given.items():
        if name not in kinds:
            raise BadRequest(f"{name} is unknown here; there are: {', '.join(sorted(kinds)) or 'none'}")
        kind = kinds[name]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise BadRequest(f"{name} is of the wrong type")
    return given


def names_of(value: Any, what: str) -> frozenset[str] | None:
    """A list of texts as a set; None stays None. Raises BadRequest."""
    if value is None:
        return None
    if not all(isinstance(name, str) for name in value):
        raise BadRequest(f"{what} must be a list of texts")
    return frozenset(value)


def namespace_of(given: dict[str, Any]) -> str | None:
    """The `namespace` of a document, None if it names none. Reserved ones are not for callers. Raises BadRequest."""
    namespace: str | None = given.get("namespace")
    if namespace is not None and (not namespace or is_reserved(namespace)):
        raise BadRequest("namespace says whose tables are meant, for instance aws/000000000000/us-east-1")
    return namespace


def run(engine: Engine, command: Command[R]) -> R:
    """Return the outcome of one command of the administrator. Raises GatewayError."""
    return run_one(engine, command, None)
