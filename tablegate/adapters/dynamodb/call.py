"""One call of an operation: the input of a handler, the resources that it names, and access to its table.

A handler is a coroutine function `operation(call) -> Answer` (gateway/dialects/coroutines.py). It parses `call.input`, awaits
commands and returns the answer: a dict, or the bytes of a JSON object. It raises ServiceError (errors.py) or
GatewayError. The dialect renders both as its error replies.

Resources are authorized before any table is looked up. The JSON may not be validated yet, so values of other forms are
skipped. Resources in PartiQL statements are authorized after a statement has been parsed (prepared_statements.py).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from tablegate.adapters.dynamodb.wire.arns import bare_name
from tablegate.adapters.dynamodb.wire.errors import ErrorTexts, error_texts_of
from tablegate.adapters.dynamodb.wire.gateway_errors import foreign_resource
from tablegate.adapters.dynamodb.wire.signature_claims import Caller
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.model.authorization.authorizations import Authorization, NamedResource
from tablegate.gateway.model.authorization.permissions import (
    ACCOUNT_PERMISSIONS,
    READING,
    WRITING,
    Channel,
    Permission,
    Purpose,
)
from tablegate.gateway.model.commands.table_commands import FindTable
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.security.credentials import Scheme

# Named resources


_P = Permission
_NAMES = ("TableName", "SourceTableName", "TargetTableName", "GlobalTableName")
_ARNS = (
    "TableArn", "ResourceArn", "SourceTableArn", "StreamArn", "BackupArn", "ExportArn", "ImportArn", "BulkOperationArn",
    "ShardIterator",
)  # fmt: skip
"""A shard iterator begins with the ARN of its stream."""
_IN_BATCHES = {"PutRequest": _P.PUT, "DeleteRequest": _P.DELETE}
_IN_TRANSACTIONS = {
    "Get": _P.READ, "Put": _P.PUT, "Update": _P.UPDATE, "Delete": _P.DELETE, "ConditionCheck": _P.CHECK,
}  # fmt: skip


def named_resources(body: Any, purpose: Purpose, namespace: str) -> Iterable[NamedResource]:
    """Return the resources in the body of a request.

    Listing operations of an account name none, even with a table as a filter.
    """
    if not isinstance(body, dict) or purpose.permissions[0] in ACCOUNT_PERMISSIONS:
        return ()
    return [
        *(
            NamedResource(purpose.permissions if permission is None else (permission,), namespace, path)
            for permission, path in _members(body)
        ),
        *(NamedResource(purpose.permissions, namespace, path) for path in _paths(body, purpose)),
    ]


def _paths(body: Mapping[str, Any], purpose: Purpose) -> Iterator[str]:
    """Yield the resources of the request as a whole."""
    for member in _NAMES:
        name = body.get(member)
        if isinstance(name, str):
            yield from _table_or_index(bare_name(name), body, purpose)
    for member in _ARNS:
        arn = body.get(member)
        if isinstance(arn, str) and ":table/" in arn:
            yield arn.partition(":table/")[2].partition("|")[0]
    parameters = body.get("TableCreationParameters")
    if isinstance(parameters, dict) and isinstance(parameters.get("TableName"), str):
        yield bare_name(parameters["TableName"])


def _table_or_index(table: str, body: Mapping[str, Any], purpose: Purpose) -> Iterator[str]:
    """Yield the index if one is read: a permission on the table does not include its indexes.

    A vector search reads both.
    """
    index = body.get("IndexName")
    reads = purpose.permissions[0]
    if reads not in (_P.QUERY, _P.SCAN, _P.SEARCH) or not isinstance(index, str):
        yield table
        return
    if reads is _P.SEARCH:
        yield table
    yield f"{table}/index/{index}"


def _members(body: Mapping[str, Any]) -> Iterator[tuple[Permission | None, str]]:
    """Yield the tables in the members of a batch or transaction, each with the permission that its member needs."""
    requests = body.get("RequestItems")
    for name, table_requests in requests.items() if isinstance(requests, dict) else ():
        kinds = _kinds(table_requests, _IN_BATCHES)
        yield from ((kind, bare_name(name)) for kind in kinds or [None])
    for member in list_or_empty(body.get("TransactItems")):
        for kind, action in member.items() if isinstance(member, dict) else ():
            name = action.get("TableName") if isinstance(action, dict) else None
            if isinstance(name, str):
                yield _IN_TRANSACTIONS.get(kind), bare_name(name)


def _kinds(members: Any, permissions: Mapping[str, Permission]) -> list[Permission | None]:
    kinds = {kind for member in list_or_empty(members) if isinstance(member, dict) for kind in member}
    return [permission for kind, permission in permissions.items() if kind in kinds]


def list_or_empty(value: Any) -> list[Any]:
    """Return a value of unchecked JSON if it is a list."""
    return value if isinstance(value, list) else []


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
    """The permissions of the caller, or None if the caller is unrestricted."""

    def can_list(self, path: str) -> bool:
        """True if the caller may see an entry of a list. `path`: the resource."""
        return self.authorization is None or self.authorization.allows(self.caller.namespace, path)

    @property
    def error_texts(self) -> ErrorTexts:
        return error_texts_of(self.operation)


Answer = dict[str, Any] | bytes | None
"""The body of an answer: an object, or its JSON if the handler has spliced it. None if the answer has no body."""


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
