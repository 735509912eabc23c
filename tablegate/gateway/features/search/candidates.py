"""Queries of search indexes as SQL conditions.

A condition holds for every document that matches the query. If it holds for no other one, it is exact, and the database
alone finds the documents. Otherwise the candidates are evaluated (features/search/queries.py: matches).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from tablegate.gateway.features.search import queries
from tablegate.gateway.features.search.documents import TERM_BYTES, term_bytes
from tablegate.gateway.features.search.field_values import METERS_PER_DEGREE
from tablegate.gateway.features.search.queries import Query
from tablegate.gateway.features.search.schema import FieldType, SearchField, SearchIndex

# A condition with more parameters, or alternatives, is replaced by one that accepts more documents.
_MAX_PARAMETERS = 2_000
_MAX_ALTERNATIVES = 100
# PostgreSQL plans each subquery of a conjunction as a join. The time for 500 of them is above 30 s.
_MAX_JOINS = 12
# Areas are compared by cells of a grid, and distances are rounded.
_DEGREES_MORE = 0.001


class Candidates(NamedTuple):
    """A condition on `search_documents d` with its parameters. `is_exact`: it holds only for documents that match.

    - `joins`: number of its subqueries that PostgreSQL plans as joins.
    - `terms`: the query for the numbers of documents, if the condition is only one on the terms of a field.
    - `parts`: the conditions of a conjunction.
    """

    condition: str
    parameters: Sequence[Any]
    is_exact: bool
    joins: int = 0
    terms: str = ""
    parts: tuple[Candidates, ...] = ()

    @property
    def is_everything(self) -> bool:
        """True if the condition names no term. The only parameter is the index."""
        return len(self.parameters) <= 1


_ALL = Candidates("1 = 1", (), True)
_NONE = Candidates("1 = 0", (), True)


def candidates_of(index: SearchIndex, query: Query) -> Candidates:
    """Return the condition for the documents of an index that match a query."""
    found = _Compiler(index).compile(query)
    if len(found.parameters) > _MAX_PARAMETERS:
        found = _ALL._replace(is_exact=False)
    return _of_index(index, found)


def with_parts(index: SearchIndex, candidates: Candidates, parts: Sequence[Candidates]) -> Candidates:
    """Return a conjunction with some of its parts, in this order."""
    found = _of_index(index, _joined(" AND ", parts))
    is_exact = candidates.is_exact and len(parts) == len(candidates.parts)
    return found._replace(is_exact=is_exact, parts=tuple(parts))


def _of_index(index: SearchIndex, found: Candidates) -> Candidates:
    return found._replace(
        condition=f"d.index_id = ? AND {found.condition}", parameters=(index.id, *found.parameters)
    )


class _Compiler:
    """`path`: the NESTED fields around the part of the query."""

    def __init__(self, index: SearchIndex, path: tuple[str, ...] = ()) -> None:
        self._index = index
        self._path = path

    def compile(self, query: Query) -> Candidates:
        """Return the condition for a query, without that for the index."""
        field = getattr(query, "field", None)
        if field is not None and not isinstance(query, queries.FieldFactor) and field.ancestors != self._path:
            return _NONE
        match query:
            case queries.MatchAll():
                return _ALL
            case queries.Bool():
                return self._bool(query)
            case queries.ConstScore(inner) | queries.FunctionsScore(inner):
                return self.compile(inner)
            case queries.FieldFactor(inner, _) | queries.Weighted(inner, _):
                return self.compile(inner)
            case queries.DisjunctionMax(alternatives):
                return _any_of([self.compile(each) for each in alternatives])
            case queries.Nested(field, inner):
                # The terms of all objects of a row are together: only a single condition is known to hold for one.
                found = _Compiler(self._index, (*self._path, field.name)).compile(inner)
                if not _is_positive(inner):
                    return _inexact(self._terms(field, "", ()))
                return found if _is_single(inner) else _inexact(found)
            case queries.Nearest(field, filter=inner):
                has_vector = self._terms(field, "", ())
                parts = [has_vector] if inner is None else [has_vector, self.compile(inner)]
                return _inexact(_all_of(parts))
            case queries.Exists(field):
                return self._terms(field, "", ())
            case queries.Terms(field, values):
                return self._one_of(field, [term_bytes(field, value) for value in values])
            case queries.Match():
                return self._match(query)
            case queries.Phrase():
                return self._phrase(query)
            case queries.Range():
                return self._range(query)
            case queries.Prefix(field, text):
                return self._prefix(field, text)
            case queries.Pattern(field, _):
                return _inexact(self._prefix(field, query.prefix))
            case queries.Suffix(field, _):
                return _inexact(self._terms(field, "", ()))
        return self._geographic(query)

    def _terms(self, field: SearchField, condition: str, parameters: Sequence[Any]) -> Candidates:
        """Return the condition that a document has a term of a field for which a condition holds."""
        terms = f"SELECT t.document FROM search_terms t WHERE t.index_id = ? AND t.field = ?{condition}"
        return Candidates(
            f"d.document IN ({terms})",
            (self._index.id, self._index.schema.numbers[field.name], *parameters),
            True,
            joins=1,
            terms=terms,
        )

    def _one_of(self, field: SearchField, terms: Sequence[bytes]) -> Candidates:
        if not terms:
            return _NONE
        marks = ", ".join("?" * len(terms))
        is_exact = field.type is not FieldType.GEO_POINT and all(len(term) < TERM_BYTES for term in terms)
        return self._terms(field, f" AND t.term IN ({marks})", terms)._replace(is_exact=is_exact)

    def _range(self, query: queries.Range) -> Candidates:
        condition = ""
        parameters: list[bytes] = []
        is_exact = True
        for bound, is_included, sign in (
            (query.lower, query.includes_lower, ">"),
            (query.upper, query.includes_upper, "<"),
        ):
            if bound is None:
                continue
            term = term_bytes(query.field, bound)
            if len(term) >= TERM_BYTES:
                is_exact, is_included = False, True
            condition += f" AND t.term {sign}{'=' if is_included else ''} ?"
            parameters.append(term)
        return self._terms(query.field, condition, parameters)._replace(is_exact=is_exact)

    def _prefix(self, field: SearchField, text: str) -> Candidates:
        prefix = text.encode()
        is_exact = len(prefix) <= TERM_BYTES
        prefix = prefix[:TERM_BYTES]
        # No UTF-8 has the byte 0xFF.
        found = self._terms(field, " AND t.term >= ? AND t.term < ?", (prefix, prefix + b"\xff"))
        return found._replace(is_exact=is_exact)

    def _match(self, query: queries.Match) -> Candidates:
        tokens = list(dict.fromkeys(query.tokens))
        if query.minimum == len(tokens) and tokens:
            return _all_of([self._one_of(query.field, [_clipped(token)]) for token in tokens])
        found = self._one_of(query.field, [_clipped(token) for token in tokens])
        return found if query.minimum == 1 else _inexact(found)

    def _phrase(self, query: queries.Phrase) -> Candidates:
        tokens = list(dict.fromkeys(query.tokens))
        if not tokens:
            return _NONE
        found = _all_of(
            [self._one_of(query.field, [_clipped(token)]) for token in tokens[:_MAX_ALTERNATIVES]]
        )
        return found if len(query.tokens) == 1 else _inexact(found)

    def _geographic(self, query: Query) -> Candidates:
        """Return the condition for the latitude. The longitude is evaluated."""
        if isinstance(query, queries.GeoBox):
            latitudes = [query.bottom_right[0], query.top_left[0]]
        elif isinstance(query, queries.GeoPolygon):
            latitudes = [latitude for latitude, _ in query.points]
        elif isinstance(query, queries.GeoDistance):
            degrees = query.meters / METERS_PER_DEGREE
            latitudes = [query.center[0] - degrees, query.center[0] + degrees]
        else:
            raise TypeError(query)
        low, high = min(latitudes) - _DEGREES_MORE, max(latitudes) + _DEGREES_MORE
        bounds = [term_bytes(query.field, (latitude, 0.0)) for latitude in (low, high)]
        return _inexact(self._terms(query.field, " AND t.term >= ? AND t.term <= ?", bounds))

    def _bool(self, query: queries.Bool) -> Candidates:
        parts = [self.compile(part) for part in (*query.must, *query.filters)]
        for part in query.must_not:
            excluded = self.compile(part)
            if excluded.is_exact:
                parts.append(Candidates(f"NOT ({excluded.condition})", excluded.parameters, True))
            else:
                parts.append(_inexact(_ALL))
        if query.minimum > len(query.should):
            return _NONE
        if query.minimum > 0:
            alternatives = [self.compile(part) for part in query.should]
            if query.minimum == len(alternatives):
                parts.extend(alternatives)
            else:
                found = _any_of(alternatives)
                parts.append(found if query.minimum == 1 else _inexact(found))
        return _all_of(parts)


def _clipped(text: str) -> bytes:
    return text.encode()[:TERM_BYTES]


def _is_positive(query: Query) -> bool:
    """Return True if a document can match a query only by terms that it has."""
    return not any(
        (isinstance(part, queries.Bool) and part.must_not) or isinstance(part, queries.MatchAll)
        for part in queries.parts_of(query)
    )


def _is_single(query: Query) -> bool:
    """Return True if a query has one condition only."""
    return not any(isinstance(part, queries.Bool | queries.Match) for part in queries.parts_of(query))


def _inexact(found: Candidates) -> Candidates:
    return found._replace(is_exact=False)


def _all_of(parts: Sequence[Candidates]) -> Candidates:
    """Return the conjunction of as many parts as the database should plan. The others are evaluated."""
    chosen: list[Candidates] = []
    joins = 0
    is_exact = all(part.is_exact for part in parts)
    for part in itertools.chain.from_iterable(each.parts or (each,) for each in parts):
        if joins + part.joins <= _MAX_JOINS:
            chosen.append(part)
            joins += part.joins
        else:
            is_exact = False
    found = _joined(" AND ", chosen) if chosen else _ALL
    return found._replace(is_exact=is_exact, joins=joins, parts=tuple(chosen))


def _any_of(parts: Sequence[Candidates]) -> Candidates:
    if len(parts) > _MAX_ALTERNATIVES:
        return _inexact(_ALL)
    return _joined(" OR ", parts)


def _joined(operator: str, parts: Sequence[Candidates]) -> Candidates:
    return Candidates(
        "(" + operator.join(part.condition for part in parts) + ")",
        [parameter for part in parts for parameter in part.parameters],
        all(part.is_exact for part in parts),
    )
