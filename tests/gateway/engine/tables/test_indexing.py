"""An index is a function of the rows: after any writes, its entries are exactly those that the rows call for."""

from __future__ import annotations

import random
import threading

import pytest

from tablegate.gateway.engine.engine import Engine, run_with_retries
from tablegate.gateway.model.commands.row_commands import Get, WriteGroup
from tablegate.gateway.model.commands.table_commands import AlterTable, CountRows, FindTable, NewIndex
from tablegate.gateway.model.errors import StaleTable, TableBusy
from tablegate.gateway.model.expressions.ranges import EVERYTHING
from tablegate.gateway.model.tables.indexes import IndexProjection
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.values import Kind, decimal, text
from tests.gateway.engine.conftest import Client, by_color, column, do_background_work, make_table


def entries_of(client: Client, index_name: str) -> list[tuple[str, int, str]]:
    index = client.table.index(index_name)
    found = client.page(EVERYTHING, index=index, whole_rows=True).rows
    return [(row.latest["color"].data, int(row.latest["s"].data), row.latest["p"].data) for row in found]


def expected_entries(client: Client) -> list[tuple[str, int, str]]:
    return sorted(
        (row.latest["color"].data, int(row.latest["s"].data), row.latest["p"].data)
        for row in client.rows()
        if "color" in row.latest and row.latest["color"].kind is Kind.TEXT
    )


@pytest.mark.parametrize("projection", list(IndexProjection))
def test_entries_follow_random_writes(engine: Engine, projection: IndexProjection) -> None:
    things = Client(engine, make_table(engine, indexes=(by_color(projection),)))
    chance = random.Random(7)
    for _ in range(40):
        writes = []
        for _ in range(chance.randint(1, 6)):
            p, s = chance.choice("abcd"), chance.randint(0, 3)
            color = chance.choice([text("red"), text("blue"), decimal(1), None])
            more = {} if color is None else {"color": color}
            remove = chance.random() < 0.3
            writes.append(
                things.remove(p, s)
                if remove
                else things.put(p, s, x=text("x" * chance.randint(0, 9)), **more)
            )
        engine.run([WriteGroup((write,)) for write in writes])
        assert entries_of(things, "by_color") == expected_entries(things)


def test_an_entry_has_the_size_of_its_projection(engine: Engine) -> None:
    things = Client(engine, make_table(engine, indexes=(by_color(IndexProjection.ALL),)))
    things.write(things.put("a", color=text("red")))
    things.write(things.put("a", color=text("red"), x=text("x" * 100)))
    [statistics] = engine.run([CountRows(things.table)])
    assert statistics.indexes["by_color"] == (1, statistics.size_bytes)


def test_a_new_index_is_filled_with_existing_rows(engine: Engine, things: Client) -> None:
    things.write(*(things.put(f"p{n}", n, color=text("red" if n % 2 else "blue")) for n in range(600)))
    [things.table] = engine.run([AlterTable("test", things.table, add_indexes=(by_color(),))])
    with pytest.raises(TableBusy):
        entries_of(things, "by_color")
    do_background_work(engine)
    [things.table] = engine.run([FindTable("", "things")])
    assert entries_of(things, "by_color") == expected_entries(things)
    assert len(entries_of(things, "by_color")) == 600


def test_an_index_switched_on_under_load_misses_no_row(engine: Engine, things: Client) -> None:
    """Writers update the index from its first moment. The backfill and the writers work on the same rows."""
    stop = threading.Event()
    errors: list[BaseException] = []

    def load(seed: int) -> None:
        chance = random.Random(seed)
        table = things.table
        try:
            while not stop.is_set():
                client = Client(engine, table)
                color = chance.choice(["red", "blue", "green"])
                write = client.put(f"p{chance.randint(0, 200)}", chance.randint(0, 2), color=text(color))
                [answer] = run_with_retries(engine, [WriteGroup((write,))])
                if isinstance(answer, StaleTable):
                    [table] = engine.run([FindTable("", "things")])
                else:
                    assert isinstance(answer, list), answer
        except BaseException as error:
            errors.append(error)

    things.write(*(things.put(f"p{n}", 0, color=text("old")) for n in range(500)))
    writers = [threading.Thread(target=load, args=(seed,)) for seed in range(3)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(20):
            [altered] = run_with_retries(
                engine, [AlterTable("test", things.table, add_indexes=(by_color(),))]
            )
            if not isinstance(altered, StaleTable):
                break
        do_background_work(engine)
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert errors == []
    [things.table] = engine.run([FindTable("", "things")])
    assert entries_of(things, "by_color") == expected_entries(things)


def test_a_dropped_index_leaves_no_entries(engine: Engine) -> None:
    things = Client(engine, make_table(engine, indexes=(by_color(),)))
    things.write(*(things.put(f"p{n}", color=text("red")) for n in range(10)))
    [things.table] = engine.run([AlterTable("test", things.table, drop_indexes=("by_color",))])
    do_background_work(engine)
    with engine._store.read() as session:
        assert session.query("SELECT count(*) FROM entries") == [(0,)]
    assert len(things.rows()) == 10


def test_an_index_of_four_and_four_columns(engine: Engine) -> None:
    columns = [column(name, Kind.TEXT if at % 2 else Kind.DECIMAL) for at, name in enumerate("abcdefgh")]
    wide = NewIndex("wide", KeySchema(tuple(columns[:4]), tuple(columns[4:])), IndexProjection.ALL)
    things = Client(engine, make_table(engine, indexes=(wide,)))
    full = {c.name: text("v") if c.kind is Kind.TEXT else decimal(1) for c in columns}
    things.write(things.put("whole", **full), things.put("partial", **{**full, "h": decimal(1)}))
    rows = things.rows(index=things.table.index("wide"))
    assert [row.latest["p"].data for row in rows] == ["whole"]
    assert engine.run([Get(things.table, things.key("partial").position)]) != [None]
