"""The scalar functions of SQL, by name.

Each has its result type, the permitted numbers of arguments, and a Python function of the values. A NULL argument makes
the result NULL, unless the function handles NULL itself (`takes_null`). Source: "Functions" of Tablestore's SQL and the
MySQL 8 reference manual.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from tablegate.adapters.tablestore.sql import json_documents
from tablegate.adapters.tablestore.sql.sql_types import SqlType, common_type, sql_error
from tablegate.adapters.tablestore.sql.sql_values import (
    checked,
    compare,
    to_datetime,
    to_number,
    to_text,
    to_time,
    truth,
)
from tablegate.adapters.tablestore.wire import limits

T = SqlType
ResultType = SqlType | Callable[[list[SqlType]], SqlType]
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1)


class Function(NamedTuple):
    """A function. `arguments`: the lowest and the highest number of arguments."""

    type: ResultType
    arguments: tuple[int, int]
    call: Callable[..., Any]
    takes_null: bool = False

    def type_of(self, types: list[SqlType]) -> SqlType:
        """Return the type of the result for arguments of these types."""
        return self.type(types) if callable(self.type) else self.type


def _text(value: Any) -> str:
    return to_text(value) or ""


def _integer(value: Any) -> int:
    number = to_number(value) or 0
    return int(number) if isinstance(number, int) else int(checked(math.trunc(number)))


def _bounded(text: str) -> str:
    if len(text) > limits.SQL_TEXT_MAX:
        raise sql_error("The result of a function is too long.")
    return text


# Text


def _substring(value: Any, start: Any, length: Any = None) -> str:
    text, first = _text(value), _integer(start)
    at = first - 1 if first > 0 else len(text) + first
    if first == 0 or at < 0 or (length is not None and _integer(length) <= 0):
        return ""
    return text[at:] if length is None else text[at : at + _integer(length)]


def _replace(value: Any, old: Any, new: Any) -> str:
    text, old_text, new_text = _text(value), _text(old), _text(new)
    if not old_text:
        return text
    if text.count(old_text) * max(0, len(new_text) - len(old_text)) > limits.SQL_TEXT_MAX:
        raise sql_error("The result of a function is too long.")
    return text.replace(old_text, new_text)


def _repeat(value: Any, number: Any) -> str:
    text, times = _text(value), max(0, _integer(number))
    if len(text) * times > limits.SQL_TEXT_MAX:
        raise sql_error("The result of a function is too long.")
    return text * times


def _pad(value: Any, length: Any, filler: Any, is_left: bool) -> str | None:
    text, size, fill = _text(value), _integer(length), _text(filler)
    if size < 0 or size > limits.SQL_TEXT_MAX or (size > len(text) and not fill):
        return None
    missing = (fill * (-(-(size - len(text)) // len(fill))))[: size - len(text)] if size > len(text) else ""
    return (missing + text if is_left else text + missing)[:size]


def _length(value: Any) -> int:
    return len(value if isinstance(value, bytes) else _text(value).encode())


def _concat_ws(separator: Any, *values: Any) -> str | None:
    if separator is None:
        return None
    between, texts = _text(separator), [_text(value) for value in values if value is not None]
    if len(between) * (len(texts) - 1) > limits.SQL_TEXT_MAX:
        raise sql_error("The result of a function is too long.")
    return _bounded(between.join(texts))


# JSON


def _json_extract(document: Any, *paths: Any) -> str | None:
    found = json_documents.extract(_text(document), *map(_text, paths))
    return None if found is None else _bounded(found)


# Numbers


def _round(value: Any, digits: Any = 0) -> int | float:
    number, places = to_number(value) or 0, max(-30, min(30, _integer(digits)))
    if isinstance(number, int) and places >= 0:
        return number
    scale = 10.0**places
    scaled = abs(number) * scale
    if not math.isfinite(scaled):
        return number
    rounded = math.floor(scaled + 0.5) / scale * (1 if number >= 0 else -1)
    return int(rounded) if isinstance(number, int) else rounded


def _truncate(value: Any, digits: Any) -> int | float:
    number, places = to_number(value) or 0, max(-30, min(30, _integer(digits)))
    scale = 10.0**places
    scaled = number * scale
    result = math.trunc(scaled) / scale if math.isfinite(scaled) else float(number)
    return int(result) if isinstance(number, int) else result


def _of_float(call: Callable[[float], float]) -> Callable[[Any], float | None]:
    def function(value: Any) -> float | None:
        try:
            return checked(call(float(to_number(value) or 0)))
        except (ValueError, ZeroDivisionError):
            return None
        except OverflowError:
            raise sql_error("DOUBLE value is out of range.") from None

    return function


def _power(base: Any, exponent: Any) -> float | None:
    try:
        result = float(to_number(base) or 0) ** float(to_number(exponent) or 0)
    except (OverflowError, ZeroDivisionError):
        raise sql_error("DOUBLE value is out of range.") from None
    return checked(result) if isinstance(result, float) else None


def _modulo(left: Any, right: Any) -> int | float | None:
    dividend, divisor = to_number(left), to_number(right)
    if not divisor or dividend is None:
        return None
    if isinstance(dividend, int) and isinstance(divisor, int):
        rest = abs(dividend) % abs(divisor)
        return rest if dividend >= 0 else -rest
    return math.fmod(dividend, divisor)


def _whole_or_double(types: list[SqlType]) -> SqlType:
    return T.LONG if all(each in (T.LONG, T.BOOL) for each in types) else T.DOUBLE


# Times


def _from_unixtime(seconds: Any) -> datetime | None:
    number = to_number(seconds) or 0
    if not 0 <= number < 253_402_300_800:
        return None
    return _EPOCH + timedelta(microseconds=round(number * 1_000_000))


def _unix_timestamp(moment: Any = None) -> int | float | None:
    if moment is None:
        return int(datetime.now(UTC).timestamp())
    found = to_datetime(moment)
    return None if found is None else (found - _EPOCH) / timedelta(seconds=1)


def _timediff(left: Any, right: Any) -> timedelta | None:
    one, other = to_time(left), to_time(right)
    if one is not None and other is not None:
        return one - other
    first, second = to_datetime(left), to_datetime(right)
    return None if first is None or second is None else first - second


def _datediff(left: Any, right: Any) -> int | None:
    first, second = to_datetime(left), to_datetime(right)
    return None if first is None or second is None else (first.date() - second.date()).days


def _part(read: Callable[[datetime], int]) -> Callable[[Any], int | None]:
    def function(value: Any) -> int | None:
        found = to_datetime(value)
        return None if found is None else read(found)

    return function


def _part_of_time(unit: timedelta, most: int | None = None) -> Callable[[Any], int | None]:
    """Return a function of the number of units in a time, modulo `most`. A length of time can have many hours."""

    def function(value: Any) -> int | None:
        found = _to_time(value)
        if found is None:
            return None
        number = abs(found) // unit
        return number if most is None else number % most

    return function


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
    "%": lambda at: "%",
}  # fmt: skip


def _date_format(value: Any, form: Any) -> str | None:
    at = to_datetime(value)
    if at is None:
        return None
    parts = _text(form).split("%")
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
    return _bounded("".join(result))


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


def _to_date(value: Any) -> date | None:
    found = to_datetime(value)
    return None if found is None else found.date()


def _to_time(value: Any) -> timedelta | None:
    length = to_time(value)
    if length is not None:
        return length
    found = to_datetime(value)
    return None if found is None else found - datetime.combine(found.date(), datetime.min.time())


# Control


def _if(condition: Any, yes: Any, no: Any) -> Any:
    return yes if truth(condition) else no


def _nullif(left: Any, right: Any) -> Any:
    return None if compare(left, right) == 0 else left


def _first_present(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _best(wanted: int) -> Callable[..., Any]:
    def function(*values: Any) -> Any:
        best = values[0]
        for value in values[1:]:
            if compare(value, best) == wanted:
                best = value
        return best

    return function


_MANY = 100
FUNCTIONS: Mapping[str, Function] = {
    "CONCAT": Function(T.STRING, (1, _MANY), lambda *values: _bounded("".join(map(_text, values)))),
    "CONCAT_WS": Function(T.STRING, (2, _MANY), _concat_ws, takes_null=True),
    "LENGTH": Function(T.LONG, (1, 1), _length),
    "OCTET_LENGTH": Function(T.LONG, (1, 1), _length),
    "CHAR_LENGTH": Function(T.LONG, (1, 1), lambda value: len(_text(value))),
    "CHARACTER_LENGTH": Function(T.LONG, (1, 1), lambda value: len(_text(value))),
    "UPPER": Function(T.STRING, (1, 1), lambda value: _text(value).upper()),
    "UCASE": Function(T.STRING, (1, 1), lambda value: _text(value).upper()),
    "LOWER": Function(T.STRING, (1, 1), lambda value: _text(value).lower()),
    "LCASE": Function(T.STRING, (1, 1), lambda value: _text(value).lower()),
    "SUBSTRING": Function(T.STRING, (2, 3), _substring),
    "SUBSTR": Function(T.STRING, (2, 3), _substring),
    "MID": Function(T.STRING, (3, 3), _substring),
    "LEFT": Function(T.STRING, (2, 2), lambda value, size: _text(value)[: max(0, _integer(size))]),
    "RIGHT": Function(
        T.STRING, (2, 2), lambda value, size: _text(value)[-_integer(size) :] if _integer(size) > 0 else ""
    ),
    "TRIM": Function(T.STRING, (1, 1), lambda value: _text(value).strip(" ")),
    "LTRIM": Function(T.STRING, (1, 1), lambda value: _text(value).lstrip(" ")),
    "RTRIM": Function(T.STRING, (1, 1), lambda value: _text(value).rstrip(" ")),
    "REPLACE": Function(T.STRING, (3, 3), _replace),
    "REVERSE": Function(T.STRING, (1, 1), lambda value: _text(value)[::-1]),
    "REPEAT": Function(T.STRING, (2, 2), _repeat),
    "LPAD": Function(T.STRING, (3, 3), lambda value, size, fill: _pad(value, size, fill, True)),
    "RPAD": Function(T.STRING, (3, 3), lambda value, size, fill: _pad(value, size, fill, False)),
    "INSTR": Function(T.LONG, (2, 2), lambda value, part: _text(value).find(_text(part)) + 1),
    "LOCATE": Function(T.LONG, (2, 2), lambda part, value: _text(value).find(_text(part)) + 1),
    "JSON_EXTRACT": Function(T.STRING, (2, _MANY), _json_extract),
    "JSON_UNQUOTE": Function(T.STRING, (1, 1), lambda value: json_documents.unquote(_text(value))),
    "ABS": Function(_whole_or_double, (1, 1), lambda value: checked(abs(to_number(value) or 0))),
    "CEIL": Function(T.LONG, (1, 1), lambda value: checked(math.ceil(to_number(value) or 0))),
    "CEILING": Function(T.LONG, (1, 1), lambda value: checked(math.ceil(to_number(value) or 0))),
    "FLOOR": Function(T.LONG, (1, 1), lambda value: checked(math.floor(to_number(value) or 0))),
    "ROUND": Function(lambda types: _whole_or_double(types[:1]), (1, 2), _round),
    "TRUNCATE": Function(lambda types: _whole_or_double(types[:1]), (2, 2), _truncate),
    "MOD": Function(_whole_or_double, (2, 2), _modulo),
    "SIGN": Function(T.LONG, (1, 1), lambda value: compare(value, 0)),
    "SQRT": Function(T.DOUBLE, (1, 1), _of_float(math.sqrt)),
    "EXP": Function(T.DOUBLE, (1, 1), _of_float(math.exp)),
    "LN": Function(T.DOUBLE, (1, 1), _of_float(math.log)),
    "LOG2": Function(T.DOUBLE, (1, 1), _of_float(math.log2)),
    "LOG10": Function(T.DOUBLE, (1, 1), _of_float(math.log10)),
    "POW": Function(T.DOUBLE, (2, 2), _power),
    "POWER": Function(T.DOUBLE, (2, 2), _power),
    "NOW": Function(T.DATETIME, (0, 0), lambda: datetime.now(UTC).replace(tzinfo=None, microsecond=0)),
    "CURDATE": Function(T.DATE, (0, 0), lambda: datetime.now(UTC).date()),
    "FROM_UNIXTIME": Function(T.DATETIME, (1, 1), _from_unixtime),
    "UNIX_TIMESTAMP": Function(T.DOUBLE, (0, 1), _unix_timestamp),
    "TIMEDIFF": Function(T.TIME, (2, 2), _timediff),
    "DATEDIFF": Function(T.LONG, (2, 2), _datediff),
    "DATE": Function(T.DATE, (1, 1), _to_date),
    "TIME": Function(T.TIME, (1, 1), _to_time),
    "TIMESTAMP": Function(T.DATETIME, (1, 1), to_datetime),
    "DATE_FORMAT": Function(T.STRING, (2, 2), _date_format),
    "YEAR": Function(T.LONG, (1, 1), _part(lambda at: at.year)),
    "QUARTER": Function(T.LONG, (1, 1), _part(lambda at: (at.month + 2) // 3)),
    "MONTH": Function(T.LONG, (1, 1), _part(lambda at: at.month)),
    "DAY": Function(T.LONG, (1, 1), _part(lambda at: at.day)),
    "DAYOFMONTH": Function(T.LONG, (1, 1), _part(lambda at: at.day)),
    "DAYOFWEEK": Function(T.LONG, (1, 1), _part(lambda at: at.isoweekday() % 7 + 1)),
    "DAYOFYEAR": Function(T.LONG, (1, 1), _part(lambda at: at.timetuple().tm_yday)),
    "WEEKDAY": Function(T.LONG, (1, 1), _part(lambda at: at.weekday())),
    "HOUR": Function(T.LONG, (1, 1), _part_of_time(timedelta(hours=1))),
    "MINUTE": Function(T.LONG, (1, 1), _part_of_time(timedelta(minutes=1), 60)),
    "SECOND": Function(T.LONG, (1, 1), _part_of_time(timedelta(seconds=1), 60)),
    "MICROSECOND": Function(T.LONG, (1, 1), _part_of_time(_MICROSECOND, 1_000_000)),
    "IF": Function(lambda types: common_type(types[1:]), (3, 3), _if, takes_null=True),
    "IFNULL": Function(common_type, (2, 2), _first_present, takes_null=True),
    "COALESCE": Function(common_type, (1, _MANY), _first_present, takes_null=True),
    "NULLIF": Function(lambda types: types[0], (2, 2), _nullif, takes_null=True),
    "GREATEST": Function(common_type, (2, _MANY), _best(1)),
    "LEAST": Function(common_type, (2, _MANY), _best(-1)),
}
