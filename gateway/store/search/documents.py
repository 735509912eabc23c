"""SQL for the documents of search indexes and their terms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import orjson

from tablegate.gateway.model.search.documents import (
    WRITTEN_AT_NUMBER,
    Document,
    documents_at,
    terms_of,
    time_bytes,
    values_in,
)
from tablegate.gateway.model.search.schema import FieldType, SearchIndex
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.store.search.candidates import Candidates
from tablegate.gateway.store.sql import counters
from tablegate.gateway.store.sql.databases import Row, Session
from tablegate.gateway.store.sql.positions import position_of, stored_position

# Documents read by one statement.
_CHUNK = 1_000
# Bytes of a document that is read together with others.
_SMALL_BYTES = 64 * 1024
# Documents read by their positions at a time.
_FETCHED = 20
# Candidates that are sorted here.
_FEW = 1_000
_FIND = "SELECT d.document, d.partition, d.sort, d.full_key FROM search_documents d"
_SAVE = (
    "INSERT INTO search_documents (index_id, partition, sort, slot, document, full_key, body)"
    " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (index_id, partition, sort, slot) DO UPDATE SET"
    " body = excluded.body"
)
_KEY = "index_id = ? AND partition = ? AND sort = ? AND slot = ?"
_ADD_TERM = "INSERT INTO search_terms (index_id, field, term, slot, document) VALUES (?, ?, ?, ?, ?)"
_REMOVE_TERM = (
    "DELETE FROM search_terms WHERE index_id = ? AND field = ? AND term = ? AND slot = ? AND document = ?"
)


class NewDocument(NamedTuple):
    """The document of a row. None: the row was deleted."""

    position: Position
    document: Document | None


class FoundDocument(NamedTuple):
    """A document that a search found. `key`: the stored columns of its primary key, which order it.

    `size_bytes`: of its contents, 0 if they were not read.
    """

    number: int
    key: tuple[bytes, bytes]
    position: Position
    document: Document | None
    size_bytes: int = 0


# Writing


def save(session: Session, index: SearchIndex, new_documents: Iterable[NewDocument]) -> None:
    """Store documents. The last one of a position counts."""
    by_position = {each.position: each for each in new_documents}
    changes = sorted(by_position.values(), key=lambda each: stored_position(each.position)[:3])
    if not changes:
        return
    keys = [(index.id, *stored_position(each.position)[:3]) for each in changes]
    statement = f"SELECT document, body FROM search_documents WHERE {_KEY}"
    old_rows = [session.ask(statement, key) for key in keys]
    batch = _Batch(index)
    last = counters.advance(session, counters.documents(index.id), len(changes))
    for number, (change, old) in enumerate(zip(changes, old_rows, strict=True), last - len(changes) + 1):
        rows = old()
        batch.add(change, number, rows[0] if rows else None)
    batch.write(session)


class _Batch:
    """The statements that store documents: of documents, and of the terms that differ."""

    def __init__(self, index: SearchIndex) -> None:
        self._index = index
        self._saved: list[Row] = []
        self._removed: list[Row] = []
        self._added_terms: list[Row] = []
        self._removed_terms: list[Row] = []
        self._texts: Counter[int] = Counter()
        self._tokens: Counter[int] = Counter()

    def add(self, new: NewDocument, number: int, old: Row | None) -> None:
        """Add a document. `number`: its number if it is new. `old`: number and body of the stored one."""
        schema = self._index.schema
        partition, sort, slot, full_key = stored_position(new.position)
        key = (self._index.id, partition, sort, slot)
        old_terms: set[tuple[int, bytes]] = set()
        if old is not None:
            number, body = old
            old_document = orjson.loads(body)
            old_terms = terms_of(schema, old_document)
            self._count_texts(old_document, -1)
        new_terms = terms_of(schema, new.document) if new.document is not None else set()
        if new.document is not None:
            body = orjson.dumps(new.document)
            self._count_texts(new.document, 1)
            self._saved.append((*key, number, full_key, body))
        elif old is not None:
            self._removed.append(key)
        for terms, rows in (
            (new_terms - old_terms, self._added_terms),
            (old_terms - new_terms, self._removed_terms),
        ):
            rows.extend((self._index.id, field, term, slot, number) for field, term in terms)

    def _count_texts(self, document: Document, sign: int) -> None:
        """Count the texts of a document and their tokens, by field."""
        schema = self._index.schema
        for field in schema.by_name.values():
            if field.type is FieldType.TEXT:
                number = schema.numbers[field.name]
                for each in documents_at(field, document):
                    if each.get(field.name):
                        self._texts[number] += sign
                        self._tokens[number] += sign * len(values_in(field, each))

    def write(self, session: Session) -> None:
        for number in sorted(self._texts):
            counters.advance(session, counters.texts(self._index.id, number), self._texts[number])
            counters.advance(session, counters.tokens(self._index.id, number), self._tokens[number])
        session.execute_many(_SAVE, self._saved)
        session.execute_many(f"DELETE FROM search_documents WHERE {_KEY}", self._removed)
        session.execute_many(_REMOVE_TERM, sorted(self._removed_terms))
        session.execute_many(_ADD_TERM, sorted(self._added_terms))


# Reading


def size(session: Session, index_id: int) -> tuple[int, int]:
    """Return the number of documents of an index, and the bytes of their contents."""
    [(number, size_bytes)] = session.query(
        "SELECT count(*), coalesce(sum(length(body)), 0) FROM search_documents WHERE index_id = ?",
        (index_id,),
    )
    return int(number), int(size_bytes)


def written_before(session: Session, index: SearchIndex, at_ms: int, limit: int) -> list[Position]:
    """Return the positions of rows written before a time, by the documents of an index with a time to live."""
    rows = session.query(
        "SELECT d.partition, d.sort, d.full_key FROM search_documents d WHERE d.index_id = ? AND d.document IN"
        " (SELECT t.document FROM search_terms t WHERE t.index_id = ? AND t.field = ? AND t.term < ?"
        " ORDER BY t.term LIMIT ?)",
        (index.id, index.id, WRITTEN_AT_NUMBER, time_bytes(at_ms), limit),
    )
    return [position_of(*row) for row in rows]


def count(session: Session, candidates: Candidates) -> int:
    """Return the number of candidates."""
    [(number,)] = session.query(
        f"SELECT count(*) FROM search_documents d WHERE {candidates.condition}", candidates.parameters
    )
    return int(number)


def in_key_order(
    session: Session,
    candidates: Candidates,
    descending: bool,
    after: tuple[bytes, bytes] | None,
    offset: int,
    limit: int,
) -> list[FoundDocument]:
    """Return candidates in the order of the primary key, without their contents. `after`: the key before the first."""
    few = _few(session, candidates)
    if few is not None:
        ordered = sorted(few, key=lambda found: found.key, reverse=descending)
        if after is not None:
            ordered = [each for each in ordered if (each.key < after if descending else each.key > after)]
        return ordered[offset : offset + limit]
    direction, compares = ("DESC", "<") if descending else ("ASC", ">")
    condition, parameters = candidates.condition, list(candidates.parameters)
    if after is not None:
        condition += f" AND (d.partition, d.sort) {compares} (?, ?)"
        parameters += after
    rows = session.query(
        f"{_FIND} WHERE {condition} ORDER BY d.partition {direction}, d.sort {direction} LIMIT ? OFFSET ?",
        (*parameters, limit, offset),
    )
    return [_found(row) for row in rows]


def _few(session: Session, candidates: Candidates) -> list[FoundDocument] | None:
    """Return all candidates if they are few, otherwise None.

    Databases expect to find a page early in the order of keys, and read all documents if there are few candidates.
    """
    if candidates.is_everything:
        return None
    rows = session.query(f"{_FIND} WHERE {candidates.condition} LIMIT ?", (*candidates.parameters, _FEW + 1))
    return [_found(row) for row in rows] if len(rows) <= _FEW else None


def with_first_terms(
    session: Session,
    candidates: Candidates,
    field: tuple[int, int],
    descending: bool,
    after: bytes | None,
    number: int,
) -> Candidates | None:
    """Return the candidates among which the first `number` in the order of their terms of a field are.

    `field`: the index, and the number of the field. `after`: only those with this term or a later one. None if there
    are few candidates, or too few with a term.
    """
    many = f"SELECT 1 FROM search_documents d WHERE {candidates.condition} LIMIT 1 OFFSET ?"
    if not session.query(many, (*candidates.parameters, _FEW)):
        return None
    later, direction = ("<", "DESC") if descending else (">", "ASC")
    terms = "SELECT t.{} FROM search_terms t WHERE t.index_id = ? AND t.field = ?"
    statement, parameters = terms.format("term"), list[Any](field)
    if after is not None:
        statement += f" AND t.term {later} ?"
        parameters.append(after)
    if not candidates.is_everything:
        statement += (
            f" AND t.document IN (SELECT d.document FROM search_documents d WHERE {candidates.condition})"
        )
        parameters += candidates.parameters
    statement += f" ORDER BY t.term {direction} LIMIT 1 OFFSET ?"
    last = session.query(statement, (*parameters, number - 1))
    if not last:
        return None
    among, bounds = terms.format("document"), list[Any]([*field, last[0][0]])
    among += f" AND t.term {'>' if descending else '<'}= ?"
    if after is not None:
        among += f" AND t.term {later}= ?"
        bounds.append(after)
    return Candidates(
        f"{candidates.condition} AND d.document IN ({among})",
        (*candidates.parameters, *bounds),
        candidates.is_exact,
    )


def _found(row: Row) -> FoundDocument:
    number, partition, sort, full_key = row
    return FoundDocument(number, (partition, sort), position_of(partition, sort, full_key), None)


def fetch(session: Session, index: SearchIndex, positions: Sequence[Position]) -> Iterator[Document]:
    """Yield the contents of the documents at positions."""
    statement = f"SELECT body FROM search_documents WHERE {_KEY}"
    for start in range(0, len(positions), _FETCHED):
        chunk = positions[start : start + _FETCHED]
        answers = [session.ask(statement, (index.id, *stored_position(each)[:3])) for each in chunk]
        yield from (orjson.loads(answer()[0][0]) for answer in answers)


def each(session: Session, index: SearchIndex, candidates: Candidates) -> Iterator[FoundDocument]:
    """Yield the candidates with their contents, in no useful order. Large contents are read one by one."""
    last = 0
    while True:
        rows: Sequence[Sequence[Any]] = session.query(
            "SELECT d.document, d.partition, d.sort, d.full_key, length(d.body),"
            f" CASE WHEN length(d.body) <= {_SMALL_BYTES} THEN d.body END FROM search_documents d"
            f" WHERE {candidates.condition} AND d.document > ? ORDER BY d.document LIMIT ?",
            (*candidates.parameters, last, _CHUNK),
        )
        for number, partition, sort, full_key, size_bytes, body in rows:
            position = position_of(partition, sort, full_key)
            document = next(fetch(session, index, [position])) if body is None else orjson.loads(body)
            yield FoundDocument(number, (partition, sort), position, document, size_bytes)
        if len(rows) < _CHUNK:
            return
        last = rows[-1][0]
