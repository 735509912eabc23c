"""Rules for legacy parameters that need no table: Expected, KeyConditions, QueryFilter, ScanFilter,
AttributeUpdates, AttributesToGet.

Checks the number and types of each operator's arguments. legacy.py relies on them. Sources: dynalite
validations/*.js, and test_expected.py and test_query_filter.py of ScyllaDB where the service has changed since.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from tablegate.adapters.dynamodb.validation.rules.expression_rules import Input
from tablegate.adapters.dynamodb.values import values
from tablegate.adapters.dynamodb.values.scalars import InvalidValue
from tablegate.adapters.dynamodb.wire import limits

# Legacy parameters


def check_attributes_to_get(data: Input) -> None:
    """Raise ServiceError for AttributesToGet with a duplicate or an invalid name."""
    names = data.get("AttributesToGet")
    if names is None:
        return
    checked = set()
    for name in names:
        values.check_name(name)
        if name in checked:
            raise InvalidValue("duplicate-attribute", name=name)
        checked.add(name)


def check_attribute_updates(updates: Input) -> None:
    """Raise ServiceError for AttributeUpdates with a wrong action or value."""
    _check_number(len(updates), limits.LEGACY_CONDITIONS)
    for name, update in updates.items():
        values.check_name(name)
        value, action = update.get("Value"), update.get("Action")
        if value is not None:
            values.measure(value, 0)
            [tag] = value
            if action == "DELETE" and tag not in ("SS", "NS", "BS"):
                raise InvalidValue("update-delete-type", tag=tag)
            if action == "ADD" and tag not in ("L", "SS", "NS", "BS", "N"):
                raise InvalidValue("update-add-type", tag=tag)
        elif action != "DELETE":
            raise InvalidValue("update-needs-value")


_ARGUMENTS: dict[str, Callable[[int], bool]] = {
    **dict.fromkeys(
        ("EQ", "NE", "LE", "LT", "GE", "GT", "CONTAINS", "NOT_CONTAINS", "BEGINS_WITH"),
        lambda count: count == 1,
    ),
    "NULL": lambda count: count == 0,
    "NOT_NULL": lambda count: count == 0,
    "IN": lambda count: count >= 1,
    "BETWEEN": lambda count: count == 2,
}
_SCALARS = frozenset({"S", "N", "B"})
_TYPES = {
    **dict.fromkeys(("LE", "LT", "GE", "GT", "IN", "BETWEEN"), _SCALARS),
    "BEGINS_WITH": frozenset({"S", "B"}),
    **dict.fromkeys(("CONTAINS", "NOT_CONTAINS"), _SCALARS | {"BOOL", "NULL"}),
}


def check_conditions(conditions: Input) -> None:
    """Raise ServiceError for KeyConditions, a QueryFilter or a ScanFilter with wrong arguments."""
    _check_operands(conditions)
    for name, condition in conditions.items():
        values.check_name(name)
        operator = condition["ComparisonOperator"]
        arguments = condition.get("AttributeValueList", [])
        for argument in arguments:
            values.measure(argument, 0)
        _arguments(operator, arguments)


def _arguments(operator: str, arguments: list[Input]) -> None:
    if not _ARGUMENTS[operator](len(arguments)):
        raise InvalidValue("argument-count", operator=operator)
    tags = [next(iter(argument)) for argument in arguments]
    if len(set(tags)) > 1:
        raise InvalidValue("argument-types")
    accepted_tags = _TYPES.get(operator)
    if accepted_tags is not None:
        for tag in tags:
            if tag not in accepted_tags:
                raise InvalidValue("argument-type", operator=operator, tag=tag)
    if operator == "BETWEEN" and _sortable(arguments[0]) > _sortable(arguments[1]):
        raise InvalidValue("between-order")


def _sortable(scalar: Input) -> Any:
    [(tag, data)] = scalar.items()
    return Decimal(data) if tag == "N" else b64decode(data) if tag == "B" else data


def check_expected(expected: Input) -> None:
    """Raise ServiceError for Expected with wrong arguments, or members that exclude each other."""
    _check_operands(expected)
    for name, condition in expected.items():
        values.check_name(name)
        value = condition.get("Value")
        arguments = condition.get("AttributeValueList")
        if arguments is not None and value is not None:
            raise InvalidValue("value-and-list", name=name)
        for argument in [value] if value is not None else arguments or []:
            values.measure(argument, 0)
        if "ComparisonOperator" in condition:
            _expected_comparison(name, condition)
        elif arguments is not None:
            raise InvalidValue("list-without-operator", name=name)
        else:
            exists = condition.get("Exists")
            if exists is not False and value is None:
                exists_text = "null" if exists is None else "true"
                raise InvalidValue("exists-without-value", exists=exists_text, name=name)
            if exists is False and value is not None:
                raise InvalidValue("value-when-absent", name=name)


def _expected_comparison(name: str, condition: Input) -> None:
    operator = condition["ComparisonOperator"]
    value = condition.get("Value")
    arguments = condition.get("AttributeValueList")
    if "Exists" in condition:
        raise InvalidValue("exists-and-operator", name=name)
    if operator not in ("NULL", "NOT_NULL") and arguments is None and value is None:
        raise InvalidValue("operator-without-value", operator=operator, name=name)
    _arguments(operator, [value] if value is not None else arguments or [])


def _check_operands(conditions: Input) -> None:
    _check_number(len(conditions), limits.LEGACY_CONDITIONS)
    value_count = sum(len(condition.get("AttributeValueList") or ()) for condition in conditions.values())
    _check_number(value_count, limits.LEGACY_VALUES)


def _check_number(count: int, maximum: int) -> None:
    """The limits are our own: none is documented. The text is that of an expression with too many operators."""
    if count > maximum:
        raise InvalidValue("operators", count=count)
