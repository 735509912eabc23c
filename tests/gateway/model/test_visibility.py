"""Visible versions of a row: windows, and the age after which a table shows nothing."""

from __future__ import annotations

from tablegate.gateway.model.tables.tables import ExpiryRule, Rules, State, Table
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Cell, Contents, Row, VersionWindow
from tablegate.gateway.model.values.values import Kind, Value, text

SCHEMA = KeySchema((KeyColumn("p", Kind.TEXT),))
KEY = {"p": text("a")}


def cell(stamp_ms: int) -> Cell:
    return Cell(Value(Kind.INT64, stamp_ms), stamp_ms)


def table(age_ms: int | None) -> Table:
    expiry = None if age_ms is None else ExpiryRule(age_ms=age_ms)
    rules = Rules(expiry=expiry, stamped=True, max_versions=9)
    return Table(1, "", "t", "t", SCHEMA, (), rules, {}, State.ACTIVE, 0, 1, 0)


def row(**stamps: list[int]) -> Row:
    cells = {name: tuple(cell(stamp) for stamp in versions) for name, versions in stamps.items()}
    return Row(SCHEMA.key(KEY).position, Contents.of_cells(KEY, cells), 500 * 10_000)


def left(seen: Row | None, of: Table) -> dict[str, list[int]] | None:
    if seen is None:
        return None
    return {name: [each.stamp_ms for each in cells] for name, cells in of.cells_of(seen).items()}


def test_windows() -> None:
    cells = tuple(cell(stamp) for stamp in (50, 40, 30, 20))
    assert VersionWindow().of(cells) == cells
    assert [each.stamp_ms for each in VersionWindow(versions=2).of(cells)] == [50, 40]
    assert [each.stamp_ms for each in VersionWindow(start_ms=30, end_ms=50).of(cells)] == [40, 30]
    assert [each.stamp_ms for each in VersionWindow(start_ms=20, end_ms=41, versions=1).of(cells)] == [40]
    assert VersionWindow(start_ms=60).of(cells) == ()


def test_cells_past_their_age_are_gone_and_with_the_last_of_them_the_row() -> None:
    aged = table(100)
    both = row(a=[450, 300], b=[400])
    assert left(aged.visible(both, 400), aged) == {"a": [450, 300], "b": [400]}
    assert left(aged.visible(both, 450), aged) == {"a": [450], "b": [400]}
    assert left(aged.visible(both, 501), aged) == {"a": [450]}
    assert aged.visible(both, 551) is None


def test_a_row_of_key_columns_alone_ages_from_when_it_was_written() -> None:
    aged = table(100)
    assert left(aged.visible(row(), 600), aged) == {}
    assert aged.visible(row(), 601) is None
    assert aged.expires_at_ms(row()) == 600


def test_rows_of_a_table_without_an_age_stay_visible() -> None:
    ageless = table(None)
    assert ageless.visible(row(a=[1]), 1 << 50) is not None
    assert ageless.visible(None, 1) is None


def test_visible_contents_are_measured_with_every_version() -> None:
    seen = Contents.visible(KEY, {"é": (cell(2), cell(1))})
    assert seen.size_bytes == 1 + 1 + 2 * (2 + 8)
    assert seen.latest == {**KEY, "é": cell(2).value}


def test_replacing_values_keeps_stamps() -> None:
    contents = row(a=[450, 300], b=[400]).contents
    changed = contents.replacing({"a": text("new"), "p": text("other")}, ("p",))
    assert changed.latest["p"] == text("other")
    assert changed.cells(0)["a"] == (Cell(text("new"), 450), cell(300))
    assert changed.cells(0)["b"] == (cell(400),)
