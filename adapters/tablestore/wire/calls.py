"""One call of an operation: what a handler gets, and how it finds its table.

A handler is a generator function `operation(call) -> Exchange[Message]`. It parses `call.message` to commands, yields lists
of them, and returns the answer's protobuf message. It raises ServiceError or lets a GatewayError pass; the blueprint turns
both into error replies.

An operation on one row is given as a OneCommand: that handler, and what it asks of a table that is known already.

An index is a table here, to be read and not written: a Target is a table seen under one of these names.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from google.protobuf.message import Message

from adapters.tablestore import DIALECT
from adapters.tablestore.wire.auth import Caller
from adapters.tablestore.wire.errors import ServiceError, invalid
from adapters.tablestore.wire.names import check_table_name, is_name
from gateway.dialect import Gateway
from gateway.engine.engine import one
from gateway.model.commands import AnyCommand, Exchange, FindTable, ListTables
from gateway.model.errors import NotPermitted, TableMissing
from gateway.model.fast_dataclasses import dataclass
from gateway.model.keys import KeyColumn
from gateway.model.tables import Index, Table


@dataclass(frozen=True, slots=True)
class Call:
    """A call whose message has been parsed and has all its required fields. `now_ms`: when it began.
    `may_be_old`: by the settings, what it reads may be a little old; the service itself never lets it be."""

    operation: str
    message: Any
    caller: Caller
    gateway: Gateway
    now_ms: int
    may_be_old: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """A table, or an index of it, under the name that a client reads. `key`: its columns, for an index ending in those of
    the table that it does not name itself; `shown`: attributes that an index has (None: all)."""

    table: Table
    index: Index | None
    key: tuple[KeyColumn, ...]
    key_names: tuple[str, ...]
    shown: frozenset[str] | None = None

    @classmethod
    def of_table(cls, table: Table) -> Target:
        """A table itself as the target."""
        return cls(table, None, table.key_schema.columns, table.key_schema.names)

    @classmethod
    def of_index(cls, table: Table, index: Index) -> Target:
        """An index of a table as the target: its key is followed by the columns of the table's that it lacks."""
        own = index.key_schema.columns
        names = index.key_schema.names
        key = own + tuple(column for column in table.key_schema.columns if column.name not in names)
        return cls(table, index, key, tuple(column.name for column in key), index.shown)


Asked = tuple[AnyCommand, Callable[[Any], Message]]
"""What the engine is asked for, and what makes the answer of its outcome, or raises what is wrong."""


@dataclass(frozen=True, slots=True)
class OneCommand:
    """An operation on one row, for which one command is enough. `handler`: the operation for everybody. `of_table`: the same for
    the server's tick, which knows the table, outside of a transaction; what it raises before anything is asked may be
    worded otherwise by the handler, which then looks at more."""

    handler: Callable[[Call], Exchange[Message]]
    of_table: Callable[[Call, Table], Asked]

    def __call__(self, call: Call) -> Exchange[Message]:
        """The operation as a handler."""
        return self.handler(call)

    def known(self, call: Call) -> Asked | None:
        """What a call asks of a table that is in the cache; None: the handler must find out more."""
        message = call.message
        table = call.gateway.engine.cached_table(call.caller.namespace, message.table_name)
        if table is None or message.transaction_id or not is_name(message.table_name):
            return None
        try:
            return self.of_table(call, table)
        except ServiceError:
            return None


_TABLE_OF_INDEX: OrderedDict[tuple[str, str], str] = OrderedDict()
_INDEXES_KEPT = 1024


def find_target(call: Call, name: str) -> Exchange[Target]:
    """What a table name of the caller's means: a table, or else an index. Raises TableMissing, ServiceError."""
    engine, namespace = call.gateway.engine, call.caller.namespace
    table = engine.cached_table(namespace, name)
    if table is not None:
        return Target.of_table(table)
    owner = _TABLE_OF_INDEX.get((namespace, name))
    if owner is not None:
        table = engine.cached_table(namespace, owner)
        index = None if table is None else table.index(name)
        if table is not None and index is not None:
            return Target.of_index(table, index)
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
    return Target.of_table(table)


def _find_index(call: Call, name: str) -> Exchange[Target | None]:
    """The index of that name, of whichever table; Table Store's own before others'."""
    namespace = call.caller.namespace
    tables = yield from one(ListTables(namespace))
    having = [(table, index) for table in tables if (index := table.index(name)) is not None]
    having.sort(key=lambda pair: pair[1].dialect != DIALECT)
    if not having:
        return None
    table, index = having[0]
    # Under its own name the table is kept in the engine's cache, which is asked the next time.
    yield from one(FindTable(namespace, table.name))
    _TABLE_OF_INDEX[namespace, name] = table.name
    if len(_TABLE_OF_INDEX) > _INDEXES_KEPT:
        _TABLE_OF_INDEX.popitem(last=False)
    return Target.of_index(table, index)


def named_tables(message: Any) -> list[str]:
    """The names of tables, or of indexes, in a request."""
    parts = (message, *getattr(message, "tables", ()))
    named = [getattr(part, field, "") for part in parts for field in ("table_name", "main_table_name")]
    return [name for name in named if name]


def check_names(call: Call) -> Exchange[None]:
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


def find_table(call: Call, name: str) -> Exchange[Table]:
    """The table of that name as it is now, to be described or changed. Raises TableMissing, ServiceError.

    Not from the cache: another server process may have changed it, and nothing would find that out."""
    try:
        return (yield from one(FindTable(call.caller.namespace, name)))
    except TableMissing:
        check_table_name(name)
        raise


def find_written(call: Call, name: str) -> Exchange[Table]:
    """The table of that name, to be written. Raises TableMissing, and ServiceError for an index."""
    target = yield from find_target(call, name)
    if target.index is not None:
        raise invalid(f"Disallow write to index table: '{name}'.")
    return target.table
