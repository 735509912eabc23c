"""Accesses: operations of a command on one resource, and the facts that conditions test.

Each command yields its accesses (model/commands/command.py). A fact is computed only when a condition tests it
(`Access.values_of`).
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any, NamedTuple

from tablegate.gateway.model.authorization.conditions import EVERYTHING, ConditionKey, FactValues
from tablegate.gateway.model.authorization.permissions import READING_ROWS, Channel, Permission, Purpose
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.values import Kind, Value, decimal_text

Path = str
"""A resource within a namespace: "TABLE", "TABLE/index/INDEX", "TABLE/stream/LABEL", or "" for the account."""

ANYWHERE: Path = "\x00"
"""A path that no resource has: the command does not name its resource. Only a pattern for all names matches it."""

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
_OF_ROWS = (ConditionKey.LEADING_KEYS, ConditionKey.ATTRIBUTES)
_IN_TRANSACTIONS = {
    Channel.TRANSACTION: {True: "TransactGetItems", False: "TransactWriteItems"},
    Channel.STATEMENT_TRANSACTION: {True: "ExecuteTransaction", False: "ExecuteTransaction"},
}
_STATEMENTS = (Channel.STATEMENT, Channel.STATEMENT_TRANSACTION)


class Access(NamedTuple):
    """One thing that a command does to one resource.

    `source`: the command, or the write of it that needs the permission. None if a request only names the resource.
    `table`: the descriptor of the table, if known.
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

    def values_of(self, key: ConditionKey) -> FactValues:
        """Return the values of a fact as IAM policies spell them, or None if the access has no such fact."""
        permission, channel = self.permission, self.channel
        if key is ConditionKey.ENCLOSING:
            operations = _IN_TRANSACTIONS.get(channel)
            return None if operations is None else (operations[permission in READING_ROWS],)
        if key is ConditionKey.FULL_SCAN:
            is_read = permission in READING_ROWS and channel in _STATEMENTS
            return ("true" if permission is Permission.SCAN else "false",) if is_read else None
        if key in _OF_ROWS and permission in _TABLE_WIDE:
            return EVERYTHING
        if self.source is None or (key is ConditionKey.RETURN_VALUES and channel is Channel.BATCH):
            return None
        fact: FactValues = self.source.fact(key)
        return fact


# Accesses of commands


def on_table(command: Any, table: Table, permission: Permission, purpose: Purpose) -> Access:
    """Return the access of a command to a whole table."""
    return Access(permission, purpose.channel, table.namespace, table.name, command, table)


def finer(purpose: Purpose, *possible: Permission) -> Permission:
    """Return the permission of the purpose that is among the possible ones, else the first possible one.

    Some permissions are finer than the commands (ALTER or TAG of a table). The purpose of the request selects one of
    those that the command can need, and never another one. So a wrong purpose cannot permit forbidden commands.
    """
    for permission in purpose.permissions:
        if permission in possible:
            return permission
    return possible[0]


def also(command: Any, table: Table, purpose: Purpose) -> Iterator[Access]:
    """Yield the accesses of `Purpose.also`. READ_STREAM covers all streams, because followers receive all changes of a
    table."""
    for permission in purpose.also:
        path = f"{table.name}/stream/{ANYWHERE}" if permission is Permission.READ_STREAM else table.name
        yield Access(permission, purpose.channel, table.namespace, path, command, table)


# Facts of commands


def any_rows(key: ConditionKey) -> FactValues:
    """Return a fact of a command with unbounded keys and attributes."""
    return EVERYTHING if key in _OF_ROWS else None


def leading_keys(schema: KeySchema, partition: bytes) -> FactValues:
    """Return the value of the first partition column as text."""
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
