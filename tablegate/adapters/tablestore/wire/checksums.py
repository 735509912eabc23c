"""CRC-8 of PlainBuffer: polynomial 0x07, initial 0, no reflection, known as CRC-8/SMBUS.

`crc8(data, before=0)` is the checksum of data that follows data with the checksum `before`, so a cell's is computed
part by part. fastcrc is written in Rust. In Python the checksum was the most expensive part of a range read.

Source: docs/protocols/table-store.md section 3.2. The check value of b"123456789" is 0xF4.
"""

from __future__ import annotations

from fastcrc.crc8 import smbus as crc8

__all__ = ["crc8"]
