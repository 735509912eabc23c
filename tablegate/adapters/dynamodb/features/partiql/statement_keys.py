"""The key conditions of a WHERE: the ranges of keys that a SELECT reads, and the one item that a write names.

If the WHERE of a SELECT fixes the partition key (by equality, IN, or OR of these), it is split into ranges, one
for each alternative. Any other SELECT reads everything. In both cases the whole WHERE is evaluated on each row,
so a range may be too wide but never too narrow. Sources: captures of September 2026 (eu-west-2) in floci's and
nubo-db's tests.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from tablegate.adapters.dynamodb.expressions import key_conditions
from tablegate.adapters.dynamodb.expressions.key_conditions import (
    FLIPPED,
    OPERATORS,
    KeyTest,
    bounds_of,
    is_comparable,
)
from tablegate.adapters.dynamodb.expressions.syntax import (
    AndNode,
    BetweenNode,
    CallNode,
    CompareNode,
    ConditionNode,
    InNode,
    NotNode,
    OrNode,
    PathNode,
    ValueNode,
)
from tablegate.adapters.dynamodb.features.partiql.statement_syntax import Arguments
from tablegate.adapters.dynamodb.values.values import as_kind
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.gateway.model.expressions.ranges import ColumnBounds, KeyRange, range_of
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.values import Value, equal

_TOO_MANY_READS = "Too many decomposed read operations for a given query."
_OVERLAPPING = "Overlapping conditions with range keys are not supported in where clause"
_INCOMPLETE = "Where clause does not contain a mandatory equality on all key attributes"


class KeyConditionError(ServiceError):
    """The error of a WHERE that does not name one item by its key, or has key values of the wrong type."""

    def __init__(self, text: str) -> None:
        super().__init__("ValidationException", text)


class KeyBranch(NamedTuple):
    """One alternative of a WHERE: tests on key attributes, and the other attributes that it reads.

    `excludes`: it excludes sort keys by NOT or <>, which is no range. Such a branch may overlap with others.
    """

    tests: tuple[KeyTest, ...] = ()
    others: tuple[str, ...] = ()
    excludes: bool = False

    def and_also(self, other: KeyBranch) -> KeyBranch:
        return KeyBranch(
            self.tests + other.tests, self.others + other.others, self.excludes or other.excludes
        )


def branches(where: ConditionNode, schema: KeySchema, arguments: Arguments) -> tuple[KeyBranch, ...] | None:
    """Return the alternatives of a WHERE if each fixes the partition key. None if one does not."""
    if not _fixed_attributes(where, schema.names) >= {column.name for column in schema.partition}:
        return None
    return _branches(where, schema, arguments)


def _fixed_attributes(node: ConditionNode, names: Collection[str]) -> frozenset[str]:
    """Return the key attributes that a condition restricts to listed values."""
    match node:
        case AndNode(parts):
            return frozenset[str]().union(*[_fixed_attributes(part, names) for part in parts])
        case OrNode(parts):
            first, *rest = [_fixed_attributes(part, names) for part in parts]
            return first.intersection(*rest)
        case InNode(PathNode((str(name),)), members) if name in names and _are_constants(members):
            return frozenset({name})
    test = _key_test(node, names)
    return frozenset({test[0]}) if test is not None and test[1] == "EQ" else frozenset()


def _are_constants(members: tuple[object, ...]) -> bool:
    return all(isinstance(member, ValueNode) for member in members)


def _branches(node: ConditionNode, schema: KeySchema, arguments: Arguments) -> tuple[KeyBranch, ...]:
    """Raises ServiceError if there are more branches than the service splits a statement into."""
    names = schema.names
    key_branches: tuple[KeyBranch, ...]
    match node:
        case AndNode(parts):
            key_branches = (KeyBranch(),)
            for part in parts:
                inner = _branches(part, schema, arguments)
                key_branches = tuple([outer.and_also(further) for outer in key_branches for further in inner])
                _check_number(key_branches)
            return key_branches
        case OrNode(parts) if any(_tests_key(part, names) for part in parts):
            key_branches = ()
            for part in parts:
                key_branches += _branches(part, schema, arguments)
                _check_number(key_branches)
            return key_branches
        case InNode(PathNode((str(name),)), members) if name in names and _are_constants(members):
            values = [arguments.value(member.name) for member in members if isinstance(member, ValueNode)]
            key_branches = tuple([KeyBranch((KeyTest(name, "EQ", (value,)),)) for value in values])
            _check_number(key_branches)
            return key_branches
    test = _key_test(node, names)
    if test is None:
        attributes = tuple(_attributes(node))
        sort_names = {column.name for column in schema.sort}
        return (KeyBranch((), attributes, _is_negation(node) and not sort_names.isdisjoint(attributes)),)
    name, operator, nodes = test
    return (KeyBranch((KeyTest(name, operator, tuple([arguments.value(node.name) for node in nodes])),)),)


def _is_negation(node: ConditionNode) -> bool:
    return isinstance(node, NotNode) or (isinstance(node, CompareNode) and node.operator == "<>")


def _check_number(key_branches: tuple[KeyBranch, ...]) -> None:
    if len(key_branches) > limits.STATEMENT_READS:
        raise validation(_TOO_MANY_READS)


def _tests_key(node: ConditionNode, names: Collection[str]) -> bool:
    match node:
        case AndNode(parts) | OrNode(parts):
            return any(_tests_key(part, names) for part in parts)
        case InNode(PathNode((str(name),)), _):
            return name in names
    return _key_test(node, names) is not None


def _key_test(node: ConditionNode, names: Collection[str]) -> tuple[str, str, tuple[ValueNode, ...]] | None:
    """Return the test of a key attribute by constants in a condition, or None."""
    match node:
        case CompareNode(operator, PathNode((str(name),)), ValueNode() as value) if operator in OPERATORS:
            key_test = name, OPERATORS[operator], (value,)
        case CompareNode(operator, ValueNode() as value, PathNode((str(name),))) if operator in OPERATORS:
            key_test = name, FLIPPED[OPERATORS[operator]], (value,)
        case BetweenNode(PathNode((str(name),)), ValueNode() as lower, ValueNode() as upper):
            return (name, "BETWEEN", (lower, upper)) if name in names else None
        case CallNode("begins_with", (PathNode((str(name),)), ValueNode() as value)):
            key_test = name, "BEGINS_WITH", (value,)
        case _:
            return None
    return key_test if key_test[0] in names else None


def _attributes(node: object) -> Iterator[str]:
    match node:
        case PathNode((name, *_)):
            yield str(name)
        case ValueNode():
            return
        case AndNode(parts) | OrNode(parts):
            for part in parts:
                yield from _attributes(part)
        case NotNode(part):
            yield from _attributes(part)
        case CallNode(_, operands):
            for operand in operands:
                yield from _attributes(operand)
        case InNode(operand, members):
            for inner in (operand, *members):
                yield from _attributes(inner)
        case CompareNode(_, left, right):
            yield from _attributes(left)
            yield from _attributes(right)
        case BetweenNode():
            for inner in node:
                yield from _attributes(inner)


# Ranges


def ranges(
    key_branches: tuple[KeyBranch, ...], schema: KeySchema, table: Table, is_index: bool
) -> list[KeyRange]:
    """Return the ranges of keys that the branches allow: in the order of their partitions, and in key order within
    one.

    Raises ServiceError for values of the wrong type and for overlapping ranges, unless a branch excludes.
    """
    bounded: list[tuple[KeyRange, bool]] = []
    for branch in key_branches:
        tests = list(branch.tests)
        for test in tests:
            _check_kinds(test, schema)
        if not is_index and schema is not table.key_schema:
            bounds = key_conditions.composite_bounds(table.key_schema, tests)[0]
        else:
            bounds = _range(tests, schema)
        if not bounds.is_empty:
            bounded.append((bounds, branch.excludes))
    order: dict[bytes, int] = {}
    for bounds, _ in bounded:
        order.setdefault(bounds.lower.partition, len(order))
    bounded.sort(key=lambda pair: (order[pair[0].lower.partition], pair[0].lower))
    return _disjoint(bounded)


def _disjoint(bounded: list[tuple[KeyRange, bool]]) -> list[KeyRange]:
    """Merge overlapping ranges in a sorted list. Raises ServiceError if neither of two overlapping ranges excludes.

    Source: nubo-db's dynamodb-conformance, partiql/overlap and partiqlGrammar (AWS eu-west-2, October 2026).
    """
    merged: list[KeyRange] = []
    may_overlap = False
    for bounds, excludes in bounded:
        before = merged[-1] if merged else None
        if before is None or bounds.lower.partition != before.lower.partition or bounds.lower >= before.upper:
            merged.append(bounds)
            may_overlap = excludes
        elif may_overlap or excludes:
            merged[-1] = KeyRange(before.lower, max(before.upper, bounds.upper))
            may_overlap = True
        else:
            raise validation(_OVERLAPPING)
    return merged


def _check_kinds(test: KeyTest, schema: KeySchema) -> None:
    [column] = [column for column in schema.columns if column.name == test.name]
    for value in test.values:
        if not is_comparable(value, column):
            raise _mismatch(test.name)


def _mismatch(name: str) -> KeyConditionError:
    return KeyConditionError(
        f"Key attribute's data type should match its data type in table's schema: Key {name}"
    )


def _range(tests: list[KeyTest], schema: KeySchema) -> KeyRange:
    exact: list[Value] = []
    for column in schema.columns:
        column_tests = [test for test in tests if test.name == column.name]
        equalities = [test.values[0] for test in column_tests if test.operator == "EQ"]
        if not equalities:
            bounds = ColumnBounds()
            for test in column_tests:
                bounds = bounds.intersect(bounds_of(test))
            return range_of(schema, exact, bounds)
        if any(value != equalities[0] for value in equalities):
            key_range = range_of(schema, exact)
            return KeyRange(key_range.lower, key_range.lower)
        exact.append(equalities[0])
    return range_of(schema, exact)


# One item

Named = dict[str, ValueNode]
"""Key attribute -> the constant that it must equal."""


def named_item(
    where: ConditionNode | None, schema: KeySchema, arguments: Arguments, use_first_key: bool = False
) -> tuple[Named, tuple[ConditionNode, ...]]:
    """Return the key of the one item in the WHERE of a write, and the other conditions. Raises KeyConditionError.

    `use_first_key`: of two values for one key attribute the first names the item, and the other is a condition.
    """
    key: Named = {}
    rest: list[ConditionNode] = []
    for part in _conjuncts(where):
        test = _key_test(part, schema.names)
        if test is None or test[1] != "EQ":
            rest.append(part)
            continue
        name, _, (value,) = test
        if name not in key:
            key[name] = value
        elif not equal(arguments.value(key[name].name), arguments.value(value.name)):
            if not use_first_key:
                raise KeyConditionError(
                    f"Multiple conditions on same key {name}. Only single item Update/Insert/Delete are supported"
                )
            rest.append(part)
    if len(key) < len(schema.columns):
        raise KeyConditionError(_INCOMPLETE)
    for column in schema.columns:
        if as_kind(arguments.value(key[column.name].name), column.kind) is None:
            raise _mismatch(column.name)
    return key, tuple(rest)


def read_item(where: ConditionNode | None, schema: KeySchema, arguments: Arguments) -> Named | None:
    """Return the key of the one item that a WHERE names. None if the WHERE has other conditions or names no item."""
    key: Named = {}
    for part in _conjuncts(where):
        if isinstance(part, InNode) and len(part.members) == 1:
            part = CompareNode("=", part.operand, part.members[0])
        test = _key_test(part, schema.names)
        if test is None or test[1] != "EQ":
            return None
        name, _, (value,) = test
        earlier = key.setdefault(name, value)
        if not equal(arguments.value(earlier.name), arguments.value(value.name)):
            return None
    return key if len(key) == len(schema.columns) else None


def _conjuncts(where: ConditionNode | None) -> Iterator[ConditionNode]:
    """Yield the parts that must all be true. Chains of AND are flat, even with parentheses (parsing.py)."""
    if isinstance(where, AndNode):
        yield from where.parts
    elif where is not None:
        yield where
