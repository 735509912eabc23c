"""The parameters from before expressions (Expected, AttributeUpdates, KeyConditions, QueryFilter, ScanFilter,
AttributesToGet, ConditionalOperator), desugared to the same trees; and which parameters go together.

Knows the operators' arguments and types and what the service says of wrong ones (dynalite, recorded; test_expected.py and
test_query_filter.py of ScyllaDB where the service has changed since).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from adapters.dynamodb.errors import ServiceError, type_name, validation
from adapters.dynamodb.expression_messages import text_of
from adapters.dynamodb.expressions import CONDITION, FILTER, KEY_CONDITION, PROJECTION, UPDATE
from adapters.dynamodb.key_conditions import KeyTest
from adapters.dynamodb.placeholders import Placeholders
from adapters.dynamodb.projections import Projection, projection_of
from adapters.dynamodb.values import value_of
from gateway.model import updates
from gateway.model.predicates import (
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
from gateway.model.values import SETS, Kind, Value, compare

# Which parameters go together. The order is that of the service's lists of names.

_EXPRESSIONS = {
    "PutItem": (CONDITION,),
    "DeleteItem": (CONDITION,),
    "UpdateItem": (UPDATE, CONDITION),
    "GetItem": (PROJECTION,),
    "BatchGetItem": (PROJECTION,),
    "Query": (PROJECTION, FILTER, KEY_CONDITION),
    "Scan": (PROJECTION, FILTER),
}
_LEGACY = {
    "PutItem": ("Expected", "ConditionalOperator"),
    "DeleteItem": ("Expected", "ConditionalOperator"),
    "UpdateItem": ("AttributeUpdates", "Expected", "ConditionalOperator"),
    "GetItem": ("AttributesToGet",),
    "BatchGetItem": ("AttributesToGet",),
    "Query": ("AttributesToGet", "QueryFilter", "ConditionalOperator", "KeyConditions"),
    "Scan": ("AttributesToGet", "ScanFilter", "ConditionalOperator"),
}
_CONDITION_MAPS = ("Expected", "QueryFilter", "ScanFilter")


def check_parameters(operation: str, request: Mapping[str, Any], placeholders: Placeholders) -> None:
    """Raise ServiceError if expressions and their legacy forms are mixed, or placeholders or ConditionalOperator stand
    without anything they could belong to. `request`: the operation's input, or one table's part of a BatchGetItem.

    `placeholders` gives style and frame only (make it of no maps): this comes before the maps are looked at.
    """
    expressions = _EXPRESSIONS[operation]
    given = [name for name in expressions if request.get(name) is not None]
    legacy = [name for name in _LEGACY[operation] if request.get(name) is not None]
    if KEY_CONDITION not in given and "KeyConditions" in legacy:
        legacy.remove("KeyConditions")
    if given and legacy:
        raise placeholders.error("mixed", legacy=", ".join(legacy), modern=", ".join(given))
    if request.get("ExpressionAttributeNames") is not None and not given:
        raise placeholders.error("names-alone")
    users = [name for name in expressions if name != PROJECTION]
    if users and request.get("ExpressionAttributeValues") is not None and not set(users) & set(given):
        verb = "are" if len(users) > 1 else "is"
        raise placeholders.error("values-alone", expressions=f"{' and '.join(users)} {verb}")
    if request.get("ConditionalOperator") is not None:
        conditions = [request.get(name) for name in _CONDITION_MAPS]
        count = sum(len(found) for found in conditions if found)
        if count < 2:
            raise validation(text_of("operator-single" if count else "operator-alone"))


# Conditions

_ARGUMENTS = {"NULL": 0, "NOT_NULL": 0, "BETWEEN": 2}  # all others take one; IN one or more
_SCALARS = frozenset({Kind.TEXT, Kind.DECIMAL, Kind.BYTES})
_CONTAINED = _SCALARS | {Kind.BOOL, Kind.NULL}
_PREFIXES = frozenset({Kind.TEXT, Kind.BYTES})
_KINDS = {
    **dict.fromkeys(("LT", "LE", "GT", "GE", "IN", "BETWEEN"), _SCALARS),
    **dict.fromkeys(("CONTAINS", "NOT_CONTAINS"), _CONTAINED),
    "BEGINS_WITH": _PREFIXES,
}
_COMPARISONS = {comparison.name: comparison for comparison in Comparison}

Test = tuple[str, str, tuple[Value, ...]]
"""An attribute's name, an operator, and its arguments."""


def expected_condition(expected: Mapping[str, Mapping[str, Any]], operator: str | None = None) -> Predicate:
    """The predicate of Expected. `operator`: ConditionalOperator. Raises ServiceError."""
    return _joined([_expected_test(name, condition) for name, condition in expected.items()], operator)


def filter_condition(conditions: Mapping[str, Mapping[str, Any]], operator: str | None = None) -> Predicate:
    """The predicate of QueryFilter or ScanFilter. `operator`: ConditionalOperator. Raises ServiceError."""
    return _joined([_condition_test(name, condition) for name, condition in conditions.items()], operator)


def key_conditions(conditions: Mapping[str, Mapping[str, Any]]) -> tuple[KeyTest, ...]:
    """The tests of KeyConditions (key_conditions.py makes a range of them). Raises ServiceError.

    How many there are is checked by `key_conditions.check_count`, after the other parameters.
    """
    return tuple([KeyTest(*_condition_test(name, condition)) for name, condition in conditions.items()])


def _joined(tests: list[Test], operator: str | None) -> Predicate:
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
        case (
            "NOT_CONTAINS"
        ):  # false where there is no attribute (test_expected.py test_update_expected_1_not_contains)
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
    """A Condition of QueryFilter, ScanFilter or KeyConditions."""
    operator = condition["ComparisonOperator"]
    values = tuple([value_of(wire) for wire in condition.get("AttributeValueList") or ()])
    _check_arguments(operator, values)
    return name, operator, values


def _expected_test(name: str, condition: Mapping[str, Any]) -> Test:
    """An ExpectedAttributeValue: a comparison, or a value that must be there, or nothing that may."""
    operator = condition.get("ComparisonOperator")
    listed, single, exists = (condition.get(member) for member in ("AttributeValueList", "Value", "Exists"))
    if listed is not None and single is not None:
        raise validation(text_of("expected-value-and-list", name=name))
    if operator is None:
        return _plain_test(name, listed, single, exists)
    if exists is not None:
        raise validation(text_of("expected-exists-and-operator", name=name))
    if listed is None and single is None and operator not in ("NULL", "NOT_NULL"):
        raise validation(text_of("expected-no-value", operator=operator, name=name))
    wires = listed if listed is not None else [] if single is None else [single]
    _check_argument_count(operator, len(wires))
    values = tuple([value_of(wire) for wire in wires])
    _check_arguments(operator, values)
    return name, operator, values


def _plain_test(name: str, listed: Any, single: Any, exists: Any) -> Test:
    if listed is not None:
        raise validation(text_of("expected-list-alone", name=name))
    if exists is False:
        if single is not None:
            raise validation(text_of("expected-absent-value", name=name))
        return name, "NULL", ()
    if single is None:
        shown = "null" if exists is None else "true"
        raise validation(text_of("expected-exists-value", exists=shown, name=name))
    return name, "EQ", (value_of(single),)


def _check_argument_count(operator: str, count: int) -> None:
    if count < 1 if operator == "IN" else count != _ARGUMENTS.get(operator, 1):
        raise validation(text_of("legacy-count", operator=operator))


def _check_arguments(operator: str, values: tuple[Value, ...]) -> None:
    """How many there are, that they are of one kind, and that the operator takes it."""
    _check_argument_count(operator, len(values))
    if any(value.kind is not values[0].kind for value in values):
        raise validation(text_of("legacy-kinds"))
    allowed = _KINDS.get(operator)
    if allowed is not None:
        for value in values:
            if value.kind not in allowed:
                raise validation(text_of("legacy-kind", operator=operator, kind=type_name(value.kind)))
    if operator == "BETWEEN" and compare(values[0], values[1]) == 1:
        raise validation(text_of("legacy-between"))


# Updates

_ADDABLE = SETS | {Kind.DECIMAL, Kind.LIST}


def attribute_updates(given: Mapping[str, Mapping[str, Any]]) -> tuple[updates.Action, ...]:
    """The actions of AttributeUpdates. Raises ServiceError.

    ADD appends to lists too, which an UpdateExpression's does not (test_item.py test_update_item_add).
    """
    return tuple([_action(name, update) for name, update in given.items()])


def update_mismatch() -> ServiceError:
    """What stands for a BadOperand that AttributeUpdates met in an item."""
    return validation(text_of("update-mismatch"))


def _action(name: str, update: Mapping[str, Any]) -> updates.Action:
    action = update.get("Action") or "PUT"
    wire = update.get("Value")
    if wire is None:
        if action != "DELETE":
            raise validation(text_of("update-no-value"))
        return updates.Remove((name,))
    value = value_of(wire)
    if action == "DELETE":
        if value.kind not in SETS:
            raise validation(text_of("update-delete-kind", kind=type_name(value.kind)))
        return updates.Subtract((name,), value)
    if action == "ADD":
        if value.kind not in _ADDABLE:
            raise validation(text_of("update-add-kind", kind=type_name(value.kind)))
        return updates.Add((name,), value)
    return updates.SetTo((name,), updates.Literal(value))


# Projections


def attributes_to_get(names: Iterable[str]) -> Projection:
    """The projection of AttributesToGet. Raises ServiceError if a name comes twice."""
    seen = set()
    for name in names:
        if name in seen:
            raise validation(text_of("duplicate-name", name=name))
        seen.add(name)
    return projection_of((name,) for name in names)
