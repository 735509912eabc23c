"""What the service says of a request that is not beyond reproach, and what is left of one that is good enough - once nulls and
unknown members are dropped. fast_validator.py is the fast path of it.

Knows the order: JSON types, then the member that is told alone, then constraints in the order of the shape.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, Literal, NamedTuple

from adapters.dynamodb.validation.schema_types import (
    ITEM,
    WIDTHS,
    AttributeValue,
    Flag,
    Mapping,
    Number,
    Request,
    Sequence,
    Shape,
    Structure,
    Text,
)
from adapters.dynamodb.values import scalars, values
from adapters.dynamodb.wire import limits, messages
from adapters.dynamodb.wire.errors import serialization
from adapters.dynamodb.wire.messages import Violation


def clean(operation: str, request: Request, body: Any, style: str) -> dict[str, Any]:
    """The input without nulls and unknown members. Raises ServiceError: the first error in the service's order."""
    if not isinstance(body, dict):
        raise serialization(messages.json_type("structure", body, operation + "Input"))
    data: dict[str, Any] = _typed_members(request.shape, body, _Room())
    found = violations(operation, request.shape, data, style)
    is_old = style == messages.CLASSIC and messages.lacking(found)
    if request.named:
        _check_named(operation, request, data, style, is_old)
    if found:
        first = [violation for violation in found if violation.path == request.alone and not is_old]
        raise messages.constraints(operation, first or found, style)
    return data


def _check_named(operation: str, request: Request, data: dict[str, Any], style: str, is_old: bool) -> None:
    given = data.get(request.named)
    if given is None:
        raise messages.refused(operation, "required", style, name=request.named)
    member = request.shape.members[request.named]
    if isinstance(member, Text) and member.instead and re.fullmatch(member.instead, given):
        return
    if (
        request.tells_length
        and (is_old or not request.alone)
        and not (limits.TABLE_NAME_MIN_CHARACTERS <= len(given) <= limits.TABLE_NAME_CHARACTERS)
    ):
        raise messages.refused(operation, "table-name-length", style, name=request.named)


# Lengths


def shorten(shape: Shape, data: Any) -> None:
    """Drop from lists and maps, in place, what is more than one member beyond what a request may have, so that a long list
    costs no more than it takes to say that it is too long. Items are bounded by what they weigh (values.py)."""
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


# JSON types


class _Room:
    """How many attribute values are still looked at: no request that passes needs this engine to have seen them all, since
    each is measured afterwards (values.py), which tells a wrong type too, only later."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = limits.TYPED_VALUES

    def of(self, members: Iterable[Any]) -> Iterator[Any]:
        """As many of the members as there is room for."""
        for member in members:
            if self.left <= 0:
                return
            self.left -= 1
            yield member


def typed(shape: Shape, data: Any, room: _Room, nested: bool = False) -> Any:
    """The data without nulls and unknown members, which attribute values lose in place. `nested`: a member of a list or map.

    Raises SerializationException with the text of the service's deserialiser.
    """
    if data is None:
        return None
    match shape:
        case Text():
            return data if isinstance(data, str) else _refuse("String", data)
        case Number():
            return _typed_number(shape, data)
        case Flag():
            return scalars.boolean_of(data)
        case AttributeValue():
            _type_value(data, nested, 0, room)
            return data
        case Sequence():
            if not isinstance(data, list):
                _refuse("List", data, nested=nested)
            if isinstance(shape.of, AttributeValue):
                _type_values(data, 0, room)
                return data
            return [typed(shape.of, part, room, True) for part in data]
        case Mapping():
            if not isinstance(data, dict):
                _refuse("Map", data, _java(shape.of), nested)
            if isinstance(shape.of, AttributeValue):
                _type_values(data.values(), 0, room)
                return data  # null stands for an empty value here
            parts = {name: typed(shape.of, part, room, True) for name, part in data.items()}
            return {name: part for name, part in parts.items() if part is not None}
        case Structure():
            if not isinstance(data, dict):
                _refuse("structure", data, shape.java, nested)
            return _typed_members(shape, data, room)


def _typed_members(shape: Structure, data: dict[str, Any], room: _Room) -> dict[str, Any]:
    found = {}
    for name, member in shape.members.items():
        part = data.get(name)
        if part is not None:
            found[name] = typed(member, part, room)
    return found


def _typed_number(shape: Number, data: Any) -> Any:
    if isinstance(data, bool) or not isinstance(data, (int, float)):
        _refuse(shape.java, data)
    if shape.java == "Double":
        return data
    low, high = WIDTHS[shape.java]
    return math.floor(min(max(data, low), high))


def _type_values(members: Iterable[Any], level: int, room: _Room) -> None:
    for member in room.of(members):
        if member is not None:
            _type_value(member, True, level, room)


def _type_value(data: Any, nested: bool, level: int, room: _Room) -> None:
    """Look at the JSON types of an attribute value, and drop its nulls and unknown tags."""
    if not isinstance(data, dict):
        _refuse("structure", data, "AttributeValue", nested)
    if level > limits.NESTING_LEVELS:  # it is too deep in any case, and nothing may recurse for ever
        data.clear()
        data["S"] = ""
        return
    if len(data) != 1 or None in data.values():
        values.drop_odd_tags(data)
    for tag, part in data.items():
        match tag:
            case "S" | "N":
                typed(_TEXT, part, room)
            case "BOOL" | "NULL":
                data[tag] = scalars.boolean_of(part)
            case "M":
                if not isinstance(part, dict):
                    _refuse("Map", part, "AttributeValue")
                _type_values(part.values(), level + 1, room)
            case "B":
                scalars.binary_bytes(part)
            case "L" | "SS" | "NS" | "BS":
                if not isinstance(part, list):
                    _refuse("List", part)
                _type_list(tag, part, level, room)
            case _:
                data.clear()  # an unknown tag alone
                return


def _type_list(tag: str, members: list[Any], level: int, room: _Room) -> None:
    if tag == "L":
        _type_values(members, level + 1, room)
        return
    wanted = scalars.binary_bytes if tag == "BS" else partial(typed, _TEXT, room=room)
    for member in room.of(members):
        if member is not None:
            wanted(member)


_TEXT = Text()


def _java(member: Shape) -> str:
    """The class of a map's members, as type errors name it."""
    match member:
        case AttributeValue():
            return "AttributeValue"
        case Structure():
            return member.java
        case Sequence():
            return f"java.util.List<com.amazonaws.dynamodb.v20120810.{_java(member.of)}>"
    return "java.lang.String"


def _refuse(wanted: str, data: Any, java: str = "", nested: bool = False) -> Any:
    raise serialization(messages.json_type(wanted, data, java, nested))


# Constraints

_NULL = "Member must not be null"


def violations(operation: str, shape: Structure, data: dict[str, Any], style: str) -> list[Violation]:
    """The constraints that typed data breaks, in the service's order."""
    found: list[Violation] = []
    # BatchGetItem repeats its map as JSON (paritysuite batchGetItem.test.ts, two regions, 2026-10-09).
    as_json = operation == "BatchGetItem"
    _look_into(shape, data, ("", ""), _Look(found, as_json))
    if style == messages.CLASSIC and messages.lacking(found):
        found.clear()
        _look_into(shape, data, ("", ""), _Look(found, as_json, True))
    return found


MemberPath = tuple[str, str]
"""A path with member names as on the wire, and in lower camel case."""


class _Look(NamedTuple):
    """What a look at a request has found, whether it echoes JSON, and whether it looks as the first decade's service did."""

    found: list[Violation]
    as_json: bool
    first_decade: bool = False

    def room(self, broken: int) -> int:
        """How many characters of a value that breaks so many constraints are repeated for each, of all that are left."""
        told = sum(len(violation.value or "") for violation in self.found)
        return max(limits.TOLD_CHARACTERS - told, 0) // min(broken, messages.MOST_VIOLATIONS)


def _look(shape: Shape, data: Any, member_path: MemberPath, look: _Look) -> None:
    broken = _broken(shape, data, look.first_decade)
    if broken:
        told = _echo(shape, data, look.as_json)[: look.room(len(broken))]
        look.found.extend(
            Violation(*member_path, told, *constraint) for constraint in broken[: messages.MOST_VIOLATIONS]
        )
    _look_into(shape, data, member_path, look)


def _look_into(shape: Shape, data: Any, member_path: MemberPath, look: _Look) -> None:
    path, camel = member_path
    match shape:
        case Structure():
            for name, member in shape.members.items():
                here = (f"{path}.{name}", f"{camel}.{_camel(name)}") if path else (name, _camel(name))
                part = data.get(name)
                if part is not None:
                    _look(member, part, here, look)
                elif name in shape.required or (look.first_decade and name in shape.once_required):
                    look.found.append(Violation(*here, None, "null", _NULL))
        case Sequence():
            for number, part in enumerate(data, 1):
                if len(look.found) >= messages.MOST_VIOLATIONS:
                    break  # no more are told
                here = f"{path}.{number}.member", f"{camel}.{number}.member"
                if part is None:
                    look.found.append(Violation(*here, None, "null", _NULL))
                else:
                    _look(shape.of, part, here, look)
        case Mapping() if not isinstance(shape.of, AttributeValue):
            for key, part in data.items():
                if len(look.found) >= messages.MOST_VIOLATIONS:
                    break
                _look(shape.of, part, (f"{path}.{key}.member", f"{camel}.{key}.member"), look)


def _echo(shape: Shape, data: Any, as_json: bool) -> str:
    """A value as the service repeats it, as far as so much of it was sent."""
    begun = messages.beginning(data)
    return messages.echo(begun) if as_json else _java_text(shape, begun)


def _camel(name: str) -> str:
    return name[0].lower() + name[1:]


# paritysuite captures/cross-region-latest.json, probe c_bw_over25, 2026-09-20
_VALUE_FIELDS = (
    *("S", "N", "B", "INT", "DECIMAL", "DOUBLE", "SS", "NS", "BS", "INTSET", "DECIMALSET", "DOUBLESET"),
    *("M", "L", "NULL", "BOOL"),
)


def _java_text(shape: Shape, data: Any) -> str:
    """A value as the service's Java objects print themselves today (in most regions; elsewhere with hash codes)."""
    if data is None:
        return "null"
    match shape:
        case AttributeValue() if isinstance(data, dict):
            fields = ", ".join(f"{_camel(tag)}={_java_data(tag, data.get(tag))}" for tag in _VALUE_FIELDS)
            return f"AttributeValue({fields})"
        case Sequence():
            return "[" + ", ".join(_java_text(shape.of, part) for part in data) + "]"
        case Mapping():
            return "{" + ", ".join(f"{key}={_java_text(shape.of, part)}" for key, part in data.items()) + "}"
        case Structure() if data is not None:
            members = ", ".join(
                f"{_camel(name)}={_java_text(member, data[name]) if name in data else 'null'}"
                for name, member in _printed(shape)
            )
            return f"{shape.java}({members})"
    return messages.echo(data)


def _printed(shape: Structure) -> Iterable[tuple[str, Shape]]:
    """The members that a Java object shows; what this server does not know of is null."""
    if not shape.printed:
        return shape.members.items()
    return [(name, shape.members.get(name, Text())) for name in shape.printed]


def _java_data(tag: str, data: Any) -> str:
    if data is not None and tag == "L":
        return _java_text(Sequence(AttributeValue()), data)
    if data is not None and tag == "M":
        return _java_text(Mapping(AttributeValue()), data)
    return messages.echo(data)


Broken = tuple[Literal["enum", "pattern", "minimum", "maximum", "keys", "values"], str]
"""A constraint that a member breaks: which one, and its words."""


def _broken(shape: Shape, data: Any, first_decade: bool) -> list[Broken]:
    """The constraints that this member itself breaks."""
    match shape:
        case Text():
            return _broken_text(shape, data, first_decade)
        case Number():
            return _broken_bounds("value", data, shape.minimum, shape.maximum)
        case Sequence():
            return _broken_bounds("length", len(data), shape.minimum, shape.maximum)
        case Mapping():
            broken = _broken_bounds("length", len(data), shape.minimum, shape.maximum)
            if shape.keys is not None:
                told = _all_of(shape.keys.minimum, shape.keys.maximum, shape.keys.pattern)
                bad = [key for key in data if _broken_text(shape.keys, key)]
                broken += [("keys", f"Map keys must satisfy constraint: [{told}]")] * len(bad)
            if shape.lengths is not None:
                told = _all_of(*shape.lengths)
                low, high = shape.lengths
                bad = [key for key, part in data.items() if not low <= len(part) <= high]
                broken += [("values", f"Map value must satisfy constraint: [{told}]")] * len(bad)
            return broken
    return []


def _broken_text(shape: Text, data: str, first_decade: bool = False) -> list[Broken]:
    broken: list[Broken] = []
    if shape.instead and re.fullmatch(shape.instead, data):
        return broken
    if shape.enum and data not in shape.enum:
        broken.append(("enum", f"Member must satisfy enum value set: [{', '.join(shape.enum)}]"))
    accepted = shape.pattern if first_decade else shape.accepts or shape.pattern
    if accepted and not re.fullmatch(accepted, data):
        broken.append(("pattern", f"Member must satisfy regular expression pattern: {shape.pattern}"))
    is_told_otherwise = not (data or first_decade or shape.empty_minimum is None)
    minimum = shape.empty_minimum if is_told_otherwise else shape.minimum
    return broken + _broken_bounds("length", len(data), minimum, shape.maximum)


def _broken_bounds(what: str, data: Any, minimum: int | None, maximum: int | None) -> list[Broken]:
    broken: list[Broken] = []
    if minimum is not None and data < minimum:
        broken.append(("minimum", f"Member must have {what} greater than or equal to {minimum}"))
    if maximum is not None and data > maximum:
        broken.append(("maximum", f"Member must have {what} less than or equal to {maximum}"))
    return broken


def _all_of(minimum: int | None, maximum: int | None, pattern: str = "") -> str:
    """The constraints on keys or members of a map, in the order in which the service lists them."""
    told = [
        f"Member must have length less than or equal to {maximum}",
        f"Member must have length greater than or equal to {minimum}",
    ]
    if pattern:
        told.append(f"Member must satisfy regular expression pattern: {pattern}")
    return ", ".join(told)
