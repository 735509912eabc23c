"""One call of an operation: what a handler gets, what it answers, and how it finds its table.

A handler is a generator function `operation(call, resource) -> Exchange[Answer]`. It parses the request to commands, yields
lists of them and returns an Answer; it raises ServiceError (errors.py) or lets a GatewayError pass. The blueprint makes both
into replies.

An operation on one entity, which one command is enough for, is given as a OneCommand, which is such a handler too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any
from urllib.parse import unquote, unquote_plus

from adapters.azuretable.auth.shared_access import Grant
from adapters.azuretable.wire import limits
from adapters.azuretable.wire.addresses import Address, Entity, EntitySet, check_table_name
from adapters.azuretable.wire.errors import ServiceError
from gateway.dialect import Gateway
from gateway.engine.engine import one
from gateway.http import Request
from gateway.model.commands import AnyCommand, Exchange, FindTable
from gateway.model.fast_dataclasses import dataclass
from gateway.model.tables import Table


# Neither is frozen: that would treble the time in which one is made, and both are made of every request.
@dataclass(slots=True, eq=False)
class Call:
    """An authenticated request, not to be changed. `method` is the verb meant (X-HTTP-Method counts), `options` the decoded
    query, `origin` scheme, host and base of the service as this client addresses it."""

    request: Request
    address: Address
    method: str
    options: Mapping[str, str]
    origin: str
    namespace: str
    grant: Grant
    gateway: Gateway


@dataclass(slots=True, eq=False)
class Answer:
    """A reply before the headers that all replies have. Not to be changed."""

    status: int
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""


Asked = tuple[AnyCommand, Callable[[Any], Answer]]
"""What the engine is asked for, and the answer of its outcome. Both raise ServiceError."""


@dataclass(frozen=True, slots=True)
class OneCommand:
    """An operation on one entity, for which one command is enough. The server's tick carries out the parts one after the other;
    called as a handler, it does that itself.

    `begin`: what can be judged without the table; it gives what is asked of a table. Raises ServiceError.
    """

    begin: Callable[[Call, Any], Callable[[Table], Asked]]

    def __call__(self, call: Call, resource: EntitySet | Entity) -> Exchange[Answer]:
        """The operation as a handler. Raises ServiceError, and what the command met."""
        of_table = self.begin(call, resource)
        table = yield from find_table(call, resource.table)
        command, answer = of_table(table)
        [outcome] = yield [command]
        return self.finish(answer, outcome)

    @staticmethod
    def finish(answer: Callable[[Any], Answer], outcome: Any) -> Answer:
        """The answer of an outcome. Raises it if it is an error."""
        if isinstance(outcome, Exception):
            raise outcome
        return answer(outcome)


def service_id(request_id: str) -> str:
    """The GUID by which this dialect's replies name a request, made of the id that the server's log has."""
    digest = hashlib.blake2b(request_id.encode(), digest_size=16).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:]}"


def options_of(query: str) -> dict[str, str]:
    """The decoded options of a raw query; of a repeated one the first, but two signatures are as good as none.

    "+" is a blank, as HTML forms and older clients write it, but in `sig`, whose base64 some clients leave unencoded.
    Raises ServiceError InvalidUri for bytes that are not UTF-8, and for more options than any request has.
    """
    options: dict[str, str] = {}
    if not query:
        return options
    if query.count("&") >= limits.OPTIONS_MAX:
        raise ServiceError("InvalidUri", "URI is invalid")
    try:
        for part in query.split("&"):
            name, _, value = part.partition("=")
            name = unquote(name, errors="strict") if "%" in name else name
            if name and name not in options:
                decode = unquote if name == "sig" else unquote_plus
                options[name] = decode(value, errors="strict")
            elif name == "sig":
                options[name] = ""
    except UnicodeDecodeError:
        raise ServiceError("InvalidUri", "URI is invalid") from None
    return options


def find_table(call: Call, name: str) -> Exchange[Table]:
    """The descriptor of a table, by the name that Azure knows it by, in whatever case. Raises TableMissing, ServiceError."""
    table = call.gateway.engine.cached_azure_table(call.namespace, name)
    return (yield from find_table_now(call, name)) if table is None else table


def find_table_now(call: Call, name: str) -> Exchange[Table]:
    """The descriptor of a table that is to be described or changed, by asking the engine: nothing else may be asked of it,
    and who is to know of a table is judged by what the engine is asked."""
    check_table_name(name)
    return (yield from one(FindTable(call.namespace, name, by_azure_name=True)))
