"""The general validator: the service's error for a request, or the request without nulls and unknown members.

fast_validator.py is its fast path. Errors are found in this order: JSON types (checked like the service's deserializer),
the member that is reported alone, constraints in the order of the shape. wire/errors.py has the texts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Literal, NamedTuple

from tablegate.adapters.dynamodb.validation.shapes import (
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
from tablegate.adapters.dynamodb.wire import error_texts, limits
from tablegate.adapters.dynamodb.wire.error_texts import json_type
from tablegate.adapters.dynamodb.wire.errors import (
    MOST_VIOLATIONS,
    ConstraintViolation,
    RuleContext,
    constraint_error,
    serialization,
)

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


# Constraints


_NULL = "Member must not be null"


def violations(context: RuleContext, shape: Structure, data: dict[str, Any]) -> list[ConstraintViolation]:
    """Return the constraints that typed data violates, in the service's order."""
    violated: list[ConstraintViolation] = []
    # BatchGetItem repeats its map as JSON (paritysuite batchGetItem.test.ts, two regions, 2026-10-09).
    as_json = context.operation == "BatchGetItem"
    _find_in_members(shape, data, ("", ""), _Search(violated, as_json))
    return violated


MemberPath = tuple[str, str]
"""A path with member names as on the wire, and in lower camel case."""


class _Search(NamedTuple):
    """A search for violations. `found`: those so far. `as_json`: echo values as JSON."""

    found: list[ConstraintViolation]
    as_json: bool

    def echo_limit(self, count: int) -> int:
        """Return the number of characters to echo for each of `count` violations of one value."""
        echoed = sum(len(violation.value or "") for violation in self.found)
        return max(limits.ERROR_ECHO_CHARACTERS - echoed, 0) // min(count, MOST_VIOLATIONS)


def _find(shape: Shape, data: Any, member_path: MemberPath, search: _Search) -> None:
    constraints = _violated_constraints(shape, data)
    if constraints:
        echo = _echo(shape, data, search.as_json)[: search.echo_limit(len(constraints))]
        search.found.extend(
            ConstraintViolation(*member_path, echo, *constraint)
            for constraint in constraints[:MOST_VIOLATIONS]
        )
    _find_in_members(shape, data, member_path, search)


def _find_in_members(shape: Shape, data: Any, member_path: MemberPath, search: _Search) -> None:
    path, camel = member_path
    match shape:
        case Structure():
            for name, member in shape.members.items():
                here = (f"{path}.{name}", f"{camel}.{_camel(name)}") if path else (name, _camel(name))
                part = data.get(name)
                if part is not None:
                    _find(member, part, here, search)
                elif name in shape.required:
                    search.found.append(ConstraintViolation(*here, None, "null", _NULL))
        case Sequence():
            for number, part in enumerate(data, 1):
                if len(search.found) >= MOST_VIOLATIONS:
                    break  # no more are reported
                here = f"{path}.{number}.member", f"{camel}.{number}.member"
                if part is None:
                    search.found.append(ConstraintViolation(*here, None, "null", _NULL))
                else:
                    _find(shape.of, part, here, search)
        case Mapping() if not isinstance(shape.of, AttributeValue):
            for key, part in data.items():
                if len(search.found) >= MOST_VIOLATIONS:
                    break
                _find(shape.of, part, (f"{path}.{key}.member", f"{camel}.{key}.member"), search)


def _echo(shape: Shape, data: Any, as_json: bool) -> str:
    """Format a value as the service repeats it, up to the length limit."""
    shortened = error_texts.beginning(data)
    return error_texts.echo(shortened) if as_json else _java_text(shape, shortened)


def _camel(name: str) -> str:
    return name[0].lower() + name[1:]


# paritysuite captures/cross-region-latest.json, probe c_bw_over25, 2026-09-20
_VALUE_FIELDS = (
    *("S", "N", "B", "INT", "DECIMAL", "DOUBLE", "SS", "NS", "BS", "INTSET", "DECIMALSET", "DOUBLESET"),
    *("M", "L", "NULL", "BOOL"),
)


def _java_text(shape: Shape, data: Any) -> str:
    """Format a value like the service's Java objects today. Some regions print hash codes instead."""
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
                for name, member in _printed_members(shape)
            )
            return f"{shape.java}({members})"
    return error_texts.echo(data)


def _printed_members(shape: Structure) -> Iterable[tuple[str, Shape]]:
    """Return the members that a Java object prints. Those that this server does not have are null."""
    if not shape.printed:
        return shape.members.items()
    return [(name, shape.members.get(name, Text())) for name in shape.printed]


def _java_data(tag: str, data: Any) -> str:
    if data is not None and tag == "L":
        return _java_text(Sequence(AttributeValue()), data)
    if data is not None and tag == "M":
        return _java_text(Mapping(AttributeValue()), data)
    return error_texts.echo(data)


Broken = tuple[Literal["enum", "pattern", "minimum", "maximum", "keys", "values", "sentence"], str]
"""A violated constraint: its kind and its text."""


def _violated_constraints(shape: Shape, data: Any) -> list[Broken]:
    """Return the constraints that this member itself violates."""
    match shape:
        case Text():
            return _broken_text(shape, data)
        case Number():
            return _broken_bounds("value", data, shape.minimum, shape.maximum)
        case Sequence():
            return _broken_bounds("length", len(data), shape.minimum, shape.maximum)
        case Mapping():
            constraints = _broken_bounds("length", len(data), shape.minimum, shape.maximum)
            if shape.keys is not None:
                listing = _all_of(shape.keys.minimum, shape.keys.maximum, shape.keys.pattern)
                bad = [key for key in data if _broken_text(shape.keys, key)]
                constraints += [("keys", f"Map keys must satisfy constraint: [{listing}]")] * len(bad)
            if shape.lengths is not None:
                listing = _all_of(*shape.lengths)
                low, high = shape.lengths
                bad = [key for key, part in data.items() if not low <= len(part) <= high]
                constraints += [("values", f"Map value must satisfy constraint: [{listing}]")] * len(bad)
            return constraints
    return []


def _broken_text(shape: Text, data: str) -> list[Broken]:
    constraints: list[Broken] = []
    if shape.instead and re.fullmatch(shape.instead, data):
        return constraints
    if shape.sentence and _broken_bounds("length", len(data), shape.minimum, shape.maximum):
        return [("sentence", shape.sentence)]
    if shape.enum and data not in shape.enum:
        constraints.append(("enum", f"Member must satisfy enum value set: [{', '.join(shape.enum)}]"))
    if shape.applied and not re.fullmatch(shape.applied, data):
        constraints.append(("pattern", f"Member must satisfy regular expression pattern: {shape.pattern}"))
    minimum = shape.minimum if data or shape.empty_minimum is None else shape.empty_minimum
    return constraints + _broken_bounds("length", len(data), minimum, shape.maximum)


def _broken_bounds(measure: str, data: Any, minimum: int | None, maximum: int | None) -> list[Broken]:
    constraints: list[Broken] = []
    if minimum is not None and data < minimum:
        constraints.append(("minimum", f"Member must have {measure} greater than or equal to {minimum}"))
    if maximum is not None and data > maximum:
        constraints.append(("maximum", f"Member must have {measure} less than or equal to {maximum}"))
    return constraints


def _all_of(minimum: int | None, maximum: int | None, pattern: str = "") -> str:
    """Format the constraints on keys or members of a map, in the service's order."""
    texts = [
        f"Member must have length less than or equal to {maximum}",
        f"Member must have length greater than or equal to {minimum}",
    ]
    if pattern:
        texts.append(f"Member must satisfy regular expression pattern: {pattern}")
    return ", ".join(texts)


# The validator


def clean(context: RuleContext, request: Request, body: Any) -> dict[str, Any]:
    """Return the input without nulls and unknown members.

    Raises ServiceError: the first error in the service's order.
    """
    if not isinstance(body, dict):
        raise serialization(json_type("structure", body, context.operation + "Input"))
    data: dict[str, Any] = typed_members(request.shape, body, ValueBudget())
    violated = violations(context, request.shape, data)
    if request.named and data.get(request.named) is None:
        raise context.refused("required", name=request.named)
    if violated:
        first = [violation for violation in violated if violation.path == request.alone]
        raise constraint_error(context, first or violated)
    return data
