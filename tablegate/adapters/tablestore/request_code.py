"""A search as code for the Python SDK of Table Store, for the console."""

from __future__ import annotations

from typing import Any

from tablegate.adapters.tablestore.values.values import key_value_shown
from tablegate.adapters.tablestore.values.views import view
from tablegate.adapters.tablestore.wire.call_context import TableOrIndex
from tablegate.gateway.model.commands.row_search import Condition, NotExpressible, Operator, RowSearch
from tablegate.gateway.model.expressions.predicates import Comparison
from tablegate.gateway.model.values.keys import KeyColumn
from tablegate.gateway.model.values.values import INT64_MAX, Kind, Value

TYPE_NAMES = {
    Kind.TEXT: "STRING", Kind.INT64: "INTEGER", Kind.DOUBLE: "DOUBLE", Kind.BOOL: "BOOLEAN",
    Kind.BYTES: "BINARY",
}  # fmt: skip
_SDK = "tablestore"
_LOWEST, _HIGHEST = "tablestore.INF_MIN", "tablestore.INF_MAX"
_COMPARATORS = {
    Comparison.EQ: "EQUAL", Comparison.NE: "NOT_EQUAL", Comparison.LT: "LESS_THAN",
    Comparison.LE: "LESS_EQUAL", Comparison.GT: "GREATER_THAN", Comparison.GE: "GREATER_EQUAL",
}  # fmt: skip

_TOGETHER = """

def together(operator, *parts):
    condition = tablestore.CompositeColumnCondition(operator)
    for part in parts:
        condition.add_sub_condition(part)
    return condition


"""


def request_code(search: RowSearch, url: str) -> dict[str, str]:
    """Return the search as code: name of the SDK -> code. Raises NotExpressible."""
    index = search.search_index
    target = TableOrIndex.of(search.table, index)
    first, last = _bounds(search, target.key)
    reverse = search.reverse and len(search.equal) < len(target.key)
    if reverse:
        if search.last is not None:
            raise NotExpressible("GetRange reads backwards without a condition on the last key column only.")
        first, last = last, first
    name = search.table.name if index is None else index.name
    _, _, instance = search.table.namespace.partition("/")
    filters = [_condition(each) for each in search.filters]
    row_filter = filters[0] if len(filters) == 1 else _together("AND", filters) if filters else "None"
    return {
        _SDK: f"""import tablestore
{_TOGETHER if "together(" in row_filter else ""}
client = tablestore.OTSClient({url!r}, "your key id", "your secret", {instance or "your-instance"!r})
first = {_key(target.key, first)}
last = {_key(target.key, last)}
column_filter = {row_filter}
while first:
    _, first, rows, _ = client.get_range(
        {name!r}, {"BACKWARD" if reverse else "FORWARD"!r}, first, last,
        max_version=1, column_filter=column_filter,
    )
    for row in rows:
        print(row.primary_key, row.attribute_columns)
"""
    }


def _bounds(search: RowSearch, columns: tuple[KeyColumn, ...]) -> tuple[list[str], list[str]]:
    """Return the first key and the key after the last one, as source text of the columns' values."""
    for column, condition in search.key_conditions:
        if column.kind is Kind.DECIMAL and condition.operator is not Operator.EQ:
            raise NotExpressible(f"Table Store shows {column.name} as text, which has another order.")
    head = [_source(value) for value in search.equal]
    if search.last is None:
        if len(head) == len(columns):
            return head, [*head[:-1], _source(_after(search.equal[-1]))]
        return [*head, _LOWEST], [*head, _HIGHEST]
    least, most = _column_bounds(search.last)
    return (
        [*head, _LOWEST if least is None else _python(least.data)],
        [*head, _HIGHEST if most is None else _python(most.data)],
    )


def _column_bounds(condition: Condition) -> tuple[Value | None, Value | None]:
    """Return the lowest value of a key column, and the lowest value above the range. None: unbounded."""
    value = condition.values[0]
    match condition.operator:
        case Operator.LT:
            return None, value
        case Operator.LE:
            return None, _after(value)
        case Operator.GT:
            return _after(value), None
        case Operator.GE:
            return value, None
        case Operator.BETWEEN:
            return value, _after(condition.values[1])
    return value, _after_prefix(value)


def _after(value: Value) -> Value:
    """Return the lowest value above another one."""
    kind, data = view(value)
    if kind is Kind.INT64:
        if data == INT64_MAX:
            raise NotExpressible(f"There is no INTEGER above {INT64_MAX}.")
        return Value(kind, data + 1)
    return Value(kind, data + (b"\0" if kind is Kind.BYTES else "\0"))


def _after_prefix(value: Value) -> Value:
    if value.kind is Kind.TEXT and value.data and ord(value.data[-1]) < 0xD7FF:
        return Value(Kind.TEXT, value.data[:-1] + chr(ord(value.data[-1]) + 1))
    if value.kind is Kind.BYTES and value.data and value.data[-1] < 0xFF:
        return Value(Kind.BYTES, value.data[:-1] + bytes([value.data[-1] + 1]))
    raise NotExpressible("This prefix has no upper bound that GetRange accepts.")


def _source(value: Value) -> str:
    return _python(key_value_shown(value).data)


def _python(data: Any) -> str:
    return repr(bytearray(data)) if isinstance(data, bytes) else repr(data)


def _key(columns: tuple[KeyColumn, ...], sources: list[str]) -> str:
    """Return a key of the SDK. The columns after the given ones repeat a virtual bound."""
    filler = sources[-1] if sources[-1] in (_LOWEST, _HIGHEST) else _LOWEST
    padded = [*sources, *[filler] * (len(columns) - len(sources))]
    pairs = [f"({column.name!r}, {source})" for column, source in zip(columns, padded, strict=True)]
    return f"[{', '.join(pairs)}]"


def _condition(condition: Condition) -> str:
    name, *nested = condition.path
    if nested:
        raise NotExpressible("A filter of Table Store has no paths into documents.")
    operator = condition.operator
    if operator.comparison is not None and not operator.is_of_size:
        return _single(str(name), operator.comparison, condition.values[0])
    match operator:
        case Operator.BETWEEN:
            least, most = condition.values
            parts = [_single(str(name), Comparison.GE, least), _single(str(name), Comparison.LE, most)]
            return _together("AND", parts)
        case Operator.IN:
            parts = [_single(str(name), Comparison.EQ, each) for each in condition.values]
            return parts[0] if len(parts) == 1 else _together("OR", parts)
    raise NotExpressible(f"A filter of Table Store has no operator '{operator.value}'.")


def _single(name: str, comparison: Comparison, value: Value) -> str:
    seen = view(value)
    if seen.kind not in TYPE_NAMES:
        raise NotExpressible("A filter of Table Store has no null.")
    return (
        f"tablestore.SingleColumnCondition({name!r}, {_python(seen.data)}, "
        f"tablestore.ComparatorType.{_COMPARATORS[comparison]}, pass_if_missing={comparison is Comparison.NE})"
    )


def _together(operator: str, parts: list[str]) -> str:
    """Return a combination of conditions (see _TOGETHER)."""
    return f"together(tablestore.LogicalOperator.{operator}, {', '.join(parts)})"
