"""The table in memory obeys the endpoint protocol, and fails as configured."""

from __future__ import annotations

import itertools

import pytest

from tablegate.transfer.errors import PositionLost, ServiceUnavailable, TableAbsent
from tests.transfer.support.memory_endpoint import (
    PAIR,
    MemoryEndpoint,
    MemoryTable,
    PollingMemoryEndpoint,
    definition_of,
    rows_of,
)


def test_segments_are_the_whole_table_and_do_not_overlap() -> None:
    endpoint = MemoryEndpoint(MemoryTable(definition_of(), rows_of(100)), page_rows=7)
    found = [
        row.position
        for segment in endpoint.segments(4)
        for page in endpoint.scan(segment)
        for row in page.rows
    ]
    assert sorted(found) == sorted(endpoint.table.rows)


def test_a_scan_goes_on_after_a_page() -> None:
    endpoint = MemoryEndpoint(MemoryTable(definition_of(), rows_of(30)), page_rows=7)
    [segment] = endpoint.segments(1)
    pages = list(endpoint.scan(segment))
    rest = list(endpoint.scan(segment, pages[1].resume))
    assert [row.position for page in rest for row in page.rows] == [
        row.position for page in pages[2:] for row in page.rows
    ]
    assert pages[-1].resume is None
    assert all(page.resume is not None for page in pages[:-1])


def test_rows_are_written_read_and_deleted() -> None:
    endpoint = MemoryEndpoint(MemoryTable(definition_of()))
    rows = rows_of(3)
    assert endpoint.write(rows) == []
    keys = [PAIR.decode(row.position) for row in rows]
    assert endpoint.get(keys) == rows
    endpoint.delete(keys[:1])
    assert endpoint.get(keys) == [None, *rows[1:]]


def test_changes_after_a_capture_are_returned() -> None:
    endpoint = MemoryEndpoint(MemoryTable(definition_of(), rows_of(3)), page_rows=2)
    position = endpoint.capture()
    assert endpoint.changes(position).keys == []
    rows = rows_of(3, start=2)
    endpoint.write(rows)
    first = endpoint.changes(position)
    second = endpoint.changes(first.position)
    assert (first.caught_up, second.caught_up) == (False, True)
    assert [key.position for key in itertools.chain(first.keys, second.keys)] == [
        row.position for row in rows
    ]
    endpoint.table.forget_changes()
    with pytest.raises(PositionLost):
        endpoint.changes(first.position)


def test_polling_does_not_see_deletes() -> None:
    endpoint = PollingMemoryEndpoint(MemoryTable(definition_of(), rows_of(3)))
    position = endpoint.capture()
    endpoint.table.remove(rows_of(1)[0].position)
    assert endpoint.changes(position).keys == []


def test_calls_fail_as_configured() -> None:
    endpoint = MemoryEndpoint(MemoryTable(definition_of()))
    endpoint.fail("write", ServiceUnavailable("cut"), after=1)
    endpoint.writes_half = True
    endpoint.write(rows_of(2))
    with pytest.raises(ServiceUnavailable):
        endpoint.write(rows_of(2, start=2))
    assert len(endpoint.table.rows) == 3
    endpoint.write(rows_of(2, start=2))
    assert len(endpoint.table.rows) == 4
    endpoint.reject = lambda row: ("TooLarge", "too large")
    assert [reject.code for reject in endpoint.write(rows_of(1))] == ["TooLarge"]


def test_a_table_may_be_absent() -> None:
    endpoint = MemoryEndpoint(MemoryTable(None))
    with pytest.raises(TableAbsent):
        endpoint.describe()
    endpoint.create(definition_of())
    assert endpoint.describe() == definition_of()
