"""Fast encoding of many stored bodies with equal columns and kinds as PlainBuffer, as on most pages.

A layout has the pattern of its bodies. One match gives all values of a row as bytes, without decoding JSON or text.
Rows are then encoded column by column, each step for all rows. Constant parts are encoded, and their checksums
computed, once. Bodies in another form, even with a single escape, match no layout. fast_rows.py encodes these.
"""

from __future__ import annotations

import base64
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any, NamedTuple

import orjson

from tablegate.adapters.tablestore.rows.fast_rows import EncodedRow, stamps_of
from tablegate.adapters.tablestore.wire.checksums import crc8
from tablegate.adapters.tablestore.wire.plainbuffer import CELL_ENDS, ROW_ENDS, name_bytes
from tablegate.gateway.model.values.rows import TICKS_PER_MS, Row

RawValues = tuple[bytes, ...]
"""The values of a row as bytes of its body."""

Stamps = tuple[int, ...]
"""The stamps of a row's attributes, in the order of a layout."""

_VALUE_PATTERNS = {
    "S": rb'"([^"]*)"',
    "I64": rb'"(-?[0-9]+)"',
    "D": rb'"([-+.0-9A-Za-z]+)"',
    "B": rb'"([A-Za-z0-9+/=]*)"',
    "BOOL": rb"(true|false)",
}
_STARTS = {
    "S": b"",
    "B": b"",
    "I64": b"\x05\x09\0\0\0\0",
    "D": b"\x05\x09\0\0\0\1",
    "BOOL": b"\x05\2\0\0\0\2",
}
"""The beginning of a value, if it does not depend on the length: tag, length, type."""
_FIXED_SIZES = {"I64": 8, "D": 8, "BOOL": 1}
# Fewer rows, or more layouts among rows that are read together, would not be faster.
_MIN_ROWS, _MAX_LAYOUTS = 16, 4
_MEMBERS_MOST, _NAMES_BYTES, _KINDS_BYTES = 64, 1024, 4096  # larger ones are not cached

_pack_text = struct.Struct("<BIBI").pack
_pack_integer = struct.Struct("<q").pack
_pack_double = struct.Struct("<d").pack
_pack_stamp = struct.Struct("<Bq").pack

# Checksums are linear: that of a concatenation is that of the first part, advanced by the length of the second, xor
# that of the second. So all parts except values are looked up.
_AFTER_5 = [crc8(b"\0" * 5, crc) for crc in range(256)]
_AFTER_8 = [crc8(b"\0" * 8, crc) for crc in range(256)]


class _Column(NamedTuple):
    """A column: its index in the body, its kind, the head of its cells, and the checksum up to the value.

    For strings and blobs the checksum is already advanced by the five bytes of type and length.
    """

    at: int
    tag: str
    head: bytes
    crc: int


class BodyLayout:
    """The columns of rows and their kinds, in the order of their bodies.

    `attributes`: names of those with stamps, in their order on the wire.
    """

    def __init__(self, names: tuple[str, ...], tags: tuple[str, ...], key_names: tuple[str, ...]) -> None:
        self.attributes = tuple(sorted(set(names).difference(key_names)))
        self._match = re.compile(rb"\{%b\}" % b",".join(map(_member_pattern, names, tags))).fullmatch
        self._key = [_column(names.index(name), name, tags[names.index(name)]) for name in key_names]
        self._attributes = [
            _column(names.index(name), name, tags[names.index(name)]) for name in self.attributes
        ]
        self._fixed_size = sum(len(name.encode()) for name in names) + sum(
            _FIXED_SIZES.get(tag, 0) for tag in tags
        )

    def raw_values(self, body: bytes) -> RawValues | None:
        """Return the values of a row with this layout. None for another layout, and for bodies with escapes."""
        match = self._match(body)
        return None if match is None or b"\\" in body else match.groups()

    def encode(self, rows: Sequence[RawValues], stamps: Sequence[Stamps]) -> tuple[list[bytes], list[int]]:
        """Return the encoded rows, and their billed sizes."""
        values = list(zip(*rows, strict=True))
        parts: list[Iterable[bytes]] = [repeat(b"\x01")]
        checksums: list[Iterable[int]] = []
        sizes: list[Sequence[int]] = []
        for column in self._key:
            crcs = _add_values(column, values[column.at], parts, sizes)
            parts.append([CELL_ENDS[crc] for crc in crcs])
            checksums.append(crcs)
        if self._attributes:
            parts.append(repeat(b"\x02"))
        for column, column_stamps in zip(self._attributes, zip(*stamps, strict=True), strict=True):
            crcs = _add_values(column, values[column.at], parts, sizes)
            tails = [_tail(stamp) for stamp in column_stamps]
            crcs = [_AFTER_8[crc] ^ tail_crc for crc, (_, tail_crc) in zip(crcs, tails, strict=True)]
            parts.append([tail for tail, _ in tails])
            parts.append([CELL_ENDS[crc] for crc in crcs])
            checksums.append(crcs)
        checksums.append(repeat(0, len(rows)))  # the rows are not deleted
        parts.append([ROW_ENDS[crc8(bytes(crcs))] for crcs in zip(*checksums, strict=True)])
        fixed_size = self._fixed_size
        all_sizes = [fixed_size + sum(row_sizes) for row_sizes in zip(*sizes, strict=True)] if sizes else None
        return list(map(b"".join, zip(*parts, strict=False))), all_sizes or [fixed_size] * len(rows)


def _add_values(
    column: _Column, raw_values: Sequence[bytes], parts: list[Iterable[bytes]], sizes: list[Sequence[int]]
) -> list[int]:
    """Append the encoded values of a column to `parts`. Returns the checksums of their cells up to there."""
    _, tag, head, before = column
    parts.append(repeat(head))
    if tag == "S" or tag == "B":
        values = raw_values if tag == "S" else [base64.b64decode(raw) for raw in raw_values]
        lengths = list(map(len, values))
        sizes.append(lengths)
        starts = list(map(_text_start if tag == "S" else _blob_start, lengths))
        parts.append([start for start, _ in starts])
        parts.append(values)
        return [crc8(value, before ^ start_crc) for value, (_, start_crc) in zip(values, starts, strict=True)]
    if tag == "BOOL":
        values = [b"\1" if raw == b"true" else b"\0" for raw in raw_values]
    elif tag == "I64":
        values = list(map(_pack_integer, map(int, raw_values)))
    else:
        values = list(map(_pack_double, map(float, raw_values)))
    parts.append(values)
    return list(map(crc8, values, repeat(before)))


def _column(at: int, name: str, tag: str) -> _Column:
    head, crc = name_bytes(name)
    start = _STARTS[tag]
    return _Column(at, tag, head + start, crc8(start[5:], crc) if start else _AFTER_5[crc])


def _member_pattern(name: str, tag: str) -> bytes:
    return rb'%b:\{"%b":%b\}' % (re.escape(orjson.dumps(name)), tag.encode(), _VALUE_PATTERNS[tag])


@lru_cache(maxsize=2048)
def _text_start(length: int) -> tuple[bytes, int]:
    """Return the beginning of a string, and the checksum of its type and length."""
    start = _pack_text(5, length + 5, 3, length)
    return start, crc8(start[5:])


@lru_cache(maxsize=256)
def _blob_start(length: int) -> tuple[bytes, int]:
    """Return the beginning of a blob, and the checksum of its type and length."""
    start = _pack_text(5, length + 5, 7, length)
    return start, crc8(start[5:])


@lru_cache(maxsize=2048)
def _tail(stamp_ms: int) -> tuple[bytes, int]:
    """Return an encoded stamp, and its checksum."""
    tail = _pack_stamp(7, stamp_ms)
    return tail, crc8(tail[1:])


def encoder_of_many(
    key_names: tuple[str, ...], encode_one: Callable[[Row], Row]
) -> Callable[[Sequence[Row]], list[Row]]:
    """Return the function that encodes whole rows with this key. `encode_one` encodes rows without a common layout."""

    def encode(rows: Sequence[Row]) -> list[Row]:
        encoded: dict[int, Row] = {}
        indexes: Sequence[int] = range(len(rows))
        for _ in range(_MAX_LAYOUTS):
            if len(indexes) < _MIN_ROWS:
                break
            layout = _layout_among([rows[at].body for at in indexes[:: len(indexes) // 4]], key_names)
            if layout is None:
                break
            indexes = _encode_alike(layout, rows, indexes, encoded)
        for at in indexes:
            encoded[at] = encode_one(rows[at])
        return [encoded[at] for at in range(len(rows))]

    return encode


def _encode_alike(
    layout: BodyLayout, rows: Sequence[Row], candidates: Sequence[int], encoded: dict[int, Row]
) -> Sequence[int]:
    """Encode the rows at these indexes that have the layout. Returns the indexes of the others."""
    raw_values: list[RawValues] = []
    stamps: list[Stamps] = []
    indexes: list[int] = []
    others: list[int] = []
    attributes = layout.attributes
    for index in candidates:
        row = rows[index]
        row_values = layout.raw_values(row.body)
        stamped = (
            None if row_values is None else _stamps(row.kinds, row.modified_at // TICKS_PER_MS, attributes)
        )
        if row_values is None or stamped is None:
            others.append(index)
        else:
            indexes.append(index)
            raw_values.append(row_values)
            stamps.append(stamped)
    if indexes:
        encoded.update(zip(indexes, map(EncodedRow, *layout.encode(raw_values, stamps)), strict=True))
    return others


def _stamps(kinds: bytes | None, default_ms: int, attributes: tuple[str, ...]) -> Stamps | None:
    """Return the stamps of these attributes. None if a cell has older versions."""
    if kinds is not None and len(kinds) > _KINDS_BYTES:
        return None
    return _cached_stamps(kinds, default_ms, attributes)


@lru_cache(maxsize=256)  # rows that were written together have equal kinds
def _cached_stamps(kinds: bytes | None, default_ms: int, attributes: tuple[str, ...]) -> Stamps | None:
    stamps = stamps_of(kinds) if kinds else {}
    return None if stamps is None else tuple([stamps.get(name, default_ms) for name in attributes])


def _layout_among(bodies: Sequence[bytes], key_names: tuple[str, ...]) -> BodyLayout | None:
    """Return the most frequent layout of these bodies.

    None if all bodies differ, or if the layout has other kinds of values, lacks a column of the key, or is too large.
    """
    [(layout, count)] = Counter(map(_names_and_tags, bodies)).most_common(1)
    names, tags = layout
    if count < 2 or not _VALUE_PATTERNS.keys() >= set(tags) or not set(names) >= set(key_names):
        return None
    if len(names) > _MEMBERS_MOST or sum(map(len, names)) > _NAMES_BYTES:
        return None
    return _cached_layout(names, tags, key_names)


def _names_and_tags(body: bytes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    members: Mapping[str, Mapping[str, Any]] = orjson.loads(body)
    return tuple(members), tuple(tag for member in members.values() for tag in member)


_cached_layout = lru_cache(maxsize=128)(BodyLayout)
