"""The CRC-8 we use is the CRC-8 of the definition, whole or part by part."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.adapters.tablestore.wire.plainbuffer import crc8
from tests.support.examples import examples


def by_definition(data: bytes, crc: int = 0) -> int:
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc << 1) ^ (0x107 if crc & 0x80 else 0)
    return crc


def test_the_checksum_has_the_documented_check_value() -> None:
    assert crc8(b"123456789") == 0xF4  # docs/protocols/table-store.md section 3.2


@pytest.mark.parametrize("length", [0, 1, 47, 48, 49, 95, 96, 97, 126, 127, 128, 254, 1000, 4095])
def test_checksums_of_any_length_equal_the_definition(length: int) -> None:
    data = bytes((7 * n * n + 3) % 256 for n in range(length))
    assert crc8(data, 0x5A) == by_definition(data, 0x5A)


@examples(60)
@given(st.binary(max_size=300), st.binary(max_size=300), st.integers(0, 255))
def test_parts_can_be_joined(head: bytes, tail: bytes, crc: int) -> None:
    assert crc8(head + tail, crc) == crc8(tail, crc8(head, crc))
    assert crc8(head, crc) == by_definition(head, crc)
