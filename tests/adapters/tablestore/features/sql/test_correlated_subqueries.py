"""Subqueries of SQLQuery that use columns of the outer statement. Random ones are in test_selects_against_sqlite.py."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from tablegate.adapters.tablestore.features.sql import work
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tests.adapters.tablestore.client import Refused, TableStoreService
from tests.support.clock import Clock
from tests.support.sql_client import sql
from tests.support.tables import each_row

ROWS = 10


@pytest.fixture(scope="module")
def service() -> Iterator[TableStoreService]:
    """Two tables of ten rows: pk is 0 to 9, n is pk % 3, and rows 8 and 9 have no n."""
    with TableStoreService.opened(Clock()) as opened:
        for table in ("a", "b"):
            opened.create(table, ("pk", messages.INTEGER))
            for number in range(ROWS):
                opened.put({"pk": number}, {"n": number % 3} if number < 8 else {}, table=table)
            sql(opened, f"create table {table} (pk bigint primary key, n bigint)")
        yield opened


@each_row(
    "query, expected",
    [
        ("select pk from a where exists (select 1 from b where b.n = a.n and b.pk > a.pk)", [0, 1, 2, 3, 4]),
        ("select pk from a where not exists (select 1 from b where b.n = a.n)", [8, 9]),
        ("select pk from a where pk = (select max(pk) from b where b.n = a.n)", [5, 6, 7]),
        ("select pk from a where pk in (select b.pk * 2 from b where b.n = a.n)", [0, 6]),
        ("select (select count(*) from b where b.n = a.n) from a where pk in (0, 2, 9)", [3, 2, 0]),
        ("select (select a.pk + 1) from a where pk < 2", [1, 2]),
        ("select (select a.pk + max(b.n) from b) from a where pk < 2", [2, 3]),
        ("select count(*) from a group by n having n = (select min(b.pk) from b where b.pk = a.n)", [3, 3, 2]),
        ("select pk from a where n = 2 order by (select -a.pk)", [5, 2]),
        ("select pk from a where exists (select 1 from b where exists (select 1 from b c where c.pk = a.pk + b.pk + 9))", [0]),
        ("select x.pk from a x join b y on y.pk = (select min(pk) from b where pk > x.pk) where y.pk > 7", [7, 8]),
        ("select pk from a where (select pk from b where b.n = a.n order by pk desc limit 1 offset 2) = 0", [0, 3, 6]),
        ("select pk from a where 5 = (select count(*) from (select * from b where n < 2) x where x.n < a.n) and pk < 2", []),
        ("select a.pk from a join b on exists (select 1 from b c where c.pk = a.pk + b.pk + 8)", [0, 0, 1]),
        ("select count(*) from a where exists (select n from b where pk = 1 having max(a.pk) > 3)", [6]),
    ],
)  # fmt: skip
def test_results(service: TableStoreService, query: str, expected: list[Any]) -> None:
    expected_rows = [(each,) for each in expected]
    assert sql(service, query).rows == expected_rows


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("select pk from a where pk = (select pk from b where b.n = a.n)", "more than 1 row"),
        ("select pk from a where exists (select 1 from b x join b y on y.pk = a.pk)", "Unknown column"),
        ("select pk from a where exists (select 1 from (select a.pk) x)", "Unknown column"),
        ("select 1 from a join b x on (select a.pk = y.pk) join b y on 1", "the tables before it"),
        ("select 1 from a where exists (select 1 from b where c.n = a.n)", "Unknown column"),
        ("select 1 from a x, b y where exists (select pk from (select 1) z where pk = 1)", "ambiguous"),
    ],
)
def test_refusals(service: TableStoreService, query: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason) as refused:
        sql(service, query)
    assert (refused.value.status, refused.value.code) == (400, "OTSParameterInvalid")


def test_explain_has_the_reads_of_a_subquery_once(service: TableStoreService) -> None:
    steps = sql(
        service, "explain select pk from a where exists (select 1 from b where b.n = a.n and b.pk < 3)"
    ).rows
    assert [(table, access) for table, access, *_ in steps] == [("b", "table, range"), ("a", "table, all")]
    message = sql(service, "select pk from a where exists (select 1 from b where b.n = a.n)").message
    assert [each.consumed.capacity_unit.read for each in message.consumes] == [1, 1]


# Limits, on both sides


@pytest.mark.parametrize(
    ("condition", "pairs"),
    [("b.n > a.n", ROWS * ROWS), ("b.n = a.n", 3 * 3 + 3 * 3 + 2 * 2 + 2), ("b.n = a.n and b.pk < 0", ROWS)],
)
def test_the_pairs_of_rows(
    service: TableStoreService, monkeypatch: pytest.MonkeyPatch, condition: str, pairs: int
) -> None:
    """A row of the outer statement counts as one pair at least. An equality finds the rows of its value."""
    query = f"select pk from a where exists (select 1 from b where {condition})"
    expected = sql(service, query).rows
    monkeypatch.setattr(limits, "SQL_COMPARISONS_MAX", pairs)
    assert sql(service, query).rows == expected
    monkeypatch.setattr(limits, "SQL_COMPARISONS_MAX", pairs - 1)
    with pytest.raises(Refused, match="pairs of rows"):
        sql(service, query)


def test_the_rows_of_a_subquery_are_read_once(
    service: TableStoreService, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "select pk from a where exists (select 1 from b where b.n = a.n)"
    monkeypatch.setattr(limits, "SQL_ROWS_MAX", 2 * ROWS)
    assert len(sql(service, query).rows) == 8
    monkeypatch.setattr(limits, "SQL_ROWS_MAX", 2 * ROWS - 1)
    with pytest.raises(Refused, match="exceeds the limit"):
        sql(service, query)


def test_every_pair_of_rows_counts_against_the_time_limit(
    service: TableStoreService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look at the clock takes a second here, and there are 100 pairs."""
    monkeypatch.setattr(work, "monotonic", itertools.count().__next__)
    monkeypatch.setattr(limits, "SQL_SECONDS", 60.0)
    with pytest.raises(Refused) as refused:
        sql(service, "select pk from a where not exists (select 1 from b where b.pk > a.pk + 100)")
    assert refused.value.code == "OTSTimeout"
