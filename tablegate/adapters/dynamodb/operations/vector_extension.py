"""What vector indexes add to tables: their definitions, the rules of vectors in items, and the cost of writes."""

from __future__ import annotations

from tablegate.adapters.dynamodb.capacity import vector_capacity
from tablegate.adapters.dynamodb.tables import vector_indexes
from tablegate.adapters.dynamodb.tables.table_extensions import TableExtension
from tablegate.adapters.dynamodb.validation.rules import vector_rules
from tablegate.adapters.dynamodb.values import vectors

VECTOR_INDEXES = TableExtension(
    ("VectorIndexes", "VectorIndexUpdates", "VectorIndexOverride"),
    check_new_table=vector_rules.new_indexes,
    key_names=vector_rules.schema_names,
    projected_number=vector_rules.projected_number,
    check_update=vector_rules.index_updates,
    new_indexes=vector_indexes.new_indexes,
    index_changes=vector_indexes.changes,
    restored_indexes=vector_indexes.restored,
    describe=vector_indexes.describe,
    check_item=vectors.check,
    item_bytes=vector_capacity.item_bytes,
    consumed_members=vector_capacity.consumed_members,
)
