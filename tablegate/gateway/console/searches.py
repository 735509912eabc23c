"""Searches: fields of a form, converted to conditions on keys and attributes.

A key is read as the type of its column. A filter value is read as its type, if one was chosen. Otherwise it is read as JSON if it
is a number, true, false, null or a text in quotation marks, and else as a text.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

import orjson

from tablegate.gateway.console.value_texts import BadValue, value_of
from tablegate.gateway.dialects.adapter import RowDisplay
from tablegate.gateway.model.commands.row_search import (
    KEY_OPERATORS,
    Condition,
    Operator,
    RowSearch,
    parse_path,
)
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import KeyColumn, Position
from tablegate.gateway.model.values.values import FALSE, NULL, TRUE, Kind, Value, text

FILTERS = 8
"""Maximum number of filters of a search."""
_KEYS = 8
_LONGEST = 4096
_NO_OPERAND = (Operator.EXISTS, Operator.NOT_EXISTS)
# The members of a list: texts in quotation marks, or anything without commas.
_MEMBER = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[^,]*?)\s*(?:,|$)')


class BadSearch(ValueError):
    """An invalid value of a field. The text says what is expected. `field`: the name of the field, "" if unknown."""

    def __init__(self, text: str, field: str = "") -> None:
        super().__init__(text)
        self.field = field


@dataclass(frozen=True, slots=True)
class FilterFields:
    """The fields of one filter. `type` is the name of a type of the dialect, "" to read the type from the value."""

    attribute: str = ""
    comparison: str = "="
    value: str = ""
    type: str = ""


@dataclass(frozen=True, slots=True)
class Search:
    """The fields of the form. All can be empty.

    - `keys`: values of the key columns, in order.
    - `operator`: the comparison with the last one of `keys`. `upper` is its second operand, of `between`.
    - `order`: "desc" for the order from the highest key to the lowest.
    """

    index: str = ""
    keys: tuple[str, ...] = ()
    operator: str = "="
    upper: str = ""
    filters: tuple[FilterFields, ...] = ()
    order: str = ""

    @classmethod
    def of_form(cls, given: Mapping[str, str]) -> Search:
        """Return the search of a submitted form."""
        fields = dict(given.items())
        keys = [fields.get(f"key{number}", "") for number in range(_KEYS)]
        while keys and not keys[-1]:
            keys.pop()
        filters = []
        for number in range(FILTERS + 1):  # one more is refused by `on`
            mark = str(number or "")  # the first filter has no number
            if fields.get(f"attribute{mark}") or fields.get(f"value{mark}"):
                filters.append(
                    FilterFields(
                        fields.get(f"attribute{mark}", ""),
                        fields.get(f"comparison{mark}", "="),
                        fields.get(f"value{mark}", ""),
                        fields.get(f"type{mark}", ""),
                    )
                )
        return cls(
            fields.get("index", ""),
            tuple(keys),
            fields.get("operator", "="),
            fields.get("upper", ""),
            tuple(filters),
            fields.get("order", ""),
        )

    @property
    def is_empty(self) -> bool:
        """True if the search is for all rows of a table."""
        return not (self.index or self.keys or self.filters)

    def fields(self) -> dict[str, str]:
        """Return the fields that are not empty, for links and hidden fields."""
        found = {f"key{number}": key for number, key in enumerate(self.keys)}
        if self.keys and self.operator != "=":
            found |= {"operator": self.operator, "upper": self.upper}
        for number, each in enumerate(self.filters):
            mark = str(number or "")
            found |= {
                f"attribute{mark}": each.attribute, f"comparison{mark}": each.comparison,
                f"value{mark}": each.value, f"type{mark}": each.type,
            }  # fmt: skip
        found |= {"index": self.index, "order": self.order}
        return {name: value for name, value in found.items() if value}

    def on(self, table: Table, display: RowDisplay) -> RowSearch:
        """Return the search of a table. The display reads names of types. Raises BadSearch."""
        if len(self.filters) > FILTERS or any(len(each) > _LONGEST for each in self.fields().values()):
            raise BadSearch(
                f"A search has at most {FILTERS} filters, and {_LONGEST:,} characters in each field."
            )
        search = RowSearch(table, _index(table, self.index), reverse=self.order == "desc")
        equal, last = self._key_conditions(search)
        filters = tuple(
            _condition(each, str(number or ""), display) for number, each in enumerate(self.filters)
        )
        return search._replace(equal=equal, last=last, filters=filters)

    def _key_conditions(self, search: RowSearch) -> tuple[tuple[Value, ...], Condition | None]:
        if not self.keys:
            return (), None
        columns = search.schema.columns
        if len(self.keys) > len(columns) or not all(self.keys):
            raise BadSearch("Fill in the key columns in order, beginning with the first one.", "key0")
        values = [
            _key_value(column, given, f"key{number}")
            for number, (column, given) in enumerate(zip(columns, self.keys, strict=False))
        ]
        operator = _operator(self.operator, KEY_OPERATORS, "operator")
        if operator is Operator.EQ:
            return tuple(values), None
        column = columns[len(values) - 1]
        if operator is Operator.BEGINS_WITH and column.kind not in (Kind.TEXT, Kind.BYTES):
            raise BadSearch("The operator 'begins with' requires a key column of texts or bytes.", "operator")
        operands = [values[-1]]
        if operator is Operator.BETWEEN:
            operands.append(_key_value(column, self.upper, "upper"))
        return tuple(values[:-1]), Condition((column.name,), operator, tuple(operands))


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


def operand_of(given: str, type_name: str, display: RowDisplay) -> Value:
    """Return the value of a field as a type of the dialect. "": the type follows from the value. Raises BadSearch."""
    if not type_name:
        return _untyped(given)
    try:
        return value_of(kind_of(type_name, display), given)
    except BadValue as error:
        raise BadSearch(f"{given!r} is not of the type {type_name}. {error}") from None


def kind_of(type_name: str, display: RowDisplay) -> Kind:
    """Return the kind of a type of the dialect. Raises BadSearch."""
    for kind, name in display.type_names.items():
        if name == type_name:
            return kind
    raise BadSearch(f"The type must be one of: {', '.join(display.type_names.values())}.")


def _index(table: Table, name: str) -> Index | None:
    if not name:
        return None
    index = table.index(name)
    if index is None:
        raise BadSearch(f"The table has no index {name}.")
    return index


def _operator(text: str, known: tuple[Operator, ...], field: str) -> Operator:
    for operator in known:
        if operator.value == text:
            return operator
    raise BadSearch(f"The operator must be one of: {', '.join(each.value for each in known)}.", field)


def _condition(fields: FilterFields, mark: str, display: RowDisplay) -> Condition:
    """Return the condition of a filter. `mark`: the end of its fields' names."""
    if not fields.attribute:
        raise BadSearch("The filter needs the name of an attribute.", f"attribute{mark}")
    path = parse_path(fields.attribute)
    if path is None:
        text = "is not a path such as a.b[0]. Put quotation marks around a name with other characters."
        raise BadSearch(f"{fields.attribute} {text}", f"attribute{mark}")
    operator = _operator(fields.comparison, tuple(Operator), f"comparison{mark}")
    if operator in _NO_OPERAND:
        return Condition(path, operator)
    try:
        if operator is Operator.TYPE:
            return Condition(path, operator, kind=kind_of(fields.value, display))
        return Condition(path, operator, _operands(fields, operator, display))
    except BadSearch as error:
        raise BadSearch(str(error), f"value{mark}") from None


def _operands(fields: FilterFields, operator: Operator, display: RowDisplay) -> tuple[Value, ...]:
    if operator.is_of_size:
        return (_size(fields.value),)
    if operator not in (Operator.IN, Operator.BETWEEN):
        return (operand_of(fields.value, fields.type, display),)
    values = tuple(operand_of(each, fields.type, display) for each in _members(fields.value, fields.type))
    if operator is Operator.BETWEEN and len(values) != 2:
        raise BadSearch("The operator 'between' requires two values, such as: 1, 5.")
    return values


def _members(given: str, type_name: str) -> list[str]:
    """Return the members of a list such as `1, "a, b"`. Of typed ones the quotation marks are removed."""
    members: list[str] = []
    at = 0
    while at < len(given):
        found = _MEMBER.match(given, at)
        if found is None:
            raise BadSearch("Separate the values by commas. Put quotation marks around a value with commas.")
        member = found[1]
        members.append(str(_untyped(member).data) if type_name and member[:1] == '"' else member)
        at = found.end()
    if not members or len(members) > 100:
        raise BadSearch("Give 1 to 100 values, separated by commas.")
    return members


def _size(given: str) -> Value:
    if not (given.strip().isascii() and given.strip().isdecimal() and len(given) < 12):
        raise BadSearch("A size must be a whole number.")
    return Value(Kind.DECIMAL, Decimal(int(given)))


def _key_value(column: KeyColumn, given: str, field: str) -> Value:
    try:
        return value_of(column.kind, given)
    except BadValue:
        expected = {Kind.BYTES: "bytes in base64", Kind.INT64: "a whole number"}.get(column.kind, "a number")
        raise BadSearch(f"{column.name} must be {expected}.", field) from None


def _untyped(given: str) -> Value:
    constants = {"true": TRUE, "false": FALSE, "null": NULL}
    if given in constants:
        return constants[given]
    if given[:1] == given[-1:] == '"' and len(given) > 1:
        try:
            return text(orjson.loads(given))
        except orjson.JSONDecodeError:
            raise BadSearch("The text in quotation marks is not valid JSON.") from None
    try:
        return value_of(Kind.DECIMAL, given)
    except BadValue:
        return text(given)
