"""Entities of Azure Table as JSON: of OData, `az storage entity query`, AzCopy 7 and Cosmos DB's migration tool.

- OData and AzCopy 7 have the types that JSON lacks in members `NAME@odata.type` (docs/protocols/azure-table.md).
- `az` prints Int64 as `{"edm_type":"Edm.Int64","value":1}`, and times, GUIDs and binaries as texts.
- Cosmos DB's migration tool prints all values without types.

A value of unclear type is an error, unless the option `types` says how to read it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tablegate.adapters.azuretable.keys import OWN_SCHEMA, own_key
from tablegate.adapters.azuretable.values import UNIX_EPOCH_TICKS, parse_datetime, read
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.adapters.dynamodb.export_files.compression import UnreadableFile
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Value
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.endpoints.files.document_files import (
    ENTITIES,
    DocumentFiles,
    elements_of,
    require_members,
)
from tablegate.transfer.endpoints.files.file_endpoint import LineReader
from tablegate.transfer.errors import BadAddress, BadFile

_TYPE = "@odata.type"
_KEYS = ("PartitionKey", "RowKey")
_SYSTEM = frozenset({*_KEYS, "Timestamp"})
_ETAG = re.compile(r'W/"[^"]*"')
_INT32 = range(-(2**31), 2**31)
_BESIDE_LISTS = frozenset({"value", "items", "nextMarker", "odata.metadata", "odata.nextLink", "odata.count"})
_CONTINUATIONS = {
    "nextMarker": "Read the rest with --marker and append the answers, or use a larger --num-results",
    "odata.nextLink": "Read the rest at this link and append the answers",
}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
_GUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_UNCLEAR = ("refuse", "text", "infer")


class EntityDocuments(DocumentFiles):
    """Files of entities. Option: `types=text|infer` (values of unclear type)."""

    service = Service.AZURE_TABLE
    format_name = ENTITIES

    def __init__(self, path: Path, options: Mapping[str, str]) -> None:
        super().__init__(path, options)
        self._unclear = options.get("types", "refuse")
        if self._unclear not in _UNCLEAR:
            raise BadAddress(f"{self.shown}: unknown types={self._unclear}. Use one of {', '.join(_UNCLEAR)}")

    def read_definition(self) -> Definition:
        return Definition(self.table_name, Service.AZURE_TABLE, OWN_SCHEMA, size_bytes=self.size_bytes())

    def rows(self, files: Iterator[LineReader]) -> Iterator[Row]:
        continuations = [""]

        def note_answer(answer: dict[str, Any]) -> None:
            continuations.append(_continuation(answer))

        for lines in files:
            yield from elements_of(lines, partial(row_of, unclear=self._unclear), note_answer)
        if continuation := continuations[-1]:
            raise BadFile(
                f"{self.path}: the last answer has {continuation}, so that entities are missing after it."
                f" {_CONTINUATIONS[continuation]}"
            )


def _continuation(answer: dict[str, Any]) -> str:
    """Return the member that says that there are more entities, "" if there is none. Raises UnreadableFile."""
    require_members(answer, _BESIDE_LISTS, "the entities")
    return next((name for name in _CONTINUATIONS if any(_texts(answer.get(name)))), "")


def _texts(marker: Any) -> list[Any]:
    return list(marker.values()) if isinstance(marker, dict) else [marker]


def row_of(entity: dict[str, Any], unclear: str) -> Row:
    """Return the row of an entity. Raises UnreadableFile."""
    keys = [entity.get(name) for name in _KEYS]
    if not all(isinstance(key, str) for key in keys):
        raise UnreadableFile("no entity of Azure Table: PartitionKey or RowKey is missing or no text")
    key = own_key(*keys)  # type: ignore[arg-type]
    values = dict(zip(_KEYS, key.values, strict=True))
    is_typed = any(name.endswith(_TYPE) for name in entity) or "odata.metadata" in entity
    is_of_az = "etag" in entity or any(isinstance(member, dict) for member in entity.values())
    for name, member in entity.items():
        if name.endswith(_TYPE) and name.removesuffix(_TYPE) not in entity:
            raise UnreadableFile(f"{name!r} has no value")
        if name in _SYSTEM or name.startswith("odata.") or name.endswith(_TYPE) or _is_etag(name, member):
            continue
        edm = entity.get(name + _TYPE)
        if isinstance(member, dict):
            edm, member = _typed(name, member)
        elif edm is None and not is_typed:
            edm = _type_of(name, member, unclear, has_numbers=is_of_az)
        value = _read(name, member, edm)
        if value is not None:
            values[name] = value
    return Row(key.position, Contents.of_values(values), _modified_at(entity.get("Timestamp")))


def _is_etag(name: str, member: Any) -> bool:
    return name == "etag" and isinstance(member, str) and _ETAG.fullmatch(member) is not None


def _typed(name: str, member: dict[str, Any]) -> tuple[Any, Any]:
    """Return (type, value) of a property that `az` prints with its type."""
    for type_name in ("edm_type", "type"):
        if member.keys() == {type_name, "value"}:
            return member[type_name], member["value"]
    raise UnreadableFile(f"{name!r}: an object is no value of Azure Table")


def _type_of(name: str, member: Any, unclear: str, has_numbers: bool) -> str | None:
    """Return the type of a value in a file without types, None for that of JSON. Raises UnreadableFile if it is not clear."""
    is_number = isinstance(member, int | float) and not isinstance(member, bool)
    form = None
    if isinstance(member, str):
        form = "Edm.DateTime" if _TIME.fullmatch(member) else "Edm.Guid" if _GUID.fullmatch(member) else None
    if unclear == "refuse" and (form is not None or (is_number and not has_numbers)):
        raise UnreadableFile(
            f"{name!r}: the type of {str(member)[:60]!r} is not clear, because the file has no types. Add ?types=infer"
            " (by the form: Int32, Int64, Double, DateTime, Guid) or ?types=text (texts stay String)"
        )
    if is_number and isinstance(member, int):
        return None if member in _INT32 else "Edm.Int64"
    return form if unclear == "infer" else None


def _read(name: str, member: Any, edm: Any) -> Value | None:
    try:
        return read(member, edm)
    except ServiceError as error:
        type_name = "a value of Azure Table" if edm is None else f"a valid {edm}"
        raise UnreadableFile(f"{name!r}: {str(member)[:60]!r} is not {type_name} ({error.code})") from None


def _modified_at(timestamp: Any) -> int:
    if isinstance(timestamp, dict):
        timestamp = timestamp.get("value")
    if timestamp in (None, ""):
        return 0
    ticks = parse_datetime(timestamp) if isinstance(timestamp, str) else None
    if ticks is None:
        raise UnreadableFile(f"'Timestamp': {str(timestamp)[:60]!r} is not a time")
    return ticks - UNIX_EPOCH_TICKS
