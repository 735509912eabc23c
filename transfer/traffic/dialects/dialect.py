"""What traffic asks of a dialect, and what all of them share: content codings."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from typing import ClassVar

from tablegate.gateway.http import Reply, Request
from tablegate.transfer.traffic.comparing import ParsedReply
from tablegate.transfer.traffic.tokens import Tokens

_PLAIN_MAX_BYTES = 64 << 20
# zlib's window: gzip or zlib by the data's own header.
_EITHER_WINDOW = 47


class UnknownToken(Exception):
    """A request holds a token of the recorded service, and which one the live service gave in its place is not known."""


class ProxiedDialect(ABC):
    """One dialect as it is spoken between a client and a service that are others'."""

    name: ClassVar[str]
    passing_codes: ClassVar[frozenset[str]]
    """Codes of errors after which SDKs send a request again, because nothing was done and it will do later."""

    @abstractmethod
    def operation(self, request: Request) -> str:
        """The name of the operation, for reports and rules."""

    @abstractmethod
    def is_write(self, request: Request) -> bool:
        """Whether a request may change what is stored, or opens something of the service's that later requests name."""

    @abstractmethod
    def base(self, request: Request) -> str:
        """The path in front of resources, which links in answers have too; "" if there is none."""

    @abstractmethod
    def moved(self, request: Request, origin: str, account: str) -> Request:
        """A request for the service at `origin`, in place of the one that it was for. `account`: whose key signs, "" for
        the same."""

    @abstractmethod
    def with_live_tokens(self, request: Request, tokens: Tokens, is_done: bool) -> Request:
        """The request with the live service's tokens. `is_done`: the recorded one succeeded. Raises UnknownToken."""

    @abstractmethod
    def answer(self, request: Request, reply: Reply) -> ParsedReply:
        """The answer to a request, as a tree. `reply` is plain."""

    def succeeded(self, reply: Reply) -> bool:
        """Whether a plain answer says that what was asked was done, all of it, and that nothing is still under way."""
        return reply.status < 400 and not self.is_under_way(reply)

    def is_under_way(self, reply: Reply) -> bool:
        """Whether an answer describes what is still being made or changed."""
        return False

    @abstractmethod
    def refusal(self, request: Request, status: int, text: str) -> Reply:
        """What a proxy itself has to say, in the dialect's words."""


def plain(reply: Reply) -> Reply:
    """The answer without its content coding; as it is, if that is an unknown one or the body is not what it says."""
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
    dropped = (
        "content-encoding",
        "content-length",
        "x-ots-response-compress-type",
        "x-ots-response-compress-size",
    )
    kept = [(name, value) for name, value in reply.headers if name.lower() not in dropped]
    return Reply(reply.status, kept, body)


def headers_of(reply: Reply, names: frozenset[str]) -> dict[str, str]:
    """Those of an answer's headers that matter, by lower-case name."""
    return {name.lower(): value for name, value in reply.headers if name.lower() in names}
