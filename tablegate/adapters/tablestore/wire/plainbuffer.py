"""PlainBuffer: the encoding of rows, with checksums.

    file  = 75 00 00 00  row+
    row   = [01 cell+] [02 cell+] [08] [extension] 09 crc
    cell  = 03  04 length name  [05 vlen type data]  [06 operation]  [07 stamp:int64]  0A crc

Names and values are not validated here, but in rows/writes.py. Numbers are little-endian, and lengths are uint32. Invalid
bytes raise PlainBufferError only. Zero bytes after the last row are accepted as padding of the Node SDK, other bytes
are not. Source: docs/protocols/table-store.md section 3.

The checksum is CRC-8 with polynomial 0x07, initial 0, no reflection, known as CRC-8/SMBUS. `crc8(data, before=0)` is the
checksum of data that follows data with the checksum `before`, so a cell's is computed part by part. fastcrc is written
in Rust. In Python the checksum was the most expensive part of a range read. Source: docs/protocols/table-store.md
section 3.2. The check value of b"123456789" is 0xF4.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from fastcrc.crc8 import smbus as crc8

from tablegate.adapters.tablestore.wire import limits
from tablegate.gateway.model.values.keys import AUTO_INCREMENT, AutoIncrement
from tablegate.gateway.model.values.values import FALSE, TRUE, Kind, Value

__all__ = ["crc8"]


HEADER = b"\x75\x00\x00\x00"

_KEY, _DATA, _CELL, _NAME, _VALUE = 0x01, 0x02, 0x03, 0x04, 0x05
_OPERATION, _STAMP, _DELETE_ROW, _ROW_END, _CELL_END = 0x06, 0x07, 0x08, 0x09, 0x0A
_EXTENSION = 0x0B
_INTEGER, _DOUBLE, _BOOLEAN, _STRING, _BLOB = 0x00, 0x01, 0x02, 0x03, 0x07
_INF_MIN, _INF_MAX, _AUTO = 0x09, 0x0A, 0x0B

CELL_BEGINNING = bytes((_CELL, _NAME))
"""The first bytes of every cell."""
_CACHED_NAME_BYTES = 255  # longer names are illegal and are not cached


class Bound(Enum):
    """The virtual ends of a key column."""

    INF_MIN = _INF_MIN
    INF_MAX = _INF_MAX


class CellOperation(Enum):
    """The operation of a cell in an update. None is a put."""

    DELETE_ALL = 0x01
    DELETE_ONE = 0x03
    INCREMENT = 0x04


Datum = Value | Bound | AutoIncrement


class WireCell(NamedTuple):
    """One cell on the wire. `operation` None is a put. `stamp_ms` None selects the time of the server."""

    name: str
    value: Datum | None
    stamp_ms: int | None = None
    operation: CellOperation | None = None


class SequenceInfo(NamedTuple):
    """The position of a stream record: epoch, microseconds since 1970, and its number among records of that time."""

    epoch: int
    stamp_us: int
    row_index: int


class WireRow(NamedTuple):
    """One row on the wire. Key cells have neither stamp nor operation."""

    key: Sequence[WireCell]
    cells: Sequence[WireCell] = ()
    is_delete: bool = False
    extension: SequenceInfo | None = None


class PlainBufferError(ValueError):
    """The bytes are not PlainBuffer. The text says what was expected."""


class TooManyCells(PlainBufferError):
    """A row has too many cells. The rest is not decoded. `is_key`: too many in its key."""

    def __init__(self, is_key: bool) -> None:
        super().__init__("more cells than any row has")
        self.is_key = is_key


# Decoding

_uint32 = struct.Struct("<I").unpack_from
_int64 = struct.Struct("<q").unpack_from
_float64 = struct.Struct("<d").unpack_from
_extension = struct.Struct("<IBIBiBqBi").unpack_from  # after the 0B: sizes 24 and 19, then epoch, time, index
_OPERATIONS = {operation.value: operation for operation in CellOperation}


def decode_row(data: bytes, cells_max: int = limits.CELLS_MAX) -> WireRow:
    """Decode the only row of a request. Raises PlainBufferError."""
    [row] = _decode(data, single=True, cells_max=cells_max)
    return row


def decode_rows(data: bytes, cells_max: int = limits.CELLS_MAX) -> list[WireRow]:
    """Decode all rows under one header. Empty bytes give no rows. Raises PlainBufferError."""
    return _decode(data, single=False, cells_max=cells_max) if data else []


def _decode(data: bytes, single: bool, cells_max: int) -> list[WireRow]:
    if data[:4] != HEADER:
        raise PlainBufferError("no PlainBuffer header")
    rows = []
    at = 4
    try:
        while True:
            row, at = _row(data, at, cells_max)
            rows.append(row)
            if at == len(data):
                return rows
            if single or data[at] == 0:
                if data.count(0, at) < len(data) - at:
                    raise PlainBufferError("bytes after the row")
                return rows
    except (IndexError, struct.error):
        raise PlainBufferError("the data ends too early") from None


def _row(data: bytes, at: int, cells_max: int) -> tuple[WireRow, int]:
    key: list[WireCell] = []
    cells: list[WireCell] = []
    checksums = bytearray()
    tag = data[at]
    if tag == _KEY:
        at = _cells(data, at + 1, key, checksums, limits.KEY_CELLS_MAX)
        tag = data[at]
    if tag == _DATA:
        at = _cells(data, at + 1, cells, checksums, cells_max)
        tag = data[at]
    is_delete = tag == _DELETE_ROW
    if is_delete:
        at += 1
        tag = data[at]
    extension = None
    if tag == _EXTENSION:
        _, _, _, _, epoch, _, stamp_us, _, row_index = _extension(data, at + 1)
        extension = SequenceInfo(epoch, stamp_us, row_index)
        at += 29
        tag = data[at]
    if tag != _ROW_END:
        raise PlainBufferError("no end of the row")
    checksums.append(is_delete)
    if crc8(checksums) != data[at + 1]:
        raise PlainBufferError("the checksum of a row does not match")
    return WireRow(key, cells, is_delete, extension), at + 2


def _cells(data: bytes, at: int, decoded: list[WireCell], checksums: bytearray, cells_max: int) -> int:
    """Decode at most `cells_max` cells of one section, and add their checksums. Returns the offset of its end."""
    while data[at] == _CELL:
        if data[at + 1] != _NAME:
            raise PlainBufferError("a cell without a name")
        start = at + 6
        at = start + _uint32(data, at + 2)[0]
        raw = data[start:at]
        name, crc = _name(raw) if len(raw) <= _CACHED_NAME_BYTES else _name.__wrapped__(raw)
        value: Datum | None = None
        operation = stamp_ms = None
        tag = data[at]
        if tag == _VALUE:
            begin = at + 5
            value, at = _datum(data, begin)
            if at != begin + _uint32(data, begin - 4)[0]:
                raise PlainBufferError("the length of a value does not match")
            crc = crc8(data[begin:at], crc)
            tag = data[at]
        code = 0
        if tag == _OPERATION:
            code = data[at + 1]
            operation = _OPERATIONS.get(code)
            if operation is None:
                raise PlainBufferError("an unknown cell operation")
            at += 2
            tag = data[at]
        if tag == _STAMP:
            stamp_ms = _int64(data, at + 1)[0]
            crc = crc8(data[at + 1 : at + 9], crc)
            at += 9
            tag = data[at]
        if code:
            crc = crc8(bytes((code,)), crc)
        if tag != _CELL_END:
            raise PlainBufferError("no end of a cell")
        if data[at + 1] != crc:
            raise PlainBufferError("the checksum of a cell does not match")
        at += 2
        checksums.append(crc)
        decoded.append(WireCell(name, value, stamp_ms, operation))
        if len(decoded) > cells_max:
            raise TooManyCells(is_key=cells_max < limits.CELLS_MAX)
    return at


def _datum(data: bytes, at: int) -> tuple[Datum, int]:
    """Decode a bare value (type and data). Returns the value and the offset of its end."""
    code = data[at]
    at += 1
    if code == _INTEGER:
        return Value(Kind.INT64, _int64(data, at)[0]), at + 8
    if code in (_STRING, _BLOB):
        start = at + 4
        end = start + _uint32(data, at)[0]
        raw = data[start:end]
        if end > len(data):
            raise PlainBufferError("the data ends too early")
        if code == _BLOB:
            return Value(Kind.BYTES, raw), end
        try:
            return Value(Kind.TEXT, raw.decode()), end
        except UnicodeDecodeError:
            raise PlainBufferError("a string is not UTF-8") from None
    if code == _DOUBLE:
        return Value(Kind.DOUBLE, _float64(data, at)[0]), at + 8
    if code == _BOOLEAN:
        return (TRUE if data[at] else FALSE), at + 1
    if code in (_INF_MIN, _INF_MAX):
        return Bound(code), at
    if code == _AUTO:
        return AUTO_INCREMENT, at
    raise PlainBufferError("an unknown type of value")


@lru_cache(maxsize=4096)
def _name(raw: bytes) -> tuple[str, int]:
    """Return the name of a column, and its checksum."""
    try:
        return raw.decode(), crc8(raw)
    except UnicodeDecodeError:
        raise PlainBufferError("a column name is not UTF-8") from None


def decode_value(data: bytes) -> Datum:
    """Decode a bare value of a filter or a partition range. Raises PlainBufferError."""
    try:
        value, end = _datum(data, 0)
    except (IndexError, struct.error):
        raise PlainBufferError("the data ends too early") from None
    if any(data[end:]):
        raise PlainBufferError("bytes after the value")
    return value


# Encoding

_pack_integer = struct.Struct("<BIBq").pack
_pack_double = struct.Struct("<BIBd").pack
_pack_text = struct.Struct("<BIBI").pack
_pack_stamp = struct.Struct("<Bq").pack
_pack_name = struct.Struct("<BBI").pack
_TRUE = b"\x05\x02\x00\x00\x00\x02\x01"
_FALSE = b"\x05\x02\x00\x00\x00\x02\x00"


def encode_row(row: WireRow) -> bytes:
    """Return one row with a header."""
    return HEADER + row_bytes(row)


def row_bytes(row: WireRow) -> bytes:
    """Return one row without the header."""
    key, cells, is_delete, extension = row
    parts: list[bytes] = []
    checksums = bytearray()
    if key:
        parts.append(b"\x01")
        _add_cells(key, parts, checksums)
    if cells:
        parts.append(b"\x02")
        _add_cells(cells, parts, checksums)
    if is_delete:
        parts.append(b"\x08")
    if extension is not None:
        parts.append(_extension_bytes(extension))
    checksums.append(is_delete)
    parts.append(ROW_ENDS[crc8(checksums)])
    return b"".join(parts)


def _add_cells(cells: Sequence[WireCell], parts: list[bytes], checksums: bytearray) -> None:
    """Append encoded cells to `parts`, and their checksums to `checksums`."""
    for name, value, stamp_ms, operation in cells:
        head, crc = name_bytes(name)
        parts.append(head)
        if value is not None:
            encoded = _value_bytes(value)
            parts.append(encoded)
            crc = crc8(encoded[5:], crc)
        if operation is not None:
            parts.append(_OPERATION_BYTES[operation])
        if stamp_ms is not None:
            stamp = _pack_stamp(_STAMP, stamp_ms)
            parts.append(stamp)
            crc = crc8(stamp[1:], crc)
        if operation is not None:
            crc = crc8(bytes((operation.value,)), crc)
        parts.append(CELL_ENDS[crc])
        checksums.append(crc)


def _value_bytes(value: Datum) -> bytes:
    """Return a value with its tag and length."""
    if isinstance(value, Value):
        kind, data = value
        if kind is Kind.TEXT:
            raw = data.encode()
            return _pack_text(5, len(raw) + 5, _STRING, len(raw)) + raw
        if kind is Kind.INT64:
            return _pack_integer(5, 9, _INTEGER, data)
        if kind is Kind.DOUBLE:
            return _pack_double(5, 9, _DOUBLE, data)
        if kind is Kind.BOOL:
            return _TRUE if data else _FALSE
        if kind is Kind.BYTES:
            return _pack_text(5, len(data) + 5, _BLOB, len(data)) + data
        raise TypeError(f"{kind} has no PlainBuffer type")
    code = value.value if isinstance(value, Bound) else _AUTO
    return b"\x05\x01\x00\x00\x00" + bytes((code,))


@lru_cache(maxsize=4096)
def name_bytes(name: str) -> tuple[bytes, int]:
    """Return the beginning of a cell, and the checksum of the name."""
    raw = name.encode()
    return _pack_name(_CELL, _NAME, len(raw)) + raw, crc8(raw)


def _extension_bytes(extension: SequenceInfo) -> bytes:
    epoch, stamp_us, row_index = extension
    return b"\x0b" + struct.pack("<IBIBiBqBi", 24, 0x0C, 19, 0x0D, epoch, 0x0E, stamp_us, 0x0F, row_index)


CELL_ENDS = [bytes((_CELL_END, crc)) for crc in range(256)]
ROW_ENDS = [bytes((_ROW_END, crc)) for crc in range(256)]
_OPERATION_BYTES = {operation: bytes((_OPERATION, operation.value)) for operation in CellOperation}


def encode_value(value: Datum) -> bytes:
    """Return a bare value: type and data."""
    return _value_bytes(value)[5:]
