"""The fast path of full_validator.py: True if a request has no error. And the choice between the two validators.

Both validators use one set of shapes (shapes.py). The closures of this one are compiled once per operation
and only return True or False. All other requests (an error, a null, an unknown member) go to the full validator,
which finds the service's error. Both leave an accepted request in the same form, except that the full one does not
convert the parameters of statements, which their handlers do. tests/adapters/dynamodb/validation/test_requests_fuzz.py
checks that.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from tablegate.adapters.dynamodb.validation import full_validator
from tablegate.adapters.dynamodb.validation.shapes import (
    ITEM,
    NAME_OR_ARN,
    WIDTHS,
    AttributeValue,
    Boolean,
    Mapping,
    Number,
    Request,
    Sequence,
    Shape,
    Structure,
    Text,
)
from tablegate.adapters.dynamodb.values import scalars, values
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.errors import RuleContext, ServiceError

_CACHED_TEXTS = 1024
_CACHED_CHARACTERS = 2048  # maximum length of a cached text: ARNs are not longer

Check = Callable[[Any], bool]
"""True if data has no error. On other data it returns False or raises any exception."""

Rule = Callable[[dict[str, Any], RuleContext], None]
"""A rule about several members. Raises ServiceError."""


@dataclass(frozen=True, slots=True)
class Checker:
    """The checks of one operation. `contexts`: for the rule, with unchecked and with checked attribute values."""

    request: Request
    fast_check: Check
    rule: Rule | None
    contexts: tuple[RuleContext, RuleContext]

    def __call__(self, body: Any) -> dict[str, Any]:
        """Return the cleaned input (see Operation.check). Raises ServiceError."""
        try:
            good = self.fast_check(body)
        except scalars.ValueTooLarge:
            raise self.contexts[False].refused("item-size") from None
        except (ServiceError, TypeError, AttributeError, ValueError):
            good = False  # the full validator finds the error to report
        data = body if good else full_validator.clean(self.contexts[False], self.request, body)
        if self.rule is not None:
            self.rule(data, self.contexts[good])
        return data


def leave_to_full_validator(data: Any) -> bool:
    """Return False: replaces `fast_check` if fast paths are off."""
    return False


def strict(request: Request) -> Structure:
    """Return the request's shape, with the member that is reported alone (`Request.named`) among the constraints."""
    shape = request.shape
    if not request.named:
        return shape
    return Structure(
        shape.java, {**shape.members, request.named: NAME_OR_ARN}, (*shape.required, request.named)
    )


def fast_check(shape: Shape) -> Check:
    """Return a closure that is True for data without error. On other data it returns False or raises any exception.

    Attribute values of maps are checked completely and converted to canonical form. Members named Item become
    `values.ParsedItem`.
    """
    match shape:
        case Text():
            return _check_text(shape)
        case Number():
            smallest, largest = WIDTHS.get(shape.java, (0, -1))  # a Double always needs the full validator
            low = smallest if shape.minimum is None else shape.minimum
            high = largest if shape.maximum is None else shape.maximum
            return lambda data: type(data) is int and low <= data <= high
        case Boolean():
            return lambda data: data is True or data is False
        case AttributeValue():
            return lambda data: values.measure(data, 0) >= 0
        case Sequence():
            return _check_sequence(shape)
        case Mapping():
            return _check_mapping(shape)
        case Structure():
            return _check_structure(shape)


def _check_text(shape: Text) -> Check:
    if shape.enum:
        return frozenset(shape.enum).__contains__
    low, high = _bounds(shape.minimum, shape.maximum)
    if shape.pattern:
        matches = re.compile(shape.applied).fullmatch
        instead = re.compile(shape.instead or "(?!)").fullmatch

        def is_good(data: Any) -> bool:
            return (matches(data) is not None and low <= len(data) <= high) or instead(data) is not None

        # Mostly names of tables and indexes. They are few, so the results are cached.
        cached = lru_cache(maxsize=_CACHED_TEXTS, typed=True)(is_good)
        return lambda data: cached(data) if len(data) <= _CACHED_CHARACTERS else is_good(data)
    if shape.minimum is None and shape.maximum is None:
        return lambda data: type(data) is str
    return lambda data: type(data) is str and low <= len(data) <= high


def _check_sequence(shape: Sequence) -> Check:
    low, high = _bounds(shape.minimum, shape.maximum)
    member = fast_check(shape.of)
    return lambda data: type(data) is list and low <= len(data) <= high and all(map(member, data))


def _check_mapping(shape: Mapping) -> Check:
    if shape == ITEM:
        # Called directly to save a closure. Other types than dictionaries have no `items` and raise.
        return partial(values.measure_named, level=0, bytes_max=limits.PLACEHOLDER_VALUES_BYTES)  # type: ignore[return-value]
    low, high = _bounds(shape.minimum, shape.maximum)
    member = fast_check(shape.of)
    keys = None if shape.keys is None else _check_text(shape.keys)
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


def _check_structure(shape: Structure) -> Check:
    members = {name: fast_check(member) for name, member in shape.members.items() if name != "Item"}
    required = shape.required
    has_item = "Item" in shape.members

    def check(data: Any) -> bool:
        if type(data) is not dict:
            return False
        for name, part in data.items():
            member = members.get(name)
            if member is None:
                if not has_item or name != "Item":
                    return False
                if type(part) is not values.ParsedItem:
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
