"""Detection of a file's format by its name, by `?format=` or by its beginning (document_files.py)."""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from tablegate.gateway.model.values.row_lines import HEADER_START
from tablegate.transfer.endpoints.endpoint import Endpoint
from tablegate.transfer.endpoints.files.cli_rows import CommandLineRows
from tablegate.transfer.endpoints.files.csv_files import DynamoDBCsv, TypedCsv
from tablegate.transfer.endpoints.files.document_files import format_of_documents, is_dynamodump, parts_of
from tablegate.transfer.endpoints.files.dynamodb_export import DynamoDBExport
from tablegate.transfer.endpoints.files.dynamodb_lines import DynamoDBLines
from tablegate.transfer.endpoints.files.entity_documents import EntityDocuments
from tablegate.transfer.endpoints.files.file_endpoint import UNFINISHED, LineReader
from tablegate.transfer.endpoints.files.json_lines import JsonLines, PipedLines
from tablegate.transfer.endpoints.files.stream_records import StreamRecords
from tablegate.transfer.endpoints.files.workbench import WorkbenchModel
from tablegate.transfer.errors import BadAddress


class _Format(NamedTuple):
    """A format of files: its meaning, the function that opens its endpoint, and the options of its addresses."""

    meaning: str
    open: Callable[[Path, Mapping[str, str]], Endpoint]
    options: tuple[str, ...] = ()


def _open_parquet(path: Path, options: Mapping[str, str]) -> Endpoint:
    from tablegate.transfer.endpoints.files.parquet import ParquetFile  # it loads pyarrow

    return ParquetFile(path, options)


FORMATS = {
    "jsonl": _Format("JSON Lines of tablegate: typed, lossless", lambda path, _: JsonLines(path)),
    "dynamodb-export": _Format(
        "folder of a DynamoDB export to S3", DynamoDBExport, ("keys", "lines", "incremental", "md5")
    ),
    "dynamodb-json": _Format("DynamoDB items as JSON or Ion", DynamoDBLines, ("keys", "table")),
    "dynamodb-stream": _Format("records of DynamoDB streams", StreamRecords, ("keys",)),
    "dynamodb-csv": _Format(
        "CSV of DynamoDB's console and its import from S3",
        DynamoDBCsv,
        ("keys", "types", "delimiter", "empty"),
    ),
    "nosql-workbench": _Format("data model of NoSQL Workbench", WorkbenchModel, ("keys", "table")),
    "azure-json": _Format("entities of Azure Table as JSON", EntityDocuments, ("types",)),
    "tablestore-json": _Format("rows of Table Store's command line", CommandLineRows, ("keys",)),
    "csv": _Format(
        "typed CSV of Azure Storage Explorer", TypedCsv, ("types", "delimiter", "empty", "formulas")
    ),
    "parquet": _Format("Parquet", _open_parquet, ("keys",)),
}
_SUMMARY = "manifest-summary.json"
_NAMES = (
    (re.compile(r"\.(jsonl|ndjson)(\.gz|\.zst)?$", re.IGNORECASE), "jsonl"),
    (re.compile(r"\.(json|ion)(\.gz|\.zst)?$", re.IGNORECASE), "dynamodb-json"),
    (re.compile(r"\.csv$", re.IGNORECASE), "csv"),
    (re.compile(r"\.parquet$", re.IGNORECASE), "parquet"),
)


def open_file(path: str, options: Mapping[str, str]) -> Endpoint:
    """Return the endpoint of a path with the options of its address. `-` is standard input or output.

    Raises BadAddress, MissingSoftware.
    """
    file_format = format_of(path, options)
    found = FORMATS[file_format]
    unknown = set(options) - {*found.options, "format"}
    if unknown:
        names = ", ".join(sorted({*found.options, "format"}))
        raise BadAddress(
            f"file:{path}: {', '.join(sorted(unknown))}: unknown option. Options of format {file_format}: {names}"
        )
    return PipedLines() if path == "-" else found.open(_place(path, file_format), options)


def format_of(path: str, options: Mapping[str, str]) -> str:
    """Return the format of a path. Raises BadAddress."""
    option = options.get("format")
    if path == "-":
        if option not in (None, "jsonl"):
            raise BadAddress(f"-: standard input and output support the format jsonl only, not {option}")
        return "jsonl"
    if option is not None:
        if option not in FORMATS:
            raise BadAddress(f"file:{path}: format={option}: unknown format. Formats: {_format_list()}")
        return option
    where = Path(path)
    if where.name == _SUMMARY or (where.is_dir() and _is_export(where)):
        return "dynamodb-export"
    if where.is_dir():
        return format_of_documents(parts_of(where))
    file_format = next((each for pattern, each in _NAMES if pattern.search(where.name)), "")
    if not where.is_file():
        if file_format:
            return file_format
    elif file_format == "csv":
        return "dynamodb-csv" if "keys" in options else "csv"
    elif file_format == "parquet" or (file_format == "jsonl" and not _is_foreign(where)):
        return file_format
    elif file_format or _begins_as_json(where):
        return format_of_documents([where])
    raise BadAddress(
        f"file:{path}: the name does not determine the format. Add ?format=NAME: {_format_list()}"
    )


def list_files(pattern: str) -> list[str]:
    """Return the sorted files and folders that a pattern selects, without incomplete ones."""
    literal = pattern.replace("[", "[[]").replace("?", "[?]")  # only `*` is a wildcard
    return sorted(path for path in glob.glob(literal) if not path.endswith(UNFINISHED))


def _place(path: str, file_format: str) -> Path:
    """Return the path of the format. A data folder within an export stands for the export, which has checksums."""
    where = Path(path)
    is_inside = file_format == "dynamodb-export" and where.name == "data" and not _has_summary(where)
    return where.parent if is_inside and _has_summary(where.parent) else where


def _is_export(folder: Path) -> bool:
    """True if a folder is an export or within one, or has other folders, so that export_folder.py names the problem."""
    if _has_summary(folder) or (folder.name == "data" and _has_summary(folder.parent)):
        return True
    children = list(folder.iterdir())
    return not is_dynamodump(folder) and (not children or any(child.is_dir() for child in children))


def _has_summary(folder: Path) -> bool:
    return (folder / _SUMMARY).is_file()


def _first_line(path: Path) -> bytes:
    lines = LineReader(path)
    try:
        return next(lines, b"")
    finally:
        lines.close()


def _is_foreign(path: Path) -> bool:
    """True if an existing file does not begin with tablegate's header."""
    return not (_first_line(path) or HEADER_START).startswith(HEADER_START)


def _begins_as_json(path: Path) -> bool:
    """True if a file without a known ending in its name, such as a part of EMR, begins like JSON or Ion."""
    return _first_line(path).lstrip().startswith((b"{", b"[", b"$ion_1_0"))


def _format_list() -> str:
    return ", ".join(f"{name} ({file_format.meaning})" for name, file_format in FORMATS.items())
