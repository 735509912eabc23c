"""Rows and code snippets of this dialect for the console (gateway/console)."""

from __future__ import annotations

import base64
from typing import Any

from tablegate.adapters.tablestore.rows.selections import RowSelection
from tablegate.adapters.tablestore.wire.call_context import TableOrIndex
from tablegate.adapters.tablestore.wire.plainbuffer import WireCell
from tablegate.gateway.model.expressions.predicates import ALWAYS
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.rows import Row, VersionWindow

FORM = "Table Store cells"


def shown_row(table: Table, row: Row) -> Any:
    """Return a row as a JSON document: its primary key, and each version of each cell with its timestamp."""
    target = TableOrIndex.of_table(table)
    selection = RowSelection(frozenset(), VersionWindow(), "", "", ALWAYS, None)
    wire = selection.wire_row(target, selection.cutter(target)(row))
    return {
        "primary_key": [_cell_document(cell) for cell in wire.key],
        "attribute_columns": [{**_cell_document(cell), "timestamp": cell.stamp_ms} for cell in wire.cells],
    }


def _cell_document(cell: WireCell) -> dict[str, Any]:
    kind, data = cell.value  # type: ignore[misc]  # a stored row has no bounds
    value = base64.b64encode(data).decode() if isinstance(data, bytes) else data
    return {"name": cell.name, "type": kind.name, "value": value}


def snippet(table: Table, url: str) -> str:
    """Return lines of Python that read the table with the SDK."""
    names = [column.name for column in table.key_schema.columns]
    return f"""import tablestore

client = tablestore.OTSClient({url!r}, "your key id", "your secret", "your-instance")
first = [(name, tablestore.INF_MIN) for name in {names!r}]
last = [(name, tablestore.INF_MAX) for name in {names!r}]
_, _, rows, _ = client.get_range({table.name!r}, "FORWARD", first, last, limit=10, max_version=1)
for row in rows:
    print(row.primary_key, row.attribute_columns)
"""
