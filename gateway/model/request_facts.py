"""The facts of a request: its operation, its caller, and the tables and keys that it names.

The audit, the record of requests and planted faults read them. Grants and quotas are judged by commands (security/gate.py), not
by these facts: what is executed is what is judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any, NamedTuple

MAX_TEXT_LENGTH = 512
"""Longer names and ids are cut."""


class RequestKind(Enum):
    """The kind of a request. The values are the events of the audit."""

    DEFINITION = "definition"
    WRITE = "write"
    READ = "request"
    SIGN_IN = "sign-in"


class RejectedParts(NamedTuple):
    """The parts of a request that were refused while the request as a whole was answered: the tables that they name, and the code
    of the error."""

    tables: Sequence[str]
    code: str


class RequestFacts(NamedTuple):
    """The facts of a request and, once it has been answered, of its result.

    `caller`: the access id that the request names. `tables`, `keys`: the tables, and (table, key as a JSON value) of each item,
    that it names; they are not read from the body of a request that was refused before its caller was authenticated.
    `error_code`: of the answer, or "". `is_refusal`: True if the error means that the caller is not permitted or not
    authenticated. `refused_parts`: the parts that were refused while the rest was answered.
    """

    operation: str = ""
    kind: RequestKind = RequestKind.READ
    caller: str = ""
    tables: Sequence[str] = ()
    keys: Sequence[tuple[str, Any]] = ()
    error_code: str = ""
    is_refusal: bool = False
    refused_parts: RejectedParts | None = None


def table_names(found: Iterable[Any]) -> list[str]:
    """Return the non-empty texts among them, each once, cut to MAX_TEXT_LENGTH."""
    return list(dict.fromkeys(name[:MAX_TEXT_LENGTH] for name in found if isinstance(name, str) and name))


def kind_of(operation: str, writes: Iterable[str], read_prefixes: tuple[str, ...]) -> RequestKind:
    """Return WRITE for the operations that write rows, READ for names that begin as those of reading operations do, and
    DEFINITION for all others."""
    if operation in writes:
        return RequestKind.WRITE
    return RequestKind.READ if operation.startswith(read_prefixes) else RequestKind.DEFINITION
