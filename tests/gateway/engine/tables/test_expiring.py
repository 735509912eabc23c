"""Rows expire by their rule, unless they were written in the meantime."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.engine import scheduler
from tablegate.gateway.engine.engine import Engine, EngineOptions
from tablegate.gateway.engine.scheduler import MIN_ROWS
from tablegate.gateway.engine.tables import expiring
from tablegate.gateway.features.local_transactions.local_transaction_commands import BeginTransaction
from tablegate.gateway.model.commands.row_commands import WriteGroup
from tablegate.gateway.model.commands.table_commands import AlterTable, DropTable, FindTable
from tablegate.gateway.model.commands.writes import Replace, Write
from tablegate.gateway.model.errors import Busy, DatabaseFailed, StaleTable
from tablegate.gateway.model.tables.tables import ExpiryRule, Rules
from tablegate.gateway.model.values.keys import encode_column, slot_of
from tablegate.gateway.model.values.values import Value, decimal, text
from tablegate.gateway.store.rows import rows
from tablegate.gateway.store.sql.databases import Database, RetryableFailure
from tablegate.gateway.store.store import Store
from tests.gateway.engine.conftest import PAIR, Client, by_color, do_background_work, make_table
from tests.gateway.engine.rows.test_loading import STREAM, contents, stored
from tests.support.clock import Clock


def expiring_table(engine: Engine) -> Client:
    return Client(engine, make_table(engine, rules=Rules(expiry=ExpiryRule(attribute="ttl"))))


def in_seconds(clock: Clock, seconds: float) -> Value:
    return decimal(clock.ms // 1000 + int(seconds))


def due(engine: Engine, clock: Clock, limit: int) -> list[expiring.ExpiredRow]:
    batch = expiring.due(engine._store, clock.ms, limit)
    assert batch is not None
    return batch.rows


def names(things: Client) -> list[str]:
    return [row.latest["p"].data for row in things.rows()]


def test_a_row_is_deleted_after_its_second_has_passed(engine: Engine, clock: Clock) -> None:
    things = expiring_table(engine)
    things.write(
        things.put("soon", ttl=in_seconds(clock, 10)), things.put("later", ttl=in_seconds(clock, 100))
    )
    do_background_work(engine)
    assert names(things) == ["later", "soon"]
    clock.advance(11)
    do_background_work(engine)
    assert names(things) == ["later"]


def test_only_numbers_of_the_last_five_years_count(engine: Engine, clock: Clock) -> None:
    """docs/protocols/dynamodb.md rule 39."""
    things = expiring_table(engine)
    years = 365 * 86_400
    things.write(
        things.put("text", ttl=text("1")),
        things.put("none"),
        things.put("long-ago", ttl=in_seconds(clock, -6 * years)),
        things.put("ago", ttl=in_seconds(clock, -4 * years)),
        things.put("endless", ttl=decimal("1e100")),
    )
    do_background_work(engine)
    assert names(things) == ["endless", "long-ago", "none", "text"]


def test_a_row_that_was_written_since_stays(engine: Engine, clock: Clock) -> None:
    things = expiring_table(engine)
    things.write(things.put("a", ttl=in_seconds(clock, -10)))
    expired = due(engine, clock, 10)
    things.write(things.put("a", ttl=in_seconds(clock, 100)))
    assert expiring.remove(engine._store, expired) == expired
    engine.run(list(expiring.deletes_of(expired)))
    assert names(things) == ["a"]


def test_changing_the_rule_changes_what_expires(engine: Engine, clock: Clock) -> None:
    things = Client(engine, make_table(engine))
    things.write(*(things.put(f"p{n}", ttl=in_seconds(clock, -10)) for n in range(600)))
    before = {row.position: row.modified_at for row in things.rows()}
    do_background_work(engine)
    assert len(things.rows()) == 600
    assert {row.position: row.modified_at for row in things.rows()} == before
    [things.table] = engine.run(
        [AlterTable("test", things.table, rules=Rules(expiry=ExpiryRule(attribute="ttl")))]
    )
    do_background_work(engine)
    assert things.rows() == []


def test_without_a_rule_nothing_expires_any_more(engine: Engine, clock: Clock) -> None:
    things = expiring_table(engine)
    things.write(*(things.put(f"p{n}", ttl=in_seconds(clock, 10)) for n in range(3)))
    [things.table] = engine.run([AlterTable("test", things.table, rules=Rules())])
    clock.advance(20)
    do_background_work(engine)
    assert len(things.rows()) == 3


@pytest.mark.parametrize("has_index", [False, True], ids=["no index", "index"])
@pytest.mark.parametrize(
    "rule", [ExpiryRule(attribute="t"), ExpiryRule(age_ms=1_000)], ids=["attribute", "age"]
)
def test_bulk_removal_and_single_deletes_leave_the_same(
    database: Database, engine: Engine, clock: Clock, rule: ExpiryRule, has_index: bool
) -> None:
    indexes = (by_color(),) if has_index else ()
    rules = Rules(expiry=rule, stamped=rule.age_ms is not None)
    tables = [Client(engine, make_table(engine, name, indexes=indexes, rules=rules)) for name in "ab"]
    chance = random.Random(f"{rule} {has_index}")
    for _ in range(4):
        batch = [contents(tables[0], chance) for _ in range(30)]
        for table in tables:
            engine.run(
                [WriteGroup((Write(table.table, PAIR.key(row.latest), Replace(row)),)) for row in batch]
            )
    clock.advance(chance.randrange(20, 80) if rule.attribute else 10)
    expired = due(engine, clock, 1_000)
    by_table = [[row for row in expired if row[0].id == table.table.id] for table in tables]
    assert len(by_table[0]) == len(by_table[1]) > 0
    assert expiring.fast_remove(engine._store, by_table[0]) == []
    engine.run(list(expiring.deletes_of(by_table[1])))
    assert stored(database, tables[0]) == stored(database, tables[1])
    assert expiring.due(engine._store, clock.ms, 1_000) is None


@pytest.mark.fast_paths
def test_rows_of_tables_with_streams_need_the_write_path(engine: Engine, clock: Clock) -> None:
    plain = expiring_table(engine)
    rules = Rules(expiry=ExpiryRule(attribute="ttl"), stream=STREAM)
    recorded = Client(engine, make_table(engine, "recorded", rules=rules))
    for table in (plain, recorded):
        table.write(table.put("a", ttl=in_seconds(clock, -10)), table.put("b", ttl=in_seconds(clock, -10)))
    expired = due(engine, clock, 10)
    remaining = expiring.remove(engine._store, expired)
    assert {table.name for table, _ in remaining} == {"recorded"}
    assert (names(plain), names(recorded)) == ([], ["a", "b"])
    do_background_work(engine)
    assert names(recorded) == []


@pytest.mark.fast_paths
def test_one_changed_row_sends_the_whole_batch_to_the_write_path(engine: Engine, clock: Clock) -> None:
    things = expiring_table(engine)
    things.write(*(things.put(f"p{n}", ttl=in_seconds(clock, -10)) for n in range(5)))
    expired = due(engine, clock, 10)
    things.write(things.put("p3"))
    assert expiring.remove(engine._store, expired) == expired
    assert len(things.rows()) == 5
    engine.run(list(expiring.deletes_of(expired)))
    assert names(things) == ["p3"]


def test_expired_rows_are_counted_as_work_that_is_left(engine: Engine, clock: Clock) -> None:
    things = expiring_table(engine)
    things.write(*(things.put(f"p{n}", ttl=in_seconds(clock, -10)) for n in range(300)))
    batch = engine.background.next_batch()
    while batch is not None and batch.work != "expiry_sweep":
        batch = engine.background.next_batch()
    assert batch is not None
    assert batch.rows + engine.background.rows_left["expiry_sweep"] == 300


def test_a_table_is_dropped_while_its_rows_expire(engine: Engine, clock: Clock) -> None:
    things = Client(
        engine, make_table(engine, indexes=(by_color(),), rules=Rules(expiry=ExpiryRule(attribute="ttl")))
    )
    things.write(
        *(things.put(f"p{n}", color=text("red"), ttl=in_seconds(clock, -10)) for n in range(2 * MIN_ROWS))
    )
    expired = due(engine, clock, MIN_ROWS)
    engine.run([DropTable(things.table)])
    assert expiring.remove(engine._store, expired) == expired
    answers = engine.run(list(expiring.deletes_of(expired)))
    assert {type(answer) for answer in answers} == {StaleTable}
    finish(engine)
    with engine._store.read() as session:
        for table in ("rows", "entries", "purges"):
            assert session.query(f"SELECT count(*) FROM {table}") == [(0,)]


# Rows that stay


def finish(engine: Engine) -> None:
    """Run background work until there is none, which must come with a clock that stands still, too."""
    for _ in range(30):
        if engine.background.next_batch() is None:
            return
    pytest.fail("background work does not end")


def frozen(engine: Engine, clock: Clock) -> Engine:
    """Another engine on the database, with a clock that does not advance when it is read."""
    made = new_engine(engine._store, EngineOptions(sweep_period_s=0), Clock(start_ns=clock()))
    made.register_view("test", lambda value, is_partition: value)
    return made


def test_expiry_goes_on_beside_a_table_that_is_being_deleted(engine: Engine, clock: Clock) -> None:
    rules = Rules(expiry=ExpiryRule(attribute="ttl"))
    going, staying = (Client(engine, make_table(engine, name, rules=rules)) for name in ("going", "staying"))
    going.write(*(going.put(f"p{n}", ttl=in_seconds(clock, -20)) for n in range(MIN_ROWS + 1)))
    staying.write(staying.put("a", ttl=in_seconds(clock, -10)))
    engine.run([DropTable(going.table, delay_ms=60_000)])
    finish(frozen(engine, clock))
    assert names(staying) == []
    assert count_of(engine, going) == MIN_ROWS + 1
    clock.advance(61)
    finish(frozen(engine, clock))
    assert count_of(engine, going) == 0


def count_of(engine: Engine, things: Client) -> int:
    with engine._store.read() as session:
        return rows.count(session, things.table.id)[0]


def test_expiry_goes_on_beside_a_locked_partition(engine: Engine, clock: Clock) -> None:
    things = expiring_table(engine)
    partition = encode_column(text("locked"))
    things.write(*(things.put("locked", n, ttl=in_seconds(clock, -20)) for n in range(MIN_ROWS + 1)))
    things.write(things.put("free", ttl=in_seconds(clock, -10)))
    lifetime_ms = 600_000
    [opened] = engine.run(
        [BeginTransaction(things.table, partition, f"id-{slot_of(partition):04x}", lifetime_ms)]
    )
    assert not isinstance(opened, Exception), opened
    [things.table] = engine.run([FindTable("", "things")])
    finish(frozen(engine, clock))
    assert set(names(things)) == {"locked"}
    clock.advance(lifetime_ms // 1_000 + 1)
    finish(frozen(engine, clock))
    assert names(things) == []


@pytest.mark.damages_rows
def test_expiry_goes_on_beside_damaged_rows(engine: Engine, clock: Clock) -> None:
    things = expiring_table(engine)
    things.write(*(things.put("damaged", n, ttl=in_seconds(clock, -20)) for n in range(MIN_ROWS + 1)))
    with engine._store.write() as session:
        session.execute("UPDATE rows SET body = ?", (b"{}",))
    things.write(things.put("sound", ttl=in_seconds(clock, -10)))
    finish(frozen(engine, clock))
    assert count_of(engine, things) == MIN_ROWS + 1


def test_more_rows_than_a_batch_that_are_due_at_the_same_time_go_in_one_sweep(
    engine: Engine, clock: Clock
) -> None:
    going = expiring_table(engine)
    staying = Client(engine, make_table(engine, "staying", rules=going.table.rules))
    for things in (going, staying):
        things.write(*(things.put(f"p{n}", ttl=in_seconds(clock, -20)) for n in range(2 * MIN_ROWS + 1)))
    engine.run([DropTable(going.table)])
    stopped = frozen(engine, clock)
    stopped.background.catch_up()
    assert names(staying) == []


@pytest.mark.parametrize("failures", [1, 10])
def test_a_sweep_after_a_move_of_the_clock_waits_for_the_database(
    engine: Engine, clock: Clock, monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    """After a failover the connections are closed, and some attempts fail."""
    things = expiring_table(engine)
    things.write(things.put("p", ttl=in_seconds(clock, -20)))
    stopped = frozen(engine, clock)
    find = rows.expired
    left = [RetryableFailure("the connection is closed")] * failures

    def failing(*arguments: Any) -> Any:
        if left:
            raise left.pop()
        return find(*arguments)

    monkeypatch.setattr(rows, "expired", failing)
    stopped.background.catch_up()
    assert names(things) == []


def test_a_sweep_after_a_move_of_the_clock_ends_with_the_error_of_the_database(
    engine: Engine, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = frozen(engine, clock)

    def failing(*_: Any) -> Any:
        raise DatabaseFailed("no such column")

    monkeypatch.setattr(rows, "expired", failing)
    with pytest.raises(DatabaseFailed, match="no such column"):
        stopped.background.catch_up()


def test_rows_due_at_the_same_time_go_beside_another_sweep(
    engine: Engine, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread or server may delete the whole batch after it was read. The others of that time go, too."""
    things = expiring_table(engine)
    things.write(*(things.put("p", n, ttl=in_seconds(clock, -20)) for n in range(3 * MIN_ROWS)))
    monkeypatch.setattr(scheduler, "_CATCH_UP_ROWS", MIN_ROWS)
    remove = expiring.remove
    others = [True]

    def removed_by_another(store: Store, expired_rows: list[expiring.ExpiredRow]) -> object:
        if others:
            others.clear()
            engine.run(list(expiring.deletes_of(expired_rows)))
        return remove(store, expired_rows)

    monkeypatch.setattr(expiring, "remove", removed_by_another)
    frozen(engine, clock).background.catch_up()
    assert names(things) == []


def test_only_the_rows_of_a_batch_that_fails_stay(
    engine: Engine, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    things = expiring_table(engine)
    things.write(*(things.put("p", n, ttl=in_seconds(clock, -20)) for n in range(3 * MIN_ROWS)))
    monkeypatch.setattr(expiring, "remove", expiring._write_all)
    failures = [Busy()]

    def write(groups: list[WriteGroup]) -> list[object]:
        return [failures.pop()] * len(groups) if failures else engine.run(list(groups))

    sweep = expiring.Sweep(engine._store, write)
    assert [sweep.next_batch(clock.ms, MIN_ROWS) for _ in range(4)] == [0, MIN_ROWS, MIN_ROWS, None]
    assert len(names(things)) == MIN_ROWS
