"""Shortening of very long maps and lists in a request's JSON, before it is parsed.

Parsing 10 MB of small members takes 300 ms and hundreds of megabytes. Finding the end of such a map takes 60 to
100 ms and no memory. One member more than allowed remains, as after `shortening.shorten`, so the answer is the
same.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import accumulate, islice
from typing import Any

import orjson

from tablegate.gateway.model.values.json_texts import count
from tablegate.gateway.request_bodies import has_at_most

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


def parse(text: bytes, members_max: dict[str, int]) -> Any:
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
