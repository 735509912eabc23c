"""Change streams: exactly once, in commit order, across split and merged shards. Also enabling, ending and trimming."""

from __future__ import annotations

import dataclasses
import itertools
import random
import threading
import time
from collections.abc import Iterator

import pytest

from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.engine.engine import Engine, EngineOptions
from tablegate.gateway.engine.streams import streaming
from tablegate.gateway.model.commands import stream_commands
from tablegate.gateway.model.commands.row_commands import WriteGroup
from tablegate.gateway.model.commands.table_commands import AlterTable, CreateTable, DropTable, FindTable
from tablegate.gateway.model.commands.writes import ChangeKind, Replace, StreamRecording, Write
from tablegate.gateway.model.errors import GatewayError, PositionExpired, StaleTable, StreamMissing
from tablegate.gateway.model.expressions.predicates import Not, RowExists
from tablegate.gateway.model.expressions.updates import Add, DeleteCells, Increment, PutCell
from tablegate.gateway.model.tables.changes import (
    AtTime,
    Change,
    ChangePage,
    Latest,
    Oldest,
    Shard,
    Stream,
    shard_hash,
)
from tablegate.gateway.model.tables.tables import ExpiryRule, Rules, StreamRule, Table
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.rows import Contents
from tablegate.gateway.model.values.values import Kind, Value, decimal, text
from tablegate.gateway.store.opening import open_database
from tablegate.gateway.store.sql.databases import Database
from tablegate.gateway.store.store import Store
from tests.gateway.engine.conftest import Client, column, do_background_work
from tests.support.clock import Clock
from tests.support.databases import at_another_node

HOUR_MS = 3_600_000


def rule(label: str = "1", enabled: bool = True, hours: int = 24) -> StreamRule:
    return StreamRule(label, enabled, "NEW_AND_OLD_IMAGES", hours * HOUR_MS, 0)


def ask(engine: Engine, command: object) -> object:
    [outcome] = engine.run([command])  # type: ignore[list-item]
    if isinstance(outcome, GatewayError):
        raise outcome
    return outcome


def make(engine: Engine, name: str = "t", stream: StreamRule | None = None, **rules: object) -> Client:
    schema = KeySchema((column("p"),), (column("s", Kind.DECIMAL),))
    made = ask(
        engine,
        CreateTable("test", "", name, schema, (), Rules(stream=stream or rule(), **rules)),  # type: ignore[arg-type]
    )
    assert isinstance(made, Table)
    return Client(engine, made)


def stream_of(engine: Engine, name: str = "t", label: str = "1") -> Stream:
    found = ask(engine, stream_commands.FindStream("", name, label))
    assert isinstance(found, Stream)
    return found


def shards_of(engine: Engine, stream: Stream) -> list[Shard]:
    found = ask(engine, stream_commands.ListShards(stream))
    assert isinstance(found, list)
    return found


def drained(
    engine: Engine, stream: Stream, shard: int, sequence: int | None = None
) -> tuple[list[Change], int | None]:
    """All changes of a shard from a sequence on, or from the oldest if it is None, and the next sequence."""
    found: list[Change] = []
    if sequence is None:
        sequence = ask(engine, stream_commands.FindPosition(stream, shard, Oldest()))
        assert isinstance(sequence, int)
    while True:
        page = ask(engine, stream_commands.ReadChanges(stream, shard, sequence, 7))
        assert isinstance(page, ChangePage)
        found += page.changes
        if page.next is None or page.next == sequence:
            return found, page.next
        sequence = page.next


def everything(engine: Engine, stream: Stream) -> list[Change]:
    """All changes, parents' before their children's."""
    return [
        change for shard in shards_of(engine, stream) for change in drained(engine, stream, shard.number)[0]
    ]


# Recorded changes


def test_a_write_of_each_kind(engine: Engine) -> None:
    table = make(engine)
    table.write(table.put("a", 1, color=text("red")))
    table.write(table.edit("a", 1, Add(("n",), decimal(2))))
    table.write(table.remove("a", 1))
    first, second, third = everything(engine, stream_of(engine))
    assert [change.kind for change in (first, second, third)] == [
        ChangeKind.PUT,
        ChangeKind.UPDATE,
        ChangeKind.DELETE,
    ]
    assert [change.sequence for change in (first, second, third)] == [1, 2, 3]
    assert first.old is None
    assert first.new is not None
    assert first.new.latest == {"p": text("a"), "s": decimal(1), "color": text("red")}
    assert second.old is not None
    assert second.new is not None
    assert second.old.latest == first.new.latest
    assert second.new.latest["n"] == decimal(2)
    assert third.old is not None
    assert third.old.latest == second.new.latest
    assert third.new is None
    assert {key: value.data for key, value in third.key_values.items()} == {"p": "a", "s": 1}


def test_writes_that_failed_leave_nothing(engine: Engine) -> None:
    table = make(engine)
    table.write(table.put("a"))
    [refused] = engine.run([WriteGroup((table.put("a", condition=Not(RowExists())),))])
    assert isinstance(refused, GatewayError)
    [refused] = engine.run([WriteGroup((table.put("b"), table.put("a", condition=Not(RowExists()))))])
    assert isinstance(refused, GatewayError)
    assert len(everything(engine, stream_of(engine))) == 1


def test_writes_that_change_nothing_are_marked(engine: Engine) -> None:
    table = make(engine)
    table.write(table.put("a", 1, n=decimal(1), m=decimal(2)))
    same = Contents.of_values({"p": text("a"), "m": decimal("2.0"), "n": decimal(1), "s": decimal(1)})
    table.write(Write(table.table, table.key("a", 1), Replace(same)))
    table.write(table.remove("b", 1))
    table.write(table.put("a", 1, n=decimal(3)))
    assert [change.is_noop for change in everything(engine, stream_of(engine))] == [False, True, True, False]


def test_each_write_of_one_list_is_recorded_in_order(engine: Engine) -> None:
    table = make(engine)
    table.write(table.put("a", 1, n=decimal(1)), table.put("a", 1, n=decimal(2)), table.remove("a", 1))
    changes = everything(engine, stream_of(engine))
    assert [change.kind.value for change in changes] == ["put", "put", "delete"]
    assert changes[1].old is not None
    assert changes[1].old.latest["n"] == decimal(1)


def test_cell_actions_are_kept_with_times_and_sums(engine: Engine) -> None:
    table = make(engine, stamped=True, max_versions=3)
    table.write(table.edit("a", 1, PutCell("n", Value(Kind.INT64, 5), 1000)))
    table.write(
        table.edit(
            "a",
            1,
            DeleteCells("x"),
            Increment("n", Value(Kind.INT64, 2), 2000),
            PutCell("m", text("now")),
        )
    )
    [_, change] = everything(engine, stream_of(engine))
    assert change.actions == (
        DeleteCells("x"),
        PutCell("n", Value(Kind.INT64, 7), 2000),
        PutCell("m", text("now"), change.at_ms),
    )


def test_the_sweep_is_named(engine: Engine, clock: Clock) -> None:
    table = make(engine, expiry=ExpiryRule(attribute="dies"))
    table.write(table.put("a", 1, dies=decimal(clock.ms // 1000 + 1)))
    clock.advance(5)
    do_background_work(engine)
    [_, change] = everything(engine, stream_of(engine))
    assert (change.kind, change.actor) == (ChangeKind.DELETE, "expiry")


# Streams of a table


def test_tables_without_a_stream_record_nothing(engine: Engine) -> None:
    made = ask(engine, CreateTable("test", "", "t", KeySchema((column("p"),), (column("s", Kind.DECIMAL),))))
    assert isinstance(made, Table)
    Client(engine, made).write(Client(engine, made).put("a"))
    assert ask(engine, stream_commands.ListStreams("")) == []
    with pytest.raises(StreamMissing):
        stream_of(engine)


@pytest.mark.parametrize(("name", "label"), [("t\0", "1"), ("t", "1\0"), ("\0", "\0")])
def test_no_stream_has_a_name_with_a_nul(engine: Engine, name: str, label: str) -> None:
    """PostgreSQL rejects such a text. Clients can send it as an id."""
    make(engine)
    with pytest.raises(StreamMissing):
        stream_of(engine, name, label)
    assert ask(engine, stream_commands.ListStreams("", "t\0")) == []


def alter(engine: Engine, name: str, stream: StreamRule | None) -> Client:
    table = ask(engine, FindTable("", name))
    assert isinstance(table, Table)
    made = ask(engine, AlterTable("test", table, dataclasses.replace(table.rules, stream=stream)))
    assert isinstance(made, Table)
    return Client(engine, made)


def test_a_stream_that_is_disabled_stays_readable_and_a_new_one_begins_at_now(
    engine: Engine, clock: Clock
) -> None:
    table = make(engine)
    table.write(table.put("a", 1))
    assert table.table.rules.stream is not None
    table = alter(engine, "t", dataclasses.replace(table.table.rules.stream, enabled=False))
    table.write(table.put("b", 1))
    table = alter(engine, "t", rule("2"))
    table.write(table.put("c", 1))
    old, new = stream_of(engine, label="1"), stream_of(engine, label="2")
    assert old.ended_at_ms is not None
    assert new.ended_at_ms is None
    assert [change.key_values["p"].data for change in everything(engine, old)] == ["a"]
    assert [change.key_values["p"].data for change in everything(engine, new)] == ["c"]
    [shard] = shards_of(engine, old)
    assert drained(engine, old, shard.number)[1] is None
    listed = ask(engine, stream_commands.ListStreams("", "t"))
    assert isinstance(listed, list)
    assert [stream.label for stream in listed] == ["1", "2"]


def test_the_stream_of_a_dropped_table_stays_readable(engine: Engine) -> None:
    table = make(engine)
    table.write(table.put("a", 1))
    ask(engine, DropTable(table.table))
    make(engine, stream=rule("2"))
    stream = stream_of(engine, label="1")
    assert [change.key_values["p"].data for change in everything(engine, stream)] == ["a"]
    assert stream.key_schema == table.table.key_schema


def test_other_changes_of_a_table_leave_its_stream_alone(engine: Engine) -> None:
    table = make(engine)
    table.write(table.put("a", 1))
    assert table.table.rules.stream is not None
    longer = dataclasses.replace(table.table.rules.stream, retention_ms=48 * HOUR_MS, id=0, shards=())
    table = alter(engine, "t", longer)
    table.write(table.put("b", 1))
    stream = stream_of(engine)
    assert stream.rule.retention_ms == 48 * HOUR_MS
    assert len(everything(engine, stream)) == 2


# Positions


def test_positions(engine: Engine, clock: Clock) -> None:
    table = make(engine)
    stream = stream_of(engine)
    assert ask(engine, stream_commands.FindPosition(stream, 0, Oldest())) == 1
    assert ask(engine, stream_commands.FindPosition(stream, 0, Latest())) == 1
    table.write(table.put("a", 1))
    clock.advance(10)
    between_ms = clock.ms
    clock.advance(10)
    table.write(table.put("b", 1), table.put("c", 1))
    assert ask(engine, stream_commands.FindPosition(stream, 0, Oldest())) == 1
    assert ask(engine, stream_commands.FindPosition(stream, 0, Latest())) == 4
    assert ask(engine, stream_commands.FindPosition(stream, 0, AtTime(0))) == 1
    assert ask(engine, stream_commands.FindPosition(stream, 0, AtTime(between_ms))) == 2
    assert ask(engine, stream_commands.FindPosition(stream, 0, AtTime(clock.ms + 10_000))) == 4
    with pytest.raises(StreamMissing):
        ask(engine, stream_commands.FindPosition(stream, 7, Oldest()))


def test_pages_by_number_and_by_size(engine: Engine) -> None:
    table = make(engine)
    table.write(*(table.put("a", number, blob=text("x" * 1000)) for number in range(10)))
    stream = stream_of(engine)
    page = ask(engine, stream_commands.ReadChanges(stream, 0, 3, 4))
    assert isinstance(page, ChangePage)
    assert [change.sequence for change in page.changes] == [3, 4, 5, 6]
    assert page.next == 7
    page = ask(engine, stream_commands.ReadChanges(stream, 0, 1, 100, 2_500))
    assert isinstance(page, ChangePage)
    assert len(page.changes) == 2
    page = ask(engine, stream_commands.ReadChanges(stream, 0, 1, 100, 1))
    assert isinstance(page, ChangePage)
    assert len(page.changes) == 1
    page = ask(engine, stream_commands.ReadChanges(stream, 0, 11, 100))
    assert page == ChangePage([], 11)


# Shards


@pytest.fixture
def four_shards(database: Database, clock: Clock) -> Iterator[Engine]:
    made = new_engine(Store(database), EngineOptions(sweep_period_s=0, stream_shards=4), clock)
    yield made
    made.close()


def test_changes_of_a_partition_are_in_the_shard_of_its_hash(four_shards: Engine) -> None:
    table = make(four_shards)
    table.write(*(table.put(f"p{number}", 1) for number in range(40)))
    stream = stream_of(four_shards)
    shards = shards_of(four_shards, stream)
    assert [shard.hashes for shard in shards] == [(0, 63), (64, 127), (128, 191), (192, 255)]
    for shard in shards:
        for change in drained(four_shards, stream, shard.number)[0]:
            key = stream.key_schema.key(change.key_values)
            assert shard.hashes[0] <= shard_hash(key.position.partition) <= shard.hashes[1]
    assert len(everything(four_shards, stream)) == 40


@pytest.mark.parametrize("counts", [[2], [3, 5], [4, 1], [2, 1, 3], [7, 2], [256], [1]])
def test_splitting_and_merging_loses_nothing_and_keeps_order(engine: Engine, counts: list[int]) -> None:
    table = make(engine)
    written = 0

    def write_some(client: Client) -> None:
        nonlocal written
        for _ in range(20):
            client.write(client.put(f"p{written % 11}", 1, n=decimal(written)))
            written += 1

    write_some(table)
    for count in counts:
        made = ask(engine, stream_commands.Reshard(table.table, count))
        assert isinstance(made, Table)
        table = Client(engine, made)
        write_some(table)
    stream = stream_of(engine)
    shards = {shard.number: shard for shard in shards_of(engine, stream)}
    live = sorted(shard.hashes for shard in shards.values() if shard.closed_at_ms is None)
    assert len(live) == counts[-1]
    assert live[0][0] == 0
    assert live[-1][1] == 255
    assert all(left[1] + 1 == right[0] for left, right in itertools.pairwise(live))
    for shard in shards.values():
        assert len(shard.parents) <= 2
        assert all(parent < shard.number for parent in shard.parents)
        if shard.closed_at_ms is not None:
            assert drained(engine, stream, shard.number)[1] is None
    changes = everything(engine, stream)
    assert sorted(int(change.new.latest["n"].data) for change in changes if change.new) == list(
        range(written)
    )
    by_key: dict[str, list[int]] = {}
    for change in changes:
        assert change.new is not None
        by_key.setdefault(change.key_values["p"].data, []).append(int(change.new.latest["n"].data))
    assert all(numbers == sorted(numbers) for numbers in by_key.values())


def test_the_numbers_of_a_key_grow_from_shard_to_shard(database: Database, clock: Clock) -> None:
    """A reader can keep the latest change of a key by its sequence number across splits, merges and rolls.

    A child's numbers continue after the last of its parents. The sample of the service's API reference (DescribeStream)
    shows the same: each shard starts at a greater number than its parent's last one.
    """
    made = rolling(database, clock, 4)
    table = make(made)
    written = itertools.count()
    for count in (None, 3, None, 5, 1, None, None, 4, 2):
        for number in itertools.islice(written, 25):
            client = Client(made, ask(made, FindTable("", "t")))  # type: ignore[arg-type]
            client.write(client.put(f"p{number % 9}", 1, n=decimal(number)))
        if count is None:
            clock.advance(5 * 3600)
            do_background_work(rolling(database, clock, 4))
        else:
            ask(made, stream_commands.Reshard(ask(made, FindTable("", "t")), count))  # type: ignore[arg-type]
    stream = stream_of(made)
    shards = {shard.number: shard for shard in shards_of(made, stream)}
    for shard in shards.values():
        for parent in shard.parents:
            last = shards[parent].last_sequence
            assert last is not None
            assert ask(made, stream_commands.FindPosition(stream, shard.number, Oldest())) > last  # type: ignore[operator]
    by_key: dict[str, list[tuple[int, int]]] = {}
    for change in everything(made, stream):
        assert change.new is not None
        number = int(change.new.latest["n"].data)
        by_key.setdefault(change.key_values["p"].data, []).append((number, change.sequence))
    assert sum(map(len, by_key.values())) == next(written)
    for numbers in by_key.values():
        assert [sequence for _, sequence in sorted(numbers)] == sorted({sequence for _, sequence in numbers})
    assert table.table.rules.stream is not None
    made.close()


def test_a_writer_with_an_old_descriptor_parses_again(engine: Engine) -> None:
    table = make(engine)
    ask(engine, stream_commands.Reshard(table.table, 2))
    [answer] = engine.run([WriteGroup((table.put("a", 1),))])
    assert isinstance(answer, StaleTable)


# Rolling


def rolling(database: Database, clock: Clock, hours: int) -> Engine:
    """Return an engine with new background work."""
    options = EngineOptions(sweep_period_s=0, stream_shards=2, stream_roll_ms=hours * HOUR_MS)
    return new_engine(Store(database), options, clock)


def test_shards_are_rolled_at_their_age(database: Database, clock: Clock) -> None:
    """A reader that follows parents to children sees every change once, even if it was in the middle of a shard."""
    made = rolling(database, clock, 4)
    table = make(made)
    stream = stream_of(made)
    written = itertools.count()
    pages: dict[int, list[Change]] = {}
    at: dict[int, int | None] = {}

    def write_some() -> None:
        """Write also with the descriptor that servers cached before the roll."""
        for number in itertools.islice(written, 20):
            client = Client(made, ask(made, FindTable("", "t")))  # type: ignore[arg-type]
            client.write(client.put(f"p{number % 7}", 1, n=decimal(number)))

    def read_some() -> None:
        for shard in shards_of(made, stream):
            if any(at.get(parent, 1) is not None for parent in shard.parents):
                continue  # parents first
            if shard.number not in at:
                at[shard.number] = ask(made, stream_commands.FindPosition(stream, shard.number, Oldest()))  # type: ignore[assignment]
            position = at[shard.number]
            if position is not None:
                page = ask(made, stream_commands.ReadChanges(stream, shard.number, position, 3))
                assert isinstance(page, ChangePage)
                pages.setdefault(shard.number, []).extend(page.changes)
                at[shard.number] = page.next

    for _ in range(5):
        write_some()
        read_some()
        clock.advance(2 * 3600)
        do_background_work(rolling(database, clock, 4))
    shards = shards_of(made, stream)
    assert [(shard.number, shard.hashes, shard.parents) for shard in shards] == [
        (0, (0, 127), ()),
        (1, (128, 255), ()),
        (2, (0, 127), (0,)),
        (3, (128, 255), (1,)),
        (4, (0, 127), (2,)),
        (5, (128, 255), (3,)),
    ]
    assert [shard.closed_at_ms is None for shard in shards] == [False] * 4 + [True] * 2
    for _ in range(100):
        read_some()
    seen = [change for page in pages.values() for change in page]
    numbers = [int(change.new.latest["n"].data) for change in seen if change.new]
    assert sorted(numbers) == list(range(100))
    for partition in range(7):
        own = [number for number in numbers if number % 7 == partition]
        assert own == sorted(own)
    assert table.table.rules.stream is not None
    made.close()


def test_a_writer_with_a_descriptor_from_before_a_roll_parses_again(database: Database, clock: Clock) -> None:
    made = rolling(database, clock, 1)
    table = make(made)
    clock.advance(2 * 3600)
    do_background_work(rolling(database, clock, 1))
    [answer] = made.run([WriteGroup((table.put("a", 1),))])
    assert isinstance(answer, StaleTable)
    made.close()


def test_no_stream_is_rolled_without_the_setting(database: Database, clock: Clock) -> None:
    """Not without the setting, not before the time, not twice by two servers, and no stream that has ended."""
    made = rolling(database, clock, 0)
    table = make(made)
    stream = stream_of(made)
    clock.advance(20 * 3600)
    do_background_work(made)
    assert len(shards_of(made, stream)) == 2
    do_background_work(rolling(database, clock, 21))
    assert len(shards_of(made, stream)) == 2
    for _ in range(2):
        do_background_work(rolling(database, clock, 19))
    assert len(shards_of(made, stream)) == 4
    ask(made, DropTable(ask(made, FindTable("", table.table.name))))  # type: ignore[arg-type]
    clock.advance(20 * 3600)
    do_background_work(rolling(database, clock, 1))
    assert all(shard.number < 4 for shard in shards_of(made, stream))
    made.close()


# Trimming


def tend(engine: Engine, clock: Clock) -> None:
    """Once over all streams, two changes at a time."""
    after: int | None = 0
    while after is not None:
        _, after = streaming.maintain(engine._store, streaming.StreamMaintenance(clock.ms, 0, 2), after)


def test_changes_older_than_the_retention_are_trimmed(engine: Engine, clock: Clock) -> None:
    table = make(engine)
    table.write(table.put("a", 1))
    clock.advance(23 * 3600)
    table.write(table.put("b", 1))
    clock.advance(2 * 3600)
    stream = stream_of(engine)
    tend(engine, clock)
    with pytest.raises(PositionExpired):
        ask(engine, stream_commands.ReadChanges(stream, 0, 1, 10))
    assert ask(engine, stream_commands.FindPosition(stream, 0, Oldest())) == 2
    assert [change.key_values["p"].data for change in drained(engine, stream, 0, 2)[0]] == ["b"]


def test_streams_and_shards_that_are_over_are_forgotten(engine: Engine, clock: Clock) -> None:
    table = make(engine)
    table.write(table.put("a", 1))
    made = ask(engine, stream_commands.Reshard(table.table, 2))
    assert isinstance(made, Table)
    clock.advance(25 * 3600)
    for _ in range(3):
        tend(engine, clock)
    assert [shard.number for shard in shards_of(engine, stream_of(engine))] == [1, 2]
    ask(engine, DropTable(made))
    clock.advance(25 * 3600)
    for _ in range(3):
        tend(engine, clock)
    assert ask(engine, stream_commands.ListStreams("")) == []


# Many writers


def test_a_reader_sees_each_change_once_and_in_order_while_many_write(database: Database) -> None:
    """On PostgreSQL, two engines represent two server processes.

    The reader does not skip a writer that commits late.
    """
    engines = [new_engine(Store(database), EngineOptions(stream_shards=2))]
    if database.shared:
        url = database.engine.url.render_as_string(hide_password=False)
        engines.append(new_engine(Store(open_database(at_another_node(url))), EngineOptions(stream_shards=2)))
    table = make(engines[0])
    stream = stream_of(engines[0])
    done = threading.Event()
    acknowledged: list[list[tuple[str, int]]] = [[] for _ in range(4)]

    def write(number: int) -> None:
        client = Client(engines[number % len(engines)], table.table)
        chance = random.Random(number)
        count = 0
        while not done.is_set():
            name = f"{number}-{chance.randrange(3)}"
            client.write(
                client.put(name, 1, n=decimal(count)), client.put("shared", number, n=decimal(count))
            )
            acknowledged[number].append((name, count))
            count += 1

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    seen: list[Change] = []
    places = {0: 1, 1: 1}
    deadline = time.monotonic() + 1.5
    try:
        while True:
            is_last = not any(thread.is_alive() for thread in threads)
            for shard, sequence in places.items():
                found, after = drained(engines[-1], stream, shard, sequence)
                assert after is not None
                assert [change.sequence for change in found] == list(range(sequence, after))
                places[shard] = after
                seen += found
            if is_last:
                break
            if time.monotonic() > deadline:
                done.set()
    finally:
        done.set()
        for thread in threads:
            thread.join()
    mine = [
        (change.key_values["p"].data, int(change.new.latest["n"].data))
        for change in seen
        if change.new is not None and change.key_values["p"].data != "shared"
    ]
    assert sorted(mine) == sorted(pair for pairs in acknowledged for pair in pairs)
    for name in {name for name, _ in mine}:
        numbers = [count for other, count in mine if other == name]
        assert numbers == sorted(numbers)
    for engine in engines:
        engine.close()


def test_a_commit_contains_the_stream_records(engine: Engine) -> None:
    table = make(engine)
    recorded = StreamRecording(ChangeKind.UPDATE, (DeleteCells("x"),))
    key = table.key("a", 1)
    write = Write(table.table, key, Replace(table.contents("a", 1)), recording=recorded)
    table.write(write)
    [change] = everything(engine, stream_of(engine))
    assert (change.kind, change.actions) == (ChangeKind.UPDATE, (DeleteCells("x"),))
