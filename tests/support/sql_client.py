"""SQLQuery with results as plain Python values."""

from __future__ import annotations

import struct
from typing import Any

from tablegate.adapters.tablestore.wire.protocol import sql_pb2
from tests.adapters.tablestore.client import TableStoreCalls

LONG, BOOL, DOUBLE, STRING, BINARY, COMPLEX = 1, 2, 3, 4, 5, 7


class Answer:
    """The answer to a statement: names and types of its columns, and its rows."""

    def __init__(self, message: Any) -> None:
        self.message = message
        self.names: list[str] = []
        self.types: list[int] = []
        self.rows: list[tuple[Any, ...]] = []
        if message.rows:
            self._decode(Buffer(message.rows))

    def _decode(self, data: Buffer) -> None:
        root = data.follow(0)
        columns = []
        for column in data.vector(data.field(root, 0)):
            self.names.append(data.text(data.field(column, 0)))
            kind = data.number(data.field(column, 1), "<b")
            self.types.append(kind)
            assert data.field(column, 3), "the Go SDK fails without the type of a complex column"
            columns.append(self._values(data, data.follow(data.field(column, 2)), kind))
        count = data.number(data.field(root, 1), "<q")
        self.rows = list(zip(*columns, strict=True))
        assert len(self.rows) == count
        assert all(len(column) == count for column in columns)

    def _values(self, data: Buffer, values: int, kind: int) -> list[Any]:
        nulls = data.numbers(data.field(values, 0), "<B")
        match kind:
            case 1 | 7:
                found: list[Any] = data.numbers(data.field(values, 1), "<q")
            case 2:
                found = [bool(each) for each in data.numbers(data.field(values, 2), "<B")]
            case 3:
                found = data.numbers(data.field(values, 3), "<d")
            case 4:
                found = [data.text_at(each) for each in data.vector(data.field(values, 4))]
            case 5:
                found = [
                    bytes(data.numbers(data.field(each, 0), "<B"))
                    for each in data.vector(data.field(values, 5))
                ]
            case _:
                raise AssertionError(kind)
        return [None if is_null else value for is_null, value in zip(nulls, found, strict=True)]


class Buffer:
    """A reader of FlatBuffers by offsets, written from the format's description. It shares no code with the server."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def number(self, at: int, code: str) -> Any:
        """Return a number. An absent field (0) is zero."""
        return struct.unpack_from(code, self._data, at)[0] if at else 0

    def follow(self, at: int) -> int:
        return at + int(self.number(at, "<I") if at else struct.unpack_from("<I", self._data, 0)[0])

    def field(self, table: int, number: int) -> int:
        """Return where a field of a table is, or 0."""
        fields = table - struct.unpack_from("<i", self._data, table)[0]
        if 4 + 2 * number >= struct.unpack_from("<H", self._data, fields)[0]:
            return 0
        offset = struct.unpack_from("<H", self._data, fields + 4 + 2 * number)[0]
        return table + int(offset) if offset else 0

    def numbers(self, at: int, code: str) -> list[Any]:
        if not at:
            return []
        start = self.follow(at)
        size = struct.calcsize(code)
        length = struct.unpack_from("<I", self._data, start)[0]
        return [struct.unpack_from(code, self._data, start + 4 + size * each)[0] for each in range(length)]

    def vector(self, at: int) -> list[int]:
        """Return where the tables or texts of a vector are."""
        if not at:
            return []
        start = self.follow(at)
        length = struct.unpack_from("<I", self._data, start)[0]
        return [self.follow(start + 4 + 4 * each) for each in range(length)]

    def text(self, at: int) -> str:
        return self.text_at(self.follow(at))

    def text_at(self, start: int) -> str:
        length = struct.unpack_from("<I", self._data, start)[0]
        return self._data[start + 4 : start + 4 + length].decode()


def sql(service: TableStoreCalls, query: str) -> Answer:
    """Run a statement. Raises Refused."""
    return Answer(service.call("SQLQuery", query=query, version=sql_pb2.SQL_FLAT_BUFFERS))
