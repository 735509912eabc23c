"""What vector indexes add to tables: their definitions, the rules of vectors in items, and the cost of writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tablegate.adapters.dynamodb.capacity import vector_capacity
from tablegate.adapters.dynamodb.tables import vector_indexes
from tablegate.adapters.dynamodb.tables.table_extensions import TableExtension
from tablegate.adapters.dynamodb.validation.rules import vector_rules
from tablegate.adapters.dynamodb.values import vectors
from tablegate.adapters.dynamodb.wire.signature_claims import Caller
from tablegate.gateway.model.commands.row_commands import WriteOutcome
from tablegate.gateway.model.commands.table_commands import TableStatistics
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.tables.vector_indexes import VectorIndex
from tablegate.gateway.model.values.rows import Contents, Row

Wire = Mapping[str, Any]


class VectorIndexes(TableExtension):
    """The part of vector indexes in the common operations."""

    members = ("VectorIndexes", "VectorIndexUpdates", "VectorIndexOverride")

    def check_new_table(self, data: dict[str, Any], definitions: Sequence[str]) -> None:
        vector_rules.new_indexes(data, definitions)

    def key_names(self, data: Wire) -> list[str]:
        return vector_rules.schema_names(data)

    def projected_number(self, data: Wire) -> int:
        return vector_rules.projected(data.get("VectorIndexes", ()))

    def check_update(self, data: dict[str, Any]) -> None:
        vector_rules.index_updates(data)

    def new_indexes(self, arguments: Wire) -> tuple[VectorIndex, ...]:
        return vector_indexes.new_indexes(arguments)

    def index_changes(
        self, table: Table, arguments: Wire, mode: str, now_ms: int
    ) -> tuple[tuple[VectorIndex, ...], tuple[str, ...]]:
        return vector_indexes.changes(table, arguments, mode, now_ms)

    def restored_indexes(self, source: Table, arguments: Wire) -> tuple[VectorIndex, ...]:
        return vector_indexes.restored(source, arguments)

    def describe(
        self,
        description: dict[str, Any],
        table: Table,
        statistics: TableStatistics,
        caller: Caller,
        now_ms: int,
    ) -> None:
        vector_indexes.describe(description, table, statistics, caller, now_ms)

    def check_item(self, table: Table, contents: Contents, is_update: bool) -> None:
        vectors.check(table, contents, is_update)

    def item_bytes(self, table: Table, row: Row, size: int) -> int:
        return vector_capacity.item_bytes(table, row, size)

    def consumed_members(self, writes: Sequence[tuple[Table, WriteOutcome]]) -> dict[str, Any]:
        return vector_capacity.consumed_members(writes)
