"""Restores to any moment, backups, and retained dropped tables, compared with a model."""

from __future__ import annotations

import random
import threading
import uuid
from dataclasses import dataclass, field

import pytest

from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.engine.engine import Engine, EngineOptions, run_with_retries
from tablegate.gateway.features.history.backup_commands import (
    Backup,
    BackupKind,
    CreateBackup,
    DeleteBackup,
    KeepHistory,
    ListBackups,
    ResetTables,
    RestoreTable,
)
from tablegate.gateway.model.commands.row_commands import BulkLoad, IdempotencyToken, WriteGroup
from tablegate.gateway.model.commands.table_commands import (
    AlterTable,
    CreateTable,
    DropTable,
    FindTable,
    NewIndex,
)
from tablegate.gateway.model.errors import (
    BackupBusy,
    BackupMissing,
    Contended,
    GatewayError,
    GroupRefused,
    StaleTable,
    TableExists,
    TableMissing,
    TimeNotRetained,
)
from tablegate.gateway.model.expressions.predicates import RowExists
from tablegate.gateway.model.expressions.updates import Literal, SetTo
from tablegate.gateway.model.tables.tables import ExpiryRule, Rules, State, Table
from tablegate.gateway.model.values.rows import TICKS_PER_MS
from tablegate.gateway.model.values.values import Kind, Value, decimal, text
from tablegate.gateway.store.sql.databases import Database
from tablegate.gateway.store.store import Store
from tests.gateway.engine.conftest import Client, by_color, do_background_work, make_table
from tests.support.clock import Clock
from tests.support.soak import minutes_long
from tests.support.stored_tables import StoredRows, stored_entries, stored_rows
from tests.support.waiting import wait_until

DAY_S = 86_400


def run(engine: Engine, command: object) -> object:
    [answer] = engine.run([command])  # type: ignore[list-item]
    if isinstance(answer, GatewayError):
        raise answer
    return answer


def found(engine: Engine, name: str, namespace: str = "") -> Table:
    table = run(engine, FindTable(namespace, name))
    assert isinstance(table, Table)
    return table


def right_entries(engine: Engine, table: Table) -> int:
    """Return the number of index entries that the rows of a table need."""
    client = Client(engine, table)
    return sum(index.entry(row) is not None for row in client.rows() for index in table.indexes)


def keeping(engine: Engine, table: Table, days: int | None = 35) -> Client:
    kept = run(engine, KeepHistory(table, days))
    assert isinstance(kept, Table)
    return Client(engine, kept)


def as_was(source: Table, name: str, namespace: str = "") -> CreateTable:
    new = [
        NewIndex(index.name, index.key_schema, index.projection, index.included, index.local)
        for index in source.indexes
    ]
    return CreateTable("test", namespace, name, source.key_schema, tuple(new))


def restored(engine: Engine, source: Table | Backup, at: int | None, name: str) -> Table:
    definition = source if isinstance(source, Table) else source.source
    made = run(engine, RestoreTable(as_was(definition, name), source, at))
    assert isinstance(made, Table)
    assert made.state_at(1 << 50) is State.CREATING
    do_background_work(engine)
    return found(engine, name)


@dataclass
class Model:
    """A table that is written at random, and what it was after each write."""

    engine: Engine
    clock: Clock
    name: str
    dice: random.Random
    states: list[tuple[int, StoredRows]] = field(default_factory=list)

    @property
    def client(self) -> Client:
        return Client(self.engine, found(self.engine, self.name))

    def note(self) -> None:
        state = stored_rows(self.engine, self.client.table.id)
        self.states.append((self.clock.ns // 100, state))

    def step(self) -> None:
        client, dice = self.client, self.dice
        key = dice.choice("abc"), dice.randrange(8)
        color = {"color": text(dice.choice(["red", "blue"]))} if dice.random() < 0.7 else {}
        at = {"at": decimal(self.clock.ms // 1000 + dice.randrange(1, 40))} if dice.random() < 0.3 else {}
        more = {"n": decimal(dice.randrange(1000)), **color, **at}
        match dice.randrange(8):
            case 0 | 1:
                client.write(client.put(*key, **more))
            case 2:
                client.write(client.edit(*key, SetTo(("n",), Literal(decimal(dice.randrange(1000))))))
            case 3:
                client.write(client.remove(*key))
            case 4:  # a transaction; half of them fail
                token = IdempotencyToken("s", str(dice.random()), b"1", 1000) if dice.random() < 0.5 else None
                writes = tuple(client.put("t", number, **more) for number in range(3))
                condition = RowExists() if dice.random() < 0.5 else client.put("t").condition
                [answer] = self.engine.run(
                    [WriteGroup((*writes, client.put("u", key[1], condition, **more)), token)]
                )
                assert isinstance(answer, (list, GroupRefused))
            case 5:
                [answer] = self.engine.run(
                    [BulkLoad(client.table, [(client.key(*key).position, client.contents(*key, **more))])]
                )
                assert answer is None
            case 6:  # several groups in one transaction of the database, some of one row
                client.write(client.put(*key, **more), client.remove(*key), client.put("a", 0, **more))
            case 7:
                self.clock.advance(dice.random() * 20)
                do_background_work(self.engine)
        self.note()
        self.clock.advance(dice.random() / 100)

    def at(self, ticks: int) -> StoredRows:
        return [state for noted, state in self.states if noted <= ticks][-1]


RULES = Rules(expiry=ExpiryRule(attribute="at"))


def restores_like_the_model(engine: Engine, clock: Clock, seed: int, restores: int) -> None:
    dice = random.Random(seed)
    keeping(engine, make_table(engine, f"t{seed}", indexes=(by_color(),), rules=RULES))
    model = Model(engine, clock, f"t{seed}", dice)
    model.note()
    first = model.states[0][0]
    for _ in range(restores * 4):
        model.step()
    source = model.client.table
    for number in range(restores):
        at = dice.choice(model.states)[0] if number % 2 else dice.randrange(first, clock.ns // 100)
        wanted = model.at(at)
        name = f"r{seed}.{number}"
        run(engine, RestoreTable(as_was(source, name), source, at))
        for _ in range(dice.randrange(4)):  # it is written while it is copied
            model.step()
            engine.background.next_batch()
        do_background_work(engine)
        made = found(engine, name)
        assert made.state_at(clock.ms) is State.ACTIVE
        assert stored_rows(engine, made.id) == wanted
        assert len(stored_entries(engine, made)[0]) == right_entries(engine, made)
        source = model.client.table
        run(engine, ResetTables("", frozenset({name})))


@pytest.mark.extended
def test_restores_at_random_moments_equal_the_model(engine: Engine, clock: Clock) -> None:
    """issue: 50 here, 1,000 in the soak."""
    restores_like_the_model(engine, clock, seed=1, restores=50)


@pytest.mark.soak
@minutes_long
def test_restores_at_a_thousand_moments_equal_the_model(engine: Engine, clock: Clock) -> None:
    for seed in range(2, 22):
        restores_like_the_model(engine, clock, seed, restores=25)


def test_a_table_without_a_history_cannot_be_gone_back_in(engine: Engine, things: Client) -> None:
    with pytest.raises(TimeNotRetained) as error:
        run(engine, RestoreTable(as_was(things.table, "r"), things.table))
    assert error.value.earliest_ms is None
    with pytest.raises(TableMissing):
        found(engine, "r")


def test_the_window_is_exact(engine: Engine, things: Client, clock: Clock) -> None:
    client = keeping(engine, things.table, days=1)
    rule = client.table.rules.history
    assert rule is not None
    since_ms = rule.since_ms
    clock.advance(10)
    for at_ms, is_kept in ((since_ms - 1, False), (since_ms, True), (clock.ms, True), (clock.ms + 1, False)):
        [answer] = engine.run(
            [RestoreTable(as_was(client.table, f"r{at_ms}"), client.table, at_ms * TICKS_PER_MS)]
        )
        assert isinstance(answer, Table) is is_kept, (at_ms, answer)
    clock.advance(DAY_S)
    assert rule.earliest_ms(clock.ms) == clock.ms - DAY_S * 1000


@pytest.mark.parametrize("has_foreign_kinds", [False, True])
@pytest.mark.parametrize("tables", [1, 2])
def test_puts_without_a_look_are_recorded_once(
    engine: Engine, clock: Clock, has_foreign_kinds: bool, tables: int
) -> None:
    """Covers existing rows, missing rows and keys too long for an index.

    A row with kinds of another dialect must be read first. A table without a history is in the same list.
    """
    long = random.Random(1).randbytes(2_000).hex()
    kept = [keeping(engine, make_table(engine, f"t{number}")) for number in range(tables)]
    other = Client(engine, make_table(engine, "other"))
    guid = {"g": Value(Kind.GUID, uuid.UUID(int=1))} if has_foreign_kinds else {}
    for client in kept:
        client.write(client.put("a", 1), client.put("a", 2, **guid), client.put(long, 1))
    states = [stored_rows(engine, client.table.id) for client in kept]
    at = clock.ns // 100
    before = recorded(engine)
    clock.advance(1)
    puts = [
        client.put(p, s, n=decimal(5))
        for client in (*kept, other)
        for p, s in (("a", 1), ("a", 2), ("a", 3), (long, 1), (long, 2))
    ]
    answers = engine.run([WriteGroup((write,)) for write in (*puts, *puts[:2])])
    assert all(isinstance(answer, list) for answer in answers)
    assert recorded(engine) == before + 5 * tables
    for number, (client, state) in enumerate(zip(kept, states, strict=True)):
        assert len(stored_rows(engine, client.table.id)) == 5
        run(engine, RestoreTable(as_was(client.table, f"r{number}"), client.table, at))
        do_background_work(engine)
        assert stored_rows(engine, found(engine, f"r{number}").id) == state


def test_a_history_is_trimmed_at_the_end_of_its_days(engine: Engine, things: Client, clock: Clock) -> None:
    client = keeping(engine, things.table, days=1)
    client.write(client.put("a", 1))
    client.write(client.put("a", 1, n=decimal(2)))
    clock.advance(DAY_S - 60)
    client.write(client.put("a", 1, n=decimal(3)))
    engine.background.catch_up()
    assert recorded(engine) == 3
    clock.advance(61)
    engine.background.catch_up()
    assert recorded(engine) == 1


def recorded(engine: Engine) -> int:
    with engine._store.read() as session:
        return int(session.query("SELECT count(*) FROM history")[0][0])


def test_a_history_ends_and_begins_anew(engine: Engine, things: Client, clock: Clock) -> None:
    client = keeping(engine, things.table)
    client.write(client.put("a", 1))
    assert recorded(engine) == 1
    client = keeping(engine, client.table, None)
    assert client.table.rules == Rules()
    client.write(client.put("a", 1, n=decimal(1)))
    do_background_work(engine)
    assert recorded(engine) == 0
    clock.advance(5)
    client = keeping(engine, client.table)
    rule = client.table.rules.history
    assert rule is not None
    assert rule.since_ms == clock.ms
    again = keeping(engine, client.table, 7).table.rules.history
    assert again is not None
    assert (again.since_ms, again.id, again.days) == (rule.since_ms, rule.id, 7)


def test_a_table_without_a_history_records_nothing(engine: Engine, things: Client) -> None:
    things.write(things.put("a", 1), things.put("a", 2))
    assert recorded(engine) == 0


def test_a_write_with_the_old_descriptor_is_rejected(engine: Engine, things: Client) -> None:
    keeping(engine, things.table)
    [answer] = engine.run([WriteGroup((things.put("a", 1),))])
    assert isinstance(answer, StaleTable)


def test_a_dropped_table_with_a_history_is_kept_for_35_days(
    engine: Engine, things: Client, clock: Clock
) -> None:
    client = keeping(engine, things.table)
    client.write(*[client.put("a", number, color=text("red")) for number in range(20)])
    state = stored_rows(engine, client.table.id)
    run(engine, DropTable(found(engine, "things")))
    with pytest.raises(TableMissing):
        found(engine, "things")
    make_table(engine, "things")  # the name is free
    do_background_work(engine)
    [backup] = run(engine, ListBackups(""))  # type: ignore[misc]
    assert (backup.kind, backup.rows, backup.ready) == (BackupKind.SYSTEM, 20, True)
    assert backup.expires_at_ms == backup.created_at_ms + 35 * DAY_S * 1000
    assert stored_rows(engine, restored(engine, backup, None, "again").id) == state
    assert recorded(engine) == 0
    clock.advance(35 * DAY_S + 1)
    engine.background.catch_up()
    do_background_work(engine)
    assert run(engine, ListBackups("")) == []
    assert stored_rows(engine, backup.copy_id) == {}


def test_a_reset_keeps_nothing(engine: Engine, things: Client) -> None:
    client = keeping(engine, things.table)
    client.write(client.put("a", 1))
    run(engine, ResetTables("", keeps_definitions=True))
    made = found(engine, "things")
    assert made.rules.history is not None
    do_background_work(engine)
    assert recorded(engine) == 0
    assert run(engine, ListBackups("")) == []
    run(engine, ResetTables())
    do_background_work(engine)
    assert run(engine, ListBackups("")) == []


def test_a_reset_drops_backups_with_their_tables(engine: Engine, things: Client) -> None:
    things.write(*[things.put("a", number) for number in range(20)])
    run(engine, CreateBackup(things.table, "ready"))
    do_background_work(engine)
    run(engine, ResetTables("", keeps_definitions=True))
    run(engine, ResetTables("", frozenset({"things"})))
    [backup] = run(engine, ListBackups(""))  # type: ignore[misc]
    run(engine, RestoreTable(as_was(things.table, "again"), backup))
    run(engine, CreateBackup(make_table(engine, "other"), "under way"))
    run(engine, ResetTables("elsewhere"))
    assert len(run(engine, ListBackups(""))) == 2  # type: ignore[arg-type]
    run(engine, ResetTables(""))
    assert run(engine, ListBackups("")) == []
    do_background_work(engine)
    assert stored_rows(engine, backup.copy_id) == {}
    with engine._store.read() as session:
        assert (
            session.query("SELECT count(*) FROM copies")
            == session.query("SELECT count(*) FROM tables")
            == [(0,)]
        )


def test_a_backup_has_the_rows_of_its_moment(engine: Engine, clock: Clock) -> None:
    table = make_table(engine, indexes=(by_color(),), rules=RULES)
    client = Client(engine, table)
    client.write(*[client.put("a", number, color=text("red")) for number in range(300)])
    state = stored_rows(engine, table.id)
    backup = run(engine, CreateBackup(table, "first"))
    assert isinstance(backup, Backup)
    assert (backup.ready, backup.rows, backup.name) == (False, 300, "first")
    with pytest.raises(BackupBusy):
        run(engine, DeleteBackup(backup))
    with pytest.raises(BackupBusy):
        run(engine, RestoreTable(as_was(table, "again"), backup))
    for number in range(0, 300, 3):
        client = Client(engine, found(engine, "things"))
        client.write(client.remove("a", number), client.put("b", number), client.put("a", number + 1))
        engine.background.next_batch()
    do_background_work(engine)
    [backup] = run(engine, ListBackups(""))  # type: ignore[misc]
    assert backup.ready
    assert backup.source.indexes[0].name == "by_color"
    # The history was for the copy only.
    assert found(engine, "things").rules.history is None
    assert recorded(engine) == 0
    made = restored(engine, backup, None, "again")
    assert stored_rows(engine, made.id) == state
    assert len(stored_entries(engine, made)[0]) == 300
    run(engine, DeleteBackup(backup))
    with pytest.raises(BackupMissing):
        run(engine, DeleteBackup(backup))
    do_background_work(engine)
    assert stored_rows(engine, backup.copy_id) == {}


def test_a_backup_outlives_its_table(engine: Engine, things: Client) -> None:
    things.write(*[things.put("a", number) for number in range(20)])
    state = stored_rows(engine, things.table.id)
    run(engine, CreateBackup(things.table, "first"))
    run(engine, DropTable(found(engine, "things")))
    do_background_work(engine)
    [backup] = run(engine, ListBackups(""))  # type: ignore[misc]
    made = restored(engine, backup, None, "again")
    assert stored_rows(engine, made.id) == state
    assert stored_rows(engine, things.table.id) == {}  # purged, once it was copied


def test_a_copy_is_resumed_by_the_next_server(database: Database, clock: Clock) -> None:
    first = new_engine(Store(database), EngineOptions(), clock)
    client = Client(first, make_table(first))
    client.write(*[client.put("a", number) for number in range(1_000)])
    client = keeping(first, client.table)
    state = stored_rows(first, client.table.id)
    run(first, RestoreTable(as_was(client.table, "again"), client.table))
    client = Client(first, found(first, "things"))
    client.write(*[client.remove("a", number) for number in range(0, 1_000, 2)])
    first.background.next_batch()
    assert found(first, "again").state_at(clock.ms) is State.CREATING
    second = new_engine(Store(database), EngineOptions(), clock)
    do_background_work(second)
    made = found(second, "again")
    assert made.state_at(clock.ms) is State.ACTIVE
    assert stored_rows(second, made.id) == state


def test_a_copy_whose_source_is_reset_is_gone(engine: Engine, things: Client) -> None:
    things.write(*[things.put("a", number) for number in range(20)])
    client = keeping(engine, things.table)
    run(engine, RestoreTable(as_was(client.table, "again"), client.table))
    backup = run(engine, CreateBackup(found(engine, "things"), "first"))
    assert isinstance(backup, Backup)
    run(engine, ResetTables("", frozenset({"things"})))
    do_background_work(engine)
    for name in ("things", "again"):
        with pytest.raises(TableMissing):
            found(engine, name)
    assert run(engine, ListBackups("")) == []


def test_a_restore_needs_a_free_name(engine: Engine, things: Client) -> None:
    client = keeping(engine, things.table)
    with pytest.raises(TableExists):
        run(engine, RestoreTable(as_was(client.table, "things"), client.table))


def test_alterations_keep_the_history(engine: Engine, things: Client) -> None:
    client = keeping(engine, things.table)
    altered = run(engine, AlterTable("test", client.table, properties={"x": 1}))
    assert isinstance(altered, Table)
    assert altered.rules.history == client.table.rules.history


def test_a_backup_under_writers_is_a_state_that_was(engine: Engine) -> None:
    """Each of eight writers writes an increasing number to two rows in one transaction.

    In a consistent state, the two rows of a writer are equal. All writes acknowledged before the backup are in it.
    """
    client = Client(engine, make_table(engine))
    client.write(*[client.put("filler", number) for number in range(500)])
    stopping = threading.Event()
    acknowledged = [0] * 8
    failures: list[object] = []

    def write(writer: int) -> None:
        number = 0
        while not stopping.is_set():
            mine = Client(engine, found(engine, "things"))
            n = decimal(number + 1)
            [answer] = run_with_retries(
                engine, [WriteGroup((mine.put(f"w{writer}", 0, n=n), mine.put("all", writer, n=n)))]
            )
            if isinstance(answer, list):
                number += 1
                acknowledged[writer] = number
            elif not isinstance(answer, (StaleTable, Contended)):
                failures.append(answer)
                return

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(8)]
    for thread in threads:
        thread.start()
    taken: list[tuple[list[int], list[int]]] = []
    try:
        for name in ("first", "second", "third"):
            before = list(acknowledged)
            [backup] = run_with_retries(engine, [CreateBackup(found(engine, "things"), name)])
            assert isinstance(backup, Backup), backup
            taken.append((before, list(acknowledged)))
            engine.background.next_batch()
        last = list(acknowledged)
        wait_until(lambda: failures or all(now > then for now, then in zip(acknowledged, last, strict=True)))
    finally:
        stopping.set()
        for thread in threads:
            thread.join()
    assert not failures
    do_background_work(engine)
    for backup, (before, after) in zip(run(engine, ListBackups("")), taken, strict=True):  # type: ignore[call-overload]
        made = restored(engine, backup, None, f"r{backup.id}")
        seen = {(row.latest["p"][1], int(row.latest["s"][1])): row for row in Client(engine, made).rows()}
        numbers = []
        for writer in range(8):
            pair = [seen.get((f"w{writer}", 0)), seen.get(("all", writer))]
            values = {0 if row is None else int(row.latest["n"][1]) for row in pair}
            assert len(values) == 1, (writer, values)
            numbers += values
        # One that was under way may be in it or not.
        assert all(low <= n <= high + 1 for low, n, high in zip(before, numbers, after, strict=True))
    assert any(acknowledged)
