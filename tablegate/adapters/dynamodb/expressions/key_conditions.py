"""KeyConditionExpression and the legacy KeyConditions to a range of keys.

Conditions are checked in the service's order (dynalite query.js, recorded). Keys may have several attributes
(docs/protocols/dynamodb.md rule 37). The byte encoding of keys is the model's.

There are two steps, because the service does the first before it looks up the table: tests by attribute name,
then the range that they make of one key schema.

The composite attribute of tables with several sort columns (values/keys.py) is converted here in conditions, filters,
update operands and key conditions. Rows do not contain the attribute, so a condition on it is evaluated on the text
that its columns make. `with_composite` returns the condition unchanged for a table without a composite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple, NoReturn

from tablegate.adapters.dynamodb.expressions.conditions import ConditionReader
from tablegate.adapters.dynamodb.expressions.static_checks import KEY_CONDITION, Placeholders, condition_tree
from tablegate.adapters.dynamodb.expressions.syntax import (
    AndNode,
    BetweenNode,
    CallNode,
    CompareNode,
    ConditionNode,
    InNode,
    NotNode,
    OperandNode,
    OrNode,
    PathNode,
    ValueNode,
)
from tablegate.adapters.dynamodb.values.keys import composite_name, composite_value
from tablegate.adapters.dynamodb.wire.error_texts import expression_text
from tablegate.adapters.dynamodb.wire.errors import validation
from tablegate.gateway.model.expressions import ranges
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
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.values import Kind, Value

PAIR = 2  # conditions that a table's key, or a key of one attribute each, takes


class KeyTest(NamedTuple):
    """One condition on one attribute.

    `operator`: EQ, LT, LE, GT, GE (one value), BETWEEN (two), BEGINS_WITH (one), or another legacy operator,
    which no key takes.
    """

    name: str
    operator: str
    values: tuple[Value, ...]


def parse_key_condition(text: str, placeholders: Placeholders) -> ConditionNode:
    """Return the syntax tree of a KeyConditionExpression that is valid as a condition. Raises ServiceError.

    The service checks no more before the other expressions of the request. Then call `key_tests`.
    """
    tree = condition_tree(text, KEY_CONDITION, placeholders)
    ConditionReader(KEY_CONDITION, placeholders).condition(tree)
    return tree


def key_tests(tree: ConditionNode, placeholders: Placeholders) -> tuple[KeyTest, ...]:
    """Return the tests in a key condition, in the order of the text. Raises ServiceError."""
    reader = _KeyReader(KEY_CONDITION, placeholders)
    reader.read(tree)
    return tuple(reader.tests.values())


ColumnCheck = Callable[[KeyColumn, bool], None]
"""A further check of the request at a key column (True if it is of the partition), before the test on it is checked."""


def key_range(
    tests: tuple[KeyTest, ...],
    schema: KeySchema,
    check_column: ColumnCheck | None = None,
    index: str = "",
) -> ranges.KeyRange:
    """Return the range of keys that pass the tests.

    Raises ServiceError if the schema of the table or `index` does not take them.
    """
    if len(tests) > max(PAIR, len(schema.columns)):
        raise validation(expression_text("key-too-many", count=len(tests), most=len(schema.columns)))
    by_name = {test.name: test for test in tests}
    if len(schema.partition) > 1 or len(schema.sort) > 1:
        _check_parts(tests, schema, check_column, index)
    else:
        _check_pair(by_name, schema, check_column, index)
    equal: list[Value] = []
    for column in schema.columns:
        test = by_name.get(column.name)
        if test is None:
            break
        if test.operator != "EQ":
            return ranges.range_of(schema, equal, bounds_of(test))
        equal.append(test.values[0])
    return ranges.range_of(schema, equal)


COMPARISONS = {name: Comparison[name] for name in ("EQ", "LT", "LE", "GT", "GE")}
_INDEXABLE = frozenset({*COMPARISONS, "BETWEEN", "BEGINS_WITH"})


def bounds_of(test: KeyTest) -> ranges.ColumnBounds:
    """Return the bounds that a test by EQ, LT, LE, GT, GE, BETWEEN or BEGINS_WITH sets to its column."""
    if test.operator == "BEGINS_WITH":
        return ranges.bounds_of_prefix(test.values[0])
    if test.operator == "BETWEEN":
        lower, upper = test.values
        return _bounds(Comparison.GE, lower).intersect(_bounds(Comparison.LE, upper))
    return _bounds(COMPARISONS[test.operator], test.values[0])


def _bounds(comparison: Comparison, value: Value) -> ranges.ColumnBounds:
    bounds = ranges.bounds_of(comparison, value)
    assert bounds is not None
    return bounds


def _check_pair(
    tests: Mapping[str, KeyTest], schema: KeySchema, check_column: ColumnCheck | None, index: str
) -> None:
    """Check the tests of a key with one HASH and at most one RANGE attribute."""
    for column in schema.columns:
        is_hash = column in schema.partition
        if check_column is not None:
            check_column(column, is_hash)
        if not schema.sort and len(tests) > 1:
            raise validation(expression_text("key-unsupported"))
        test = tests.get(column.name)
        if test is None:
            if is_hash or len(tests) > 1:
                raise validation(expression_text("key-missed", name=column.name))
            continue
        _check_test(test, column, index)
        if is_hash and test.operator != "EQ":
            raise validation(expression_text("key-unsupported"))


def _check_parts(
    tests: tuple[KeyTest, ...], schema: KeySchema, check_column: ColumnCheck | None, index: str
) -> None:
    """Check the tests of a key with several attributes.

    All HASH parts need equality. RANGE parts must be tested from left to right without a gap, and only the last
    may have another operator. The order in the text is free (test_gsi_composite_keys.py).
    """
    by_name = {test.name: test for test in tests}
    for column in schema.columns:
        if check_column is not None:
            check_column(column, column in schema.partition)
        if column.name in by_name:
            _check_test(by_name.pop(column.name), column, index)
    if by_name:
        raise validation(expression_text("key-missed", name=schema.names[0]))
    operators = {test.name: test.operator for test in tests}
    missing = [column.name for column in schema.partition if operators.get(column.name) != "EQ"]
    if missing:
        raise validation(expression_text("key-hash-parts", names=", ".join(missing)))
    open_parts: list[str] = []
    for column in schema.sort:
        operator = operators.get(column.name)
        if operator is not None and open_parts:
            raise validation(
                expression_text("key-range-parts", names=", ".join(open_parts), last=column.name)
            )
        if operator != "EQ":
            open_parts.append(column.name)


def _check_test(test: KeyTest, column: KeyColumn, index: str) -> None:
    """Check that a test of a key attribute is indexable, of the attribute's type, and not empty."""
    if test.operator not in _INDEXABLE:
        raise validation(expression_text("key-not-indexable"))
    for value in test.values:
        if not is_comparable(value, column):
            raise validation(expression_text("key-kind"))
    for value in test.values:
        if value.data in ("", b""):
            kind = "string" if value.kind is Kind.TEXT else "binary"
            rule = "index-key-empty" if index else "key-empty"
            raise validation(expression_text(rule, kind=kind, name=column.name, index=index))


def is_comparable(value: Value, column: KeyColumn) -> bool:
    """Return True if a value can be compared with a key column. Both kinds of numbers have the same order as keys."""
    return value.kind is column.kind or (value.kind is Kind.DECIMAL and column.kind is Kind.INT64)


OPERATORS = {"=": "EQ", "<": "LT", "<=": "LE", ">": "GT", ">=": "GE"}
FLIPPED = {"EQ": "EQ", "LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}


class _KeyReader(ConditionReader):
    """A collector of the tests in a valid condition."""

    def __init__(self, kind: str, placeholders: Placeholders) -> None:
        super().__init__(kind, placeholders)
        self.tests: dict[str, KeyTest] = {}

    def read(self, node: ConditionNode) -> None:
        """Collect the tests in a condition. Raises ServiceError for operators that no key condition may have."""
        match node:
            case AndNode(parts):
                for part in parts:
                    self.read(part)
            case OrNode():
                self._refuse_operator("OR")
            case NotNode():
                self._refuse_operator("NOT")
            case InNode():
                self._refuse_operator("IN")
            case CompareNode("<>"):
                self._refuse_operator("<>")
            case CompareNode(operator, left, right):
                self._note(OPERATORS[operator], (left, right))
            case BetweenNode(operand, lower, upper):
                self._check_first("BETWEEN", operand)
                self._note("BETWEEN", (operand, lower, upper))
            case CallNode("begins_with", operands):
                self._check_first("begins_with", operands[0])
                self._note("BEGINS_WITH", operands)
            case CallNode(function):
                self._refuse_operator(function)

    def _check_first(self, operator: str, operand: OperandNode) -> None:
        if not isinstance(operand, PathNode):
            raise self._bare("key-first-operand", operator=operator)

    def _note(self, operator: str, operands: tuple[OperandNode, ...]) -> None:
        name: str | None = None
        place = 0
        for at, operand in enumerate(operands):
            if isinstance(operand, CallNode):
                raise self._bare("key-nested-operation")
            if isinstance(operand, PathNode):
                if name is not None:
                    raise self._bare("key-several-names")
                if len(operand.steps) > 1:
                    raise self._bare("key-nested-path")
                name, place = str(self.path(operand)[0]), at
        if name is None:
            raise self._bare("key-no-name")
        if name in self.tests:
            raise self._bare("key-twice")
        values = tuple([self.value(operand) for operand in operands if isinstance(operand, ValueNode)])
        self.tests[name] = KeyTest(name, FLIPPED[operator] if place else operator, values)

    def _refuse_operator(self, operator: str) -> NoReturn:
        raise self._bare("key-operator", operator=operator)

    def _bare(self, rule: str, **facts: object) -> Exception:
        """These texts have no prefix with the parameter's name."""
        return self._placeholders.error(rule, "", **facts)


# The composite attribute


def with_composite(schema: KeySchema, predicate: Predicate) -> Predicate:
    """Return a condition or filter that computes the composite attribute."""
    name = composite_name(schema)
    return predicate if name is None or predicate is ALWAYS else _with_composite(predicate, name, schema)


def refuse_composite_operand(schema: KeySchema, paths: Iterable[Path]) -> None:
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


def composite_bounds(schema: KeySchema, tests: Sequence[KeyTest]) -> tuple[KeyRange, Predicate]:
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
