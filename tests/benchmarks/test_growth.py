"""The data and the output of benchmarks/growth.py, without servers."""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree

import pytest

from benchmarks import growth
from benchmarks.growth import Figure


@pytest.mark.parametrize("rows", [2_000, 10_000, 40_000])
def test_every_key_has_the_same_number_of_items_at_all_sizes(rows: int) -> None:
    """Otherwise a query of a larger table returns more items, and the growth of its cost means nothing."""
    items = [growth._item(number, rows) for number in range(rows)]
    for attribute in ("pk", "colour"):
        assert set(Counter(item[attribute]["S"] for item in items).values()) == {20}
    partitions = {item["pk"]["S"] for item in items if item["colour"] == items[0]["colour"]}
    assert len(partitions) == 20


def _columns(sides: tuple[str, ...]) -> dict[growth.Column, growth.Figures]:
    return {
        ("sqlite", rows, side): {
            "GetItem, gateway": Figure("GetItem, gateway", "us", (cost, cost, cost)),
            "drop": Figure("drop", "rows/s", (1000 / cost,)),
        }
        for side in sides
        for rows, cost in ((10, 100.0), (1_000, 200.0 if side == "before" else 125.0))
    }


def test_the_table_has_a_column_for_each_size_and_side() -> None:
    assert growth.figures_table(_columns(("before", "now"))).splitlines() == [
        "|  | sqlite, 10, before | sqlite, 1,000, before | sqlite, 10, now | sqlite, 1,000, now |",
        "| :-- | --: | --: | --: | --: |",
        "| GetItem, gateway (us) | 100 | 200 | 100 | 125 |",
        "| drop (rows/s) | 10 | 5 | 10 | 8 |",
    ]
    assert growth.figures_table(_columns(("now",))).startswith("|  | sqlite, 10 | sqlite, 1,000 |")


@pytest.mark.parametrize("sides", [("now",), ("before", "now")])
def test_the_chart_has_the_growth_of_each_figure(sides: tuple[str, ...]) -> None:
    texts = [
        text for text in ElementTree.fromstring(growth.chart(_columns(sides))).itertext() if text.strip()
    ]
    assert [text for text in texts if text.startswith("sqlite")] == [
        "sqlite: GetItem, gateway",
        "sqlite: drop",
    ]
    # Costs at 10 rows by those at 1,000. A lower rate is a higher cost.
    assert texts[-3::2] == ["0.80", "0.80"]
