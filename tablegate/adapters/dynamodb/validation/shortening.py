"""Shortening of long lists and maps to one member more than allowed, before they are validated."""

from __future__ import annotations

from itertools import islice
from typing import Any

from tablegate.adapters.dynamodb.validation.schemas.schema_types import (
    ITEM,
    AttributeValue,
    Mapping,
    Sequence,
    Shape,
    Structure,
)
from tablegate.adapters.dynamodb.wire import limits
from tablegate.gateway.model.values.json_texts import contains, count

# Before a request is validated


def shorten(shape: Shape, data: Any) -> None:
    """Drop excess members of lists and maps in place. One member more than allowed remains.

    So rejecting a long list costs no more than detecting that it is too long. Items are bounded by their bytes
    (values.py).
    """
    match shape:
        case Structure() if isinstance(data, dict):
            for name, member in shape.members.items():
                part = data.get(name)
                maximum = _MEMBERS_MAX.get(name)
                if maximum is not None and isinstance(part, dict):
                    _drop_members(part, maximum)
                if part and not isinstance(member, AttributeValue) and member != ITEM:
                    shorten(member, part)
        case Sequence() if isinstance(data, list):
            maximum = _VALUES_MAX if isinstance(shape.of, AttributeValue) else limits.LIST_MEMBERS
            del data[(shape.maximum or maximum) + 1 :]
            if isinstance(shape.of, Structure):
                for part in data:
                    shorten(shape.of, part)
            elif shape.of == ITEM:
                for part in data:
                    if isinstance(part, dict):
                        _drop_members(part, limits.LIST_MEMBERS)
        case Mapping() if isinstance(shape.of, Structure | Sequence) and isinstance(data, dict):
            for part in data.values():
                if shape.lengths is not None and isinstance(part, list):
                    del part[shape.lengths[1] + 1 :]
                shorten(shape.of, part)


def member_limits(shape: Structure) -> dict[str, int]:
    """Return the maximum numbers of members of a request's maps and lists. For RequestItems: of a table."""
    maxima = {}
    for name, member in shape.members.items():
        if isinstance(member, Sequence) and member.maximum:
            maxima[name] = member.maximum
        elif isinstance(member, Mapping) and isinstance(member.of, Sequence) and member.lengths is not None:
            maxima[name] = member.lengths[1]
        elif name in _MEMBERS_MAX and name != "RequestItems":
            maxima[name] = _MEMBERS_MAX[name]
    return maxima


def exceeds_limits(text: bytes, operation: str, billed_bytes: int | None) -> bool:
    """True if JSON certainly exceeds the operation's limits, by a count that allocates nothing.

    Each comma and each brace belongs to a member that is billed as at least one byte, or is a billed byte of a
    text. A number has two bytes more (docs/protocols/dynamodb.md rule 25). So the count never exceeds the
    measured size.
    """
    if operation == "BatchWriteItem":
        puts = 0 if contains(text, b"\\u") else count(text, b"PutRequest")
        billed_bytes = (puts or limits.BATCH_WRITE_REQUESTS) * PUT_BYTES + OTHER_BYTES
    if billed_bytes is None or len(text) <= billed_bytes:
        return False
    counted = max(count(text, b"{"), count(text, b",")) + 2 * count(text, b'"N":')
    if billed_bytes < counted <= billed_bytes + limits.PLACEHOLDER_VALUES_BYTES:
        return not any(contains(text, mark) for mark in (b"\\u", *_WITH_VALUES))
    return counted > billed_bytes


OTHER_BYTES = 100_000
"""Bytes besides attribute values: names, expressions, legacy conditions."""
PUT_BYTES = limits.ITEM_BYTES + 20_000
# Members with attribute values besides those of an item or a key, the most expensive to refuse first.
_WITH_VALUES = (b"Filter", b"Updates", b"Values", b"Expected", b"Conditions")


def _drop_members(data: dict[str, Any], members_max: int) -> None:
    if len(data) > members_max:
        first_members = [*islice(data.items(), members_max + 1)]
        data.clear()
        data.update(first_members)


_MEMBERS_MAX = {
    "AttributeUpdates": limits.LEGACY_CONDITIONS,
    "Expected": limits.LEGACY_CONDITIONS,
    "ExclusiveStartKey": limits.LIST_MEMBERS,
    "ExpressionAttributeNames": limits.PLACEHOLDERS,
    "ExpressionAttributeValues": limits.PLACEHOLDERS,
    "Key": limits.LIST_MEMBERS,
    "KeyConditions": limits.LIST_MEMBERS,
    "QueryFilter": limits.LEGACY_CONDITIONS,
    "RequestItems": limits.BATCH_GET_KEYS,
    "ScanFilter": limits.LEGACY_CONDITIONS,
}
# For lists of attribute values: in legacy parameters, and for a statement, which cannot have more characters.
_VALUES_MAX = max(limits.LEGACY_VALUES, limits.STATEMENT_CHARACTERS)
