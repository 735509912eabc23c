"""The fast validator: is a request valid as it stands? And `Checker`, the entry point of both validators.

There are two validators for one set of shapes (schema_types.py). The fast one consists of closures that are compiled once per
operation and only answer yes or no. Whatever they refuse - an error, a null, an unknown member - goes to the full validator
(full_validator.py), which finds out what the service would say.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from adapters.dynamodb.validation import full_validator
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
from adapters.dynamodb.wire import messages
from adapters.dynamodb.wire.errors import ServiceError

FastCheck = Callable[[Any], bool]
"""Whether data is valid as it stands. On other data it is false or raises anything."""

Rule = Callable[[dict[str, Any], str, bool], None]
"""What members mean together: (input, style, whether its attribute values are known to be good). Raises ServiceError."""


@dataclass(frozen=True, slots=True)
class Checker:
    """A request, ready to be checked."""

    operation: str
    request: Request
    fast_check: FastCheck
    rule: Rule | None

    def __call__(self, body: Any, style: str) -> dict[str, Any]:
        try:
            good = self.fast_check(body)
        except scalars.TooLarge:
            raise messages.refused(self.operation, "item-size", style) from None
        except (ServiceError, TypeError, AttributeError, ValueError):
            good = False  # the full validator finds out what is wrong, and in which order to say it
        data = body if good else full_validator.clean(self.operation, self.request, body, style)
        if self.rule is not None:
            self.rule(data, style, good)
        return data


# The fast validator


def fast_check(shape: Shape) -> FastCheck:
    """A closure that is true of data that is valid as it stands. On other data it is false or raises anything.

    Attribute values of maps are checked whole and put into canonical form; members named Item become `values.Item`.
    """
    match shape:
        case Text():
            return _fast_text(shape)
        case Number():
            smallest, largest = WIDTHS.get(shape.java, (0, -1))  # a Double is always for the full validator
            low = smallest if shape.minimum is None else shape.minimum
            high = largest if shape.maximum is None else shape.maximum
            return lambda data: type(data) is int and low <= data <= high
        case Flag():
            return lambda data: data is True or data is False
        case AttributeValue():
            return lambda data: values.measure(data, 0) >= 0
        case Sequence():
            return _fast_sequence(shape)
        case Mapping():
            return _fast_mapping(shape)
        case Structure():
            return _fast_structure(shape)


def _fast_text(shape: Text) -> FastCheck:
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


def _fast_sequence(shape: Sequence) -> FastCheck:
    low, high = _bounds(shape.minimum, shape.maximum)
    member = fast_check(shape.of)
    return lambda data: type(data) is list and low <= len(data) <= high and all(map(member, data))


def _fast_mapping(shape: Mapping) -> FastCheck:
    if shape == ITEM:
        return lambda data: type(data) is dict and values.measure_members(data) >= 0
    low, high = _bounds(shape.minimum, shape.maximum)
    member = fast_check(shape.of)
    keys = None if shape.keys is None else _fast_text(shape.keys)
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


def _fast_structure(shape: Structure) -> FastCheck:
    members = {name: fast_check(member) for name, member in shape.members.items() if name != "Item"}
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
        for name in required:
            if name not in data:
                return False
        return True

    return check


def _never() -> Any:
    raise TypeError("not an item")


def _bounds(minimum: int | None, maximum: int | None) -> tuple[int, int]:
    return (0 if minimum is None else minimum), (1 << 62 if maximum is None else maximum)
