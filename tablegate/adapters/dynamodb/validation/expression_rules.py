"""Rules for expressions and legacy parameters that need no table.

The rules for expressions are about parameters that exclude them, and about the maps of placeholders. Order and texts:
dynalite validations/*.js, docs/protocols/dynamodb.md rules 9 to 26.

The legacy parameters are Expected, KeyConditions, QueryFilter, ScanFilter, AttributeUpdates and AttributesToGet. The
number and types of each operator's arguments are checked. expressions/request_clauses.py relies on them. Sources: dynalite
validations/*.js, and test_expected.py and test_query_filter.py of ScyllaDB where the service has changed since.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from tablegate.adapters.dynamodb.values import values
from tablegate.adapters.dynamodb.values.scalars import InvalidValue
from tablegate.adapters.dynamodb.wire import error_texts, limits
from tablegate.adapters.dynamodb.wire.errors import (
    ITEM_WRITES,
    NUMBERS_AND_DUPLICATES,
    RuleContext,
    ServiceError,
)

# Expressions


Input = dict[str, Any]


_PLACEHOLDER = f"[0-9a-zA-Z_]{{1,{limits.PLACEHOLDER_BYTES - 1}}}"
_NAME_PLACEHOLDER = re.compile("#" + _PLACEHOLDER)
_VALUE_PLACEHOLDER = re.compile(":" + _PLACEHOLDER)


def check_parameters(
    data: Input, context: RuleContext, expressions: tuple[str, ...], legacy: tuple[str, ...]
) -> None:
    """Raise ServiceError for expressions together with legacy parameters, or placeholders without an expression
    (rule 15).
    """
    if _CONCERNED.isdisjoint(data):
        return
    present = [name for name in expressions if name in data]
    if present:
        others = [name for name in legacy if name in data]
        if others:
            raise context.refused(
                "mixed-parameters", others=", ".join(others), expressions=", ".join(present)
            )
    elif "ExpressionAttributeNames" in data:
        raise context.refused("names-without-expression")
    if "ExpressionAttributeValues" in data:
        users = [name for name in expressions if name != "ProjectionExpression"]
        if users and data.keys().isdisjoint(users):
            raise _unused_values_error(users, context)


def _unused_values_error(users: list[str], context: RuleContext) -> ServiceError:
    """Return the error for values without an expression."""
    if context.uses_new_framework and context.operation in ITEM_WRITES:
        return context.refused("values-alone")
    missing = " and ".join(users) + (" are null" if len(users) > 1 else " is null")
    return context.refused("values-without-expression", missing=missing)


_CONCERNED = frozenset(
    {
        "ConditionExpression",
        "ExpressionAttributeNames",
        "ExpressionAttributeValues",
        "FilterExpression",
        "KeyConditionExpression",
        "ProjectionExpression",
        "UpdateExpression",
    }
)


def check_placeholders(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for errors in the maps of placeholders.

    Undefined and unused placeholders are found when the expressions are parsed.
    """
    names = data.get("ExpressionAttributeNames")
    if names is not None:
        if not names:
            raise context.refused("names-empty")
        for key, name in names.items():
            if _NAME_PLACEHOLDER.fullmatch(key) is None:
                raise _bad_placeholder("names", key, context)
            if not name or len(name) > limits.ATTRIBUTE_NAME_BYTES // 4:
                _check_named(key, name, context)
    wire = data.get("ExpressionAttributeValues")
    if wire is None:
        return
    if not wire:
        raise context.refused("values-empty")
    for key in wire:
        if _VALUE_PLACEHOLDER.fullmatch(key) is None:
            raise _bad_placeholder("values", key, context)
    if not context.good:
        for key, member in wire.items():
            _check_placeholder_value(key, member, context)


def _bad_placeholder(kind: str, key: str, context: RuleContext) -> ServiceError:
    size = len(key.encode("utf-8", "surrogatepass"))
    if size > limits.PLACEHOLDER_BYTES:
        return context.refused(f"{kind}-key-size", size=size)
    return context.refused(f"{kind}-key", key=key)


def _check_named(key: str, name: str, context: RuleContext) -> None:
    try:
        values.check_name(name)
    except InvalidValue as refusal:
        raise context.refused("names-value", text=refusal.message, key=key) from None


# Reported without the name of the placeholder (paritysuite, dynoxide: captured). Empty sets: moto's tests,
# verified against the service in August 2026, test_update_item_add_empty_set and
# test_update_item_unused_attributes.
_WITHOUT_PLACEHOLDER = frozenset(
    {"nesting", "null-false", "empty-string-set", "empty-number-set", "empty-binary-set"}
)


def _check_placeholder_value(key: str, member: Any, context: RuleContext) -> None:
    try:
        values.measure(member, 0)
    except InvalidValue as refusal:
        text = refusal.text(context)
        names_key = refusal.rule not in _WITHOUT_PLACEHOLDER
        if refusal.rule == "nesting" and context.operation == "TransactWriteItems":
            names_key = True  # in eight of ten regions (paritysuite deepRequests.test.ts, 2026-10-09)
        if names_key and refusal.rule in NUMBERS_AND_DUPLICATES:
            names_key = not context.uses_new_framework
        if context.is_deep or names_key:
            text = error_texts.bare("values-value", text=text, key=key)
        raise context.framed(refusal.rule, text) from None


def checked_values(context: RuleContext, check: Callable[[], object]) -> None:
    """Run a check of values. Its InvalidValue becomes a ServiceError with the operation's text."""
    try:
        check()
    except InvalidValue as refusal:
        text = refusal.text(context)
        raise context.framed(refusal.rule, text) from None


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
