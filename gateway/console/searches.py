"""Searches: fields of a form, converted to a range of keys and a predicate.

A key is read as the type of its column. A filter value is read as JSON if it is a number, true, false, null or a text in
quotation marks. Otherwise it is a text.
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
    """An invalid value of a field. The text names the field and says what is expected."""


@dataclass(frozen=True, slots=True)
class Search:
    """The fields of the form. All can be empty.

    - `keys`: values of the key columns, in order.
    - `operator`: the comparison with the last one of `keys`.
    - `after`: the end of the previous page.
    """

    index: str = ""
    keys: tuple[str, ...] = ()
    operator: str = "="
    attribute: str = ""
    comparison: str = "="
    value: str = ""
    after: str = ""

    @classmethod
    def of_form(cls, given: Mapping[str, str]) -> Search:
        """Return the search of a submitted form."""
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
        """Return the range of keys in a table or index with this key schema. Raises BadSearch."""
        found = self._range_of_keys(schema)
        return found if not self.after else found.after(position_of(self.after))

    def _range_of_keys(self, schema: KeySchema) -> ranges.KeyRange:
        if not self.keys:
            return ranges.EVERYTHING
        if len(self.keys) > len(schema.columns) or not all(self.keys):
            raise BadSearch("Fill in the key columns in order, beginning with the first one.")
        columns = schema.columns
        values = [_key_value(column, given) for column, given in zip(columns, self.keys, strict=False)]
        if self.operator == "=":
            return ranges.range_of(schema, values)
        if self.operator == "begins with":
            if values[-1].kind not in (Kind.TEXT, Kind.BYTES):
                raise BadSearch("The operator 'begins with' requires a key column of texts or bytes.")
            bounds: ranges.ColumnBounds | None = ranges.bounds_of_prefix(values[-1])
        else:
            bounds = ranges.bounds_of(_comparison(self.operator, KEY_OPERATORS), values[-1])
        return ranges.range_of(schema, values[:-1], bounds)

    def predicate(self) -> Predicate:
        """Return the filter. Raises BadSearch."""
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
    """Return a position as text for URLs of pages."""
    return ".".join(base64.urlsafe_b64encode(part).decode() for part in position)


def position_of(place: str) -> Position:
    """Return the position from a text of `place_of`. Raises BadSearch."""
    try:
        partition, _, sort = place.partition(".")
        return Position(*(base64.b64decode(part, b"-_", validate=True) for part in (partition, sort)))
    except (binascii.Error, ValueError):
        raise BadSearch("This is not a position in a table. Search again.") from None


def _comparison(operator: str, known: tuple[str, ...]) -> Comparison:
    if operator not in known:
        raise BadSearch(f"The operator must be one of: {', '.join(known)}.")
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
        expected = {Kind.BYTES: "bytes in base64", Kind.INT64: "a whole number"}.get(column.kind, "a number")
        raise BadSearch(f"{column.name} must be {expected}.") from None


def _value(given: str) -> Value:
    constants = {"true": TRUE, "false": FALSE, "null": NULL}
    if given in constants:
        return constants[given]
    if given[:1] == given[-1:] == '"' and len(given) > 1:
        try:
            return text(orjson.loads(given))
        except orjson.JSONDecodeError:
            raise BadSearch("The text in quotation marks is not valid JSON.") from None
    try:
        return decimal(_number(given))
    except (ValueError, InvalidOperation):
        return text(given)


def _number(given: str) -> Decimal:
    """Return a number in the range of DynamoDB, which applies to all stored numbers. Raises ValueError."""
    found = Decimal(given)
    if not found.is_finite() or abs(found.adjusted()) > 130 or len(found.as_tuple().digits) > 38:
        raise ValueError(given)
    return found
