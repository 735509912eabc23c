"""Date formats of search indexes: a strict parser for the letters of Java's DateTimeFormatter that the service allows.

Source: "Date data type" of the documentation of Table Store. Times are nanoseconds since 1970.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

from tablegate.gateway.model.values.values import INT64_MAX

_EPOCHS_NS = {
    "epoch_nanos": 1,
    "epoch_micros": 1_000,
    "epoch_millis": 1_000_000,
    "epoch_second": 1_000_000_000,
    "epoch_seconds": 1_000_000_000,
}
NS_PER_MS = 1_000_000
_PARTS = {
    "yyyy": r"(?P<year>\d{4})", "yy": r"(?P<year>\d{2})", "MM": r"(?P<month>\d{2})", "M": r"(?P<month>\d{1,2})",
    "dd": r"(?P<day>\d{2})", "d": r"(?P<day>\d{1,2})", "HH": r"(?P<hour>\d{2})", "H": r"(?P<hour>\d{1,2})",
    "KK": r"(?P<half_hour>\d{2})", "K": r"(?P<half_hour>\d{1,2})", "a": r"(?P<half>AM|PM)",
    "mm": r"(?P<minute>\d{2})", "m": r"(?P<minute>\d{1,2})", "ss": r"(?P<second>\d{2})", "s": r"(?P<second>\d{1,2})",
    **{"S" * digits: rf"(?P<fraction>\d{{{digits}}})" for digits in range(1, 10)},
    "X": r"(?P<zone>Z|[+-]\d{2}(?:\d{2})?)", "XX": r"(?P<zone>Z|[+-]\d{4})",
    "XXX": r"(?P<zone>Z|[+-]\d{2}:\d{2})", "x": r"(?P<zone>[+-]\d{2}(?:\d{2})?)",
    "xx": r"(?P<zone>[+-]\d{4})", "xxx": r"(?P<zone>[+-]\d{2}:\d{2})", "Z": r"(?P<zone>[+-]\d{4})",
    "XXXX": r"(?P<zone>Z|[+-]\d{4}(?:\d{2})?)", "XXXXX": r"(?P<zone>Z|[+-]\d{2}:\d{2}(?::\d{2})?)",
    "xxxx": r"(?P<zone>[+-]\d{4}(?:\d{2})?)", "xxxxx": r"(?P<zone>[+-]\d{2}:\d{2}(?::\d{2})?)",
}  # fmt: skip
_LETTERS = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")
_DIGITS = re.compile(r"-?\d{1,19}", re.ASCII)
LAST_NS = INT64_MAX
"""The last time of a DATE: 2262-04-11 23:47:16.854775807. The first one is 1970-01-01."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def is_format(text: str) -> bool:
    """Return True if a date format is supported."""
    return text in _EPOCHS_NS or _pattern(text) is not None


def nanoseconds_of(text: str, formats: Sequence[str]) -> int | None:
    """Return the time of a text in one of the formats. None if it has none of them."""
    for each in formats:
        if each in _EPOCHS_NS:
            if _DIGITS.fullmatch(text):
                return int(text) * _EPOCHS_NS[each]
            continue
        pattern = _pattern(each)
        match = None if pattern is None else pattern.fullmatch(text)
        if match is not None:
            try:
                return _time_of(match.groupdict())
            except ValueError:  # such as the 30th of February
                continue
    return None


def nanoseconds_of_number(number: int, formats: Sequence[str]) -> int:
    """Return the time of a number, in the unit of the first numeric format. Without one it is in milliseconds."""
    units_ns = [_EPOCHS_NS[each] for each in formats if each in _EPOCHS_NS]
    return number * (units_ns[0] if units_ns else NS_PER_MS)


@lru_cache(maxsize=256)
def _pattern(text: str) -> re.Pattern[str] | None:
    parts = []
    end = 0
    for match in _LETTERS.finditer(text):
        if match.start() != end:
            return None
        end = match.end()
        quoted, letter = match.groups()
        if letter is not None:
            part = _PARTS.get(match.group())
            if part is None:
                return None
            parts.append(part)
        else:
            parts.append(re.escape(match.group() if quoted is None else quoted.replace("''", "'") or "'"))
    try:
        return re.compile("".join(parts), re.ASCII) if parts and end == len(text) else None
    except re.error:  # the same part twice
        return None


def _time_of(parts: dict[str, str]) -> int:
    """Return nanoseconds since 1970. Raises ValueError."""
    fraction_ns = int(parts.get("fraction", "").ljust(9, "0"))
    zone = parts.get("zone", "Z")
    year = parts.get("year", "1970")
    when = datetime(
        int(year) + (2000 if len(year) == 2 else 0), int(parts.get("month", 1)), int(parts.get("day", 1)),
        _hour_of(parts), int(parts.get("minute", 0)), int(parts.get("second", 0)), tzinfo=_zone_of(zone),
    )  # fmt: skip
    return (when - _EPOCH) // timedelta(seconds=1) * 1_000_000_000 + fraction_ns


def _hour_of(parts: dict[str, str]) -> int:
    """Return the hour of a day, also from one of 0 to 11 of its half. Raises ValueError."""
    if "half_hour" not in parts:
        return int(parts.get("hour", 0))
    hour = int(parts["half_hour"])
    if hour > 11:
        raise ValueError("the hour of half a day must be below 12")
    return hour + (12 if parts.get("half") == "PM" else 0)


def _zone_of(text: str) -> timezone:
    if text == "Z":
        return UTC
    digits = text[1:].replace(":", "").ljust(6, "0")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:4]), seconds=int(digits[4:]))
    return timezone(-offset if text[0] == "-" else offset)
