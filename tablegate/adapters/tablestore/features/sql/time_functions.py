"""The functions of dates and times, and intervals (functions.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from tablegate.adapters.tablestore.features.sql.sql_values import (
    SqlType,
    bounded,
    sql_error,
    time_of,
    to_datetime,
    to_number,
    to_text,
    to_time,
)

_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1)


def from_unixtime(seconds: Any, form: Any = None) -> datetime | str | None:
    """Return the moment of a number of seconds since 1970, or its text if there is a format."""
    number = to_number(seconds) or 0
    if not 0 <= number < 253_402_300_800:
        return None
    at = _EPOCH + timedelta(microseconds=round(number * 1_000_000))
    return at if form is None else date_format(at, form)


def now(digits: Any = 0) -> datetime:
    """Return the time, with up to six digits of a second."""
    if not isinstance(digits, int) or not 0 <= digits <= 6:
        raise sql_error("The precision of a time must be in range: [0, 6].")
    at = datetime.now(UTC).replace(tzinfo=None)
    unit = 10 ** (6 - digits)
    return at.replace(microsecond=at.microsecond // unit * unit)


def timestamp(value: Any, more: Any = None) -> datetime | None:
    """Return a moment, plus a length of time."""
    at, length = to_datetime(value), to_time(more)
    if more is None or at is None:
        return at
    try:
        return None if length is None else at + length
    except OverflowError:
        return None


def unix_timestamp(moment: Any = None) -> int | float | None:
    """Return the seconds since 1970 of a moment, or of now."""
    if moment is None:
        return int(datetime.now(UTC).timestamp())
    found = to_datetime(moment)
    return None if found is None else (found - _EPOCH) / timedelta(seconds=1)


def timediff(left: Any, right: Any) -> timedelta | None:
    """Return the time between two moments or two lengths of time."""
    one, other = to_time(left), to_time(right)
    if one is not None and other is not None:
        return one - other
    first, second = to_datetime(left), to_datetime(right)
    return None if first is None or second is None else first - second


def datediff(left: Any, right: Any) -> int | None:
    """Return the number of days between two dates."""
    first, second = to_datetime(left), to_datetime(right)
    return None if first is None or second is None else (first.date() - second.date()).days


def part(read: Callable[[datetime], int]) -> Callable[[Any], int | None]:
    """Return a function of a part of a moment."""

    def function(value: Any) -> int | None:
        found = to_datetime(value)
        return None if found is None else read(found)

    return function


def part_of_time(unit: timedelta, most: int | None = None) -> Callable[[Any], int | None]:
    """Return a function of the number of units in a time, modulo `most`. A length of time can have many hours."""

    def function(value: Any) -> int | None:
        found = time_of(value)
        if found is None:
            return None
        number = abs(found) // unit
        return number if most is None else number % most

    return function


def _day_with_suffix(at: datetime) -> str:
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(at.day % 10, "th") if at.day not in (11, 12, 13) else "th"
    return f"{at.day}{suffix}"


def _week_from_sunday(at: datetime) -> tuple[int, int]:
    """Return the year and week of a day. Week 1 is the first week with a Sunday in the year."""
    week = int(at.strftime("%U"))
    return (at.year, week) if week else (at.year - 1, int(date(at.year - 1, 12, 31).strftime("%U")))


def _week_from_monday(at: datetime) -> int:
    """Return the week of a day in its year, from 0. Week 1 is the first week with four days in the year."""
    year, week, _ = at.isocalendar()
    if year < at.year:
        return 0
    return week if year == at.year else (at - timedelta(weeks=1)).isocalendar().week + 1


# "DATE_FORMAT" of the MySQL 8 reference manual.
_FORMATS: Mapping[str, Callable[[datetime], str]] = {
    "Y": lambda at: f"{at.year:04d}", "y": lambda at: f"{at.year % 100:02d}", "m": lambda at: f"{at.month:02d}",
    "c": lambda at: str(at.month), "d": lambda at: f"{at.day:02d}", "e": lambda at: str(at.day),
    "H": lambda at: f"{at.hour:02d}", "k": lambda at: str(at.hour), "h": lambda at: f"{(at.hour - 1) % 12 + 1:02d}",
    "I": lambda at: f"{(at.hour - 1) % 12 + 1:02d}", "l": lambda at: str((at.hour - 1) % 12 + 1),
    "i": lambda at: f"{at.minute:02d}", "s": lambda at: f"{at.second:02d}", "S": lambda at: f"{at.second:02d}",
    "f": lambda at: f"{at.microsecond:06d}", "p": lambda at: "AM" if at.hour < 12 else "PM",
    "T": lambda at: at.strftime("%H:%M:%S"), "r": lambda at: at.strftime("%I:%M:%S %p"),
    "j": lambda at: at.strftime("%j"), "W": lambda at: at.strftime("%A"), "a": lambda at: at.strftime("%a"),
    "M": lambda at: at.strftime("%B"), "b": lambda at: at.strftime("%b"), "w": lambda at: str(at.isoweekday() % 7),
    "D": _day_with_suffix, "U": lambda at: at.strftime("%U"), "u": lambda at: f"{_week_from_monday(at):02d}",
    "V": lambda at: f"{_week_from_sunday(at)[1]:02d}", "X": lambda at: f"{_week_from_sunday(at)[0]:04d}",
    "v": lambda at: f"{at.isocalendar().week:02d}", "x": lambda at: f"{at.isocalendar().year:04d}",
    "%": lambda at: "%",
}  # fmt: skip


def date_format(value: Any, form: Any) -> str | None:
    """Return a moment in a format."""
    at = to_datetime(value)
    parts = (to_text(form) or "").split("%")
    if at is None or parts == [""]:
        return None
    result = [parts[0]]
    is_escaped = False  # the text after "%%" is empty in the next part
    for part in parts[1:]:
        if is_escaped:
            result.append(part)
            is_escaped = False
        elif not part:
            result.append("%")
            is_escaped = True
        else:
            known = _FORMATS.get(part[0])
            result.append((part[0] if known is None else known(at)) + part[1:])
    return bounded("".join(result))


def add_interval(value: Any, number: float, unit: str) -> datetime | None:
    """Return a moment plus a number of units. None if it is no moment."""
    at = to_datetime(value)
    if at is None:
        return None
    months = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}.get(unit)
    try:
        if months is None:
            return at + number * _UNITS[unit]
        year, month = divmod(at.year * 12 + at.month - 1 + int(number) * months, 12)
        return at.replace(year=year, month=month + 1, day=min(at.day, _days_of(year, month + 1)))
    except KeyError:
        raise sql_error(f"Unsupported unit of an interval: {unit[:40]}.") from None
    except (OverflowError, ValueError):
        return None


_UNITS = {
    "MICROSECOND": _MICROSECOND, "SECOND": timedelta(seconds=1), "MINUTE": timedelta(minutes=1),
    "HOUR": timedelta(hours=1), "DAY": timedelta(days=1), "WEEK": timedelta(weeks=1),
}  # fmt: skip


def _days_of(year: int, month: int) -> int:
    following = date(year + month // 12, month % 12 + 1, 1)
    return (following - timedelta(days=1)).day


class MovedTime(NamedTuple):
    """A call of DATE_ADD or DATE_SUB in the form of an operator."""

    key: str
    this: Any
    expression: Any


MOVES = {"DATE_ADD": "add", "ADDDATE": "add", "DATE_SUB": "sub", "SUBDATE": "sub"}
"""Function -> the key of its operator."""


def interval_of_days(number: Any) -> Any:
    """Return the tree of an interval of days."""
    from sqlglot import exp

    return exp.Interval(this=number, unit=exp.var("DAY"))


def type_of_moved(kind: SqlType, unit: str) -> SqlType:
    """Return the type of a moment plus an interval ("DATE_ADD" of the MySQL 8 reference manual)."""
    if kind is SqlType.DATE and unit in _DATE_UNITS:
        return SqlType.DATE
    return SqlType.DATETIME if kind in (SqlType.DATE, SqlType.DATETIME) else SqlType.STRING


def text_of_moved(value: Any, moved: datetime | None, unit: str) -> str | None:
    """Return the text of a moment plus an interval. It has a time if the moment or the interval has one."""
    text = to_text(value) or ""
    is_date = unit in _DATE_UNITS and ":" not in text and len(text) <= len("2024-02-29")
    return to_text(moved.date() if moved is not None and is_date else moved)


_DATE_UNITS = frozenset({"DAY", "WEEK", "MONTH", "QUARTER", "YEAR"})


def to_date(value: Any) -> date | None:
    """Return the date of a moment."""
    found = to_datetime(value)
    return None if found is None else found.date()
