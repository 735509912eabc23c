"""Recognition of the format of a JSON file by its first document, also if its name has no ending.

The module of the format reads and checks the rest. If the first document is damaged or in none of the formats, the file
counts as items of DynamoDB, and item_documents.py names the problem.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from tablegate.adapters.dynamodb.export_files.compression import UnreadableFile
from tablegate.adapters.dynamodb.export_files.lines import is_ion
from tablegate.gateway.model.values.row_lines import LINE_BYTES
from tablegate.transfer.endpoints.files.file_endpoint import LineReader
from tablegate.transfer.endpoints.files.json_documents import DocumentPart, DocumentSplitter

ITEMS, CHANGES, MODEL = "dynamodb-json", "dynamodb-stream", "nosql-workbench"
ENTITIES, CLI_ROWS = "azure-json", "tablestore-json"
_OF_EMPTY_LISTS = {"Records": CHANGES, "value": ENTITIES, "items": ENTITIES}


def format_of_documents(paths: Iterable[Path]) -> str:
    """Return the name of the format of files of one table. Raises BadFile if a file cannot be decompressed."""
    part = next((part for part in map(_first_part, paths) if part is not None), None)
    if part is None:
        return ITEMS
    if part.elements is not None:
        return _OF_EMPTY_LISTS.get(part.list_name, ITEMS)
    try:
        document = orjson.loads(part.data)
    except orjson.JSONDecodeError:
        return ITEMS
    return _format_of(document)


def _first_part(path: Path) -> DocumentPart | None:
    lines = LineReader(path)
    splitter = DocumentSplitter()
    size = 0
    try:
        for line in lines:
            size += len(line)
            if size > LINE_BYTES or (splitter.is_between_documents and is_ion(line)):
                return None
            for part in splitter.parts_of(line, lines.number):
                return part
    except UnreadableFile:
        return None
    finally:
        lines.close()
    return None


def _format_of(document: dict[str, Any]) -> str:
    if isinstance(document.get("eventName"), str) and isinstance(document.get("dynamodb"), dict):
        return CHANGES
    if isinstance(document.get("DataModel"), list) and "ModelName" in document:
        return MODEL
    if isinstance(document.get("PartitionKey"), str) and isinstance(document.get("RowKey"), str):
        return ENTITIES
    keys = document.get("PK")
    if isinstance(keys, dict) and isinstance(keys.get("Values"), list):
        return CLI_ROWS
    return ITEMS
