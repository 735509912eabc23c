"""One call of an operation: what a handler gets, and how it finds its table.

A handler is a function `operation(call) -> Steps[Message]` (gateway/exchanges.py), usually a generator function. It parses
`call.message` to commands and returns the answer's protobuf message. It raises ServiceError or GatewayError. The entry
renders both as error replies.

An index is a table here, to be read and not written: a Target is a table seen under one of these names.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from tablegate.adapters.tablestore import DIALECT
from tablegate.adapters.tablestore.wire.auth import Caller
from tablegate.adapters.tablestore.wire.errors import ServiceError, invalid
from tablegate.adapters.tablestore.wire.names import check_table_name, is_name
from tablegate.gateway.dialect import Gateway
from tablegate.gateway.exchanges import Steps, exchange_of, one
from tablegate.gateway.model.authorization.authorizations import Authorization, NamedResource
from tablegate.gateway.model.commands.commands import Exchange
from tablegate.gateway.model.commands.table_commands import FindTable, ListTables
from tablegate.gateway.model.errors import NotPermitted, TableMissing
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import KeyColumn


@dataclass(frozen=True, slots=True)
class CallContext:
    """A call whose message has been parsed and has all its required fields. `now_ms`: when it began.
    `may_be_old`: by the settings, what it reads may be a little old; the service itself never lets it be."""

    operation: str
    message: Any
    caller: Caller
    gateway: Gateway
    now_ms: int
    may_be_old: bool = False
    authorization: Authorization | None = None
    """The permissions of the caller. None: the caller may do everything."""

    def known_table(self, name: str) -> Table | None:
        """The descriptor of a table from the cache. None: the engine must be asked for it, which is always so of a forbidden
        table, as of one that is not there."""
        table = self.gateway.engine.cached_table(self.caller.namespace, name)
        return table if table is None or self.reaches(table) else None

    def reaches(self, table: Table, index: str = "") -> bool:
        """True if the caller might be allowed to do this to a table, or to an index of it."""
        path = f"{table.name}/index/{index}" if index else ""
        return self.authorization is None or self.authorization.reaches(table, path)


@dataclass(frozen=True, slots=True)
class TableOrIndex:
    """A table, or an index of it, under the name that a client reads. `key`: its columns, for an index ending in those of
    the table that it does not name itself; `shown`: attributes that an index has (None: all)."""

    table: Table
    index: Index | None
    key: tuple[KeyColumn, ...]
    key_names: tuple[str, ...]
    shown: frozenset[str] | None = None

    @classmethod
    def of_table(cls, table: Table) -> TableOrIndex:
        """A table itself as the target."""
        return cls(table, None, table.key_schema.columns, table.key_schema.names)

    @classmethod
    def of_index(cls, table: Table, index: Index) -> TableOrIndex:
        """An index of a table as the target: its key is followed by the columns of the table's that it lacks."""
        own = index.key_schema.columns
        names = index.key_schema.names
        key = own + tuple(column for column in table.key_schema.columns if column.name not in names)
        return cls(table, index, key, tuple(column.name for column in key), index.shown)


_TABLE_OF_INDEX: OrderedDict[tuple[str, str], str] = OrderedDict()
_INDEXES_KEPT = 1024


def find_target(call: CallContext, name: str) -> Exchange[TableOrIndex]:
    """What a table name of the caller's means: a table, or else an index. Raises TableMissing, ServiceError."""
    namespace = call.caller.namespace
    table = call.known_table(name)
    if table is not None:
        return TableOrIndex.of_table(table)
    owner = _TABLE_OF_INDEX.get((namespace, name))
    if owner is not None:
        table = call.gateway.engine.cached_table(namespace, owner)
        index = None if table is None else table.index(name)
        if table is not None and index is not None and call.reaches(table, name):
            return TableOrIndex.of_index(table, index)
    try:
        table = yield from one(FindTable(namespace, name))
    except (TableMissing, NotPermitted) as unknown:
        # Who may not hear of a table of that name may still be allowed to read an index that has it.
        if not is_name(name):
            check_table_name(name)
        found = yield from _find_index(call, name)
        if found is None:
            raise unknown
        return found
    return TableOrIndex.of_table(table)


def _find_index(call: CallContext, name: str) -> Exchange[TableOrIndex | None]:
    """The index of that name, of whichever table that is not forbidden to the caller; Table Store's own before others'."""
    namespace = call.caller.namespace
    tables = yield from one(ListTables(namespace))
    having = [
        (table, index)
        for table in tables
        if (index := table.index(name)) is not None and (call.reaches(table, name) or call.reaches(table))
    ]
    having.sort(key=lambda pair: (not call.reaches(pair[0], name), pair[1].dialect != DIALECT))
    if not having:
        return None
    table, index = having[0]
    # Under its own name the table is kept in the engine's cache, which is asked the next time.
    yield from one(FindTable(namespace, table.name))
    _TABLE_OF_INDEX[namespace, name] = table.name
    if len(_TABLE_OF_INDEX) > _INDEXES_KEPT:
        _TABLE_OF_INDEX.popitem(last=False)
    return TableOrIndex.of_index(table, index)


def named_tables(message: Any) -> list[str]:
    """The names of tables, or of indexes, in a request."""
    parts = (message, *getattr(message, "tables", ()))
    named = [getattr(part, field, "") for part in parts for field in ("table_name", "main_table_name")]
    return [name for name in named if name]


def names_known_tables(call: CallContext) -> bool:
    """True if nothing must be looked up before the operation begins: the call names tables that are cached and that the caller
    can be allowed to use, or valid names where the caller may do everything."""
    message = call.message
    for part in (message, *getattr(message, "tables", ())):
        name = getattr(part, "table_name", None)
        if name is not None and not is_name(name) and (name or part.HasField("table_name")):
            return False
    if call.authorization is None:
        return True
    is_known = all(call.known_table(name) is not None for name in named_tables(message))
    return is_known and getattr(message, "table_meta", None) is None


def after_names(call: CallContext, handler: Callable[[CallContext], Steps[Message]]) -> Exchange[Message]:
    """An operation after the names of its tables have been looked up, because one is forbidden, unknown or unusual."""
    yield from judge_names(call)
    yield from check_names(call)
    return (yield from exchange_of(handler(call)))


def judge_names(call: CallContext) -> Exchange[None]:
    """Refuse a caller to whom a table or index is forbidden, before anything else about the request is judged. Raises
    NotPermitted."""
    if call.authorization is None:
        return
    for name in named_tables(call.message):
        with suppress(TableMissing, ServiceError):
            yield from find_target(call, name)
    made = getattr(call.message, "table_meta", None)
    if made is not None:
        named = NamedResource(call.authorization.purpose.permissions, call.caller.namespace, made.table_name)
        call.authorization.require_named([named])


def check_names(call: CallContext) -> Exchange[None]:
    """Raises ServiceError if the request names a table that neither is nor could be: before anything else about the request
    is judged. Tables that other dialects made may have names that could not be given here."""
    fields = call.message.DESCRIPTOR.fields_by_name
    named = call.message.tables if "tables" in fields else [call.message] if "table_name" in fields else []
    for part in named:
        name = part.table_name
        if not is_name(name) and (name or part.HasField("table_name")):
            try:
                yield from find_target(call, name)
            except (TableMissing, NotPermitted):
                check_table_name(name)


def find_table(call: CallContext, name: str) -> Exchange[Table]:
    """The table of that name as it is now, to be described or changed. Raises TableMissing, ServiceError.

    Not from the cache: another server process may have changed it, and nothing would find that out."""
    try:
        return (yield from one(FindTable(call.caller.namespace, name)))
    except TableMissing:
        check_table_name(name)
        raise


def find_written(call: CallContext, name: str) -> Exchange[Table]:
    """The table of that name, to be written. Raises TableMissing, and ServiceError for an index."""
    target = yield from find_target(call, name)
    if target.index is not None:
        raise invalid(f"Disallow write to index table: '{name}'.")
    return target.table
