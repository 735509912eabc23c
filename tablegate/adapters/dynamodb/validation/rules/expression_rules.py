"""Parameters that exclude expressions, and errors in the maps of placeholders.

Order and texts: dynalite validations/*.js, docs/protocols/dynamodb.md rules 9 to 26.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tablegate.adapters.dynamodb.validation.rules.rule_context import RuleContext
from tablegate.adapters.dynamodb.values import values
from tablegate.adapters.dynamodb.values.scalars import InvalidValue
from tablegate.adapters.dynamodb.wire import limits, messages
from tablegate.adapters.dynamodb.wire.errors import ITEM_WRITES, NUMBERS_AND_DUPLICATES, ServiceError

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
            text = messages.bare("values-value", text=text, key=key)
        raise context.framed(refusal.rule, text) from None


def checked_values(context: RuleContext, check: Callable[[], object]) -> None:
    """Run a check of values. Its InvalidValue becomes a ServiceError with the operation's wording."""
    try:
        check()
    except InvalidValue as refusal:
        text = refusal.text(context)
        raise context.framed(refusal.rule, text) from None
