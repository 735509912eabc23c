"""A streaming parser of the output of `aws dynamodb scan` (`{"Items":[...],"Count":...}`).

Line breaks may be anywhere. A file may have several documents one after the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tablegate.adapters.dynamodb.export_files.compression import UnreadableFile
from tablegate.adapters.dynamodb.export_files.lines import LineFormat, read_item
from tablegate.adapters.dynamodb.values.values import ParsedItem
from tablegate.gateway.model.values.row_lines import LINE_BYTES
from tablegate.transfer.endpoints.files.file_endpoint import LineReader

_DOCUMENT = re.compile(
    rb'\s*\{\s*(?:$|"(?:Items|Count|ScannedCount|ConsumedCapacity|NextToken|LastEvaluatedKey)"\s*:)'
)
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)
_ITEM_DEPTH = 2  # inside the document and its list


def begins_document(line: bytes) -> bool:
    """True if a file with this first line has documents of items. Otherwise it has an item on each line."""
    return _DOCUMENT.match(line) is not None


def items_of(first: bytes, lines: LineReader) -> Iterator[ParsedItem]:
    """Yield the items. Raises BadFile with the line of the error."""
    depth = 0
    within_items = False
    name = b""
    item_parts: list[bytes] = []  # the part of the current item in earlier lines
    parts_bytes = 0
    line: bytes | None = first
    while line is not None:
        item_start = 0  # offset of the current item in this line
        for token in _TOKEN.finditer(line):
            mark = token[0]
            if mark in b"{[":
                if depth == _ITEM_DEPTH and within_items and mark == b"{":
                    item_start = token.start()
                elif depth == 1:
                    within_items = mark == b"[" and name == b'"Items"'
                depth += 1
            elif mark in b"}]":
                depth -= 1
                if depth < 0:
                    raise lines.bad("a closing bracket has no opening bracket")
                if depth == _ITEM_DEPTH and within_items and mark == b"}":
                    yield _item(b"".join(item_parts) + line[item_start : token.end()], lines)
                    item_parts, parts_bytes = [], 0
            elif depth == 1:
                name = mark
        if depth > _ITEM_DEPTH and within_items:
            item_parts.append(line[item_start:])
            parts_bytes += len(item_parts[-1])
            if parts_bytes > LINE_BYTES:
                raise lines.bad("an item without an end")
        line = next(lines, None)
    if depth:
        raise lines.bad("the document is incomplete: the file is truncated")


def _item(data: bytes, lines: LineReader) -> ParsedItem:
    try:
        return read_item(data, LineFormat.BARE)
    except UnreadableFile as error:
        raise lines.bad(error) from None
