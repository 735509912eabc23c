"""Puts without conditions leave what the same writes leave that are decided one by one."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.engine.rows import blind_writes
from tablegate.gateway.engine.rows.writing import Batch
from tablegate.gateway.model import fast_paths
from tablegate.gateway.model.commands.row_commands import ReadAll, WriteGroup
from tablegate.gateway.model.commands.table_commands import DropTable
from tablegate.gateway.model.commands.writes import Write
from tablegate.gateway.model.errors import ConditionFailed, GroupRefused, StaleTable
from tablegate.gateway.model.expressions.predicates import ALWAYS, And, Exists, Not, Predicate, RowExists
from tablegate.gateway.model.tables.tables import ExpiryRule, Rules, State, StreamRule, Table
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, Value, decimal, text
from tablegate.gateway.store.opening.opening import open_database
from tablegate.gateway.store.sql.databases import Database
from tablegate.gateway.store.store import Store
from tests.gateway.engine.conftest import PAIR, Client, Clock, make_table
from tests.support.concurrency import all_at_once
from tests.support.databases import at_another_node

pytestmark = pytest.mark.fast_paths


def blind(write: Write) -> Write:
    return write._replace(wants_old=False)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one whenever a list of writes is decided by old rows."""
    found: list[int] = []
    decide: Callable[..., None] = Batch._decide

    def noted(self: Batch, *arguments: object) -> None:
        found.append(1)
        decide(self, *arguments)

    monkeypatch.setattr(Batch, "_decide", noted)
    return found


def stored(client: Client) -> list[tuple[object, ...]]:
    return [(row.position, row.body, row.size_bytes, row.expires_at_ms) for row in client.rows()]


@pytest.mark.parametrize("seed", range(5))
def test_both_ways_leave_the_same_rows(engine: Engine, looks: list[int], seed: int) -> None:
    rules = Rules(expiry=ExpiryRule(attribute="t")) if seed % 2 else Rules()
    decided = Client(engine, make_table(engine, "decided", rules=rules))
    blindly = Client(engine, make_table(engine, "blindly", rules=rules))
    choice = random.Random(seed)
    for _ in range(8):
        puts = [
            (choice.choice(["a", "b" * 2_000]), choice.randrange(5), choice.randrange(99))
            for _ in range(choice.randrange(1, 12))
        ]
        outcomes = decided.write(
            *(decided.put(p, s, n=decimal(n), t=decimal(1_700_000_000 + n)) for p, s, n in puts)
        )
        looks.clear()
        answers = blindly.write(
            *(blind(blindly.put(p, s, n=decimal(n), t=decimal(1_700_000_000 + n))) for p, s, n in puts)
        )
        assert not looks
        assert [(one.new and one.new.body) for one in answers] == [
            (one.new and one.new.body) for one in outcomes
        ]
        assert stored(blindly) == stored(decided)


def test_the_revision_grows_even_when_the_clock_stands(
    engine: Engine, clock: Clock, looks: list[int]
) -> None:
    things = Client(engine, make_table(engine))
    things.write(things.put("a"), things.put("b"))
    before = [row.modified_at for row in things.rows()]
    clock.ns -= 10**9
    looks.clear()
    things.write(blind(things.put("a", n=decimal(1))), blind(things.put("b")))
    things.write(blind(things.put("a", n=decimal(2))))
    assert not looks
    assert [row.modified_at for row in things.rows()] == [before[0] + 2, before[1] + 1]


def test_a_row_with_kinds_of_its_own_is_looked_at(engine: Engine, looks: list[int]) -> None:
    seen: list[Row | None] = []

    def rule(old: Row | None, new: Contents) -> Contents:
        seen.append(old)
        return new

    things = Client(engine, make_table(engine))
    things.write(things.put("a", n=Value(Kind.INT64, 1)))
    looks.clear()
    things.write(*(things.put(p, n=decimal(2))._replace(wants_old=False, rule=rule) for p in ("a", "b")))
    assert looks
    assert any(old is not None and not old.is_native for old in seen)
    assert [row.latest["n"] for row in things.rows()] == [decimal(2), decimal(2)]


def test_nothing_is_put_into_a_table_that_is_gone(engine: Engine, database: Database, clock: Clock) -> None:
    things = Client(engine, make_table(engine))
    other = Client(engine, make_table(engine, "other"))
    [_] = engine.run([DropTable(things.table)])
    answers = engine.run([WriteGroup((blind(client.put("a")),)) for client in (things, other)])
    assert [type(answer) for answer in answers] == [StaleTable, StaleTable]
    assert other.rows() == []
    with database.read() as session:
        assert session.query("SELECT count(*) FROM rows") == [(0,)]


def test_blind_puts_of_two_servers_neither_deadlock_nor_lose_a_revision(database: Database) -> None:
    engines = [Engine(Store(database))]
    if database.shared:
        url = database.engine.url.render_as_string(hide_password=False)
        engines.append(Engine(Store(open_database(at_another_node(url)))))
    table = make_table(engines[0])
    lists, keys = 40, [f"p{number}" for number in range(6)]
    together = threading.Barrier(4)

    def put(writer: int) -> None:
        choice = random.Random(writer)
        client = Client(engines[writer % len(engines)], table)
        together.wait()
        for _ in range(lists):
            client.write(*(blind(client.put(p, writer=text(str(writer)))) for p in choice.sample(keys, 4)))

    client = Client(engines[0], table)
    client.write(*(client.put(p) for p in keys))
    before = {row.position: row.modified_at for row in client.rows()}
    all_at_once([lambda writer=writer: put(writer) for writer in range(4)])  # type: ignore[misc]
    after = client.rows()
    assert len(after) == len(keys)
    assert all(row.modified_at > before[row.position] and "writer" in row.latest for row in after)
    for engine in engines[1:]:
        engine.close()


# Inserts


def insert(client: Client, p: str, **values: Value) -> Write:
    return client.put(p, **values)._replace(condition=Not(RowExists()))


@pytest.mark.parametrize(
    "condition", [Not(RowExists()), Not(Exists(("p",))), And((Not(Exists(("p",))), ALWAYS))]
)
def test_an_insert_that_meets_a_row_fails_alone(engine: Engine, condition: Predicate) -> None:
    things = Client(engine, make_table(engine))
    things.write(things.put("b", n=decimal(1)))
    groups = [
        WriteGroup((things.put(p, n=decimal(2))._replace(condition=condition),)) for p in ("a", "b", "c")
    ]
    first, second, third = engine.run(groups)
    assert isinstance(second, ConditionFailed)
    assert second.row.latest["n"] == decimal(1)
    assert first[0].old is None and third[0].old is None
    assert [row.latest["n"] for row in things.rows()] == [decimal(2), decimal(1), decimal(2)]


def test_a_group_of_inserts_is_whole_or_not_at_all(engine: Engine) -> None:
    things = Client(engine, make_table(engine))
    things.write(things.put("b"))
    [answer] = engine.run([WriteGroup(tuple(insert(things, p) for p in ("a", "b", "c")))])
    assert isinstance(answer, GroupRefused)
    assert [row.latest["p"] for row in things.rows()] == [text("b")]


def test_two_inserts_of_one_row_have_one_winner(engine: Engine) -> None:
    things = Client(engine, make_table(engine))
    first, second = engine.run([WriteGroup((insert(things, "a", n=decimal(n)),)) for n in (1, 2)])
    assert first[0].new.latest["n"] == decimal(1)
    assert isinstance(second, ConditionFailed)


# Which tables


@pytest.mark.parametrize(
    ("rules", "is_blind"),
    [
        (Rules(), True),
        (Rules(max_versions=3, stamped=True), True),
        (Rules(expiry=ExpiryRule(attribute="t")), True),
        (Rules(stream=StreamRule("label", False, "KEYS_ONLY", 1, 0)), True),
        (Rules(expiry=ExpiryRule(age_ms=1_000)), False),
        (Rules(has_local_transactions=True), False),
        (Rules(stream=StreamRule("label", True, "KEYS_ONLY", 1, 0)), False),
    ],
)
def test_only_tables_with_nothing_but_known_features_are_written_blindly(
    rules: Rules, is_blind: bool
) -> None:
    table = Table(1, "", "t", "t", PAIR, (), rules, {}, State.ACTIVE, 0, 1, 0)
    client = Client(None, table)  # type: ignore[arg-type]
    groups = [WriteGroup((blind(client.put("a")),))]
    assert (blind_writes.fast_puts(groups, [table], 10**16) is not None) is is_blind


def test_a_rule_that_nobody_has_heard_of_is_a_feature() -> None:
    """So a new side effect of writes keeps its tables from blind writes until somebody says that it does no harm."""

    @dataclass(frozen=True)
    class RulesOfTomorrow(Rules):
        audits: bool = False

    def table(rules: Rules) -> Table:
        return Table(1, "", "t", "t", PAIR, (), rules, {}, State.ACTIVE, 0, 1, 0)

    assert table(RulesOfTomorrow()).features == frozenset()
    assert table(RulesOfTomorrow(audits=True)).features == {"audits"}
    drawn = KeySchema((KeyColumn("p", Kind.TEXT),), (KeyColumn("s", Kind.INT64, auto_increment=True),))
    assert replace(table(Rules()), key_schema=drawn).features == {"auto_increment"}


def test_a_field_that_nobody_has_heard_of_keeps_fast_paths_off() -> None:
    assert fast_paths.covers(WriteGroup, "writes token transaction")
    assert not fast_paths.covers(WriteGroup, "writes token")
    assert fast_paths.covers(ReadAll, "gets max_bytes")
    assert not fast_paths.covers(ReadAll, "gets")
