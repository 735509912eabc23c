"""The file formats of exports and imports in the console, and the process that converts Parquet files.

The footer and the pages of a small Parquet file can claim any size, and pyarrow allocates it. So these files are read and
written in a child process with limits, without the settings and secrets of the server.
"""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson

from tablegate.gateway.console.searches import BadSearch
from tablegate.gateway.console.value_texts import plain, text_of, value_of
from tablegate.gateway.dialects.adapter import RowDisplay
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.csv_cells import cell_of, text_of_cell
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.row_lines import UnreadableFile, read_row, row_line
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Kind, Value

_CONVERSION_PROGRAM = "tablegate.transfer.endpoints.files.parquet_conversion"
_CONVERSION_SECONDS = 60
_LETTERS_OF_KINDS = {Kind.TEXT: "S", Kind.DECIMAL: "N", Kind.BYTES: "B", Kind.INT64: "I"}
# Names of the server's variables that the process gets. The others make it use little memory for threads.
_KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH")
_VARIABLES_OF_THREADS = {
    "ARROW_IO_THREADS": "1", "OMP_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2",
}  # fmt: skip
_one_at_a_time = threading.Lock()


class NotConverted(ValueError):
    """A Parquet file cannot be read or written. The text says why."""


def lines_of_parquet(data: bytes, schema: KeySchema, rows_max: int) -> bytes:
    """Return the rows of a Parquet file as lines (model/values/row_lines.py). Raises NotConverted."""
    return _convert("read", schema, str(rows_max), data)


def parquet_of_lines(lines: bytes, schema: KeySchema, name: str) -> bytes:
    """Return lines of rows of a table as a Parquet file. Raises NotConverted."""
    return _convert("write", schema, name, lines)


def _convert(direction: str, schema: KeySchema, argument: str, data: bytes) -> bytes:
    if not _one_at_a_time.acquire(blocking=False):
        raise NotConverted("another Parquet file is being converted. Try again later")
    try:
        with tempfile.TemporaryDirectory(prefix="tablegate-") as folder:
            return _run_conversion([direction, _keys_option(schema), argument], data, Path(folder))
    except OSError as error:  # of the folder for temporary files or of the process
        raise NotConverted(f"the process that converts files cannot run: {error}") from None
    finally:
        _one_at_a_time.release()


def _run_conversion(arguments: list[str], data: bytes, folder: Path) -> bytes:
    """Return the output of the process. It writes output and errors to files of limited size."""
    output, errors = folder / "output", folder / "errors"
    environment = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    environment |= {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), **_VARIABLES_OF_THREADS}
    with output.open("wb") as standard_output, errors.open("wb") as standard_error:
        try:
            ended = subprocess.run(
                [sys.executable, "-P", "-m", _CONVERSION_PROGRAM, *arguments], input=data, stdout=standard_output,
                stderr=standard_error, cwd=folder, env=environment, timeout=_CONVERSION_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise NotConverted(f"the file was not converted within {_CONVERSION_SECONDS} seconds") from None
    if ended.returncode == 1:
        raise NotConverted(errors.read_text(errors="replace").strip().rpartition("\n")[2])
    if ended.returncode:
        raise NotConverted("the file needs more memory or time than the console allows")
    return output.read_bytes()


def _keys_option(schema: KeySchema) -> str:
    return ",".join(
        f"{quote(column.name, safe='')}:{_LETTERS_OF_KINDS[column.kind]}" for column in schema.columns
    )


CELLS = 2_000_000
"""Maximum number of cells of a CSV file. Rows without common attributes have a column for each attribute."""
IMPORT_ROWS = 1_000
"""Maximum number of rows of an import."""
_TYPE = "@type"

# The default is shorter than the longest values.
csv.field_size_limit(max(csv.field_size_limit(), 1 << 20))

ReadRows = Iterator[tuple[int, dict[str, Value] | ValueError]]
"""(number of the line, attributes of the row, or what is wrong with the line) of each row."""


class RowFormat(NamedTuple):
    """A format of files. `read` is None if the format does not keep the types of values."""

    label: str
    ending: str
    media_type: str
    write: Callable[[Table, RowDisplay, Sequence[Row]], bytes]
    read: Callable[[Table, RowDisplay, bytes], ReadRows] | None = None
    is_text: bool = True


def _write_typed_lines(table: Table, display: RowDisplay, rows: Sequence[Row]) -> bytes:
    return _json_lines(display.shown_row(table, row) for row in rows)


def _write_plain_lines(table: Table, display: RowDisplay, rows: Sequence[Row]) -> bytes:
    return _json_lines({name: plain(value) for name, value in row.latest.items()} for row in rows)


def _json_lines(documents: Iterator[Any]) -> bytes:
    return b"".join(orjson.dumps(each, option=orjson.OPT_APPEND_NEWLINE) for each in documents)


def _read_lines(table: Table, display: RowDisplay, data: bytes) -> ReadRows:
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip():
            try:
                yield number, display.values_of(table, orjson.loads(line))
            except (ValueError, TypeError) as error:
                yield number, ValueError(str(error))


def _write_plain_csv(table: Table, display: RowDisplay, rows: Sequence[Row]) -> bytes:
    """Return rows as CSV (RFC 4180): the key columns first. Lists and maps are JSON. No value is an empty field."""
    names = [*table.key_schema.names, *_attributes(table, rows)]
    lines = ([_plain_cell(row.latest.get(name)) for name in names] for row in rows)
    return _csv([cell_of(name) for name in names], lines)


def _plain_cell(value: Value | None) -> str:
    if value is None:
        return ""
    document = orjson.loads(orjson.dumps(plain(value)))
    return cell_of(document) if isinstance(document, str) else orjson.dumps(document).decode()


def _write_typed_csv(table: Table, display: RowDisplay, rows: Sequence[Row]) -> bytes:
    """Return rows as CSV: the key columns, then NAME and NAME@type for each attribute. An absent one has no type."""
    keys, attributes = table.key_schema.names, _attributes(table, rows)
    names = [*keys, *(column for name in attributes for column in (name, name + _TYPE))]

    def cells(row: Row) -> list[str]:
        found = [_typed_cell(row.latest[name]) for name in keys]
        for name in attributes:
            value = display.view(row.latest[name]) if name in row.latest else None
            type_name = "" if value is None else display.type_names.get(value.kind, "")
            found += (_typed_cell(value), type_name) if value is not None and type_name else ("", "")
        return found

    return _csv([cell_of(name) for name in names], map(cells, rows))


def _typed_cell(value: Value) -> str:
    return cell_of(text_of(value), value.kind)


def _attributes(table: Table, rows: Sequence[Row]) -> list[str]:
    """Return the names of all attributes besides the key. Raises BadSearch if they are too many for CSV."""
    names = {name for row in rows for name in row.latest}.difference(table.key_schema.names)
    if len(names) * len(rows) > CELLS:
        raise BadSearch(
            f"The rows have {len(names):,} different attributes, too many for CSV. Use JSON Lines."
        )
    return sorted(names)


def _csv(names: Sequence[str], lines: Iterator[list[str]]) -> bytes:
    found = io.StringIO()
    writer = csv.writer(found)
    writer.writerow(names)
    writer.writerows(lines)
    return found.getvalue().encode()


def _read_typed_csv(table: Table, display: RowDisplay, data: bytes) -> ReadRows:
    kinds = {name: kind for kind, name in display.type_names.items()}
    names: list[str] | None = None
    line = 1
    try:
        reader = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True)
        for written in reader:
            cells = [text_of_cell(cell) for cell in written]
            if names is None:
                names = _checked_header(table, cells)
            elif cells:
                try:
                    yield line, _values(table, kinds, names, cells)
                except ValueError as error:
                    yield line, error
            line = reader.line_num + 1
    except UnicodeDecodeError:
        yield 1, ValueError("the rows are not UTF-8 text")
    except (ValueError, csv.Error) as error:
        yield line, ValueError(str(error))


def _checked_header(table: Table, names: list[str]) -> list[str]:
    """Return the names of all columns. Raises ValueError if they are not those of an export."""
    keys = list(table.key_schema.names)
    attributes = names[len(keys) :: 2]
    if names[: len(keys)] != keys:
        raise ValueError(f"the first columns must be {', '.join(keys)}")
    for name, type_name in zip(attributes, [*names[len(keys) + 1 :: 2], ""], strict=False):
        if type_name != name + _TYPE:
            raise ValueError(f"the column after {name} must be {name}{_TYPE}")
    if len({*keys, *attributes}) < len(keys) + len(attributes):
        raise ValueError("two columns have the same name")
    return names


def _values(
    table: Table, kinds: Mapping[str, Kind], names: Sequence[str], cells: Sequence[str]
) -> dict[str, Value]:
    """Return the attributes of a line. Raises ValueError."""
    if len(cells) != len(names):
        raise ValueError(f"it has {len(cells)} fields, and the first line {len(names)}")
    columns = table.key_schema.columns
    values = {
        column.name: _value(column.name, column.kind, text)
        for column, text in zip(columns, cells, strict=False)
    }
    first = len(columns)
    for name, text, type_name in zip(names[first::2], cells[first::2], cells[first + 1 :: 2], strict=True):
        if type_name in kinds:
            values[name] = _value(name, kinds[type_name], text)
        elif type_name or text:
            raise ValueError(f"{name}{_TYPE} must be one of {', '.join(kinds)}")
    return values


def _value(name: str, kind: Kind, text: str) -> Value:
    try:
        return value_of(kind, text)
    except ValueError as error:
        raise ValueError(f"column {name}: {str(error).removesuffix('.')}") from None


def _write_parquet(table: Table, display: RowDisplay, rows: Sequence[Row]) -> bytes:
    """Return rows as a Parquet file of `tablegate copy`, which is restored exactly. Raises BadSearch."""
    try:
        return parquet_of_lines(b"".join(map(row_line, rows)), table.key_schema, table.name)
    except NotConverted as error:
        raise BadSearch(f"The Parquet file was not written: {error}.") from None


def _read_parquet(table: Table, display: RowDisplay, data: bytes) -> ReadRows:
    try:
        lines = lines_of_parquet(data, table.key_schema, IMPORT_ROWS).splitlines()
    except NotConverted as error:
        yield 1, ValueError(str(error))
        return
    for number, line in enumerate(lines, 1):
        try:
            row = read_row(line, table.key_schema)
        except UnreadableFile as error:
            yield number, ValueError(str(error))
        else:
            yield number, {name: display.view(value) for name, value in row.latest.items()}


FORMATS: Mapping[str, RowFormat] = {
    "typed": RowFormat(
        "JSON Lines with types", "jsonl", "application/jsonl", _write_typed_lines, _read_lines
    ),
    "plain": RowFormat("JSON Lines without types", "jsonl", "application/jsonl", _write_plain_lines),
    "typed-csv": RowFormat("CSV with types", "csv", "text/csv", _write_typed_csv, _read_typed_csv),
    "csv": RowFormat("CSV without types", "csv", "text/csv", _write_plain_csv),
    "parquet": RowFormat(
        "Parquet", "parquet", "application/vnd.apache.parquet", _write_parquet, _read_parquet, is_text=False
    ),
}
"""Name -> format."""
