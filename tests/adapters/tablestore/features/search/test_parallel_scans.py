"""Parallel scans. Source: aliyun-tablestore-python-sdk, tests/parallel_scan_test.py."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.features.search import searching
from tests.adapters.tablestore.client import Refused, TableStoreService
from tests.adapters.tablestore.search_messages import Searches, keys_of, match_all, wildcard


@pytest.fixture
def table(service: TableStoreService) -> Searches:
    """Rows 0 to 9."""
    made = Searches(service)
    made.create(("k", messages.KEYWORD))
    for number in range(10):
        service.put({"pk": number}, {"k": "x"})
    made.catch_up()
    return made


def session_of(table: Searches, **members: Any) -> bytes:
    options = messages.SearchIndexSplitsOptions(index_name=members.get("index_name", "i"))
    name = members.get("table_name", "t")
    answer = table.service.call("ComputeSplits", table_name=name, search_index_splits_options=options)
    assert answer.splits_size == 1
    session: bytes = answer.session_id
    return session


def scan(table: Searches, session: bytes, timeout_ms: int = 0, **members: Any) -> Any:
    kind = members.pop("return_type", messages.RETURN_ALL_FROM_INDEX)
    members.setdefault("query", match_all())
    return table.service.call(
        "ParallelScan",
        table_name="t",
        index_name="i",
        session_id=session,
        scan_query=messages.ScanQuery(**members).SerializeToString(),
        columns_to_get=messages.ColumnsToGet(return_type=kind),
        timeout_ms=timeout_ms,
    )


@pytest.mark.parametrize("wanted", [match_all(), wildcard("k", "*")])
def test_the_token_after_the_last_rows_returns_none(table: Searches, wanted: messages.Query) -> None:
    session = session_of(table)
    first = scan(table, session, limit=7, query=wanted)
    second = scan(table, session, limit=7, token=first.next_token, query=wanted)
    third = scan(table, session, limit=7, token=second.next_token, query=wanted)
    assert keys_of(first) + keys_of(second) == list(range(10))
    assert second.next_token
    assert (keys_of(third), third.next_token) == ([], b"")


def test_sessions_expire(table: Searches) -> None:
    session = session_of(table)
    token = scan(table, session, limit=1, alive_time=30).next_token
    table.service.clock.advance(29)
    token = scan(table, session, token=token, limit=1, alive_time=10).next_token
    table.service.clock.advance(11)
    with pytest.raises(Refused, match="OTSSessionExpired"):
        scan(table, session, token=token)
    table.service.clock.advance(30)
    with pytest.raises(Refused, match="OTSSessionExpired"):
        scan(table, session)


def test_errors(table: Searches) -> None:
    with pytest.raises(Refused, match=r"OTSParameterInvalid.*table \[none\] does not exist"):
        session_of(table, table_name="none")
    with pytest.raises(Refused, match=r"OTSMetaNotMatch.*search index \[none\] does not exist"):
        session_of(table, index_name="none")
    with pytest.raises(Refused, match=r"\[search index splits options\] must not be null"):
        session_of(table, index_name="")
    session = session_of(table)
    for members, text in (
        ({"current_parallel_id": 101}, "current max_parallel is 1, current_parallel_id is 101"),
        ({"max_parallel": 2}, "current max_parallel_id is 2"),
        ({"return_type": messages.RETURN_ALL}, "return type"),
        ({"limit": limits.SCAN_ROWS_MAX + 1}, "limit"),
        ({"alive_time": limits.SCAN_ALIVE_MAX_S + 1}, "alive time"),
        ({"token": b"x"}, "Invalid session id or token"),
    ):
        with pytest.raises(Refused, match=text):
            scan(table, session, **members)
    assert (
        len(scan(table, session, limit=limits.SCAN_ROWS_MAX, alive_time=limits.SCAN_ALIVE_MAX_S).rows) == 10
    )


def test_a_search_evaluates_a_limited_number_of_rows(
    table: Searches, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "MOST_EVALUATED", 9)
    assert len(table.find(match_all())) == 10
    with pytest.raises(Refused, match="too many rows"):
        table.find(wildcard("k", "*"))
    monkeypatch.setattr(searching, "MOST_EVALUATED", 10)
    assert len(table.find(wildcard("k", "*"))) == 10


def test_a_search_takes_a_limited_time(table: Searches, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that advances a second with each of the 10 rows. The table's own order needs no evaluation."""
    session, slow = session_of(table), wildcard("k", "*")
    for limit_ms, timeout_ms, is_late in (
        (10_000, 0, False),
        (9_000, 0, True),
        (10_000, -1, False),
        (20_000, 10_000, False),
        (20_000, 9_000, True),
        (9_000, 20_000, True),
    ):
        monkeypatch.setattr(limits, "SEARCH_TIMEOUT_MS", limit_ms)
        searches: list[Callable[[messages.Query], Any]] = [
            lambda query, timeout_ms=timeout_ms: table.search(query, timeout_ms=timeout_ms),
            lambda query, timeout_ms=timeout_ms: scan(table, session, timeout_ms, query=query),
        ]
        for search in searches:
            monkeypatch.setattr(searching, "monotonic", itertools.count().__next__)
            if is_late:
                with pytest.raises(Refused, match=r"OTSTimeout.*The search timed out"):
                    search(slow)
            else:
                assert len(search(slow).rows) == 10
            assert len(search(match_all()).rows) == 10
