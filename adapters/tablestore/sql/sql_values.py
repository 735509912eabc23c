"""Values of SQL as MySQL compares and converts them (MySQL 8 reference manual, "Type Conversion in Expression Evaluation").

None is NULL. Text is compared by code point, as the service does.
"""

from __future__ import annotations

import math
import re
from datetime import date, datetime, time, timedelta
from typing import Any

from tablegate.adapters.tablestore.sql.sql_types import SqlType, sql_error

_NUMBER = re.compile(r"\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)")
_INTEGER_MIN, _INTEGER_MAX = -(2**63), 2**63 - 1
_TEMPORAL = (date, timedelta)  # a datetime is a date
_ZERO = timedelta()
_MIDNIGHT = time()


def to_number(value: Any) -> int | float | None:
    """Return a value as a number. Text counts by its numeric beginning."""
    match value:
        case None | int() | float():
            return value
        case str() | bytes():
            text = value if isinstance(value, str) else value.decode("latin-1")
            found = _NUMBER.match(text[:400])
            return float(found[1]) if found else 0.0
        case datetime():
            return int(value.strftime("%Y%m%d%H%M%S").rjust(14, "0"))
        case date():
            return int(value.strftime("%Y%m%d"))
        case timedelta():
            seconds = int(abs(value).total_seconds())
            number = seconds // 3600 * 10_000 + seconds // 60 % 60 * 100 + seconds % 60
            return -number if value < _ZERO else number
    raise TypeError(value)


def to_text(value: Any) -> str | None:
    """Return a value as text."""
    match value:
        case None | str():
            return value
        case bool() | int():
            return str(int(value))
        case float():
            return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
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
    """Return a value as a date with a time. None if it is none."""
    match value:
        case datetime():
            return value.replace(tzinfo=None)
        case date():
            return datetime.combine(value, _MIDNIGHT)
        case str():
            try:
                return datetime.fromisoformat(value.strip()).replace(tzinfo=None)
            except ValueError:
                return None
    return None


def truth(value: Any) -> bool | None:
    """Return the truth of a value: a number other than zero."""
    number = to_number(value)
    return None if number is None else number != 0


def compare(left: Any, right: Any) -> int | None:
    """Return -1, 0 or 1, or None if a value is NULL or they cannot be compared."""
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
    return _order(to_number(left), to_number(right))


def _order(left: Any, right: Any) -> int:
    return (left > right) - (left < right)


def checked(value: float) -> int | float:
    """Return the result of arithmetic. Raises ServiceError if it is out of range."""
    if isinstance(value, int):
        if not _INTEGER_MIN <= value <= _INTEGER_MAX:
            raise sql_error("BIGINT value is out of range.")
    elif not math.isfinite(value):
        raise sql_error("DOUBLE value is out of range.")
    return value


def converted(value: Any, kind: SqlType) -> Any:
    """Return a value in the type of an expression or a CAST. Raises ServiceError if a number is out of range."""
    if value is None:
        return None
    match kind:
        case SqlType.LONG | SqlType.BOOL:
            number = to_number(value)
            if isinstance(number, float):
                number = int(checked(math.floor(abs(number) + 0.5) * (1 if number >= 0 else -1)))
            return bool(number) if kind is SqlType.BOOL else number
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
    return value


def sort_key(value: Any) -> tuple[int, Any]:
    """Return the key of a value of one type in an ascending order. NULL comes first."""
    return (0, 0) if value is None else (1, value)
