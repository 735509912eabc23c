"""Followers: each change of a table at least once, in the order of each row's changes, from any shard."""

from __future__ import annotations

import dataclasses

import pytest

from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.engine.scheduler import TargetFailed
from tablegate.gateway.features.history.backup_commands import ResetTables
from tablegate.gateway.model.commands.stream_commands import (
    Follow,
    ListFollowers,
    ListStreams,
    Reshard,
    Unfollow,
)
from tablegate.gateway.model.commands.table_commands import AlterTable, DropTable, FindTable
from tablegate.gateway.model.tables.changes import Change
from tablegate.gateway.model.tables.tables import StreamRule, Table
from tablegate.gateway.model.values.values import decimal
from tests.gateway.engine.conftest import Client, do_background_work, make_table
from tests.support.clock import Clock


class Target:
    """A target that records its deliveries. It fails on request."""

    def __init__(self) -> None:
        self.got: list[tuple[str, int]] = []
        self.fails = False

    def __call__(self, table: Table, target: str, changes: list[Change]) -> None:
        if self.fails:
            raise OSError("nobody is there")
        assert target == "there"
        for change in changes:
            value = (change.new or change.old).latest.get("n")
            self.got.append((change.key_values["p"].data, -1 if value is None else int(value.data)))


@pytest.fixture
def target(engine: Engine) -> Target:
    made = Target()
    engine.add_delivery("test", made)
    return made


def run(engine: Engine, command: object) -> object:
    [outcome] = engine.run([command])  # type: ignore[list-item]
    assert not isinstance(outcome, Exception), outcome
    return outcome


def follow(client: Client) -> None:
    client.table = run(client.engine, Follow(client.table, "test", "there"))  # type: ignore[assignment]


def deliver_some(engine: Engine, limit: int) -> object:
    background = engine.background
    return background.works["test"].batch(background.now_ms(), limit)


def deliver(engine: Engine) -> None:
    while deliver_some(engine, 3):
        pass


def put(client: Client, p: str, n: int) -> None:
    client.write(client.put(p, n=decimal(n)))


def with_stream(client: Client, enabled: bool, clock: Clock) -> None:
    known = client.table.rules.stream
    rule = StreamRule(str(clock.ms), True, "", 86_400_000, clock.ms)
    if not enabled:
        assert known is not None
        rule = dataclasses.replace(known, enabled=False)
    rules = dataclasses.replace(client.table.rules, stream=rule)
    client.table = run(client.engine, AlterTable("test", client.table, rules))  # type: ignore[assignment]


def test_earlier_changes_are_not_delivered(things, target):
    put(things, "a", 1)
    follow(things)
    put(things, "a", 2)
    deliver(things.engine)
    assert target.got == [("a", 2)]


def test_a_log_is_kept_that_no_client_sees(things, target):
    assert things.table.rules.recorder is None
    follow(things)
    assert things.table.rules.log is not None and things.table.rules.stream is None
    assert run(things.engine, ListStreams("")) == []
    assert run(things.engine, ListStreams("", "things")) == []


def test_a_table_with_a_stream_is_recorded_once(things, target, clock):
    with_stream(things, True, clock)
    follow(things)
    assert things.table.rules.log is None


def test_changes_are_delivered_from_all_streams_of_a_table(things, target, clock):
    """Log, the clients' stream, log, another stream: each change once, in order."""
    follow(things)
    expected = []
    for n in range(12):
        if n % 3 == 2:
            clock.advance(1)
            with_stream(things, things.table.rules.log is not None, clock)
        put(things, "a", n)
        expected.append(("a", n))
        if n == 7:
            deliver(things.engine)
    deliver(things.engine)
    assert target.got == expected


def test_changes_of_shards_that_split_and_merge_stay_in_order(engine, target, clock):
    client = Client(engine, make_table(engine))
    with_stream(client, True, clock)
    follow(client)
    for n in range(40):
        put(client, f"k{n % 4}", n)
        if n in (10, 20, 30):
            client.table = run(engine, Reshard(client.table, {10: 4, 20: 1, 30: 3}[n]))
        if n == 15:
            deliver_some(engine, 2)
    deliver(engine)
    assert sorted(target.got) == sorted((f"k{n % 4}", n) for n in range(40))
    for key in {key for key, _ in target.got}:
        numbers = [n for k, n in target.got if k == key]
        assert numbers == sorted(numbers)


def test_changes_that_could_not_be_delivered_are_delivered_again(things, target):
    follow(things)
    put(things, "a", 1)
    target.fails = True
    with pytest.raises(TargetFailed, match="nobody"):
        deliver(things.engine)
    target.fails = False
    things.write(things.remove("a"))
    deliver(things.engine)
    assert target.got == [("a", 1), ("a", 1)]


def test_undelivered_changes_are_not_trimmed(things, target, clock):
    follow(things)
    for n in range(5):
        put(things, "a", n)
    deliver_some(things.engine, 2)
    clock.advance(10 * 86_400)
    things.engine.background.catch_up()
    deliver(things.engine)
    assert target.got == [("a", n) for n in range(5)]
    session_of = things.engine._store.read
    clock.advance(10)
    things.engine.background.catch_up()
    with session_of() as session:
        assert session.query("SELECT count(*) FROM changes") == [(0,)]


def test_an_ended_follower_gets_no_changes(things, target):
    follow(things)
    things.table = run(things.engine, Unfollow(things.table, "test", "there"))
    assert things.table.rules.log is None and not things.table.rules.followed
    put(things, "a", 1)
    deliver(things.engine)
    assert target.got == []
    assert things.table.features == make_table(things.engine, "others").features


def test_a_dropped_table_removes_its_followers(things, target, clock):
    follow(things)
    run(things.engine, DropTable(things.table))
    clock.advance(100_000)
    do_background_work(things.engine)
    with things.engine._store.read() as session:
        for table in ("followers", "streams", "changes"):
            assert session.query(f"SELECT count(*) FROM {table}") == [(0,)], table


def test_another_server_waits_for_its_turn(database, things, target, clock):
    """Only one of two servers delivers while it is active."""
    follow(things)
    put(things, "a", 1)
    store = things.engine._store
    if not store.database.shared:
        pytest.skip("one process is alone with this database")
    other = new_engine(store, now=clock)
    other.add_delivery("test", target)
    things.engine.add_delivery("test", lambda *_: assert_nothing(other, target))
    deliver_some(things.engine, 1)
    assert isinstance(run(things.engine, FindTable("", "things")), Table)


def assert_nothing(other: Engine, target: Target) -> None:
    assert deliver_some(other, 1) is None
    assert target.got == []


def followers_of(client: Client) -> object:
    return run(client.engine, ListFollowers(client.table, "test"))


@pytest.mark.parametrize("has_stream", [False, True])
def test_an_ending_follower_gets_the_earlier_writes(things, target, clock, has_stream):
    if has_stream:
        with_stream(things, True, clock)
    follow(things)
    for n in range(5):
        put(things, "a", n)
    deliver_some(things.engine, 2)
    things.table = run(things.engine, Unfollow(things.table, "test", "there"))
    put(things, "a", 9)
    assert followers_of(things) == ["there"]
    deliver(things.engine)
    assert target.got == [("a", n) for n in range(5)]
    assert followers_of(things) == []
    things.table = run(things.engine, FindTable("", "things"))
    assert not things.table.rules.followed and things.table.rules.log is None
    put(things, "a", 10)
    deliver(things.engine)
    assert len(target.got) == 5


def test_a_follower_ends_across_streams_and_shards(things, target, clock):
    with_stream(things, True, clock)
    follow(things)
    put(things, "a", 1)
    things.table = run(things.engine, Reshard(things.table, 4))
    put(things, "a", 2)
    with_stream(things, False, clock)
    put(things, "a", 3)
    things.table = run(things.engine, Unfollow(things.table, "test", "there"))
    put(things, "a", 4)
    clock.advance(1)
    with_stream(things, True, clock)
    put(things, "a", 5)
    deliver(things.engine)
    assert target.got == [("a", 1), ("a", 2), ("a", 3)]
    assert followers_of(things) == []


@pytest.mark.parametrize("has_stream", [False, True])
def test_changes_of_a_dropped_table_are_delivered(things, target, clock, has_stream):
    if has_stream:
        with_stream(things, True, clock)
    follow(things)
    for n in range(5):
        put(things, "a", n)
    run(things.engine, DropTable(things.table))
    again = make_table(things.engine)
    clock.advance(100_000)
    do_background_work(things.engine)
    deliver(things.engine)
    assert target.got == [("a", n) for n in range(5)]
    assert run(things.engine, FindTable("", "things")) == again
    clock.advance(100_000)
    things.engine.background.catch_up()
    with things.engine._store.read() as session:
        for table in ("followers", "streams", "changes"):
            assert session.query(f"SELECT count(*) FROM {table}") == [(0,)], table


def test_a_target_that_takes_nothing_is_given_up_a_day_after_its_end(things, target, clock):
    follow(things)
    put(things, "a", 1)
    run(things.engine, DropTable(things.table))
    target.fails = True
    clock.advance(86_000)
    with pytest.raises(TargetFailed):
        deliver_some(things.engine, 3)
    clock.advance(1_000)
    deliver(things.engine)
    assert followers_of(things) == []


def test_a_reset_forgets_undelivered_changes_of_dropped_tables(things, target):
    follow(things)
    put(things, "a", 1)
    run(things.engine, DropTable(things.table))
    run(things.engine, ResetTables("others"))
    assert followers_of(things) == ["there"]
    run(things.engine, ResetTables(things.table.namespace))
    assert followers_of(things) == []
