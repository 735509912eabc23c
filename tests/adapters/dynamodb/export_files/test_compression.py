"""Compressed files: several members, cut off anywhere, damaged, and far larger inside than outside."""

from __future__ import annotations

import gzip
import io
import tracemalloc

import pytest
import zstandard

from tablegate.adapters.dynamodb.export_files.compression import (
    Compression,
    UnreadableFile,
    compressed,
    compression_of,
    reading,
)

PACKED = [Compression.GZIP, Compression.ZSTD]


@pytest.mark.parametrize("compression", Compression)
def test_members_behind_each_other_are_one_file(compression):
    data = b"".join(compressed(part, compression) for part in (b"one\n", b"", b"two\n" * 5000))
    assert reading(io.BytesIO(data), compression).readlines() == [b"one\n"] + [b"two\n"] * 5000
    assert compression_of(data) is compression


def test_other_writers_files_are_read():
    assert reading(io.BytesIO(gzip.compress(b"x" * 10)), Compression.GZIP).read() == b"x" * 10
    unsized = zstandard.ZstdCompressor(write_content_size=False).compress(b"x" * 10)
    assert reading(io.BytesIO(unsized), Compression.ZSTD).read() == b"x" * 10
    padded = gzip.compress(b"x") + b"\0" * 20
    assert reading(io.BytesIO(padded), Compression.GZIP).read() == b"x"
    assert reading(io.BytesIO(b""), Compression.GZIP).read() == b""


@pytest.mark.parametrize("compression", PACKED)
def test_a_file_that_was_cut_off_is_seen(compression):
    """zstandard's reader of several frames returns the available part of the last one without an error."""
    first = compressed(b"one\n" * 100, compression)
    data = first + compressed(b"two\n" * 100, compression)
    for cut in range(1, len(data)):
        if cut != len(first):
            with pytest.raises(UnreadableFile, match="cut off"):
                reading(io.BytesIO(data[:cut]), compression).read()


@pytest.mark.parametrize("compression", PACKED)
def test_damage_is_seen(compression):
    data = compressed(b"".join(b"%d\n" % number for number in range(1000)), compression)
    for at in range(len(data) // 2, len(data) - 8, 97):
        with pytest.raises(UnreadableFile):
            reading(io.BytesIO(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :]), compression).read()
    with pytest.raises(UnreadableFile, match="damaged"):
        reading(io.BytesIO(b"plain text, no archive"), compression).read()
    with pytest.raises(UnreadableFile, match="damaged"):
        reading(io.BytesIO(compressed(b"x", compression) + b"behind"), compression).read()


@pytest.mark.parametrize("compression", PACKED)
def test_huge_data_are_inflated_piece_by_piece(compression):
    data = compressed(bytes(64 << 20), compression)
    tracemalloc.start()
    stream = reading(io.BytesIO(data), compression)
    count = 0
    while chunk := stream.read(1 << 16):
        count += len(chunk)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 64 << 20 and peak < 40 << 20
