"""PlainBuffer, byte for byte, and what is no PlainBuffer. Vectors: docs/protocols/table-store.md section 3.3 and 3.4."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.adapters.tablestore.wire.plainbuffer import (
    HEADER,
    Bound,
    CellOperation,
    PlainBufferError,
    SequenceInfo,
    WireCell,
    WireRow,
    decode_row,
    decode_rows,
    decode_value,
    encode_row,
    encode_value,
    row_bytes,
)
from tablegate.gateway.model.values.keys import AUTO_INCREMENT
from tablegate.gateway.model.values.values import Kind, Value
from tests.adapters.tablestore.client import cells_of
from tests.support.examples import examples

STAMP = 1_500_000_000_000

PUT = WireRow(
    cells_of({"pk": 1}),
    [
        *cells_of({"s": "hi"}),
        WireCell("i", Value(Kind.INT64, -2), STAMP),
        *cells_of({"d": 1.5, "b": True, "x": b"\x00\xff"}),
    ],
)
UPDATE = WireRow(
    cells_of({"pk": "k"}),
    [
        *cells_of({"a": 7}),
        WireCell("b", None, STAMP, CellOperation.DELETE_ONE),
        WireCell("c", None, None, CellOperation.DELETE_ALL),
        WireCell("n", Value(Kind.INT64, 5), None, CellOperation.INCREMENT),
    ],
)
DELETE = WireRow(cells_of({"pk": 1}), [], is_delete=True)
BOUND = WireRow([WireCell("gid", Bound.INF_MIN), WireCell("uid", Bound.INF_MAX)], [])
KEY = WireRow(cells_of({"gid": 1, "uid": "ab"}), [])
DRAWN = WireRow([*cells_of({"pk": "k"}), WireCell("id", AUTO_INCREMENT)], cells_of({"a": 1}))
RECORD = WireRow(
    cells_of({"pk": 1}),
    [
        WireCell("a", None, None, CellOperation.DELETE_ALL),
        WireCell("b", None, STAMP, CellOperation.DELETE_ONE),
        WireCell("c", Value(Kind.TEXT, "hi"), STAMP),
    ],
    extension=SequenceInfo(0, STAMP * 1000, 0),
)

EXAMPLES = {
    "put": (
        PUT,
        (
            "7500000001030402000000706b05090000000001000000000000000a4c02030401000000730507000000030200000068690ac103"
            "040100000069050900000000feffffffffffffff070098f73e5d0100000a8103040100000064050900000001000000000000f83f"
            "0aba03040100000062050200000002010a3e030401000000780507000000070200000000ff0aaf098e"
        ),
    ),
    "update": (
        UPDATE,
        (
            "7500000001030402000000706b050600000003010000006b0ae2020304010000006105090000000007000000000000000a740304"
            "01000000620603070098f73e5d0100000a060304010000006306010acd0304010000006e05090000000005000000000000000604"
            "0a00098a"
        ),
    ),
    "delete": (DELETE, "7500000001030402000000706b05090000000001000000000000000a4c0809a0"),
    "bound": (BOUND, "75000000010304030000006769640501000000090a5603040300000075696405010000000a0a14095a"),
    "key": (
        KEY,
        (
            "750000000103040300000067696405090000000001000000000000000a2a0304030000007569640507000000030200000061620a"
            "940971"
        ),
    ),
    "drawn": (
        DRAWN,
        (
            "7500000001030402000000706b050600000003010000006b0ae2030402000000696405010000000b0a6f02030401000000610509"
            "0000000001000000000000000a1e094b"
        ),
    ),
    "record": (
        RECORD,
        (
            "7500000001030402000000706b05090000000001000000000000000a4c020304010000006106010ae70304010000006206030700"
            "98f73e5d0100000a0603040100000063050700000003020000006869070098f73e5d0100000a6e0b180000000c130000000d0000"
            "00000e00c029f73d5405000f000000000906"
        ),
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_worked_example(name: str) -> None:
    row, text = EXAMPLES[name]
    data = bytes.fromhex(text)
    assert encode_row(row) == data
    assert decode_row(data) == row


def test_rows_share_a_header_and_no_rows_are_no_bytes() -> None:
    rows = [PUT, KEY, DELETE]
    assert decode_rows(HEADER + b"".join(map(row_bytes, rows))) == rows
    assert decode_rows(b"") == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_node_pads_with_zeros(name: str) -> None:
    row, text = EXAMPLES[name]
    assert decode_row(bytes.fromhex(text) + bytes(7)) == row


def test_other_bytes_behind_the_row_are_refused() -> None:
    data = bytes.fromhex(EXAMPLES["key"][1])
    for tail in (b"\x01", b"\x00\x01", data[4:]):
        with pytest.raises(PlainBufferError):
            decode_row(data + tail)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_cut_is_refused(name: str) -> None:
    data = bytes.fromhex(EXAMPLES[name][1])
    for length in range(len(data)):
        with pytest.raises(PlainBufferError):
            decode_row(data[:length])


def test_every_flipped_bit_outside_the_extension_is_refused() -> None:
    """A checksum of 8 bits detects every single flip. Flips in tags and lengths break the structure."""
    for name in ("put", "update", "delete", "key", "drawn"):
        data = bytearray.fromhex(EXAMPLES[name][1])
        for place in range(len(data) * 8):
            data[place // 8] ^= 1 << place % 8
            with pytest.raises(PlainBufferError):
                decode_row(bytes(data))
            data[place // 8] ^= 1 << place % 8


def test_a_name_measured_in_characters_is_refused() -> None:
    """The Python coder and Node write the length of a name in characters (section 3.5)."""
    data = encode_row(WireRow(cells_of({"pk": 1}), cells_of({"é": 1})))
    malformed = data.replace(b"\x04\x02\x00\x00\x00\xc3\xa9", b"\x04\x01\x00\x00\x00\xc3\xa9")
    assert malformed != data
    with pytest.raises(PlainBufferError):
        decode_row(malformed)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5, "000500000000000000"),
        ("ok", "03020000006f6b"),
        (1.0, "01000000000000f03f"),
        (True, "0201"),
        (b"z", "07010000007a"),
        (Bound.INF_MIN, "09"),
    ],
)
def test_bare_values(value: object, text: str) -> None:
    [cell] = cells_of({"x": value})
    assert cell.value is not None
    assert encode_value(cell.value).hex() == text
    assert decode_value(bytes.fromhex(text)) == cell.value


DATA = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.booleans(), st.text(), st.binary()
)


@given(
    st.dictionaries(st.text(max_size=10), DATA, min_size=1, max_size=4),
    st.dictionaries(st.text(max_size=300), DATA, max_size=5),
    st.booleans(),
)
def test_encoded_rows_are_decoded_exactly(
    key: dict[str, object], cells: dict[str, object], is_delete: bool
) -> None:
    row = WireRow(cells_of(key), cells_of(cells), is_delete)
    assert decode_row(encode_row(row)) == row


@examples(200)
@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_decode_or_are_refused(data: bytes, with_header: bool) -> None:
    with contextlib.suppress(PlainBufferError):
        decode_row(b"\x75\x00\x00\x00" * with_header + data)
    with contextlib.suppress(PlainBufferError):
        decode_value(data)
