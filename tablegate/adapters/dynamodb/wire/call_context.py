"""One call of an operation: the input of a handler, and access to its table.

A handler is a function `operation(call) -> Steps[Answer]` (gateway/exchanges.py), usually a generator function.
It parses `call.input` to commands and returns the answer: a dict, or the bytes of a JSON object. It raises
ServiceError (errors.py) or GatewayError. The entry renders both as this dialect's error replies.

`on_table` makes the handler of an operation on one table that needs one command.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from tablegate.adapters.dynamodb.wire.errors import Wording, wording_of
from tablegate.adapters.dynamodb.wire.gateway_errors import foreign_resource
from tablegate.adapters.dynamodb.wire.signature_claims import Caller
from tablegate.gateway.dialect import Gateway
from tablegate.gateway.exchanges import SingleStep, Steps, after, one
from tablegate.gateway.model.authorization.authorizations import Authorization
from tablegate.gateway.model.commands.commands import Exchange
from tablegate.gateway.model.commands.table_commands import FindTable
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.security.credentials import Scheme


class CallContext(NamedTuple):
    """A call with checked input: known members only, of the right JSON types, without nulls
    (operation_schemas.check).

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


Handler = Callable[[CallContext], Steps[Answer]]
"""An operation: a generator function, or a function that returns a SingleStep if the table is cached."""
Clauses = TypeVar("Clauses")


def on_table(
    clauses_of: Callable[[CallContext, dict[str, Any]], Clauses],
    step_of: Callable[[CallContext, Clauses, Table], SingleStep],
) -> Handler:
    """Return the handler of an operation on the table that its call names.

    `clauses_of`: parses and checks what does not depend on the table. `step_of`: makes the command. Both raise
    ServiceError and GatewayError.
    """

    def handler(call: CallContext) -> Steps[Answer]:
        clauses = clauses_of(call, call.input)
        name = call.input["TableName"]
        table = call.gateway.engine.cached_table(call.caller.namespace, name)
        if table is not None:
            return step_of(call, clauses, table)
        return after(find_table(call, name), partial(step_of, call, clauses))

    return handler


def find_table(call: CallContext, name: str) -> Exchange[Table]:
    """Return the descriptor of the caller's table, by name or ARN. Raises TableMissing, ServiceError."""
    if name.startswith("arn:"):
        name = own_name(call, name)
    table = call.gateway.engine.cached_table(call.caller.namespace, name)
    if table is None:
        table = yield from one(FindTable(call.caller.namespace, name))
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
