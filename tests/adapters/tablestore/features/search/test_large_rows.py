"""Searches of rows that are large: what is in memory at a time, and what a quota counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.features.search import document_store, searching
from tablegate.gateway.features.search.search_commands import SearchPage, SearchRows
from tablegate.gateway.model.values.keys import Position
from tests.adapters.tablestore.client import Refused, TableStoreService
from tests.adapters.tablestore.search_messages import Searches, match_all, wildcard

ALL = messages.ColumnsToGet(return_type=messages.RETURN_ALL)


@pytest.fixture
def table(service: TableStoreService) -> Searches:
    """Rows 0 to 3, each with a document of more than 8 KB, and row 4 with a small one."""
    made = Searches(service)
    made.create(("k", messages.KEYWORD), ("t", messages.TEXT))
    for number in range(4):
        service.put({"pk": number}, {"k": "x", "t": "word " * 2_000})
    service.put({"pk": 4}, {"k": "x"})
    made.catch_up()
    return made


def test_large_documents_are_read_one_by_one(table: Searches, monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 documents were read together: 2 GB, if each has a text of 2 MB."""
    fetched: list[int] = []
    fetch = document_store.fetch

    def counted(session: Any, index: Any, positions: Sequence[Position]) -> Any:
        fetched.append(len(positions))
        return fetch(session, index, positions)

    monkeypatch.setattr(document_store, "fetch", counted)
    assert table.find(wildcard("k", "*x")) == [0, 1, 2, 3, 4]
    assert fetched == []
    monkeypatch.setattr(document_store, "_SMALL_BYTES", 1_000)
    assert table.find(wildcard("k", "*x")) == [0, 1, 2, 3, 4]
    assert fetched == [1, 1, 1, 1]


def test_the_rows_of_an_answer_have_a_size(table: Searches, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "MOST_ROWS_BYTES", 30_000)
    assert len(table.search(match_all(), limit=2, columns=ALL).rows) == 2
    with pytest.raises(Refused, match=r"OTSParameterInvalid.*too large, limit size: 30000"):
        table.search(match_all(), limit=4, columns=ALL)


def test_a_quota_counts_the_documents_that_are_evaluated(
    table: Searches, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An aggregation over a million rows took one read unit."""
    units: list[float] = []
    search = searching.search

    def counted(store: Any, command: SearchRows, now_ms: int) -> SearchPage:
        page = search(store, command, now_ms)
        units.append(command.cost(page).read_units)
        return page

    monkeypatch.setattr(searching, "search", counted)
    table.search(match_all(), limit=0)
    table.search(wildcard("k", "*x"), limit=0)
    assert units[0] == 1
    assert units[1] >= 40_000 / 4096
