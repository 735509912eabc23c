"""Values of fields that are read from texts: IP addresses, dates in the formats of the service, points on the earth.

An IPv4 address has the digits of its IPv4-mapped IPv6 address, so both texts find each other.

Source: "Date data type" of the documentation of Table Store. Times are nanoseconds since 1970.
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

from tablegate.gateway.model.values.values import INT64_MAX

_BITS = 128
_MAPPED = 0xFFFF << 32
_IPV4_BITS = 32


def address_digits(text: str) -> str | None:
    """Return the digits of an address. None if the text is no address."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv4Address):
        return _digits(_MAPPED | int(address))
    return None if address.scope_id else _digits(int(address))


def address_block(text: str) -> tuple[str, str] | None:
    """Return the first and the last address of a block in CIDR notation. None if the text is no block."""
    address, slash, length = text.partition("/")
    first = address_digits(address)
    if not slash or first is None or not length.isascii() or not length.isdigit() or len(length) > 3:
        return None
    free_bits = (_BITS if ":" in address else _IPV4_BITS) - int(length)
    if free_bits < 0:
        return None
    low = int(first, 16) >> free_bits << free_bits
    return _digits(low), _digits(low | ((1 << free_bits) - 1))


def _digits(number: int) -> str:
    return f"{number:032x}"


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


def is_date_format(text: str) -> bool:
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


Point = tuple[float, float]
"""Latitude and longitude in degrees."""

_EARTH_RADIUS_M = 6_371_008.7714
_CELLS = 1 << 32
METERS_PER_DEGREE = math.pi * _EARTH_RADIUS_M / 180


def point_of(text: str) -> Point | None:
    """Return the point of "latitude,longitude", or None."""
    parts = text.split(",")
    if len(parts) != 2:
        return None
    try:
        latitude, longitude = float(parts[0]), float(parts[1])
    except ValueError:
        return None
    is_on_earth = -90 <= latitude <= 90 and -180 <= longitude <= 180
    return (latitude, longitude) if is_on_earth else None


def cell_of(point: Sequence[float], is_lower_bound: bool = False) -> tuple[int, int]:
    """Return the cell of a point in a grid of 2^32 by 2^32, or the first cell that begins at or after it.

    Source: the boxes and polygons of aliyun-tablestore-python-sdk, tests/search_index_test.py, and the points on their
    sides.
    """
    rounded = math.ceil if is_lower_bound else math.floor
    return rounded(point[0] / 180 * _CELLS), rounded(point[1] / 360 * _CELLS)


def distance_m(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the great-circle distance of two points in meters."""
    latitude_a, latitude_b = math.radians(a[0]), math.radians(b[0])
    by_latitude = math.sin((latitude_b - latitude_a) / 2) ** 2
    by_longitude = math.sin(math.radians(b[1] - a[1]) / 2) ** 2
    part = by_latitude + math.cos(latitude_a) * math.cos(latitude_b) * by_longitude
    return 2 * _EARTH_RADIUS_M * math.asin(min(1.0, math.sqrt(part)))


def plane_distance_m(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the distance of two points in meters, as if degrees were a plane."""
    return math.hypot(a[0] - b[0], a[1] - b[1]) * METERS_PER_DEGREE


def is_in_polygon(point: Sequence[float], polygon: Sequence[Point]) -> bool:
    """Return True if the cell of a point begins inside a polygon, by the number of edges to the east."""
    cell = cell_of(point)
    latitude, longitude = cell[0] * 180 / _CELLS, cell[1] * 360 / _CELLS
    is_inside = False
    previous_latitude, previous_longitude = polygon[-1]
    for edge_latitude, edge_longitude in polygon:
        if (edge_latitude > latitude) != (previous_latitude > latitude):
            share = (latitude - edge_latitude) / (previous_latitude - edge_latitude)
            if longitude < edge_longitude + share * (previous_longitude - edge_longitude):
                is_inside = not is_inside
        previous_latitude, previous_longitude = edge_latitude, edge_longitude
    return is_inside


_BASE32 = "0123456789bcdefghjkmnpqrstuvwxyz"


def geohash_of(point: Sequence[float], precision: int) -> str:
    """Return the geohash of a point: characters of 5 bits, alternately of the longitude and the latitude."""
    number = 0
    longitude_bits = (5 * precision + 1) // 2
    latitude_bits = 5 * precision - longitude_bits
    places = [
        min(int((point[1] + 180) / 360 * (1 << longitude_bits)), (1 << longitude_bits) - 1),
        min(int((point[0] + 90) / 180 * (1 << latitude_bits)), (1 << latitude_bits) - 1),
    ]
    bits = [longitude_bits, latitude_bits]
    for turn in range(5 * precision):
        axis = turn % 2
        bits[axis] -= 1
        number = number << 1 | places[axis] >> bits[axis] & 1
    return "".join(_BASE32[number >> 5 * place & 31] for place in reversed(range(precision)))


def cell_of_geohash(geohash: str) -> tuple[Point, Point]:
    """Return the top left and the bottom right corner of the cell of a geohash."""
    places, bits = [0, 0], [0, 0]
    for turn in range(5 * len(geohash)):
        axis = turn % 2
        bit = _BASE32.index(geohash[turn // 5]) >> 4 - turn % 5 & 1
        places[axis], bits[axis] = places[axis] << 1 | bit, bits[axis] + 1
    width, height = 360 / (1 << bits[0]), 180 / (1 << bits[1])
    west, south = places[0] * width - 180, places[1] * height - 90
    return (south + height, west), (south, west + width)
