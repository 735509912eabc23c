"""One call of an operation: what a handler gets, and how it finds its table.

A handler is a generator function `operation(call) -> Exchange[Answer]`. It parses `call.input` to commands, yields lists of them,
and returns the answer: a dict, or the bytes of a JSON object that it spliced itself. It raises ServiceError (errors.py) or
lets a GatewayError pass; the blueprint turns both into this dialect's error replies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from adapters.dynamodb.wire.errors import foreign_resource
from adapters.dynamodb.wire.wording import Wording, wording_of
from gateway.dialect import Gateway
from gateway.engine.engine import one
from gateway.model.commands import Exchange, FindTable
from gateway.model.tables import Table
from gateway.security.credentials import Scheme


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: the access key id, and what its signature said; `namespace` is where its tables live."""

    access_id: str
    account: str
    region: str
    namespace: str


class Call(NamedTuple):
    """A call whose request has passed operation_schemas.check: known members only, of the right JSON types, null members
    dropped.

    `host`: what the client called this server.
    """

    operation: str
    input: dict[str, Any]
    caller: Caller
    gateway: Gateway
    host: str = ""

    @property
    def wording(self) -> Wording:
        """In whose words what the operation refuses is told."""
        return wording_of(self.operation, self.gateway.settings.message_style)


Answer = dict[str, Any] | bytes | None
"""The body of an answer: an object, or its JSON where a handler has spliced it; None: no body."""


def find_table(call: Call, name: str) -> Exchange[Table]:
    """The descriptor of a table of the caller's, by its name or ARN. Raises TableMissing, ServiceError."""
    if name.startswith("arn:"):
        name = own_name(call, name)
    table = call.gateway.engine.cached_table(call.caller.namespace, name)
    if table is None:
        table = yield from one(FindTable(call.caller.namespace, name))
    return table


def own_name(call: Call, name: str) -> str:
    """The table's name in a TableName member, which may be an ARN. Raises ServiceError for the ARN of another place."""
    if not name.startswith("arn:"):
        return name
    check_place(call, name)
    return name.rpartition("/")[2]


def check_place(call: Call, arn: str) -> None:
    """Refuse an ARN of an account or region whose tables are not the caller's. Raises ServiceError."""
    # A statement may name any text, so that there need not be six parts.
    _, _, _, region, account, *_ = [*arn.split(":", 5), "", "", ""]
    if call.gateway.credentials.namespace(Scheme.AWS, account, region) != call.caller.namespace:
        raise foreign_resource(call.operation, call.caller.access_id, call.caller.account, arn)
