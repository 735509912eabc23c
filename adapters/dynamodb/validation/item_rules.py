"""What the members of item requests mean together, as far as no table is needed to tell, in the service's order.

Knows which parameters exclude each other, and where in the order attribute values and legacy parameters are looked at. Knows
no grammar: expressions are parsed by whoever handles the request, and here only where a transaction is refused anyway, to
find out whether an earlier expression is wrong.

Each rule gets (input, style, good). `good`: the attribute values of maps were checked by the fast validator already; then only
those that it does not look at one by one are left. Order and texts: dynalite validations/*.js, docs/protocols/dynamodb.md
rules 9 to 26.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from adapters.dynamodb.expressions.request_clauses import WriteClauses
from adapters.dynamodb.validation import legacy_rules
from adapters.dynamodb.values import values
from adapters.dynamodb.values.scalars import ValueRefused
from adapters.dynamodb.wire import limits, messages
from adapters.dynamodb.wire.errors import ServiceError, validation
from adapters.dynamodb.wire.messages import CLASSIC

Input = dict[str, Any]


# Writes of one item


def put_item(data: Input, style: str, good: bool) -> None:
    """PutItem."""
    _parameters("PutItem", data, style, ("ConditionExpression",), ("Expected", "ConditionalOperator"))
    if not good:
        with_frame("PutItem", style, lambda: data.__setitem__("Item", values.item_of(data["Item"])))
    _plain_return_values("PutItem", data, style)
    if data["Item"].size_bytes > limits.ITEM_BYTES:
        raise messages.refused("PutItem", "item-size", style)
    _finish_conditional("PutItem", data, style, good)


def delete_item(data: Input, style: str, good: bool) -> None:
    """DeleteItem."""
    _parameters("DeleteItem", data, style, ("ConditionExpression",), ("Expected", "ConditionalOperator"))
    _key("DeleteItem", data, style, good)
    _plain_return_values("DeleteItem", data, style)
    _finish_conditional("DeleteItem", data, style, good)


def update_item(data: Input, style: str, good: bool) -> None:
    """UpdateItem."""
    _parameters(
        "UpdateItem",
        data,
        style,
        ("UpdateExpression", "ConditionExpression"),
        ("AttributeUpdates", "Expected", "ConditionalOperator"),
    )
    _key("UpdateItem", data, style, good)
    updates = data.get("AttributeUpdates")
    if updates:
        with_frame("UpdateItem", style, lambda: legacy_rules.check_attribute_updates(updates))
    _finish_conditional("UpdateItem", data, style, good)


def _finish_conditional(operation: str, data: Input, style: str, good: bool) -> None:
    if "Expected" in data:
        expected = data["Expected"]
        with_frame(operation, style, lambda: legacy_rules.check_expected(expected))
    if "ConditionalOperator" in data:
        _conditional_operator(data, "Expected")
    _placeholders(operation, data, style, good)


def _plain_return_values(operation: str, data: Input, style: str) -> None:
    if data.get("ReturnValues", "NONE") not in ("NONE", "ALL_OLD"):
        raise messages.refused(operation, "return-values", style)


def _key(operation: str, data: Input, style: str, good: bool) -> None:
    if good:
        return
    try:
        values.measure_members(data["Key"])
    except ValueRefused as refusal:
        text = refusal.text(operation, style)
        if refusal.rule in _FRAMED_IN_KEYS:
            text = messages.framed(operation, refusal.rule, text, style)
        raise validation(text) from None


# Of keys, no other family has a frame (dynoxide, captured; numbers and duplicates: paritysuite, October 2026).
_FRAMED_IN_KEYS = messages.NUMBERS_AND_DUPLICATES | {"null-false"}


# Reads


def get_item(data: Input, style: str, good: bool) -> None:
    """GetItem."""
    _parameters("GetItem", data, style, ("ProjectionExpression",), ("AttributesToGet",))
    _key("GetItem", data, style, good)
    legacy_rules.check_attributes_to_get(data)
    _placeholders("GetItem", data, style, good)


def query(data: Input, style: str, good: bool) -> None:
    """Query."""
    legacy: tuple[str, ...] = ("AttributesToGet", "QueryFilter", "ConditionalOperator", "KeyConditions")
    if "KeyConditions" in data and "KeyConditionExpression" not in data:
        legacy = legacy[:3]  # KeyConditions go with the other expressions
    expressions = ("ProjectionExpression", "FilterExpression", "KeyConditionExpression")
    _parameters("Query", data, style, expressions, legacy)
    _legacy_conditions("Query", data, "QueryFilter", style)
    _conditional_operator(data, "QueryFilter")
    legacy_rules.check_attributes_to_get(data)
    _start_key("Query", data, style, good)
    if "KeyConditions" not in data and "KeyConditionExpression" not in data:
        raise messages.refused("Query", "no-key-condition", style)
    _select("Query", data, style)
    _placeholders("Query", data, style, good)
    if "KeyConditionExpression" not in data:
        _legacy_conditions("Query", data, "KeyConditions", style)
        # Of an index, whose key may have eight attributes, what is too many takes the schema, as it does today of all.
        most = 2 if style == CLASSIC and "IndexName" not in data else len(data["KeyConditions"])
        if not 1 <= len(data["KeyConditions"]) <= most:
            raise messages.refused("Query", "condition-count", style)


def scan(data: Input, style: str, good: bool) -> None:
    """Scan."""
    legacy = ("AttributesToGet", "ScanFilter", "ConditionalOperator")
    _parameters("Scan", data, style, ("ProjectionExpression", "FilterExpression"), legacy)
    legacy_rules.check_attributes_to_get(data)
    _legacy_conditions("Scan", data, "ScanFilter", style)
    _conditional_operator(data, "ScanFilter")
    _start_key("Scan", data, style, good)
    _segments(data, style)
    _select("Scan", data, style)
    _placeholders("Scan", data, style, good)


def _legacy_conditions(operation: str, data: Input, member: str, style: str) -> None:
    if member in data:
        with_frame(operation, style, lambda: legacy_rules.check_conditions(data[member]))


def _conditional_operator(data: Input, partner: str) -> None:
    """ConditionalOperator joins two conditions or more (paritysuite, ten regions, October 2026; ExtendDB's tests against the
    service have text and order)."""
    if "ConditionalOperator" in data:
        count = len(data.get(partner, ()))
        if count < 2:
            raise validation(messages.bare("operator-with-one" if count else "operator-without-expected"))


def _segments(data: Input, style: str) -> None:
    segment, total = data.get("Segment"), data.get("TotalSegments")
    if total is None:
        if segment is not None:
            raise messages.refused("Scan", "total-segments-missing", style)
    elif segment is None:
        raise messages.refused("Scan", "segment-missing", style)
    elif segment >= total:
        raise messages.refused("Scan", "segment-range", style, segment=segment, total=total)


def _select(operation: str, data: Input, style: str) -> None:
    """Select against the projection (rule 20). Whether an index projects what is wanted needs the table."""
    select = data.get("Select")
    if select is None:
        return
    if select != "SPECIFIC_ATTRIBUTES":
        wanted = "only the Count" if select == "COUNT" else select
        if "AttributesToGet" in data:
            raise messages.refused(operation, "select-attributes", style, select=wanted)
        if "ProjectionExpression" in data:
            raise messages.refused(operation, "select-projection", style, select=wanted)
    elif "AttributesToGet" not in data and "ProjectionExpression" not in data:
        raise messages.refused(operation, "select-nothing", style)
    if select == "ALL_PROJECTED_ATTRIBUTES" and "IndexName" not in data:
        raise messages.refused(operation, "select-projected", style)


_UNFRAMED_START_KEY = re.compile(
    "contains duplicates|number set|numeric value|significant digits|number with magnitude"
)


def _start_key(operation: str, data: Input, style: str, good: bool) -> None:
    key = data.get("ExclusiveStartKey")
    if key is None or good:
        return
    try:
        values.measure_members(key)
    except ValueRefused as refusal:
        text = refusal.text(operation, style)
        if not _UNFRAMED_START_KEY.search(text):  # some texts stand bare, and nobody knows why
            text = messages.bare("start-key", text=text)
        raise validation(text) from None


# Batches and transactions


def batch_get(data: Input, style: str, good: bool) -> None:
    """BatchGetItem."""
    requests = data["RequestItems"]
    if sum(len(request["Keys"]) for request in requests.values()) > limits.BATCH_GET_KEYS:
        if style == CLASSIC:
            raise messages.refused("BatchGetItem", "too-many-gets", style)
        table = max(requests, key=lambda name: len(requests[name]["Keys"]))
        raise _too_long(f"RequestItems.{table}.member.Keys", limits.BATCH_GET_KEYS)
    # Projections of two kinds do not go together in one request either (paritysuite batchGetItem.test.ts).
    given = {name: member for request in requests.values() for name, member in request.items()}
    _parameters("BatchGetItem", given, style, ("ProjectionExpression",), ("AttributesToGet",))
    for request in requests.values():
        _parameters("BatchGetItem", request, style, ("ProjectionExpression",), ("AttributesToGet",))
        legacy_rules.check_attributes_to_get(request)
        _placeholders("BatchGetItem", request, style, good)
        if request.get("ProjectionExpression") == "":  # told before the keys are looked at
            raise messages.refused("BatchGetItem", "expression-empty", style, name="ProjectionExpression")
        _distinct_keys(request["Keys"], style, good)


def _distinct_keys(keys: list[Input], style: str, good: bool) -> None:
    seen = set()
    for key in keys:
        if not good:
            with_frame("BatchGetItem", style, partial(values.measure_members, key))
        # In canonical form equal keys have equal texts.
        print_of = frozenset(
            (name, *next(iter(member.items()))) for name, member in key.items() if _scalar(member)
        )
        if len(print_of) == len(key) and print_of in seen:
            raise messages.refused("BatchGetItem", "duplicate-keys", style)
        seen.add(print_of)


def _scalar(member: Input) -> bool:
    return not isinstance(next(iter(member.values())), (list, dict))


def batch_write(data: Input, style: str, good: bool) -> None:
    """BatchWriteItem. Whether two requests name one item takes the key schema, and the length of each list is its shape's."""
    requests = data["RequestItems"]
    if not requests:
        raise messages.refused("BatchWriteItem", "request-items-required", style, name="BatchWriteItem")
    total = sum(map(len, requests.values()))
    if total > limits.BATCH_WRITE_REQUESTS:
        raise messages.refused("BatchWriteItem", "too-many-writes", style)
    for writes in requests.values():
        if any(len(write) != 1 for write in writes):
            raise messages.refused("BatchWriteItem", "not-one-request", style)
        for write in writes:
            put = write.get("PutRequest")
            if put is not None:
                item = put["Item"] = values.item_of(put["Item"])
                if item.size_bytes > limits.ITEM_BYTES:
                    raise messages.refused("BatchWriteItem", "item-size", style)
            elif not good:
                values.measure_members(write["DeleteRequest"]["Key"])


def transact_get(data: Input, style: str, good: bool) -> None:
    """TransactGetItems."""
    for action in data["TransactItems"]:
        get = action["Get"]
        _parameters("TransactGetItems", get, style, ("ProjectionExpression",), ())
        _key("TransactGetItems", get, style, good)
        _placeholders("TransactGetItems", get, style, good)


_EXPRESSIONS_OF = {
    "ConditionCheck": ("ConditionExpression",),
    "Put": ("ConditionExpression",),
    "Delete": ("ConditionExpression",),
    "Update": ("UpdateExpression", "ConditionExpression"),
}


def transact_write(data: Input, style: str, good: bool) -> None:
    """TransactWriteItems."""
    for action in data["TransactItems"]:
        if len(action) != 1:
            raise messages.refused("TransactWriteItems", "not-one-action", style)
    payload = 0
    actions = [next(iter(action.items())) for action in data["TransactItems"]]
    for place, (kind, write) in enumerate(actions):
        try:
            payload += _transact_action(kind, write, style, good)
        except ServiceError:
            # The first action with a problem is told of, whatever the problem is, and expressions are read by the handler.
            for _, earlier in actions[:place]:
                WriteClauses.check(earlier, style, "TransactWriteItems")
            raise
    if payload > limits.TRANSACTION_BYTES:
        raise messages.refused("TransactWriteItems", "payload-size", style)


def _transact_action(kind: str, write: Input, style: str, good: bool) -> int:
    """Check an action as far as no table is needed, and return the bytes that it adds to the payload. A value that is nested
    too deep is told after what is wrong with the action's expressions (paritysuite deepRequests.test.ts, ten regions,
    2026-10-09)."""
    _parameters("TransactWriteItems", write, style, _EXPRESSIONS_OF[kind], ())
    try:
        if kind == "Put":
            write["Item"] = values.item_of(write["Item"])
            size = write["Item"].size_bytes
        else:
            size = values.measure_members(write["Key"])
    except ValueRefused as refusal:
        if refusal.rule == "nesting":
            _placeholders("TransactWriteItems", write, style, good)
            WriteClauses.check(write, style, "TransactWriteItems")
        raise
    if size > limits.ITEM_BYTES:
        raise messages.refused("TransactWriteItems", "item-size", style)
    _placeholders("TransactWriteItems", write, style, good)
    return size + values.measure_members(write.get("ExpressionAttributeValues", {}))


# Expressions and their placeholders

_PLACEHOLDER = f"[0-9a-zA-Z_]{{1,{limits.PLACEHOLDER_BYTES - 1}}}"
_NAME_PLACEHOLDER = re.compile("#" + _PLACEHOLDER)
_VALUE_PLACEHOLDER = re.compile(":" + _PLACEHOLDER)


def _parameters(
    operation: str, data: Input, style: str, expressions: tuple[str, ...], legacy: tuple[str, ...]
) -> None:
    """Expressions do not mix with legacy parameters, and placeholders want an expression (rule 15)."""
    if _CONCERNED.isdisjoint(data):
        return
    given = [name for name in expressions if name in data]
    if given:
        others = [name for name in legacy if name in data]
        if others:
            if style == CLASSIC:
                others = [name for name in others if _was_told(operation, name)] or others
            raise messages.refused(
                operation, "mixed-parameters", style, others=", ".join(others), expressions=", ".join(given)
            )
    elif "ExpressionAttributeNames" in data:
        raise messages.refused(operation, "names-without-expression", style)
    if "ExpressionAttributeValues" in data:
        users = [name for name in expressions if name != "ProjectionExpression"]
        if users and not any(name in data for name in users):
            if style != CLASSIC and operation in ("PutItem", "UpdateItem", "DeleteItem"):
                raise messages.refused(operation, "values-alone", style)
            missing = " and ".join(users) + (" are null" if len(users) > 1 else " is null")
            raise messages.refused(operation, "values-without-expression", style, missing=missing)


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


def _was_told(operation: str, name: str) -> bool:
    """The classic service did not tell ConditionalOperator beside others, of writes (dynalite)."""
    return name != "ConditionalOperator" or operation in ("Query", "Scan")


def _placeholders(operation: str, data: Input, style: str, good: bool) -> None:
    """The maps of placeholders by themselves; undefined and unused ones are found by who parses the expressions."""
    names = data.get("ExpressionAttributeNames")
    if names is not None:
        if not names:
            raise messages.refused(operation, "names-empty", style)
        for key, name in names.items():
            if _NAME_PLACEHOLDER.fullmatch(key) is None:
                raise _bad_placeholder(operation, "names", key, style)
            if not name or len(name) > limits.ATTRIBUTE_NAME_BYTES // 4:
                _check_named(operation, key, name, style)
    wire = data.get("ExpressionAttributeValues")
    if wire is None:
        return
    if not wire:
        raise messages.refused(operation, "values-empty", style)
    for key in wire:
        if _VALUE_PLACEHOLDER.fullmatch(key) is None:
            raise _bad_placeholder(operation, "values", key, style)
    if not good:
        for key, member in wire.items():
            _check_placeholder_value(operation, key, member, style)


def _bad_placeholder(operation: str, which: str, key: str, style: str) -> ServiceError:
    size = len(key.encode("utf-8", "surrogatepass"))
    if size > limits.PLACEHOLDER_BYTES:
        return messages.refused(operation, f"{which}-key-size", style, size=size)
    return messages.refused(operation, f"{which}-key", style, key=key)


def _check_named(operation: str, key: str, name: str, style: str) -> None:
    try:
        values.check_name(name)
    except ValueRefused as refusal:
        raise messages.refused(operation, "names-value", style, text=refusal.message, key=key) from None


# Told without the name of the placeholder (paritysuite, dynoxide: captured; empty sets: moto's tests verified against the
# service in August 2026, test_update_item_add_empty_set and test_update_item_unused_attributes).
_WITHOUT_PLACEHOLDER = frozenset(
    {"nesting", "null-false", "empty-string-set", "empty-number-set", "empty-binary-set"}
)


def _check_placeholder_value(operation: str, key: str, member: Any, style: str) -> None:
    try:
        values.measure(member, 0)
    except ValueRefused as refusal:
        text = refusal.text(operation, style)
        named = refusal.rule not in _WITHOUT_PLACEHOLDER
        if refusal.rule == "nesting" and operation == "TransactWriteItems":
            named = True  # in eight of ten regions (paritysuite deepRequests.test.ts, 2026-10-09)
        if named and refusal.rule in messages.NUMBERS_AND_DUPLICATES:
            named = not messages.looks_as_today(operation, style)
        if style == CLASSIC or named:
            text = messages.bare("values-value", text=text, key=key)
        raise validation(messages.framed(operation, refusal.rule, text, style)) from None


# Raising


def with_frame(operation: str, style: str, look: Callable[[], object]) -> None:
    """Look at values; a refused one is told as this operation tells it."""
    try:
        look()
    except ValueRefused as refusal:
        text = refusal.text(operation, style)
        raise validation(messages.framed(operation, refusal.rule, text, style)) from None


def _too_long(path: str, limit: int) -> ServiceError:
    text = f"Member must have length less than or equal to {limit}"
    return messages.constraints("BatchGetItem", [messages.Violation(path, path, "", text)], messages.LATEST)
