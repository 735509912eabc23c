"""SELECT: pages of rows for ExecuteStatement.

A SELECT becomes the reads of Query and Scan, one for each range of keys in its WHERE (keyed.py).
"""

from __future__ import annotations

from typing import Any

import orjson

from tablegate.adapters.dynamodb.capacity import consumed_capacity
from tablegate.adapters.dynamodb.capacity.capacity import READ, TableConsumption
from tablegate.adapters.dynamodb.expressions import composite_keys
from tablegate.adapters.dynamodb.operations.queries import last_key
from tablegate.adapters.dynamodb.partiql import keyed, page_tokens
from tablegate.adapters.dynamodb.partiql.arguments import Arguments
from tablegate.adapters.dynamodb.partiql.nodes import Select
from tablegate.adapters.dynamodb.partiql.orderings import order_ranges
from tablegate.adapters.dynamodb.partiql.queried_indexes import check_filter, needs_whole_rows, queried_index
from tablegate.adapters.dynamodb.partiql.shown_attributes import cut_all, shown_by
from tablegate.adapters.dynamodb.partiql.sources import find_source
from tablegate.adapters.dynamodb.values import composites
from tablegate.adapters.dynamodb.values.values import view
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.call_context import CallContext
from tablegate.gateway.exchanges import one
from tablegate.gateway.model.commands.commands import Exchange
from tablegate.gateway.model.commands.row_commands import Read
from tablegate.gateway.model.expressions.ranges import EVERYTHING, KeyRange
from tablegate.gateway.model.tables.pages import PageLimits
from tablegate.gateway.model.values.rows import Row


def select(call: CallContext, statement: Select, arguments: Arguments) -> Exchange[bytes]:
    """Return one page of a SELECT, as the answer of ExecuteStatement."""
    predicate = arguments.predicate(statement.where)
    page_start = page_tokens.page_start_of(call)
    table = yield from find_source(call, statement)
    index = queried_index(call, table, statement)
    whole_rows = needs_whole_rows(statement, table, index)
    schema = composites.shown_schema(table.key_schema) if index is None else index.key_schema
    key_branches = None
    if statement.where is not None:
        key_branches = keyed.branches(statement.where, schema, arguments)
    if key_branches is not None and index is not None:
        check_filter(key_branches, index)
    bounds = (
        [EVERYTHING] if key_branches is None else keyed.ranges(key_branches, schema, table, index is not None)
    )
    reverse = order_ranges(statement, schema, bounds, key_branches)
    base = Read(
        table,
        EVERYTHING,
        PageLimits(),
        index=index,
        reverse=reverse,
        filter=composite_keys.with_composite(table.key_schema, predicate),
        view=view,
        whole_rows=whole_rows,
        may_be_old=not call.input.get("ConsistentRead"),
        visible_attributes=shown_by(statement),
    )
    return (yield from _pages(call, statement, base, bounds, page_start, is_scan=key_branches is None))


def _pages(
    call: CallContext,
    statement: Select,
    base: Read,
    bounds: list[KeyRange],
    page_start: page_tokens.PageStart,
    is_scan: bool,
) -> Exchange[bytes]:
    """Read range after range up to a limit, and return the answer."""
    table, index = base.table, base.index
    charge = TableConsumption(table.name, READ)
    consistent = bool(call.input.get("ConsistentRead"))
    bytes_left, items_left = limits.PAGE_BYTES, call.input.get("Limit")
    rows: list[Row] = []
    next_start: page_tokens.PageStart | None = None
    for number in range(page_start.number, len(bounds)):
        if items_left == 0 or bytes_left <= 0:
            next_start = page_tokens.PageStart(number)
            break
        start = page_start.key if number == page_start.number else None
        read = base._replace(
            range=bounds[number] if start is None else page_tokens.rest_of(base, bounds[number], start),
            limits=PageLimits(scanned=items_left, filled_bytes=bytes_left),
        )
        if is_scan and start is not None:
            read = read._replace(after=page_tokens.position_of(base, start))
        page = yield from one(read)
        rows += page.rows
        charge.add_page(page, index, consistent)
        if base.whole_rows:
            for row in page.rows:
                charge.add_item(row, consistent)
        items_left = None if items_left is None else items_left - page.scanned
        bytes_left -= page.scanned_bytes
        if page.last is not None and (is_scan or index is not None or table.key_schema.sort):
            next_start = page_tokens.PageStart(number, last_key(table, index, page.last))
            break
    charge.report(consumed_capacity.meter)
    return _page_answer(call, charge, cut_all(table, statement.paths, rows), next_start)


def _page_answer(
    call: CallContext, charge: TableConsumption, items: bytes, next_start: page_tokens.PageStart | None
) -> bytes:
    """Return the answer to a SELECT as JSON. `items` is a JSON list."""
    rest: dict[str, Any] = {}
    if next_start is not None:
        rest["NextToken"] = page_tokens.token_of(call, next_start)
        if next_start.key is not None:
            rest["LastEvaluatedKey"] = next_start.key
    block = charge.block(consumed_capacity.mode_of(call))
    if block is not None:
        rest["ConsumedCapacity"] = block
    return b'{"Items":' + items + (b"," + orjson.dumps(rest)[1:] if rest else b"}")
