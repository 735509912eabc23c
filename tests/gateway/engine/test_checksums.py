"""A row that differs from its checksum is never returned by any kind of read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.model.commands.row_commands import BulkLoad, Get, Read, ReadAll, WriteGroup
from tablegate.gateway.model.errors import DataCorrupted
from tablegate.gateway.model.expressions.predicates import Exists
from tablegate.gateway.model.expressions.ranges import EVERYTHING, within
from tablegate.gateway.model.tables.pages import Concatenation, PageLimits, Segment
from tablegate.gateway.model.tables.tables import ExpiryRule, Rules
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Kind, Value, decimal, text
from tablegate.gateway.store.rows import rows
from tablegate.gateway.store.sql import checksums
from tablegate.gateway.store.sql.databases import Database
from tests.gateway.engine.conftest import Client, by_color, do_background_work, make_table
from tests.gateway.engine.rows.test_reading import partition
from tests.support.clock import Clock

pytestmark = pytest.mark.damages_rows


@pytest.fixture
def client(engine: Engine) -> Client:
    """Partition a has twelve rows, each with an index entry. Partition b has one."""
    made = Client(engine, make_table(engine, indexes=(by_color(),)))
    made.write(*(made.put("a", s, color=text("red"), filler=text("x" * 20)) for s in range(12)))
    made.write(made.put("b", 0, color=text("blue")))
    return made


def damage(database: Database, change: str, s: int = 3) -> None:
    """Change a stored row of partition a behind the back of the gateway."""
    with database.write() as session:
        [(sort, slot)] = session.query(
            "SELECT sort, slot FROM rows WHERE partition = ? ORDER BY sort LIMIT 1 OFFSET ?",
            (partition("a"), s),
        )
        session.execute(
            f"UPDATE rows SET {change} WHERE partition = ? AND sort = ? AND slot = ?",
            (partition("a"), sort, slot),
        )


READS: dict[str, Callable[[Client], Any]] = {
    "get": lambda it: Get(it.table, it.key("a", 3).position),
    "gets": lambda it: ReadAll((Get(it.table, it.key("a", 3).position), Get(it.table, it.key("b").position))),
    "page": lambda it: Read(it.table, within(partition("a")), PageLimits()),
    "scan": lambda it: Read(it.table, EVERYTHING, PageLimits(), reverse=True),
    "segment": lambda it: Read(it.table, EVERYTHING, PageLimits(), segment=Segment(0, 1)),
    "bodies": lambda it: Read(
        it.table, within(partition("a")), PageLimits(), concatenation=Concatenation(",")
    ),
    "lines": lambda it: Read(
        it.table,
        within(partition("a")),
        PageLimits(),
        concatenation=Concatenation("\n", False, True),
        reverse=True,
    ),
    "filter": lambda it: Read(it.table, EVERYTHING, PageLimits(), filter=Exists(("filler",))),
    "index": lambda it: Read(it.table, EVERYTHING, PageLimits(), index=it.table.index("by_color")),
    "edit": lambda it: WriteGroup((it.edit("a", 3),)),
    "delete": lambda it: WriteGroup((it.remove("a", 3),)),
}


@pytest.mark.parametrize("way", READS)
def test_a_damaged_row_is_given_out_in_no_way(way: str, client: Client, database: Database) -> None:
    read = READS[way](client)
    if way not in ("edit", "delete"):
        assert not isinstance(client.engine.run([read])[0], Exception)
    damage(database, "size_bytes = size_bytes + 1")
    [answer] = client.engine.run([read])
    assert isinstance(answer, DataCorrupted)
    assert answer.row == tuple(client.key("a", 3).position)


@pytest.mark.parametrize(
    "change",
    [
        "body = (SELECT r.body FROM rows r WHERE r.table_id = rows.table_id AND r.slot <> rows.slot)",
        "kinds = body",
        "full_key = body",
        "size_bytes = size_bytes - 1",
        "modified_at = modified_at - 1",
        "checksum = checksum + 1",
        "modified_at = modified_at + 1",
    ],
)
def test_damage_of_any_column_is_found(change: str, client: Client, database: Database) -> None:
    damage(database, change)
    assert isinstance(client.engine.run([READS["get"](client)])[0], DataCorrupted)


def test_a_row_under_the_key_of_another_is_found(client: Client, database: Database) -> None:
    [moved] = client.engine.run([Get(client.table, client.key("a", 3).position)])
    other = moved.position.sort + b"x"
    with database.write() as session:
        session.execute("UPDATE rows SET sort = ? WHERE partition = ? AND sort = ?", (other, *moved.position))
    [answer] = client.engine.run([Get(client.table, Position(partition("a"), other))])
    assert isinstance(answer, DataCorrupted)


def test_neighbours_of_a_damaged_row_are_answered(client: Client, database: Database) -> None:
    damage(database, "size_bytes = size_bytes + 1")
    gets = [Get(client.table, client.key("a", s).position) for s in range(5)]
    answers = client.engine.run([*gets])
    assert [isinstance(answer, Row) for answer in answers] == [True, True, True, False, True]
    edits = [WriteGroup((client.edit("a", s),)) for s in range(5)]
    answers = client.engine.run([*edits])
    assert [isinstance(answer, list) for answer in answers] == [True, True, True, False, True]


def test_every_way_to_write_leaves_a_checksum(client: Client, engine: Engine) -> None:
    plain = Client(engine, make_table(engine, "plain"))
    for _ in range(2):  # inserted, and put over what is there
        plain.write(*(plain.put(name, s) for name in "ab" for s in range(3)))
    plain.write(plain.put("c", n=Value(Kind.INT64, 1)))
    plain.write(plain.edit("a", 0), plain.put("long" * 600, 1), plain.remove("b", 1))
    [loaded] = engine.run(
        [BulkLoad(plain.table, [(plain.key("l", s).position, plain.contents("l", s)) for s in range(9)])]
    )  # type: ignore[arg-type]
    assert loaded is None
    do_background_work(engine)
    with engine._store.read() as session:
        found = session.query("SELECT checksum FROM rows")
    assert len(found) == 13 + 5 + 1 + 1 + 9
    assert (None,) not in found
    assert len(plain.rows()) == 16


def test_no_checksum_is_verified_if_verification_is_off(
    client: Client, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage(database, "size_bytes = size_bytes + 1")
    monkeypatch.setattr(checksums, "are_verified", False)
    for way, read in READS.items():
        assert not isinstance(client.engine.run([read(client)])[0], Exception), way


def test_a_damaged_row_holds_up_the_expiry_of_no_other(
    engine: Engine, database: Database, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    table = make_table(engine, rules=Rules(expiry=ExpiryRule(attribute="t")))
    client = Client(engine, table)
    client.write(*(client.put("a", s, t=decimal(clock.ms // 1000)) for s in range(9)))
    damage(database, "size_bytes = size_bytes + 1", 0)
    clock.advance(60)
    do_background_work(engine)
    with database.read() as session:
        assert rows.count(session, table.id)[0] == 1
    [told] = {
        record.facts["row"] for record in caplog.records if record.getMessage() == "stored data is damaged"
    }  # type: ignore[attr-defined]
    with pytest.raises(DataCorrupted, match=f"row {told} of table things"):
        engine.ping()
