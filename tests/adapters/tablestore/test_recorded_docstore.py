"""The 211 requests of multicloudj's AliDocstoreIT to the service on 31 July 2026, with units, rows and refusals as recorded.

Source: salesforce/multicloudj 9fb0aaa85, docstore/docstore-ali. Names and values are ours. The order is that of the recorded
dates, and each part begins with the rows that the part before it left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tests.adapters.tablestore.client import TableStoreService
from tests.adapters.tablestore.filter_messages import composite, single
from tests.adapters.tablestore.recording import EQ, KEYS, MAX, MIN, NEW, Recording, revised, revision_is

OLD, ANY = messages.EXPECT_EXIST, messages.IGNORE
MORE = messages.CT_GREATER_THAN
NOT, AND, OR = messages.LO_NOT, messages.LO_AND, messages.LO_OR

COUNTS = {
    "query": 33,
    "get": 21,
    "put": 23,
    "replace": 21,
    "create": 16,
    "delete": 22,
    "atomic": 40,
    "undone": 35,
}

EXISTS = "Row exists which is expected nonexistent"
MISSING = "Row does not exist which is expected existent"
FAILED = "Condition check failed."

FULL = {"i": 121, "b": True, "s": "text", "bytes": b"text", "f": 12.65999984741211}
OTHER = {"i": 95, "b": False, "s": "other", "bytes": b"other", "f": 34.560001373291016}
BARE = {"i": 121, "s": "text", "bytes": b"text", "f": 12.65999984741211}
SMALL = {"i": 121, "b": True, "s": "text", "f": 12.65999984741211}


@pytest.fixture
def recording(service: TableStoreService) -> Recording:
    """The two tables of the recordings."""
    text = messages.STRING
    service.create("one", ("name", text))
    defined = [
        ("score", messages.DCT_INTEGER),
        ("time", messages.DCT_STRING),
        ("glitch", messages.DCT_BOOLEAN),
    ]
    indexes = [
        messages.IndexMeta(
            name="lsi",
            primary_key=KEYS["lsi"],
            defined_column=["time", "glitch"],
            index_type=messages.IT_LOCAL_INDEX,
            index_update_mode=messages.IUM_SYNC_INDEX,
        ),
        messages.IndexMeta(
            name="gsi",
            primary_key=KEYS["gsi"],
            defined_column=["score", "glitch"],
            index_type=messages.IT_GLOBAL_INDEX,
            index_update_mode=messages.IUM_ASYNC_INDEX,
        ),
    ]
    columns = [messages.DefinedColumnSchema(name=name, type=kind) for name, kind in defined]
    service.create("two", ("game", text), ("player", text), defined=columns, index_metas=indexes)
    return Recording(service)


PLAYS = [
    ("east", "pat", 49, "2024-03-13", False),
    ("east", "mel", 60, "2024-04-10", False),
    ("east", "andy", 81, "2024-02-01", False),
    ("east", "fran", 33, "2024-03-19", False),
    ("west", "pat", 120, "2024-04-01", True),
    ("west", "billie", 111, "2024-04-10", False),
    ("west", "mel", 190, "2024-04-18", True),
    ("west", "fran", 33, "2024-03-20", False),
]
EVERYWHERE = ((MIN, MIN), (MAX, MAX))
EAST = [("east", name) for name in ("andy", "fran", "mel", "pat")]
WEST = [("west", name) for name in ("billie", "fran", "mel", "pat")]
GLITCHES = [("west", "mel"), ("west", "pat")]


def equals(name: str, value: Any) -> bytes:
    return single(name, EQ, value, if_missing=False)


def above(name: str, value: Any) -> bytes:
    return single(name, MORE, value, if_missing=False)


def query(on: Recording) -> None:
    """GetRange on the table and on its two indexes, each with the filters that a document store sends."""
    on.scan_all()
    for game, player, score, time, glitch in PLAYS:
        on.put((game, player), {"score": score, "time": time, "glitch": glitch}, (1, 1), ANY)
    details = on.describe("two")
    assert [each.index_sync_phase for each in details.index_metas] == [messages.ISP_INCR] * 2
    on.scan("two", *EVERYWHERE, EAST + WEST)
    on.scan("two", ("west", MIN), ("west", MAX), WEST, equals("game", "west"))
    on.scan("two", *EVERYWHERE, [WEST[0], *WEST[2:]], above("score", 100))
    on.scan("gsi", ("billie", MIN, MIN), ("billie", MAX, MAX), WEST[:1], equals("player", "billie"))
    both = composite(AND, equals("game", "east"), equals("player", "andy"))
    on.scan("two", ("east", "andy"), ("east", MAX), EAST[:1], both)
    low = single("score", messages.CT_LESS_THAN, 100, if_missing=False)
    on.scan(
        "gsi", ("pat", MIN, MIN), ("pat", MAX, MAX), EAST[3:], composite(AND, equals("player", "pat"), low)
    )
    half = single("score", messages.CT_GREATER_EQUAL, 50, if_missing=False)
    on.scan(
        "lsi",
        ("east", 50, MIN),
        ("east", MAX, MAX),
        [EAST[2], EAST[0]],
        composite(AND, equals("game", "east"), half),
    )
    either = composite(OR, equals("player", "pat"), equals("player", "billie"))
    on.scan("two", *EVERYWHERE, [EAST[3], WEST[0], WEST[3]], either)
    on.scan("two", *EVERYWHERE, [*EAST[:3], *WEST[1:3]], composite(NOT, either))
    for _ in range(2):
        on.scan("two", *EVERYWHERE, GLITCHES, equals("glitch", True))
    on.scan("two", *EVERYWHERE, [*EAST, *WEST[:2]], composite(NOT, equals("glitch", True)))
    _pages(on)


def _pages(on: Recording) -> None:
    """Whole queries, and the same again from the last row that was shown."""

    def part(game: str, rest: bytes) -> bytes:
        return composite(AND, equals("game", game), rest)

    on.scan("two", ("east", "."), ("east", MAX), EAST, part("east", above("player", ".")))
    on.scan("two", ("west", "billie"), ("west", MAX), WEST[1:], part("west", above("player", "billie")))
    on.scan("two", ("west", "mel"), ("west", MAX), WEST[2:], part("west", above("player", "billie")))
    on.scan("two", ("east", "andy"), ("east", MAX), EAST[1:], part("east", above("player", "andy")))
    fair = part("west", equals("glitch", False))
    on.scan("two", ("west", MIN), ("west", MAX), WEST[:2], fair)
    on.scan("two", ("west", "billie"), ("west", MAX), WEST[:2], fair)
    high = part("west", above("score", 100))
    on.scan("lsi", ("west", 100, MAX), ("west", MAX, MAX), [WEST[0], WEST[3], WEST[2]], high)
    on.scan("lsi", ("west", 120, "pat"), ("west", MAX, MAX), [WEST[3], WEST[2]], high)
    late = composite(AND, equals("player", "mel"), above("time", "2024-02-01"))
    on.scan("gsi", ("mel", "2024-02-01", MAX), ("mel", MAX, MAX), [EAST[2], WEST[2]], late)
    on.scan("gsi", ("mel", "2024-04-10", "east"), ("mel", MAX, MAX), [EAST[2], WEST[2]], late)


def get(on: Recording) -> None:
    """BatchGetRow of whole rows, of some columns, of columns that no row has, and of an absent row."""
    on.scan_all()
    some, most = ("name", "f", "i"), ("s", "name", "f", "i")
    every = ("b", "s", "name", "f", "bytes", "i")
    wanted: list[tuple[str, dict[str, Any], tuple[str, ...] | None]] = [
        ("puma", FULL, ()),
        ("bishop", FULL, ()),
        ("prince", FULL, some),
        ("edward", {**FULL, "i": 95, "f": 32.29999923706055}, every),
        ("frank", FULL, most),
        ("david", FULL, every),
        ("queen", BARE, ("Bytes", "S", "name", "f", "I")),
        ("tiger", BARE, None),
    ]
    for name, cells, columns in wanted:
        on.put((name,), cells, (1, 1))
        if columns is not None:
            on.get((name,), columns=columns)
    on.put(("lion",), FULL, (1, 1))
    on.get(("absent",), columns=some)
    on.put(("shark",), revised(FULL, "r0"), (1, 1))
    on.get(("shark",), columns=most)


def put(on: Recording) -> None:
    """Covers deletes with and without a condition, puts over rows, and a condition on an absent row."""
    on.scan_all()
    on.delete(("shark",), (1, 1), "r0")
    for name in ("puma", "tiger", "edward", "bishop", "prince", "lion", "david", "frank", "queen"):
        on.delete((name,), (0, 1))
    for cells in (FULL, {**FULL, "i": 111, "s": "text2", "bytes": b"text2"}):
        on.put(("john",), cells, (0, 1), ANY)
        on.get(("john",))
    for cells in (revised(FULL, "r1"), revised({**FULL, "s": "map", "bytes": b"map"}, "r2")):
        on.put(("taylor",), cells, (0, 1), ANY)
        on.get(("taylor",))
    cells = {name: value for name, value in revised(FULL, "r3").items() if name != "s"}
    on.refused(("leo",), cells, FAILED, column_condition=revision_is("123"))
    on.put(("leo",), cells, (0, 1), ANY)
    on.get(("leo",))


def replace(on: Recording) -> None:
    """Puts over rows that must exist, with fewer columns than before too."""
    on.scan_all()
    on.delete(("leo",), (1, 1), "r3")
    on.delete(("john",), (0, 1))
    on.delete(("taylor",), (1, 1), "r2")

    def over(name: str, before: dict[str, Any], after: dict[str, Any]) -> None:
        on.put((name,), before, (1, 1))
        on.put((name,), after, (1, 1), OLD)
        on.get((name,))

    over("john", FULL, OTHER)
    over("david", {**FULL, "i": 999}, {"i": 95, "b": False, "s": "other", "f": 0.0})
    on.put(("edward",), {**FULL, "i": 999}, (1, 1))
    on.refused(("absent",), OTHER, MISSING, expect=OLD)
    over("taylor", revised(FULL, "r4"), revised(OTHER, "r5"))
    over("king", revised(FULL, "r6"), revised({"s": "other", "f": OTHER["f"]}, "r7"))
    on.put(("leo",), revised(FULL, "r8"), (1, 1))
    on.refused(("absent map",), revised(OTHER, "r9"), MISSING, expect=OLD)


def create(on: Recording) -> None:
    """Puts of rows that must be new."""
    on.scan_all()
    for name, revision in [
        ("edward", None),
        ("david", None),
        ("taylor", "r5"),
        ("john", None),
        ("king", "r7"),
        ("leo", "r8"),
    ]:
        on.delete((name,), (0, 1) if revision is None else (1, 1), revision)
    on.put(("john",), FULL, (1, 1))
    on.get(("john",))
    on.refused(("john",), {**FULL, "i": 111}, EXISTS, expect=NEW)
    on.put(("taylor",), revised(FULL, "r10"), (1, 1))
    on.get(("taylor",))
    on.refused(("taylor",), revised({**FULL, "i": 111}, "r11"), EXISTS, expect=NEW)
    on.put(("leo",), revised(FULL, "r12"), (1, 1))
    on.get(("leo",))


def delete(on: Recording) -> None:
    """Deletes of rows with and without a revision, each read afterwards."""
    on.scan_all()
    on.delete(("john",), (0, 1))
    on.delete(("taylor",), (1, 1), "r10")
    on.delete(("leo",), (1, 1), "r12")

    def gone(name: str, cells: dict[str, Any], revision: str | None = None) -> None:
        on.put((name,), cells, (1, 1))
        on.delete((name,), (0, 1) if revision is None else (1, 1), revision)
        on.get((name,))

    gone("john", SMALL)
    gone("edward", FULL)
    on.put(("frank",), SMALL, (1, 1))
    gone("tiger", revised(FULL, "r13"), "r13")
    gone("lion", FULL)
    gone("louis", revised(FULL, "r14"))
    on.put(("clark",), FULL, (1, 1))


def _filled(
    on: Recording, game: str, numbers: list[int], cleared: list[int], spared: tuple[int, ...] = ()
) -> None:
    """Deletes of rows that are absent, puts of with_number rows, deletes of the first three."""
    for number in cleared:
        on.delete((game, str(number)), (1, 1))
    for number in numbers:
        if number not in spared:
            on.put((game, str(number)), {"revision": f"r{number}", "s": str(number)}, (1, 1))


def atomic(on: Recording) -> None:
    """Puts of a local transaction, which is committed."""
    on.scan_all()
    on.delete(("frank",), (0, 1))
    on.delete(("clark",), (0, 1))
    _filled(on, "atomic", [1, 7, 3, 8, 2, 5, 6, 0, 4], [6, 0, 2, 7, 8, 3, 5, 4, 1])
    for number in (2, 1, 0):
        on.delete(("atomic", str(number)), (1, 1), f"r{number}")
    transaction = on.begin("atomic")
    on.get(*(("atomic", str(number)) for number in (3, 4, 5)))
    for number in (6, 7, 8):
        cells = {"revision": f"s{number}", "s": str(number) * 2}
        condition = revision_is(f"r{number}")
        on.put(
            ("atomic", str(number)),
            cells,
            (1, 1),
            ANY,
            column_condition=condition,
            transaction_id=transaction,
        )
    on.end("CommitTransaction", transaction)
    for number in (6, 7, 8):
        on.get(("atomic", str(number)))
    for number, letter in [(5, "r"), (3, "r"), (6, "s"), (8, "s"), (4, "r"), (7, "s")]:
        on.delete(("atomic", str(number)), (1, 1), f"{letter}{number}")


def undone(on: Recording) -> None:
    """Puts of a local transaction, which is aborted since a condition of the third fails."""
    on.scan_all()
    _filled(on, "undone", [7, 4, 6, 1, 5, 2, 3, 0], [4, 3, 7, 2, 8, 5, 6, 1, 0])
    for number in (0, 2, 1):
        on.delete(("undone", str(number)), (1, 1), f"r{number}")
    on.get(*(("undone", str(number)) for number in (3, 4, 5)))
    transaction = on.begin("undone")
    before = dict(on.rows)
    for number in (6, 7):
        cells = {"revision": f"s{number}", "s": str(number) * 2}
        condition = revision_is(f"r{number}")
        on.put(
            ("undone", str(number)),
            cells,
            (1, 1),
            ANY,
            column_condition=condition,
            transaction_id=transaction,
        )
    last = {"revision": "s8", "s": "8"}
    on.refused(("undone", "8"), last, FAILED, column_condition=revision_is("88"), transaction_id=transaction)
    on.end("AbortTransaction", transaction)
    on.rows = before
    on.get(("undone", "6"))
    on.get(("undone", "7"))
    for number in (7, 5, 3, 4, 6):
        on.delete(("undone", str(number)), (1, 1), f"r{number}")


PARTS: list[Callable[[Recording], None]] = [query, get, put, replace, create, delete, atomic, undone]


def test_every_recorded_answer(recording: Recording) -> None:
    for part in PARTS:
        before = recording.sent
        part(recording)
        assert recording.sent - before == COUNTS[part.__name__], part.__name__
    assert recording.sent == 211
