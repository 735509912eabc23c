"""Many rows loaded at once are what the same puts leave, whatever the table has and whatever was there."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.engine.rows import loading
from tablegate.gateway.model.commands.row_commands import BulkLoad
from tablegate.gateway.model.commands.stream_commands import ListShards, ReadChanges
from tablegate.gateway.model.commands.table_commands import AlterTable, FindTable
from tablegate.gateway.model.errors import StaleTable
from tablegate.gateway.model.tables.tables import ExpiryRule, Rules, StreamRule
from tablegate.gateway.model.values.rows import Cell, Contents
from tablegate.gateway.model.values.values import Kind, Value, decimal, text
from tablegate.gateway.store.sql.databases import Database
from tests.gateway.engine.conftest import PAIR, Client, by_color, make_table
from tests.support.clock import Clock

STREAM = StreamRule("label", True, "NEW_AND_OLD_IMAGES", 86_400_000, 0)


def contents(client: Client, chance: random.Random) -> Contents:
    p, s = chance.choice(["a", "b", "é\x00" * 9, "long" * 600]), chance.randrange(12)
    more = {
        "color": chance.choice([text("red"), text("blue"), decimal(1)]),
        "t": decimal(1_700_000_000 + chance.randrange(99)),
        "data": Value(Kind.BYTES, chance.randbytes(chance.randrange(40))),
    }
    if chance.random() < 0.3:
        more["other"] = Value(Kind.DOUBLE, 0.5)
    if chance.random() < 0.3:
        key_values = {"p": text(p), "s": decimal(s)}
        cells = {name: (Cell(value, 1_700_000_000_000),) for name, value in more.items()}
        return Contents.of_cells(key_values, cells)
    return client.contents(p, s, **more)


def stored(database: Database, client: Client) -> list[Any]:
    """Everything that the database holds of a table, but for ids and the time of the last write."""
    with database.read() as session:
        rows = session.query(
            "SELECT partition, sort, slot, expires_at_ms, size_bytes, kinds, body, full_key FROM rows"
            " WHERE table_id = ? ORDER BY partition, sort", (client.table.id,),
        )  # fmt: skip
        entries = session.query(
            "SELECT e.partition, e.sort, e.slot, e.size_bytes, e.row_partition, e.row_sort, e.row_slot, e.full_key"
            " FROM entries e JOIN indexes i ON i.id = e.index_id WHERE i.table_id = ? ORDER BY 1, 2", (client.table.id,),
        )  # fmt: skip
    return [*rows, *entries]


RULES = {
    "plain": Rules(),
    "expiry": Rules(expiry=ExpiryRule(attribute="t")),
    "ages": Rules(expiry=ExpiryRule(age_ms=86_400_000), stamped=True),
    "stream": Rules(stream=STREAM),
}


@pytest.mark.parametrize("has_index", [False, True], ids=["no index", "index"])
@pytest.mark.parametrize("rules", RULES)
def test_a_load_and_puts_leave_the_same_rows(
    database: Database, engine: Engine, rules: str, has_index: bool
) -> None:
    indexes = (by_color(),) if has_index else ()
    loaded = Client(engine, make_table(engine, "loaded", indexes=indexes, rules=RULES[rules]))
    put = Client(engine, make_table(engine, "put", indexes=indexes, rules=RULES[rules]))
    chance = random.Random(f"{rules} {has_index}")
    for _ in range(6):
        batch = [contents(put, chance) for _ in range(chance.randrange(1, 9))]
        rows = tuple((PAIR.key(each.latest).position, each) for each in batch)
        assert engine.run([BulkLoad(loaded.table, rows)]) == [None]
        [answer] = engine.run([loading.puts_of(BulkLoad(put.table, rows))])
        assert isinstance(answer, list), answer
        assert stored(database, loaded) == stored(database, put)
    assert stored(database, loaded)


@pytest.mark.fast_paths
def test_new_rows_are_loaded_without_a_look(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    things = Client(engine, make_table(engine, indexes=(by_color(),)))
    rows = tuple((things.key("a", s).position, things.contents("a", s)) for s in range(100))
    with monkeypatch.context() as patched:
        patched.delattr(loading, "puts_of")
        assert engine.run([BulkLoad(things.table, rows)]) == [None]
    assert len(things.rows()) == 100


def test_times_of_writes_grow_over_what_is_there(engine: Engine, clock: Clock) -> None:
    things = Client(engine, make_table(engine))
    rows = ((things.key("a").position, things.contents("a", x=text("new"))),)
    things.write(things.put("a", x=text("old")))
    [before] = things.rows()
    clock.advance(-60)
    assert engine.run([BulkLoad(things.table, rows)]) == [None]
    [after] = things.rows()
    assert after.modified_at > before.modified_at
    assert after.latest["x"] == text("new")


def test_a_stream_has_the_loaded_rows(engine: Engine) -> None:
    things = Client(engine, make_table(engine, rules=Rules(stream=STREAM)))
    rows = tuple((things.key("a", s).position, things.contents("a", s)) for s in range(3))
    assert engine.run([BulkLoad(things.table, rows)]) == [None]
    from tablegate.gateway.model.commands.stream_commands import ListStreams

    [[stream]] = engine.run([ListStreams("")])
    [[shard]] = engine.run([ListShards(stream)])
    [page] = engine.run([ReadChanges(stream, shard.number, 1, 100)])
    assert [change.key_values["s"] for change in page.changes] == [decimal(0), decimal(1), decimal(2)]


def test_a_load_stores_all_rows_or_none(engine: Engine) -> None:
    things = Client(engine, make_table(engine))
    stale = things.table
    engine.run([AlterTable("test", things.table, properties={"test": {}}, instant=True)])
    rows = tuple((things.key("a", s).position, things.contents("a", s)) for s in range(3))
    [answer] = engine.run([BulkLoad(stale, rows)])
    assert isinstance(answer, StaleTable)
    [found] = engine.run([FindTable("", "things")])
    assert Client(engine, found).rows() == []
