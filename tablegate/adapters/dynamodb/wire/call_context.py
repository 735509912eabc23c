"""One call of an operation: the input of a handler, and access to its table.

A handler is a coroutine function `operation(call) -> Answer` (gateway/coroutines.py). It parses `call.input`, awaits
commands and returns the answer: a dict, or the bytes of a JSON object. It raises ServiceError (errors.py) or
GatewayError. The entry renders both as this dialect's error replies.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from tablegate.adapters.dynamodb.wire.errors import Wording, wording_of
from tablegate.adapters.dynamodb.wire.gateway_errors import foreign_resource
from tablegate.adapters.dynamodb.wire.named_resources import named_resources
from tablegate.adapters.dynamodb.wire.signature_claims import Caller
from tablegate.gateway.dialect import Gateway
from tablegate.gateway.model.authorization.authorizations import Authorization
from tablegate.gateway.model.authorization.permissions import READING, WRITING, Channel, Purpose
from tablegate.gateway.model.commands.table_commands import FindTable
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.security.credentials import Scheme

# Calls


_OF_ROWS = READING | WRITING


class CallContext(NamedTuple):
    """A call with checked input: known members only, of the right JSON types, without nulls
    (Operation.check).

    `headers`: of its request, under names in lower case.
    """

    operation: str
    input: dict[str, Any]
    caller: Caller
    gateway: Gateway
    headers: Mapping[str, str] = MappingProxyType({})
    authorization: Authorization | None = None
    """The permissions of the caller. None: unrestricted."""

    def can_list(self, path: str) -> bool:
        """True if the caller may see an entry of a list. `path`: the resource."""
        return self.authorization is None or self.authorization.allows(self.caller.namespace, path)

    @property
    def wording(self) -> Wording:
        return wording_of(self.operation)


Answer = dict[str, Any] | bytes | None
"""The body of an answer: an object, or its JSON if the handler has spliced it. None: no body."""


Handler = Callable[[CallContext], Coroutine[Any, Any, Answer]]


def is_one_command(purpose: Purpose) -> bool:
    """True if an operation is one command, which accesses all that the request names and is authorized before the engine.
    So the names are authorized only if the table must be looked up.
    """
    return purpose.channel is Channel.SINGLE and _OF_ROWS.issuperset(purpose.permissions)


def authorize_names(call: CallContext, authorization: Authorization) -> None:
    """Authorize the resources that a call names. Raises NotPermitted."""
    authorization.require_named(named_resources(call.input, authorization.purpose, call.caller.namespace))


async def find_table(call: CallContext, name: str) -> Table:
    """Return the descriptor of the caller's table, by name or ARN. Raises TableMissing, ServiceError."""
    if name.startswith("arn:"):
        name = own_name(call, name)
    table = call.gateway.engine.cached_table(call.caller.namespace, name)
    if table is None:
        if call.authorization is not None and is_one_command(call.authorization.purpose):
            authorize_names(call, call.authorization)
        table = await FindTable(call.caller.namespace, name)
    return table


def own_name(call: CallContext, name: str) -> str:
    """Return the table's name in a TableName member, which may be an ARN.

    Raises ServiceError for an ARN of another account or region.
    """
    if not name.startswith("arn:"):
        return name
    check_place(call, name)
    return name.rpartition("/")[2]


def check_place(call: CallContext, arn: str) -> None:
    """Raise ServiceError for an ARN of an account or region outside the caller's namespace."""
    # PartiQL statements may contain any text here, so the six parts of an ARN may be missing.
    _, _, _, region, account, *_ = [*arn.split(":", 5), "", "", ""]
    if call.gateway.credentials.namespace(Scheme.AWS, account, region) != call.caller.namespace:
        raise foreign_resource(call.operation, call.caller.access_id, call.caller.account, arn)
