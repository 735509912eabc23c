"""RIGHT JOIN and USING of SQLQuery ("Join" of Tablestore's SQL). Random joins are in test_selects_against_sqlite.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tests.adapters.tablestore.client import Refused, TableStoreService
from tests.support.clock import Clock
from tests.support.sql_client import sql


@pytest.fixture(scope="module")
def service() -> Iterator[TableStoreService]:
    """Tables of three rows: pk 0 to 2 in a, 1 to 3 in b, 2 to 4 in c. n is pk + 10 in a, and + 20 in the others."""
    with TableStoreService.opened(Clock()) as opened:
        for first, (table, more) in enumerate({"a": 10, "b": 20, "c": 20}.items()):
            opened.create(table, ("pk", messages.INTEGER))
            for key in range(first, first + 3):
                opened.put({"pk": key}, {"n": key + more}, table=table)
            sql(opened, f"create table {table} (pk bigint primary key, n bigint)")
        yield opened


@pytest.mark.parametrize(
    ("query", "names", "rows"),
    [
        ("select * from a right join b on a.pk = b.pk order by b.pk", "pk n pk n",
         [(1, 11, 1, 21), (2, 12, 2, 22), (None, None, 3, 23)]),
        ("select * from a right outer join b using (pk) order by pk", "n pk n", [(11, 1, 21), (12, 2, 22), (None, 3, 23)]),
        ("select * from a left join b using (pk) order by pk", "pk n n", [(0, 10, None), (1, 11, 21), (2, 12, 22)]),
        ("select * from a join b using (PK)", "pk n n", [(1, 11, 21), (2, 12, 22)]),
        ("select b.*, a.pk from a join b using (pk) where pk = 1", "pk n pk", [(1, 21, 1)]),
        ("select a.pk from a right join b using (pk) where a.pk is null", "pk", [(None,)]),
        ("select pk from a join b using (pk) join c using (pk)", "pk", [(2,)]),
        ("select pk, a.n from a right join b using (pk) right join c using (pk) order by pk", "pk n",
         [(2, 12), (3, None), (4, None)]),
        ("select c.n from b join c using (pk, n) order by c.n", "n", [(22,), (23,)]),
        ("select a.pk from a right join b on a.pk = b.pk where a.pk > 1 or b.n = 23 order by b.n", "pk", [(2,), (None,)]),
        ("select b.pk from a right join b on a.pk = b.pk where a.pk = 1", "pk", [(1,)]),
    ],
)  # fmt: skip
def test_results(service: TableStoreService, query: str, names: str, rows: list[Any]) -> None:
    answer = sql(service, query)
    assert (answer.names, answer.rows) == (names.split(), rows)


@pytest.mark.parametrize(
    "query",
    ["select * from a join b using (x)", "select * from a join b using ()", "select n from a join b using (pk)",
     "select * from a join b using (pk) join c using (n)", "select * from a full join b using (pk)",
     "select * from a natural join b", "select * from a join b using (pk) on 1"],
)  # fmt: skip
def test_refusals(service: TableStoreService, query: str) -> None:
    with pytest.raises(Refused) as refused:
        sql(service, query)
    assert (refused.value.status, refused.value.code) == (400, "OTSParameterInvalid")
