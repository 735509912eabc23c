"""Detection of a file's format by its name, by `?format=` or by its beginning (recognition.py)."""

from __future__ import annotations

import glob
import re
from collections.abc import Mapping
from pathlib import Path

from tablegate.gateway.model.values.row_lines import HEADER_START
from tablegate.transfer.endpoints.endpoint import Endpoint
from tablegate.transfer.endpoints.files.document_files import is_dynamodump, parts_of
from tablegate.transfer.endpoints.files.file_endpoint import UNFINISHED, LineReader
from tablegate.transfer.endpoints.files.json_lines import JsonLines, PipedLines
from tablegate.transfer.endpoints.files.recognition import format_of_documents
from tablegate.transfer.errors import BadAddress

FORMATS = {
    "jsonl": "JSON Lines of tablegate: typed, lossless",
    "dynamodb-export": "folder of a DynamoDB export to S3",
    "dynamodb-json": "DynamoDB items as JSON or Ion",
    "dynamodb-stream": "records of DynamoDB streams",
    "dynamodb-csv": "CSV of DynamoDB's console and its import from S3",
    "nosql-workbench": "data model of NoSQL Workbench",
    "azure-json": "entities of Azure Table as JSON",
    "tablestore-json": "rows of Table Store's command line",
    "csv": "typed CSV of Azure Storage Explorer",
    "parquet": "Parquet",
}
_SUMMARY = "manifest-summary.json"
_NAMES = (
    (re.compile(r"\.(jsonl|ndjson)(\.gz|\.zst)?$", re.IGNORECASE), "jsonl"),
    (re.compile(r"\.(json|ion)(\.gz|\.zst)?$", re.IGNORECASE), "dynamodb-json"),
    (re.compile(r"\.csv$", re.IGNORECASE), "csv"),
    (re.compile(r"\.parquet$", re.IGNORECASE), "parquet"),
)
_OPTIONS = {
    "jsonl": frozenset[str](),
    "dynamodb-export": frozenset({"keys", "lines", "incremental", "md5"}),
    "dynamodb-json": frozenset({"keys", "table"}),
    "dynamodb-stream": frozenset({"keys"}),
    "dynamodb-csv": frozenset({"keys", "types", "delimiter", "empty"}),
    "nosql-workbench": frozenset({"keys", "table"}),
    "azure-json": frozenset({"types"}),
    "tablestore-json": frozenset({"keys"}),
    "csv": frozenset({"types", "delimiter", "empty", "formulas"}),
    "parquet": frozenset({"keys"}),
}


def open_file(path: str, options: Mapping[str, str]) -> Endpoint:
    """Return the endpoint of a path with the options of its address. `-` is standard input or output.

    Raises BadAddress, MissingSoftware.
    """
    file_format = format_of(path, options)
    unknown = set(options) - _OPTIONS[file_format] - {"format"}
    if unknown:
        names = ", ".join(sorted(_OPTIONS[file_format] | {"format"}))
        raise BadAddress(
            f"file:{path}: {', '.join(sorted(unknown))}: unknown option. Options of format {file_format}: {names}"
        )
    where = _place(path, file_format)
    match file_format:
        case "jsonl":
            return PipedLines() if path == "-" else JsonLines(where)
        case "dynamodb-json":
            from tablegate.transfer.endpoints.files.dynamodb_lines import DynamoDBLines

            return DynamoDBLines(where, options)
        case "dynamodb-stream":
            from tablegate.transfer.endpoints.files.stream_records import StreamRecords

            return StreamRecords(where, options)
        case "dynamodb-csv":
            from tablegate.transfer.endpoints.files.dynamodb_csv import DynamoDBCsv

            return DynamoDBCsv(where, options)
        case "nosql-workbench":
            from tablegate.transfer.endpoints.files.workbench import WorkbenchModel

            return WorkbenchModel(where, options)
        case "azure-json":
            from tablegate.transfer.endpoints.files.entity_documents import EntityDocuments

            return EntityDocuments(where, options)
        case "tablestore-json":
            from tablegate.transfer.endpoints.files.cli_rows import CommandLineRows

            return CommandLineRows(where, options)
        case "dynamodb-export":
            from tablegate.transfer.endpoints.files.dynamodb_export import DynamoDBExport

            return DynamoDBExport(where, options)
        case "csv":
            from tablegate.transfer.endpoints.files.typed_csv import TypedCsv

            return TypedCsv(where, options)
        case _:
            from tablegate.transfer.endpoints.files.parquet import ParquetFile

            return ParquetFile(where, options)


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
    return ", ".join(f"{name} ({meaning})" for name, meaning in FORMATS.items())
