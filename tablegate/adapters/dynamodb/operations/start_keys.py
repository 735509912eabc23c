"""ExclusiveStartKey: the position at which a Query or Scan continues, and the errors of an invalid one.

The service checks it in this order, between the other checks of a request: the number of attributes, the key attributes
of the queried schema (each before the condition on the same attribute), those of the table, and its position (dynalite
query.js and scan.js, recorded; docs/protocols/dynamodb.md rule 28).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tablegate.adapters.dynamodb import DIALECT
from tablegate.adapters.dynamodb.values.composites import shown_schema, stored_key
from tablegate.adapters.dynamodb.values.keys import key_value
from tablegate.adapters.dynamodb.values.values import as_kind, value_of
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.adapters.dynamodb.wire.gateway_errors import service_error_of
from tablegate.adapters.dynamodb.wire.messages import bare
from tablegate.gateway.model.errors import BadKey, KeyTooLong
from tablegate.gateway.model.expressions.ranges import KeyRange
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.pages import Segment
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import LOWEST, KeyColumn, Position

# ExclusiveStartKey


class StartKey:
    """A start key and its checks."""

    __slots__ = ("_index", "_is_ours", "_row", "_table", "_wire")

    def __init__(self, wire: Mapping[str, Any], table: Table, index: Index | None) -> None:
        self._wire = wire
        self._table = table
        self._index = index
        self._row = Position(LOWEST, LOWEST)  # its position in the table, set by check_table
        # Rows of other dialects may have keys that are not legal here. Paging must work for them, too.
        self._is_ours = DIALECT in table.properties

    def check_count(self, is_query: bool) -> None:
        """Check that it has as many attributes as the keys of table and index have together. Raises ServiceError."""
        names = set(shown_schema(self._table.key_schema).names)
        if self._index is not None:
            names.update(self._index.key_schema.names)
        if len(self._wire) != len(names):
            raise _invalid() if is_query or self._index is not None else self._error_of(BadKey("schema"))

    def check_column(self, column: KeyColumn, is_partition: bool) -> None:
        """Check one key attribute of the queried schema. Raises ServiceError, BadKey, KeyTooLong."""
        if column.name not in self._wire:
            raise _invalid()
        key_value(column, is_partition, self._wire, self._is_ours)

    def check_index(self) -> None:
        """Check all key attributes of the index, if there is one, as a Scan does.

        Raises ServiceError, BadKey, KeyTooLong.
        """
        if self._index is not None:
            schema = self._index.key_schema
            for column in schema.columns:
                self.check_column(column, column in schema.partition)

    def check_table(self) -> None:
        """Check the key attributes of the table. Raises ServiceError."""
        schema = shown_schema(self._table.key_schema)
        try:
            values = [
                key_value(column, column in schema.partition, self._wire, self._is_ours)
                for column in schema.columns
            ]
            self._row = stored_key(self._table.key_schema, values).position
        except (BadKey, KeyTooLong) as error:
            raise self._error_of(error) from None

    @property
    def position(self) -> Position:
        """The position in the table or index. Valid after check_table."""
        row = self._row
        if self._index is None:
            return row
        values = [
            as_kind(value_of(self._wire[column.name]), column.kind)
            for column in self._index.key_schema.columns
        ]
        head = self._index.key_schema.position(values)
        return Position(head.partition, head.sort + row.partition + row.sort)

    def rest_of_query(self, bounds: KeyRange, has_sort_test: bool, reverse: bool) -> KeyRange:
        """Return the part of a query's range after the start key.

        `has_sort_test`: the range has a condition on a sort key.

        Raises ServiceError if the start key is outside the range, or if nothing can follow it.
        """
        self.check_table()
        start = self.position
        if has_sort_test:
            if not bounds.lower.sort <= start.sort < bounds.upper.sort:
                raise validation(bare("start-key-range"))
            if start.partition != bounds.lower.partition:
                raise validation(bare("start-key-one-row"))
        elif start.partition != bounds.lower.partition:
            raise validation(bare("start-key-outside"))
        if self._index is None and not self._table.key_schema.sort:
            raise validation(bare("start-key-exclusive", key=_java_text(self._wire)))
        return bounds.before(start) if reverse else bounds.after(start)

    def check_segment(self, segment: Segment) -> None:
        """Check that the start key is in this segment. Raises ServiceError."""
        if not segment.contains(self.position):
            text = bare("start-key-segment", total=segment.total, segment=segment.number)
            raise validation(bare("start-key", text=text))

    def _error_of(self, error: BadKey | KeyTooLong) -> ServiceError:
        message = service_error_of(error, "").message or ""
        return validation(bare("start-key", text=message))


def _java_text(wire: Mapping[str, Any]) -> str:
    """Return a start key in the notation of the service's errors (test_query_no_sort_key_exclusive_start_key)."""
    parts = [
        f"{name}=AttributeValue: {{{tag}:{data}}}"
        for name, member in wire.items()
        for tag, data in member.items()
    ]
    return "{" + ", ".join(parts) + "}"


def _invalid() -> ServiceError:
    return validation(bare("start-key-invalid"))
