"""The conditions that find documents in the database."""

from __future__ import annotations

import pytest

from tablegate.gateway.features.search import document_store, searching
from tablegate.gateway.features.search.candidates import candidates_of
from tablegate.gateway.features.search.queries import Bool, GeoBox, GeoPolygon, Match, Query, Range, Terms
from tablegate.gateway.features.search.ranking import FieldSort
from tablegate.gateway.features.search.schema import SearchIndex
from tablegate.gateway.features.search.search_commands import SearchPage, SearchRows
from tablegate.gateway.model.errors import LimitExceeded
from tests.gateway.engine.conftest import Client, do_background_work
from tests.gateway.features.search.test_random_queries import FIELDS, create_index, put

RARE = Terms(FIELDS["k"], ("rare",))
FREQUENT = Range(FIELDS["l"], lower=0, includes_lower=True)


def index_of(things: Client, rows: list[dict[str, object]]) -> SearchIndex:
    index = create_index(things.engine, things.table)
    [things.table] = [things.engine.cached_table("", things.table.name) or things.table]
    for number, columns in enumerate(rows):
        put(things, f"{number:02}", columns)
    do_background_work(things.engine)
    return index


def found(things: Client, index: SearchIndex, query: Query) -> list[str]:
    [page] = things.engine.run([SearchRows(things.table, index, query, limit=100, counts=True)])
    assert isinstance(page, SearchPage), page
    assert page.total == len(page.rows)
    return [row.latest["p"].data for row in page.rows]


def test_few_documents_are_evaluated_instead_of_reading_many_terms(
    things: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_store, "_EVALUATED", 2)
    monkeypatch.setattr(document_store, "_MANY", 10)
    rows = [{"k": "rare" if number in (3, 7) else "red", "l": number - 5} for number in range(20)]
    index = index_of(things, rows)
    query = Bool(must=(FREQUENT,), filters=(RARE,))
    candidates = candidates_of(index, query)
    with things.engine._store.read() as session:
        ordered = document_store.with_rare_terms_first(session, index, candidates, may_evaluate=False)
        evaluated = document_store.with_rare_terms_first(session, index, candidates, may_evaluate=True)
        assert candidates.is_exact
        assert ordered.is_exact
        assert ordered.parts == candidates.parts[::-1]
        assert document_store.count(session, ordered) == 1
        assert not evaluated.is_exact
        assert evaluated.parts == candidates.parts[1:]
        assert document_store.count(session, evaluated) == 2
    assert found(things, index, query) == ["07"]


def test_a_part_that_holds_for_too_many_documents_is_still_evaluated(things: Client) -> None:
    """A conjunction inside another one is a part of it, and so is what the database does not know of it."""
    rows = [
        {"k": "rare", "l": number, "t": "red green" if number == 3 else "red blue"} for number in range(5)
    ]
    index = index_of(things, rows)
    two_of_three = Match(FIELDS["t"], ("red", "green", "black"), 2)
    assert found(things, index, Bool(must=(Bool(must=(two_of_three, FREQUENT)), RARE))) == ["03"]


def test_places_are_found_by_their_latitude(things: Client) -> None:
    """A point in the same cell as a side of a box is inside."""
    places = ("10.00000001,0", "10.001,0", "9.5,0", "-40,0", "9.5,20")
    index = index_of(things, [{"g": place} for place in places])
    box = GeoBox(FIELDS["g"], (10.0, -1.0), (9.0, 1.0))
    polygon = GeoPolygon(FIELDS["g"], ((9.0, -1.0), (10.0, -1.0), (10.0, 1.0), (9.0, 1.0)))
    with things.engine._store.read() as session:
        assert document_store.count(session, candidates_of(index, polygon)) < len(places)
    assert found(things, index, box) == ["00", "02"]
    assert found(things, index, polygon)[-1] == "02"


def test_a_sort_by_equal_values_evaluates_a_bounded_number_of_documents(
    things: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = index_of(things, [{"k": "red"} for _ in range(8)])
    monkeypatch.setattr(document_store, "_FEW", 3)
    command = SearchRows(
        things.table, index, Terms(FIELDS["k"], ("red",)), (FieldSort(FIELDS["k"]),), limit=1
    )
    monkeypatch.setattr(searching, "MOST_EVALUATED", 8)
    [page] = things.engine.run([command])
    assert isinstance(page, SearchPage)
    monkeypatch.setattr(searching, "MOST_EVALUATED", 7)
    [error] = things.engine.run([command])
    assert isinstance(error, LimitExceeded)
