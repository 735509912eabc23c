"""The legacy parameters (Expected, AttributeUpdates, KeyConditions, QueryFilter, ScanFilter, AttributesToGet,
ConditionalOperator), converted to the trees of expressions.

legacy_rules.py and item_rules.py have already checked operators, their arguments and allowed combinations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tablegate.adapters.dynamodb.expressions.key_conditions import KeyTest
from tablegate.adapters.dynamodb.expressions.projections import ProjectionPaths, projection_of
from tablegate.adapters.dynamodb.values.values import value_of
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.adapters.dynamodb.wire.messages import expression_text
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
    Predicate,
    StartsWith,
)
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


def key_conditions(conditions: Mapping[str, Mapping[str, Any]]) -> tuple[KeyTest, ...]:
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
