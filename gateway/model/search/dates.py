"""Date formats of search indexes: a strict parser for the letters of Java's DateTimeFormatter that the service allows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

_EPOCHS = {"epoch_millis": 1, "epoch_second": 1000, "epoch_seconds": 1000}
_PARTS = {
    "yyyy": r"(?P<year>\d{4})", "MM": r"(?P<month>\d{2})", "M": r"(?P<month>\d{1,2})",
    "dd": r"(?P<day>\d{2})", "d": r"(?P<day>\d{1,2})", "HH": r"(?P<hour>\d{2})", "H": r"(?P<hour>\d{1,2})",
    "mm": r"(?P<minute>\d{2})", "m": r"(?P<minute>\d{1,2})", "ss": r"(?P<second>\d{2})", "s": r"(?P<second>\d{1,2})",
    "SSSSSS": r"(?P<fraction>\d{6})", "SSS": r"(?P<fraction>\d{3})", "SS": r"(?P<fraction>\d{2})",
    "S": r"(?P<fraction>\d)", "X": r"(?P<zone>Z|[+-]\d{2}(?:\d{2})?)", "XX": r"(?P<zone>Z|[+-]\d{4})",
    "XXX": r"(?P<zone>Z|[+-]\d{2}:\d{2})", "Z": r"(?P<zone>[+-]\d{4})",
}  # fmt: skip
_LETTERS = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")
_DIGITS = re.compile(r"-?\d{1,18}", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def is_format(text: str) -> bool:
    """Return True if a date format is supported."""
    return text in _EPOCHS or _pattern(text) is not None


def milliseconds_of(text: str, formats: Sequence[str]) -> int | None:
    """Return the time of a text in one of the formats, in milliseconds since 1970. None if it has none of them."""
    for each in formats:
        if each in _EPOCHS:
            if _DIGITS.fullmatch(text):
                return int(text) * _EPOCHS[each]
            continue
        pattern = _pattern(each)
        match = None if pattern is None else pattern.fullmatch(text)
        if match is not None:
            try:
                return _time_of(match.groupdict())
            except ValueError:  # such as the 30th of February
                continue
    return None


def milliseconds_of_number(number: int, formats: Sequence[str]) -> int:
    """Return the time of a number: in seconds if that is the only numeric format, otherwise in milliseconds."""
    units = [_EPOCHS[each] for each in formats if each in _EPOCHS]
    return number * (units[0] if units else 1)


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
    """Return milliseconds since 1970. Raises ValueError."""
    fraction = parts.get("fraction", "")
    zone = parts.get("zone", "Z")
    when = datetime(
        int(parts.get("year", 1970)), int(parts.get("month", 1)), int(parts.get("day", 1)),
        int(parts.get("hour", 0)), int(parts.get("minute", 0)), int(parts.get("second", 0)),
        int(fraction.ljust(6, "0") or 0), _zone_of(zone),
    )  # fmt: skip
    return (when - _EPOCH) // timedelta(milliseconds=1)


def _zone_of(text: str) -> timezone:
    if text == "Z":
        return UTC
    digits = text[1:].replace(":", "").ljust(4, "0")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-offset if text[0] == "-" else offset)
