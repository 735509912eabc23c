"""Wire AttributeValue <-> the gateway's Value, total in both directions, and items as canonical body bytes.

Knows what a DynamoDB value may be (docs/protocols/dynamodb.md rules 21 to 25) and how each of the other dialects' kinds looks
to a DynamoDB client. Knows nothing of requests: which text wraps a refused value is the asker's business.

One function, `measure`, does all the checking: it walks a decoded JSON value once, puts it into canonical form in place
(plain numbers, sorted sets) and returns its billed size. What it leaves behind is what bodies.py calls a body.
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
from tablegate.adapters.dynamodb.wire.errors import serialization
from tablegate.adapters.dynamodb.wire.type_messages import json_type
from tablegate.gateway.model import fast_paths
from tablegate.gateway.model.values import bodies
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, Value, decimal_fits, equal

# Wire -> canonical


class ParsedItem(dict[str, Any]):
    """A wire item that has passed: in canonical form, with its contents."""

    __slots__ = ("contents", "size_bytes")

    contents: Contents
    size_bytes: int


def item_of(wire: Mapping[str, Any]) -> ParsedItem:
    """Check an item in one pass. Changes `wire` into canonical form. Does not mind the item size limit.

    Raises InvalidValue, or ServiceError SerializationException for a wrong JSON type.
    """
    if type(wire) is ParsedItem:
        return wire
    try:
        size = measure_named(wire, 0)
    except scalars.InvalidValue as refusal:
        raise _told_first(wire, refusal) from None
    item = ParsedItem(wire)
    item.size_bytes = size
    item.contents = Contents(orjson.dumps(wire), None, size)
    return item


def is_too_large(size_bytes: int) -> bool:
    """Whether something is larger than an item may be (docs/protocols/dynamodb.md rule 25)."""
    return size_bytes > limits.ITEM_BYTES


def value_of(wire: Any) -> Value:
    """The value of a wire AttributeValue, fully checked. Raises as `item_of` does."""
    if type(wire) is dict and len(wire) == 1:
        data = wire.get("S")
        if type(data) is str:
            return Value(Kind.TEXT, data)
    measure(wire, 0)
    return bodies.untagged(wire)


def measure_members(wire: Mapping[str, Any]) -> int:
    """Check named attribute values (an item, a key), put them into canonical form in place, and return their billed bytes.
    Raises as `item_of` does."""
    try:
        return measure_named(wire, 0, limits.PLACEHOLDER_VALUES_BYTES)
    except scalars.InvalidValue as refusal:
        raise _told_first(wire, refusal) from None


def _told_first(wire: Mapping[str, Any], refusal: scalars.InvalidValue) -> scalars.InvalidValue:
    """What is said of an item that has been refused: the service looks at all of its names first, then how deep it is, and only
    then at names inside (paritysuite deepRequests.test.ts, ten regions, 2026-10-09)."""
    if refusal.rule == "nesting" and "" in wire:
        return scalars.InvalidValue("empty-name")
    if refusal.rule == "empty-name" and "" not in wire and _is_too_deep(wire):
        return scalars.InvalidValue("nesting")
    return refusal


def _is_too_deep(wire: Mapping[str, Any]) -> bool:
    """Whether some document of an item is nested too deep. Bounded: nothing is looked at below that level."""
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


def measure_named(wire: Mapping[str, Any], level: int, most: int = limits.MEASURED_BYTES) -> int:
    """The billed bytes of named attribute values that stand `level` documents deep, checked, in canonical form. Raises
    ValueTooLarge beyond `most`, and for what is bad anything: which fault is told first, `measure_members` and `item_of` know."""
    size = 0
    members = wire.items()  # of what is no dictionary there are none, however long it is
    if len(members) > most:
        raise scalars.ValueTooLarge  # each member but one has a name
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
            size += _measure_odd(member, level)
        if size > most:
            raise scalars.ValueTooLarge
    return size


def measure(member: Any, level: int) -> int:
    """Check an attribute value that stands `level` documents deep, put it into canonical form in place, and return its billed
    bytes. Raises as `item_of` does."""
    try:
        (tag,) = member
        return _MEASURES[tag](member[tag], member, level)
    except (TypeError, ValueError, LookupError):
        return _measure_odd(member, level)


def _measure_odd(member: Any, level: int) -> int:
    """An attribute value that is no object with one known tag: mostly an error, but null and unknown members are absent.

    Errors in the data of several tags come before the error that there are several.
    """
    if member is None:
        raise scalars.InvalidValue("empty-value")
    if type(member) is not dict:
        raise serialization(json_type("structure", member, java="AttributeValue", nested=True))
    drop_odd_tags(member)
    if not member:
        raise scalars.InvalidValue("empty-value")
    size = 0
    for tag in [*member]:
        size = _MEASURES[tag](member[tag], member, level)
    if len(member) > 1:
        raise scalars.InvalidValue("several-types")
    return size


_CHECK_ORDER = ("S", "B", "N", "BOOL", "NULL", "BS", "NS", "SS", "L", "M")


def drop_odd_tags(member: dict[str, Any]) -> None:
    """Leave of an attribute value, in place, the tags that are known and not null, in the order in which errors are looked
    for."""
    known = {tag: member[tag] for tag in _CHECK_ORDER if member.get(tag) is not None}
    member.clear()
    member.update(known)


def check_name(name: str) -> None:
    """Raise InvalidValue if this may not be an attribute's name."""
    if not name:
        raise scalars.InvalidValue("empty-name")
    if (
        len(name) > limits.ATTRIBUTE_NAME_BYTES // 4
        and scalars.utf8_bytes(name) > limits.ATTRIBUTE_NAME_BYTES
    ):
        raise scalars.InvalidValue("name-size")


class _NameBytes(dict[str, int]):
    """Name -> its bytes, for names that are good. The few names that most items have are looked at once."""

    def __missing__(self, name: str) -> int:
        check_name(name)
        size = scalars.utf8_bytes(name)
        if len(name) <= _KEPT_CHARACTERS:
            if len(self) >= _KEPT_NAMES:
                self.clear()
            self[name] = size
        return size


_KEPT_NAMES = 4096
_KEPT_CHARACTERS = 64
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
    if len(data) > limits.NUMBER_DIGITS or scalars.CANONICAL.fullmatch(data) is None:
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


def _check_texts(data: list[Any], null: str, look: Callable[[str], object] = str) -> None:
    """Check that the members of a set are texts. If one is none, what `look` finds before it is told first."""
    if set(map(type, data)) == {str}:
        return
    for element in data:
        if type(element) is not str:
            if element is None:
                raise scalars.InvalidValue(null)
            scalars.wrong_type("String", element)
        look(element)


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
    distinct = dict.fromkeys(data)  # in their order, so that the first that is wrong is told
    canonical = list(map(scalars.canonical_number, distinct))
    if len(set(canonical)) != len(data):
        raise scalars.InvalidValue("duplicate-numbers")
    canonical.sort(key=Decimal)
    member["NS"] = canonical
    return sum(map(scalars.number_size_bytes, canonical))


def _measure_binary_set(data: Any, member: dict[str, Any], level: int) -> int:
    size = 0
    members = _members(data, "empty-binary-set")
    # Equal ones once, in their order; what is no text may have no hash.
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

# How DynamoDB sees the other dialects' kinds


def view(value: Value) -> Value:
    """A stored value as a DynamoDB client sees it: exactly, or as text; never rounded (docs/architecture.md section 7)."""
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
        number = Decimal(repr(data))
        if decimal_fits(number):
            return Value(Kind.DECIMAL, number)
        return Value(Kind.TEXT, repr(data))
    if math.isnan(data):
        return Value(Kind.TEXT, "NaN")
    return Value(Kind.TEXT, "Infinity" if data > 0 else "-Infinity")


def as_kind(value: Value, kind: Kind) -> Value | None:
    """A DynamoDB value as a key column of another dialect's kind (N for an INT64 column); None where it does not fit."""
    if value.kind is kind:
        return value
    if kind is Kind.INT64 and value.kind is Kind.DECIMAL:
        number = value.data
        if number == number.to_integral_value() and -(2**63) <= number < 2**63:
            return Value(Kind.INT64, int(number))
    return None


def keep_kinds(old: Row | None, new: Contents) -> Contents:
    """The new contents, with the stored kind of every attribute whose value is just what DynamoDB saw of the old one."""
    if old is None or old.is_native:
        return new
    latest = new.latest
    kept = {}
    for name, stored in old.latest.items():
        seen = view(stored)
        if seen is not stored and name in latest and equal(latest[name], seen):
            kept[name] = stored
    return Contents.of_values({**latest, **kept}) if kept else new


# Value -> wire


def render_value(value: Value) -> dict[str, Any]:
    """A value as a wire AttributeValue."""
    return bodies.tagged(view(value))


def render_values(values: Mapping[str, Value]) -> dict[str, Any]:
    """Attributes as a wire item."""
    return {name: bodies.tagged(view(value)) for name, value in values.items()}


def render_row_generally(row: Row) -> bytes:
    """A row as the JSON of a wire item: each value through `view`."""
    return orjson.dumps(render_values(row.latest))


def render_rows_generally(rows: Iterable[Row]) -> bytes:
    """Rows as the JSON of an array of wire items. They are put together before the encoder sees them, which would copy each
    by itself."""
    return b"[" + b",".join(map(render_row_generally, rows)) + b"]"


def fast_render_row(row: Row) -> bytes:
    """The fast path of `render_row_generally`: a body whose kinds are DynamoDB's own is the JSON of its item."""
    return row.body if row.is_native else render_row_generally(row)


def fast_render_rows(rows: Iterable[Row]) -> bytes:
    """The fast path of `render_rows_generally`."""
    return b"[" + b",".join([row.body if row.is_native else render_row_generally(row) for row in rows]) + b"]"


render_row = fast_paths.choose(fast_render_row, render_row_generally)
render_rows = fast_paths.choose(fast_render_rows, render_rows_generally)
