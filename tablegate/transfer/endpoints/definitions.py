"""Conversion of the gateway's tables to definitions, and of definitions to JSON and back."""

from __future__ import annotations

import dataclasses
from typing import Any

from tablegate.adapters.azuretable.keys import OWN_SCHEMA as AZURE_SCHEMA
from tablegate.adapters.dynamodb import DIALECT as DYNAMODB
from tablegate.adapters.tablestore.table_properties import was_created_by_table_store
from tablegate.gateway import capabilities  # noqa: F401 (registers the kinds of indexes)
from tablegate.gateway.model.commands.table_commands import NewIndex
from tablegate.gateway.model.tables.indexes import BaseIndex, IndexProjection
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import key_schema_document, key_schema_of
from tablegate.gateway.store.tables import index_kinds
from tablegate.gateway.store.tables.descriptors import rules_of
from tablegate.transfer.endpoints.endpoint import Definition, Service


def definition_of_table(table: Table, rows: int | None, size_bytes: int | None) -> Definition:
    """Return the definition of a table without state of that table, such as its history. The counts are approximate."""
    return Definition(
        table.name,
        service_of(table),
        table.key_schema,
        tuple(dataclasses.replace(index, dialect="") for index in map(NewIndex.like, table.indexes)),
        table.rules.independent(),
        dict(table.properties),
        rows,
        size_bytes,
        is_stored=True,
        other_indexes=tuple(
            dataclasses.replace(index, id=0, table_keys=(), filled=True, busy_until_ms=0, dialect="")
            for index in table.other_indexes
        ),
    )


def service_of(table: Table) -> Service:
    """Return the service of the dialect that created the table, as far as its properties show it."""
    if was_created_by_table_store(table):
        return Service.TABLE_STORE
    if DYNAMODB in table.properties:
        return Service.DYNAMODB
    return Service.AZURE_TABLE if table.key_schema == AZURE_SCHEMA else Service.TABLEGATE


def document_of(definition: Definition) -> dict[str, Any]:
    """Return the definition as JSON."""
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
        "other_indexes": [_other_index_document(index) for index in definition.other_indexes],
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


def _other_index_document(index: BaseIndex) -> dict[str, Any]:
    return {
        "name": index.name,
        "properties": dict(index.properties),
        "definition": index_kinds.kind_of(index).definition_of(index),
    }


def definition_of(document: dict[str, Any]) -> Definition:
    """Parse the JSON of `document_of`. Raises KeyError, TypeError, ValueError for other JSON."""
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
        other_indexes=tuple(_other_index_of(index) for index in document.get("other_indexes", ())),
    )


def _index_of(document: dict[str, Any]) -> NewIndex:
    return NewIndex(
        **{
            **document,
            "key_schema": key_schema_of(document["key_schema"]),
            "projection": IndexProjection(document["projection"]),
            "included": tuple(document["included"]),
        }
    )


def _other_index_of(document: dict[str, Any]) -> BaseIndex:
    index = index_kinds.defined_index(document["definition"])
    return dataclasses.replace(index, name=document["name"], properties=document["properties"])
