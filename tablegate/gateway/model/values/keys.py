"""Keys: typed columns, and their order-preserving bytes.

Each column is a tag byte and a self-delimiting body. The order of the bytes is the order of the values. A position is
the pair (bytes of the partition columns, bytes of the sort columns). Pairs compare like keys of any kinds, so other
modules do not depend on key types or the number of columns. Empty bytes are below every key, `HIGHEST` is above every
key.

Idea: FoundationDB's tuple layer. Integers and decimals of equal value have equal bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

from tablegate.gateway.model.errors import BadKey
from tablegate.gateway.model.values.slots import SLOTS
from tablegate.gateway.model.values.values import Kind, Value

LOWEST = b""
HIGHEST = b"\xff"

_NUMBER, _TEXT, _BYTES = b"\x10", b"\x20", b"\x30"
_NEGATIVE, _ZERO, _POSITIVE = 0x40, 0x80, 0xC0
_EXPONENT_BIAS = 0x8000
# Maps two decimal digits, read as a hexadecimal byte, to their pair + 1.
_PAIRS = bytes(10 * (byte >> 4) + (byte & 0x0F) + 1 for byte in range(256))
_COMPLEMENT = bytes(255 - byte for byte in range(256))

partition_hash = zlib.crc32
"""A 32-bit hash of the partition, by which parallel scans divide a table."""
PARTITION_HASHES = 1 << 32
"""Number of values of `partition_hash`."""
SLOT_SHIFT = 22
"""Number of lower bits of a partition_hash that do not affect the slot."""


class Position(NamedTuple):
    """The position of a row: encoded partition and sort columns. As a bound of a range, either may be partial."""

    partition: bytes
    sort: bytes

    @property
    def after(self) -> Position:
        """The lowest position above this one."""
        return Position(self.partition, self.sort + b"\x00")


def encode_column(value: Value) -> bytes:
    """Return order-preserving, self-delimiting bytes of one key value (TEXT, BYTES or a number)."""
    kind, data = value
    if kind is Kind.TEXT:
        return _TEXT + data.encode().replace(b"\x00", b"\x00\xff") + b"\x00"
    if kind is Kind.BYTES:
        return _BYTES + data.replace(b"\x00", b"\x00\xff") + b"\x00"
    return _NUMBER + _encode_number(data)


def encode_prefix(value: Value) -> bytes:
    """Return the common prefix of all encoded TEXT or BYTES values that begin with this one."""
    return encode_column(value)[:-1]


def decode_column(data: bytes, start: int, kind: Kind) -> tuple[Value, int]:
    """Return the value of a kind at an offset, and the offset of the next one."""
    if kind is Kind.TEXT or kind is Kind.BYTES:
        end = start + 1
        while True:
            end = data.index(b"\x00", end)
            if data[end + 1 : end + 2] != b"\xff":
                break
            end += 2
        raw = data[start + 1 : end].replace(b"\x00\xff", b"\x00")
        return Value(kind, raw.decode() if kind is Kind.TEXT else raw), end + 1
    number, end = _decode_number(data, start + 1)
    return Value(kind, number if kind is Kind.DECIMAL else int(number)), end


def _encode_number(number: Decimal | int) -> bytes:
    """Return sign, biased exponent, pairs of digits (each + 1) and 0. All but the sign is complemented if negative."""
    if not number:
        return bytes((_ZERO,))
    if isinstance(number, int):
        digits = str(abs(number))
        exponent = len(digits) - 1
        negative = number < 0
    else:
        sign, figures, _ = number.as_tuple()
        digits = "".join(map(str, figures)).lstrip("0")
        exponent = number.adjusted()
        negative = bool(sign)
    digits = digits.rstrip("0")
    if len(digits) % 2:
        digits += "0"
    pairs = bytes.fromhex(digits).translate(_PAIRS)
    body = (exponent + _EXPONENT_BIAS).to_bytes(2, "big") + pairs + b"\x00"
    if negative:
        return bytes((_NEGATIVE,)) + body.translate(_COMPLEMENT)
    return bytes((_POSITIVE,)) + body


def _decode_number(data: bytes, start: int) -> tuple[Decimal, int]:
    sign = data[start]
    if sign == _ZERO:
        return Decimal(0), start + 1
    negative = sign == _NEGATIVE
    end = data.index(b"\xff" if negative else b"\x00", start + 3) + 1
    body = data[start + 1 : end]
    if negative:
        body = body.translate(_COMPLEMENT)
    exponent = int.from_bytes(body[:2], "big") - _EXPONENT_BIAS
    digits = "".join(f"{pair - 1:02d}" for pair in body[2:-1]).rstrip("0")
    figures = tuple(int(figure) for figure in digits)
    number = Decimal((int(negative), figures, exponent - len(figures) + 1))
    return Decimal(int(number)) if exponent >= len(figures) - 1 else number, end


def slot_of(partition: bytes) -> int:
    """Return the slot of a partition. Stored rows depend on it, so it must never change."""
    return SLOTS[partition_hash(partition) >> SLOT_SHIFT]


class AutoIncrement:
    """The type of AUTO_INCREMENT, a placeholder in a key. The write path replaces it by a number of the partition's
    counter."""

    def __repr__(self) -> str:
        return "AUTO_INCREMENT"


AUTO_INCREMENT = AutoIncrement()


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """One key column. `kind` is TEXT, BYTES, DECIMAL or INT64."""

    name: str
    kind: Kind
    auto_increment: bool = False


class Key(NamedTuple):
    """A row's key: its values in the order of the schema, and its position.

    AUTO_INCREMENT may replace one of the values, which the type does not express. The position then covers the columns
    before it.
    """

    values: tuple[Value, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class KeySchema:
    """One to four partition columns and any number of sort columns (base tables: one to four in all)."""

    partition: tuple[KeyColumn, ...]
    sort: tuple[KeyColumn, ...] = ()
    # Computed once, because every request uses them: all columns in order and their names. `is_pair`: one partition
    # column and at most one sort column. `is_text_pair`: such columns, all of them TEXT, which is the most frequent
    # key.
    columns: tuple[KeyColumn, ...] = field(init=False, repr=False, compare=False)
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    is_pair: bool = field(init=False, repr=False, compare=False)
    is_text_pair: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        columns = self.partition + self.sort
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "names", tuple([column.name for column in columns]))
        is_pair = len(self.partition) == 1 and len(self.sort) <= 1
        is_text = all(column.kind is Kind.TEXT for column in columns)
        object.__setattr__(self, "is_pair", is_pair)
        object.__setattr__(self, "is_text_pair", is_pair and is_text)

    def key(self, values: Mapping[str, Value]) -> Key:
        """Return the key in these attributes.

        Raises BadKey: rule `missing` or `kind`, with the column and the actual value.
        """
        key_values = []
        for column in self.columns:
            value = values.get(column.name)
            if value is None:
                raise BadKey("missing", column=column)
            if value.kind is not column.kind:
                raise BadKey("kind", column=column, actual=value)
            key_values.append(value)
        return Key(tuple(key_values), self.position(key_values))

    def position(self, values: Any) -> Position:
        """Return the position of values in column order. Fewer values give a prefix."""
        split = len(self.partition)
        if split == 1 and len(values) == 2:  # the most frequent key, without lists
            (first_kind, first), (second_kind, second) = values
            if first_kind is second_kind is Kind.TEXT:  # equals encode_column
                partition = _TEXT + first.encode().replace(b"\x00", b"\x00\xff") + b"\x00"
                sort = _TEXT + second.encode().replace(b"\x00", b"\x00\xff") + b"\x00"
                return Position(partition, sort)
            return Position(encode_column(values[0]), encode_column(values[1]))
        if split == 1 == len(values):  # the partition of a page
            return Position(encode_column(values[0]), b"")
        encoded = [encode_column(value) for value in values]
        return Position(b"".join(encoded[:split]), b"".join(encoded[split:]))

    def decode_partition(self, partition: bytes) -> tuple[Value, ...]:
        """Return the values of the partition columns. Raises ValueError if the bytes are not a whole partition."""
        values: list[Value] = []
        start = 0
        for column in self.partition:
            value, start = decode_column(partition, start, column.kind)
            values.append(value)
        if start != len(partition):
            raise ValueError(partition)
        return tuple(values)

    def decode(self, position: Position) -> Key:
        """Return the key at a position, the inverse of `key`."""
        values: list[Value] = []
        for columns, data in ((self.partition, position.partition), (self.sort, position.sort)):
            start = 0
            for column in columns:
                value, start = decode_column(data, start, column.kind)
                values.append(value)
        return Key(tuple(values), position)


# JSON


def _columns_document(columns: tuple[KeyColumn, ...]) -> list[list[Any]]:
    return [[column.name, column.kind.value, column.auto_increment] for column in columns]


def key_schema_document(schema: KeySchema) -> list[Any]:
    """Return a key schema as JSON: partition and sort columns, each as [name, kind, auto-increment]."""
    return [_columns_document(schema.partition), _columns_document(schema.sort)]


def key_schema_of(document: list[Any]) -> KeySchema:
    """Return the key schema of a document from key_schema_document."""
    partition, sort = map(_key_columns, document)
    return KeySchema(partition, sort)


def _key_columns(document: Iterable[Any]) -> tuple[KeyColumn, ...]:
    return tuple(KeyColumn(name, Kind(kind), auto) for name, kind, auto in document)
