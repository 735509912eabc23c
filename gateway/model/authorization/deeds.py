"""The facts of a request for the audit: its kind, caller, tables, keys and error."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, NamedTuple


class Kind(Enum):
    """The kind of a request. The values are the events of the audit."""

    DEFINITION = "definition"
    WRITE = "write"
    READ = "request"
    SIGN_IN = "sign-in"


class RefusedParts(NamedTuple):
    """The parts of a request that were refused while the request as a whole was answered: the tables that they name, and the code
    of the error."""

    tables: Sequence[str]
    code: str


class Deed(NamedTuple):
    """The facts of a request for the audit.

    `who`: the access id that the request names. `keys`: the keys of its items, each as a JSON value. `code`: the error code of
    the answer, or "". `is_refusal`: True if the error means that the caller is not permitted or not authenticated. `parts`: the
    parts that were refused while the rest was answered.
    """

    kind: Kind
    who: str = ""
    tables: Sequence[str] = ()
    keys: Sequence[Any] = ()
    code: str = ""
    is_refusal: bool = False
    parts: RefusedParts | None = None
