"""ExclusiveStartKey: where a Query or Scan goes on, and what is wrong with one that leads nowhere.

Knows the order in which the service looks at it, which runs across the other checks of a request: first how many
attributes there are, then the queried schema's key attributes (each before the condition on the same attribute), then
those of the table, last where it stands (dynalite query.js and scan.js, recorded; docs/protocols/dynamodb.md rule 28).
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
from tablegate.adapters.dynamodb.wire.styles import edited
from tablegate.gateway.model.errors import BadKey, KeyTooLong
from tablegate.gateway.model.expressions.ranges import KeyRange
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.pages import Segment
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import LOWEST, KeyColumn, Position


class StartKey:
    """A start key on its way through the checks of a request."""

    __slots__ = ("_index", "_is_ours", "_row", "_table", "_wire")

    def __init__(self, wire: Mapping[str, Any], table: Table, index: Index | None) -> None:
        self._wire = wire
        self._table = table
        self._index = index
        self._row = Position(LOWEST, LOWEST)  # its place in the table, known once that was looked at
        # What another dialect wrote may have keys that are not legal here, and is paged through all the same.
        self._is_ours = DIALECT in table.properties

    def check_count(self, is_query: bool) -> None:
        """Raise ServiceError unless there are as many attributes as the keys of table and index have together."""
        names = set(shown_schema(self._table.key_schema).names)
        if self._index is not None:
            names.update(self._index.key_schema.names)
        if len(self._wire) != len(names):
            raise _invalid() if is_query or self._index is not None else self._told(BadKey("schema"))

    def check_column(self, column: KeyColumn, is_partition: bool) -> None:
        """Look at one key attribute of what is queried. Raises ServiceError, BadKey, KeyTooLong."""
        if column.name not in self._wire:
            raise _invalid()
        key_value(column, is_partition, self._wire, self._is_ours)

    def check_index(self) -> None:
        """Look at all key attributes of the index, if there is one: what a Scan does."""
        if self._index is not None:
            schema = self._index.key_schema
            for column in schema.columns:
                self.check_column(column, column in schema.partition)

    def check_table(self) -> None:
        """Look at the table's key attributes."""
        schema = shown_schema(self._table.key_schema)
        try:
            values = [
                key_value(column, column in schema.partition, self._wire, self._is_ours)
                for column in schema.columns
            ]
            self._row = stored_key(self._table.key_schema, values).position
        except (BadKey, KeyTooLong) as error:
            raise self._told(error) from None

    @property
    def position(self) -> Position:
        """Where it stands in the table or the index, once everything was looked at."""
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
        """What of a query's range lies beyond the start key. `has_sort_test`: the range has a condition on a sort key.

        Raises ServiceError if the start key is outside the range, or nothing can lie beyond it.
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
            raise validation(bare("start-key-exclusive", key=_shown(self._wire)))
        return bounds.before(start) if reverse else bounds.after(start)

    def check_segment(self, segment: Segment) -> None:
        """Raise ServiceError if the start key is another segment's."""
        if not segment.contains(self.position):
            text = bare("start-key-segment", total=segment.total, segment=segment.number)
            raise validation(bare("start-key", text=text))

    def _told(self, error: BadKey | KeyTooLong) -> ServiceError:
        told = service_error_of(error, "").message or ""
        return validation(edited(told, lambda text: bare("start-key", text=text)))


def _shown(wire: Mapping[str, Any]) -> str:
    """A start key as the service repeats it (test_query_no_sort_key_exclusive_start_key)."""
    parts = [
        f"{name}=AttributeValue: {{{tag}:{data}}}"
        for name, member in wire.items()
        for tag, data in member.items()
    ]
    return "{" + ", ".join(parts) + "}"


def _invalid() -> ServiceError:
    return validation(bare("start-key-invalid"))
