"""A table's definition as JSON and back, for files that carry it."""

from __future__ import annotations

import dataclasses
from typing import Any

from gateway.model.commands import NewIndex, NewVectorIndex
from gateway.model.keys import KeySchema
from gateway.model.tables import Projection
from gateway.model.vectors import Metric
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
        "vector_indexes": [_vector_index_document(index) for index in definition.vector_indexes],
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


def _vector_index_document(index: NewVectorIndex) -> dict[str, Any]:
    partition = () if index.partition is None else (index.partition,)
    return {
        "name": index.name,
        "attribute": index.attribute,
        "dimensions": index.dimensions,
        "metric": index.metric.value,
        "projection": index.projection.value,
        "included": index.included,
        "columns": key_schema_document(KeySchema(partition, index.filters)),
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
        vector_indexes=tuple(_vector_index_of(index) for index in document.get("vector_indexes", ())),
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


def _vector_index_of(document: dict[str, Any]) -> NewVectorIndex:
    columns = key_schema_of(document["columns"])
    return NewVectorIndex(
        document["name"],
        document["attribute"],
        document["dimensions"],
        Metric(document["metric"]),
        Projection(document["projection"]),
        tuple(document["included"]),
        next(iter(columns.partition), None),
        columns.sort,
    )
