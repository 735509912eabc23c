"""Conversion between a Parquet file and lines of rows, in a process with bounds of memory, time and file sizes.

    python -m tablegate.transfer.endpoints.files.parquet_conversion read KEYS ROWS < FILE > LINES
    python -m tablegate.transfer.endpoints.files.parquet_conversion write KEYS NAME < LINES > FILE

The console starts it (gateway/console/row_files.py), because a small file can claim any size. LINES are rows
without header and end (gateway/model/values/row_lines.py). KEYS is the option of Parquet files, such as `pk:S,sk:N`.
ROWS is the maximum number of rows. An error is a line on standard error, with exit status 1.
"""

from __future__ import annotations

import contextlib
import resource
import shutil
import sys
from pathlib import Path

from tablegate.gateway.model.values.row_lines import UnreadableFile, read_row, row_line
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.endpoints.files.file_endpoint import keys_of
from tablegate.transfer.errors import BadFile, TransferError

FILE_BYTES = 32 << 20
"""Maximum size of each file, and of the values of a Parquet file by its footer."""
_MEMORY_BYTES, _CPU_S = 1 << 30, 20
_FILE = Path("rows.parquet")


def main() -> None:
    """Convert standard input to standard output. The working directory must be an empty one for temporary files."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    with contextlib.suppress(ValueError):  # macOS does not limit the address space
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    _, direction, keys, argument = sys.argv
    try:
        if direction == "read":
            _read(keys, int(argument))
        else:
            _write(keys, argument)
    except (TransferError, UnreadableFile) as error:
        sys.exit(str(error))
    except MemoryError:
        sys.exit(f"{_FILE}: not enough memory")


def _read(keys: str, rows_max: int) -> None:
    """Write the rows of a Parquet file as lines. Raises TransferError."""
    from tablegate.transfer.endpoints.files.parquet import ParquetFile

    with _FILE.open("wb") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
    file = ParquetFile(_FILE, {"keys": keys})
    check_footer(*file.footer_sizes(), rows_max)
    for segment in file.segments(1):
        for page in file.scan(segment):
            sys.stdout.buffer.writelines(row_line(row) for row in page.rows)


def check_footer(rows: int, size_bytes: int, rows_max: int) -> None:
    """Raise BadFile if a file has too many rows or bytes of values, as its footer states."""
    if rows > rows_max:
        raise BadFile(f"{_FILE} has {rows:,} rows. The limit is {rows_max:,}")
    if size_bytes > FILE_BYTES:
        raise BadFile(f"{_FILE} has {size_bytes:,} bytes of values. The limit is {FILE_BYTES:,}")


def _write(keys: str, name: str) -> None:
    """Write lines of rows as a Parquet file. Raises TransferError."""
    from tablegate.transfer.endpoints.files.parquet import write_file

    schema = keys_of({"keys": keys}, str(_FILE))
    assert schema is not None
    rows = [read_row(line, schema) for line in sys.stdin.buffer]
    write_file(
        _FILE, Definition(name, Service.TABLEGATE, schema, rows=len(rows), is_stored=True), lambda: rows
    )
    sys.stdout.buffer.write(_FILE.read_bytes())


if __name__ == "__main__":
    main()
