"""One call of an operation: what a handler gets, and how it finds its table.

A handler is a generator function `operation(call) -> Exchange[Answer]`. It parses `call.input` to commands, yields lists of them,
and returns the answer: a dict, or the bytes of a JSON object that it spliced itself. It raises ServiceError (errors.py) or
lets a GatewayError pass; the blueprint turns both into this dialect's error replies.

An operation on one table that one command is enough for is given in parts, as a OneCommand, of which its generator is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from adapters.dynamodb.wire.errors import foreign_resource
from adapters.dynamodb.wire.wording import Wording, wording_of
from gateway.dialect import Gateway
from gateway.engine.engine import one
from gateway.model.commands import AnyCommand, Exchange, FindTable
from gateway.model.errors import GatewayError
from gateway.model.fast_dataclasses import dataclass
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

    `headers`: of its request, under names in lower case.
    """

    operation: str
    input: dict[str, Any]
    caller: Caller
    gateway: Gateway
    headers: Mapping[str, str] = MappingProxyType({})

    @property
    def wording(self) -> Wording:
        """In whose words what the operation refuses is told."""
        return wording_of(self.operation, self.gateway.settings.message_style)


Answer = dict[str, Any] | bytes | None
"""The body of an answer: an object, or its JSON where a handler has spliced it; None: no body."""


Clauses = TypeVar("Clauses")
Asked = TypeVar("Asked", bound=AnyCommand)


@dataclass(frozen=True, slots=True)
class OneCommand(Generic[Clauses, Asked]):
    """An operation on one table, which its call names, that one command is enough for. The server's tick carries out the parts
    one after the other; `exchange` does it for everybody else.

    `clauses`: what the call says, as far as it can be judged without the table; `command`: what the engine is asked for;
    `answer`: the answer of the command's outcome. All raise ServiceError and GatewayError; `refused` is what is said of an
    error that the command met.
    """

    clauses: Callable[[Call, dict[str, Any]], Clauses]
    command: Callable[[Call, Clauses, Table], Asked]
    answer: Callable[[Call, Clauses, Asked, Any], Answer]
    refused: Callable[[Call, Asked, GatewayError], Exception] = lambda call, command, error: error

    def exchange(self, call: Call) -> Exchange[Answer]:
        """The operation as a handler."""
        clauses = self.clauses(call, call.input)
        table = yield from find_table(call, call.input["TableName"])
        command = self.command(call, clauses, table)
        [outcome] = yield [command]
        return self.finish(call, clauses, command, outcome)

    def finish(self, call: Call, clauses: Clauses, command: Asked, outcome: Any) -> Answer:
        """The answer of an outcome, which may be an error."""
        if isinstance(outcome, GatewayError):
            raise self.refused(call, command, outcome) from None
        return self.answer(call, clauses, command, outcome)


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
