"""How Azure Table calls a table of any dialect: for `tablegate tables`."""

from __future__ import annotations

from gateway.model.composites import name_of
from gateway.model.tables import Table


def listed(table: Table) -> tuple[str, str, str]:
    """(name, keys, address): which columns PartitionKey and RowKey are, and the path below any account."""
    schema = table.key_schema
    row_key = name_of(schema.sort) if schema.sort else '""'
    keys = f"PartitionKey = {name_of(schema.partition)}, RowKey = {row_key}"
    return table.azure_name, keys, f"/*/{table.azure_name}"
