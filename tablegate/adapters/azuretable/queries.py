"""Query Entities: a filter becomes a key range and a residual predicate. A token continues after the page.

Parsing of $filter (filter_grammar.py) leaves names as the client wrote them. Binding to a table's key schema replaces them
by key columns and attributes. limits.py bounds hostile input. Tokens are positions, not rows, so they still work if their
row is gone, and they fit into a header.
"""

from __future__ import annotations

import base64
import binascii
import re
from functools import lru_cache

from tablegate.adapters.azuretable import keys
from tablegate.adapters.azuretable.call import CallContext, OperationReply, count_transaction, find_table
from tablegate.adapters.azuretable.entities import entity_renderer, fast_pages
from tablegate.adapters.azuretable.entities.entities import format_reader, selected_names, shown_of
from tablegate.adapters.azuretable.shared_access import Action, SharedAccess
from tablegate.adapters.azuretable.values import UNIX_EPOCH_TICKS, view
from tablegate.adapters.azuretable.wire import limits
from tablegate.adapters.azuretable.wire.addresses import EntitySet
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.gateway.model.commands.row_commands import Read
from tablegate.gateway.model.expressions.predicates import (
    ALWAYS,
    And,
    Attribute,
    Compare,
    Comparison,
    Computed,
    Exists,
    HasKind,
    Literal,
    Not,
    Operand,
    Or,
    Predicate,
)
from tablegate.gateway.model.expressions.ranges import KeyRange, narrow
from tablegate.gateway.model.tables.pages import Page, PageLimits
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import KeySchema, Position
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Kind, Value

_KEY_COMPARISON = re.compile(r"(PartitionKey|RowKey) (eq|gt|ge|lt|le) '((?:[^']|'')*)'")
_KEYS_ONLY = re.compile(rf"{_KEY_COMPARISON.pattern}(?: and {_KEY_COMPARISON.pattern})*")
_WORDS = re.compile(r"(?:'[^']*')+|\w+|[^\s\w]")


def _timestamp(row: Row) -> Value:
    return Value(Kind.DATETIME, row.modified_at + UNIX_EPOCH_TICKS)


TIMESTAMP = Computed(_timestamp)
_ABSENT = Computed(lambda row: None)


@lru_cache(maxsize=1024)
def read_filter(text: str, schema: KeySchema, has_timestamp: bool = True) -> Predicate:
    """Return the predicate of a $filter on a table. Without `has_timestamp`, Timestamp is a property that no row has.

    Blank text is no filter. Raises ServiceError InvalidInput, NotImplemented.
    """
    if not text.strip():
        return ALWAYS
    if len(text) > limits.FILTER_MAX_CHARACTERS:
        raise ServiceError("InvalidInput", "The filter is too long.")
    if len(text) > limits.FILTER_MAX_WORDS and len(_WORDS.findall(text)) > limits.FILTER_MAX_WORDS:
        raise ServiceError("InvalidInput", "The filter has too many operators.")
    tree = _key_comparisons(text)
    if tree is None:
        # Imported on first use, since few filters need the parser (docs/architecture.md section 11).
        from tablegate.adapters.azuretable import filter_grammar

        tree = filter_grammar.parse(text)
    columns = {
        "PartitionKey": key_operand(schema, 0),
        "RowKey": key_operand(schema, 1),
        "Timestamp": TIMESTAMP if has_timestamp else _ABSENT,
    }
    return _bound(tree, columns)


def _key_comparisons(text: str) -> Predicate | None:
    """Return the tree of a filter that only compares keys with texts, as most do. None for any other filter.

    The parser gives the same result (a test compares them), but takes twenty times as long.
    """
    if not _KEYS_ONLY.fullmatch(text):
        return None
    parts = [
        Compare(
            Attribute((name,)),
            Comparison[operator.upper()],
            Literal(Value(Kind.TEXT, literal.replace("''", "'"))),
        )
        for name, operator, literal in _KEY_COMPARISON.findall(text)
    ]
    return parts[0] if len(parts) == 1 else And(tuple(parts))


# Binding to a table


def key_operand(schema: KeySchema, position: int) -> Operand:
    """Return the operand for PartitionKey (0) or RowKey (1): a single TEXT column, else the text that Azure shows."""
    columns = (schema.partition, schema.sort)[position]
    if len(columns) == 1 and columns[0].kind is Kind.TEXT:
        return Attribute((columns[0].name,))
    return _computed_key(schema, position)


@lru_cache(maxsize=256)
def _computed_key(schema: KeySchema, position: int) -> Operand:
    names_of_columns = schema.names

    def text_of(row: Row) -> Value:
        latest = row.latest
        values = tuple(latest[name] for name in names_of_columns)
        return Value(Kind.TEXT, keys.texts_of(schema, values)[position])

    return Computed(text_of)


def _bound(predicate: Predicate, columns: dict[str, Operand]) -> Predicate:
    match predicate:
        case And(parts):
            return And(tuple(_bound(part, columns) for part in parts))
        case Or(parts):
            return Or(tuple(_bound(part, columns) for part in parts))
        case Not(part):
            return Not(_bound(part, columns))
        case Compare(left, comparison, right):
            return Compare(_bound_operand(left, columns), comparison, _bound_operand(right, columns))
        case HasKind(operand, kinds):
            return HasKind(_bound_operand(operand, columns), kinds)
        case Exists((name,)):
            if name not in columns:
                return Exists((keys.unspelled(str(name)),))
            return Not(ALWAYS) if columns[name] is _ABSENT else ALWAYS
        case _:
            return predicate


def _bound_operand(operand: Operand, columns: dict[str, Operand]) -> Operand:
    if isinstance(operand, Attribute):
        name = str(operand.path[0])
        return columns[name] if name in columns else Attribute((keys.unspelled(name),))
    return operand


_REFUSED_OPTIONS = (
    "$orderby",
    "$skip",
    "$expand",
    "$inlinecount",
    "$count",
    "$skiptoken",
    "$apply",
    "$search",
)
# Below this number, one statement for all rows and the next one is faster than two.
_ROWS_TO_JOIN = 64


async def query(call: CallContext, resource: EntitySet) -> OperationReply:
    """GET /T(): a page of the entities that match $filter. Headers hold the token of the next page.

    Raises ServiceError, TableMissing.
    """
    call.grant.check(Action.QUERY, resource.table)
    names = selected_names(call)
    format_of = format_reader(call, names)
    check_options(call)
    top = top_of(call)
    table = await find_table(call, resource.table)
    entity_format = format_of(table)
    page = Page([], 0, 0, None, None)
    if top:
        read = _read(call, table, top, names)
        count_transaction(table, "read")
        if entity_format.is_spliced and top >= _ROWS_TO_JOIN:
            read = read._replace(concatenation=fast_pages.CONCATENATION)
        page = await read
    headers = [("Content-Type", entity_renderer.content_type(entity_format.level))]
    if page.next is not None:
        partition, sort = page.next.position
        headers.append(("x-ms-continuation-NextPartitionKey", token_of(partition)))
        headers.append(("x-ms-continuation-NextRowKey", token_of(sort)))
    return OperationReply(200, headers, entity_format.many(page))


def _read(call: CallContext, table: Table, top: int, names: list[str] | None) -> Read:
    """Return the read of a page of at most `top` entities. `names`: the selected properties, None for all."""
    text = call.options.get("$filter", "")
    has_timestamp = call.flavour.has_queryable_timestamp
    if call.grant.access is None:
        key_range, residue = _range_and_residue(text, table.key_schema, has_timestamp)
    else:
        predicate = read_filter(text, table.key_schema, has_timestamp)
        key_range, residue = narrow(_within_grant(predicate, call.grant.access, table), table.key_schema)
    resume = _resumption(call)
    if resume is not None:
        key_range = KeyRange(max(key_range.lower, resume), key_range.upper)
    # If every scanned row is returned, their number alone bounds the time. A page with a deadline is read row by row.
    seconds = None if residue is ALWAYS else limits.PAGE_MAX_SECONDS
    if names is not None:  # An entity has each of them, as null if the row lacks it.
        top = min(top, max(1, limits.PAGE_MAX_BYTES // sum(len(name) + len('"":null,') for name in names)))
    page_limits = PageLimits(returned=top, returned_bytes=limits.PAGE_MAX_BYTES, seconds=seconds, peek=True)
    may_be_old = call.address.secondary or call.gateway.settings.replica_reads == "all"
    return Read(
        table,
        key_range,
        page_limits,
        filter=residue,
        view=view,
        may_be_old=may_be_old,
        visible_attributes=shown_of(names),
    )


@lru_cache(maxsize=1024)
def _range_and_residue(text: str, schema: KeySchema, has_timestamp: bool) -> tuple[KeyRange, Predicate]:
    return narrow(read_filter(text, schema, has_timestamp), schema)


def _resumption(call: CallContext) -> Position | None:
    """Return the position of a continuation token. Raises ServiceError InvalidInput.

    NextRowKey may be absent, but not empty. Source: microsoft/AzureStorageExplorer issues 5434 and 5579.
    """
    partition = call.options.get("NextPartitionKey")
    if not partition:
        return None
    row = call.options.get("NextRowKey")
    return Position(bytes_of(partition), b"" if row is None else bytes_of(row))


def check_options(call: CallContext) -> None:
    """Reject OData options that the service lacks. Raises ServiceError NotImplemented."""
    if any(name in call.options for name in _REFUSED_OPTIONS):
        raise ServiceError("NotImplemented")


def top_of(call: CallContext) -> int:
    """Return the maximum number of entities of a page: $top, or the service's limit. Raises ServiceError InvalidInput."""
    text = call.options.get("$top", "")
    if not text:
        return limits.PAGE_MAX_ENTITIES
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise ServiceError("InvalidInput")
    return call.flavour.page_of(int(text))


def token_of(data: bytes) -> str:
    """Return a continuation token: version, length, base64url, in characters that are safe in headers and queries."""
    text = base64.urlsafe_b64encode(data).decode().rstrip("=")
    return f"1!{len(text)}!{text}"


def bytes_of(token: str) -> bytes:
    """Return the contents of a continuation token. Raises ServiceError InvalidInput."""
    try:
        version, length, text = token.split("!")
        if version != "1" or int(length) != len(text):
            raise ValueError(token)
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        raise ServiceError("InvalidInput") from None


def _within_grant(predicate: Predicate, access: SharedAccess, table: Table) -> Predicate:
    """Return the predicate, restricted to the key range of a shared access signature. Bounds are inclusive."""
    parts: list[Predicate] = []
    for bound, strict_comparison, comparison in (
        (access.lower, Comparison.GT, Comparison.GE),
        (access.upper, Comparison.LT, Comparison.LE),
    ):
        if bound is None:
            continue
        partition = _key(table, 0, comparison, bound[0])
        parts.append(partition)
        if bound[1] is not None:
            parts.append(
                Or((_key(table, 0, strict_comparison, bound[0]), _key(table, 1, comparison, bound[1])))
            )
    if not parts:
        return predicate
    return And((*parts, predicate)) if predicate is not ALWAYS else And(tuple(parts))


def _key(table: Table, position: int, comparison: Comparison, text: str) -> Predicate:
    operand = key_operand(table.key_schema, position)
    return Compare(operand, comparison, Literal(Value(Kind.TEXT, text)))
