"""What a visitor asks to see of a table: fields of a form, made into a range of keys and a predicate.

A key is read as its column's kind; a value in a filter as JSON if it is a number, true, false, null or a text in quotation
marks, else as the text that it is.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

import orjson

from tablegate.gateway.model.expressions import ranges
from tablegate.gateway.model.expressions.predicates import (
    ALWAYS,
    Attribute,
    Compare,
    Comparison,
    Contains,
    Exists,
    Literal,
    Not,
    Predicate,
    StartsWith,
)
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema, Position
from tablegate.gateway.model.values.values import FALSE, NULL, TRUE, Kind, Value, decimal, text

OPERATORS = ("=", "<>", "<", "<=", ">", ">=", "begins with", "contains", "exists", "is missing")
KEY_OPERATORS = ("=", "<", "<=", ">", ">=", "begins with")
_LONGEST = 4096


class BadSearch(ValueError):
    """A field holds what it cannot. The text names it and says what is wanted."""


@dataclass(frozen=True, slots=True)
class Search:
    """Fields of the form as they were filled in; all may be empty. `keys`: those of the key columns, in order; `operator`: of
    the last one that is filled in; `after`: where the page before ended."""

    index: str = ""
    keys: tuple[str, ...] = ()
    operator: str = "="
    attribute: str = ""
    comparison: str = "="
    value: str = ""
    after: str = ""

    @classmethod
    def of_form(cls, given: Mapping[str, str]) -> Search:
        """A search of the fields that a browser sends."""
        fields = {name: value[:_LONGEST] for name, value in given.items()}
        keys = [fields.get(f"key{number}", "") for number in range(8)]
        while keys and not keys[-1]:
            keys.pop()
        return cls(
            fields.get("index", ""),
            tuple(keys),
            fields.get("operator", "="),
            fields.get("attribute", ""),
            fields.get("comparison", "="),
            fields.get("value", ""),
            fields.get("after", ""),
        )

    def range(self, schema: KeySchema) -> ranges.KeyRange:
        """The range of keys in a table or index with this key. Raises BadSearch."""
        found = self._range_of_keys(schema)
        return found if not self.after else found.after(position_of(self.after))

    def _range_of_keys(self, schema: KeySchema) -> ranges.KeyRange:
        if not self.keys:
            return ranges.EVERYTHING
        if len(self.keys) > len(schema.columns) or not all(self.keys):
            raise BadSearch("fill in the key columns from the first one on")
        columns = schema.columns
        values = [_key_value(column, given) for column, given in zip(columns, self.keys, strict=False)]
        if self.operator == "=":
            return ranges.range_of(schema, values)
        if self.operator == "begins with":
            if values[-1].kind not in (Kind.TEXT, Kind.BYTES):
                raise BadSearch("only texts and bytes begin with something")
            bounds: ranges.ColumnBounds | None = ranges.bounds_of_prefix(values[-1])
        else:
            bounds = ranges.bounds_of(_comparison(self.operator, KEY_OPERATORS), values[-1])
        return ranges.range_of(schema, values[:-1], bounds)

    def predicate(self) -> Predicate:
        """What rows have to meet. Raises BadSearch."""
        if not self.attribute:
            return ALWAYS
        path = (self.attribute,)
        value = Literal(_value(self.value))
        match self.comparison:
            case "exists":
                return Exists(path)
            case "is missing":
                return Not(Exists(path))
            case "begins with":
                return StartsWith(Attribute(path), value)
            case "contains":
                return Contains(Attribute(path), value)
        return Compare(Attribute(path), _comparison(self.comparison, OPERATORS), value)


def place_of(position: Position) -> str:
    """A position as it stands in addresses of pages."""
    return ".".join(base64.urlsafe_b64encode(part).decode() for part in position)


def position_of(place: str) -> Position:
    """The position that `place_of` wrote. Raises BadSearch."""
    try:
        partition, _, sort = place.partition(".")
        return Position(*(base64.b64decode(part, b"-_", validate=True) for part in (partition, sort)))
    except (binascii.Error, ValueError):
        raise BadSearch("this is no place in a table") from None


def _comparison(operator: str, known: tuple[str, ...]) -> Comparison:
    if operator not in known:
        raise BadSearch(f"an operator is one of: {', '.join(known)}")
    return Comparison(operator)


def _key_value(column: KeyColumn, given: str) -> Value:
    try:
        match column.kind:
            case Kind.TEXT:
                return text(given)
            case Kind.DECIMAL:
                return decimal(_number(given))
            case Kind.INT64:
                return Value(Kind.INT64, int(given))
            case _:
                return Value(Kind.BYTES, base64.b64decode(given, validate=True))
    except (ValueError, InvalidOperation):
        wanted = {Kind.BYTES: "bytes in base64", Kind.INT64: "a whole number"}.get(column.kind, "a number")
        raise BadSearch(f"{column.name} is {wanted}") from None


def _value(given: str) -> Value:
    constants = {"true": TRUE, "false": FALSE, "null": NULL}
    if given in constants:
        return constants[given]
    if given[:1] == given[-1:] == '"' and len(given) > 1:
        try:
            return text(orjson.loads(given))
        except orjson.JSONDecodeError:
            raise BadSearch("the text in quotation marks is no JSON") from None
    try:
        return decimal(_number(given))
    except (ValueError, InvalidOperation):
        return text(given)


def _number(given: str) -> Decimal:
    """A number within DynamoDB's range, which is that of all stored numbers."""
    found = Decimal(given)
    if not found.is_finite() or abs(found.adjusted()) > 130 or len(found.as_tuple().digits) > 38:
        raise ValueError(given)
    return found
