"""Pages of items: Query and Scan.

Both become one Read: a key range (or a hash segment) over the table or one of its indexes, a filter, and the page limits
of rule 27: evaluated items count, before the filter and whatever is projected.
"""

from __future__ import annotations

from typing import Any

import orjson

from adapters.dynamodb import charges, keys, limits
from adapters.dynamodb.calls import Call, find_table
from adapters.dynamodb.clauses import ReadClauses
from adapters.dynamodb.errors import validation
from adapters.dynamodb.messages import LATEST
from adapters.dynamodb.values import render_values, view
from gateway.engine.engine import one
from gateway.model.commands import Exchange, Page, PageLimits, Read, Segment
from gateway.model.errors import IndexMissing
from gateway.model.keys import HIGHEST, LOWEST, Position
from gateway.model.ranges import EVERYTHING, KeyRange
from gateway.model.rows import Row
from gateway.model.tables import Index, Projection, Table


def query(call: Call) -> Exchange:
    """Query: items of one partition, in the order of the sort key."""
    clauses = ReadClauses(call, call.input)
    table = yield from find_table(call, call.input["TableName"])
    index = _index(call, table)
    schema = table.key_schema if index is None else index.key_schema
    reverse = not call.input.get("ScanIndexForward", True)
    start = call.input.get("ExclusiveStartKey")
    after = None if start is None else keys.start_position(table, index, start)
    bounds = clauses.key_range(schema)
    if after is not None:
        bounds = _resumed(bounds, after, reverse)
        if index is None and not table.key_schema.sort and call.house.settings.message_style == LATEST:
            raise _no_restart(start)
    clauses.check_projection(table)
    predicate = clauses.filter(table, schema.names)
    _check_select(call, index)
    read = Read(
        table,
        bounds,
        _limits(call),
        index=index,
        reverse=reverse,
        filter=predicate,
        view=view,
        whole_rows=_wants_whole_rows(call, index, clauses),
    )
    return (yield from _page(call, read, clauses))


def scan(call: Call) -> Exchange:
    """Scan: every item, or those of one segment, in a stable order."""
    clauses = ReadClauses(call, call.input)
    table = yield from find_table(call, call.input["TableName"])
    index = _index(call, table)
    start = call.input.get("ExclusiveStartKey")
    after = None if start is None else keys.start_position(table, index, start)
    _check_select(call, index)
    clauses.check_projection(table)
    predicate = clauses.filter(table, ())
    bounds, segment = EVERYTHING, None
    total = call.input.get("TotalSegments")
    if total is not None and total > 1:
        segment = Segment(call.input["Segment"], total)
        if after is not None and not segment.holds(after):
            raise validation(
                "The provided starting key is invalid: Invalid ExclusiveStartKey. Please use ExclusiveStartKey "
                f"with correct Segment. TotalSegments: {total} Segment: {segment.number}"
            )
    elif after is not None:
        bounds = bounds.after(after)
    read = Read(
        table,
        bounds,
        _limits(call),
        index=index,
        filter=predicate,
        view=view,
        segment=segment,
        after=after,
        whole_rows=_wants_whole_rows(call, index, clauses),
    )
    return (yield from _page(call, read, clauses))


def _index(call: Call, table: Table) -> Index | None:
    """The index that the request names, with what is not allowed on it (rule 20)."""
    name = call.input.get("IndexName")
    if name is None:
        return None
    index = table.index(name)
    if index is None:
        raise IndexMissing(table.name, name)
    if not index.local and call.input.get("ConsistentRead"):
        raise validation("Consistent reads are not supported on global secondary indexes")
    return index


def _check_select(call: Call, index: Index | None) -> None:
    """The service looks at this after the filter (dynalite query.js)."""
    if call.input.get("Select") != "ALL_ATTRIBUTES" or index is None or index.local:
        return
    if index.projection is not Projection.ALL:
        raise validation(
            "One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported for global secondary "
            f"index {index.name} because its projection type is not ALL"
        )


def _wants_whole_rows(call: Call, index: Index | None, clauses: ReadClauses) -> bool:
    """Whether items must be fetched from the table beyond what a local index projects."""
    if index is None or index.shown is None:
        return False
    projection = clauses.projection
    beyond = [] if projection is None else sorted(projection.names - index.shown)
    if beyond and not index.local:
        raise validation(
            "One or more parameter values were invalid: Global secondary index "
            f"{index.name} does not project [{', '.join(beyond)}]"
        )
    return bool(beyond) or call.input.get("Select") == "ALL_ATTRIBUTES"


def _limits(call: Call) -> PageLimits:
    return PageLimits(scanned=call.input.get("Limit"), size_bytes=limits.PAGE_BYTES)


def _resumed(bounds: KeyRange, start: Position, reverse: bool) -> KeyRange:
    """What is left of a partition's range after a start key, which must be within it (texts: dynalite query.js)."""
    lower, upper = bounds
    is_within = lower.sort <= start.sort < upper.sort
    if lower.sort != LOWEST or upper.sort != HIGHEST:
        if not is_within:
            raise validation("The provided starting key does not match the range key predicate")
        if start.partition != lower.partition:
            raise validation("The query can return at most one row and cannot be restarted")
    elif start.partition != lower.partition:
        raise validation("The provided starting key is outside query boundaries based on provided conditions")
    return bounds.before(start) if reverse else bounds.after(start)


def _no_restart(start: dict[str, dict[str, Any]]) -> Exception:
    """Nothing comes after the only item of a partition (test_query.py test_query_no_sort_key_exclusive_start_key)."""
    [(name, wire)] = start.items()
    [(tag, data)] = wire.items()
    return validation(
        f"The provided exclusive start key is invalid: ExclusiveStartKey: {{{name}=AttributeValue: {{{tag}:{data}}}}}"
    )


def _page(call: Call, read: Read, clauses: ReadClauses) -> Exchange:
    page: Page = yield from one(read)
    answer: dict[str, Any] = {"Count": len(page.rows), "ScannedCount": page.scanned}
    if call.input.get("Select") != "COUNT":
        # Joined before the encoder sees it, which would copy each item by itself.
        answer["Items"] = orjson.Fragment(b"[" + b",".join([clauses.cut(row) for row in page.rows]) + b"]")
    if page.last is not None:
        answer["LastEvaluatedKey"] = _last_key(read.table, read.index, page.last)
    return {**answer, **charges.page_read(call, read, page)}


def _last_key(table: Table, index: Index | None, row: Row) -> dict[str, Any]:
    names = table.key_schema.names if index is None else (*index.key_schema.names, *table.key_schema.names)
    return render_values({name: row.latest[name] for name in names})


OPERATIONS = {"Query": (query, True), "Scan": (scan, True)}
"""Operation -> (handler, whether the server enters it in front of Flask)."""
