"""The types of SQL, and its values as MySQL compares and converts them.

The types are those of mapped columns and those of expressions. None is NULL. Text is compared by code point, as the service
does. Source: MySQL 8 reference manual, "Type Conversion in Expression Evaluation".
"""

from __future__ import annotations

import math
import re
import sys
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import Enum
from typing import Any, Protocol

from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import ServiceError, invalid


class SqlType(Enum):
    """The type of an expression. The Python values are int, bool, float, str, bytes, datetime (UTC), date and timedelta."""

    LONG = "bigint"
    BOOL = "boolean"
    DOUBLE = "double"
    STRING = "string"
    BINARY = "binary"
    DATETIME = "datetime"
    DATE = "date"
    TIME = "time"
    NULL = "null"

    @property
    def is_numeric(self) -> bool:
        return self in (SqlType.LONG, SqlType.BOOL, SqlType.DOUBLE)


class IndexField(Protocol):
    """The field of a search index for a column. `source`: the column of the table that has its values.

    `is_virtual`: the values are converted from those of another type.
    """

    @property
    def source(self) -> str: ...

    @property
    def is_virtual(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class SqlColumn:
    """A column of a mapping, or one that a statement computes.

    - `declared`: its type as DESCRIBE shows it.
    - `field`: of the search index that is used.
    - `is_hidden`: only its qualified name means it, as the second column of a USING.
    """

    name: str
    type: SqlType
    declared: str
    is_key: bool = False
    is_nullable: bool = True
    field: IndexField | None = None
    is_hidden: bool = False

    @property
    def is_virtual(self) -> bool:
        """True if its values are those of a virtual field. Then it is not selected itself."""
        return self.field is not None and self.field.is_virtual

    @property
    def stored_name(self) -> str:
        """The name of the column of the table that has its values."""
        return self.field.source if self.field is not None and self.field.is_virtual else self.name


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of a result."""

    name: str
    type: SqlType


def sql_error(message: str) -> ServiceError:
    """Return the error for a statement that cannot be run."""
    return invalid(message)


def common_type(types: list[SqlType]) -> SqlType:
    """Return the type of an expression that has one of several values, such as IF and COALESCE."""
    known = {each for each in types if each is not SqlType.NULL}
    if len(known) <= 1:
        return known.pop() if known else SqlType.NULL
    if all(each.is_numeric for each in known):
        return SqlType.DOUBLE if SqlType.DOUBLE in known else SqlType.LONG
    if known <= {SqlType.DATE, SqlType.DATETIME}:
        return SqlType.DATETIME
    return SqlType.STRING


_NUMBER = re.compile(r"\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)")
_INTEGER_BEGINNING = re.compile(r"\s*([+-]?\d{1,400})", re.ASCII)
_WHOLE_NUMBER = re.compile(r"\s*([+-]?\d{1,400})\s*", re.ASCII)
_MOMENT = re.compile(
    r"(\d{4}|\d{2})[-/.](\d{1,2})[-/.](\d{1,2})(?:[T ]+(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6})\d*)?)?)?)?",
    re.ASCII,
)
_MOMENT_OF_DIGITS = re.compile(r"(\d{4}|\d{2})(\d{2})(\d{2})(?:(\d{2})(\d{2})(\d{2}))?", re.ASCII)
_TIME = re.compile(r"(-?)(?:(\d{1,2}) )?(\d{1,3}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6})\d*)?)?", re.ASCII)
_TIME_OF_DIGITS = re.compile(r"(-?)()(\d{0,3}?)(\d{0,2}?)(\d{1,2})(?:\.(\d{1,6})\d*)?", re.ASCII)
INTEGER_MIN, INTEGER_MAX = -(2**63), 2**63 - 1
_DOUBLE_MAX = sys.float_info.max
_TEMPORAL = (date, timedelta)  # a datetime is a date
_ZERO = timedelta()
_MIDNIGHT = time()


class BytesLiteral(bytes):
    """The bytes of a literal such as 0x41, which is a number where one is needed ("Hexadecimal Literals", MySQL 8)."""


def to_number(value: Any) -> int | float | None:
    """Return a value as a number. Text counts by its numeric beginning."""
    match value:
        case None | int() | float():
            return value
        case BytesLiteral():
            return int.from_bytes(value, "big")
        case str() | bytes():
            text = value if isinstance(value, str) else value.decode("latin-1")
            found = _NUMBER.match(text[:400])
            number = float(found[1]) if found else 0.0
            return max(-_DOUBLE_MAX, min(_DOUBLE_MAX, number))  # a DOUBLE of MySQL is finite
        case datetime():
            return int(value.strftime("%Y%m%d%H%M%S").rjust(14, "0"))
        case date():
            return int(value.strftime("%Y%m%d"))
        case timedelta():
            seconds = int(abs(value).total_seconds())
            number = seconds // 3600 * 10_000 + seconds // 60 % 60 * 100 + seconds % 60
            return -number if value < _ZERO else number
    raise TypeError(value)


def to_integer(value: Any) -> int | None:
    """Return a value as a BIGINT, the nearest one. Text counts by the digits of its beginning."""
    if isinstance(value, (str, bytes)) and not isinstance(value, BytesLiteral):
        found = _INTEGER_BEGINNING.match(value if isinstance(value, str) else value.decode("latin-1"))
        number: int | float | None = int(found[1]) if found else 0
    else:
        number = to_number(value)
    if isinstance(number, float):
        number = nearest_integer(number)
    return None if number is None else max(INTEGER_MIN, min(INTEGER_MAX, int(number)))


def nearest_integer(number: float) -> int:
    """Return the nearest integer. A half is rounded away from zero. The sum `number + 0.5` would be rounded itself."""
    size = abs(number)
    whole = math.floor(size)
    whole += size - whole >= 0.5
    return whole if number >= 0 else -whole


def bounded(text: str) -> str:
    """Return a text that a function has computed. Raises ServiceError if it is too long."""
    if len(text) > limits.SQL_TEXT_MAX:
        raise sql_error("The result of a function is too long.")
    return text


def to_text(value: Any) -> str | None:
    """Return a value as text."""
    match value:
        case None | str():
            return value
        case bool() | int():
            return str(int(value))
        case float():
            return (
                str(int(value))
                if value.is_integer() and abs(value) < 1e15
                else repr(value).replace("e+", "e")
            )
        case bytes():
            return value.decode("utf-8", "replace")
        case datetime():
            return value.isoformat(" ")
        case date():
            return value.isoformat()
        case timedelta():
            return _time_text(value)
    raise TypeError(value)


def _time_text(value: timedelta) -> str:
    rest, micros = divmod(abs(value) // timedelta(microseconds=1), 1_000_000)
    minutes, seconds = divmod(rest, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{micros:06d}" if micros else ""
    return f"{'-' if value < _ZERO else ''}{hours:02d}:{minutes:02d}:{seconds:02d}{fraction}"


def to_datetime(value: Any) -> datetime | None:
    """Return a value as a date with a time, from the forms that MySQL accepts. None if it is none.

    Source: "Date and Time Literals": any of some separators, or digits only, which may be a number.
    """
    match value:
        case datetime():
            return value.replace(tzinfo=None)
        case date():
            return datetime.combine(value, _MIDNIGHT)
        case int():
            return _moment_of(_MOMENT_OF_DIGITS.fullmatch(str(value)))
        case str():
            text = value.strip()
            match = _MOMENT.fullmatch(text) or _MOMENT_OF_DIGITS.fullmatch(text)
            if match is not None:
                return _moment_of(match)
            try:
                return datetime.fromisoformat(text).replace(tzinfo=None)
            except ValueError:
                return None
    return None


def _moment_of(match: re.Match[str] | None) -> datetime | None:
    """Return the moment of year, month, day, hour, minute, second and fraction. None if it is none."""
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    if len(match[1]) == 2:
        year += 2000 if year < 70 else 1900
    fraction = (match[7] or "") if match.re is _MOMENT else ""
    try:
        return datetime(year, month, day, hour, minute, second, int(fraction.ljust(6, "0")))
    except ValueError:  # such as the 30th of February
        return None


def to_time(value: Any) -> timedelta | None:
    """Return a value as a length of time, from the forms that MySQL accepts. None if it is none.

    Source: "Date and Time Literals": `days hours:minutes:seconds`, or digits that end with the seconds.
    """
    if isinstance(value, timedelta):
        return value
    text = str(value) if type(value) in (int, float) else value.strip() if isinstance(value, str) else ""
    match = _TIME.fullmatch(text) or _TIME_OF_DIGITS.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups()[1:5])
    if minutes > 59 or seconds > 59:
        return None
    micros = int((match[6] or "").ljust(6, "0"))
    length = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds, microseconds=micros)
    return -length if match[1] else length


def time_of(value: Any) -> timedelta | None:
    """Return a length of time, or the time of a moment. None if a value is neither."""
    length = to_time(value)
    if length is not None:
        return length
    found = to_datetime(value)
    return None if found is None else found - datetime.combine(found.date(), _MIDNIGHT)


def truth(value: Any) -> bool | None:
    """Return the truth of a value: a number other than zero."""
    number = to_number(value)
    return None if number is None else number != 0


def compare(left: Any, right: Any) -> int | None:
    """Return -1, 0 or 1, or None if a value is NULL or they cannot be compared.

    An integer and the text of one are compared exactly, as MySQL compares a column and a constant.
    """
    if left is None or right is None:
        return None
    if isinstance(left, str) and isinstance(right, str):
        return _order(left, right)
    if isinstance(left, bytes) or isinstance(right, bytes):
        left, right = (value.encode() if isinstance(value, str) else value for value in (left, right))
        if isinstance(left, bytes) and isinstance(right, bytes):
            return _order(left, right)
    if isinstance(left, timedelta) and isinstance(right, timedelta):
        return _order(left, right)
    is_temporal = isinstance(left, date) or isinstance(right, date)
    if is_temporal and not isinstance(left, (int, float)) and not isinstance(right, (int, float)):
        left, right = to_datetime(left), to_datetime(right)
        return None if left is None or right is None else _order(left, right)
    if isinstance(left, timedelta) and isinstance(right, str):
        return _order(_time_text(left), right)
    if isinstance(right, timedelta) and isinstance(left, str):
        return _order(left, _time_text(right))
    return _order(_comparable(left, right), _comparable(right, left))


def _comparable(value: Any, other: Any) -> int | float | None:
    """Return a value as a number to compare with another value."""
    if isinstance(value, str) and isinstance(other, int):
        number = whole_number(value)
        if number is not None:
            return number
    return to_number(value)


def whole_number(text: str) -> int | None:
    """Return the integer of a text, or None."""
    match = _WHOLE_NUMBER.fullmatch(text)
    return None if match is None else int(match[1])


def _order(left: Any, right: Any) -> int:
    return (left > right) - (left < right)


def checked(value: float) -> int | float:
    """Return the result of arithmetic. Raises ServiceError if it is out of range."""
    if isinstance(value, int):
        if not INTEGER_MIN <= value <= INTEGER_MAX:
            raise sql_error("BIGINT value is out of range.")
    elif not math.isfinite(value):
        raise sql_error("DOUBLE value is out of range.")
    return value


def converted(value: Any, kind: SqlType) -> Any:
    """Return a value in the type of an expression or a CAST. A number that is out of range becomes the nearest one."""
    if value is None:
        return None
    match kind:
        case SqlType.LONG:
            return to_integer(value)
        case SqlType.BOOL:
            return truth(value)
        case SqlType.DOUBLE:
            number = to_number(value)
            return None if number is None else float(number)
        case SqlType.STRING:
            return to_text(value)
        case SqlType.BINARY:
            return value if isinstance(value, bytes) else (to_text(value) or "").encode()
        case SqlType.DATETIME:
            return to_datetime(value)
        case SqlType.DATE:
            moment = to_datetime(value)
            return None if moment is None else moment.date()
        case SqlType.TIME:
            return time_of(value)
    return value


def sort_key(value: Any) -> tuple[int, Any]:
    """Return the key of a value of one type in an ascending order. NULL comes first."""
    return (0, 0) if value is None else (1, value)
