"""The clauses of a request (conditions, filters, projections, updates) from expressions or their legacy form.

A request has one of the two forms (checked in item_rules.py). Both become the same trees (gateway/model). Errors
that do not depend on the table are raised when the clauses are made. Those that depend on the key schema are
raised when a handler gets the tree: updates of key attributes, and filters on them.

The legacy parameters are Expected, AttributeUpdates, KeyConditions, QueryFilter, ScanFilter, AttributesToGet and
ConditionalOperator. expression_rules.py and item_rules.py have already checked operators, their arguments and allowed
combinations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from tablegate.adapters.dynamodb.call import CallContext
from tablegate.adapters.dynamodb.expressions import key_conditions, projections
from tablegate.adapters.dynamodb.expressions.conditions import parse_condition, refuse_filter_on_keys
from tablegate.adapters.dynamodb.expressions.key_conditions import KeyTest
from tablegate.adapters.dynamodb.expressions.projections import ProjectionPaths, projection_of
from tablegate.adapters.dynamodb.expressions.static_checks import FILTER, Placeholders, refuse_paths_into_keys
from tablegate.adapters.dynamodb.expressions.updates import (
    UpdateFacts,
    facts_of,
    given_values,
    parse_update,
    refuse_key_updates,
)
from tablegate.adapters.dynamodb.values import keys
from tablegate.adapters.dynamodb.values.keys import check_given_index_keys
from tablegate.adapters.dynamodb.values.values import render_values, value_of
from tablegate.adapters.dynamodb.wire.error_texts import expression_text
from tablegate.adapters.dynamodb.wire.errors import ErrorTexts, ServiceError, validation
from tablegate.gateway.model.commands.writes import RETURNS_NOTHING, ReturnedRows, Returns
from tablegate.gateway.model.expressions import updates
from tablegate.gateway.model.expressions.predicates import (
    ALWAYS,
    And,
    Attribute,
    Compare,
    Comparison,
    Contains,
    Exists,
    Literal,
    Not,
    Operand,
    Or,
    Path,
    Predicate,
    StartsWith,
    paths_of,
)
from tablegate.gateway.model.expressions.ranges import KeyRange
from tablegate.gateway.model.expressions.updates import Action
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Value

# Legacy parameters


_COMPARISONS = {comparison.name: comparison for comparison in Comparison}

Test = tuple[str, str, tuple[Value, ...]]
"""An attribute's name, an operator, and its arguments."""


def expected_condition(expected: Mapping[str, Mapping[str, Any]], operator: str | None = None) -> Predicate:
    """Return the predicate of Expected. `operator`: ConditionalOperator."""
    return _all_or_any([_expected_test(name, condition) for name, condition in expected.items()], operator)


def filter_condition(conditions: Mapping[str, Mapping[str, Any]], operator: str | None = None) -> Predicate:
    """Return the predicate of QueryFilter or ScanFilter. `operator`: ConditionalOperator."""
    return _all_or_any([_condition_test(name, condition) for name, condition in conditions.items()], operator)


def legacy_key_conditions(conditions: Mapping[str, Mapping[str, Any]]) -> tuple[KeyTest, ...]:
    """Return the tests of KeyConditions. key_conditions.py makes a range of them."""
    return tuple([KeyTest(*_condition_test(name, condition)) for name, condition in conditions.items()])


def _all_or_any(tests: list[Test], operator: str | None) -> Predicate:
    parts = tuple([_predicate(*test) for test in tests])
    if not parts:
        return ALWAYS
    if len(parts) == 1:
        return parts[0]
    return Or(parts) if operator == "OR" else And(parts)


def _predicate(name: str, operator: str, values: tuple[Value, ...]) -> Predicate:
    path = (name,)
    attribute: Operand = Attribute(path)
    match operator:
        case "NULL":
            return Not(Exists(path))
        case "NOT_NULL":
            return Exists(path)
        case "CONTAINS":
            return Contains(attribute, Literal(values[0]))
        case "NOT_CONTAINS":  # false where there is no attribute (test_update_expected_1_not_contains)
            return And((Exists(path), Not(Contains(attribute, Literal(values[0])))))
        case "BEGINS_WITH":
            return StartsWith(attribute, Literal(values[0]))
        case "IN":
            return Or(tuple([Compare(attribute, Comparison.EQ, Literal(value)) for value in values]))
        case "BETWEEN":
            lower, upper = values
            return And(
                (
                    Compare(attribute, Comparison.GE, Literal(lower)),
                    Compare(attribute, Comparison.LE, Literal(upper)),
                )
            )
    return Compare(attribute, _COMPARISONS[operator], Literal(values[0]))


def _condition_test(name: str, condition: Mapping[str, Any]) -> Test:
    values = tuple([value_of(wire) for wire in condition.get("AttributeValueList") or ()])
    return name, condition["ComparisonOperator"], values


def _expected_test(name: str, condition: Mapping[str, Any]) -> Test:
    """Convert an ExpectedAttributeValue: a comparison, a required value, or a required absence."""
    operator, single = condition.get("ComparisonOperator"), condition.get("Value")
    if operator is None:
        return (name, "NULL", ()) if single is None else (name, "EQ", (value_of(single),))
    if single is not None:
        return name, operator, (value_of(single),)
    return _condition_test(name, condition)


# Updates


def attribute_updates(attributes: Mapping[str, Mapping[str, Any]]) -> tuple[updates.Action, ...]:
    """Return the actions of AttributeUpdates.

    ADD appends to lists too, unlike ADD in an UpdateExpression (test_item.py test_update_item_add).
    """
    return tuple([_action(name, update) for name, update in attributes.items()])


def _action(name: str, update: Mapping[str, Any]) -> updates.Action:
    path = (name,)
    wire = update.get("Value")
    match update.get("Action"):
        case "DELETE":
            return updates.Remove(path) if wire is None else updates.Subtract(path, value_of(wire))
        case "ADD":
            return updates.Add(path, value_of(wire))
    return updates.SetTo(path, updates.Literal(value_of(wire)))


def update_mismatch() -> ServiceError:
    """Return the error for a BadOperand of AttributeUpdates."""
    return validation(expression_text("update-mismatch"))


# Projections


def attributes_to_get(names: Iterable[str]) -> ProjectionPaths:
    """Return the projection of AttributesToGet."""
    return projection_of((name,) for name in names)


# Clauses


Input = Mapping[str, Any]

_PAIR = 2  # attributes of a table's key as it is shown

# Members that make a clause, or that may be wrong without one. A request without any of them needs no parsing.
_PLACEHOLDERS = frozenset({"ExpressionAttributeNames", "ExpressionAttributeValues"})
_READ_CLAUSES = _PLACEHOLDERS | {
    "AttributesToGet",
    "FilterExpression",
    "KeyConditionExpression",
    "KeyConditions",
    "ProjectionExpression",
    "QueryFilter",
    "ScanFilter",
}
_RETURNS = frozenset({"ReturnValues", "ReturnValuesOnConditionCheckFailure"})
_WRITE_CLAUSES = _PLACEHOLDERS | {"AttributeUpdates", "ConditionExpression", "Expected", "UpdateExpression"}


class ReadClauses:
    """The projection, filter and key condition of a read. `arguments`: the request, or one table of a batch."""

    __slots__ = ("_filter", "_filter_name", "_key_tests", "projection")
    _filter: Predicate
    projection: projections.ProjectionPaths | None

    def __init__(self, call: CallContext, arguments: Input) -> None:
        if _READ_CLAUSES.isdisjoint(arguments):
            self._key_tests: tuple[key_conditions.KeyTest, ...] | None = None
            self._filter, self._filter_name, self.projection = ALWAYS, "", None
            return
        placeholders = Placeholders.of(arguments, call.error_texts)
        text = arguments.get("KeyConditionExpression")
        key_tree = None if text is None else key_conditions.parse_key_condition(text, placeholders)
        self._filter, self._filter_name = self._filter_of(arguments, placeholders)
        self.projection = _projection(arguments, placeholders)
        placeholders.check_all_used()
        self._key_tests = None
        if key_tree is not None:
            self._key_tests = key_conditions.key_tests(key_tree, placeholders)
        elif "KeyConditions" in arguments:
            self._key_tests = legacy_key_conditions(arguments["KeyConditions"])

    @staticmethod
    def _filter_of(arguments: Input, placeholders: Placeholders) -> tuple[Predicate, str]:
        text = arguments.get("FilterExpression")
        if text is not None:
            return parse_condition(text, placeholders, FILTER), "Filter Expression"
        for name in ("QueryFilter", "ScanFilter"):
            if arguments.get(name):
                return filter_condition(arguments[name], arguments.get("ConditionalOperator")), name
        return ALWAYS, ""

    def key_range(
        self, schema: KeySchema, check_column: key_conditions.ColumnCheck | None = None, index: str = ""
    ) -> KeyRange:
        """Return the keys of a Query of a table or `index`. Raises ServiceError.

        `check_column`: a further check at each key column (key_conditions.ColumnCheck).
        """
        return key_conditions.key_range(self._key_tests or (), schema, check_column, index)

    def composite_range(self, schema: KeySchema) -> tuple[KeyRange, Predicate]:
        """Return the keys of a Query of a table with a composite key, and the remaining predicate for each row.

        Call `key_range` first. It checks the conditions.
        """
        return key_conditions.composite_bounds(schema, self._key_tests or ())

    def tests_sort_key(self, schema: KeySchema) -> bool:
        return len(self._key_tests or ()) > len(schema.partition)

    def check_projection(self, table: Table) -> None:
        """Raise ServiceError if the projection has a path into a key attribute."""
        if self.projection is not None:
            _refuse_paths_into_keys(self.projection.paths, table)

    def check_filter(self, table: Table) -> None:
        """Raise ServiceError if the filter has a path into a key attribute."""
        if self._filter is not ALWAYS:
            _refuse_paths_into_keys(paths_of(self._filter), table)

    def check_filtered_by(self, table: Table, index: Index) -> None:
        """Raise ServiceError if the filter of a Query reads attributes that the index does not project.

        A Scan may do so: such attributes are missing there. Sources: dynoxide's captures for PartiQL, August
        2026. DynamoDB Local for both. Users of AppSync report the text "Secondary index ... does not project one
        or more filter attributes" for queries.
        """
        if self._filter is ALWAYS or index.projected_names is None:
            return
        projected_names = {*index.projected_names, *keys.shown_schema(table.key_schema).names}
        missing_names = [str(path[0]) for path in paths_of(self._filter) if path[0] not in projected_names]
        if missing_names:
            raise projections.filter_beyond(index.name, missing_names)

    def filter(self, table: Table, key_names: tuple[str, ...] = ()) -> Predicate:
        """Return the filter.

        Raises ServiceError if it reads one of `key_names`, which the filter of a Query must not.
        """
        if self._filter is ALWAYS:
            return ALWAYS
        if key_names:
            refuse_filter_on_keys(paths_of(self._filter), key_names, self._filter_name)
        schema = table.key_schema
        return self._filter if schema.is_pair else key_conditions.with_composite(schema, self._filter)

    def cut(self, table: Table, row: Row) -> bytes:
        """Return the projected part of a row as JSON."""
        if self.projection is None:
            return keys.render_shown(table.key_schema, row)
        return orjson.dumps(
            render_values(
                projections.project(keys.visible_attributes(table.key_schema, row), self.projection)
            )
        )

    def cut_all(self, table: Table, rows: Sequence[Row]) -> bytes:
        if self.projection is None:
            return keys.render_page(table.key_schema, rows)
        return b"[" + b",".join([self.cut(table, row) for row in rows]) + b"]"


class WriteClauses:
    """The condition and actions of a write. `arguments`: the request, or one action of a transaction."""

    __slots__ = ("_actions", "_condition", "_document_paths", "facts", "has_condition", "returned_rows")
    facts: UpdateFacts
    """Properties of the update that do not depend on its values."""
    _actions: tuple[Action, ...]
    _condition: Predicate
    _document_paths: tuple[Path, ...]
    has_condition: bool
    returned_rows: ReturnedRows
    """The parts of the item in the answer."""

    def __init__(self, call: CallContext, arguments: Input) -> None:
        self.returned_rows = RETURNS_NOTHING if _RETURNS.isdisjoint(arguments) else shown_of(arguments)
        if _WRITE_CLAUSES.isdisjoint(arguments):
            self.facts, self._actions, self._condition, self._document_paths = _NO_UPDATE, (), ALWAYS, ()
            self.has_condition = False
            return
        self._read(arguments, call.error_texts)

    @classmethod
    def check(cls, arguments: Input, error_texts: ErrorTexts) -> None:
        """Raise ServiceError if the clauses are wrong, whatever the table is."""
        if not _WRITE_CLAUSES.isdisjoint(arguments):
            cls.__new__(cls)._read(arguments, error_texts)

    def _read(self, arguments: Input, error_texts: ErrorTexts) -> None:
        placeholders = Placeholders.of(arguments, error_texts)
        actions: tuple[Action, ...] = ()
        text = arguments.get("UpdateExpression")
        if text is not None:
            actions = parse_update(text, placeholders)
        elif "AttributeUpdates" in arguments:
            actions = attribute_updates(arguments["AttributeUpdates"])
        text = arguments.get("ConditionExpression")
        condition: Predicate = ALWAYS
        if text is not None:
            condition = parse_condition(text, placeholders)
        elif arguments.get("Expected"):
            condition = expected_condition(arguments["Expected"], arguments.get("ConditionalOperator"))
        placeholders.check_all_used()
        self._set(actions, condition)

    @classmethod
    def of(cls, actions: tuple[Action, ...], condition: Predicate) -> WriteClauses:
        """Return clauses for actions and a condition from another source than expressions: a statement (partiql)."""
        clauses = cls.__new__(cls)
        clauses._set(actions, condition)
        clauses.returned_rows = RETURNS_NOTHING
        return clauses

    def _set(self, actions: tuple[Action, ...], condition: Predicate) -> None:
        self.facts = facts_of(actions) if actions else _NO_UPDATE
        self._actions, self._condition = actions, condition
        self._document_paths = tuple([path for path in paths_of(condition) if len(path) > 1])
        self.has_condition = condition is not ALWAYS

    def condition(self, table: Table) -> Predicate:
        """Return the condition. Raises ServiceError if it has a path into a key attribute of this table."""
        if self._document_paths:
            _refuse_paths_into_keys(self._document_paths, table)
        schema = table.key_schema
        return self._condition if schema.is_pair else key_conditions.with_composite(schema, self._condition)

    def actions(self, table: Table) -> tuple[Action, ...]:
        """Return the actions of an update.

        Raises ServiceError if one writes the table's key or has a path into a key attribute.
        """
        actions, facts, schema = self._actions, self.facts, table.key_schema
        if not actions:
            return actions
        is_composite = len(schema.names) > _PAIR and keys.composite_name(schema) is not None
        if is_composite or not facts.written.isdisjoint(schema.names):
            refuse_key_updates(actions, _key_names(table))
        if table.indexes:
            check_given_index_keys(table, given_values(actions))
        if facts.document_paths:
            _refuse_paths_into_keys(facts.document_paths, table)
        if is_composite:
            key_conditions.refuse_composite_operand(schema, facts.paths)
        return actions


_NO_UPDATE = facts_of(())


def shown_of(arguments: Input) -> ReturnedRows:
    """Return the parts of the item in the answer, by ReturnValues and ReturnValuesOnConditionCheckFailure."""
    return_values = arguments.get("ReturnValues", "NONE")
    return ReturnedRows(
        Returns(return_values), Returns(arguments.get("ReturnValuesOnConditionCheckFailure", "NONE"))
    )


def _projection(arguments: Input, placeholders: Placeholders) -> projections.ProjectionPaths | None:
    text = arguments.get("ProjectionExpression")
    if text is not None:
        return projections.parse_projection(text, placeholders)
    names = arguments.get("AttributesToGet")
    return None if names is None else attributes_to_get(names)


def _refuse_paths_into_keys(paths: Iterable[Path], table: Table) -> None:
    document_paths = [path for path in paths if len(path) > 1]
    if not document_paths:
        return
    index_keys = [name for index in table.indexes for name in index.key_schema.names]
    refuse_paths_into_keys(document_paths, _key_names(table), index_keys)


def _key_names(table: Table) -> tuple[str, ...]:
    """Return the key attributes of a table: its columns, and the composite if there is one."""
    names = table.key_schema.names
    composite = keys.composite_name(table.key_schema)
    return names if composite is None else (*names, composite)
