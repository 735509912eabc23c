"""DynamoDB's attribute values as the gateway's Values and back, and items as canonical body bytes.

Rules: docs/protocols/dynamodb.md rules 21 to 25. The caller adds the frame of error texts. `measure` does all checks in
one pass: it converts decoded JSON to canonical form in place and returns its billed size.
"""

from __future__ import annotations

import math
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

import orjson

from tablegate.adapters.dynamodb.values import scalars
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.error_texts import json_type
from tablegate.adapters.dynamodb.wire.errors import serialization
from tablegate.gateway.model import fast_paths
from tablegate.gateway.model.values import bodies
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import (
    CANONICAL_NUMBER,
    Kind,
    Value,
    decimal_fits,
    equal,
    number_of_double,
)

# Wire -> canonical


class ParsedItem(dict[str, Any]):
    """A checked wire item in canonical form, with its contents."""

    __slots__ = ("contents", "size_bytes")

    contents: Contents
    size_bytes: int


def item_of(wire: Mapping[str, Any]) -> ParsedItem:
    """Check an item in one pass and convert `wire` to canonical form in place. The item size limit is not checked.

    Raises InvalidValue, or ServiceError SerializationException for a wrong JSON type.
    """
    if type(wire) is ParsedItem:
        return wire
    try:
        size = measure_named(wire, 0)
    except scalars.InvalidValue as refusal:
        raise _first_error(wire, refusal) from None
    item = ParsedItem(wire)
    item.size_bytes = size
    item.contents = Contents(orjson.dumps(wire), None, size)
    return item


def is_too_large(size_bytes: int) -> bool:
    """True if a size exceeds the item size limit (docs/protocols/dynamodb.md rule 25)."""
    return size_bytes > limits.ITEM_BYTES


def value_of(wire: Any) -> Value:
    """Return the value of a wire AttributeValue, fully checked. Raises the same errors as `item_of`."""
    if type(wire) is dict and len(wire) == 1:
        data = wire.get("S")
        if type(data) is str:
            return Value(Kind.TEXT, data)
    measure(wire, 0)
    return bodies.untagged(wire)


def measure_members(wire: Mapping[str, Any]) -> int:
    """Check named attribute values (an item, a key), convert them to canonical form in place, and return their
    billed bytes.

    Raises the same errors as `item_of`.
    """
    try:
        return measure_named(wire, 0, limits.PLACEHOLDER_VALUES_BYTES)
    except scalars.InvalidValue as refusal:
        raise _first_error(wire, refusal) from None


def _first_error(wire: Mapping[str, Any], refusal: scalars.InvalidValue) -> scalars.InvalidValue:
    """Return the error to report for a rejected item.

    The service checks all top-level names first, then the depth, and then nested names (paritysuite
    deepRequests.test.ts, ten regions, 2026-10-09).
    """
    if refusal.rule == "nesting" and "" in wire:
        return scalars.InvalidValue("empty-name")
    if refusal.rule == "empty-name" and "" not in wire and _is_too_deep(wire):
        return scalars.InvalidValue("nesting")
    return refusal


def _is_too_deep(wire: Mapping[str, Any]) -> bool:
    """True if some document of an item is nested too deep. The search stops below that level."""
    level, holders = 0, list(wire.values())
    while holders and level <= limits.NESTING_LEVELS:
        level += 1
        documents = [
            document
            for holder in holders
            if isinstance(holder, dict)
            for document in (holder.get("M"), holder.get("L"))
            if document
        ]
        holders = [
            member
            for document in documents
            for member in (document.values() if isinstance(document, dict) else document)
        ]
    return level > limits.NESTING_LEVELS


def measure_named(wire: Mapping[str, Any], level: int, bytes_max: int = limits.MEASURED_BYTES) -> int:
    """Check named attribute values, convert them to canonical form in place, and return their billed bytes.

    `level`: number of documents around them. Raises ValueTooLarge above `bytes_max`, and the first error found.
    `measure_members` and `item_of` choose the error to report.
    """
    size = 0
    members = wire.items()  # raises for other types than dictionaries
    if len(members) > bytes_max:
        raise scalars.ValueTooLarge  # every name but one has at least one byte
    for name, member in members:
        size += _name_bytes[name]
        try:
            (tag,) = member
            data = member[tag]
            if tag == "S" and type(data) is str:  # by far the most frequent
                size += len(data) if data.isascii() else scalars.utf8_bytes(data)
            else:
                size += _MEASURES[tag](data, member, level)
        except (TypeError, ValueError, LookupError):
            size += _measure_irregular(member, level)
        if size > bytes_max:
            raise scalars.ValueTooLarge
    return size


def measure(member: Any, level: int) -> int:
    """Check an attribute value, convert it to canonical form in place, and return its billed bytes.

    `level`: number of documents around it. Raises the same errors as `item_of`.
    """
    try:
        (tag,) = member
        return _MEASURES[tag](member[tag], member, level)
    except (TypeError, ValueError, LookupError):
        return _measure_irregular(member, level)


def _measure_irregular(member: Any, level: int) -> int:
    """Measure an attribute value that is not an object with one known tag. Null and unknown tags count as absent.

    Mostly raises an error. Errors in the data of several tags precede the error that there are several.
    """
    if member is None:
        raise scalars.InvalidValue("empty-value")
    if type(member) is not dict:
        raise serialization(json_type("structure", member, java="AttributeValue", nested=True))
    drop_unknown_tags(member)
    if not member:
        raise scalars.InvalidValue("empty-value")
    size = 0
    for tag in [*member]:
        size = _MEASURES[tag](member[tag], member, level)
    if len(member) > 1:
        raise scalars.InvalidValue("several-types")
    return size


_CHECK_ORDER = ("S", "B", "N", "BOOL", "NULL", "BS", "NS", "SS", "L", "M")


def drop_unknown_tags(member: dict[str, Any]) -> None:
    """Remove unknown and null tags from an attribute value in place. Sort the others in the order of error checks."""
    known_tags = {tag: member[tag] for tag in _CHECK_ORDER if member.get(tag) is not None}
    member.clear()
    member.update(known_tags)


def check_name(name: str) -> None:
    """Raise InvalidValue if this is not a valid attribute name."""
    if not name:
        raise scalars.InvalidValue("empty-name")
    if (
        len(name) > limits.ATTRIBUTE_NAME_BYTES // 4
        and scalars.utf8_bytes(name) > limits.ATTRIBUTE_NAME_BYTES
    ):
        raise scalars.InvalidValue("name-size")


class _NameBytes(dict[str, int]):
    """A cache from valid attribute names to their size in bytes. Most items share a few names."""

    def __missing__(self, name: str) -> int:
        check_name(name)
        size = scalars.utf8_bytes(name)
        if len(name) <= _CACHED_CHARACTERS:
            if len(self) >= _CACHED_NAMES:
                self.clear()
            self[name] = size
        return size


_CACHED_NAMES = 4096
_CACHED_CHARACTERS = 64
_name_bytes = _NameBytes()


def _measure_text(data: Any, member: dict[str, Any], level: int) -> int:
    if type(data) is not str:
        scalars.wrong_type("String", data)
    return len(data) if data.isascii() else scalars.utf8_bytes(data)


def _measure_number(data: Any, member: dict[str, Any], level: int) -> int:
    if type(data) is not str:
        scalars.wrong_type("String", data)
    if data.isdigit() and len(data) <= limits.NUMBER_DIGITS and data[0] != "0" and data.isascii():
        return (len(data.rstrip("0")) + 1) // 2 + 1
    if len(data) > limits.NUMBER_DIGITS or CANONICAL_NUMBER.fullmatch(data) is None:
        member["N"] = data = scalars.canonical_number(data)
    return scalars.number_size_bytes(data)


def _measure_binary(data: Any, member: dict[str, Any], level: int) -> int:
    return scalars.binary_bytes(data)


def _measure_boolean(data: Any, member: dict[str, Any], level: int) -> int:
    if type(data) is not bool:
        member["BOOL"] = scalars.boolean_of(data)
    return 1


def _measure_null(data: Any, member: dict[str, Any], level: int) -> int:
    if data is not True:
        if not scalars.boolean_of(data):
            raise scalars.InvalidValue("null-false")
        member["NULL"] = True
    return 1


def _measure_list(data: Any, member: dict[str, Any], level: int) -> int:
    if type(data) is not list:
        scalars.wrong_type("List", data)
    if not data:
        return 3
    _check_level(level + 1)
    size = 3 + len(data)
    if size > limits.MEASURED_BYTES:
        raise scalars.ValueTooLarge
    for element in data:
        size += measure(element, level + 1)
        if size > limits.MEASURED_BYTES:
            raise scalars.ValueTooLarge
    return size


def _measure_map(data: Any, member: dict[str, Any], level: int) -> int:
    if type(data) is not dict:
        scalars.wrong_type("Map", data)
    if not data:
        return 3
    _check_level(level + 1)
    return 3 + len(data) + measure_named(data, level + 1)


def _check_level(level: int) -> None:
    if level >= limits.NESTING_LEVELS:
        raise scalars.InvalidValue("nesting")


def _members(data: Any, empty: str) -> list[Any]:
    if type(data) is not list:
        scalars.wrong_type("List", data)
    if not data:
        raise scalars.InvalidValue(empty)
    if len(data) > limits.SET_MEMBERS:
        raise scalars.ValueTooLarge
    return data


def _check_texts(data: list[Any], null: str, check: Callable[[str], object] = str) -> None:
    """Check that the members of a set are texts. Errors that `check` raises for earlier members come first."""
    if set(map(type, data)) == {str}:
        return
    for element in data:
        if type(element) is not str:
            if element is None:
                raise scalars.InvalidValue(null)
            scalars.wrong_type("String", element)
        check(element)


def _measure_text_set(data: Any, member: dict[str, Any], level: int) -> int:
    _check_texts(_members(data, "empty-string-set"), "null-in-string-set")
    size = sum(map(len, data))
    if size > limits.MEASURED_BYTES:
        raise scalars.ValueTooLarge
    together = "".join(data)
    if not together.isascii():
        size = scalars.utf8_bytes(together)
    if len(set(data)) != len(data):
        raise scalars.InvalidValue("duplicate-strings", members=list(data))
    data.sort()
    return size


def _measure_number_set(data: Any, member: dict[str, Any], level: int) -> int:
    _check_texts(_members(data, "empty-number-set"), "null-in-number-set", scalars.canonical_number)
    distinct = dict.fromkeys(data)  # in order, so the first invalid number is reported
    canonical = list(map(scalars.canonical_number, distinct))
    if len(set(canonical)) != len(data):
        raise scalars.InvalidValue("duplicate-numbers")
    canonical.sort(key=Decimal)
    member["NS"] = canonical
    return sum(map(scalars.number_size_bytes, canonical))


def _measure_binary_set(data: Any, member: dict[str, Any], level: int) -> int:
    size = 0
    members = _members(data, "empty-binary-set")
    # Check equal texts once, in order. Other JSON types may be unhashable.
    for element in dict.fromkeys(members) if set(map(type, members)) == {str} else members:
        if element is None:
            raise scalars.InvalidValue("null-in-binary-set")
        size += scalars.binary_bytes(element)
        if size > limits.MEASURED_BYTES:
            raise scalars.ValueTooLarge
    if len(set(data)) != len(data):
        raise scalars.InvalidValue("duplicate-binaries", members=list(data))
    data.sort(key=b64decode)
    return size


_MEASURES = {
    "S": _measure_text,
    "N": _measure_number,
    "B": _measure_binary,
    "BOOL": _measure_boolean,
    "NULL": _measure_null,
    "L": _measure_list,
    "M": _measure_map,
    "SS": _measure_text_set,
    "NS": _measure_number_set,
    "BS": _measure_binary_set,
}

# DynamoDB's view of the other dialects' kinds


def view(value: Value) -> Value:
    """Return a stored value as a DynamoDB client sees it: exact or as text, never rounded (docs/architecture.md
    section 7).
    """
    kind, data = value
    if kind is Kind.INT32 or kind is Kind.INT64:
        return Value(Kind.DECIMAL, Decimal(data))
    if kind is Kind.DOUBLE:
        return _view_double(data)
    if kind is Kind.DATETIME:
        return Value(Kind.TEXT, scalars.datetime_text(data))
    if kind is Kind.GUID:
        return Value(Kind.TEXT, str(data))
    return value


def _view_double(data: float) -> Value:
    if math.isfinite(data):
        number = number_of_double(data)
        if decimal_fits(number):
            return Value(Kind.DECIMAL, number)
        return Value(Kind.TEXT, repr(data))
    if math.isnan(data):
        return Value(Kind.TEXT, "NaN")
    return Value(Kind.TEXT, "Infinity" if data > 0 else "-Infinity")


def as_kind(value: Value, kind: Kind) -> Value | None:
    """Return a DynamoDB value as a key column of another dialect's kind (N for an INT64 column).

    None if it does not fit.
    """
    if value.kind is kind:
        return value
    if kind is Kind.INT64 and value.kind is Kind.DECIMAL:
        number = value.data
        if number == number.to_integral_value() and -(2**63) <= number < 2**63:
            return Value(Kind.INT64, int(number))
    return None


def keep_kinds(old: Row | None, new: Contents) -> Contents:
    """Return the new contents with the stored kinds of attributes that DynamoDB sees as unchanged."""
    if old is None or old.is_native:
        return new
    latest = new.latest
    stored_values = {}
    for name, stored in old.latest.items():
        visible = view(stored)
        if visible is not stored and name in latest and equal(latest[name], visible):
            stored_values[name] = stored
    return Contents.of_values({**latest, **stored_values}) if stored_values else new


# Value -> wire


def render_value(value: Value) -> dict[str, Any]:
    """Return a value as a wire AttributeValue."""
    return bodies.tagged(view(value))


def render_values(values: Mapping[str, Value]) -> dict[str, Any]:
    """Return attributes as a wire item."""
    return {name: bodies.tagged(view(value)) for name, value in values.items()}


def render_row_generally(row: Row) -> bytes:
    """Return a row as the JSON of a wire item, each value through `view`."""
    return orjson.dumps(render_values(row.latest))


def render_rows_generally(rows: Iterable[Row]) -> bytes:
    """Return rows as the JSON of an array of wire items.

    The array is joined from encoded rows, because the encoder would copy each of them.
    """
    return b"[" + b",".join(map(render_row_generally, rows)) + b"]"


def fast_render_row(row: Row) -> bytes:
    """Return a row as the JSON of a wire item.

    Fast path of `render_row_generally`: a native body already is that JSON.
    """
    return row.body if row.is_native else render_row_generally(row)


def fast_render_rows(rows: Iterable[Row]) -> bytes:
    """The fast path of `render_rows_generally`."""
    return b"[" + b",".join([row.body if row.is_native else render_row_generally(row) for row in rows]) + b"]"


render_row = fast_paths.choose(fast_render_row, render_row_generally)
render_rows = fast_paths.choose(fast_render_rows, render_rows_generally)
