"""The facts of a request: its operation, its caller, and the tables and keys that it names.

The audit log, the recorder of requests and injected faults use them. Grants and quotas are evaluated on commands
(security/gate.py), because only commands are executed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any, NamedTuple

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


class RequestFacts(NamedTuple):
    """The facts of a request and, once it has been answered, of its result.

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


def kind_of(operation: str, writes: Iterable[str], read_prefixes: tuple[str, ...]) -> RequestKind:
    """Return WRITE for operations in `writes`, READ for names with a reading prefix, and DEFINITION for all others."""
    if operation in writes:
        return RequestKind.WRITE
    return RequestKind.READ if operation.startswith(read_prefixes) else RequestKind.DEFINITION
