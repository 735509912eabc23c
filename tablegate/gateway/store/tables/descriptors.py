"""Conversion of table and index descriptors to SQL columns and JSON documents."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import orjson

from tablegate.gateway.model.tables import tables
from tablegate.gateway.model.tables.indexes import Index, IndexProjection, IndexView, VectorIndex
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.values import Kind
from tablegate.gateway.model.values.vectors import Metric

Views = Mapping[str, IndexView]
"""By dialect, the function that reads the key columns of its indexes."""
TABLE_COLUMNS = "id, namespace, name, azure_name, key_schema, rules, properties, state, busy_until_ms, version, created_at_ms"
TABLE_WIDTH = TABLE_COLUMNS.count(",") + 1
INDEX_COLUMNS = "id, name, definition, properties, filled, busy_until_ms"

_TEXTS_KEPT = 1024


def qualified(columns: str, alias: str) -> str:
    """Return a list of columns with the alias of their table."""
    return ", ".join(f"{alias}.{column}" for column in columns.split(", "))


def table_of_columns(
    columns: tuple[Any, ...], indexes: Iterable[tuple[Any, ...]], views: Views
) -> tables.Table:
    """Return the table of SQL columns and the columns of its indexes."""
    table_id, namespace, name, azure_name, schema, rules, properties, *state_and_times = columns
    state, busy_until_ms, version, created_at_ms = state_and_times
    key_schema = _key_schema_of_text(schema)
    all_indexes = [index_of_columns(row, key_schema.names, views) for row in indexes]
    return tables.Table(
        id=table_id,
        namespace=namespace,
        name=name,
        azure_name=azure_name,
        key_schema=key_schema,
        indexes=tuple(index for index in all_indexes if isinstance(index, Index)),
        rules=_rules_of_text(rules),
        properties=orjson.loads(properties),
        state=tables.State(state),
        busy_until_ms=busy_until_ms,
        version=version,
        created_at_ms=created_at_ms,
        vector_indexes=tuple(index for index in all_indexes if isinstance(index, VectorIndex)),
    )


def index_of_columns(
    columns: tuple[Any, ...], table_keys: tuple[str, ...], views: Views
) -> Index | VectorIndex:
    """Return the index of SQL columns. `table_keys`: the names of its table's key columns."""
    index_id, name, definition, properties, filled, busy_until_ms = columns
    document, key_schema = _definition_of_text(definition)
    if key_schema is None:
        return VectorIndex(
            id=index_id,
            name=name,
            projection=IndexProjection(document["projection"]),
            table_keys=table_keys,
            included=tuple(document["included"]),
            filled=bool(filled),
            busy_until_ms=busy_until_ms,
            dialect=document["dialect"],
            view=views.get(document["dialect"]),
            **_vector_of(document["vector"]),
        )
    return Index(
        id=index_id,
        name=name,
        key_schema=key_schema,
        projection=IndexProjection(document["projection"]),
        table_keys=table_keys,
        included=tuple(document["included"]),
        local=document["local"],
        filled=bool(filled),
        busy_until_ms=busy_until_ms,
        properties=orjson.loads(properties),
        dialect=document["dialect"],
        view=views.get(document["dialect"]),
    )


# Many tables have equal texts here. Their descriptors share the objects, which saves time and memory.


@lru_cache(_TEXTS_KEPT)
def _key_schema_of_text(text: str) -> KeySchema:
    return key_schema_of(orjson.loads(text))


@lru_cache(_TEXTS_KEPT)
def _rules_of_text(text: str) -> tables.Rules:
    return rules_of(orjson.loads(text))


@lru_cache(_TEXTS_KEPT)
def _definition_of_text(text: str) -> tuple[dict[str, Any], KeySchema | None]:
    """Return the definition of an index, and its key schema unless it is a vector index."""
    document = orjson.loads(text)
    return document, None if "vector" in document else key_schema_of(document["key_schema"])


def document_of(table: tables.Table) -> dict[str, Any]:
    """Return the JSON document from which a table can be created again."""
    return {
        "name": table.name,
        "azure_name": table.azure_name,
        "key_schema": orjson.loads(_key_schema_json(table.key_schema)),
        "rules": orjson.loads(rules_json(table.rules)),
        "properties": orjson.loads(json_of(table.properties)),
        "indexes": [
            {
                "name": name,
                "definition": orjson.loads(definition),
                "properties": orjson.loads(properties),
            }
            for _, name, definition, properties, *_ in map(columns_of_index, table.all_indexes)
        ],
    }


def table_of(document: Mapping[str, Any], views: Views) -> tables.Table:
    """Return the table of a document from `document_of`, without namespace and id.

    Raises KeyError, TypeError or ValueError for any other document.
    """
    indexes = [
        (0, index["name"], json_of(index["definition"]), json_of(index["properties"]), True, 0)
        for index in document["indexes"]
    ]
    columns = (
        0, "", str(document["name"]), str(document["azure_name"]), json_of(document["key_schema"]),
        json_of(document["rules"]), json_of(document["properties"]), tables.State.ACTIVE.value, 0, 1, 0,
    )  # fmt: skip
    return table_of_columns(columns, indexes, views)


def definition(table: tables.Table) -> str:
    """Return a table and its indexes as text, for `defined`."""
    return json_of([columns_of_table(table), [columns_of_index(index) for index in table.all_indexes]])


def defined(definition: str, views: Views) -> tables.Table:
    """Return the table of a text from `definition`."""
    columns, indexes = orjson.loads(definition)
    return table_of_columns(tuple(columns), [tuple(index) for index in indexes], views)


def columns_of_table(table: tables.Table) -> tuple[Any, ...]:
    """Return a table in the order of TABLE_COLUMNS."""
    return (
        table.id,
        table.namespace,
        table.name,
        table.azure_name,
        _key_schema_json(table.key_schema),
        rules_json(table.rules),
        json_of(table.properties),
        table.state.value,
        table.busy_until_ms,
        table.version,
        table.created_at_ms,
    )


def columns_of_index(index: Index | VectorIndex) -> tuple[Any, ...]:
    """Return an index in the order of INDEX_COLUMNS."""
    if isinstance(index, VectorIndex):
        definition, properties = _vector_definition_json(index), "{}"
    else:
        definition, properties = _definition_json(index), json_of(index.properties)
    return (
        index.id,
        index.name,
        definition,
        properties,
        int(index.filled),
        index.busy_until_ms,
    )


def json_of(document: Any) -> str:
    """Return a document as JSON text."""
    return orjson.dumps(document).decode()


def _columns_document(columns: tuple[KeyColumn, ...]) -> list[list[Any]]:
    return [[column.name, column.kind.value, column.auto_increment] for column in columns]


def key_schema_document(schema: KeySchema) -> list[Any]:
    """Return a key schema as JSON: partition and sort columns, each as [name, kind, auto-increment]."""
    return [_columns_document(schema.partition), _columns_document(schema.sort)]


def _key_schema_json(schema: KeySchema) -> str:
    return json_of(key_schema_document(schema))


def key_schema_of(document: list[Any]) -> KeySchema:
    """Return the key schema of a document from key_schema_document."""
    partition, sort = map(_key_columns, document)
    return KeySchema(partition, sort)


def _key_columns(document: Iterable[Any]) -> tuple[KeyColumn, ...]:
    return tuple(KeyColumn(name, Kind(kind), auto) for name, kind, auto in document)


def _definition_json(index: Index) -> str:
    return json_of(
        {
            "key_schema": key_schema_document(index.key_schema),
            "projection": index.projection.value,
            "included": index.included,
            "local": index.local,
            "dialect": index.dialect,
        }
    )


def _vector_definition_json(index: VectorIndex) -> str:
    return json_of(
        {
            "vector": {
                "attribute": index.attribute,
                "dimensions": index.dimensions,
                "metric": index.metric.value,
                "partition": None if index.partition is None else _columns_document((index.partition,)),
                "filters": _columns_document(index.filters),
            },
            "projection": index.projection.value,
            "included": index.included,
            "dialect": index.dialect,
        }
    )


def _vector_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the VectorIndex fields that the document stores under `vector`."""
    partition, *_ = _key_columns(document["partition"] or ()) or (None,)
    return {
        **document,
        "metric": Metric(document["metric"]),
        "partition": partition,
        "filters": _key_columns(document["filters"]),
    }


def rules_json(rules: tables.Rules) -> str:
    """Return the rules of a table as JSON text."""
    return json_of(dataclasses.asdict(rules))


def stream_rule(document: Mapping[str, Any]) -> tables.StreamRule:
    """Return the stream rule of a document."""
    shards = tuple((number, first) for number, first in document["shards"])
    return tables.StreamRule(**{**document, "shards": shards})


def _replication_rule(document: Mapping[str, Any] | None) -> tables.ReplicationRule | None:
    if document is None:
        return None
    return tables.ReplicationRule(
        **{**document, "peers": tuple(tables.Replica(**peer) for peer in document["peers"])}
    )


def rules_of(document: Mapping[str, Any]) -> tables.Rules:
    """Return the rules of a document from dataclasses.asdict."""
    expiry, stream, history, log = (document[name] for name in ("expiry", "stream", "history", "log"))
    return tables.Rules(
        **{
            **document,
            "expiry": None if expiry is None else tables.ExpiryRule(**expiry),
            "stream": None if stream is None else stream_rule(stream),
            "history": None if history is None else tables.HistoryRule(**history),
            "log": None if log is None else stream_rule(log),
            "replication": _replication_rule(document["replication"]),
        }
    )
