"""Shortening of long lists and maps to one member more than allowed: while a large request is parsed, and before it is
validated.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import accumulate, islice
from typing import Any

import orjson

from tablegate.adapters.dynamodb.validation.shapes import (
    ITEM,
    AttributeValue,
    Mapping,
    Sequence,
    Shape,
    Structure,
)
from tablegate.adapters.dynamodb.wire import limits
from tablegate.gateway.http.request_bodies import has_at_most
from tablegate.gateway.model.values.bodies import contains, count

# While a request is parsed


MIN_BYTES = 1 << 20
"""Shorter texts are parsed unchanged, in 40 ms at most."""
# With fewer of these marks, parsing is faster than shortening.
_PART_MARKS, _BYTES_PER_PART = (b'"', b"{", b"["), 10
_OCCURRENCES = 8  # of a name in the text: it may also be an attribute name or a value
_COUNTED_MARKS = 500_000  # with more quotation marks, counting the text between them takes as long as parsing
# Without backtracking, so that each byte is read once. Members that are dropped are not checked further.
_BLANKS = rb"[ \t\r\n]*+"
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_LEVELS = 4  # of {"Put":{"TableName":"a","Item":{"b":{"S":"1"}}}}


def _value(levels: int) -> bytes:
    scalar = rb"(?:%s|[-+.0-9A-Za-z]++)" % _STRING
    if not levels:
        return scalar
    value = _value(levels - 1)
    members = rb"(?:%s:%s%s%s,?+%s)*+" % (_STRING + _BLANKS, _BLANKS, value, _BLANKS, _BLANKS)
    values = rb"(?:%s%s,?+%s)*+" % (value, _BLANKS, _BLANKS)
    return rb"(?:%s|\{%s%s\}|\[%s%s\])" % (scalar, _BLANKS, members, _BLANKS, values)


_ELEMENT = _value(_LEVELS) + _BLANKS
_MEMBER = rb"%s:%s%s" % (_STRING + _BLANKS, _BLANKS, _ELEMENT)
_PARTS = {b"{": (_MEMBER, rb"\}"), b"[": (_ELEMENT, rb"\]")}


@cache
def _beginning(name: str) -> re.Pattern[bytes]:
    """Match the name and the bracket. For RequestItems, match the list of its first table."""
    table = rb"\{%s%s:%s" % (_BLANKS, _STRING + _BLANKS, _BLANKS) if name == "RequestItems" else b""
    return re.compile(rb'"%s"%s:%s%s([{\[])%s' % (name.encode(), _BLANKS, _BLANKS, table, _BLANKS), re.DOTALL)


@cache
def _first(bracket: bytes, count: int) -> re.Pattern[bytes]:
    part, _ = _PARTS[bracket]
    return re.compile(rb"(?:%s,%s){%d}%s" % (part, _BLANKS, count - 1, part), re.DOTALL)


@cache
def _remaining_parts(bracket: bytes) -> re.Pattern[bytes]:
    part, end = _PARTS[bracket]
    return re.compile(rb"(?:,%s%s)*+%s" % (_BLANKS, part, end), re.DOTALL)


def parse_shortened(text: bytes, members_max: dict[str, int]) -> Any:
    """Parse a request. `members_max`: the maximum number of members for each member that is a map or list.

    Raises the exceptions of orjson.loads, and ValueError for more objects and lists than a request can have.
    """
    if len(text) >= MIN_BYTES and _has_many_parts(text):
        shorter = text
        for name, count in members_max.items():
            shorter = _shorten_member(shorter, name, count + 1)
        if len(shorter) < len(text):
            body = _parsed_or_none(shorter)
            if isinstance(body, dict) and any(
                _size(name, body) > count for name, count in members_max.items()
            ):
                return body
        if _has_too_few_strings(text):
            raise ValueError("more objects and lists than strings allow")
    return orjson.loads(text)


def _has_many_parts(text: bytes) -> bool:
    """True if shortening is faster than parsing. The counts stop when they suffice, mostly after the quotation marks."""
    counted = accumulate(count(text, mark) for mark in _PART_MARKS)
    return any(number > len(text) // _BYTES_PER_PART for number in counted)


def _parsed_or_none(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _size(name: str, body: dict[str, Any]) -> int:
    value = body.get(name)
    if name == "RequestItems" and isinstance(value, dict):
        value = next(iter(value.values()), None)
    return len(value) if isinstance(value, dict | list) else 0


def _shorten_member(text: bytes, name: str, count: int) -> bytes:
    """Return the text without the members after the first `count` of a map or list, if it has more."""
    for opening in islice(_beginning(name).finditer(text), _OCCURRENCES):
        first = _first(opening[1], count).match(text, opening.end())
        others = _remaining_parts(opening[1]).match(text, first.end()) if first is not None else None
        if first is not None and others is not None:
            return text[: first.end()] + text[others.end() - 1 :]
    return text


def _has_too_few_strings(text: bytes) -> bool:
    """True if there are more objects, arrays and members than this number of strings allows, as in a list of `{}`.

    Each object of a request has a name, except an empty map, but its type has one. Each member of a list is an
    object or a string. So at most three of `{`, `[` and `,` come with the two quotation marks of a string.
    """
    quotation_marks = count(text, b'"')
    return quotation_marks <= _COUNTED_MARKS and not has_at_most(2 * quotation_marks + 100, text)


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
