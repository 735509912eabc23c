"""Text files in UTF-16, as PowerShell writes the output of a command, as UTF-8. The byte order mark shows the encoding."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from typing import BinaryIO, cast

from tablegate.adapters.dynamodb.export_files.compression import BLOCK_BYTES, UnreadableFile, file_of

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_REMEDY = "Convert it to UTF-8: iconv -t UTF-8 -f"


def in_utf8(stream: BinaryIO) -> BinaryIO:
    """Return the stream, or one that converts it from UTF-16. Raises UnreadableFile for UTF-32 and UTF-16 without a mark."""
    head = cast(io.BufferedReader, stream).peek(4)[:4]
    if head.startswith(_UTF32):
        raise UnreadableFile(f"the file is UTF-32. {_REMEDY} UTF-32 FILE > NEW")
    if head.startswith(_UTF16):
        return file_of(stream, _utf8_blocks(stream))
    if b"\0" in head and head.strip(b"\0") and head.isascii():
        encoding = "UTF-16BE" if head.startswith(b"\0") else "UTF-16LE"
        raise UnreadableFile(
            f"the file has no text in UTF-8. {_REMEDY} {encoding} FILE > NEW, if it is UTF-16"
        )
    return stream


def _utf8_blocks(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the text of a stream in UTF-16 with a byte order mark, as UTF-8 without one. Raises UnreadableFile."""
    decoder = codecs.getincrementaldecoder("utf-16")()
    is_end = False
    while not is_end:
        block = stream.read(BLOCK_BYTES)
        is_end = not block
        try:
            yield decoder.decode(block, final=is_end).encode()
        except UnicodeDecodeError as error:
            raise UnreadableFile(f"not UTF-16, or truncated: {error.reason}") from None
