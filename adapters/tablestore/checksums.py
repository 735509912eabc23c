"""CRC-8 of PlainBuffer (polynomial 0x07, initial 0, no reflection), as fast as Python can.

Two facts make it fast. The checksum is linear: `crc(a + b) == SHIFTED[len(b)][crc(a)] ^ crc(b)`, so the checksums of parts
(a column name, a time stamp) are computed once, kept, and joined by table look-ups. And x**127 is 1 modulo the polynomial
((x + 1) times one of degree 7), so a shift by n bytes equals a shift by n mod 127: 127 tables of 256 bytes are all there
are. Long data is folded in halves with `bytes.translate` and one xor of big integers, which run in C.

Source: protocols/table-store.md section 3.2; check value of b"123456789" is 0xF4.
"""

from __future__ import annotations

PERIOD = 127  # of the shift tables, in bytes
_FOLD_FROM = 48  # bytes; shorter data is quicker in the plain loop


def _step(byte: int) -> int:
    for _ in range(8):
        byte = (byte << 1) ^ (0x107 if byte & 0x80 else 0)
    return byte


TABLE = bytes(_step(byte) for byte in range(256))
"""The checksum after one byte, by (checksum before) ^ byte."""


def _shift_tables() -> list[bytes]:
    tables = [bytes(range(256))]
    for _ in range(PERIOD - 1):
        tables.append(tables[-1].translate(TABLE))
    return tables


SHIFTED = _shift_tables()
"""SHIFTED[n % PERIOD][crc]: what a checksum becomes when n zero bytes follow."""


def crc8(data: bytes, crc: int = 0) -> int:
    """The checksum of data that follows data with checksum `crc`."""
    length = len(data)
    if length >= _FOLD_FROM:
        return SHIFTED[length % PERIOD][crc] ^ crc8(_folded(data))
    table = TABLE
    for byte in data:
        crc = table[crc ^ byte]
    return crc


def _folded(data: bytes) -> bytes:
    """Shorter data of the same checksum: the upper half, shifted over the lower one, is added to it."""
    length = len(data)
    while length >= _FOLD_FROM:
        lower = length // 2
        split = length - lower
        # Upper half is bytes [0, split); shifting it by `lower` bytes brings it on top of the lower half, right-aligned.
        moved = data[:split].translate(SHIFTED[lower % PERIOD])
        joined = int.from_bytes(moved, "big") ^ int.from_bytes(data[split:], "big")
        data = joined.to_bytes(split, "big")
        length = split
    return data
