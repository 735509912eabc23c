"""Refusals are cheap: rows, batches, filters and tables with very many small parts.

Earlier, a CreateTable of many indexes took 15 s for each 10 MB, and batches of many tables without keys 5 s.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from google.protobuf.message import DecodeError

from tablegate.adapters.tablestore.operation_table import OPERATIONS
from tablegate.adapters.tablestore.wire import limits, parsing
from tablegate.adapters.tablestore.wire.plainbuffer import WireCell, WireRow, encode_row
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.values.values import Kind, Value
from tests.adapters.tablestore import wasteful_requests
from tests.adapters.tablestore.client import Refused, TableStoreService
from tests.adapters.tablestore.wasteful_requests import Wasteful
from tests.support import refusal_costs
from tests.support.clock import Clock

pytestmark = pytest.mark.extended

SIZE_BYTES = 1_000_000
DEEP_BYTES = 400_000  # each level of filters is a copy of those below it
KINDS = {
    "batches": wasteful_requests.batches,
    "rows": wasteful_requests.rows,
    "filters": wasteful_requests.filters,
    "tables": wasteful_requests.tables,
}


@pytest.fixture(scope="module")
def service() -> Iterator[TableStoreService]:
    with TableStoreService.opened(Clock()) as made:
        made.create()
        yield made


def problem(service: TableStoreService, each: Wasteful) -> str | None:
    """Return the problem of a request's refusal, or None."""

    def read() -> None:
        with contextlib.suppress(DecodeError):
            OPERATIONS[each.operation].request().ParseFromString(each.body)

    return refusal_costs.problem(len(each.body), read, lambda: service.post(each.operation, each.body))


@pytest.mark.parametrize("kind", list(KINDS))
def test_refusals_cost_little(service: TableStoreService, kind: str) -> None:
    wrong: dict[str, str] = {}
    for each in KINDS[kind](DEEP_BYTES if kind == "filters" else SIZE_BYTES):
        found = problem(service, each)
        if found is not None:
            wrong[f"{each.operation}: {each.name}"] = found
    assert wrong == {}


def test_the_measure_finds_wasteful_requests(
    service: TableStoreService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the lists being cut, many indexes take too long."""
    monkeypatch.setattr(parsing, "_shorten_lists", lambda message: None)
    monkeypatch.setattr(parsing, "shorten_fields", lambda data, descriptor: data)
    [many] = [each for each in wasteful_requests.tables(DEEP_BYTES) if each.name == "many indexes"]
    assert "took" in (problem(service, many) or "")


def row(key_columns: int, cells: int) -> bytes:
    one = Value(Kind.INT64, 1)
    return encode_row(
        WireRow(
            [WireCell(f"k{number}", one) for number in range(key_columns)],
            [WireCell(f"c{number}", one) for number in range(cells)],
        )
    )


@pytest.mark.parametrize("count", [5, limits.KEY_CELLS_MAX, limits.KEY_CELLS_MAX + 1])
def test_a_key_of_too_many_columns_is_called_so_however_many(service: TableStoreService, count: int) -> None:
    with pytest.raises(Refused, match="The number of primary key columns must be in range"):
        service.call("GetRow", table_name="t", primary_key=row(count, 0), max_versions=1)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (limits.CELLS_MAX, f"column count: {limits.CELLS_MAX}"),
        (limits.CELLS_MAX + 1, "more cells than any row has"),
    ],
)
def test_cells_are_counted_up_to_twice_as_many_as_there_may_be(
    service: TableStoreService, count: int, text: str
) -> None:
    condition = messages.Condition(row_existence=messages.IGNORE)
    with pytest.raises(Refused, match=text):
        service.call("PutRow", table_name="t", row=row(1, count), condition=condition)


@pytest.mark.parametrize("count", [limits.BATCH_GET_ROWS_MAX, limits.BATCH_GET_ROWS_MAX + 1])
def test_tables_without_keys_are_no_more_than_rows_may_be(service: TableStoreService, count: int) -> None:
    tables = [messages.TableInBatchGetRowRequest(table_name="t", max_versions=1)] * count
    if count <= limits.BATCH_GET_ROWS_MAX:
        assert len(service.call("BatchGetRow", tables=tables).tables) == count
    else:
        with pytest.raises(Refused, match="Rows count exceeds the upper limit: 100"):
            service.call("BatchGetRow", tables=tables)
