"""The scalar functions of SQL, by name.

Each has its result type, the permitted numbers of arguments, and a Python function of the values. A NULL argument makes
the result NULL, unless the function handles NULL itself (`takes_null`). Source: "Functions" of Tablestore's SQL and the
MySQL 8 reference manual.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

from tablegate.adapters.tablestore.features.sql import json_documents, time_functions
from tablegate.adapters.tablestore.features.sql.sql_values import (
    SqlType,
    bounded,
    checked,
    common_type,
    compare,
    nearest_integer,
    sql_error,
    time_of,
    to_integer,
    to_number,
    to_text,
    truth,
)
from tablegate.adapters.tablestore.wire import limits

T = SqlType
ResultType = SqlType | Callable[[list[SqlType]], SqlType]


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
    return to_integer(value) or 0


def _cased(change: Callable[[str], str]) -> Callable[[Any], str]:
    """Return a function of text that changes the case of single characters only, as MySQL does."""

    def function(value: Any) -> str:
        text = _text(value)
        changed = change(text)
        if len(changed) == len(text):
            return changed
        return "".join(new if len(new := change(each)) == 1 else each for each in text)

    return function


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


def _trim(sides: str, value: Any, removed: Any = " ") -> str:
    """Remove a text from the ends of another, as often as it is there."""
    text, part = _text(value), _text(removed)
    start, end = 0, len(text)
    while part and "left" in sides and text.startswith(part, start, end):
        start += len(part)
    while part and "right" in sides and text.endswith(part, start, end):
        end -= len(part)
    return text[start:end]


def _locate(part: Any, value: Any, start: Any = 1) -> int:
    text, found, first = _text(value), _text(part), _integer(start)
    return 0 if first < 1 or first > len(text) + 1 else text.find(found, first - 1) + 1


def _length(value: Any) -> int:
    return len(value if isinstance(value, bytes) else _text(value).encode())


def _concat_ws(separator: Any, *values: Any) -> str | None:
    if separator is None:
        return None
    between, texts = _text(separator), [_text(value) for value in values if value is not None]
    if len(between) * (len(texts) - 1) > limits.SQL_TEXT_MAX:
        raise sql_error("The result of a function is too long.")
    return bounded(between.join(texts))


# JSON


def _json_extract(document: Any, *paths: Any) -> str | None:
    found = json_documents.extract(_text(document), *map(_text, paths))
    return None if found is None else bounded(found)


# Numbers


def _round(value: Any, digits: Any = 0) -> int | float:
    number, places = to_number(value) or 0, max(-30, min(30, _integer(digits)))
    if isinstance(number, int):
        return _whole_tens(number, -places, is_rounded=True)
    scale = 10.0**places
    scaled = abs(number) * scale
    if not math.isfinite(scaled):
        return number
    return nearest_integer(scaled) / scale * (1 if number >= 0 else -1)


def _truncate(value: Any, digits: Any) -> int | float:
    number, places = to_number(value) or 0, max(-30, min(30, _integer(digits)))
    if isinstance(number, int):
        return _whole_tens(number, -places, is_rounded=False)
    scale = 10.0**places
    scaled = number * scale
    return math.trunc(scaled) / scale if math.isfinite(scaled) else number


def _whole_tens(number: int, zeros: int, is_rounded: bool) -> int | float:
    """Return an integer with this many zeros at its end, rounded or truncated. A DOUBLE has too few digits for it."""
    if zeros <= 0:
        return number
    unit = 10**zeros
    tens, rest = divmod(abs(number), unit)
    if is_rounded and 2 * rest >= unit:
        tens += 1
    return checked(tens * unit if number >= 0 else -tens * unit)


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
    if isinstance(result, complex):
        raise sql_error("DOUBLE value is out of range.")
    return checked(result)


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


def _moment_or_text(types: list[SqlType]) -> SqlType:
    return T.DATETIME if len(types) == 1 else T.STRING


# Control


def _if(condition: Any, yes: Any, no: Any) -> Any:
    return yes if truth(condition) else no


def _nullif(left: Any, right: Any) -> Any:
    return None if compare(left, right) == 0 else left


def _first_present(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _best(wanted: int) -> Callable[..., Any]:
    """Return GREATEST or LEAST. Integers beside a text are compared as text."""

    def function(*values: Any) -> Any:
        kinds = {type(value) for value in values}
        given = list(map(to_text, values)) if str in kinds and kinds <= {str, int, bool} else list(values)
        best = given[0]
        for value in given[1:]:
            if compare(value, best) == wanted:
                best = value
        return best

    return function


_MANY = 100
FUNCTIONS: Mapping[str, Function] = {
    "CONCAT": Function(T.STRING, (1, _MANY), lambda *values: bounded("".join(map(_text, values)))),
    "CONCAT_WS": Function(T.STRING, (2, _MANY), _concat_ws, takes_null=True),
    "LENGTH": Function(T.LONG, (1, 1), _length),
    "OCTET_LENGTH": Function(T.LONG, (1, 1), _length),
    "CHAR_LENGTH": Function(T.LONG, (1, 1), lambda value: len(_text(value))),
    "CHARACTER_LENGTH": Function(T.LONG, (1, 1), lambda value: len(_text(value))),
    "UPPER": Function(T.STRING, (1, 1), _cased(str.upper)),
    "UCASE": Function(T.STRING, (1, 1), _cased(str.upper)),
    "LOWER": Function(T.STRING, (1, 1), _cased(str.lower)),
    "LCASE": Function(T.STRING, (1, 1), _cased(str.lower)),
    "SUBSTRING": Function(T.STRING, (2, 3), _substring),
    "SUBSTR": Function(T.STRING, (2, 3), _substring),
    "MID": Function(T.STRING, (3, 3), _substring),
    "LEFT": Function(T.STRING, (2, 2), lambda value, size: _text(value)[: max(0, _integer(size))]),
    "RIGHT": Function(
        T.STRING, (2, 2), lambda value, size: _text(value)[-_integer(size) :] if _integer(size) > 0 else ""
    ),
    "TRIM BOTH": Function(T.STRING, (2, 2), partial(_trim, "left and right")),
    "TRIM LEADING": Function(T.STRING, (2, 2), partial(_trim, "left")),
    "TRIM TRAILING": Function(T.STRING, (2, 2), partial(_trim, "right")),
    "LTRIM": Function(T.STRING, (1, 1), partial(_trim, "left")),
    "RTRIM": Function(T.STRING, (1, 1), partial(_trim, "right")),
    "REPLACE": Function(T.STRING, (3, 3), _replace),
    "REVERSE": Function(T.STRING, (1, 1), lambda value: _text(value)[::-1]),
    "REPEAT": Function(T.STRING, (2, 2), _repeat),
    "LPAD": Function(T.STRING, (3, 3), lambda value, size, fill: _pad(value, size, fill, True)),
    "RPAD": Function(T.STRING, (3, 3), lambda value, size, fill: _pad(value, size, fill, False)),
    "INSTR": Function(T.LONG, (2, 2), lambda value, part: _text(value).find(_text(part)) + 1),
    "LOCATE": Function(T.LONG, (2, 3), _locate),
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
    **dict.fromkeys(
        ("NOW", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"),
        Function(T.DATETIME, (0, 1), time_functions.now),
    ),
    **dict.fromkeys(
        ("CURDATE", "CURRENT_DATE"), Function(T.DATE, (0, 0), lambda: time_functions.now().date())
    ),
    "FROM_UNIXTIME": Function(_moment_or_text, (1, 2), time_functions.from_unixtime),
    "UNIX_TIMESTAMP": Function(T.DOUBLE, (0, 1), time_functions.unix_timestamp),
    "TIMEDIFF": Function(T.TIME, (2, 2), time_functions.timediff),
    "DATEDIFF": Function(T.LONG, (2, 2), time_functions.datediff),
    "DATE": Function(T.DATE, (1, 1), time_functions.to_date),
    "TIME": Function(T.TIME, (1, 1), time_of),
    "TIMESTAMP": Function(T.DATETIME, (1, 2), time_functions.timestamp),
    "DATE_FORMAT": Function(T.STRING, (2, 2), time_functions.date_format),
    "YEAR": Function(T.LONG, (1, 1), time_functions.part(lambda at: at.year)),
    "QUARTER": Function(T.LONG, (1, 1), time_functions.part(lambda at: (at.month + 2) // 3)),
    "MONTH": Function(T.LONG, (1, 1), time_functions.part(lambda at: at.month)),
    "DAY": Function(T.LONG, (1, 1), time_functions.part(lambda at: at.day)),
    "DAYOFMONTH": Function(T.LONG, (1, 1), time_functions.part(lambda at: at.day)),
    "DAYOFWEEK": Function(T.LONG, (1, 1), time_functions.part(lambda at: at.isoweekday() % 7 + 1)),
    "DAYOFYEAR": Function(T.LONG, (1, 1), time_functions.part(lambda at: at.timetuple().tm_yday)),
    "WEEKDAY": Function(T.LONG, (1, 1), time_functions.part(lambda at: at.weekday())),
    "HOUR": Function(T.LONG, (1, 1), time_functions.part_of_time(timedelta(hours=1))),
    "MINUTE": Function(T.LONG, (1, 1), time_functions.part_of_time(timedelta(minutes=1), 60)),
    "SECOND": Function(T.LONG, (1, 1), time_functions.part_of_time(timedelta(seconds=1), 60)),
    "MICROSECOND": Function(
        T.LONG, (1, 1), time_functions.part_of_time(timedelta(microseconds=1), 1_000_000)
    ),
    "IF": Function(lambda types: common_type(types[1:]), (3, 3), _if, takes_null=True),
    "IFNULL": Function(common_type, (2, 2), _first_present, takes_null=True),
    "COALESCE": Function(common_type, (1, _MANY), _first_present, takes_null=True),
    "NULLIF": Function(lambda types: types[0], (2, 2), _nullif, takes_null=True),
    "GREATEST": Function(common_type, (2, _MANY), _best(1)),
    "LEAST": Function(common_type, (2, _MANY), _best(-1)),
}
