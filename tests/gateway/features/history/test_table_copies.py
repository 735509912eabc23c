"""Tables emptied and copied whole: at one moment, with their indexes, times and rules, and without touching others."""

from __future__ import annotations

import threading

import pytest

from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.features.history.backup_commands import CopyTables, CreateBackup, ResetTables
from tablegate.gateway.features.jobs.job_commands import StartJob
from tablegate.gateway.model.commands.row_commands import WriteGroup
from tablegate.gateway.model.commands.table_commands import FindTable, ListTables
from tablegate.gateway.model.errors import GatewayError, StaleTable, TableMissing
from tablegate.gateway.model.tables.tables import ExpiryRule, Rules, StreamRule, Table
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import decimal, text
from tablegate.gateway.store.postgresql.pipeline import Pipeline
from tests.gateway.engine.conftest import Client, by_color, do_background_work, make_table
from tests.support.clock import Clock
from tests.support.waiting import wait_until

STREAM = StreamRule("label", True, "NEW_AND_OLD_IMAGES", 86_400_000, 0)


def found(engine: Engine, name: str, namespace: str = "") -> Table:
    [table] = engine.run([FindTable(namespace, name)])
    assert isinstance(table, Table), table
    return table


def filled(engine: Engine, rules: Rules = Rules(), name: str = "things", rows: int = 20) -> Client:
    client = Client(engine, make_table(engine, name, indexes=(by_color(),), rules=rules))
    for number in range(rows):
        client.write(client.put("a", number, color=text("red"), n=decimal(number), at=decimal(2_000_000_000)))
    return client


def outline(rows: list[Row]) -> list[tuple[object, int]]:
    return [(row.latest, row.modified_at) for row in rows]


def test_reset_empties_tables_and_keeps_their_definitions(engine: Engine) -> None:
    client = filled(engine, Rules(stream=STREAM))
    other = filled(engine, name="others")
    assert engine.run([ResetTables("", frozenset({"things"}), keeps_definitions=True)]) == [1]
    emptied = Client(engine, found(engine, "things"))
    assert emptied.rows() == []
    assert emptied.rows(index=emptied.table.index("by_color")) == []
    assert (emptied.table.key_schema, emptied.table.rules.stream is not None) == (
        client.table.key_schema,
        True,
    )
    assert len(other.rows()) == 20
    # A client with the old descriptor gets StaleTable, and its write is not kept.
    [answer] = engine.run([WriteGroup((client.put("b", 1),))])
    assert isinstance(answer, StaleTable)
    emptied.write(emptied.put("a", 1, color=text("red")))
    do_background_work(engine)
    assert len(emptied.rows()) == len(emptied.rows(index=emptied.table.index("by_color"))) == 1


def test_reset_drops_all_tables(engine: Engine) -> None:
    filled(engine)
    filled(engine, name="others")
    assert engine.run([ResetTables()]) == [2]
    assert engine.run([ListTables("")]) == [[]]
    make_table(engine)


def test_a_copy_is_equal_and_apart(engine: Engine) -> None:
    client = filled(engine)
    assert engine.run([CopyTables((("", "snapshot/one"),))]) == [1]
    client.write(client.remove("a", 3))
    assert engine.run([CopyTables((("snapshot/one", "fork"),))]) == [1]
    copied = Client(engine, found(engine, "things", "fork"))
    assert len(client.rows()) == 19
    assert len(copied.rows()) == len(copied.rows(index=copied.table.index("by_color"))) == 20
    assert outline(copied.rows())[:3] == outline(client.rows())[:3]
    # Restore to the original namespace, replacing its tables.
    assert engine.run([CopyTables((("snapshot/one", ""),))]) == [1]
    assert len(Client(engine, found(engine, "things")).rows()) == 20
    do_background_work(engine)
    assert len(Client(engine, found(engine, "things")).rows()) == 20
    assert len(copied.rows()) == 20


def test_rows_of_a_snapshot_do_not_expire_and_do_when_they_are_back(engine: Engine, clock: Clock) -> None:
    filled(engine, Rules(expiry=ExpiryRule(attribute="at")))
    engine.run([CopyTables((("", "snapshot/one"),))])
    clock.advance(40 * 365 * 86_400)
    do_background_work(engine)
    assert Client(engine, found(engine, "things")).rows() == []
    assert len(Client(engine, found(engine, "things", "snapshot/one")).rows()) == 20
    engine.run([CopyTables((("snapshot/one", ""),))])
    assert len(Client(engine, found(engine, "things")).rows()) == 20
    clock.advance(1)
    do_background_work(engine)
    assert Client(engine, found(engine, "things")).rows() == []


def test_a_copied_table_has_a_stream_of_its_own(engine: Engine) -> None:
    client = filled(engine, Rules(stream=STREAM))
    engine.run([CopyTables((("", "snapshot/one"),))])
    engine.run([CopyTables((("snapshot/one", "fork"),))])
    first, copied = client.table.rules.stream, found(engine, "things", "fork").rules.stream
    assert first is not None
    assert copied is not None
    assert (copied.label, copied.enabled) == (first.label, True)
    assert copied.id != first.id
    kept = found(engine, "things", "snapshot/one").rules.stream
    assert kept is not None


def test_reset_of_everything_leaves_snapshots(engine: Engine) -> None:
    filled(engine)
    engine.run([CopyTables((("", "snapshot/one"),))])
    assert engine.run([ResetTables()]) == [1]
    assert engine.run([CopyTables((("snapshot/one", ""),))]) == [1]
    assert len(Client(engine, found(engine, "things")).rows()) == 20


@pytest.mark.extended
def test_a_copy_under_writers_is_a_state_that_was(engine: Engine) -> None:
    """Eight writers move amounts between accounts of one table and another: the sum is the same in every copy."""
    left = Client(engine, make_table(engine, "left"))
    right = Client(engine, make_table(engine, "right"))
    for number in range(8):
        left.write(left.put("a", number, n=decimal(100)))
        right.write(right.put("a", number, n=decimal(100)))
    stopped = threading.Event()

    def move(number: int) -> None:
        amount = 0
        while not stopped.is_set():
            amount = (amount + 7) % 50
            [answer] = engine.run(
                [
                    WriteGroup(
                        (
                            left.put("a", number, n=decimal(100 - amount)),
                            right.put("a", number, n=decimal(100 + amount)),
                        )
                    )
                ]
            )
            assert not isinstance(answer, StaleTable)

    writers = [threading.Thread(target=move, args=(number,)) for number in range(8)]
    for writer in writers:
        writer.start()
    try:
        for turn in range(5):

            def is_copied(turn: int = turn) -> bool:
                [copied] = engine.run([CopyTables((("", f"snapshot/{turn}"),))])
                assert copied == 2 or isinstance(copied, GatewayError)
                return not isinstance(copied, GatewayError)

            wait_until(is_copied)
            total = 0
            for name in ("left", "right"):
                rows = Client(engine, found(engine, name, f"snapshot/{turn}")).rows()
                total += sum(int(row.latest["n"].data) for row in rows)
            assert total == 1600
    finally:
        stopped.set()
        for writer in writers:
            writer.join()


@pytest.mark.parametrize("missing", ["snapshot/none"])
def test_a_copy_of_nothing_is_nothing(engine: Engine, missing: str) -> None:
    filled(engine)
    assert engine.run([CopyTables(((missing, "fork"),))]) == [0]
    assert engine.run([ListTables("fork")]) == [[]]


@pytest.mark.parametrize("keeps_definitions", [True, False])
def test_many_tables_cost_no_more_round_trips_than_few(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, keeps_definitions: bool
) -> None:
    """Each statement costs a round trip, so their number determines the time of a reset."""
    trips: list[int] = []
    plain = Pipeline.settle
    monkeypatch.setattr(Pipeline, "settle", lambda self: (trips.append(1), plain(self))[1])
    counts = []
    for tables in (2, 20, 20):
        for number in range(tables):
            table = make_table(engine, f"things{number}", indexes=(by_color(),))
            if not keeps_definitions:
                engine.run([CreateBackup(table, "first")])
                engine.run([StartJob("export", "", table.name, {}, "running", 99)])
        trips.clear()
        assert engine.run([ResetTables("", keeps_definitions=keeps_definitions)]) == [tables]
        counts.append(len(trips))
        engine.run([ResetTables("")])
    assert counts[1] == counts[2] <= counts[0]


@pytest.mark.parametrize("namespace", ["", None])
@pytest.mark.parametrize("keeps_definitions", [True, False])
def test_a_reset_of_no_tables_changes_nothing(
    engine: Engine, namespace: str | None, keeps_definitions: bool
) -> None:
    client = filled(engine)
    assert engine.run([ResetTables(namespace, frozenset(), keeps_definitions)]) == [0]
    assert len(client.rows()) == 20


def test_a_missing_table_is_reported_and_nothing_is_reset(engine: Engine) -> None:
    client = filled(engine)
    [outcome] = engine.run([ResetTables("", frozenset({"things", "nothing"}))])
    assert isinstance(outcome, TableMissing)
    assert len(client.rows()) == 20
