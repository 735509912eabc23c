"""Local transactions by their wire: starting, seeing, keeping out, ending."""

from __future__ import annotations

from typing import Any

import pytest

from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.plainbuffer import Bound
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tests.adapters.tablestore.client import Refused, TableStoreService, plain, row, rows_of, units_of

UNKNOWN = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def table(service: TableStoreService) -> TableStoreService:
    """A table (p STRING, i INTEGER) with row (a, 1)."""
    service.create("t", ("p", messages.STRING), ("i", messages.INTEGER))
    service.put({"p": "a", "i": 1}, {"n": 1})
    return service


def start(service: TableStoreService, p: Any = "a", table: str = "t") -> str:
    answer = service.call("StartLocalTransaction", table_name=table, key=row({"p": p}))
    assert units_of(answer) == (0, 1)
    found: str = answer.transaction_id
    return found


def rows_in(service: TableStoreService, transaction: str = "") -> list[Any]:
    bounds: Any = ({"p": "a", "i": Bound.INF_MIN}, {"p": "a", "i": Bound.INF_MAX})
    return rows_of(service.range(*bounds, **({"transaction_id": transaction} if transaction else {})))


def test_a_commit_applies_the_staged_writes(table: TableStoreService) -> None:
    transaction = start(table)
    table.put({"p": "a", "i": 2}, {"n": 2}, transaction_id=transaction)
    table.update({"p": "a", "i": 1}, {"m": 5}, transaction_id=transaction)
    assert plain(table.get({"p": "a", "i": 1}, transaction_id=transaction)) == {
        "p": "a",
        "i": 1,
        "n": 1,
        "m": 5,
    }
    assert plain(table.get({"p": "a", "i": 1})) == {"p": "a", "i": 1, "n": 1}
    assert len(rows_in(table, transaction)) == 2
    assert len(rows_in(table)) == 1
    answer = table.call("CommitTransaction", transaction_id=transaction)
    assert units_of(answer) == (0, 1)
    assert rows_in(table) == [{"p": "a", "i": 1, "n": 1, "m": 5}, {"p": "a", "i": 2, "n": 2}]


def test_an_abort_discards_the_staged_writes(table: TableStoreService) -> None:
    transaction = start(table)
    table.delete({"p": "a", "i": 1}, transaction_id=transaction)
    assert rows_in(table, transaction) == []
    table.call("AbortTransaction", transaction_id=transaction)
    assert len(rows_in(table)) == 1


def test_batches_in_a_transaction(table: TableStoreService) -> None:
    transaction = start(table)
    request = messages.BatchWriteRowRequest(transaction_id=transaction)
    part = request.tables.add(table_name="t")
    for number, expect in ((1, messages.EXPECT_EXIST), (2, messages.EXPECT_EXIST), (3, messages.IGNORE)):
        part.rows.add(
            type=messages.PUT,
            row_change=row({"p": "a", "i": number}, {"n": 9}),
            condition=messages.Condition(row_existence=expect),  # type: ignore[arg-type]
        )
    answer = table.ask("BatchWriteRow", request)
    assert [each.is_ok for each in answer.tables[0].rows] == [True, False, True]
    table.call("CommitTransaction", transaction_id=transaction)
    assert [each["i"] for each in rows_in(table)] == [1, 3]


def test_other_writers_are_refused_in_a_locked_partition(table: TableStoreService) -> None:
    start(table)
    for ask in (
        lambda: table.put({"p": "a", "i": 5}),
        lambda: table.update({"p": "a", "i": 1}, {"n": 2}),
        lambda: table.delete({"p": "a", "i": 1}),
        lambda: start(table),
    ):
        with pytest.raises(Refused) as told:
            ask()
        assert (told.value.status, told.value.code) == (409, "OTSRowOperationConflict")
        assert told.value.message == "Data is being modified by the other request."
    table.put({"p": "b", "i": 5})
    start(table, "b")


def test_a_transaction_has_sixty_seconds(table: TableStoreService) -> None:
    transaction = start(table)
    table.put({"p": "a", "i": 2}, transaction_id=transaction)
    table.clock.advance(limits.TRANSACTION_MS / 1000 - 1)
    assert table.get({"p": "a", "i": 2}, transaction_id=transaction) is not None
    table.clock.advance(1)
    with pytest.raises(Refused) as told:
        table.call("CommitTransaction", transaction_id=transaction)
    assert (told.value.status, told.value.code) == (404, "OTSSessionNotExist")
    assert told.value.message == "Session not exist or may be timeout."
    table.put({"p": "a", "i": 5})


def test_a_transaction_ends_once(table: TableStoreService) -> None:
    transaction = start(table)
    table.call("CommitTransaction", transaction_id=transaction)
    for ended in (transaction, UNKNOWN):
        for ask in (
            lambda name=ended: table.call("CommitTransaction", transaction_id=name),
            lambda name=ended: table.call("AbortTransaction", transaction_id=name),
            lambda name=ended: table.get({"p": "a", "i": 1}, transaction_id=name),
            lambda name=ended: table.put({"p": "a", "i": 1}, transaction_id=name),
            lambda name=ended: rows_in(table, name),
        ):
            with pytest.raises(Refused) as told:
                ask()
            assert told.value.code == "OTSSessionNotExist"


@pytest.mark.parametrize("name", ["", "x", "not a transaction", UNKNOWN + "0", UNKNOWN.upper()[:-1] + "F"])
def test_texts_that_are_no_id(table: TableStoreService, name: str) -> None:
    asks = [
        lambda: table.call("CommitTransaction", transaction_id=name),
        lambda: table.call("AbortTransaction", transaction_id=name),
    ]
    if name:
        asks += [
            lambda: table.get({"p": "a", "i": 1}, transaction_id=name),
            lambda: table.put({"p": "a", "i": 1}, transaction_id=name),
            lambda: rows_in(table, name),
        ]
    for ask in asks:
        with pytest.raises(Refused) as told:
            ask()
        assert (told.value.status, told.value.code) == (400, "OTSParameterInvalid")
        assert told.value.message == "TransactionID is invalid."


def test_a_transaction_names_the_partition_and_no_more(table: TableStoreService) -> None:
    with pytest.raises(Refused) as told:
        table.call("StartLocalTransaction", table_name="t", key=row({"p": "a", "i": 1}))
    assert told.value.message == "StartLocalTransaction support only one primary key."
    for key in ({"p": 1}, {"q": "a"}):
        with pytest.raises(Refused) as told:
            table.call("StartLocalTransaction", table_name="t", key=row(key))
        assert told.value.code == "OTSInvalidPK"
    with pytest.raises(Refused) as told:
        start(table, table="nowhere")
    assert told.value.code == "OTSObjectNotExist"


def test_writes_to_other_partitions(table: TableStoreService) -> None:
    transaction = start(table)
    with pytest.raises(Refused) as told:
        table.put({"p": "b", "i": 1}, transaction_id=transaction)
    assert told.value.code == "OTSDataOutOfRange"


def test_four_megabytes(table: TableStoreService) -> None:
    transaction = start(table)
    blob = b"x" * 2_000_000
    table.put({"p": "a", "i": 1}, {"blob": blob}, transaction_id=transaction)
    table.put({"p": "a", "i": 2}, {"blob": blob}, transaction_id=transaction)
    with pytest.raises(Refused) as told:
        table.put({"p": "a", "i": 3}, {"blob": blob}, transaction_id=transaction)
    assert told.value.code == "OTSParameterInvalid"
    table.call("CommitTransaction", transaction_id=transaction)
    assert len(rows_in(table)) == 2


def test_tables_can_be_made_without(service: TableStoreService) -> None:
    service.create("t", ("p", messages.STRING), enable_local_txn=False)
    service.create("u", ("p", messages.STRING), enable_local_txn=True)
    with pytest.raises(Refused) as told:
        start(service)
    assert told.value.message == (
        "Try to call method using explicit transaction on explicit-transaction-disabled table."
    )
    start(service, table="u")
