"""Rows and searches in the form of this dialect, for the console (gateway/console)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from tablegate.adapters.azuretable.entities.entity_parser import parse_entity
from tablegate.adapters.azuretable.entities.entity_renderer import EntityFormat, MetadataLevel, rule_of
from tablegate.adapters.azuretable.request_code import TYPE_NAMES, request_code
from tablegate.adapters.azuretable.values import keys, names
from tablegate.adapters.azuretable.values.values import spell, view
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.gateway.adapter import RowDisplay
from tablegate.gateway.model.commands.writes import Replace, Write
from tablegate.gateway.model.errors import BadKey, Busy
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, Value


def is_own(table: Table) -> bool:
    """Return True if the table has the key of Azure Table."""
    return keys.is_own(table.key_schema)


def shown_row(table: Table, row: Row) -> Any:
    """Return an entity as a JSON document with the types of its properties, without addresses."""
    return EntityFormat(table, "", "", MetadataLevel.MINIMAL).member(row)


def document_of(table: Table, values: Mapping[str, Value]) -> Any:
    """Return attributes as an entity with the types of its properties, without ETag and Timestamp."""
    schema = table.key_schema
    document: dict[str, Any] = {}
    if all(name in values for name in schema.names):
        texts = keys.texts_of(schema, tuple(values[name] for name in schema.names))
        document = dict(zip(("PartitionKey", "RowKey"), texts, strict=True))
    for name, value in values.items():
        wire, edm = (None, None) if name in schema.names else spell(value)
        if wire is None:
            continue
        if edm is not None:
            document[f"{names.spelled(name)}@odata.type"] = edm
        document[names.spelled(name)] = wire
    return document


def values_of(table: Table, document: Any) -> dict[str, Value]:
    """Return the attributes of an entity as a JSON document. Raises ValueError."""
    try:
        entity = parse_entity(orjson.dumps(document))
    except (ServiceError, Busy) as refusal:
        raise ValueError(str(refusal)) from None
    if entity.partition_key is None or entity.row_key is None:
        raise ValueError("PartitionKey or RowKey is missing")
    key = keys.key_of(table.key_schema, entity.partition_key, entity.row_key)
    if key is None:
        raise ValueError("PartitionKey and RowKey are no key of this table")
    if not entity.members.keys().isdisjoint(table.key_schema.names):
        raise ValueError("a property has the name of a key column")
    return {**dict(zip(table.key_schema.names, key.values, strict=True)), **entity.attributes}


def write_of(table: Table, values: Mapping[str, Value], old: Row | None, now_ms: int) -> Write:
    """Return the write that replaces an entity. NULL, which Azure does not show, is kept. Raises ValueError."""
    schema = table.key_schema
    try:
        key = schema.key(values)
        keys.check_new_key(*keys.texts_of(schema, key.values))
    except BadKey as error:
        raise ValueError(
            f"the key column {error.facts['column'].name} is missing or of a wrong type"
        ) from None
    except ServiceError as refusal:
        raise ValueError(refusal.text) from None
    checked = values_of(table, document_of(table, values))
    nulls = {name: value for name, value in values.items() if value.kind is Kind.NULL}
    contents = Contents.of_values({**checked, **nulls})
    return Write(table, key, Replace(contents), view=view, rule=rule_of(schema.names, are_counted=True))


DISPLAY = RowDisplay(
    "OData", TYPE_NAMES, view, is_own, shown_row, document_of, values_of, write_of, request_code,
)  # fmt: skip
