"""The JSON types of a request's members, checked like the service's deserializer.

Null and unknown members are dropped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from tablegate.adapters.dynamodb.validation.schemas.schema_types import (
    WIDTHS,
    AttributeValue,
    Boolean,
    Mapping,
    Number,
    Sequence,
    Shape,
    Structure,
    Text,
)
from tablegate.adapters.dynamodb.values import scalars, values
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.errors import serialization
from tablegate.adapters.dynamodb.wire.messages import json_type

# JSON types


class ValueBudget:
    """A limit on the number of attribute values with checked JSON types.

    Valid requests do not depend on it. values.py checks every value later and also rejects wrong types, only in
    another order.
    """

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = limits.TYPED_VALUES

    def of(self, members: Iterable[Any]) -> Iterator[Any]:
        """Yield members until the budget is used up."""
        for member in members:
            if self.left <= 0:
                return
            self.left -= 1
            yield member


def typed(shape: Shape, data: Any, budget: ValueBudget, nested: bool = False) -> Any:
    """Return the data without nulls and unknown members. Attribute values are changed in place.

    `nested`: a member of a list or map. Raises SerializationException with the text of the service's
    deserializer.
    """
    if data is None:
        return None
    match shape:
        case Text():
            return data if isinstance(data, str) else _refuse("String", data)
        case Number():
            return _typed_number(shape, data)
        case Boolean():
            return scalars.boolean_of(data)
        case AttributeValue():
            _type_value(data, nested, 0, budget)
            return data
        case Sequence():
            if not isinstance(data, list):
                _refuse("List", data, nested=nested)
            if isinstance(shape.of, AttributeValue):
                _type_values(data, 0, budget)
                return data
            return [typed(shape.of, part, budget, True) for part in data]
        case Mapping():
            if not isinstance(data, dict):
                _refuse("Map", data, _java(shape.of), nested)
            if isinstance(shape.of, AttributeValue):
                _type_values(data.values(), 0, budget)
                return data  # null means an empty value here
            parts = {name: typed(shape.of, part, budget, True) for name, part in data.items()}
            return {name: part for name, part in parts.items() if part is not None}
        case Structure():
            if not isinstance(data, dict):
                _refuse("structure", data, shape.java, nested)
            return typed_members(shape, data, budget)


def typed_members(shape: Structure, data: dict[str, Any], budget: ValueBudget) -> dict[str, Any]:
    """Return the known members of a structure that are not null, each `typed`. Raises SerializationException."""
    members = {}
    for name, member in shape.members.items():
        part = data.get(name)
        if part is not None:
            members[name] = typed(member, part, budget)
    return members


def _typed_number(shape: Number, data: Any) -> Any:
    if isinstance(data, bool) or not isinstance(data, (int, float)):
        _refuse(shape.java, data)
    if shape.java == "Double":
        return data
    low, high = WIDTHS[shape.java]
    return math.floor(min(max(data, low), high))


def _type_values(members: Iterable[Any], level: int, budget: ValueBudget) -> None:
    for member in budget.of(members):
        if member is not None:
            _type_value(member, True, level, budget)


def _type_value(data: Any, nested: bool, level: int, budget: ValueBudget) -> None:
    """Check the JSON types of an attribute value, and drop its nulls and unknown tags."""
    if not isinstance(data, dict):
        _refuse("structure", data, "AttributeValue", nested)
    if level > limits.NESTING_LEVELS:  # too deep for any request: bounds the recursion
        data.clear()
        data["S"] = ""
        return
    if len(data) != 1 or None in data.values():
        values.drop_unknown_tags(data)
    for tag, part in data.items():
        match tag:
            case "S" | "N":
                typed(_TEXT, part, budget)
            case "BOOL" | "NULL":
                data[tag] = scalars.boolean_of(part)
            case "M":
                if not isinstance(part, dict):
                    _refuse("Map", part, "AttributeValue")
                _type_values(part.values(), level + 1, budget)
            case "B":
                scalars.binary_bytes(part)
            case "L" | "SS" | "NS" | "BS":
                if not isinstance(part, list):
                    _refuse("List", part)
                _type_list(tag, part, level, budget)
            case _:
                data.clear()  # an unknown tag alone
                return


def _type_list(tag: str, members: list[Any], level: int, budget: ValueBudget) -> None:
    if tag == "L":
        _type_values(members, level + 1, budget)
        return
    check = scalars.binary_bytes if tag == "BS" else partial(typed, _TEXT, budget=budget)
    for member in budget.of(members):
        if member is not None:
            check(member)


_TEXT = Text()


def _java(member: Shape) -> str:
    """Return the class of a map's members, as in type errors."""
    match member:
        case AttributeValue():
            return "AttributeValue"
        case Structure():
            return member.java
        case Sequence():
            return f"java.util.List<com.amazonaws.dynamodb.v20120810.{_java(member.of)}>"
    return "java.lang.String"


def _refuse(kind: str, data: Any, java: str = "", nested: bool = False) -> Any:
    raise serialization(json_type(kind, data, java, nested))
