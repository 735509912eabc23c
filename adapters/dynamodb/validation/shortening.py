"""Long lists and maps of a request are cut to one member more than it may have, before they are looked at."""

from __future__ import annotations

from itertools import islice
from typing import Any

from adapters.dynamodb.validation.schema_types import (
    ITEM,
    AttributeValue,
    Mapping,
    Sequence,
    Shape,
    Structure,
)
from adapters.dynamodb.wire import limits


def shorten(shape: Shape, data: Any) -> None:
    """Drop from lists and maps, in place, what is more than one member beyond what a request may have, so that a long list
    costs no more than it takes to say that it is too long. Items are bounded by their bytes (values.py)."""
    match shape:
        case Structure() if isinstance(data, dict):
            for name, member in shape.members.items():
                part = data.get(name)
                most = _MOST_MEMBERS.get(name)
                if most is not None and isinstance(part, dict):
                    _drop_members(part, most)
                if part and not isinstance(member, AttributeValue) and member != ITEM:
                    shorten(member, part)
        case Sequence() if isinstance(data, list):
            most = _MOST_VALUES if isinstance(shape.of, AttributeValue) else limits.LIST_MEMBERS
            del data[(shape.maximum or most) + 1 :]
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


def _drop_members(data: dict[str, Any], most: int) -> None:
    if len(data) > most:
        kept = [*islice(data.items(), most + 1)]
        data.clear()
        data.update(kept)


_MOST_MEMBERS = {
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
# Of lists of attribute values: in the parameters from before expressions, and for a statement, which has no more characters.
_MOST_VALUES = max(limits.LEGACY_VALUES, limits.STATEMENT_CHARACTERS)
