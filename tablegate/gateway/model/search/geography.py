"""Points on the earth, their distances, and areas."""

from __future__ import annotations

import math
from collections.abc import Sequence

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
