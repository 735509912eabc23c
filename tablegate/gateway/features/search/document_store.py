"""SQL for the documents of search indexes and their terms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import orjson

from tablegate.gateway.features.search import search_index_store
from tablegate.gateway.features.search.candidates import Candidates, with_parts
from tablegate.gateway.features.search.documents import (
    WRITTEN_AT_NUMBER,
    Document,
    documents_at,
    terms_of,
    time_bytes,
    values_in,
)
from tablegate.gateway.features.search.schema import FieldType, SearchIndex
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.store.sql import counters
from tablegate.gateway.store.sql.databases import Row, Session
from tablegate.gateway.store.sql.owned_rows import KINDS, OwnedRows
from tablegate.gateway.store.sql.positions import position_of, stored_position

# Documents read by one statement.
_CHUNK = 1_000
# Bytes of a document that is read together with others.
_SMALL_BYTES = 64 * 1024
# Documents read by their positions at a time.
_FETCHED = 20
# Maximum number of candidates that are sorted here, and that are counted by their numbers.
_FEW, _COUNTED = 1_000, 20_000
# A condition with at most `_EVALUATED` terms replaces conditions with `_MANY` terms or more.
_EVALUATED, _MANY = 500, 20_000
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


def _counter(index_id: int) -> str:
    """Return the name of the counter that numbers the documents of an index."""
    return f"documents/{index_id}"


def _forget(session: Session, index_id: int, limit: int) -> int:
    """Delete the counters of a dropped index. Return 0, as they are few."""
    counters.forget(session, _counter(index_id))
    search_index_store.forget_statistics(session, index_id)
    return 0


KINDS["documents"] = OwnedRows("search_documents", "index_id", "partition, sort, slot", forget=_forget)
KINDS["terms"] = OwnedRows("search_terms", "index_id", "field, term, document, slot")


class NewDocument(NamedTuple):
    """The document of a row, or None if the row was deleted."""

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
    last = counters.advance(session, _counter(index.id), len(changes))
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
            counters.advance(
                session, search_index_store.texts_counter(self._index.id, number), self._texts[number]
            )
            counters.advance(
                session, search_index_store.tokens_counter(self._index.id, number), self._tokens[number]
            )
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


def numbers(session: Session, candidates: Candidates, limit: int) -> list[int]:
    """Return the numbers of at most `limit` candidates."""
    rows = session.query(
        f"SELECT d.document FROM search_documents d WHERE {candidates.condition} LIMIT ?",
        (*candidates.parameters, limit),
    )
    return [number for (number,) in rows]


class Few(NamedTuple):
    """The numbers of all candidates if they are few, otherwise None. `total`: their number, if it was requested."""

    numbers: list[int] | None
    total: int | None


def few(session: Session, candidates: Candidates, counts: bool) -> Few:
    """Return the candidates if they are few, and count them if requested.

    Databases expect to find a page early in an order, and read all documents if there are few candidates.
    """
    if candidates.is_everything:
        return Few(None, count(session, candidates) if counts else None)
    found = numbers(session, candidates, (_COUNTED if counts else _FEW) + 1)
    total = None
    if counts:
        total = len(found) if len(found) <= _COUNTED else count(session, candidates)
    return Few(found if len(found) <= _FEW else None, total)


def with_rare_terms_first(
    session: Session, index: SearchIndex, candidates: Candidates, may_evaluate: bool
) -> Candidates:
    """Return a conjunction in the order of the numbers of its terms, which are counted up to a bound.

    SQLite looks up the documents of the first part, and reads all terms of the others. `may_evaluate`: leave out parts
    with many terms if another part has few, so that its documents are evaluated.
    """
    if sum(1 for part in candidates.parts if part.terms) < 2:
        return candidates
    answers = [
        session.ask(f"SELECT count(*) FROM ({part.terms} LIMIT ?) AS counted", (*part.parameters, _MANY))
        for part in candidates.parts
        if part.terms
    ]
    sizes = [answers.pop(0)()[0][0] if part.terms else _MANY for part in candidates.parts]
    by_size = sorted(zip(sizes, candidates.parts, strict=True), key=lambda pair: pair[0])
    leaves_out = may_evaluate and min(sizes) <= _EVALUATED
    kept = [part for size, part in by_size if not (leaves_out and part.terms and size == _MANY)]
    return with_parts(index, candidates, kept)


def in_key_order(
    session: Session,
    candidates: Candidates,
    descending: bool,
    after: tuple[bytes, bytes] | None,
    offset: int,
    limit: int,
) -> list[FoundDocument]:
    """Return candidates in the order of the primary key, without their contents. `after`: the key before the first."""
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


def with_first_terms(
    session: Session,
    candidates: Candidates,
    field: tuple[int, int],
    descending: bool,
    after: bytes | None,
    number: int,
    limit: int,
) -> list[int] | None:
    """Return the numbers of at most `limit` candidates among which the first `number` in the order of their terms of a field are.

    `field`: the index, and the number of the field. `after`: only those with this term or a later one. None if too few
    have a term.
    """
    # The condition is one on `index_id` and `document`, which terms have, too.
    later, direction = ("<", "DESC") if descending else (">", "ASC")
    among = f"FROM search_terms d WHERE d.index_id = ? AND d.field = ? AND {candidates.condition}"
    parameters = [*field, *candidates.parameters]
    statement = f"SELECT d.term {among}"
    bound = []
    if after is not None:
        statement += f" AND d.term {later} ?"
        bound.append(after)
    statement += f" ORDER BY d.term {direction} LIMIT 1 OFFSET ?"
    last = session.query(statement, (*parameters, *bound, number - 1))
    if not last:
        return None
    statement = f"SELECT d.document {among} AND d.term {'>' if descending else '<'}= ?"
    if after is not None:
        statement += f" AND d.term {later}= ?"
    rows = session.query(f"{statement} LIMIT ?", (*parameters, last[0][0], *bound, limit))
    return [each for (each,) in rows]


def _found(row: Sequence[Any]) -> FoundDocument:
    number, partition, sort, full_key = row
    return FoundDocument(number, (partition, sort), position_of(partition, sort, full_key), None)


def fetch(session: Session, index: SearchIndex, positions: Sequence[Position]) -> Iterator[Document]:
    """Yield the contents of the documents at positions."""
    statement = f"SELECT body FROM search_documents WHERE {_KEY}"
    for start in range(0, len(positions), _FETCHED):
        chunk = positions[start : start + _FETCHED]
        answers = [session.ask(statement, (index.id, *stored_position(each)[:3])) for each in chunk]
        yield from (orjson.loads(answer()[0][0]) for answer in answers)


def keys(session: Session, index: SearchIndex, wanted: Sequence[int]) -> Iterator[FoundDocument]:
    """Yield the documents with these numbers without their contents, in no useful order."""
    for row in _read(session, index, wanted, "d.document, d.partition, d.sort, d.full_key"):
        yield _found(row)


def each(session: Session, index: SearchIndex, wanted: Sequence[int]) -> Iterator[FoundDocument]:
    """Yield the documents with these numbers and their contents, in no useful order. Large contents are read one by one."""
    columns = (
        "d.document, d.partition, d.sort, d.full_key, length(d.body),"
        f" CASE WHEN length(d.body) <= {_SMALL_BYTES} THEN d.body END"
    )
    for *key, size_bytes, body in _read(session, index, wanted, columns):
        found = _found(key)
        document = next(fetch(session, index, [found.position])) if body is None else orjson.loads(body)
        yield found._replace(document=document, size_bytes=size_bytes)


def _read(session: Session, index: SearchIndex, wanted: Sequence[int], columns: str) -> Iterator[Row]:
    for start in range(0, len(wanted), _CHUNK):
        condition, chunk = session.statements.one_of("d.document", wanted[start : start + _CHUNK])
        yield from session.query(
            f"SELECT {columns} FROM search_documents d WHERE d.index_id = ? AND {condition}",
            (index.id, *chunk),
        )
