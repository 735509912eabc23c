"""HTTP requests and replies as plain frozen values; the bridge to and from Flask.

Adapters see nothing else of HTTP. The target is kept as it was sent: Azure signatures cover its very bytes, and %2F or +
would not survive decoding.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from flask import Blueprint

from gateway.credentials import Credentials
from gateway.engine.engine import Engine
from gateway.model.commands import Exchange
from gateway.settings import Settings

Headers = tuple[tuple[str, str], ...]


def new_request_id() -> str:
    """52 characters of A-Z and 0-9, as the AWS services give; unique enough to find a line in a log."""
    return "".join(_ALPHABET[byte & 31] for byte in secrets.token_bytes(52))


_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request. Header names are lower-case, values decoded as latin-1, in the order they came, repeats kept.

    `target` is the raw request target (path and query as sent); `client` the peer's address; `secure` whether TLS was used.
    """

    method: str
    target: str
    headers: Headers
    body: bytes
    client: str = "127.0.0.1"
    secure: bool = False
    id: str = field(default_factory=new_request_id)

    @property
    def path(self) -> str:
        """The raw path, percent-encoding untouched. An absolute-form target is cut down to its path."""
        return split_target(self.target)[0]

    @property
    def query(self) -> str:
        """The raw query, without the question mark."""
        return split_target(self.target)[1]

    def header(self, name: str, default: str = "") -> str:
        """The first value of a header, named in lower case."""
        for known, value in self.headers:
            if known == name:
                return value
        return default

    def header_values(self, name: str) -> list[str]:
        """All values of a header, in order."""
        return [value for known, value in self.headers if known == name]


@dataclass(frozen=True, slots=True)
class Reply:
    """One HTTP reply. Content-Length and Connection are the server's to add."""

    status: int
    headers: Iterable[tuple[str, str]]
    body: bytes = b""


def split_target(target: str) -> tuple[str, str]:
    """(path, query) of a request target, both raw."""
    if not target.startswith("/"):
        scheme, separator, rest = target.partition("://")
        if separator and scheme.lower() in ("http", "https"):
            target = "/" + rest.partition("/")[2]
    path, _, query = target.partition("?")
    return path, query


Handler = Callable[[Request], Exchange]
"""Begins to handle a request. Called again with the same request when a table turned out to be stale."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What an adapter's `blueprint.create(house)` gives: its Flask blueprint, which owns every route, and `enter`, the way
    past Flask for its hot wire operations: a handler if the request is one of them, else None."""

    name: str
    blueprint: Blueprint
    enter: Callable[[Request], Handler | None]


@dataclass(frozen=True, slots=True)
class House:
    """What the application gives to every adapter. `now_ms` is the clock: milliseconds since 1970."""

    engine: Engine
    credentials: Credentials
    settings: Settings
    now_ms: Callable[[], int]
