"""The composite attribute of tables with several sort columns (values/composites.py) in conditions, filters, update
operands and key conditions.

Rows do not contain the attribute, so a condition on it is evaluated on the text that its columns make.
`with_composite` returns the condition unchanged for a table without a composite.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from tablegate.adapters.dynamodb.expressions.key_conditions import COMPARISONS, KeyTest
from tablegate.adapters.dynamodb.values.composites import composite_name, composite_value
from tablegate.adapters.dynamodb.wire.errors import validation
from tablegate.gateway.model.expressions.predicates import (
    ALWAYS,
    And,
    Attribute,
    Compare,
    Comparison,
    Computed,
    Contains,
    Exists,
    HasKind,
    Literal,
    Not,
    Operand,
    Or,
    Path,
    Predicate,
    SizeOf,
    StartsWith,
    size_of,
)
from tablegate.gateway.model.expressions.ranges import KeyRange, range_of
from tablegate.gateway.model.values.composites import name_of, split
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.values import Kind, Value

# The composite attribute


def with_composite(schema: KeySchema, predicate: Predicate) -> Predicate:
    """Return a condition or filter that computes the composite attribute."""
    name = composite_name(schema)
    return predicate if name is None or predicate is ALWAYS else _with_composite(predicate, name, schema)


def refuse_as_operand(schema: KeySchema, paths: Iterable[Path]) -> None:
    """Raise ServiceError if an update computes with the composite.

    Rows do not have it, so if_not_exists would be wrong.
    """
    name = composite_name(schema)
    if name is not None and any(path[0] == name for path in paths):
        raise validation(
            f"Invalid UpdateExpression: {name} is a key of several columns and cannot be an operand"
        )


def _with_composite(predicate: Predicate, name: str, schema: KeySchema) -> Predicate:
    def operand(of: Operand) -> Operand:
        match of:
            case Attribute(path) if path == (name,):
                return _computed_text(schema)
            case SizeOf(path) if path == (name,):
                return Computed(lambda row: _size_of(composite_value(schema, row.latest)))
        return of

    match predicate:
        case And(parts):
            return And(tuple([_with_composite(part, name, schema) for part in parts]))
        case Or(parts):
            return Or(tuple([_with_composite(part, name, schema) for part in parts]))
        case Not(part):
            return Not(_with_composite(part, name, schema))
        case Compare(left, comparison, right):
            return Compare(operand(left), comparison, operand(right))
        case StartsWith(left, right):
            return StartsWith(operand(left), operand(right))
        case Contains(left, right):
            return Contains(operand(left), operand(right))
        case HasKind(inner, kinds):
            return HasKind(operand(inner), kinds)
        case Exists(path) if path == (name,):
            return Exists(_first_column(schema))
    return predicate


def _computed_text(schema: KeySchema) -> Operand:
    return Computed(lambda row: composite_value(schema, row.latest))


def _size_of(value: Value) -> Value:
    return Value(Kind.DECIMAL, Decimal(size_of(value) or 0))


def _first_column(schema: KeySchema) -> Path:
    """Return a column that every row has."""
    return (schema.sort[0].name,)


def bounds(schema: KeySchema, tests: Sequence[KeyTest]) -> tuple[KeyRange, Predicate]:
    """Return the range of a Query and the remaining predicate for its rows. The tests fit `shown_schema`.

    Equality gives one row. Rows are sorted by columns, not by the composite text: 5 sorts before 10, and its text
    after. So any other test is evaluated row by row.
    """
    by_name = {test.name: test for test in tests}
    partition = by_name[schema.partition[0].name].values[0]
    test = by_name.get(name_of(schema.sort))
    whole_partition = range_of(schema, [partition])
    if test is None:
        return whole_partition, ALWAYS
    if test.operator == "EQ":
        values = split(schema.sort, test.values[0].data)
        if values is None:
            return KeyRange(whole_partition.lower, whole_partition.lower), ALWAYS
        return range_of(schema, [partition, *values]), ALWAYS
    return whole_partition, _sort_condition(_computed_text(schema), test)


def _sort_condition(composite: Operand, test: KeyTest) -> Predicate:
    first, last = Literal(test.values[0]), Literal(test.values[-1])
    if test.operator == "BEGINS_WITH":
        return StartsWith(composite, first)
    if test.operator == "BETWEEN":
        return And((Compare(composite, Comparison.GE, first), Compare(composite, Comparison.LE, last)))
    return Compare(composite, COMPARISONS[test.operator], first)
