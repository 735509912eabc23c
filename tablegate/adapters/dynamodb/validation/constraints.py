"""Violations of member constraints, in the service's order, and the echo of the wrong values. wire/errors.py has the texts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from tablegate.adapters.dynamodb.validation.rules.rule_context import RuleContext
from tablegate.adapters.dynamodb.validation.schemas.schema_types import (
    AttributeValue,
    Mapping,
    Number,
    Sequence,
    Shape,
    Structure,
    Text,
)
from tablegate.adapters.dynamodb.wire import limits, messages
from tablegate.adapters.dynamodb.wire.errors import (
    MOST_VIOLATIONS,
    ConstraintViolation,
)

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
    shortened = messages.beginning(data)
    return messages.echo(shortened) if as_json else _java_text(shape, shortened)


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
    return messages.echo(data)


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
    return messages.echo(data)


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
