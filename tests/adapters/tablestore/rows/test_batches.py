"""BatchGetRow, BatchWriteRow, BulkImport: what fails a request, what fails a row, and what keeps its place."""

from __future__ import annotations

from typing import Any

import pytest

from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.plainbuffer import (
    Bound,
    CellOperation,
    WireCell,
    WireRow,
    decode_row,
    encode_row,
)
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.dialects.coroutines import drive
from tablegate.gateway.http.messages import Request
from tablegate.gateway.model.commands.command import Command
from tests.adapters.tablestore.client import (
    Refused,
    TableStoreService,
    cells_of,
    datum,
    plain,
    row,
    signed,
    units_of,
)
from tests.adapters.tablestore.filter_messages import single

IGNORE, EXPECT_EXIST = messages.IGNORE, messages.EXPECT_EXIST


@pytest.fixture
def table(service: TableStoreService) -> TableStoreService:
    service.create()
    return service


def change(
    kind: int, pk: Any, cells: Any = (), expect: int = IGNORE, returns: int = messages.RT_NONE
) -> messages.RowInBatchWriteRowRequest:
    data = (
        encode_row(WireRow(cells_of({"pk": pk}), (), True))
        if kind == messages.DELETE
        else row({"pk": pk}, cells)
    )
    return messages.RowInBatchWriteRowRequest(
        type=kind,  # type: ignore[arg-type]
        row_change=data,
        condition=messages.Condition(row_existence=expect),  # type: ignore[arg-type]
        return_content=messages.ReturnContent(return_type=returns),  # type: ignore[arg-type]
    )


def put(pk: Any, cells: Any = (), **more: Any) -> messages.RowInBatchWriteRowRequest:
    return change(messages.PUT, pk, cells, **more)


def write(
    service: TableStoreService, *tables: tuple[str, list[messages.RowInBatchWriteRowRequest]], **more: Any
) -> Any:
    request = messages.BatchWriteRowRequest(**more)
    for name, changes in tables:
        request.tables.add(table_name=name, rows=changes)
    return service.ask("BatchWriteRow", request)


def read(service: TableStoreService, *tables: tuple[str, list[Any]], **more: Any) -> Any:
    more.setdefault("max_versions", 1)
    request = messages.BatchGetRowRequest()
    for name, keys in tables:
        request.tables.add(table_name=name, primary_key=[row({"pk": pk}) for pk in keys], **more)
    return service.ask("BatchGetRow", request)


# Writing


def test_each_row_has_its_own_result_in_the_order_of_the_request(table: TableStoreService) -> None:
    table.put({"pk": 1}, {"a": 1})
    answer = write(
        table,
        (
            "t",
            [
                change(messages.UPDATE, 1, {"b": 2}),
                put(2, {"a": 2}),
                put(3, {"a": 3}, expect=EXPECT_EXIST),
                change(messages.DELETE, 4),
                put("text"),
                put(5, {"a": 5}),
            ],
        ),
    )
    [part] = answer.tables
    assert [result.is_ok for result in part.rows] == [True, True, False, True, False, True]
    assert (part.rows[2].error.code, part.rows[2].error.message) == (
        "OTSConditionCheckFail",
        "Row does not exist which is expected existent",
    )
    assert part.rows[4].error.code == "OTSInvalidPK"
    assert units_of(part.rows[0]) == (0, 1)
    assert not part.rows[2].HasField("consumed")
    assert plain(table.get({"pk": 1})) == {"pk": 1, "a": 1, "b": 2}
    assert table.get({"pk": 3}) is None
    assert plain(table.get({"pk": 5})) == {"pk": 5, "a": 5}


def test_one_row_twice_applies_in_order(table: TableStoreService) -> None:
    """Documents forbid it, and the Python and Java suites require it."""
    increment = [WireCell("n", datum(5), None, CellOperation.INCREMENT)]
    answer = write(
        table,
        (
            "t",
            [put(1, {"n": 1}), change(messages.UPDATE, 1, increment), change(messages.UPDATE, 1, {"m": 2})],
        ),
    )
    assert all(result.is_ok for result in answer.tables[0].rows)
    assert plain(table.get({"pk": 1})) == {"pk": 1, "n": 6, "m": 2}


def test_several_tables_and_one_table_twice(table: TableStoreService) -> None:
    table.create("u")
    answer = write(table, ("t", [put(1, {"a": 1})]), ("u", [put(1, {"a": 2})]), ("t", [put(2, {"a": 3})]))
    assert [part.table_name for part in answer.tables] == ["t", "u", "t"]
    assert plain(table.get({"pk": 1}, table="u")) == {"pk": 1, "a": 2}
    assert plain(table.get({"pk": 2})) == {"pk": 2, "a": 3}


def test_keys_are_returned_on_request(table: TableStoreService) -> None:
    answer = write(table, ("t", [put(1, {"a": 1}, returns=messages.RT_PK), put(2)]))
    first, second = answer.tables[0].rows
    assert plain(decode_row(first.row)) == {"pk": 1}
    assert not second.row


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ([], "No row is specified in BatchWriteRow."),
        ([("t", [])], "No operation is specified for table: 't'."),
        ([("t", [put(1)]), ("u-", [])], "Invalid table name: 'u-'."),
        ([("t", [put(number) for number in range(201)])], "Rows count exceeds the upper limit: 200."),
        ([("t", [put(1, {"#": 1})])], "Invalid column name: '#'."),
        ([("t", [put(Bound.INF_MIN)])], "VT_INF_MIN is an invalid type for the primary key."),
        (
            [
                (
                    "t",
                    [
                        put(1, {"a": "x" * 2_000_000}),
                        put(2, {"a": "x" * 2_000_000}),
                        put(3, {"a": "x" * 194_272}),
                    ],
                )
            ],
            (
                "The total data size of BatchWriteRow request exceeds the limit,"
                " limit size: 4194304, data size: 4194305."
            ),
        ),
    ],
)
def test_errors_of_a_request_fail_it_as_a_whole(table: TableStoreService, tables: Any, message: str) -> None:
    with pytest.raises(Refused) as told:
        write(table, *tables)
    assert (told.value.status, told.value.code, told.value.message) == (400, "OTSParameterInvalid", message)


def test_a_table_that_is_not_there_fails_the_whole_request(table: TableStoreService) -> None:
    with pytest.raises(Refused) as told:
        write(table, ("t", [put(1)]), ("nowhere", [put(1)]))
    assert (told.value.status, told.value.code) == (404, "OTSObjectNotExist")
    assert table.get({"pk": 1}) is None


def test_two_hundred_rows_and_four_megabytes(table: TableStoreService) -> None:
    write(table, ("t", [put(number) for number in range(limits.BATCH_WRITE_ROWS_MAX)]))
    write(
        table,
        ("t", [put(1, {"a": "x" * 2_000_000}), put(2, {"a": "x" * 2_000_000}), put(3, {"a": "x" * 194_271})]),
    )


# Atomic


@pytest.fixture
def pairs(service: TableStoreService) -> TableStoreService:
    service.create("t", ("p", messages.STRING), ("i", messages.INTEGER))
    return service


def pair(p: str, i: int, expect: int = IGNORE) -> messages.RowInBatchWriteRowRequest:
    return messages.RowInBatchWriteRowRequest(
        type=messages.PUT,
        row_change=row({"p": p, "i": i}, {"a": 1}),
        condition=messages.Condition(row_existence=expect),  # type: ignore[arg-type]
    )


def test_atomic_batches_happen_all_or_not_at_all(pairs: TableStoreService) -> None:
    answer = write(pairs, ("t", [pair("x", 1), pair("x", 2)]), is_atomic=True)
    assert [result.is_ok for result in answer.tables[0].rows] == [True, True]
    answer = write(pairs, ("t", [pair("x", 3), pair("x", 4, EXPECT_EXIST)]), is_atomic=True)
    assert [(result.is_ok, result.error.code) for result in answer.tables[0].rows] == [
        (False, "OTSConditionCheckFail")
    ] * 2
    assert pairs.get({"p": "x", "i": 3}) is None


def test_atomic_batches_are_of_one_partition(pairs: TableStoreService) -> None:
    answer = write(pairs, ("t", [pair("x", 1), pair("y", 2)]), is_atomic=True)
    for result in answer.tables[0].rows:
        assert (result.is_ok, result.error.code, result.error.message) == (
            False,
            "OTSDataOutOfRange",
            "Data out of scope of atomic. Atomic PartKey:x. Data PartKey:y",
        )
    assert pairs.get({"p": "x", "i": 1}) is None


def test_atomic_batches_have_no_transaction(pairs: TableStoreService) -> None:
    with pytest.raises(Refused) as told:
        write(pairs, ("t", [pair("x", 1)]), is_atomic=True, transaction_id="x")
    assert told.value.code == "OTSParameterInvalid"


# Reading


def test_rows_keep_their_places_whether_or_not_they_are_there(table: TableStoreService) -> None:
    table.create("u")
    table.put({"pk": 1}, {"a": 1})
    table.put({"pk": 2}, {"a": 2}, table="u")
    answer = read(table, ("t", [2, 1, 1]), ("u", [2]), ("t", [1]))
    assert [part.table_name for part in answer.tables] == ["t", "u", "t"]
    missing, first, again = answer.tables[0].rows
    assert missing.is_ok
    assert not missing.HasField("row")
    assert units_of(missing) == (1, 0)
    assert first.row == again.row
    assert plain(decode_row(first.row)) == {"pk": 1, "a": 1}
    assert plain(decode_row(answer.tables[1].rows[0].row)) == {"pk": 2, "a": 2}


def test_rows_encoded_together_keep_their_places(table: TableStoreService) -> None:
    write(table, ("t", [put(number, {"a": number}) for number in range(0, 40, 2)]))
    answer = read(table, ("t", ["x", *range(40)]))
    refused, *others = answer.tables[0].rows
    assert refused.error.code == "OTSInvalidPK"
    found = [plain(decode_row(other.row)) if other.row else None for other in others]
    assert found == [None if number % 2 else {"pk": number, "a": number} for number in range(40)]


def test_keys_that_do_not_fit_fail_their_row(table: TableStoreService) -> None:
    table.put({"pk": 1}, {"a": 1})
    answer = read(table, ("t", ["x", 1]))
    assert (answer.tables[0].rows[0].is_ok, answer.tables[0].rows[0].error.code) == (False, "OTSInvalidPK")
    assert answer.tables[0].rows[1].is_ok


def test_a_table_without_rows_is_answered_with_none(table: TableStoreService) -> None:
    answer = read(table, ("t", []))
    assert len(answer.tables) == 1
    assert not answer.tables[0].rows


def test_a_read_of_no_rows_or_too_many_is_refused(table: TableStoreService) -> None:
    with pytest.raises(Refused) as told:
        read(table)
    assert told.value.message == "No row specified in the request of BatchGetRow."
    read(table, ("t", list(range(limits.BATCH_GET_ROWS_MAX))))
    with pytest.raises(Refused) as told:
        read(table, ("t", list(range(limits.BATCH_GET_ROWS_MAX + 1))))
    assert told.value.message == "Rows count exceeds the upper limit: 100."
    with pytest.raises(Refused) as told:
        read(table, ("t", [1]), max_versions=None)
    assert told.value.message == "No version condition is specified while querying row."
    with pytest.raises(Refused) as told:
        read(table, ("nowhere", [1]))
    assert told.value.code == "OTSObjectNotExist"


# Bulk import


def test_bulk_import_puts_and_updates_rows(table: TableStoreService) -> None:
    answer = table.call(
        "BulkImport",
        table_name="t",
        rows=[
            messages.RowInBulkImportRequest(type=messages.PUT, row_change=row({"pk": 1}, {"a": 1})),
            messages.RowInBulkImportRequest(type=messages.UPDATE, row_change=row({"pk": 1}, {"b": "xy"})),
            messages.RowInBulkImportRequest(type=messages.PUT, row_change=row({"pk": "x"})),
        ],
    )
    assert answer.table_name == "t"
    assert [result.is_ok for result in answer.rows] == [True, True, False]
    assert units_of(answer.rows[0]) == (0, 0)
    assert [result.consumed.capacity_data_size.write_size for result in answer.rows[:2]] == [19, 13]
    assert plain(table.get({"pk": 1})) == {"pk": 1, "a": 1, "b": "xy"}
    with pytest.raises(Refused) as told:
        table.call("BulkImport", table_name="t")
    assert told.value.message == "No operation is specified for table: 't'."


# Patterns


def pattern_condition(regex: str) -> messages.Condition:
    made = single("page", messages.CT_EXIST, rule=messages.ValueTransferRule(regex=regex))
    return messages.Condition(row_existence=IGNORE, column_condition=made)  # type: ignore[arg-type]


@pytest.mark.parametrize("is_atomic", [False, True])
def test_conditions_of_many_rows_search_less_of_each_text(
    service: TableStoreService, is_atomic: bool
) -> None:
    """All rows of a batch are written in one piece: their patterns share a budget of 64 MiB of bytes times steps."""
    service.create("t", ("pk", messages.STRING), ("at", messages.INTEGER))
    pattern = "b|" + "[xy]z?" * 40
    page = "a" * 30_000 + "b"

    def wrote(count: int) -> list[bool]:
        changes = []
        for at in range(count):
            key = {"pk": "p", "at": at}
            service.put(key, {"page": page})
            made = messages.RowInBatchWriteRowRequest(type=messages.UPDATE, row_change=row(key, {"i": 1}))
            made.condition.CopyFrom(pattern_condition(pattern))
            changes.append(made)
        answer = write(service, ("t", changes), is_atomic=is_atomic)
        return [part.is_ok for part in answer.tables[0].rows]

    assert wrote(4) == [True] * 4
    assert wrote(80) == [False] * 80


def test_rows_that_are_searched_leave_others_a_turn(table: TableStoreService) -> None:
    """A BatchGetRow with a pattern in its filter yields to other requests between its rows."""
    body = messages.BatchGetRowRequest()
    rows = [row({"pk": pk}) for pk in range(5)]
    rule = messages.ValueTransferRule(regex="a")
    body.tables.add(
        table_name="t", primary_key=rows, max_versions=1, filter=single("page", messages.CT_EXIST, rule=rule)
    )
    data = body.SerializeToString()
    headers = signed("BatchGetRow", data, table.clock.ms)
    request = Request("POST", "/BatchGetRow", headers, data)
    rounds: list[list[Command[Any]]] = []

    def run(commands: list[Command[Any]]) -> list[Any]:
        rounds.append(commands)
        return table.gateway.engine.run(commands)

    drive(lambda: table.dialect.handle(request), run)
    assert len(rounds) > 5
