"""SQL for the definitions of search indexes, and the statistics on which scores depend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from tablegate.gateway.features.search.documents import term_bytes
from tablegate.gateway.features.search.ranking import FieldStatistics
from tablegate.gateway.features.search.schema import SearchField, SearchIndex, SearchSchema
from tablegate.gateway.store.sql import counters
from tablegate.gateway.store.sql.databases import Session

_COLUMNS = "id, table_id, name, dialect, fields, properties, created_at_ms, lifetime_ms"


def add(session: Session, index: SearchIndex) -> bool:
    """Insert a new index. Return False if its table has one of this name."""
    return (
        session.execute(
            f"INSERT INTO search_indexes ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (
                index.id,
                index.table_id,
                index.name,
                index.dialect,
                orjson.dumps(index.schema.as_json()).decode(),
                orjson.dumps(index.properties).decode(),
                index.created_at_ms,
                index.lifetime_ms,
            ),
        )
        == 1
    )


def update(session: Session, index: SearchIndex) -> None:
    """Save what can change of an index: name, schema, properties and time to live."""
    fields = orjson.dumps(index.schema.as_json()).decode()
    properties = orjson.dumps(index.properties).decode()
    session.execute(
        "UPDATE search_indexes SET name = ?, fields = ?, properties = ?, lifetime_ms = ? WHERE id = ?",
        (index.name, fields, properties, index.lifetime_ms, index.id),
    )


def of_table(session: Session, table_id: int) -> list[SearchIndex]:
    """Return the search indexes of a table."""
    return _select(session, "table_id = ? ORDER BY name", (table_id,))


def of_namespace(session: Session, namespace: str, table_name: str) -> list[tuple[str, SearchIndex]]:
    """Return the search indexes of a namespace with the names of their tables. `table_name`: of this table, if given."""
    where, parameters = "namespace = ?", [namespace]
    if table_name:
        where, parameters = f"{where} AND name = ?", [namespace, table_name]
    tables = session.query(f"SELECT id, name FROM tables WHERE {where} ORDER BY name", parameters)
    if not tables:
        return []
    condition, ids = session.statements.one_of("table_id", [table_id for table_id, _ in tables])
    found: dict[int, list[SearchIndex]] = {}
    for index in _select(session, f"{condition} ORDER BY name", ids):
        found.setdefault(index.table_id, []).append(index)
    return [(name, index) for table_id, name in tables for index in found.get(table_id, ())]


def find(session: Session, table_id: int, name: str) -> SearchIndex | None:
    """Return the search index of a table with this name, or None."""
    return next(iter(_select(session, "table_id = ? AND name = ?", (table_id, name))), None)


def by_id(session: Session, index_id: int) -> SearchIndex | None:
    """Return the search index with this id, or None."""
    return next(iter(_select(session, "id = ?", (index_id,))), None)


def filling_since_ms(session: Session, kind: str) -> int | None:
    """Return the creation time of the oldest index that is being filled, or None. `kind`: of the indexes' followers."""
    [(oldest_ms,)] = session.query(
        "SELECT min(created_at_ms) FROM search_indexes WHERE CAST(id AS TEXT) IN"
        " (SELECT target FROM followers WHERE kind = ? AND copying = 1)",
        (kind,),
    )
    return None if oldest_ms is None else int(oldest_ms)


def remove(session: Session, index_id: int) -> None:
    """Delete an index. Its documents and terms are purged later."""
    _remove(session, "id = ?", index_id)


def remove_all(session: Session, table_id: int) -> None:
    """Delete the indexes of a table, without a round trip."""
    _remove(session, "table_id = ?", table_id)


def _remove(session: Session, where: str, number: int) -> None:
    for kind in ("documents", "terms"):
        purge = f"INSERT INTO purges (kind, id) SELECT '{kind}', id FROM search_indexes WHERE {where}"
        session.send(purge, (number,))
    session.send(f"DELETE FROM search_indexes WHERE {where}", (number,))


def _select(session: Session, where: str, parameters: Sequence[Any]) -> list[SearchIndex]:
    return [
        SearchIndex(
            index_id,
            table_id,
            name,
            dialect,
            SearchSchema.of_json(orjson.loads(fields)),
            orjson.loads(properties),
            *times,
        )
        for index_id, table_id, name, dialect, fields, properties, *times in session.query(
            f"SELECT {_COLUMNS} FROM search_indexes WHERE {where}", parameters
        )
    ]


def texts_counter(index_id: int, field: int) -> str:
    """Return the name of the counter of the texts in a field of a search index."""
    return f"search/{index_id}/{field}/texts"


def tokens_counter(index_id: int, field: int) -> str:
    """Return the name of the counter of the tokens in a field of a search index."""
    return f"search/{index_id}/{field}/tokens"


def forget_statistics(session: Session, index_id: int) -> None:
    """Delete the statistics of a dropped search index."""
    counters.forget_all(session, f"search/{index_id}/")


class StoredStatistics:
    """The statistics of an index in the snapshot of a session."""

    def __init__(self, session: Session, index: SearchIndex) -> None:
        self._session = session
        self._index = index
        self._fields: dict[str, FieldStatistics] = {}
        self._frequencies: dict[tuple[str, str], int] = {}

    def of_field(self, field: SearchField) -> FieldStatistics:
        """Return the number of texts of a field, and of their tokens."""
        found = self._fields.get(field.name)
        if found is None:
            key = self._index.id, self._index.schema.numbers[field.name]
            names = texts_counter(*key), tokens_counter(*key)
            found = FieldStatistics(*(counters.value_of(self._session, name) for name in names))
            self._fields[field.name] = found
        return found

    def frequency(self, field: SearchField, token: str) -> int:
        """Return the number of documents with a token in a field."""
        key = field.name, token
        if key not in self._frequencies:
            number = self._index.schema.numbers[field.name]
            [(count,)] = self._session.query(
                "SELECT count(*) FROM search_terms t WHERE t.index_id = ? AND t.field = ? AND t.term = ?",
                (self._index.id, number, term_bytes(field, token)),
            )
            self._frequencies[key] = int(count)
        return self._frequencies[key]
