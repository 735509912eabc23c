"""Replicas: rows converge after any interruption, and each replica's stream has each change once."""

from __future__ import annotations

import dataclasses
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import pytest

from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.engine.engine import Engine, EngineOptions
from tablegate.gateway.features.global_tables import replication
from tablegate.gateway.features.global_tables.replica_commands import AddReplicas, NewReplica, RemoveReplicas
from tablegate.gateway.features.global_tables.replication import REPLICA
from tablegate.gateway.features.history.backup_commands import ResetTables
from tablegate.gateway.model.commands.row_commands import WriteGroup
from tablegate.gateway.model.commands.stream_commands import (
    FindPosition,
    ListShards,
    ListStreams,
    ReadChanges,
)
from tablegate.gateway.model.commands.table_commands import (
    AlterTable,
    CreateTable,
    DropTable,
    FindTable,
    GetProperties,
)
from tablegate.gateway.model.commands.writes import Edit, Write
from tablegate.gateway.model.errors import ConditionFailed, StaleTable, TableBusy
from tablegate.gateway.model.expressions.predicates import Not, RowExists
from tablegate.gateway.model.expressions.updates import Increment
from tablegate.gateway.model.tables.changes import Change, Oldest
from tablegate.gateway.model.tables.tables import ExpiryRule, Rules, State, StreamRule, Table
from tablegate.gateway.model.values.values import decimal, text
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.streams import followers
from tests.gateway.engine.conftest import PAIR, Client, by_color, do_background_work

ROUNDS = int(os.environ.get("TABLEGATE_TEST_REPLICATION_ROUNDS", "4"))
REGIONS = ("north", "south", "west")


def stream(label: str) -> StreamRule:
    return StreamRule(label, True, "NEW_AND_OLD_IMAGES", 86_400_000, 0)


def run(engine: Engine, command: object) -> object:
    [outcome] = engine.run([command])  # type: ignore[list-item]
    assert not isinstance(outcome, Exception), outcome
    return outcome


def pending_batches(engine: Engine, limit: Callable[[], int]) -> Iterator[replication.ReplicationBatch]:
    """Yield the next batch of each follower that lags behind."""
    store, after = engine._store, 0
    with store.read() as session:
        while (follower := followers.of_kind(session, REPLICA, after)) is not None:
            batch = replication.replication_batch(store, session, follower, 1 << 60, limit())
            if batch is not None:
                yield batch
            after = follower.id


class Group:
    """A table in several regions, each a namespace, and partitions between these."""

    def __init__(
        self, engine: Engine, regions: tuple[str, ...] = REGIONS, strong: bool = False, rules: Rules = Rules()
    ) -> None:
        self.engine = engine
        self.regions = regions
        self.rules = rules
        first, *others = regions
        table = run(engine, self._made(first))
        assert isinstance(table, Table)
        run(
            engine,
            AddReplicas(table, first, tuple(NewReplica(each, self._made(each)) for each in others), strong),
        )

    def _made(self, region: str) -> CreateTable:
        rules = dataclasses.replace(self.rules, stream=stream(region))
        return CreateTable("test", region, "things", PAIR, (by_color(),), rules)

    def add(self, region: str, by: str) -> None:
        run(self.engine, AddReplicas(self.client(by).table, by, (NewReplica(region, self._made(region)),)))
        self.regions = (*self.regions, region)

    def client(self, region: str) -> Client:
        table = run(self.engine, FindTable(region, "things"))
        assert isinstance(table, Table)
        return Client(self.engine, table)

    def rows(self, region: str) -> list[tuple[object, int]]:
        return [(dict(row.latest), row.modified_at) for row in self.client(region).rows()]

    def told(self, region: str) -> list[Change]:
        """Return the changes in the stream of a region, without those that changed nothing."""
        [found] = run(self.engine, ListStreams(region, "things"))  # type: ignore[misc]
        told: list[Change] = []
        for shard in run(self.engine, ListShards(found)):  # type: ignore[attr-defined]
            sequence: int | None = run(self.engine, FindPosition(found, shard.number, Oldest()))  # type: ignore[assignment]
            while sequence is not None:
                page = run(self.engine, ReadChanges(found, shard.number, sequence, 100))
                told += page.changes  # type: ignore[attr-defined]
                if not page.changes:  # type: ignore[attr-defined]
                    break
                sequence = page.next  # type: ignore[attr-defined]
        return told

    def bring(self, chosen: random.Random, cut: frozenset[tuple[str, str]] = frozenset()) -> None:
        """A step of replication between two regions that are not cut off from each other."""
        store = self.engine._store
        by_id = {self.client(region).table.id: region for region in self.regions}
        steps = [
            found
            for found in pending_batches(self.engine, lambda: chosen.randint(1, 5))
            if (by_id[found.follower.table_id], by_id[int(found.follower.target)]) not in cut
        ]
        if steps:
            step = chosen.choice(steps)
            replication.apply(store, self.engine.background.write, step)
            if chosen.random() < 0.2:  # a server that was killed before it noted how far it had come
                answers = self.engine.run(list(step.groups))
                assert not [
                    each
                    for each in answers
                    if isinstance(each, Exception) and not isinstance(each, StaleTable)
                ]

    def converge(self) -> None:
        do_background_work(self.engine)


def write_something(client: Client, chosen: random.Random, n: int) -> None:
    p, s = chosen.choice("abc"), chosen.randrange(3)
    color = {"color": text(chosen.choice(("red", "blue")))} if chosen.random() < 0.7 else {}
    match chosen.randrange(5):
        case 0 | 1:
            write = client.put(p, s, n=decimal(n), **color)
        case 2:
            write = client.remove(p, s)
        case 3:
            write = Write(client.table, client.key(p, s), Edit((Increment("n", decimal(1)),)))
        case _:
            write = client.put(p, s, n=decimal(n), condition=Not(RowExists()))
    [answer] = client.engine.run([WriteGroup((write,))])
    assert isinstance(answer, list | ConditionFailed | TableBusy), answer


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_replicas_converge_after_partitions(engine: Engine, clock, seed: int) -> None:
    """Writes of all kinds run everywhere, links are cut for a while, and a replica joins later.

    At the end, each region has the same rows with the same times. Index entries match the rows, and each stream is the
    history of its rows.
    """
    chosen = random.Random(seed)
    group = Group(engine, REGIONS[:2] if seed % 2 else REGIONS)
    cut: frozenset[tuple[str, str]] = frozenset()
    for n in range(120):
        write_something(group.client(chosen.choice(group.regions)), chosen, n)
        if chosen.random() < 0.4:
            clock.ns -= 1_000  # so that some writes happen at the same time
        if chosen.random() < 0.3:
            group.bring(chosen, cut)
        if n % 30 == 10:
            cut = frozenset(
                (one, other) for one in group.regions for other in group.regions if chosen.random() < 0.6
            )
        if n == 40 and len(group.regions) == 2:
            group.add("west", by=chosen.choice(group.regions))
    group.converge()
    first = group.rows(group.regions[0])
    for region in group.regions:
        assert group.rows(region) == first, region
        check_index(group.client(region))
        check_stream(group, region)


def check_index(client: Client) -> None:
    [index] = client.table.indexes
    found = client.rows(index=index)
    wanted = [row for row in client.rows() if "color" in row.latest]
    assert sorted(map(repr, (row.latest for row in found))) == sorted(
        map(repr, (row.latest for row in wanted))
    )


def check_stream(group: Group, region: str) -> None:
    """Assert that each change begins with the result of the previous one, and that the last one equals the row.

    No change is then missing or repeated. A replica that joins later begins with copied rows, which are in no stream.
    """
    left: dict[str, Mapping[str, object] | None] = {}
    for change in group.told(region):
        key = repr(change.key_values)
        old = None if change.old is None else dict(change.old.latest)
        if key in left or region != "west":
            assert left.get(key) == old
        left[key] = None if change.new is None else dict(change.new.latest)
    rows = {repr(client_key(row)): row for row, _ in group.rows(region)}
    for key, row in left.items():
        assert rows.get(key) == row


def client_key(row: Mapping[str, object]) -> dict[str, object]:
    return {name: row[name] for name in ("p", "s")}


def test_each_stream_has_each_change_once(engine: Engine) -> None:
    group = Group(engine)
    for n in range(30):
        group.client(REGIONS[n % 3]).write(group.client(REGIONS[n % 3]).put(f"k{n}", n=decimal(n)))
    group.converge()
    for region in REGIONS:
        told = Counter(change.key_values["p"].data for change in group.told(region))
        assert told == Counter(f"k{n}" for n in range(30))
        assert Counter(change.actor for change in group.told(region)) == {"": 10, "replica": 20}


def test_deletes_and_expired_rows_go_everywhere(engine: Engine, clock) -> None:
    group = Group(engine, rules=Rules(expiry=ExpiryRule(attribute="until")))
    north = group.client("north")
    north.write(north.put("a", n=decimal(1)), north.put("b", until=decimal(clock.ms // 1000 + 5)))
    group.converge()
    assert [len(group.rows(region)) for region in REGIONS] == [2, 2, 2]
    south = group.client("south")
    south.write(south.remove("a"))
    group.converge()
    assert [len(group.rows(region)) for region in REGIONS] == [1, 1, 1]
    clock.advance(10)
    engine.background.catch_up()
    group.converge()
    assert [group.rows(region) for region in REGIONS] == [[], [], []]


def test_a_write_stays_at_home_for_as_long_as_the_lag(database, clock) -> None:
    engine = new_engine(Store(database), EngineOptions(replication_lag_ms=1_000), clock)
    engine.register_view("test", lambda value, is_partition: value)
    group = Group(engine)
    north = group.client("north")
    north.write(north.put("a"))
    group.converge()
    clock.advance(0.9)
    group.converge()
    assert group.rows("south") == []
    clock.advance(0.2)
    group.converge()
    assert len(group.rows("south")) == 1
    engine.close()


def test_a_new_replica_is_creating_until_it_has_all_rows(engine: Engine, clock) -> None:
    group = Group(engine, REGIONS[:2])
    north = group.client("north")
    for n in range(300):
        north.write(north.put(f"k{n}"))
    group.add("west", by="north")
    west = group.client("west").table
    assert west.state_at(clock.ms) is State.CREATING
    assert [(peer.name, peer.ready) for peer in group.client("south").table.rules.replication.peers] == [
        ("north", True), ("west", False),
    ]  # fmt: skip
    group.converge()
    west = group.client("west").table
    assert west.state_at(clock.ms) is State.ACTIVE
    assert group.rows("west") == group.rows("north")
    assert len(group.rows("west")) == 300
    assert group.told("west") == []
    assert all(peer.ready for peer in group.client("south").table.rules.replication.peers)


def test_strong_replicas_have_a_write_at_once(engine: Engine) -> None:
    group = Group(engine, strong=True)
    chosen = random.Random(3)
    for n in range(60):
        write_something(group.client(chosen.choice(REGIONS)), chosen, n)
        assert group.rows("north") == group.rows("south") == group.rows("west")
    for region in REGIONS:
        check_index(group.client(region))
        check_stream(group, region)
    with engine._store.read() as session:
        assert session.query("SELECT count(*) FROM followers") == [(0,)]
        assert session.query("SELECT count(*) FROM tombstones") == [(0,)]


def test_strong_replicas_are_written_to_as_they_are_now(engine: Engine, clock) -> None:
    """Another server's cached descriptor of a replica can be old. A write detects this under the lock."""
    group = Group(engine, strong=True)
    south = group.client("south")
    north = group.client("north")
    north.write(north.put("a", color=text("red")))
    stale = south.table
    changed = run(engine, AlterTable("test", stale, drop_indexes=("by_color",)))
    assert isinstance(changed, Table)
    engine._store.catalog.cache.keep(stale)
    [answer] = engine.run([WriteGroup((north.put("b", color=text("red")),))])
    assert isinstance(answer, StaleTable)
    north.write(north.put("b", color=text("red")))
    assert len(group.rows("south")) == 2


def test_a_removed_replica_gets_no_more_changes(engine: Engine) -> None:
    group = Group(engine)
    north = group.client("north")
    north.write(north.put("a"))
    group.converge()
    run(engine, RemoveReplicas(group.client("north").table, ("south",)))
    [gone] = engine.run([FindTable("south", "things")])
    assert isinstance(gone, Exception)
    assert [peer.name for peer in group.client("north").table.rules.replication.peers] == ["west"]
    run(engine, DropTable(group.client("west").table))
    assert group.client("north").table.rules.replication is None
    assert not group.client("north").table.rules.followed
    do_background_work(engine)
    with engine._store.read() as session:
        assert session.query("SELECT count(*) FROM followers") == [(0,)]


def test_a_released_replica_keeps_its_rows(engine: Engine) -> None:
    group = Group(engine, REGIONS[:2])
    north = group.client("north")
    north.write(north.put("a"))
    group.converge()
    run(engine, RemoveReplicas(group.client("north").table, ("south",), keeps=True))
    south = group.client("south")
    assert len(south.rows()) == 1 and south.table.rules.replication is None
    south.write(south.put("b"))
    group.converge()
    assert len(group.rows("north")) == 1


def test_deletes_are_forgotten_when_nothing_older_can_come(engine: Engine, clock) -> None:
    group = Group(engine, REGIONS[:2])
    north = group.client("north")
    north.write(north.put("a"))
    north.write(north.remove("a"))

    def kept() -> int:
        with engine._store.read() as session:
            [(number,)] = session.query("SELECT count(*) FROM tombstones")
        return int(number)

    group.converge()
    assert kept() == 2
    clock.advance(601)
    engine.background.catch_up()
    assert kept() == 0
    assert run(engine, GetProperties("north", "nothing")) is None


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("names", [("north",), None])
def test_a_reset_leaves_no_half_of_a_group(
    engine: Engine, keeps: bool, names: tuple[str, ...] | None
) -> None:
    """Emptied tables are reset and belong to no group. Replicas that stay continue without them."""
    group = Group(engine)
    north = group.client("north")
    north.write(north.put("a"))
    group.converge()
    run(engine, ResetTables(None if names is None else names[0], None, keeps))
    if keeps:
        north = group.client("north")
        assert north.table.rules.replication is None and not north.table.rules.followed
        north.write(north.put("b"))
    group.converge()
    if names is not None:
        south = group.client("south")
        assert [peer.name for peer in south.table.rules.replication.peers] == ["west"]
        assert len(group.rows("south")) == len(group.rows("west")) == 1
    with engine._store.read() as session:
        assert session.query("SELECT count(*) FROM followers") == [(2 if names else 0,)]


def test_a_backlog_is_replicated_in_large_batches(engine: Engine) -> None:
    group = Group(engine, REGIONS[:2])
    north = group.client("north")
    for first in range(0, 1_000, 100):
        north.write(*(north.put(f"k{n}") for n in range(first, first + 100)))
    assert [found.length for found in pending_batches(engine, lambda: 750)] == [750]
