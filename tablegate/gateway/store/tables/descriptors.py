"""Conversion of table and index descriptors to SQL columns and JSON documents, and their cache in each process."""

from __future__ import annotations

import dataclasses
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import orjson

from tablegate.gateway.model.authorization.authorizations import Authorization
from tablegate.gateway.model.tables import tables
from tablegate.gateway.model.tables.indexes import BaseIndex, Index, IndexView
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import KeySchema, key_schema_document, key_schema_of
from tablegate.gateway.store.tables import index_kinds

Views = Mapping[str, IndexView]
"""For each dialect, the function that reads the key columns of its indexes."""
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
        other_indexes=tuple(index for index in all_indexes if not isinstance(index, Index)),
    )


def index_of_columns(columns: tuple[Any, ...], table_keys: tuple[str, ...], views: Views) -> BaseIndex:
    """Return the index of SQL columns. `table_keys`: the names of its table's key columns."""
    index_id, name, definition, properties, filled, busy_until_ms = columns
    index = _index_of_text(definition)
    return dataclasses.replace(
        index,
        id=index_id,
        name=name,
        table_keys=table_keys,
        filled=bool(filled),
        busy_until_ms=busy_until_ms,
        properties=orjson.loads(properties),
        view=views.get(index.dialect),
    )


# Many tables have equal texts here. Their descriptors share the objects, which saves time and memory.


@lru_cache(_TEXTS_KEPT)
def _key_schema_of_text(text: str) -> KeySchema:
    return key_schema_of(orjson.loads(text))


@lru_cache(_TEXTS_KEPT)
def _rules_of_text(text: str) -> tables.Rules:
    return rules_of(orjson.loads(text))


@lru_cache(_TEXTS_KEPT)
def _index_of_text(text: str) -> BaseIndex:
    return index_kinds.defined_index(orjson.loads(text))


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
    table = table_of_columns(columns, indexes, views)
    if (unknown := index_kinds.unknown_index(table)) is not None:
        raise ValueError(f"the index {unknown.name} is of a kind that this server does not have")
    return table


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


def columns_of_index(index: BaseIndex) -> tuple[Any, ...]:
    """Return an index in the order of INDEX_COLUMNS."""
    return (
        index.id,
        index.name,
        json_of(index_kinds.kind_of(index).definition_of(index)),
        json_of(index.properties),
        int(index.filled),
        index.busy_until_ms,
    )


def json_of(document: Any) -> str:
    """Return a document as JSON text."""
    return orjson.dumps(document).decode()


def _key_schema_json(schema: KeySchema) -> str:
    return json_of(key_schema_document(schema))


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


# Approximate memory of a descriptor or an index without its properties, and of properties for each byte of their JSON.
_OBJECT_BYTES, _BYTES_FOR_JSON = 1_200, 3


class Cache:
    """Descriptors by (namespace, name), loaded at first use.

    If they need more memory than `capacity_bytes`, the least recently used ones are evicted.
    """

    def __init__(self, capacity_bytes: int) -> None:
        self._capacity_bytes = capacity_bytes
        self._used_bytes = 0
        self._tables: OrderedDict[tuple[str, str], Table] = OrderedDict()
        self._sizes: dict[tuple[str, str], int] = {}
        self._by_id: dict[int, Table] = {}
        self._by_azure_name: dict[tuple[str, str], Table] = {}
        self._lock = threading.Lock()

    def get(
        self,
        namespace: str,
        name: str,
        by_azure_name: bool = False,
        authorization: Authorization | None = None,
    ) -> Table | None:
        """Return the cached descriptor of a table by its name, or by its Azure name in any case.

        None if it is absent, or if `authorization` forbids it.
        """
        key = namespace, name.lower() if by_azure_name else name
        table = (self._by_azure_name if by_azure_name else self._tables).get(key)
        if table is None or (authorization is not None and not authorization.reaches(table)):
            return None
        try:
            self._tables.move_to_end((namespace, table.name))
        except KeyError:  # another thread has removed it
            return table
        return table

    def by_id(self, table_id: int) -> Table | None:
        """Return the cached descriptor of a table by its id, or None."""
        return self._by_id.get(table_id)

    def keep(self, table: Table) -> None:
        """Insert a descriptor, or replace the one of the same name."""
        size = memory_bytes(table)
        with self._lock:
            old = self._tables.get((table.namespace, table.name))
            if old is not None:
                self._drop(old)
            while self._tables and self._used_bytes + size > self._capacity_bytes:
                self._drop(next(iter(self._tables.values())))
            self._used_bytes += size
            self._sizes[table.namespace, table.name] = size
            self._tables[table.namespace, table.name] = table
            self._by_id[table.id] = table
            self._by_azure_name[table.namespace, table.azure_name.lower()] = table

    def forget(self, table_id: int) -> None:
        """Remove a descriptor, if it is cached."""
        with self._lock:
            table = self._by_id.get(table_id)
            if table is not None:
                self._drop(table)

    def _drop(self, table: Table) -> None:
        maps: tuple[tuple[Any, Any], ...] = (
            (self._by_id, table.id),
            (self._tables, (table.namespace, table.name)),
            (self._by_azure_name, (table.namespace, table.azure_name.lower())),
        )
        for index, key in maps:
            if index.get(key) is table:
                del index[key]
        if (table.namespace, table.name) not in self._tables:
            self._used_bytes -= self._sizes.pop((table.namespace, table.name), 0)


def memory_bytes(table: Table) -> int:
    """Return the approximate memory of a descriptor."""
    documents = [table.properties, *(index.properties for index in table.indexes)]
    json_bytes = sum(len(orjson.dumps(document)) for document in documents)
    return _OBJECT_BYTES * (1 + len(table.all_indexes)) + _BYTES_FOR_JSON * json_bytes
