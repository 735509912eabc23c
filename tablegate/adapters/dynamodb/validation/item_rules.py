"""Rules about several members of item requests, in the service's order, as far as they need no table.

They cover parameters that exclude each other, and the order of checks of attribute values and legacy parameters.
Handlers parse the expressions. Only a rejected transaction is parsed here, to find errors in earlier expressions.

Each rule is called with (input, context). If the fast validator has already checked the attribute values of maps
(`RuleContext.good`), only the remaining checks run. Order and texts: dynalite validations/*.js,
docs/protocols/dynamodb.md rules 9 to 26.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tablegate.adapters.dynamodb.expressions.request_clauses import WriteClauses
from tablegate.adapters.dynamodb.validation import expression_rules
from tablegate.adapters.dynamodb.validation.expression_rules import (
    check_parameters,
    check_placeholders,
    checked_values,
)
from tablegate.adapters.dynamodb.values import values
from tablegate.adapters.dynamodb.values.scalars import InvalidValue
from tablegate.adapters.dynamodb.wire import error_texts, limits
from tablegate.adapters.dynamodb.wire.errors import (
    NUMBERS_AND_DUPLICATES,
    ConstraintViolation,
    ErrorTexts,
    RuleContext,
    ServiceError,
    constraint_error,
    validation,
)

Input = dict[str, Any]


_PLAIN = frozenset({"TableName", "Key", "ReturnConsumedCapacity"})
_PLACEHOLDERS = frozenset({"ExpressionAttributeNames", "ExpressionAttributeValues"})
_PLAIN_PUT = frozenset({"TableName", "Item", "ReturnConsumedCapacity", "ReturnItemCollectionMetrics"})
_PLAIN_DELETE = _PLAIN | {"ReturnItemCollectionMetrics", "ReturnValuesOnConditionCheckFailure"}
_PLAIN_GET = _PLAIN | {"ConsistentRead"}
_PLAIN_UPDATE = _PLAIN | {"ConditionExpression", "ReturnValues", "UpdateExpression"} | _PLACEHOLDERS
_PLAIN_QUERY = _PLACEHOLDERS | {
    "TableName",
    "IndexName",
    "ConsistentRead",
    "Limit",
    "ReturnConsumedCapacity",
    "ScanIndexForward",
    "FilterExpression",
    "KeyConditionExpression",
    "ProjectionExpression",
}


# Writes of one item


def put_item(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for a PutItem that violates a rule that needs no table."""
    if context.good and data.keys() <= _PLAIN_PUT:
        if values.is_too_large(data["Item"].size_bytes):
            raise context.refused("item-size")
        return
    check_parameters(data, context, ("ConditionExpression",), ("Expected", "ConditionalOperator"))
    if not context.good:
        checked_values(context, lambda: _parsed_item(data))
    if "ReturnValues" in data:
        _plain_return_values(data, context)
    if values.is_too_large(data["Item"].size_bytes):
        raise context.refused("item-size")
    _finish_conditional(data, context)


def _parsed_item(put: Input) -> values.ParsedItem:
    """Return the parsed item of a put, and replace the wire item in the put by it.

    Only the fast validator and PartiQL make items elsewhere. Raises the same errors as `values.item_of`.
    """
    item = put["Item"] = values.item_of(put["Item"])
    return item


def delete_item(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for a DeleteItem that violates a rule that needs no table."""
    if context.good and data.keys() <= _PLAIN_DELETE:
        return
    check_parameters(data, context, ("ConditionExpression",), ("Expected", "ConditionalOperator"))
    _key(data, context)
    _plain_return_values(data, context)
    _finish_conditional(data, context)


def update_item(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for an UpdateItem that violates a rule that needs no table."""
    if context.good and "UpdateExpression" in data and data.keys() <= _PLAIN_UPDATE:
        check_placeholders(data, context)  # nothing else can be wrong with these members
        return
    check_parameters(
        data,
        context,
        ("UpdateExpression", "ConditionExpression"),
        ("AttributeUpdates", "Expected", "ConditionalOperator"),
    )
    _key(data, context)
    updates = data.get("AttributeUpdates")
    if updates:
        checked_values(context, lambda: expression_rules.check_attribute_updates(updates))
    _finish_conditional(data, context)


def _finish_conditional(data: Input, context: RuleContext) -> None:
    if "Expected" in data:
        expected = data["Expected"]
        checked_values(context, lambda: expression_rules.check_expected(expected))
    if "ConditionalOperator" in data:
        _conditional_operator(data, "Expected")
    check_placeholders(data, context)


def _plain_return_values(data: Input, context: RuleContext) -> None:
    if data.get("ReturnValues", "NONE") not in ("NONE", "ALL_OLD"):
        raise context.refused("return-values")


def _key(data: Input, context: RuleContext) -> None:
    if context.good:
        return
    try:
        values.measure_members(data["Key"])
    except InvalidValue as refusal:
        text = refusal.text(context)
        if refusal.rule in _FRAMED_IN_KEYS:
            raise context.framed(refusal.rule, text) from None
        raise validation(text) from None


# In keys only these rules have a frame (dynoxide, captured; numbers and duplicates: paritysuite, October 2026).
_FRAMED_IN_KEYS = NUMBERS_AND_DUPLICATES | {"null-false"}


# Reads


def get_item(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for a GetItem that violates a rule that needs no table."""
    if context.good and data.keys() <= _PLAIN_GET:
        return
    check_parameters(data, context, ("ProjectionExpression",), ("AttributesToGet",))
    _key(data, context)
    expression_rules.check_attributes_to_get(data)
    check_placeholders(data, context)


def query(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for a Query that violates a rule that needs no table."""
    if context.good and "KeyConditionExpression" in data and data.keys() <= _PLAIN_QUERY:
        check_placeholders(data, context)  # nothing else can be wrong with these members
        return
    legacy: tuple[str, ...] = ("AttributesToGet", "QueryFilter", "ConditionalOperator", "KeyConditions")
    if "KeyConditions" in data and "KeyConditionExpression" not in data:
        legacy = legacy[:3]  # KeyConditions may be combined with the other expressions
    expressions = ("ProjectionExpression", "FilterExpression", "KeyConditionExpression")
    check_parameters(data, context, expressions, legacy)
    _legacy_conditions(data, "QueryFilter", context)
    _conditional_operator(data, "QueryFilter")
    expression_rules.check_attributes_to_get(data)
    _start_key(data, context)
    if "KeyConditions" not in data and "KeyConditionExpression" not in data:
        raise context.refused("no-key-condition")
    _select(data, context)
    check_placeholders(data, context)
    if "KeyConditionExpression" not in data:
        _legacy_conditions(data, "KeyConditions", context)
        if not data["KeyConditions"]:
            raise context.refused("condition-count")


def scan(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for a Scan that violates a rule that needs no table."""
    legacy = ("AttributesToGet", "ScanFilter", "ConditionalOperator")
    check_parameters(data, context, ("ProjectionExpression", "FilterExpression"), legacy)
    expression_rules.check_attributes_to_get(data)
    _legacy_conditions(data, "ScanFilter", context)
    _conditional_operator(data, "ScanFilter")
    _start_key(data, context)
    _segments(data, context)
    _select(data, context)
    check_placeholders(data, context)


def _legacy_conditions(data: Input, member: str, context: RuleContext) -> None:
    if member in data:
        checked_values(context, lambda: expression_rules.check_conditions(data[member]))


def _conditional_operator(data: Input, partner: str) -> None:
    """ConditionalOperator needs at least two conditions.

    Sources: paritysuite, ten regions, October 2026. ExtendDB's tests against the service have text and order.
    """
    if "ConditionalOperator" in data:
        count = len(data.get(partner, ()))
        if count < 2:
            raise validation(error_texts.bare("operator-with-one" if count else "operator-without-expected"))


def _segments(data: Input, context: RuleContext) -> None:
    segment, total = data.get("Segment"), data.get("TotalSegments")
    if total is None:
        if segment is not None:
            raise context.refused("total-segments-missing")
    elif segment is None:
        raise context.refused("segment-missing")
    elif segment >= total:
        raise context.refused("segment-range", segment=segment, total=total)


def _select(data: Input, context: RuleContext) -> None:
    """Check Select against the projection (rule 20). The projection of an index is checked later, with the table."""
    select = data.get("Select")
    if select is None:
        return
    if select != "SPECIFIC_ATTRIBUTES":
        select_text = "only the Count" if select == "COUNT" else select
        if "AttributesToGet" in data:
            raise context.refused("select-attributes", select=select_text)
        if "ProjectionExpression" in data:
            raise context.refused("select-projection", select=select_text)
    elif "AttributesToGet" not in data and "ProjectionExpression" not in data:
        raise context.refused("select-nothing")
    if select == "ALL_PROJECTED_ATTRIBUTES" and "IndexName" not in data:
        raise context.refused("select-projected")


# These texts have no frame in the captures. The reason is unknown.
_BARE_IN_START_KEYS = NUMBERS_AND_DUPLICATES | {"empty-number-set", "null-in-number-set"}


def _start_key(data: Input, context: RuleContext) -> None:
    key = data.get("ExclusiveStartKey")
    if key is None or context.good:
        return
    try:
        values.measure_members(key)
    except InvalidValue as refusal:
        text = refusal.text(context)
        if refusal.rule not in _BARE_IN_START_KEYS:
            text = error_texts.bare("start-key", text=text)
        raise validation(text) from None


# Batches and transactions


def batch_get(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for a BatchGetItem that violates a rule that needs no table."""
    requests = data["RequestItems"]
    if sum(len(request["Keys"]) for request in requests.values()) > limits.BATCH_GET_KEYS:
        table = max(requests, key=lambda name: len(requests[name]["Keys"]))
        raise _too_long(f"RequestItems.{table}.member.Keys", limits.BATCH_GET_KEYS)
    # The two kinds of projections exclude each other within one request too (paritysuite batchGetItem.test.ts).
    all_members = {name: member for request in requests.values() for name, member in request.items()}
    check_parameters(all_members, context, ("ProjectionExpression",), ("AttributesToGet",))
    for request in requests.values():
        check_parameters(request, context, ("ProjectionExpression",), ("AttributesToGet",))
        expression_rules.check_attributes_to_get(request)
        check_placeholders(request, context)
        if request.get("ProjectionExpression") == "":  # reported before the keys are checked
            raise context.refused("expression-empty", name="ProjectionExpression")
        _distinct_keys(request["Keys"], context)


def _distinct_keys(keys: list[Input], context: RuleContext) -> None:
    fingerprints = set()
    for key in keys:
        if not context.good:
            checked_values(context, partial(values.measure_members, key))
        # In canonical form equal keys have equal texts.
        fingerprint = frozenset(
            (name, *next(iter(member.items()))) for name, member in key.items() if _scalar(member)
        )
        if len(fingerprint) == len(key) and fingerprint in fingerprints:
            raise context.refused("duplicate-keys")
        fingerprints.add(fingerprint)


def _scalar(member: Input) -> bool:
    return not isinstance(next(iter(member.values())), (list, dict))


def batch_write(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for a BatchWriteItem that violates a rule that needs no table.

    Duplicate keys are found with the key schema. The shape limits the length of each list.
    """
    requests = data["RequestItems"]
    if not requests:
        raise context.refused("request-items-required", name="BatchWriteItem")
    total = sum(map(len, requests.values()))
    if total > limits.BATCH_WRITE_REQUESTS:
        raise context.refused("too-many-writes")
    for writes in requests.values():
        if any(len(write) != 1 for write in writes):
            raise context.refused("several-types")
        for write in writes:
            try:
                _batched_write(write, context)
            except InvalidValue as refusal:
                raise validation(refusal.text(context)) from None


def _batched_write(write: Input, context: RuleContext) -> None:
    put = write.get("PutRequest")
    if put is not None:
        if values.is_too_large(_parsed_item(put).size_bytes):
            raise context.refused("item-size")
    elif not context.good:
        values.measure_members(write["DeleteRequest"]["Key"])


def transact_get(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for a TransactGetItems that violates a rule that needs no table."""
    for action in data["TransactItems"]:
        get = action["Get"]
        check_parameters(get, context, ("ProjectionExpression",), ())
        _key(get, context)
        check_placeholders(get, context)


_EXPRESSIONS_OF = {
    "ConditionCheck": ("ConditionExpression",),
    "Put": ("ConditionExpression",),
    "Delete": ("ConditionExpression",),
    "Update": ("UpdateExpression", "ConditionExpression"),
}


def transact_write(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for a TransactWriteItems that violates a rule that needs no table."""
    for action in data["TransactItems"]:
        if len(action) != 1:
            raise context.refused("not-one-action")
    payload = 0
    actions = [next(iter(action.items())) for action in data["TransactItems"]]
    for place, (kind, write) in enumerate(actions):
        try:
            payload += _transact_action(kind, write, context)
        except ServiceError:
            # The error of the first invalid action is reported. Errors in earlier expressions are found only
            # here, because handlers parse them later.
            for _, earlier in actions[:place]:
                WriteClauses.check(earlier, context)
            raise
    if payload > limits.TRANSACTION_BYTES:
        raise context.refused("payload-size")


def _transact_action(kind: str, write: Input, context: RuleContext) -> int:
    """Check an action as far as no table is needed, and return the bytes that it adds to the payload.

    Errors in the action's expressions precede a value that is nested too deep (paritysuite deepRequests.test.ts,
    ten regions, 2026-10-09).
    """
    check_parameters(write, context, _EXPRESSIONS_OF[kind], ())
    try:
        if kind == "Put":
            size = _parsed_item(write).size_bytes
        else:
            size = values.measure_members(write["Key"])
    except InvalidValue as refusal:
        if refusal.rule == "nesting":
            check_placeholders(write, context)
            WriteClauses.check(write, context)
        raise validation(refusal.text(context)) from None
    if values.is_too_large(size):
        raise context.refused("item-size")
    check_placeholders(write, context)
    return size + values.measure_members(write.get("ExpressionAttributeValues", {}))


def _too_long(path: str, limit: int) -> ServiceError:
    violation = ConstraintViolation(
        path, path, "", "maximum", f"Member must have length less than or equal to {limit}"
    )
    return constraint_error(ErrorTexts("BatchGetItem"), [violation])
