"""The statistics of a search index, on which scores depend. Read once for each search."""

from __future__ import annotations

from tablegate.gateway.model.search.documents import term_bytes
from tablegate.gateway.model.search.schema import SearchField, SearchIndex
from tablegate.gateway.model.search.scoring import FieldStatistics
from tablegate.gateway.store.sql import counters
from tablegate.gateway.store.sql.databases import Session


def texts(index_id: int, field: int) -> str:
    """Return the name of the counter of the texts in a field of a search index."""
    return f"search/{index_id}/{field}/texts"


def tokens(index_id: int, field: int) -> str:
    """Return the name of the counter of the tokens in a field of a search index."""
    return f"search/{index_id}/{field}/tokens"


def forget(session: Session, index_id: int) -> None:
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
            names = texts(*key), tokens(*key)
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
