"""Fast paths between PlainBuffer and stored bodies for common rows, without Value, cells or version dictionaries.

Pages of rows and batches of puts spend most of their time here. `encode` equals RowSelection.cutter, wire_row and
plainbuffer.row_bytes, for rows of Table Store's own kinds and one version of each cell. `put_of` equals
plainbuffer.decode_row, the checks of writes.py and Contents.of_cells, for a valid put. All other rows give None, and
the general path handles or refuses them. So there are no error texts here.
tests/adapters/tablestore/rows/test_fast_rows.py compares both paths.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.names import is_column_name
from tablegate.adapters.tablestore.wire.plainbuffer import CELL_ENDS, HEADER, ROW_ENDS, crc8, name_bytes
from tablegate.gateway.model.values.keys import Key, KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import FOREIGN_KINDS, TICKS_PER_MS, Contents, Row
from tablegate.gateway.model.values.values import Kind, Value

_DATA, _CELL, _NAME, _VALUE, _ROW_END, _CELL_END = 0x02, 0x03, 0x04, 0x05, 0x09, 0x0A
_INTEGER, _DOUBLE, _BOOLEAN, _STRING, _BLOB = 0x00, 0x01, 0x02, 0x03, 0x07

# Rows -> PlainBuffer

_pack_start = struct.Struct("<BI").pack
_pack_integer = _pack_stamp = struct.Struct("<Bq").pack
_pack_double = struct.Struct("<Bd").pack
_BOOLEANS = (b"\x02\x00", b"\x02\x01")
_FIXED_SIZES = {"BOOL": 1, "D": 8}
_IS_FOREIGN = -(1 << 40)
"""Added to the size of a row with a value that Table Store shows as another kind."""
_HEADER_OF_KEY = HEADER + b"\x01"
_KINDS_BYTES, _LAYOUT_COLUMNS = 1024, 64  # larger ones are not cached


class EncodedRow(Row):
    """A cut and encoded row. It has only the bytes in `wire`, and a size."""

    __slots__ = ("size_bytes", "wire")
    size_bytes: int

    def __init__(self, wire: bytes, size_bytes: int) -> None:
        self.wire = wire
        self.size_bytes = size_bytes


class _Column(NamedTuple):
    """The name of a column, the encoded head of its cells, and the checksum of the name."""

    name: str
    head: bytes
    crc: int


class _Layout(NamedTuple):
    """The columns of a row in their order on the wire, and the size of all names."""

    key: tuple[_Column, ...]
    attributes: tuple[_Column, ...]
    names_size: int


def encoder(key_names: tuple[str, ...], otherwise: Callable[[Row], Row]) -> Callable[[Row], Row]:
    """Return the function that encodes whole rows with this key. `otherwise`: the function for all other rows."""

    def encode(row: Row) -> Row:
        kinds = row.kinds
        stamps = stamps_of(kinds) if kinds else {}
        members: dict[str, dict[str, Any]] = orjson.loads(row.body)
        layout = _layout(tuple(members), key_names)
        if stamps is None or layout is None:
            return otherwise(row)
        parts, checksums = [b"\x01"], bytearray()
        size = layout.names_size + _add_cells(layout.key, members, None, 0, parts, checksums)
        if layout.attributes:
            parts.append(b"\x02")
            modified_ms = row.modified_at // TICKS_PER_MS
            size += _add_cells(layout.attributes, members, stamps, modified_ms, parts, checksums)
        if size < 0:
            return otherwise(row)
        checksums.append(0)  # the row is not deleted
        parts.append(ROW_ENDS[crc8(bytes(checksums))])
        return EncodedRow(b"".join(parts), size)

    return encode


def _add_cells(
    columns: tuple[_Column, ...],
    members: Mapping[str, Any],
    stamps: Mapping[str, int] | None,
    modified_ms: int,
    parts: list[bytes],
    checksums: bytearray,
) -> int:
    """Encode cells, and add their parts and checksums. Return the size of their values, or _IS_FOREIGN.

    Pages spend most of their time here.

    `stamps`: those of cells with an own stamp, others have `modified_ms`. None for a key, which has no stamps.
    """
    size, last_ms = 0, -1
    tail = stamp = b""
    for name, head, crc in columns:
        [tag] = member = members[name]
        if tag == "S":
            raw = member[tag].encode()
            value = _pack_start(3, len(raw)) + raw
            size += len(raw)
        elif tag == "I64":
            value = _pack_integer(0, int(member[tag]))
            size += 8
        else:
            value = _rare_value(tag, member[tag])
            size += _FIXED_SIZES.get(tag, len(value) - 5) if value else _IS_FOREIGN
        if stamps is not None and (stamp_ms := stamps.get(name, modified_ms)) != last_ms:
            last_ms, tail = stamp_ms, _pack_stamp(7, stamp_ms)
            stamp = tail[1:]
        crc = crc8(value + stamp, crc)
        parts += (head, _pack_start(5, len(value)), value, tail, CELL_ENDS[crc])
        checksums.append(crc)
    return size


def _rare_value(tag: str, data: Any) -> bytes:
    """Return the type and content of a value of the less frequent kinds. Empty if Table Store shows it as another kind."""
    if tag == "BOOL":
        return _BOOLEANS[data]
    if tag == "D":
        return _pack_double(1, float(data))
    if tag == "B":
        raw = base64.b64decode(data)
        return _pack_start(7, len(raw)) + raw
    return b""


def stamps_of(kinds: bytes) -> Mapping[str, int] | None:
    """Return the stamps of cells with an own stamp. None if a cell has older versions."""
    return _cached_stamps(kinds) if len(kinds) <= _KINDS_BYTES else _cached_stamps.__wrapped__(kinds)


@lru_cache(maxsize=256)  # rows that were written together have equal kinds
def _cached_stamps(kinds: bytes) -> Mapping[str, int] | None:
    versions = orjson.loads(kinds).get("cells", {})
    stamps_by_name: dict[str, int] = {}
    for name, stamps in versions.items():
        if len(stamps) > 1:
            return None
        stamps_by_name[name] = stamps[0]
    return stamps_by_name


def _layout(names: tuple[str, ...], key_names: tuple[str, ...]) -> _Layout | None:
    """Return the layout of a row with these columns. None if it lacks a column of its key."""
    is_cacheable = len(names) <= _LAYOUT_COLUMNS
    return _cached_layout(names, key_names) if is_cacheable else _cached_layout.__wrapped__(names, key_names)


@lru_cache(maxsize=256)
def _cached_layout(names: tuple[str, ...], key_names: tuple[str, ...]) -> _Layout | None:
    if not set(key_names).issubset(names):
        return None
    key = tuple(_Column(name, *name_bytes(name)) for name in key_names)
    attributes = tuple(_Column(name, *name_bytes(name)) for name in sorted(set(names).difference(key_names)))
    return _Layout(key, attributes, sum(len(name.encode()) for name in names))


# PlainBuffer -> rows


class PlainPut(NamedTuple):
    """A valid put, as far as that does not depend on the table.

    - `members`: its columns by name as tagged JSON, those of the key first.
    - `key_columns`: the number of key columns.
    - `key_size`, `size`: the size of names and values of the key and of all columns, in bytes.
    - `is_foreign`: it has a kind that DynamoDB lacks.
    - `data`: the encoded put.
    """

    members: dict[str, dict[str, Any]]
    key_columns: int
    key_size: int
    size: int
    is_foreign: bool
    data: bytes


_uint32 = struct.Struct("<I").unpack_from
_lengths = struct.Struct("<IBI").unpack_from
_int64 = struct.Struct("<q").unpack_from
_float64 = struct.Struct("<d").unpack_from


def put_of(data: bytes) -> PlainPut | None:
    """Decode a put without stamps and operations. None if the row is not that simple, or invalid."""
    if len(data) > limits.WRITE_MAX_BYTES or data[:5] != _HEADER_OF_KEY:
        return None
    try:
        return _put_of(data)
    except (IndexError, struct.error, UnicodeDecodeError):
        return None


def _put_of(data: bytes) -> PlainPut | None:
    members: dict[str, dict[str, Any]] = {}
    checksums: list[int] = []
    key = _read_cells(data, len(_HEADER_OF_KEY), members, checksums, is_key=True)
    if key is None:
        return None
    at, key_size, is_foreign = key
    key_columns, size = len(members), key_size
    if members and data[at] == _DATA:
        attributes = _read_cells(data, at + 1, members, checksums, is_key=False)
        if attributes is None:
            return None
        at, attributes_size, has_foreign = attributes
        size += attributes_size
        is_foreign = is_foreign or has_foreign
    checksums.append(0)  # the row is not deleted
    if data[at] != _ROW_END or data[at + 1] != crc8(bytes(checksums)) or any(data[at + 2 :]):
        return None
    if not 1 <= key_columns <= limits.KEY_COLUMNS_MAX or len(members) - key_columns > limits.COLUMNS_MAX:
        return None
    return PlainPut(members, key_columns, key_size, size, is_foreign, data)


def _read_cells(
    data: bytes, at: int, members: dict[str, dict[str, Any]], checksums: list[int], is_key: bool
) -> tuple[int, int, bool] | None:
    """Add the cells at an offset to the members.

    Returns the offset of their end, the size of their names and values, and True if DynamoDB lacks a kind among them.
    None if a cell is not simple. Batches of puts spend most of their time here.
    """
    value_most = limits.KEY_VALUE_MAX_BYTES if is_key else limits.VALUE_MAX_BYTES
    size = 0
    is_foreign = False
    while data[at] == _CELL:
        if data[at + 1] != _NAME:
            return None
        start = at + 6
        at = start + _uint32(data, at + 2)[0]
        raw = data[start:at]
        if len(raw) > limits.NAME_MAX_BYTES:
            return None
        name, name_size, crc, is_legal = _name(raw)
        if name in members or not (is_legal or is_key) or data[at] != _VALUE:
            return None
        length, kind, inner = _lengths(data, at + 1)
        start = at + 5
        at = start + length
        if kind == _STRING and length == inner + 5:
            member: dict[str, Any] | None = {"S": data[start + 5 : at].decode()}
            value_size = inner
        elif kind == _INTEGER and length == 9:
            member = {"I64": str(_int64(data, start + 1)[0])}
            value_size = 8
            is_foreign = True
        else:
            member, value_size = _rare_member(kind, data[start + 1 : at], is_key)
            is_foreign = is_foreign or kind == _DOUBLE
        crc = crc8(data[start:at], crc)
        if member is None or value_size > value_most or data[at] != _CELL_END or data[at + 1] != crc:
            return None
        members[name] = member
        if len(members) > limits.KEY_COLUMNS_MAX + limits.COLUMNS_MAX:
            return None
        checksums.append(crc)
        size += name_size + value_size
        at += 2
    return at, size, is_foreign


def _rare_member(kind: int, raw: bytes, is_key: bool) -> tuple[dict[str, Any] | None, int]:
    """Return a value of the less frequent kinds as tagged JSON, and its billed size. `raw`: the bytes after its type.

    None if it is invalid, or in a key if it is no blob.
    """
    if kind == _BLOB and len(raw) >= 4 and len(raw) == 4 + _uint32(raw)[0]:
        return {"B": base64.b64encode(raw[4:]).decode()}, len(raw) - 4
    if is_key:
        return None, 0
    if kind == _BOOLEAN and len(raw) == 1:
        return {"BOOL": raw != b"\x00"}, 1
    if kind == _DOUBLE and len(raw) == 8:
        return {"D": repr(_float64(raw)[0])}, 8
    return None, 0


@lru_cache(maxsize=4096)
def _name(raw: bytes) -> tuple[str, int, int, bool]:
    """Return the name of a column, its size, its checksum, and True if the name is legal. Raises UnicodeDecodeError."""
    name = raw.decode()
    return name, len(raw), crc8(raw), is_column_name(name)


def key_and_contents(
    put: PlainPut, schema: KeySchema, defined: Mapping[str, Kind], stamp_ms: int | None
) -> tuple[Key, Contents] | None:
    """Return the row that a put creates in a table. `stamp_ms`: the stamp of its cells, if they have one.

    None if the put does not fit the key or the defined columns.
    """
    members = put.members
    names = tuple(members)
    columns = schema.columns
    if names[: put.key_columns] != schema.names:
        return None
    values = tuple([_key_value(column, members[column.name]) for column in columns])
    if None in values:
        return None
    for name, kind in defined.items():
        if name in members and _TAGS[kind] not in members[name]:
            return None
    if stamp_ms is not None:
        kinds: bytes | None = _uniform(names[put.key_columns :], stamp_ms)
    else:
        kinds = FOREIGN_KINDS if put.is_foreign else None
    key = Key(values, schema.position(values))  # type: ignore[arg-type]
    return key, Contents(None, kinds, put.size, None, members)


def _key_value(column: KeyColumn, member: Mapping[str, Any]) -> Value | None:
    ((tag, data),) = member.items()
    kind = column.kind
    if kind is Kind.TEXT and tag == "S":
        return Value(kind, data)
    if kind is Kind.INT64 and tag == "I64":
        return Value(kind, int(data))
    if kind is Kind.BYTES and tag == "B":
        return Value(kind, base64.b64decode(data))
    return None


_TAGS = {Kind.TEXT: "S", Kind.INT64: "I64", Kind.DOUBLE: "D", Kind.BOOL: "BOOL", Kind.BYTES: "B"}


@lru_cache(maxsize=64)
def _uniform(names: tuple[str, ...], stamp_ms: int) -> bytes:
    """Return the `kinds` of a row whose cells all have one stamp."""
    return orjson.dumps({"cells": {name: [stamp_ms] for name in names}})
