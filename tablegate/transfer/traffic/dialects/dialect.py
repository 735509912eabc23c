"""The interface of a dialect in traffic, and the decoding of content codings."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from typing import ClassVar

from tablegate.gateway.http.messages import Reply, Request
from tablegate.transfer.traffic.comparing import ParsedReply, Tokens

_PLAIN_MAX_BYTES = 64 << 20
# Window bits for zlib: gzip or zlib, detected from the header.
_EITHER_WINDOW = 47
READING_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods of requests that write in no dialect, also if their operation is unknown."""


class UnknownToken(Exception):
    """A request holds a token of the recorded service that has no known live counterpart."""


class ProxiedDialect(ABC):
    """A dialect between a client and a service. Neither of them is this process."""

    name: ClassVar[str]
    passing_codes: ClassVar[frozenset[str]]
    """Codes of transient errors: nothing was applied, and SDKs retry the request."""

    @abstractmethod
    def operation(self, request: Request) -> str:
        """Return the name of the operation for reports and rules."""

    @abstractmethod
    def is_write(self, request: Request) -> bool:
        """True if a request may change stored data, by the purpose of its operation and by its statement."""

    @abstractmethod
    def base(self, request: Request) -> str:
        """Return the path in front of resources, which links in replies contain too. "" if there is none."""

    @abstractmethod
    def moved(self, request: Request, origin: str, account: str) -> Request:
        """Return the request for the service at `origin`. `account` is the signing account, "" to keep the recorded
        one."""

    @abstractmethod
    def with_live_tokens(self, request: Request, tokens: Tokens, is_done: bool) -> Request:
        """Return the request with live tokens. `is_done`: the recorded one succeeded. Raises UnknownToken."""

    @abstractmethod
    def answer(self, request: Request, reply: Reply) -> ParsedReply:
        """Return the reply to a request as a tree. `reply` has no content coding."""

    def succeeded(self, reply: Reply) -> bool:
        """True if a decoded reply reports success and no operation is still in progress."""
        return reply.status < 400 and not self.is_under_way(reply)

    def is_under_way(self, reply: Reply) -> bool:
        """True if a reply describes a resource that is still being created or changed."""
        return False

    @abstractmethod
    def refusal(self, request: Request, status: int, text: str) -> Reply:
        """Return an error of the proxy itself in the dialect's format."""


def plain(reply: Reply) -> Reply:
    """Decode the content coding of a reply. Unchanged if the coding is unknown or the body does not match it."""
    headers = {name.lower(): value.strip().lower() for name, value in reply.headers}
    coding = headers.get("content-encoding") or headers.get("x-ots-response-compress-type") or ""
    if coding not in ("gzip", "deflate") or not reply.body:
        return reply
    inflater = zlib.decompressobj(_EITHER_WINDOW)
    try:
        body = inflater.decompress(reply.body, _PLAIN_MAX_BYTES)
    except zlib.error:
        return reply
    if not inflater.eof:
        return reply
    removed_names = (
        "content-encoding",
        "content-length",
        "x-ots-response-compress-type",
        "x-ots-response-compress-size",
    )
    headers_left = [(name, value) for name, value in reply.headers if name.lower() not in removed_names]
    return Reply(reply.status, headers_left, body)


def headers_of(reply: Reply, names: frozenset[str]) -> dict[str, str]:
    return {name.lower(): value for name, value in reply.headers if name.lower() in names}
