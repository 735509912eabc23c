"""Counts of rows and bytes are maintained by writes. The fixture `engine` compares them with the rows after each test."""

from __future__ import annotations

import random
import threading

from tablegate.gateway.engine.engine import Engine, run_with_retries
from tablegate.gateway.engine.tables import row_counting
from tablegate.gateway.features.history.backup_commands import CopyTables
from tablegate.gateway.model.commands.row_commands import BulkLoad, WriteGroup
from tablegate.gateway.model.commands.table_commands import (
    AlterTable,
    CountRows,
    CreateTable,
    DropTable,
    FindTable,
    TableStatistics,
)
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.values import decimal, text
from tests.gateway.engine.conftest import PAIR, Client, by_color, do_background_work, make_table
from tests.support.statements import Listener


def statistics(engine: Engine, table: Table) -> TableStatistics:
    [found] = engine.run([CountRows(table)])
    assert isinstance(found, TableStatistics)
    return found


def totals(counts: TableStatistics) -> tuple[int, int]:
    return counts.rows, counts.size_bytes


def forget_counts(engine: Engine) -> None:
    """Leave the database as a copy or a backfill leaves it."""
    with engine._store.write() as session:
        session.execute("DELETE FROM row_counts WHERE owner_id > ?", (0,))


def of_rows(client: Client) -> tuple[int, int]:
    rows = client.rows()
    return len(rows), sum(row.size_bytes for row in rows)


def test_a_count_reads_no_rows(engine: Engine, things: Client, statements_say_where: Listener) -> None:
    things.write(*(things.put(f"p{n}") for n in range(30)))
    with engine._store.write() as session:
        session.execute(
            "UPDATE row_counts SET rows = rows + 1000 WHERE stripe = -1 AND owner_id = ?", (things.table.id,)
        )
    assert statistics(engine, things.table).rows == 1030
    with engine._store.write() as session:
        session.execute(
            "UPDATE row_counts SET rows = rows - 1000 WHERE stripe = -1 AND owner_id = ?", (things.table.id,)
        )


def test_counts_follow_random_writes(engine: Engine) -> None:
    things = Client(engine, make_table(engine, indexes=(by_color(),)))
    chance = random.Random(5)
    for _ in range(30):
        groups = []
        for _ in range(chance.randint(1, 5)):
            p, s = chance.choice("abc"), chance.randint(0, 2)
            color = {"color": text("red" * chance.randint(1, 3))} if chance.random() < 0.6 else {}
            write = things.remove(p, s) if chance.random() < 0.3 else things.put(p, s, **color)
            groups.append(WriteGroup((write,)))
        engine.run(groups)
        assert totals(statistics(engine, things.table)) == of_rows(things)


def test_a_table_of_an_earlier_release_is_counted_once(engine: Engine) -> None:
    things = Client(engine, make_table(engine, indexes=(by_color(),)))
    things.write(*(things.put(f"p{n}", color=text("red")) for n in range(10)))
    forget_counts(engine)
    things.write(things.put("more"), things.remove("p3"))
    counted = statistics(engine, things.table)
    assert totals(counted) == of_rows(things)
    assert counted.indexes["by_color"][0] == 9
    things.write(things.put("p4", x=text("x")), things.put("last", color=text("blue")))
    counted = statistics(engine, things.table)
    assert totals(counted) == of_rows(things)
    assert counted.indexes["by_color"][0] == 9


def test_an_index_is_counted_when_it_is_filled(engine: Engine, things: Client) -> None:
    things.write(*(things.put(f"p{n}", color=text("red")) for n in range(300)))
    [things.table] = engine.run([AlterTable("test", things.table, add_indexes=(by_color(),))])
    things.write(things.remove("p1"), things.put("p2"), things.put("new", color=text("blue")))
    assert statistics(engine, things.table).indexes["by_color"] == (0, 0)
    do_background_work(engine)
    [things.table] = engine.run([FindTable("", "things")])
    assert statistics(engine, things.table).indexes["by_color"][0] == 299
    things.write(things.remove("p5"))
    assert statistics(engine, things.table).indexes["by_color"][0] == 298


def test_loaded_rows_are_counted(engine: Engine) -> None:
    things = Client(engine, make_table(engine, indexes=(by_color(),)))
    rows = tuple(
        (things.key(f"p{n}").position, things.contents(f"p{n}", color=text("red"))) for n in range(50)
    )
    engine.run([BulkLoad(things.table, rows)])
    counted = statistics(engine, things.table)
    assert totals(counted) == of_rows(things)
    assert counted.indexes["by_color"][0] == 50


def test_a_copy_has_the_counts_of_its_source(engine: Engine, things: Client) -> None:
    things.write(*(things.put(f"p{n}") for n in range(7)))
    engine.run([CopyTables((("", "elsewhere"),))])
    [copied] = engine.run([FindTable("elsewhere", "things")])
    assert totals(statistics(engine, copied)) == of_rows(things)


def test_a_copy_of_a_table_without_counts_is_counted(engine: Engine, things: Client) -> None:
    things.write(*(things.put(f"p{n}") for n in range(7)))
    forget_counts(engine)
    engine.run([CopyTables((("", "elsewhere"),))])
    [copied] = engine.run([FindTable("elsewhere", "things")])
    assert totals(statistics(engine, copied)) == of_rows(things)


def test_counts_of_a_dropped_table_go_with_its_rows(engine: Engine, things: Client) -> None:
    things.write(things.put("a"))
    engine.run([DropTable(things.table)])
    do_background_work(engine)
    with engine._store.read() as session:
        assert session.query("SELECT count(*) FROM row_counts WHERE owner_id = ?", (things.table.id,)) == [
            (0,)
        ]


def test_a_wrong_count_is_found_and_repaired(engine: Engine, things: Client) -> None:
    things.write(things.put("a"))
    with engine._store.write() as session:
        session.execute(
            "UPDATE row_counts SET rows = rows + 5 WHERE owner_id = ? AND stripe = -1", (things.table.id,)
        )
    [line] = row_counting.mismatches(engine._store)
    assert line.startswith("things/things: stored Count(rows=6")
    [again] = engine.run([CountRows(things.table, again=True)])
    assert again == statistics(engine, things.table)
    assert totals(again) == of_rows(things)


def test_counts_of_several_writers_are_exact(engines: list[Engine]) -> None:
    """The table has no counts at first, so that they are completed while others write."""
    [table] = engines[0].run([CreateTable("test", "", "things", PAIR, (by_color(),))])
    forget_counts(engines[0])
    failures: list[object] = []

    def write(engine: Engine, seed: int) -> None:
        things, chance = Client(engine, table), random.Random(seed)
        for n in range(40):
            key = chance.choice("abcdef")
            write = (
                things.remove(key)
                if chance.random() < 0.4
                else things.put(key, n % 2, color=decimal(n), x=text("x" * n))
            )
            [answer] = run_with_retries(engine, [WriteGroup((write,))])
            if isinstance(answer, Exception):
                failures.append(answer)

    writers = [threading.Thread(target=write, args=(engine, seed)) for seed, engine in enumerate(engines * 2)]
    for writer in writers:
        writer.start()
    counting = [statistics(engines[0], table) for _ in range(20)]
    for writer in writers:
        writer.join()
    assert failures == []
    assert counting
    assert list(row_counting.mismatches(engines[0]._store)) == []
