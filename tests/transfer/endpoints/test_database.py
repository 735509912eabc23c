"""Tables of databases as ends of a transfer, on each database."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tablegate.gateway.model.commands.stream_commands import ListStreams
from tablegate.gateway.model.commands.table_commands import CountRows, CreateTable, NewIndex
from tablegate.gateway.model.tables.indexes import IndexProjection
from tablegate.gateway.model.tables.tables import ExpiryRule, Rules, StreamRule
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Cell, Contents, Row
from tablegate.gateway.model.values.values import Kind, Value, decimal, text
from tablegate.transfer.endpoints.database import DatabaseEndpoint
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.errors import (
    BadAddress,
    CannotResume,
    PositionLost,
    SchemaChanged,
    ServiceUnavailable,
    TableAbsent,
    TransferError,
)
from tests.support.running import Process
from tests.support.waiting import wait_until
from tests.transfer.support.memory_endpoint import PAIR, row_of, rows_of

Opens = Callable[[str], DatabaseEndpoint]


@pytest.fixture
def opens() -> Iterator[Opens]:
    """Endpoints, closed at the end."""
    made: list[DatabaseEndpoint] = []

    def open_(address: str) -> DatabaseEndpoint:
        made.append(DatabaseEndpoint(address))
        return made[-1]

    yield open_
    for each in made:
        each.close()


@pytest.fixture
def things(opens: Opens, database_url: str) -> DatabaseEndpoint:
    """An empty table of the key PAIR."""
    endpoint = opens(f"{database_url}#things")
    endpoint.create(Definition("things", Service.TABLEGATE, PAIR))
    return endpoint


def all_rows(endpoint: DatabaseEndpoint, segments: int = 1) -> list[Row]:
    return [
        row for segment in endpoint.segments(segments) for page in endpoint.scan(segment) for row in page.rows
    ]


def shown(rows: list[Row]) -> dict[object, bytes]:
    return {row.position: row.body for row in rows}


def test_rows_come_back_as_they_were_written(things: DatabaseEndpoint) -> None:
    rows = rows_of(300)
    rows.append(row_of(PAIR, pk=text("p" * 2_000), sk=text("\x00é"), d=Value(Kind.DOUBLE, 0.5), n=decimal(1)))
    assert things.write(rows) == []
    assert shown(all_rows(things)) == shown(rows)
    assert shown(all_rows(things, segments=7)) == shown(rows)
    keys = [PAIR.decode(row.position) for row in rows]
    found = things.get([*keys, PAIR.key({"pk": text("no"), "sk": text("no")})])
    assert found[-1] is None
    assert shown([row for row in found if row is not None]) == shown(rows)
    things.delete(keys[:299])
    assert shown(all_rows(things)) == shown(rows[299:])


def test_rows_are_written_over(things: DatabaseEndpoint) -> None:
    things.write(rows_of(100))
    first = {row.position: row.modified_at for row in all_rows(things)}
    assert things.write(rows_of(100, size=20)) == []
    assert things.write(rows_of(3, size=20)) == []
    assert shown(all_rows(things)) == shown(rows_of(100, size=20))
    assert all(row.modified_at > first[row.position] for row in all_rows(things))


def test_a_scan_goes_on_after_a_page(things: DatabaseEndpoint) -> None:
    things.write(rows_of(5_000))
    [segment] = things.segments(1)
    pages = list(things.scan(segment))
    assert len(pages) > 2
    assert pages[-1].resume is None
    rest = [row.position for page in things.scan(segment, pages[0].resume) for row in page.rows]
    assert rest == [row.position for page in pages[1:] for row in page.rows]


def test_a_table_keeps_its_definition(opens: Opens, database_url: str) -> None:
    index = NewIndex("by_n", KeySchema((KeyColumn("n", Kind.DECIMAL),)), IndexProjection.INCLUDE, ("x",))
    stream = StreamRule("label", True, "NEW_IMAGE", 86_400_000, 5, {"a": 1})
    rules = Rules(expiry=ExpiryRule(attribute="t"), stream=stream, max_versions=3)
    properties = {"azuretable": {"policies": []}, "dynamodb": {"tags": {"a": "b"}}}
    given = Definition("things", Service.DYNAMODB, PAIR, (index,), rules, properties)
    endpoint = opens(f"{database_url}#12%2F3/things")
    assert endpoint.create(given) == []
    found = endpoint.describe()
    assert (found.service, found.key_schema, found.indexes, found.rules, found.properties) == (
        given.service, given.key_schema, given.indexes, given.rules, given.properties,
    )  # fmt: skip
    assert endpoint.list_tables() == ["things"]
    assert opens(f"{database_url}#things").list_tables() == []
    endpoint.create(given)  # a second time it is left alone
    other = KeySchema((KeyColumn("other", Kind.TEXT),))
    with pytest.raises(SchemaChanged):
        endpoint.create(Definition("things", Service.DYNAMODB, other))


def test_a_stream_begins_when_the_copy_is_complete(opens: Opens, database_url: str) -> None:
    rules = Rules(stream=StreamRule("label", True, "NEW_IMAGE", 86_400_000, 5))
    endpoint = opens(f"{database_url}#things")
    endpoint.create(Definition("things", Service.DYNAMODB, PAIR, rules=rules))
    endpoint.write(rows_of(30))
    assert endpoint.client.run([ListStreams("shared")]) == [[]]
    endpoint.close()
    endpoint = opens(f"{database_url}#things")
    endpoint.reopen()
    endpoint.finish()
    endpoint.finish()
    [[stream]] = endpoint.client.run([ListStreams("shared")])
    assert (stream.label, stream.rule.enabled) == ("label", True)
    assert "transfer" not in endpoint.describe().properties


@pytest.mark.parametrize(
    ("service", "key_schema"),
    [
        (Service.DYNAMODB, PAIR),
        (Service.TABLE_STORE, KeySchema((KeyColumn("a", Kind.INT64),), (KeyColumn("b", Kind.BYTES),))),
        (Service.AZURE_TABLE, KeySchema((KeyColumn("PartitionKey", Kind.TEXT),), (KeyColumn("RowKey", Kind.TEXT),))),
        (Service.TABLEGATE, PAIR),
    ],
)  # fmt: skip
def test_a_table_keeps_its_service(
    opens: Opens, database_url: str, service: Service, key_schema: KeySchema
) -> None:
    endpoint = opens(f"{database_url}#things")
    endpoint.create(Definition("things", service, key_schema))
    assert endpoint.describe().service is service


def test_indexes_have_entries_of_copied_rows(opens: Opens, database_url: str) -> None:
    index = NewIndex("by_number", KeySchema((KeyColumn("number", Kind.DECIMAL),)), IndexProjection.ALL)
    endpoint = opens(f"{database_url}#things")
    endpoint.create(Definition("things", Service.DYNAMODB, PAIR, (index,)))
    endpoint.write([row_of(PAIR, pk=text("p"), sk=text(f"{at}"), number=decimal(at)) for at in range(50)])
    [statistics] = endpoint.client.run([CountRows(endpoint.client.find())])
    assert statistics.indexes["by_number"][0] == 50


def test_values_without_a_time_keep_that_of_their_row(opens: Opens, database_url: str) -> None:
    """A table with a maximum age: a copied value keeps its age."""
    rules = Rules(expiry=ExpiryRule(age_ms=10_000), stamped=True)
    endpoint = opens(f"{database_url}#things")
    endpoint.create(Definition("things", Service.TABLE_STORE, PAIR, rules=rules))
    [fresh, old] = [row_of(PAIR, pk=text("p"), sk=text(name), x=text("x")) for name in ("fresh", "old")]
    old.modified_at = 1_700_000_000_000_0000
    stamped = Contents.of_cells(
        {"pk": text("p"), "sk": text("stamped")}, {"x": (Cell(text("2"), 1 << 42), Cell(text("1"), 1 << 41))}
    )
    position = PAIR.key({"pk": text("p"), "sk": text("stamped")}).position
    endpoint.write([fresh, old, Row(position, stamped, 5)])
    found = {row.latest["sk"].data: row for row in all_rows(endpoint)}
    assert set(found) == {"fresh", "stamped"}
    assert [cell.stamp_ms for cell in found["stamped"].cells["x"]] == [1 << 42, 1 << 41]


def test_changes_after_a_capture_are_returned(things: DatabaseEndpoint) -> None:
    things.write(rows_of(3))
    position = things.capture()
    assert position == things.capture()  # there is a stream by now
    nothing = things.changes(position)
    assert (nothing.keys, nothing.at_ms, nothing.caught_up) == ([], None, True)
    things.write(rows_of(30, start=2))
    things.delete([PAIR.decode(rows_of(1)[0].position)])
    things.write(rows_of(1, start=2))
    seen = things.changes(position)
    assert [key.position for key in seen.keys] == [
        row.position for row in [*rows_of(29, start=3), *rows_of(1), *rows_of(1, start=2)]
    ]
    assert seen.caught_up
    assert seen.at_ms is not None
    assert things.changes(seen.position).keys == []


def test_many_changes_are_read_in_several_calls(things: DatabaseEndpoint) -> None:
    position = things.capture()
    things.write(rows_of(700))
    first = things.changes(position)
    second = things.changes(first.position)
    assert (first.caught_up, second.caught_up) == (False, True)
    assert {key.position for key in [*first.keys, *second.keys]} == {row.position for row in rows_of(700)}


def test_changes_are_lost_with_their_stream(things: DatabaseEndpoint) -> None:
    from dataclasses import replace

    from tablegate.gateway.model.commands.table_commands import AlterTable

    position = things.capture()
    table = things.client.find(is_refreshed=True)
    assert table.rules.stream is not None
    off = replace(table.rules, stream=replace(table.rules.stream, enabled=False))
    things.client.run([AlterTable("", table, off, instant=True)])
    with pytest.raises(PositionLost):
        things.changes(position)


def test_no_change_made_while_capturing_is_missed(things: DatabaseEndpoint) -> None:
    """Every row is either in a scan after the capture or reported as a change."""
    stop = threading.Event()
    written: list[Row] = []

    def write() -> None:
        while not stop.is_set():
            row = rows_of(1, start=len(written))
            things.write(row)
            written.extend(row)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        wait_until(lambda: len(written) >= 5)
        position = things.capture()
        scanned = {row.position for row in all_rows(things)}
    finally:
        stop.set()
        writer.join()
    told = set()
    caught_up = False
    while not caught_up:
        seen = things.changes(position)
        position, caught_up = seen.position, seen.caught_up
        told |= {key.position for key in seen.keys}
    assert scanned | told == {row.position for row in written}


def test_missing_tables_and_folders_are_reported(opens: Opens, database_url: str, tmp_path: Path) -> None:
    with pytest.raises(TableAbsent):
        opens(f"{database_url}#things").describe()
    with pytest.raises(TableAbsent):
        opens(f"sqlite:///{tmp_path}/nothing.sqlite#things").describe()
    assert not (tmp_path / "nothing.sqlite").exists()
    with pytest.raises(TransferError, match="folder"):
        opens(f"sqlite:///{tmp_path}/no/folder.sqlite#things").create(
            Definition("things", Service.TABLEGATE, PAIR)
        )
    for address in ("sqlite:///x", "#things", "sqlite:///x#", "mysql://x#things", "sqlite://#things"):
        with pytest.raises(BadAddress):
            opens(address)
    with pytest.raises(ServiceUnavailable):
        opens("postgresql://me:hidden@127.0.0.1:1/x?connect_timeout=1#things").describe()


def test_no_password_is_shown(opens: Opens) -> None:
    endpoint = opens("postgresql://me:hidden@127.0.0.1:1/x#things")
    assert "hidden" not in endpoint.shown
    with pytest.raises(ServiceUnavailable) as raised:
        endpoint.describe()
    assert "hidden" not in str(raised.value)


def test_a_database_that_a_server_has_is_refused(opens: Opens, tmp_path: Path) -> None:
    process = Process(tmp_path, "--database", "things.sqlite")
    process.wait_until_ready()
    try:
        with pytest.raises(TransferError, match=rf"pid {process.pid}.*Stop it, or copy through it"):
            opens(f"sqlite:///{tmp_path}/things.sqlite#things").describe()
    finally:
        process.terminate()
    with pytest.raises(TableAbsent):
        opens(f"sqlite:///{tmp_path}/things.sqlite#things").describe()


def test_a_table_made_anew_is_another_one(things: DatabaseEndpoint) -> None:
    from tablegate.gateway.model.commands.table_commands import DropTable

    things.write(rows_of(3))
    things.client.run([DropTable(things.client.find(is_refreshed=True))])
    things.client.run([CreateTable("", "shared", "things", PAIR)])
    with pytest.raises(CannotResume):
        things.write(rows_of(3))
