"""CRC-8 of PlainBuffer: polynomial 0x07, initial 0, no reflection; the catalogue of checksums calls it CRC-8/SMBUS.

`crc8(data, before=0)` is the checksum of data that follows data with checksum `before`, so a cell's is taken part by part.
In Python it was the largest item of a range read; fastcrc does it in Rust.

Source: docs/protocols/table-store.md section 3.2; check value of b"123456789" is 0xF4.
"""

from __future__ import annotations

from fastcrc.crc8 import smbus as crc8

__all__ = ["crc8"]
