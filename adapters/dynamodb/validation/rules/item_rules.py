"""What the members of item requests mean together, as far as no table is needed to tell, in the service's order.

Knows which parameters exclude each other, and where in the order attribute values and legacy parameters are looked at. Knows
no grammar: expressions are parsed by whoever handles the request, and here only where a transaction is refused anyway, to
find out whether an earlier expression is wrong.

Each rule gets (input, context). Where the fast validator has checked attribute values of maps already (`RuleContext.good`), only
those that it does not look at one by one are left. Order and texts: dynalite validations/*.js, docs/protocols/dynamodb.md
rules 9 to 26.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tablegate.adapters.dynamodb.expressions.request_clauses import WriteClauses
from tablegate.adapters.dynamodb.validation.rules import legacy_rules
from tablegate.adapters.dynamodb.validation.rules.expression_rules import (
    check_parameters,
    check_placeholders,
    checked_values,
)
from tablegate.adapters.dynamodb.validation.rules.rule_context import RuleContext
from tablegate.adapters.dynamodb.values import values
from tablegate.adapters.dynamodb.values.scalars import InvalidValue
from tablegate.adapters.dynamodb.wire import limits, messages
from tablegate.adapters.dynamodb.wire.constraint_messages import ConstraintViolation, constraint_error
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.adapters.dynamodb.wire.wording import NUMBERS_AND_DUPLICATES, Wording

Input = dict[str, Any]


_PLAIN = frozenset({"TableName", "Key", "ReturnConsumedCapacity"})
_PLACEHOLDERS = frozenset({"ExpressionAttributeNames", "ExpressionAttributeValues"})
_PLAIN_PUT = frozenset({"TableName", "Item", "ReturnConsumedCapacity", "ReturnItemCollectionMetrics"})
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
UNRULED: dict[str, frozenset[str]] = {
    "GetItem": _PLAIN | {"ConsistentRead"},
    "DeleteItem": _PLAIN | {"ReturnItemCollectionMetrics", "ReturnValuesOnConditionCheckFailure"},
}
"""Operation -> members that its rule does not look at where the fast validator has found them good."""


# Writes of one item


def put_item(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for a PutItem whose members or values break a rule that needs no table."""
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
    """The parsed item of a put, which stands in the put in place of the wire item from now on. Besides here, only the fast
    validator and PartiQL make items. Raises as `values.item_of` does."""
    item = put["Item"] = values.item_of(put["Item"])
    return item


def delete_item(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for a DeleteItem whose members or values break a rule that needs no table."""
    check_parameters(data, context, ("ConditionExpression",), ("Expected", "ConditionalOperator"))
    _key(data, context)
    _plain_return_values(data, context)
    _finish_conditional(data, context)


def update_item(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for an UpdateItem whose members or values break a rule that needs no table."""
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
        checked_values(context, lambda: legacy_rules.check_attribute_updates(updates))
    _finish_conditional(data, context)


def _finish_conditional(data: Input, context: RuleContext) -> None:
    if "Expected" in data:
        expected = data["Expected"]
        checked_values(context, lambda: legacy_rules.check_expected(expected))
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


# Of keys, no other family has a frame (dynoxide, captured; numbers and duplicates: paritysuite, October 2026).
_FRAMED_IN_KEYS = NUMBERS_AND_DUPLICATES | {"null-false"}


# Reads


def get_item(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for a GetItem whose members or values break a rule that needs no table."""
    check_parameters(data, context, ("ProjectionExpression",), ("AttributesToGet",))
    _key(data, context)
    legacy_rules.check_attributes_to_get(data)
    check_placeholders(data, context)


def query(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for a Query whose members or values break a rule that needs no table."""
    if context.good and "KeyConditionExpression" in data and data.keys() <= _PLAIN_QUERY:
        check_placeholders(data, context)  # nothing else can be wrong with these members
        return
    legacy: tuple[str, ...] = ("AttributesToGet", "QueryFilter", "ConditionalOperator", "KeyConditions")
    if "KeyConditions" in data and "KeyConditionExpression" not in data:
        legacy = legacy[:3]  # KeyConditions go with the other expressions
    expressions = ("ProjectionExpression", "FilterExpression", "KeyConditionExpression")
    check_parameters(data, context, expressions, legacy)
    _legacy_conditions(data, "QueryFilter", context)
    _conditional_operator(data, "QueryFilter")
    legacy_rules.check_attributes_to_get(data)
    _start_key(data, context)
    if "KeyConditions" not in data and "KeyConditionExpression" not in data:
        raise context.refused("no-key-condition")
    _select(data, context)
    check_placeholders(data, context)
    if "KeyConditionExpression" not in data:
        _legacy_conditions(data, "KeyConditions", context)
        # Of an index, whose key may have eight attributes, what is too many takes the schema, as it does today of all.
        most = 2 if context.is_classic and "IndexName" not in data else len(data["KeyConditions"])
        if not 1 <= len(data["KeyConditions"]) <= most:
            raise context.refused("condition-count")


def scan(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for a Scan whose members or values break a rule that needs no table."""
    legacy = ("AttributesToGet", "ScanFilter", "ConditionalOperator")
    check_parameters(data, context, ("ProjectionExpression", "FilterExpression"), legacy)
    legacy_rules.check_attributes_to_get(data)
    _legacy_conditions(data, "ScanFilter", context)
    _conditional_operator(data, "ScanFilter")
    _start_key(data, context)
    _segments(data, context)
    _select(data, context)
    check_placeholders(data, context)


def _legacy_conditions(data: Input, member: str, context: RuleContext) -> None:
    if member in data:
        checked_values(context, lambda: legacy_rules.check_conditions(data[member]))


def _conditional_operator(data: Input, partner: str) -> None:
    """ConditionalOperator joins two conditions or more (paritysuite, ten regions, October 2026; ExtendDB's tests against the
    service have text and order)."""
    if "ConditionalOperator" in data:
        count = len(data.get(partner, ()))
        if count < 2:
            raise validation(messages.bare("operator-with-one" if count else "operator-without-expected"))


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
    """Select against the projection (rule 20). Whether an index projects what is wanted needs the table."""
    select = data.get("Select")
    if select is None:
        return
    if select != "SPECIFIC_ATTRIBUTES":
        wanted = "only the Count" if select == "COUNT" else select
        if "AttributesToGet" in data:
            raise context.refused("select-attributes", select=wanted)
        if "ProjectionExpression" in data:
            raise context.refused("select-projection", select=wanted)
    elif "AttributesToGet" not in data and "ProjectionExpression" not in data:
        raise context.refused("select-nothing")
    if select == "ALL_PROJECTED_ATTRIBUTES" and "IndexName" not in data:
        raise context.refused("select-projected")


# These texts stand without a frame in the captures; no reason for it is known.
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
            text = messages.bare("start-key", text=text)
        raise validation(text) from None


# Batches and transactions


def batch_get(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for a BatchGetItem whose members or values break a rule that needs no table."""
    requests = data["RequestItems"]
    if sum(len(request["Keys"]) for request in requests.values()) > limits.BATCH_GET_KEYS:
        if context.is_classic:
            raise context.refused("too-many-gets")
        table = max(requests, key=lambda name: len(requests[name]["Keys"]))
        raise _too_long(f"RequestItems.{table}.member.Keys", limits.BATCH_GET_KEYS)
    # Projections of two kinds do not go together in one request either (paritysuite batchGetItem.test.ts).
    given = {name: member for request in requests.values() for name, member in request.items()}
    check_parameters(given, context, ("ProjectionExpression",), ("AttributesToGet",))
    for request in requests.values():
        check_parameters(request, context, ("ProjectionExpression",), ("AttributesToGet",))
        legacy_rules.check_attributes_to_get(request)
        check_placeholders(request, context)
        if request.get("ProjectionExpression") == "":  # told before the keys are looked at
            raise context.refused("expression-empty", name="ProjectionExpression")
        _distinct_keys(request["Keys"], context)


def _distinct_keys(keys: list[Input], context: RuleContext) -> None:
    seen = set()
    for key in keys:
        if not context.good:
            checked_values(context, partial(values.measure_members, key))
        # In canonical form equal keys have equal texts.
        print_of = frozenset(
            (name, *next(iter(member.items()))) for name, member in key.items() if _scalar(member)
        )
        if len(print_of) == len(key) and print_of in seen:
            raise context.refused("duplicate-keys")
        seen.add(print_of)


def _scalar(member: Input) -> bool:
    return not isinstance(next(iter(member.values())), (list, dict))


def batch_write(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for a BatchWriteItem whose members or values break a rule that needs no table. Whether two requests
    name one item takes the key schema, and the length of each list is its shape's."""
    requests = data["RequestItems"]
    if not requests:
        raise context.refused("request-items-required", name="BatchWriteItem")
    total = sum(map(len, requests.values()))
    if total > limits.BATCH_WRITE_REQUESTS:
        raise context.refused("too-many-writes")
    for writes in requests.values():
        if any(len(write) != 1 for write in writes):
            raise context.refused("not-one-request")
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
    """Raise ServiceError for a TransactGetItems whose members or values break a rule that needs no table."""
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
    """Raise ServiceError for a TransactWriteItems whose members or values break a rule that needs no table."""
    for action in data["TransactItems"]:
        if len(action) != 1:
            raise context.refused("not-one-action")
    payload = 0
    actions = [next(iter(action.items())) for action in data["TransactItems"]]
    for place, (kind, write) in enumerate(actions):
        try:
            payload += _transact_action(kind, write, context)
        except ServiceError:
            # The first action with a problem is told of, whatever the problem is, and expressions are read by the handler.
            for _, earlier in actions[:place]:
                WriteClauses.check(earlier, context)
            raise
    if payload > limits.TRANSACTION_BYTES:
        raise context.refused("payload-size")


def _transact_action(kind: str, write: Input, context: RuleContext) -> int:
    """Check an action as far as no table is needed, and return the bytes that it adds to the payload. A value that is nested
    too deep is told after what is wrong with the action's expressions (paritysuite deepRequests.test.ts, ten regions,
    2026-10-09)."""
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
    broken = ConstraintViolation(
        path, path, "", "maximum", f"Member must have length less than or equal to {limit}"
    )
    return constraint_error(Wording("BatchGetItem"), [broken])
