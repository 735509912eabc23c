"""Detection of a file's format by its name, by `?format=` or by its first bytes."""

from __future__ import annotations

import glob
import re
from collections.abc import Mapping
from pathlib import Path

from tablegate.gateway.model.values.row_lines import HEADER_START
from tablegate.transfer.endpoints.endpoint import Endpoint
from tablegate.transfer.endpoints.files.file_endpoint import UNFINISHED, LineReader
from tablegate.transfer.endpoints.files.json_lines import JsonLines, PipedLines
from tablegate.transfer.errors import BadAddress

FORMATS = {
    "jsonl": "JSON Lines of tablegate: typed, lossless",
    "dynamodb-export": "folder of a DynamoDB export to S3",
    "dynamodb-json": "DynamoDB items, one on each line",
    "csv": "typed CSV of Azure Storage Explorer",
    "parquet": "Parquet",
}
_NAMES = (
    (re.compile(r"\.(jsonl|ndjson)(\.gz|\.zst)?$", re.IGNORECASE), "jsonl"),
    (re.compile(r"\.(json|ion)(\.gz|\.zst)?$", re.IGNORECASE), "dynamodb-json"),
    (re.compile(r"\.csv$", re.IGNORECASE), "csv"),
    (re.compile(r"\.parquet$", re.IGNORECASE), "parquet"),
)
_OPTIONS = {
    "jsonl": frozenset[str](),
    "dynamodb-export": frozenset({"keys", "lines", "incremental", "md5"}),
    "dynamodb-json": frozenset({"keys"}),
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
    where = Path(path)
    match file_format:
        case "jsonl":
            return PipedLines() if path == "-" else JsonLines(where)
        case "dynamodb-json":
            from tablegate.transfer.endpoints.files.dynamodb_lines import DynamoDBLines

            return DynamoDBLines(where, options)
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
    if where.is_dir() or where.name == "manifest-summary.json":
        return "dynamodb-export"
    for pattern, file_format in _NAMES:
        if pattern.search(where.name):
            return "dynamodb-json" if file_format == "jsonl" and _is_foreign(where) else file_format
    raise BadAddress(
        f"file:{path}: the name does not determine the format. Add ?format=NAME: {_format_list()}"
    )


def list_files(pattern: str) -> list[str]:
    """Return the sorted files and folders that a pattern selects, without incomplete ones."""
    literal = pattern.replace("[", "[[]").replace("?", "[?]")  # only `*` is a wildcard
    return sorted(path for path in glob.glob(literal) if not path.endswith(UNFINISHED))


def _is_foreign(path: Path) -> bool:
    """True if an existing file does not begin with tablegate's header."""
    if not path.is_file():
        return False
    lines = LineReader(path)
    try:
        return not next(lines, HEADER_START).startswith(HEADER_START)
    finally:
        lines.close()


def _format_list() -> str:
    return ", ".join(f"{name} ({meaning})" for name, meaning in FORMATS.items())
