"""Shapes of members, and the engine that checks a request against them in the service's order.

Knows what a member may be (JSON type, null, enum, length, pattern, range) and in which order the service complains. Which
members an operation has is data in shapes.py; what members mean together is in rules.py and table_rules.py; the texts
are in messages.py.

Two engines for one set of shapes. `Quick` closures are compiled once per operation and only answer whether a request is
beyond reproach; they allocate nothing. Whatever they do not like - an error, a null, an unknown member - goes to the slow
engine, which finds out what the service would say, or what is left once nulls and unknown members are dropped.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from adapters.dynamodb import limits, messages, values
from adapters.dynamodb.errors import ServiceError, serialization
from adapters.dynamodb.messages import Violation

# Shapes


@dataclass(frozen=True, slots=True)
class Text:
    """A JSON string. Lengths are in characters.

    `pattern` is the regular expression that is told; `accepts`, if given, the one that is applied in its stead. A text
    that `instead` matches whole (an ARN where a name is wanted) passes all other constraints by.
    """

    enum: tuple[str, ...] = ()
    pattern: str = ""
    minimum: int | None = None
    maximum: int | None = None
    accepts: str = ""
    instead: str = ""


@dataclass(frozen=True, slots=True)
class Number:
    """A JSON number: an Integer or Long (fractions are cut off) or a Double."""

    java: str = "Integer"
    minimum: int | None = None
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class Flag:
    """A JSON boolean."""


@dataclass(frozen=True, slots=True)
class AttributeValue:
    """A value with its type tag. Only JSON types are looked at here; the rest is values.measure."""


@dataclass(frozen=True, slots=True)
class Sequence:
    """A JSON array."""

    of: Shape
    minimum: int | None = None
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class Mapping:
    """A JSON object from free keys to members of one shape.

    `lengths`: allowed lengths of each member (a list), told as one constraint on the map, as is `keys`.
    """

    of: Shape
    minimum: int | None = None
    maximum: int | None = None
    keys: Text | None = None
    lengths: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Structure:
    """A JSON object with known members; others are dropped. `java` is the class that type errors name."""

    java: str
    members: dict[str, Shape]
    required: frozenset[str] = frozenset()


Shape = Text | Number | Flag | AttributeValue | Sequence | Mapping | Structure

ITEM = Mapping(AttributeValue())
"""A map of attribute values: an item, a key, values of placeholders."""


@dataclass(frozen=True, slots=True)
class Request:
    """What an operation takes.

    `named`: the member whose absence is told alone and before everything else ("The parameter 'TableName' is required
    ..."), with its length if `tells_length`. `alone`: a member whose constraints are told before those of the others.
    """

    shape: Structure
    named: str = ""
    tells_length: bool = False
    alone: str = ""


_WIDTHS = {"Integer": (-(2**31), 2**31 - 1), "Long": (-(2**63), 2**63 - 1)}

# The quick engine

Quick = Callable[[Any], bool]


def quick(shape: Shape) -> Quick:
    """A closure that is true of data beyond reproach. On other data it is false or raises anything.

    Attribute values of maps are checked whole and put into canonical form; members named Item become `values.Item`.
    """
    match shape:
        case Text():
            return _quick_text(shape)
        case Number():
            smallest, largest = _WIDTHS.get(shape.java, (0, -1))  # a Double always takes the slow way
            low = smallest if shape.minimum is None else shape.minimum
            high = largest if shape.maximum is None else shape.maximum
            return lambda data: type(data) is int and low <= data <= high
        case Flag():
            return lambda data: data is True or data is False
        case AttributeValue():
            return lambda data: values.measure(data, 0) >= 0
        case Sequence():
            return _quick_sequence(shape)
        case Mapping():
            return _quick_mapping(shape)
        case Structure():
            return _quick_structure(shape)


def _quick_text(shape: Text) -> Quick:
    if shape.enum:
        return frozenset(shape.enum).__contains__
    low, high = _bounds(shape.minimum, shape.maximum)
    if shape.pattern:
        matches = re.compile(shape.accepts or shape.pattern).fullmatch
        instead = re.compile(shape.instead or "(?!)").fullmatch
        return lambda data: (
            (matches(data) is not None and low <= len(data) <= high) or instead(data) is not None
        )
    if shape.minimum is None and shape.maximum is None:
        return lambda data: type(data) is str
    return lambda data: type(data) is str and low <= len(data) <= high


def _quick_sequence(shape: Sequence) -> Quick:
    low, high = _bounds(shape.minimum, shape.maximum)
    member = quick(shape.of)
    return lambda data: type(data) is list and low <= len(data) <= high and all(map(member, data))


def _quick_mapping(shape: Mapping) -> Quick:
    if shape == ITEM:
        return lambda data: type(data) is dict and values.measure_members(data) >= 0
    low, high = _bounds(shape.minimum, shape.maximum)
    member = quick(shape.of)
    keys = None if shape.keys is None else _quick_text(shape.keys)
    lengths = range(10**9) if shape.lengths is None else range(shape.lengths[0], shape.lengths[1] + 1)

    def check(data: Any) -> bool:
        if type(data) is not dict or not low <= len(data) <= high:
            return False
        if keys is not None and not all(map(keys, data)):
            return False
        if shape.lengths is not None and not all(len(part) in lengths for part in data.values()):
            return False
        return all(map(member, data.values()))

    return check


def _quick_structure(shape: Structure) -> Quick:
    members = {name: quick(member) for name, member in shape.members.items() if name != "Item"}
    required = tuple(shape.required)
    has_item = "Item" in shape.members

    def check(data: Any) -> bool:
        if type(data) is not dict:
            return False
        for name, part in data.items():
            member = members.get(name)
            if member is None:
                if not has_item or name != "Item":
                    return False
                if type(part) is not values.Item:
                    data["Item"] = values.item_of(part) if type(part) is dict else _never()
            elif not member(part):
                return False
        for name in required:  # noqa: SIM110 - a generator would cost more than the rest of this function
            if name not in data:
                return False
        return True

    return check


def _never() -> Any:
    raise TypeError("not an item")


def _bounds(minimum: int | None, maximum: int | None) -> tuple[int, int]:
    return (0 if minimum is None else minimum), (1 << 62 if maximum is None else maximum)


# The slow engine: JSON types


def typed(shape: Shape, data: Any, nested: bool = False) -> Any:
    """The data without nulls and unknown members. `nested`: a member of a list or map.

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
            return values.boolean_of(data)
        case AttributeValue():
            return _typed_value(data, nested, 0)
        case Sequence():
            if not isinstance(data, list):
                _refuse("List", data, nested=nested)
            return [typed(shape.of, part, True) for part in data]
        case Mapping():
            if not isinstance(data, dict):
                _refuse("Map", data, _java(shape.of), nested)
            parts = {name: typed(shape.of, part, True) for name, part in data.items()}
            if isinstance(shape.of, AttributeValue):
                return parts  # null stands for an empty value here
            return {name: part for name, part in parts.items() if part is not None}
        case Structure():
            if not isinstance(data, dict):
                _refuse("structure", data, shape.java, nested)
            return _typed_members(shape, data)


def _typed_members(shape: Structure, data: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for name, member in shape.members.items():
        part = typed(member, data.get(name))
        if part is not None:
            found[name] = part
    return found


def _typed_number(shape: Number, data: Any) -> Any:
    if isinstance(data, bool) or not isinstance(data, (int, float)):
        _refuse(shape.java, data)
    if shape.java == "Double":
        return data
    low, high = _WIDTHS[shape.java]
    return math.floor(min(max(data, low), high))


def _typed_value(data: Any, nested: bool, level: int) -> dict[str, Any]:
    """An attribute value without nulls and unknown tags, its tags in the order in which errors are looked for."""
    found: dict[str, Any] = {}
    if not isinstance(data, dict):
        _refuse("structure", data, "AttributeValue", nested)
    if level > limits.NESTING_LEVELS:
        return {
            "S": ""
        }  # stands for anything: it is too deep in any case, and nothing here may recurse for ever
    for tag in values.CHECK_ORDER:
        part = data.get(tag)
        if part is not None:
            found[tag] = _typed_data(tag, part, level)
    return found


def _typed_data(tag: str, part: Any, level: int) -> Any:
    match tag:
        case "S" | "N":
            return typed(Text(), part)
        case "B":
            values.binary_bytes(part)
            return part
        case "BOOL" | "NULL":
            return values.boolean_of(part)
        case "M":
            if not isinstance(part, dict):
                _refuse("Map", part, "AttributeValue")
            return {
                name: None if inner is None else _typed_value(inner, True, level + 1)
                for name, inner in part.items()
            }
    if not isinstance(part, list):
        _refuse("List", part)
    if tag == "L":
        return [None if inner is None else _typed_value(inner, True, level + 1) for inner in part]
    if tag == "BS":
        for inner in part:
            if inner is not None:
                values.binary_bytes(inner)
        return part
    return [typed(Text(), inner) for inner in part]


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


# The slow engine: member constraints

_NULL = "Member must not be null"


def violations(shape: Structure, data: dict[str, Any]) -> list[Violation]:
    """The constraints that typed data breaks, in the service's order."""
    found: list[Violation] = []
    _look_into(shape, data, "", "", found)
    return found


def _look(shape: Shape, data: Any, path: str, camel: str, found: list[Violation]) -> None:
    for constraint in _broken(shape, data):
        found.append(Violation(path, camel, data, constraint))
    _look_into(shape, data, path, camel, found)


def _look_into(shape: Shape, data: Any, path: str, camel: str, found: list[Violation]) -> None:
    match shape:
        case Structure():
            for name, member in shape.members.items():
                here = f"{path}.{name}" if path else name
                camel_here = (f"{camel}." if camel else "") + name[0].lower() + name[1:]
                part = data.get(name)
                if part is not None:
                    _look(member, part, here, camel_here, found)
                elif name in shape.required:
                    found.append(Violation(here, camel_here, None, _NULL))
        case Sequence():
            for place, part in enumerate(data, 1):
                where = f"{path}.{place}.member", f"{camel}.{place}.member"
                if part is None:
                    found.append(Violation(*where, None, _NULL))
                else:
                    _look(shape.of, part, *where, found)
        case Mapping() if not isinstance(shape.of, AttributeValue):
            for key, part in data.items():
                _look(shape.of, part, f"{path}.{key}.member", f"{camel}.{key}.member", found)


def _broken(shape: Shape, data: Any) -> list[str]:
    """The texts of the constraints that this member itself breaks."""
    match shape:
        case Text():
            return _broken_text(shape, data)
        case Number():
            return _broken_bounds("value", data, shape.minimum, shape.maximum)
        case Sequence():
            return _broken_bounds("length", len(data), shape.minimum, shape.maximum)
        case Mapping():
            broken = _broken_bounds("length", len(data), shape.minimum, shape.maximum)
            if shape.keys is not None:
                told = _all_of(shape.keys.minimum, shape.keys.maximum, shape.keys.pattern)
                bad = [key for key in data if _broken_text(shape.keys, key)]
                broken += [f"Map keys must satisfy constraint: [{told}]"] * len(bad)
            if shape.lengths is not None:
                told = _all_of(*shape.lengths)
                low, high = shape.lengths
                bad = [key for key, part in data.items() if not low <= len(part) <= high]
                broken += [f"Map value must satisfy constraint: [{told}]"] * len(bad)
            return broken
    return []


def _broken_text(shape: Text, data: str) -> list[str]:
    broken: list[str] = []
    if shape.instead and re.fullmatch(shape.instead, data):
        return broken
    if shape.enum and data not in shape.enum:
        broken.append(f"Member must satisfy enum value set: [{', '.join(shape.enum)}]")
    if shape.pattern and not re.fullmatch(shape.accepts or shape.pattern, data):
        broken.append(f"Member must satisfy regular expression pattern: {shape.pattern}")
    return broken + _broken_bounds("length", len(data), shape.minimum, shape.maximum)


def _broken_bounds(what: str, data: Any, minimum: int | None, maximum: int | None) -> list[str]:
    broken = []
    if minimum is not None and data < minimum:
        broken.append(f"Member must have {what} greater than or equal to {minimum}")
    if maximum is not None and data > maximum:
        broken.append(f"Member must have {what} less than or equal to {maximum}")
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


def slow(operation: str, request: Request, body: Any, style: str) -> dict[str, Any]:
    """Types, then members told alone, then constraints. Raises the first error, or returns the cleaned input."""
    if not isinstance(body, dict):
        raise serialization(messages.json_type("structure", body, operation + "Input"))
    data: dict[str, Any] = _typed_members(request.shape, body)
    if request.named:
        _check_named(operation, request, data, style)
    found = violations(request.shape, data)
    if found:
        first = [violation for violation in found if violation.path == request.alone]
        raise messages.constraints(operation, first or found, style)
    return data


def _check_named(operation: str, request: Request, data: dict[str, Any], style: str) -> None:
    given = data.get(request.named)
    if given is None:
        raise messages.refused(operation, "required", style, name=request.named)
    member = request.shape.members[request.named]
    if isinstance(member, Text) and member.instead and re.fullmatch(member.instead, given):
        return
    if request.tells_length and not (
        limits.TABLE_NAME_MIN_CHARACTERS <= len(given) <= limits.TABLE_NAME_CHARACTERS
    ):
        raise messages.refused(operation, "table-name-length", style, name=request.named)


# The door

Rule = Callable[[dict[str, Any], str, bool], None]
"""What members mean together: (input, style, whether its attribute values are known to be good). Raises ServiceError."""


@dataclass(frozen=True, slots=True)
class Checker:
    """A request, ready to be checked."""

    operation: str
    request: Request
    quick: Quick
    rule: Rule | None

    def __call__(self, body: Any, style: str) -> dict[str, Any]:
        try:
            good = self.quick(body)
        except (ServiceError, TypeError, AttributeError, ValueError):
            good = False  # the slow engine finds out what is wrong, and in which order to say it
        data = body if good else slow(self.operation, self.request, body, style)
        if self.rule is not None:
            self.rule(data, style, good)
        return data
