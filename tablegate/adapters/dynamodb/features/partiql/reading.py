"""SELECT: pages of rows for ExecuteStatement, the attributes in the answer, and NextToken.

A SELECT becomes the reads of Query and Scan, one for each range of keys in its WHERE (statement_keys.py). NextToken is
the start of the next page. It is valid for the same statement only.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from tablegate.adapters.dynamodb import capacity
from tablegate.adapters.dynamodb.call import CallContext
from tablegate.adapters.dynamodb.capacity import READ, TableConsumption
from tablegate.adapters.dynamodb.expressions import key_conditions
from tablegate.adapters.dynamodb.expressions.projections import filter_beyond
from tablegate.adapters.dynamodb.expressions.syntax import PathNode
from tablegate.adapters.dynamodb.features.partiql import statement_keys
from tablegate.adapters.dynamodb.features.partiql.prepared_statements import find_source
from tablegate.adapters.dynamodb.features.partiql.statement_syntax import Arguments, Select, shown_name
from tablegate.adapters.dynamodb.operations.queries import StartKey, last_key
from tablegate.adapters.dynamodb.values import keys
from tablegate.adapters.dynamodb.values.values import render_values, view
from tablegate.adapters.dynamodb.wire import error_texts, limits
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.adapters.dynamodb.wire.gateway_errors import index_filling
from tablegate.gateway.model.commands.row_commands import Read, VisibleNames
from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.model.expressions.predicates import value_at
from tablegate.gateway.model.expressions.ranges import EVERYTHING, KeyRange
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.pages import PageLimits
from tablegate.gateway.model.tables.tables import State, Table
from tablegate.gateway.model.values.keys import KeySchema, Position
from tablegate.gateway.model.values.rows import Row

# NextToken


class PageStart(NamedTuple):
    """The start of a page: the number of the range, and the last key read in it (or None at its beginning)."""

    number: int = 0
    key: Mapping[str, Any] | None = None


def _digest(call: CallContext) -> str:
    parts = [call.caller.namespace, call.input["Statement"], call.input.get("Parameters")]
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


def page_token_of(call: CallContext, page_start: PageStart) -> str:
    """Return the NextToken for a page that begins there."""
    return base64.urlsafe_b64encode(orjson.dumps([_digest(call), *page_start])).decode()


def page_start_of(call: CallContext) -> PageStart:
    """Return the start of the page in the request's NextToken. Raises ServiceError."""
    token = call.input.get("NextToken")
    if token is None:
        return PageStart()
    try:
        digest, number, key = orjson.loads(base64.b64decode(token.encode(), b"-_", validate=True))
        if not isinstance(digest, str) or type(number) is not int or number < 0:
            raise ValueError
        if not isinstance(key, (dict, type(None))):
            raise ValueError
    except (ValueError, TypeError):
        raise _invalid_token() from None
    if digest != _digest(call):
        raise validation("NextToken does not match request")
    return PageStart(number, key)


def _invalid_token() -> Exception:
    return validation("Invalid NextToken")


def position_of(base: Read, key: Mapping[str, Any]) -> Position:
    """Return the position of the key in a token. Raises ServiceError."""
    try:
        start = StartKey(key, base.table, base.index)
        start.check_count(is_query=True)
        start.check_index()
        start.check_table()
        return start.position
    except (ServiceError, GatewayError, LookupError, TypeError, ValueError, AttributeError):
        raise _invalid_token() from None


def rest_of(base: Read, bounds: KeyRange, key: Mapping[str, Any]) -> KeyRange:
    """Return the part of a range after the key in a token. Raises ServiceError."""
    position = position_of(base, key)
    return bounds.before(position) if base.reverse else bounds.after(position)


# Attributes in the answer


def shown_by(statement: Select) -> VisibleNames | None:
    """Return the top-level attributes in a SELECT, or None for all."""
    paths = statement.paths
    return None if paths is None else VisibleNames(frozenset(str(path.steps[0]) for path in paths))


def render_selected(table: Table, paths: tuple[PathNode, ...] | None, row: Row) -> bytes:
    """Return the selected attributes of a row as JSON."""
    if paths is None:
        return keys.render_shown(table.key_schema, row)
    values = keys.visible_attributes(table.key_schema, row)
    selected = {shown_name(path.steps): value_at(values, path.steps) for path in paths}
    return orjson.dumps(render_values({name: value for name, value in selected.items() if value is not None}))


def render_all_selected(table: Table, paths: tuple[PathNode, ...] | None, rows: Sequence[Row]) -> bytes:
    """Return the selected attributes of rows as a JSON array."""
    if paths is None:
        return keys.render_page(table.key_schema, rows)
    return b"[" + b",".join([render_selected(table, paths, row) for row in rows]) + b"]"


# Pages


async def select(call: CallContext, statement: Select, arguments: Arguments) -> bytes:
    """Return one page of a SELECT, as the answer of ExecuteStatement."""
    predicate = arguments.predicate(statement.where)
    page_start = page_start_of(call)
    table = await find_source(call, statement)
    index = _queried_index(call, table, statement)
    whole_rows = _needs_whole_rows(statement, table, index)
    schema = keys.shown_schema(table.key_schema) if index is None else index.key_schema
    key_branches = None
    if statement.where is not None:
        key_branches = statement_keys.branches(statement.where, schema, arguments)
    if key_branches is not None and index is not None:
        _check_filter(key_branches, index)
    bounds = (
        [EVERYTHING]
        if key_branches is None
        else statement_keys.ranges(key_branches, schema, table, index is not None)
    )
    reverse = _order_ranges(statement, schema, bounds, key_branches)
    base = Read(
        table,
        EVERYTHING,
        PageLimits(),
        index=index,
        reverse=reverse,
        filter=key_conditions.with_composite(table.key_schema, predicate),
        view=view,
        whole_rows=whole_rows,
        may_be_old=not call.input.get("ConsistentRead"),
        visible_attributes=shown_by(statement),
    )
    return await _pages(call, statement, base, bounds, page_start, is_scan=key_branches is None)


# Its index and order


def _queried_index(call: CallContext, table: Table, statement: Select) -> Index | None:
    """Return the index that a statement names. None if it names none. Raises ServiceError."""
    if len(statement.source) == 1:
        return None
    index = table.index(statement.source[1])
    if index is None:
        if statement.source[1] in [other.name for other in table.other_indexes]:
            raise validation("Scan operation not supported on this index type")
        raise validation("The table does not have the specified index")
    if not index.local and call.input.get("ConsistentRead"):
        raise validation("Strongly consistent read is not supported on Global Secondary Indexes")
    now_ms = call.gateway.now_ms()
    if not index.local and not index.is_active(now_ms) and table.state_at(now_ms) is State.ACTIVE:
        raise index_filling(index.name)
    return index


def _needs_whole_rows(statement: Select, table: Table, index: Index | None) -> bool:
    """True if items must be fetched from the table, because a local index does not project all selected attributes."""
    if index is None or index.projected_names is None or statement.paths is None:
        return False
    projected_names = {*index.projected_names, *keys.shown_schema(table.key_schema).names}
    missing_names = list(
        dict.fromkeys(str(path.steps[0]) for path in statement.paths if path.steps[0] not in projected_names)
    )
    if missing_names and not index.local:
        names = ", ".join(missing_names)
        raise validation(
            f"{error_texts.INVALID}Global secondary index {index.name} does not project [{names}]"
        )
    return bool(missing_names)


def _check_filter(key_branches: tuple[statement_keys.KeyBranch, ...], index: Index) -> None:
    """Raise ServiceError if every branch reads an attribute that the index does not project."""
    if index.projected_names is None:
        return
    missing_names = [
        name for name in dict.fromkeys(key_branches[0].others) if name not in index.projected_names
    ]
    common = [name for name in missing_names if all(name in branch.others for branch in key_branches)]
    if common:
        raise filter_beyond(index.name, common)


def _order_ranges(
    statement: Select,
    schema: KeySchema,
    bounds: list[KeyRange],
    key_branches: tuple[statement_keys.KeyBranch, ...] | None,
) -> bool:
    """Sort the ranges by ORDER BY. Return True if each is read in reverse. Raises ServiceError."""
    if not statement.order:
        return False
    if statement.where is None:
        raise validation("Must have WHERE clause in the statement when using ORDER BY clause.")
    if key_branches is None:
        raise validation(
            "Must have at least one non-optional hash key condition in WHERE clause when using ORDER BY clause."
        )
    for name, _ in statement.order:
        if name not in schema.names:
            raise validation(f"Attribute {name} in ORDER BY clause must be part of the primary key")
    descending = dict(statement.order)
    partition_names = [column.name for column in schema.partition]
    directions = [descending[name] for name in partition_names if name in descending]
    if len({one_range.lower.partition for one_range in bounds}) > 1 and not directions:
        raise validation(
            "Must have hash key in ORDER BY clause when more than one hash key condition specified in WHERE clause."
        )
    reverse = any(descending.get(column.name, False) for column in schema.sort)
    bounds.sort(key=lambda one_range: one_range.lower.sort, reverse=reverse)
    bounds.sort(key=lambda one_range: one_range.lower.partition, reverse=bool(directions) and directions[0])
    return reverse


# Pages


async def _pages(
    call: CallContext,
    statement: Select,
    base: Read,
    bounds: list[KeyRange],
    page_start: PageStart,
    is_scan: bool,
) -> bytes:
    """Read range after range up to a limit, and return the answer."""
    table, index = base.table, base.index
    charge = TableConsumption(table.name, READ)
    consistent = bool(call.input.get("ConsistentRead"))
    bytes_left, items_left = limits.PAGE_BYTES, call.input.get("Limit")
    rows: list[Row] = []
    next_start: PageStart | None = None
    for number in range(page_start.number, len(bounds)):
        if items_left == 0 or bytes_left <= 0:
            next_start = PageStart(number)
            break
        start = page_start.key if number == page_start.number else None
        read = base._replace(
            range=bounds[number] if start is None else rest_of(base, bounds[number], start),
            limits=PageLimits(scanned=items_left, filled_bytes=bytes_left),
        )
        if is_scan and start is not None:
            read = read._replace(after=position_of(base, start))
        page = await read
        rows += page.rows
        charge.add_page(page, index, consistent)
        if base.whole_rows:
            for row in page.rows:
                charge.add_item(row, consistent)
        items_left = None if items_left is None else items_left - page.scanned
        bytes_left -= page.scanned_bytes
        if page.last is not None and (is_scan or index is not None or table.key_schema.sort):
            next_start = PageStart(number, last_key(table, index, page.last))
            break
    charge.report(capacity.meter)
    return _page_answer(call, charge, render_all_selected(table, statement.paths, rows), next_start)


def _page_answer(
    call: CallContext, charge: TableConsumption, items: bytes, next_start: PageStart | None
) -> bytes:
    """Return the answer to a SELECT as JSON. `items` is a JSON list."""
    rest: dict[str, Any] = {}
    if next_start is not None:
        rest["NextToken"] = page_token_of(call, next_start)
        if next_start.key is not None:
            rest["LastEvaluatedKey"] = next_start.key
    block = charge.block(capacity.mode_of(call))
    if block is not None:
        rest["ConsumedCapacity"] = block
    return b'{"Items":' + items + (b"," + orjson.dumps(rest)[1:] if rest else b"}")
