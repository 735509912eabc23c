"""Pages of items: Query and Scan.

Both become one Read: a key range (or a hash segment) of the table or of an index, a filter, and page limits. The limits
(rule 27) count evaluated items, before the filter and regardless of the projection.

ExclusiveStartKey is the position at which a page begins. The service checks it in this order, between the other checks
of a request: the number of attributes, the key attributes of the queried schema (each before the condition on the same
attribute), those of the table, and its position (dynalite query.js and scan.js, recorded; docs/protocols/dynamodb.md
rule 28).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from tablegate.adapters.dynamodb import DIALECT, capacity
from tablegate.adapters.dynamodb.call import Answer, CallContext, find_table
from tablegate.adapters.dynamodb.expressions.request_clauses import ReadClauses
from tablegate.adapters.dynamodb.tables.properties import INSIGHTS
from tablegate.adapters.dynamodb.tables.table_extensions import KEY_COUNTERS
from tablegate.adapters.dynamodb.values.keys import key_value, shown_key, shown_schema, stored_key
from tablegate.adapters.dynamodb.values.values import as_kind, render_values, value_of, view
from tablegate.adapters.dynamodb.wire import error_texts, limits
from tablegate.adapters.dynamodb.wire.error_texts import bare
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.adapters.dynamodb.wire.gateway_errors import index_filling, service_error_of
from tablegate.gateway.model.commands.row_commands import Read, VisibleNames
from tablegate.gateway.model.errors import BadKey, IndexMissing, KeyTooLong
from tablegate.gateway.model.expressions.predicates import ALWAYS, And, Predicate
from tablegate.gateway.model.expressions.ranges import EVERYTHING, KeyRange
from tablegate.gateway.model.tables.indexes import Index, IndexProjection
from tablegate.gateway.model.tables.pages import Concatenation, Page, PageLimits, Segment
from tablegate.gateway.model.tables.tables import State, Table
from tablegate.gateway.model.values.keys import LOWEST, KeyColumn, Position
from tablegate.gateway.model.values.rows import Row

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


# Query and Scan


_COUNTED = VisibleNames(frozenset())
_COMMAS = Concatenation(",")


def _query(call: CallContext, clauses: ReadClauses, table: Table) -> Read:
    """Return the Read of a Query: items of one partition, in the order of the sort key."""
    arguments = call.input
    index = _index(call, table) if "IndexName" in arguments else None
    schema = shown_schema(table.key_schema) if index is None else index.key_schema
    reverse = not arguments.get("ScanIndexForward", True)
    start = _start_key(call, table, index) if "ExclusiveStartKey" in arguments else None
    if start is not None:
        start.check_count(is_query=True)
    check_column = None if start is None else start.check_column
    bounds = clauses.key_range(schema, check_column, "" if index is None else index.name)
    composite_filter: Predicate = ALWAYS
    if index is None and schema is not table.key_schema:
        bounds, composite_filter = clauses.composite_range(table.key_schema)
    if start is not None:
        bounds = start.rest_of_query(bounds, clauses.tests_sort_key(schema), reverse)
    if clauses.projection is not None:
        clauses.check_projection(table)
    predicate = clauses.filter(table, schema.names)
    if index is not None:
        clauses.check_filtered_by(table, index)
    if composite_filter is not ALWAYS:
        predicate = And((composite_filter, predicate))
    if index is not None:
        _check_select(call, index)
    if predicate is not ALWAYS:
        clauses.check_filter(table)
    return Read(
        table,
        bounds,
        _limits(call),
        index=index,
        reverse=reverse,
        filter=predicate,
        view=view,
        whole_rows=index is not None and _wants_whole_rows(call, table, index, clauses),
        concatenation=_COMMAS
        if schema is table.key_schema and clauses.projection is None and arguments.get("Select") != "COUNT"
        else None,
        may_be_old=not arguments.get("ConsistentRead"),
        visible_attributes=_COUNTED if arguments.get("Select") == "COUNT" else clauses.projection,
    )


def _scan(call: CallContext, clauses: ReadClauses, table: Table) -> Read:
    """Return the Read of a Scan: all items, or those of one segment, in a stable order."""
    index = _index(call, table)
    start = _start_key(call, table, index)
    if start is not None:
        start.check_count(is_query=False)
        start.check_index()
    _check_select(call, index)
    segment = _segment(call)
    after = None
    if start is not None:
        start.check_table()
        after = start.position
        if segment is not None:
            start.check_segment(segment)
    clauses.check_projection(table)
    clauses.check_filter(table)
    return Read(
        table,
        EVERYTHING if after is None else EVERYTHING.after(after),
        _limits(call),
        index=index,
        filter=clauses.filter(table),
        view=view,
        segment=segment,
        after=after,
        whole_rows=_wants_whole_rows(call, table, index, clauses),
        may_be_old=not call.input.get("ConsistentRead"),
        visible_attributes=_COUNTED if call.input.get("Select") == "COUNT" else clauses.projection,
    )


def _index(call: CallContext, table: Table) -> Index | None:
    name = call.input.get("IndexName")
    if name is None:
        return None
    index = table.index(name)
    if index is None:
        if name in [other.name for other in table.other_indexes]:
            # The service ends one of the two texts with a full stop (captures of August 2026).
            stop = "." if call.operation == "Query" else ""
            raise validation(f"{call.operation} operation not supported on this index type{stop}")
        raise IndexMissing(table.name, name)
    if not index.local and call.input.get("ConsistentRead"):
        raise validation(error_texts.bare("global-consistent"))
    now_ms = call.gateway.now_ms()
    if not index.local and not index.is_active(now_ms) and table.state_at(now_ms) is State.ACTIVE:
        raise index_filling(name)
    return index


def _start_key(call: CallContext, table: Table, index: Index | None) -> StartKey | None:
    wire = call.input.get("ExclusiveStartKey")
    return None if wire is None else StartKey(wire, table, index)


def _segment(call: CallContext) -> Segment | None:
    total = call.input.get("TotalSegments", 1)
    return Segment(call.input["Segment"], total) if total > 1 else None


def _check_select(call: CallContext, index: Index | None) -> None:
    """Reject ALL_ATTRIBUTES of a global index that does not project all attributes (rule 20)."""
    if (
        call.input.get("Select") == "ALL_ATTRIBUTES"
        and index is not None
        and not index.local
        and index.projection is not IndexProjection.ALL
    ):
        raise validation(error_texts.bare("select-all-global", index=index.name))


def _wants_whole_rows(call: CallContext, table: Table, index: Index | None, clauses: ReadClauses) -> bool:
    """Return True if items must be fetched from the table, because a local index does not project enough."""
    if index is None or index.projected_names is None:
        return False
    projection = clauses.projection
    projected_names = {*index.projected_names, *shown_schema(table.key_schema).names}
    missing_names = [] if projection is None else sorted(projection.names - projected_names)
    if missing_names and not index.local:
        names = ", ".join(missing_names)
        raise validation(error_texts.bare("global-not-projected", index=index.name, names=names))
    return bool(missing_names) or call.input.get("Select") == "ALL_ATTRIBUTES"


def _limits(call: CallContext) -> PageLimits:
    return PageLimits(scanned=call.input.get("Limit"), filled_bytes=limits.PAGE_BYTES)


async def query(call: CallContext) -> Answer:
    """Query: a page of items of one partition. Raises ServiceError, TableMissing, IndexMissing, BadKey."""
    clauses = ReadClauses(call, call.input)
    table = await find_table(call, call.input["TableName"])
    read = _query(call, clauses, table)
    return _answer(call, clauses, read, await read)


async def scan(call: CallContext) -> Answer:
    """Scan: a page of all items. Raises ServiceError, TableMissing, IndexMissing, BadKey."""
    clauses = ReadClauses(call, call.input)
    table = await find_table(call, call.input["TableName"])
    read = _scan(call, clauses, table)
    return _answer(call, clauses, read, await read)


def _answer(call: CallContext, clauses: ReadClauses, read: Read, page: Page) -> Answer:
    count = len(page.rows) + sum([concatenated.number for concatenated in page.concatenated])
    counts = {"Count": count, "ScannedCount": page.scanned}
    rest: dict[str, Any] = {}
    if page.last is not None and not _is_single_item(call, read):
        rest["LastEvaluatedKey"] = last_key(read.table, read.index, page.last)
    rest |= capacity.page_read(call, read, page)
    if call.operation == "Query" and read.table.properties.get(INSIGHTS):
        for counter in KEY_COUNTERS:
            counter.count_query(read)
    if call.input.get("Select") == "COUNT":
        return counts | rest
    # Spliced, since the JSON encoder would copy the items each time its buffer grows.
    parts = [orjson.dumps(counts)[:-1], b',"Items":[']
    for concatenated in page.concatenated:
        parts += (concatenated.bodies, b",")
    if page.rows:
        parts.append(clauses.cut_all(read.table, page.rows)[1:])
    elif page.concatenated:
        parts[-1] = b"]"
    else:
        parts.append(b"]")
    parts.append(b"," + orjson.dumps(rest)[1:] if rest else b"}")
    return b"".join(parts)


def _is_single_item(call: CallContext, read: Read) -> bool:
    """Return True if a Query can find one item at most.

    StartKey rejects a start key for such a query, so its answer has no LastEvaluatedKey.
    """
    return call.operation == "Query" and read.index is None and not read.table.key_schema.sort


def last_key(table: Table, index: Index | None, row: Row) -> dict[str, Any]:
    """Return LastEvaluatedKey after a row of a table or index: the key of the table, and that of the index."""
    schema = table.key_schema
    key = shown_key(schema, row.contents.some(schema.names))
    if index is not None:
        key = {**row.contents.some(index.key_schema.names), **key}
    return render_values(key)
