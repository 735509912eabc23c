"""The JSON documents of a file, with line breaks anywhere, in bounded memory.

Documents stand one after the other. A document that is an array, or that has one of the lists in LISTS, is taken
apart: its elements are separate parts, so that it may be larger than the memory.

Each byte belongs to an element, to a separator or to the rest of a document. Elements and rests are parsed by the
caller, and separators are checked here. So nothing in a file is skipped.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from tablegate.adapters.dynamodb.export_files.compression import UnreadableFile
from tablegate.gateway.model.values.row_lines import LINE_BYTES, json_object

LISTS = {
    b'"Items"': "Items", b'"Records"': "Records", b'"value"': "value", b'"items"': "items",
}  # fmt: skip
"""Lists of answers and events: of Scan and Query, of streams, of Azure Table, and of `az storage entity query`."""
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)
_SPACE = b" \t\r\n"
_SHOWN_BYTES = 40
_ITEM, _LIST_END = "an item", "the end of the list"


class DocumentPart(NamedTuple):
    """A document or a part of one.

    - `line`: the number of the line where it begins.
    - `elements`: None for an element or a document that was not taken apart. Otherwise `data` is a document without
    the elements of its list, and this is their number.
    - `list_name`: the name of the list in such a document, "" for an array.
    """

    data: bytes
    line: int
    elements: int | None = None
    list_name: str = ""

    def rest(self) -> dict[str, Any] | None:
        """Return the members of a document that was taken apart, None for an array. Raises UnreadableFile."""
        if self.data.startswith(b"["):
            if self.data != b"[]":
                raise UnreadableFile("not JSON: the array has no closing bracket")
            return None
        document = json_object(self.data)
        if document.get(self.list_name) != []:
            raise UnreadableFile(f"not JSON: {self.list_name} occurs twice or has no closing bracket")
        return document


class DocumentSplitter:
    """A splitter of lines into documents and elements."""

    def __init__(self) -> None:
        self._depth = 0
        self._list_depth: int | None = None  # the depth of the elements, within the list that is taken apart
        self._name = b""  # the last text in an object at the top
        self._elements: int | None = None
        self._list_name = ""
        self._pending = bytearray()  # the beginning of an element or a separator in earlier lines
        self._pending_line = 0
        self._rest = bytearray()
        self.first_line = 0
        """The line where the current document begins."""

    @property
    def is_between_documents(self) -> bool:
        return self._depth == 0

    def parts_of(self, line: bytes, number: int) -> list[DocumentPart]:
        """Return the parts that end in this line. Raises UnreadableFile."""
        parts: list[DocumentPart] = []
        at = 0  # everything before it is assigned
        for token in _TOKEN.finditer(line):
            mark = token[0]
            if mark in b"{[":
                at = self._open(line, at, token.start(), number)
            elif mark in b"}]":
                at = self._close(line, at, token.end(), parts)
            elif self._depth == 1:
                self._name = mark
        self._keep(line[at:])
        return parts

    def end(self) -> None:
        """Raise UnreadableFile if a document is incomplete."""
        if self._depth:
            raise UnreadableFile("the document is incomplete: the file is truncated")

    def _open(self, line: bytes, at: int, start: int, number: int) -> int:
        """Handle an opening bracket. Return the offset up to which bytes are assigned."""
        if self._depth == self._list_depth:
            self._separator(line[at:start], _ITEM)
            self._pending_line = number
            at = start
        elif self._depth == 0:
            _require_space(line[at:start])
            self.first_line, self._elements, self._list_name = number, None, ""
            at = start
        if self._begins_list(line[start]):
            self._rest += line[at : start + 1]
            at = start + 1
            self._elements = self._elements or 0
            self._list_name = LISTS[self._name] if self._depth else ""
            self._list_depth = self._depth + 1
            self._pending_line = number
        self._depth += 1
        return at

    def _begins_list(self, bracket: int) -> bool:
        """True if a bracket opens a list that is taken apart."""
        is_named = self._depth == 1 and self._name in LISTS and self._elements is None
        return bracket == ord("[") and self._list_depth is None and (self._depth == 0 or is_named)

    def _close(self, line: bytes, at: int, end: int, parts: list[DocumentPart]) -> int:
        """Handle a closing bracket. Return the offset up to which bytes are assigned."""
        if not self._depth:
            raise UnreadableFile("a closing bracket has no opening bracket")
        if self._depth == self._list_depth:
            self._separator(line[at : end - 1], _LIST_END)
            self._list_depth = None
            at = end - 1
        self._depth -= 1
        if self._depth == self._list_depth:
            assert self._elements is not None
            self._elements += 1
            parts.append(DocumentPart(bytes(self._pending) + line[at:end], self._pending_line))
            self._pending.clear()
            return end
        if not self._depth:
            rest = bytes(self._rest) + line[at:end]
            parts.append(DocumentPart(rest, self.first_line, self._elements, self._list_name))
            self._rest.clear()
            self._name = b""
            return end
        return at

    def _keep(self, data: bytes) -> None:
        """Assign the end of a line."""
        if not self._depth:
            _require_space(data)
            return
        if self._depth == self._list_depth:
            self._separator(data)
            return
        kept = self._rest if self._list_depth is None else self._pending
        kept += data
        if len(kept) > LINE_BYTES:
            raise UnreadableFile(f"the item or document has no end within {LINE_BYTES >> 20} MiB")

    def _separator(self, data: bytes, following: str = "") -> None:
        """Add to the text between two elements. Check it before what is `following`. Raises UnreadableFile."""
        self._pending += data
        found = self._pending.strip(_SPACE)
        has_comma = found.startswith(b",")
        if other := found[has_comma:].strip(_SPACE):
            raise UnreadableFile(f"expected an item, found {_shown(bytes(other))}")
        self._pending = found[:has_comma]
        if following:
            self._pending.clear()
            is_comma_due = following == _ITEM and bool(self._elements)
            if has_comma != is_comma_due:
                expected = "a comma" if is_comma_due else "an item"
                raise UnreadableFile(f"expected {expected}, found {following if is_comma_due else 'a comma'}")


def _require_space(data: bytes) -> None:
    if found := data.strip(_SPACE):
        raise UnreadableFile(f"not JSON: expected a document, found {_shown(found)}")


def _shown(data: bytes) -> str:
    return data[:_SHOWN_BYTES].decode(errors="replace")
