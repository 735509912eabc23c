"""The description of a request: its operation, its caller, and the tables and keys that it names.

The audit log, the recorder of requests and injected faults use them. Grants and quotas are evaluated on commands
(security/gate.py), because only commands are executed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any, NamedTuple

from tablegate.gateway.model.authorization.permissions import CHANGING_NOTHING, READING_ROWS, WRITING, Purpose

MAX_TEXT_LENGTH = 512
"""Maximum length of names and ids, in characters. Longer ones are cut."""


class RequestKind(Enum):
    """The kind of a request. The values are the events of the audit log."""

    DEFINITION = "definition"
    WRITE = "write"
    READ = "request"
    SIGN_IN = "sign-in"


class RejectedParts(NamedTuple):
    """The refused parts of a request that succeeded otherwise: the tables that they name, and the error code."""

    tables: Sequence[str]
    code: str


class RequestInfo(NamedTuple):
    """The description of a request and, once it has been answered, of its result.

    - `caller`: the access id that the request names.
    - `tables`, `keys`: the tables and the items (table, key as a JSON value) that it names. They are not read from the
      body if the request was refused before authentication.
    - `error_code`: the code of the answer, or "".
    - `is_refusal`: the caller is not permitted or not authenticated.
    - `refused_parts`: the refused parts of a request that succeeded otherwise.
    """

    operation: str = ""
    kind: RequestKind = RequestKind.READ
    caller: str = ""
    tables: Sequence[str] = ()
    keys: Sequence[tuple[str, Any]] = ()
    error_code: str = ""
    is_refusal: bool = False
    refused_parts: RejectedParts | None = None


def table_names(names: Iterable[Any]) -> list[str]:
    """Return the distinct non-empty texts, cut to MAX_TEXT_LENGTH."""
    return list(dict.fromkeys(name[:MAX_TEXT_LENGTH] for name in names if isinstance(name, str) and name))


def kind_of(purpose: Purpose) -> RequestKind:
    """Return the kind of a request with this purpose. One permission to define or to write is enough for that kind."""
    if not CHANGING_NOTHING.union(WRITING).issuperset(purpose.permissions):
        return RequestKind.DEFINITION
    return RequestKind.READ if CHANGING_NOTHING.issuperset(purpose.permissions) else RequestKind.WRITE


def only_reads_rows(purpose: Purpose) -> bool:
    """Return True if any process of a server can answer a request with this purpose.

    Searches of vectors are excluded, because their indexes are in the memory of the process that writes.
    """
    return READING_ROWS.issuperset(purpose.permissions)
