"""The composite attribute of tables with several sort columns (values/composites.py), where a request says something of it:
in conditions, filters, operands of an update, and the key condition of a Query.

The attribute stands in no row, so that a condition on it is judged of what its columns make. Of a table without a composite
`bound` gives back the condition it got.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from tablegate.adapters.dynamodb.expressions.key_conditions import KeyTest
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


def bound(schema: KeySchema, predicate: Predicate) -> Predicate:
    """A condition or filter with the composite in place of the attribute of its name."""
    name = composite_name(schema)
    return predicate if name is None or predicate is ALWAYS else _bound(predicate, name, schema)


def refuse_as_operand(schema: KeySchema, paths: Iterable[Path]) -> None:
    """Raise ServiceError if an update computes with the composite: rows do not have it, so that if_not_exists would go wrong."""
    name = composite_name(schema)
    if name is not None and any(path[0] == name for path in paths):
        raise validation(
            f"Invalid UpdateExpression: {name} is a key of several columns and cannot be an operand"
        )


def _bound(predicate: Predicate, name: str, schema: KeySchema) -> Predicate:
    def operand(of: Operand) -> Operand:
        match of:
            case Attribute(path) if path == (name,):
                return _computed(schema)
            case SizeOf(path) if path == (name,):
                return Computed(lambda row: _size_of(composite_value(schema, row.latest)))
        return of

    match predicate:
        case And(parts):
            return And(tuple([_bound(part, name, schema) for part in parts]))
        case Or(parts):
            return Or(tuple([_bound(part, name, schema) for part in parts]))
        case Not(part):
            return Not(_bound(part, name, schema))
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


def _computed(schema: KeySchema) -> Operand:
    return Computed(lambda row: composite_value(schema, row.latest))


def _size_of(value: Value) -> Value:
    return Value(Kind.DECIMAL, Decimal(size_of(value) or 0))


def _first_column(schema: KeySchema) -> Path:
    """A column that is there whenever the row is."""
    return (schema.sort[0].name,)


def bounds(schema: KeySchema, tests: Sequence[KeyTest]) -> tuple[KeyRange, Predicate]:
    """The range of a Query whose tests suit `shown_schema`, and what is left to be judged of each row in it.

    Equality leads to the one row. The rows come in the order of the columns, which is not the order of their text (5 comes
    before 10, and its text after): any other test is judged row by row.
    """
    by_name = {test.name: test for test in tests}
    partition = by_name[schema.partition[0].name].values[0]
    test = by_name.get(name_of(schema.sort))
    everything = range_of(schema, [partition])
    if test is None:
        return everything, ALWAYS
    if test.operator == "EQ":
        values = split(schema.sort, test.values[0].data)
        if values is None:
            return KeyRange(everything.lower, everything.lower), ALWAYS
        return range_of(schema, [partition, *values]), ALWAYS
    return everything, _judged(_computed(schema), test)


_COMPARISONS = {"LT": Comparison.LT, "LE": Comparison.LE, "GT": Comparison.GT, "GE": Comparison.GE}


def _judged(composite: Operand, test: KeyTest) -> Predicate:
    first, last = Literal(test.values[0]), Literal(test.values[-1])
    if test.operator == "BEGINS_WITH":
        return StartsWith(composite, first)
    if test.operator == "BETWEEN":
        return And((Compare(composite, Comparison.GE, first), Compare(composite, Comparison.LE, last)))
    return Compare(composite, _COMPARISONS[test.operator], first)
