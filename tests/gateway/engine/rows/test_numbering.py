"""Auto-increment key columns: increasing numbers, never assigned twice, under concurrent writers."""

from __future__ import annotations

import threading

from tablegate.gateway.engine.engine import Engine, run_with_retries
from tablegate.gateway.model.commands.row_commands import Get, WriteGroup
from tablegate.gateway.model.commands.table_commands import CreateTable, DropTable
from tablegate.gateway.model.commands.writes import Edit, Replace, Write
from tablegate.gateway.model.expressions.updates import PutCell
from tablegate.gateway.model.tables.tables import Rules, Table
from tablegate.gateway.model.values.keys import AUTO_INCREMENT, Key, KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Cell, Contents
from tablegate.gateway.model.values.values import Kind, Value, text
from tests.gateway.engine.conftest import do_background_work
from tests.support.clock import Clock

SCHEMA = KeySchema((KeyColumn("p", Kind.TEXT),), (KeyColumn("id", Kind.INT64, auto_increment=True),))


def make(engine: Engine) -> Table:
    [table] = engine.run([CreateTable("test", "", "t", SCHEMA, (), Rules(stamped=True))])
    assert isinstance(table, Table)
    return table


def key(p: str) -> Key:
    """Return a key without its auto-increment number."""
    return Key((text(p), AUTO_INCREMENT), SCHEMA.position([text(p)]))  # type: ignore[arg-type]


def put(table: Table, p: str) -> WriteGroup:
    contents = Contents.of_cells({"p": text(p)}, {"a": (Cell(text("x"), 5),)})
    return WriteGroup((Write(table, key(p), Replace(contents)),))


def drawn(answer: object) -> int:
    [outcome] = answer  # type: ignore[misc]
    number: int = outcome.new.latest["id"].data
    return number


def test_a_put_and_an_edit_draw(engine: Engine) -> None:
    table = make(engine)
    edit = WriteGroup((Write(table, key("a"), Edit((PutCell("a", text("y")),))),))
    first, second = (drawn(answer) for answer in engine.run([put(table, "a"), edit]))
    assert second == first + 1
    for number, value in ((first, "x"), (second, "y")):
        values = [text("a"), Value(Kind.INT64, number)]
        [row] = engine.run([Get(table, SCHEMA.position(values))])
        assert list(row.latest) == ["p", "id", "a"]
        assert row.latest == {"p": values[0], "id": values[1], "a": text(value)}


def test_stamps_stay(engine: Engine) -> None:
    table = make(engine)
    [[outcome]] = engine.run([put(table, "a")])
    assert outcome.new.cells["a"] == (Cell(text("x"), 5),)


def test_numbers_begin_at_the_time_and_grow_though_the_clock_goes_back(engine: Engine, clock: Clock) -> None:
    table = make(engine)
    [answer] = engine.run([put(table, "a")])
    before = drawn(answer)
    assert abs(before - clock.ns // 1_000) < 1_000_000
    clock.advance(-3_600)
    [answer] = engine.run([put(table, "a")])
    assert drawn(answer) == before + 1


def test_partitions_count_for_themselves(engine: Engine) -> None:
    table = make(engine)
    numbers = [drawn(answer) for answer in engine.run([put(table, p) for p in "aabba"])]
    assert [number - numbers[0] for number in numbers[:2]] == [0, 1]
    assert numbers[4] == numbers[0] + 2
    assert numbers[3] == numbers[2] + 1


def test_counters_go_with_their_table(engine: Engine) -> None:
    table = make(engine)
    engine.run([put(table, "a")])
    engine.run([DropTable(table)])
    do_background_work(engine)
    with engine._store.read() as session:
        assert session.query("SELECT count(*) FROM counters WHERE name LIKE 'drawn/%'")[0][0] == 0


def test_no_number_is_drawn_twice_by_many(engines: list[Engine]) -> None:
    table = make(engines[0])
    numbers: list[list[int]] = [[] for _ in range(4)]

    def draw(at: int) -> None:
        engine = engines[at % len(engines)]
        for _ in range(15):
            # The order alternates, so that writers that lock in request order would deadlock.
            names = "ab" if at % 2 else "ba"
            answers = run_with_retries(engine, [put(table, p) for p in names])
            numbers[at].append(drawn(answers[names.index("a")]))

    threads = [threading.Thread(target=draw, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    everything = [number for mine in numbers for number in mine]
    assert len(set(everything)) == 60
    assert all(mine == sorted(mine) for mine in numbers)
