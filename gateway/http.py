"""HTTP requests and replies as plain values, and the ids by which they are found again.

Adapters see nothing else of HTTP. The target is kept as it was sent: Azure signatures cover its very bytes, and %2F or +
would not survive decoding. Knows no server and no dialect.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from tablegate.gateway.model.authorization.authorizations import Authorization
from tablegate.gateway.model.request_facts import RequestFacts

Headers = tuple[tuple[str, str], ...]

WSGI_REQUEST = "tablegate.request"
"""The key under which our own server hands a Request through a WSGI environment."""


def new_request_id() -> str:
    """52 characters of A-Z and 0-9, as the AWS services give; unique enough to find a line in a log."""
    try:
        return _ready_ids.pop()
    except IndexError:
        letters = secrets.token_bytes(_ID_LENGTH * _IDS_AT_ONCE).translate(_LETTERS).decode()
        _ready_ids.extend(
            [letters[at : at + _ID_LENGTH] for at in range(_ID_LENGTH, len(letters), _ID_LENGTH)]
        )
        return letters[:_ID_LENGTH]


_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567" * 8
_ID_LENGTH, _IDS_AT_ONCE = 52, 64
_ready_ids: list[str] = []
# Workers are forked (gateway/server/workers.py): no two may give the same ids.
os.register_at_fork(after_in_child=_ready_ids.clear)


# Not frozen, and with a constructor of its own: one is made of every request.
@dataclass(slots=True, eq=False, init=False)
class Request:
    """One HTTP request. Only `held_bytes`, its authorization, `is_unauthenticated` and its facts change.

    Header names are lower-case, values decoded as latin-1, in the order they came, repeats kept. `target` is the raw request
    target (path and query as sent); `client` the peer's address; `secure` whether TLS was used.
    """

    method: str
    target: str
    headers: Headers
    body: bytes
    client: str
    secure: bool
    id: str = field(init=False)
    """Unique. A copy by `dataclasses.replace` gets an id of its own."""
    path: str = field(init=False, repr=False)
    """The raw path, percent-encoding untouched. An absolute-form target is cut down to its path."""
    query: str = field(init=False, repr=False)
    """The raw query, without the question mark."""
    header_map: dict[str, str] = field(init=False, repr=False)
    """The first value of each header, by its name in lower case."""
    held_bytes: int = field(init=False, repr=False)
    """Bytes that are counted for what it was decoded into (gateway/request_memory.py)."""
    authorization: Authorization | None = field(init=False, repr=False)
    """What the request may do, once its dialect has proven who sent it; None: everything."""
    is_unauthenticated: bool = field(init=False, repr=False)
    """True if its head did not prove who sent it, where that is wanted."""
    facts: RequestFacts | None = field(init=False, repr=False)
    """What a request for the gateway itself did, noted by its handler for the audit. Dialects tell it of theirs."""

    def __init__(
        self,
        method: str,
        target: str,
        headers: Headers,
        body: bytes,
        client: str = "127.0.0.1",
        secure: bool = False,
        header_map: dict[str, str] | None = None,
    ) -> None:
        """`header_map`: if the caller has it already."""
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body
        self.client = client
        self.secure = secure
        self.authorization = None
        self.is_unauthenticated = False
        self.held_bytes = 0
        self.facts = None
        self.id = _ready_ids.pop() if _ready_ids else new_request_id()
        self.header_map = dict(headers[::-1]) if header_map is None else header_map
        if target == "/":  # the only one that DynamoDB has
            self.path, self.query = target, ""
        else:
            self.path, self.query = split_target(target)

    def header(self, name: str, default: str = "") -> str:
        """The first value of a header, named in lower case."""
        return self.header_map.get(name, default)

    def header_values(self, name: str) -> list[str]:
        """All values of a header, in order."""
        return [value for known, value in self.headers if known == name]


class Reply(NamedTuple):
    """One HTTP reply. Content-Length and Connection are the server's to add."""

    status: int
    headers: Iterable[tuple[str, str]]
    body: bytes = b""


def text_reply(status: int, text: str) -> Reply:
    """Return a reply of one line of plain text."""
    return Reply(status, (("Content-Type", "text/plain; charset=utf-8"),), f"{text}\n".encode())


CUT = Reply(0, ())
"""Stands for a connection that is closed without a reply, because a test wants it so."""


def split_target(target: str) -> tuple[str, str]:
    """(path, query) of a request target, both raw."""
    if not target.startswith("/"):
        scheme, separator, rest = target.partition("://")
        if separator and scheme.lower() in ("http", "https"):
            target = "/" + rest.partition("/")[2]
    path, _, query = target.partition("?")
    return path, query
