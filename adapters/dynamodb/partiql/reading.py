"""SELECT: pages of what a statement reads, and single items for batches and transactions.

These are the reads of Query and Scan, one for each range of keys that the WHERE is taken apart into (keyed.py).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from tablegate.adapters.dynamodb.capacity import consumed_capacity
from tablegate.adapters.dynamodb.capacity.capacity import READ, Charge
from tablegate.adapters.dynamodb.expressions import composite_keys
from tablegate.adapters.dynamodb.expressions.nodes import PathNode
from tablegate.adapters.dynamodb.expressions.projections import filter_beyond
from tablegate.adapters.dynamodb.operations.queries import last_key
from tablegate.adapters.dynamodb.operations.start_keys import StartKey
from tablegate.adapters.dynamodb.partiql import keyed
from tablegate.adapters.dynamodb.partiql.arguments import Arguments
from tablegate.adapters.dynamodb.partiql.keyed import Branch
from tablegate.adapters.dynamodb.partiql.nodes import Select, shown_name
from tablegate.adapters.dynamodb.partiql.sources import find_source
from tablegate.adapters.dynamodb.values import composites
from tablegate.adapters.dynamodb.values.values import render_values, view
from tablegate.adapters.dynamodb.wire import limits, messages
from tablegate.adapters.dynamodb.wire.call_context import Call
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.adapters.dynamodb.wire.gateway_errors import index_filling
from tablegate.gateway.exchanges import one
from tablegate.gateway.model.commands.commands import Exchange
from tablegate.gateway.model.commands.row_commands import Read, ShownNames
from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.model.expressions.predicates import value_at
from tablegate.gateway.model.expressions.ranges import EVERYTHING, KeyRange
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.pages import PageLimits
from tablegate.gateway.model.tables.tables import State, Table
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.rows import Row


class PageStart(NamedTuple):
    """Where a page goes on: in which of the statement's ranges, and after which key (None: at its beginning)."""

    number: int = 0
    key: Mapping[str, Any] | None = None


def select(call: Call, statement: Select, arguments: Arguments) -> Exchange[bytes]:
    """One page of a SELECT, as ExecuteStatement answers it."""
    predicate = arguments.predicate(statement.where)
    page_start = _page_start(call)
    table = yield from find_source(call, statement)
    index = _index(call, table, statement)
    whole_rows = _wants_whole_rows(statement, table, index)
    schema = composites.shown_schema(table.key_schema) if index is None else index.key_schema
    found = None
    if statement.where is not None:
        found = keyed.branches(statement.where, schema, arguments)
    if found is not None and index is not None:
        _check_filter(found, index)
    bounds = [EVERYTHING] if found is None else keyed.ranges(found, schema, table, index is not None)
    reverse = _ordered(statement, schema, bounds, found)
    base = Read(
        table,
        EVERYTHING,
        PageLimits(),
        index=index,
        reverse=reverse,
        filter=composite_keys.bound(table.key_schema, predicate),
        view=view,
        whole_rows=whole_rows,
        may_be_old=not call.input.get("ConsistentRead"),
        shown=shown_by(statement),
    )
    return (yield from _pages(call, statement, base, bounds, page_start, is_scan=found is None))


def _pages(
    call: Call, statement: Select, base: Read, bounds: list[KeyRange], page_start: PageStart, is_scan: bool
) -> Exchange[bytes]:
    """Read range after range until a limit stops it, and answer."""
    table, index = base.table, base.index
    charge = Charge(table.name, READ)
    consistent = bool(call.input.get("ConsistentRead"))
    room, left = limits.PAGE_BYTES, call.input.get("Limit")
    rows: list[Row] = []
    following: PageStart | None = None
    for number in range(page_start.number, len(bounds)):
        if left == 0 or room <= 0:
            following = PageStart(number)
            break
        start = page_start.key if number == page_start.number else None
        read = base._replace(
            range=bounds[number] if start is None else _rest(base, bounds[number], start, call),
            limits=PageLimits(scanned=left, filled_bytes=room),
        )
        if is_scan and start is not None:
            read = read._replace(after=_position(base, start, call))
        page = yield from one(read)
        rows += page.rows
        charge.add_page(page, index, consistent)
        if base.whole_rows:
            for row in page.rows:
                charge.add_item(row, consistent)
        left = None if left is None else left - page.scanned
        room -= page.scanned_bytes
        if page.last is not None and (is_scan or index is not None or table.key_schema.sort):
            following = PageStart(number, last_key(table, index, page.last))
            break
    charge.tell(consumed_capacity.meter)
    rest: dict[str, Any] = {}
    if following is not None:
        rest["NextToken"] = _token(call, following)
        if following.key is not None:
            rest["LastEvaluatedKey"] = following.key
    block = charge.block(consumed_capacity.mode_of(call))
    if block is not None:
        rest["ConsumedCapacity"] = block
    items = cut_all(table, statement.paths, rows)
    return b'{"Items":' + items + (b"," + orjson.dumps(rest)[1:] if rest else b"}")


def _ordered(
    statement: Select, schema: KeySchema, bounds: list[KeyRange], found: tuple[Branch, ...] | None
) -> bool:
    """Put the ranges in the order that ORDER BY asks for; whether each is read in reverse. Raises ServiceError."""
    if not statement.order:
        return False
    if statement.where is None:
        raise validation("Must have WHERE clause in the statement when using ORDER BY clause.")
    if found is None:
        raise validation(
            "Must have at least one non-optional hash key condition in WHERE clause when using ORDER BY clause."
        )
    for name, _ in statement.order:
        if name not in schema.names:
            raise validation(f"Attribute {name} in ORDER BY clause must be part of the primary key")
    descending = dict(statement.order)
    partition_names = [column.name for column in schema.partition]
    asked = [descending[name] for name in partition_names if name in descending]
    if len({one_range.lower.partition for one_range in bounds}) > 1 and not asked:
        raise validation(
            "Must have hash key in ORDER BY clause when more than one hash key condition specified in WHERE clause."
        )
    reverse = any(descending.get(column.name, False) for column in schema.sort)
    bounds.sort(key=lambda one_range: one_range.lower.sort, reverse=reverse)
    bounds.sort(key=lambda one_range: one_range.lower.partition, reverse=bool(asked) and asked[0])
    return reverse


# Indexes


def _index(call: Call, table: Table, statement: Select) -> Index | None:
    if len(statement.source) == 1:
        return None
    index = table.index(statement.source[1])
    if index is None:
        if table.vector_index(statement.source[1]):
            raise validation("Scan operation not supported on this index type")
        raise validation("The table does not have the specified index")
    if not index.local and call.input.get("ConsistentRead"):
        raise validation("Strongly consistent read is not supported on Global Secondary Indexes")
    now_ms = call.gateway.now_ms()
    if not index.local and not index.is_active(now_ms) and table.state_at(now_ms) is State.ACTIVE:
        raise index_filling(index.name)
    return index


def _wants_whole_rows(statement: Select, table: Table, index: Index | None) -> bool:
    """Whether items must be fetched from the table, because a local index does not project what is selected."""
    if index is None or index.shown is None or statement.paths is None:
        return False
    shown = {*index.shown, *composites.shown_schema(table.key_schema).names}
    beyond = list(dict.fromkeys(str(path.steps[0]) for path in statement.paths if path.steps[0] not in shown))
    if beyond and not index.local:
        names = ", ".join(beyond)
        raise validation(f"{messages.INVALID}Global secondary index {index.name} does not project [{names}]")
    return bool(beyond)


def _check_filter(found: tuple[Branch, ...], index: Index) -> None:
    """Raise ServiceError if every branch judges an attribute that the index does not project."""
    if index.shown is None:
        return
    beyond = [name for name in dict.fromkeys(found[0].others) if name not in index.shown]
    common = [name for name in beyond if all(name in branch.others for branch in found)]
    if common:
        raise filter_beyond(index.name, common)


# Going on


def _digest(call: Call) -> str:
    given = [call.caller.namespace, call.input["Statement"], call.input.get("Parameters")]
    return hashlib.sha256(orjson.dumps(given, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


def _token(call: Call, page_start: PageStart) -> str:
    return base64.urlsafe_b64encode(orjson.dumps([_digest(call), *page_start])).decode()


def _page_start(call: Call) -> PageStart:
    """Where the NextToken says that this page begins. Raises ServiceError."""
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


def _position(base: Read, key: Mapping[str, Any], call: Call) -> Any:
    try:
        start = StartKey(key, base.table, base.index)
        start.check_count(is_query=True)
        start.check_index()
        start.check_table()
        return start.position
    except (ServiceError, GatewayError, LookupError, TypeError, ValueError, AttributeError):
        raise _invalid_token() from None


def _rest(base: Read, bounds: KeyRange, key: Mapping[str, Any], call: Call) -> KeyRange:
    position = _position(base, key, call)
    return bounds.before(position) if base.reverse else bounds.after(position)


# What is shown


def shown_by(statement: Select) -> ShownNames | None:
    """The top-level attributes that a SELECT shows; None: all."""
    paths = statement.paths
    return None if paths is None else ShownNames(frozenset(str(path.steps[0]) for path in paths))


def cut(table: Table, paths: tuple[PathNode, ...] | None, row: Row) -> bytes:
    """What a SELECT shows of a row, as JSON."""
    if paths is None:
        return composites.render(table.key_schema, row)
    values = composites.seen(table.key_schema, row)
    found = {shown_name(path.steps): value_at(values, path.steps) for path in paths}
    return orjson.dumps(render_values({name: value for name, value in found.items() if value is not None}))


def cut_all(table: Table, paths: tuple[PathNode, ...] | None, rows: Sequence[Row]) -> bytes:
    """What a SELECT shows of rows, as a JSON array."""
    if paths is None:
        return composites.render_page(table.key_schema, rows)
    return b"[" + b",".join([cut(table, paths, row) for row in rows]) + b"]"
