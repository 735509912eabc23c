"""The context of a call of an operation, and the look-up of its tables.

A handler is a coroutine function `operation(call) -> Message` (gateway/dialects/coroutines.py). It parses `call.message`, awaits
commands and returns the answer's protobuf message. It raises ServiceError or GatewayError. The dialect renders both as
error replies.

Clients read an index by its name, as they read a table. A TableOrIndex represents either.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from google.protobuf.message import Message

from tablegate.adapters.tablestore import DIALECT
from tablegate.adapters.tablestore.wire.auth import Caller
from tablegate.adapters.tablestore.wire.errors import ServiceError, invalid
from tablegate.adapters.tablestore.wire.names import check_table_name, is_name
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.model.authorization.authorizations import Authorization, NamedResource
from tablegate.gateway.model.commands.table_commands import FindTable, ListTables
from tablegate.gateway.model.errors import NotPermitted, TableMissing
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import KeyColumn


def _hold_nothing(size_bytes: int) -> None:
    """The `hold` of calls that do not come from a request."""


def _check_nothing() -> None:
    """The `check_client` of calls that do not come from a request."""


class CallContext(NamedTuple):
    """A call with a parsed message that has all its required fields.

    `now_ms`: the time of its start. `may_be_old`: the settings allow reads from a replica. The service itself always
    reads the latest data.
    """

    operation: str
    message: Any
    caller: Caller
    gateway: Gateway
    now_ms: int
    may_be_old: bool = False
    authorization: Authorization | None = None
    """The permissions of the caller, or None if the caller is unrestricted."""
    hold: Callable[[int], None] = _hold_nothing
    """Sets the number of bytes that the call holds in memory (RequestMemory.hold). Raises Busy."""
    check_client: Callable[[], None] = _check_nothing
    """Raises Busy if the client is gone and the call only reads."""

    def known_table(self, name: str) -> Table | None:
        """Return the descriptor of a table from the cache. None if the engine must look it up."""
        return self.gateway.engine.cached_table(self.caller.namespace, name, authorization=self.authorization)

    def reaches(self, table: Table, index: str = "") -> bool:
        """Return True if the caller may be allowed to do this to a table, or to an index of it."""
        path = f"{table.name}/index/{index}" if index else ""
        return self.authorization is None or self.authorization.reaches(table, path)


class TableOrIndex(NamedTuple):
    """A table, or an index of it, as the target of a read.

    `key`: its key columns. For an index, the remaining key columns of the table are appended. `shown`: attributes in an
    index, or None for all.
    """

    table: Table
    index: Index | None  # type: ignore[assignment]  # hides tuple.index, which is not called
    key: tuple[KeyColumn, ...]
    key_names: tuple[str, ...]
    shown: frozenset[str] | None = None

    @classmethod
    def of(cls, table: Table, index: Index | None = None) -> TableOrIndex:
        """Return a table or an index of it as a target. The key columns of the table that an index lacks are appended to
        its key."""
        if index is None:
            return cls(table, None, table.key_schema.columns, table.key_schema.names)
        own = index.key_schema.columns
        names = index.key_schema.names
        key = own + tuple(column for column in table.key_schema.columns if column.name not in names)
        return cls(table, index, key, tuple(column.name for column in key), index.projected_names)


_TABLE_OF_INDEX: OrderedDict[tuple[str, str], str] = OrderedDict()
_INDEXES_KEPT = 1024


async def find_target(call: CallContext, name: str) -> TableOrIndex:
    """Return the table or else the index with a name. Raises TableMissing, ServiceError."""
    namespace = call.caller.namespace
    table = call.known_table(name)
    if table is not None:
        return TableOrIndex.of(table)
    owner = _TABLE_OF_INDEX.get((namespace, name))
    if owner is not None:
        table = call.gateway.engine.cached_table(namespace, owner)
        index = None if table is None else table.index(name)
        if table is not None and index is not None and call.reaches(table, name):
            return TableOrIndex.of(table, index)
    try:
        table = await FindTable(namespace, name)
    except (TableMissing, NotPermitted) as unknown:
        # A caller without permission for a table of that name may have it for an index of that name.
        if not is_name(name):
            check_table_name(name)
        target = await _find_index(call, name)
        if target is None:
            raise unknown
        return target
    return TableOrIndex.of(table)


async def _find_index(call: CallContext, name: str) -> TableOrIndex | None:
    """Return an index with that name of some permitted table. Indexes of Table Store come before those of other
    dialects."""
    namespace = call.caller.namespace
    tables = await ListTables(namespace)
    candidates = [
        (table, index)
        for table in tables
        if (index := table.index(name)) is not None and (call.reaches(table, name) or call.reaches(table))
    ]
    candidates.sort(key=lambda pair: (not call.reaches(pair[0], name), pair[1].dialect != DIALECT))
    if not candidates:
        return None
    table, index = candidates[0]
    # The look-up by name puts the table into the engine's cache, for the next call.
    await FindTable(namespace, table.name)
    _TABLE_OF_INDEX[namespace, name] = table.name
    if len(_TABLE_OF_INDEX) > _INDEXES_KEPT:
        _TABLE_OF_INDEX.popitem(last=False)
    return TableOrIndex.of(table, index)


def named_tables(message: Any) -> list[str]:
    """Return the names of tables or indexes in a request."""
    names = [part.table_name for part in _naming_parts(message)]
    names.append(getattr(message, "main_table_name", ""))
    return [name for name in names if name]


def _naming_parts(message: Any) -> Sequence[Any]:
    """Return the parts of a request with a `table_name`: the tables of a batch, or else the request itself."""
    fields = message.DESCRIPTOR.fields_by_name
    if "tables" in fields:
        tables: Sequence[Any] = message.tables
        return tables
    return (message,) if "table_name" in fields else ()


def _has_invalid_name(part: Any) -> bool:
    """Return True if a part of a request sets an illegal name of a table."""
    name = part.table_name
    return not is_name(name) and (name != "" or part.HasField("table_name"))


Handler = Callable[[CallContext], Coroutine[Any, Any, Message]]


def execute(call: CallContext, handler: Handler) -> Coroutine[Any, Any, Message]:
    """Return the coroutine of an operation.

    It looks up the tables first if a name is invalid, or if the caller is restricted and a table is forbidden or not in
    the cache.
    """
    message = call.message
    can_begin = not any(map(_has_invalid_name, _naming_parts(message)))
    if can_begin and call.authorization is not None:
        is_known = all(call.known_table(name) is not None for name in named_tables(message))
        can_begin = is_known and getattr(message, "table_meta", None) is None
    return handler(call) if can_begin else _execute_after_names(call, handler)


async def _execute_after_names(call: CallContext, handler: Handler) -> Message:
    """Check the names of a call, then carry it out. So these errors precede those of the rest of the request.

    Raises NotPermitted for a forbidden table or index, and ServiceError for an invalid name. Existing tables of other
    dialects may have such names.
    """
    message, authorization = call.message, call.authorization
    if authorization is not None:
        for name in named_tables(message):
            with suppress(TableMissing, ServiceError):
                await find_target(call, name)
        table_meta = getattr(message, "table_meta", None)
        if table_meta is not None:
            permissions = authorization.purpose.permissions
            authorization.require_named(
                [NamedResource(permissions, call.caller.namespace, table_meta.table_name)]
            )
    for part in filter(_has_invalid_name, _naming_parts(message)):
        try:
            await find_target(call, part.table_name)
        except (TableMissing, NotPermitted):
            check_table_name(part.table_name)
    return await handler(call)


async def find_table(call: CallContext, name: str) -> Table:
    """Return the current descriptor of a table, to describe or change it. Raises TableMissing, ServiceError.

    The cache is not used: another server process may have changed the table, and no later check would detect that.
    """
    try:
        return await FindTable(call.caller.namespace, name)
    except TableMissing:
        check_table_name(name)
        raise


async def find_written(call: CallContext, name: str) -> Table:
    """Return the table for a write. Raises TableMissing, and ServiceError for an index."""
    table = call.known_table(name)
    if table is not None:
        return table
    target = await find_target(call, name)
    if target.index is not None:
        raise invalid(f"Disallow write to index table: '{name}'.")
    return target.table
