"""A table's definition as JSON and back, for files that carry it."""

from __future__ import annotations

import dataclasses
from typing import Any

from gateway.model.commands import NewIndex
from gateway.model.tables import Projection
from gateway.store.catalog import key_schema_document, key_schema_of, rules_of
from transfer.endpoints.endpoint import Definition, Service


def document_of(definition: Definition) -> dict[str, Any]:
    """The definition as JSON."""
    return {
        "name": definition.name,
        "service": definition.service.value,
        "key_schema": key_schema_document(definition.key_schema),
        "indexes": [_index_document(index) for index in definition.indexes],
        "rules": dataclasses.asdict(definition.rules),
        "properties": definition.properties,
        "rows": definition.rows,
        "size_bytes": definition.size_bytes,
        "is_stored": definition.is_stored,
    }


def _index_document(index: NewIndex) -> dict[str, Any]:
    return {
        "name": index.name,
        "key_schema": key_schema_document(index.key_schema),
        "projection": index.projection.value,
        "included": index.included,
        "local": index.local,
        "properties": dict(index.properties),
        "fill": index.fill,
    }


def definition_of(document: dict[str, Any]) -> Definition:
    """The definition of a JSON form that `document_of` made. Raises KeyError, TypeError, ValueError for any other."""
    return Definition(
        name=document["name"],
        service=Service(document["service"]),
        key_schema=key_schema_of(document["key_schema"]),
        indexes=tuple(_index_of(index) for index in document["indexes"]),
        rules=rules_of(document["rules"]),
        properties=document["properties"],
        rows=document["rows"],
        size_bytes=document["size_bytes"],
        is_stored=document.get("is_stored", False),
    )


def _index_of(document: dict[str, Any]) -> NewIndex:
    return NewIndex(
        **{
            **document,
            "key_schema": key_schema_of(document["key_schema"]),
            "projection": Projection(document["projection"]),
            "included": tuple(document["included"]),
        }
    )
