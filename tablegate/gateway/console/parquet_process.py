"""The process that converts Parquet files for the console.

The footer and the pages of a small file can claim any size, and pyarrow allocates it. So files are read and written in
a child process with limits, without the settings and secrets of the server.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from urllib.parse import quote

from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.values import Kind

_PROGRAM = "tablegate.transfer.endpoints.files.parquet_conversion"
_SECONDS = 60
_LETTERS = {Kind.TEXT: "S", Kind.DECIMAL: "N", Kind.BYTES: "B", Kind.INT64: "I"}
# Names of the server's variables that the process gets. The others make it use little memory for threads.
_KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH")
_THREADS = {
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
            return _run([direction, _keys_option(schema), argument], data, Path(folder))
    except OSError as error:  # of the folder for temporary files or of the process
        raise NotConverted(f"the process that converts files cannot run: {error}") from None
    finally:
        _one_at_a_time.release()


def _run(arguments: list[str], data: bytes, folder: Path) -> bytes:
    """Return the output of the process. It writes output and errors to files of limited size."""
    output, errors = folder / "output", folder / "errors"
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environment |= {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), **_THREADS}
    with output.open("wb") as standard_output, errors.open("wb") as standard_error:
        try:
            ended = subprocess.run(
                [sys.executable, "-P", "-m", _PROGRAM, *arguments], input=data, stdout=standard_output,
                stderr=standard_error, cwd=folder, env=environment, timeout=_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise NotConverted(f"the file was not converted within {_SECONDS} seconds") from None
    if ended.returncode == 1:
        raise NotConverted(errors.read_text(errors="replace").strip().rpartition("\n")[2])
    if ended.returncode:
        raise NotConverted("the file needs more memory or time than the console allows")
    return output.read_bytes()


def _keys_option(schema: KeySchema) -> str:
    return ",".join(f"{quote(column.name, safe='')}:{_LETTERS[column.kind]}" for column in schema.columns)
