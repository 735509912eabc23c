"""Accesses: operations of a command on one resource, and the facts that conditions test.

A fact is computed only when a condition tests it (`Access.values_of`).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, get_args

from tablegate.gateway.model.authorization.conditions import EVERYTHING, ConditionKey, FactValues
from tablegate.gateway.model.authorization.permissions import Channel, Permission
from tablegate.gateway.model.commands import (
    backup_commands,
    job_commands,
    row_commands,
    search_commands,
    transaction_commands,
    tunnel_commands,
    vector_commands,
)
from tablegate.gateway.model.commands.writes import Edit, Replace, Returns, Write
from tablegate.gateway.model.expressions.predicates import ALWAYS, Predicate, paths_of
from tablegate.gateway.model.expressions.updates import Action, SetTo, names_of, paths_read
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import HIGHEST, LOWEST, KeySchema
from tablegate.gateway.model.values.values import Kind, Value, decimal_text

Path = str
"""A resource within a namespace: "TABLE", "TABLE/index/INDEX", "TABLE/stream/LABEL", or "" for the account."""

ANYWHERE: Path = "\x00"
"""A path that no resource has: the command does not name its resource. Only a pattern for all names matches it."""


class Access(NamedTuple):
    """One thing that a command does to one resource.

    `source`: the command, or the part of it that needs the permission. `table`: the descriptor of the table, if known.
    """

    # These determine a decision and are the key of its cache.
    permission: Permission
    channel: Channel
    namespace: str
    path: Path
    # These are inputs of conditions.
    source: Any
    table: Table | None = None

    @property
    def table_name(self) -> str:
        """The name of the table that the resource is, or belongs to."""
        return self.path.partition("/")[0]

    def values_of(self, fact: ConditionKey) -> FactValues:
        """Return the values of a fact as IAM policies spell them. None: the access has no such fact."""
        return _FACTS[fact](self)


# Facts

_TABLE_WIDE = frozenset(
    {
        Permission.ALTER, Permission.DROP, Permission.CREATE_INDEX, Permission.DROP_INDEX, Permission.ALTER_EXPIRY,
        Permission.ADD_COLUMNS, Permission.DROP_COLUMNS,
        Permission.WRITE_POLICY, Permission.REMOVE_POLICY, Permission.READ_STREAM, Permission.ADMINISTER,
        Permission.ALTER_FEATURES, Permission.ALTER_INSIGHTS, Permission.ALTER_DELIVERIES,
        Permission.SPLIT, Permission.EXPORT, Permission.IMPORT, Permission.LOAD, Permission.CANCEL_JOB,
        Permission.ALTER_RECOVERY, Permission.CREATE_BACKUP, Permission.DELETE_BACKUP, Permission.RESTORE_BACKUP,
        Permission.RESTORE_MOMENT,
    }
)  # fmt: skip
_IN_TRANSACTIONS = {
    Channel.TRANSACTION: {True: "TransactGetItems", False: "TransactWriteItems"},
    Channel.STATEMENT_TRANSACTION: {True: "ExecuteTransaction", False: "ExecuteTransaction"},
}
_SELECTING = (Permission.READ, Permission.QUERY, Permission.SCAN)
_ANY_ROWS = (
    row_commands.BulkLoad, backup_commands.RestoreTable, vector_commands.SearchVectors, job_commands.AdvanceJob,
    *get_args(tunnel_commands.ClientCommand),
    search_commands.SearchRows,
)  # fmt: skip
"""Commands with unbounded keys and attributes."""


def _leading_keys(access: Access) -> FactValues:
    return EVERYTHING if access.permission in _TABLE_WIDE else leading_keys(access.source)


def _attributes(access: Access) -> FactValues:
    return EVERYTHING if access.permission in _TABLE_WIDE else attributes(access.source)


def _select(access: Access) -> FactValues:
    value = select_value(access.source)
    return None if value is None else (value,)


def _return_values(access: Access) -> FactValues:
    source = access.source
    if not isinstance(source, Write) or access.channel is Channel.BATCH:
        return None
    return frozenset(mode.value for mode in source.returned_rows)


def _enclosing_operation(access: Access) -> FactValues:
    operations = _IN_TRANSACTIONS.get(access.channel)
    return None if operations is None else (operations[access.permission in _SELECTING],)


def _full_scan(access: Access) -> FactValues:
    if access.permission not in _SELECTING or access.channel not in (
        Channel.STATEMENT,
        Channel.STATEMENT_TRANSACTION,
    ):
        return None
    return ("true" if access.permission is Permission.SCAN else "false",)


_FACTS: Mapping[ConditionKey, Callable[[Access], FactValues]] = {
    ConditionKey.LEADING_KEYS: _leading_keys,
    ConditionKey.ATTRIBUTES: _attributes,
    ConditionKey.SELECT: _select,
    ConditionKey.RETURN_VALUES: _return_values,
    ConditionKey.ENCLOSING: _enclosing_operation,
    ConditionKey.FULL_SCAN: _full_scan,
}


def leading_keys(source: Any) -> FactValues:
    """Return the values of the first partition column that a part of a command accesses, as text."""
    kind = type(source)
    if kind is row_commands.Get:
        return _leading(source.table.key_schema, source.position.partition)
    if kind is Write:
        value = source.key.values[0]
        return (key_text(value),) if isinstance(value, Value) else EVERYTHING
    if kind is row_commands.Read:
        partition = partition_of(source)
        if partition is None:
            return EVERYTHING
        return _leading((source.index or source.table).key_schema, partition)
    if kind is transaction_commands.BeginTransaction:
        return _leading(source.table.key_schema, source.partition)
    if kind in (transaction_commands.CommitTransaction, transaction_commands.AbortTransaction):
        lock = source.locked_partition
        is_found = lock is not None and lock.partition is not None
        return _leading(lock.table.key_schema, lock.partition) if is_found else EVERYTHING
    return EVERYTHING if kind in _ANY_ROWS else None


def partition_of(read: row_commands.Read) -> bytes | None:
    """Return the only partition that a page can be in. None: there may be several."""
    lower, upper = read.range
    if read.segment is not None or lower.partition != upper.partition or lower.partition in (LOWEST, HIGHEST):
        return None
    return lower.partition


def _leading(schema: KeySchema, partition: bytes) -> FactValues:
    if schema.is_text_pair and partition[-1:] == b"\x00" and partition.find(b"\x00") == len(partition) - 1:
        return (partition[1:-1].decode(),)  # equals decode_column for a text without a zero byte
    try:
        values = schema.decode_partition(partition)
    except (ValueError, IndexError):
        return EVERYTHING  # a prefix of a partition: any partition that begins with it is possible
    return (key_text(values[0]),)


def key_text(value: Value) -> str:
    """Return a key value as conditions spell it: text unchanged, numbers in canonical digits, bytes in base64."""
    if value.kind is Kind.TEXT:
        return str(value.data)
    if value.kind is Kind.BYTES:
        return base64.b64encode(value.data).decode()
    return decimal_text(value.data)


def attributes(source: Any) -> FactValues:
    """Return the top-level attributes that a part of a command reads or writes.

    These are its keys, the names in its condition, filter or edits, and the attributes in its reply.
    """
    match source:
        case row_commands.Get(table):
            return _with_visible(set(table.key_schema.names), source.visible_attributes, None)
        case row_commands.Read():
            schema = source.table.key_schema if source.index is None else source.index.key_schema
            names = _names_of_range(source, schema)
            names.update(_names_in(source.filter))
            projected_names = (
                None if source.whole_rows or source.index is None else source.index.projected_names
            )
            return _with_visible(names, source.visible_attributes, projected_names)
        case search_commands.SearchRows():
            names = {*source.table.key_schema.names, *source.columns}
            return _with_visible(names, source.visible_attributes, None)
        case Write():
            return _attributes_of_write(source)
    return EVERYTHING if type(source) in _ANY_ROWS else None


_WHOLE_ROWS = frozenset({Returns.OLD, Returns.NEW})


def _attributes_of_write(write: Write) -> FactValues:
    if not _WHOLE_ROWS.isdisjoint(write.returned_rows):
        return EVERYTHING
    names = {*write.table.key_schema.names, *_names_in(write.condition)}
    match write.change:
        case Replace(contents):
            names.update(contents.latest)
        case Edit(actions):
            names.update(_names_of_edit(actions))
        case _:
            pass
    return frozenset(names)


def _names_of_edit(actions: tuple[Action, ...]) -> Iterator[str]:
    yield from names_of(actions)
    for action in actions:
        if isinstance(action, SetTo):
            yield from (str(path[0]) for path in paths_read(action.operand))


def _names_of_range(read: row_commands.Read, schema: KeySchema) -> set[str]:
    """Return the key columns that a range constrains."""
    if partition_of(read) is None:
        return set()
    lower, upper = read.range
    bounds_sort = lower.sort != LOWEST or upper.sort != HIGHEST
    return set(schema.names if bounds_sort else [column.name for column in schema.partition])


def _names_in(predicate: Predicate) -> set[str]:
    return set() if predicate is ALWAYS else {str(path[0]) for path in paths_of(predicate)}


def _with_visible(
    names: set[str], visible: row_commands.VisibleAttributes | None, limit: frozenset[str] | None
) -> FactValues:
    """Return `names` and the visible attributes: those selected by the reader, else those of the index (None: all)."""
    if visible is not None:
        return frozenset(names | visible.names)
    return EVERYTHING if limit is None else frozenset(names | limit)


def select_value(source: Any) -> str | None:
    """Return the Select value of a read, None for other commands.

    The values are ALL_ATTRIBUTES, ALL_PROJECTED_ATTRIBUTES, SPECIFIC_ATTRIBUTES and COUNT.
    """
    match source:
        case row_commands.Get() | row_commands.Read():
            if source.visible_attributes is not None:
                return "SPECIFIC_ATTRIBUTES" if source.visible_attributes.names else "COUNT"
            is_projected = (
                isinstance(source, row_commands.Read) and source.index is not None and not source.whole_rows
            )
            return "ALL_PROJECTED_ATTRIBUTES" if is_projected else "ALL_ATTRIBUTES"
    return None
