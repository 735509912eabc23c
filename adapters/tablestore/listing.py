"""How Table Store calls a table of any dialect: for `tablegate tables`."""

from __future__ import annotations

from adapters.tablestore.values.values import key_type
from adapters.tablestore.wire.protocol import table_store_pb2 as messages
from gateway.model.tables import Table


def listed(table: Table) -> tuple[str, str, str]:
    """(name, primary key, address): the table of that name in any instance."""
    columns = table.key_schema.columns
    keys = ", ".join(f"{column.name} {messages.PrimaryKeyType.Name(key_type(column))}" for column in columns)
    return table.name, keys, f"*/{table.name}"
