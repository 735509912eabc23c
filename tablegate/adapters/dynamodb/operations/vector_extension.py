"""What vector indexes add to tables: their definitions, the rules of vectors in items, and the cost of writes.

Costs: docs/protocols/dynamodb.md rule 42.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tablegate.adapters.dynamodb.capacity.capacity import is_same_in
from tablegate.adapters.dynamodb.tables import vector_indexes as definitions
from tablegate.adapters.dynamodb.tables.table_extensions import TableExtension
from tablegate.adapters.dynamodb.validation.rules import vector_rules
from tablegate.adapters.dynamodb.values import vectors
from tablegate.adapters.dynamodb.wire import limits
from tablegate.gateway.features.vectors.vectors import (
    COMPONENT_BYTES,
    VectorEntry,
    VectorIndex,
    vector_indexes,
)
from tablegate.gateway.model.commands.row_commands import WriteOutcome
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import size_bytes

# The extension of tables


def _write_bytes(index: VectorIndex, old: Row | None, new: Row | None) -> int:
    """Return the bytes that a write costs an index: the size of the entry, or 0 if the entry does not change.

    A delete costs the size of the old entry. A move to another partition costs both.
    """
    before = None if old is None else index.entry(old)
    after = None if new is None else index.entry(new)
    if before is not None and after is not None:
        if before.partition != after.partition:
            return _charged_bytes(before) + _charged_bytes(after)
        if before.is_stored_as(after) and is_same_in(index.projected_names, before.row, after.row):
            return 0
    charged = after or before
    return 0 if charged is None else _charged_bytes(charged)


def _charged_bytes(entry: VectorEntry) -> int:
    return max(limits.VECTOR_REQUEST_BYTES, entry.size_bytes)


def _consumed_members(writes: Iterable[tuple[Table, WriteOutcome]]) -> dict[str, Any]:
    """Return the member of ConsumedCapacity about the indexes that writes change. Empty if there is none."""
    sizes: dict[str, int] = {}
    for table, outcome in writes:
        for index in vector_indexes(table):
            if size := _write_bytes(index, *outcome):
                sizes[index.name] = sizes.get(index.name, 0) + size
    blocks = {name: {"VectorWriteRequestBytes": float(size)} for name, size in sizes.items()}
    return {"VectorIndexes": blocks} if blocks else {}


def _item_bytes(table: Table, row: Row, size: int) -> int:
    """Return the billed size of an item. `size`: its size in a table without vector indexes.

    An indexed vector counts as 32-bit numbers. Any list of the index's length counts as a vector.
    """
    contents = row.contents
    for name, dimensions in {index.attribute: index.dimensions for index in vector_indexes(table)}.items():
        if len(contents.members.get(name, {}).get("L", ())) == dimensions:
            value = contents.value(name)
            assert value is not None
            size += COMPONENT_BYTES * dimensions - size_bytes(value)
    return size


EXTENSION = TableExtension(
    ("VectorIndexes", "VectorIndexUpdates", "VectorIndexOverride"),
    check_new_table=vector_rules.new_indexes,
    key_names=vector_rules.schema_names,
    projected_number=vector_rules.projected_number,
    check_update=vector_rules.index_updates,
    new_indexes=definitions.new_indexes,
    index_changes=definitions.changes,
    described_indexes=definitions.described,
    add_definitions=definitions.add_definitions,
    restored_indexes=definitions.restored,
    describe=definitions.describe,
    check_item=vectors.check,
    item_bytes=_item_bytes,
    consumed_members=_consumed_members,
)
