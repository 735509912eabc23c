"""Rows as lines of JSON: a header, one line for each row, and an end with a count and a checksum.

    {"tablegate":"rows","version":1,"definition":{...}}
    {"row":{"id":{"S":"a"}},"modified_at":17000000000000000}
    {"end":{"rows":1,"crc64":"00c0ffee00c0ffee"}}

The line of a row has its body (bodies.py) and the other stored columns (rows.py): `kinds` with the stamps of cells and
their older versions, `modified_at`, `expires_at_ms`. The checksum is the CRC-64/XZ of all bytes before the end. This
module does not open files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any

import orjson

from tablegate.gateway.model.errors import BadKey
from tablegate.gateway.model.values import bodies
from tablegate.gateway.model.values.bodies import has_at_most
from tablegate.gateway.model.values.keys import KeySchema, Position
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, Value, decimal_fits, size_bytes

FORMAT = "rows"
VERSION = 1
HEADER_START = b'{"tablegate":'
END_START = b'{"end":'
LINE_BYTES = 64 << 20
"""Maximum length of a line. Rows of all dialects are much smaller, so a longer line is not of this format."""
LINE_NODES = 2_000_000
"""Maximum number of objects, arrays and members of a line. A line with that number takes about 130 MB when it is parsed."""


class UnreadableFile(ValueError):
    """A file or a part of it is invalid. The text says why."""


def lines_of(file: IO[bytes], limit_bytes: int = LINE_BYTES) -> Iterator[bytes]:
    """Yield the lines of a file with their ends. Raises UnreadableFile for a longer line, which is not read further."""
    while line := file.readline(limit_bytes + 1):
        if len(line) > limit_bytes:
            raise UnreadableFile(f"a line is too long: it has more than {limit_bytes:,} bytes")
        yield line


def header_line(definition: Mapping[str, Any]) -> bytes:
    """Return the first line, with the definition of the table (transfer/)."""
    return orjson.dumps({"tablegate": FORMAT, "version": VERSION, "definition": definition}) + b"\n"


def read_header(line: bytes) -> dict[str, Any]:
    """Parse the first line. Raises UnreadableFile."""
    header = json_object(line)
    if header.get("tablegate") != FORMAT:
        raise UnreadableFile("the first line is not a header of tablegate's JSON Lines")
    if header.get("version") != VERSION:
        raise UnreadableFile(
            f"version {header.get('version')} is not supported: this release reads version {VERSION}"
        )
    return header


def end_line(rows: int, crc64: int) -> bytes:
    """Return the last line, with the number of rows and the checksum of the lines before."""
    return orjson.dumps({"end": {"rows": rows, "crc64": f"{crc64:016x}"}}) + b"\n"


def check_end(line: bytes, rows: int, crc64: int) -> None:
    """Raise UnreadableFile if the last line differs from the count and the checksum of the rows that were read."""
    end = json_object(line).get("end")
    if not isinstance(end, dict) or not isinstance(end.get("rows"), int):
        raise UnreadableFile("the last line is damaged")
    if end["rows"] != rows:
        raise UnreadableFile(f"the file has {rows} rows, but its last line says {end['rows']}")
    if end.get("crc64") != f"{crc64:016x}":
        raise UnreadableFile("the checksum does not match: the file was damaged or edited")


def row_line(row: Row) -> bytes:
    """Return the line of a row."""
    kinds = b"" if row.kinds is None else b',"kinds":' + row.kinds
    expires = b"" if row.expires_at_ms is None else b',"expires_at_ms":%d' % row.expires_at_ms
    return b'{"row":%b%b,"modified_at":%d%b}\n' % (row.body, kinds, row.modified_at, expires)


def read_row(line: bytes, schema: KeySchema) -> Row:
    """Parse the line of a row. Raises UnreadableFile."""
    record = json_object(line)
    if _has_double(record):
        raise UnreadableFile('a number is not text, so digits may be lost. Write {"N":"1.5"}, not {"N":1.5}')
    try:
        values = bodies.untagged_all(record.get("row"))  # type: ignore[arg-type]
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise UnreadableFile(f"invalid row: {type(error).__name__}: {error}") from None
    return row_of_values(
        values, record.get("kinds"), record.get("modified_at"), record.get("expires_at_ms"), schema
    )


def _has_double(data: Any) -> bool:
    """Return True for a JSON number with a fraction, an exponent or more than 64 bits, which orjson reads as a double."""
    kind = type(data)
    if kind is dict:
        return any(map(_has_double, data.values()))
    return kind is float or (kind is list and any(map(_has_double, data)))


def position_of_members(members: Mapping[str, Any], schema: KeySchema) -> Position:
    """Return the position of a row from its tagged values. Only the key columns are decoded. Raises UnreadableFile."""
    return position_of(
        {name: bodies.untagged(members[name]) for name in schema.names if name in members}, schema
    )


def position_of(values: Mapping[str, Value], schema: KeySchema) -> Position:
    """Return the position of a row with these values. Raises UnreadableFile."""
    try:
        return schema.key(values).position
    except BadKey as error:
        column = error.facts["column"]
        if error.rule == "missing":
            raise UnreadableFile(f"the key column {column.name!r} is missing") from None
        actual = error.facts["actual"].kind.value
        raise UnreadableFile(
            f"the key column {column.name!r} is of kind {actual}, not {column.kind.value}"
        ) from None


def row_of_values(
    values: dict[str, Value], kinds: Any, modified_at: Any, expires_at_ms: Any, schema: KeySchema
) -> Row:
    """Return the stored row. `kinds`: its stored value as parsed JSON. Raises UnreadableFile."""
    try:
        for value in values.values():
            check(value)
        contents = _contents(kinds, values, schema)
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise UnreadableFile(f"invalid row: {type(error).__name__}: {error}") from None
    return Row(position_of(values, schema), contents, *times_of(modified_at, expires_at_ms))


def times_of(modified_at: Any, expires_at_ms: Any) -> tuple[int, int | None]:
    """Return the times of modification and expiry. Raises UnreadableFile."""
    if type(modified_at) is not int or type(expires_at_ms) not in (int, type(None)):
        raise UnreadableFile("invalid row: its times are not integers")
    return modified_at, expires_at_ms


def _contents(kinds: Any, values: dict[str, Value], schema: KeySchema) -> Contents:
    size = sum(len(name.encode()) + size_bytes(value) for name, value in values.items())
    if kinds is None:
        return Contents(None, None, size, values)
    for name, (_, *older) in kinds.get("cells", {}).items():
        if name not in values or name in schema.names:
            raise ValueError(f"there are stamps for {name!r}, which is not an attribute")
        for stamp_ms, member in older:
            value = bodies.untagged(member)
            check(value)
            size += len(name.encode()) + size_bytes(value)
            if type(stamp_ms) is not int:
                raise TypeError("a stamp is not an integer")
    return Contents(None, orjson.dumps(kinds), size, values)


_TYPES = {
    Kind.TEXT: str, Kind.BYTES: bytes, Kind.BOOL: bool, Kind.INT32: int, Kind.INT64: int, Kind.DATETIME: int,
}  # fmt: skip
_RANGES = {Kind.INT32: 2**31, Kind.INT64: 2**63}


def check(value: Value) -> None:
    """Raise ValueError or TypeError if the data of a value do not fit its kind."""
    kind, data = value
    expected_type = _TYPES.get(kind)
    if expected_type is not None and type(data) is not expected_type:
        raise TypeError(f"{data!r} is not a value of kind {kind.value}")
    if kind is Kind.DECIMAL:
        _check_number(data)
    elif kind in _RANGES and not -_RANGES[kind] <= data < _RANGES[kind]:
        raise ValueError(f"{data} is not a value of kind {kind.value}")
    elif kind is Kind.LIST:
        for element in data:
            check(element)
    elif kind is Kind.MAP:
        for member in data.values():
            check(member)
    elif kind is Kind.TEXT_SET and not all(type(member) is str for member in data):
        raise TypeError("a member of a set is not a text")


def _check_number(number: Any) -> None:
    if not number.is_finite() or not decimal_fits(number):
        raise ValueError(f"{number} is out of range")


def json_object(line: bytes) -> dict[str, Any]:
    """Parse a line with a JSON object. Raises UnreadableFile, before it parses a line with too many members."""
    if not has_at_most(LINE_NODES, line):
        raise UnreadableFile(f"a line has more than {LINE_NODES:,} values")
    try:
        document = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise UnreadableFile(f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise UnreadableFile("no JSON object")
    return document
