"""Table Store Stream: enabling, describing, iterators, and what records look like."""

from __future__ import annotations

from typing import Any

import pytest

from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.plainbuffer import CellOperation, WireCell, WireRow, decode_row
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.commands.row_commands import WriteGroup
from tablegate.gateway.model.commands.stream_commands import Reshard
from tablegate.gateway.model.commands.table_commands import FindTable
from tablegate.gateway.model.commands.writes import Edit, Replace, Write
from tablegate.gateway.model.expressions.updates import Literal as Constant
from tablegate.gateway.model.expressions.updates import Remove, SetTo
from tablegate.gateway.model.values.rows import Contents
from tablegate.gateway.model.values.values import Kind, Value, decimal, text
from tests.adapters.tablestore.client import Refused, TableStoreService, cells_of, datum, row

PUT, UPDATE, DELETE = messages.PUT_ROW, messages.UPDATE_ROW, messages.DELETE_ROW


def spec(enable: bool = True, hours: int = 24, *columns: str) -> messages.StreamSpecification:
    return messages.StreamSpecification(enable_stream=enable, expiration_time=hours, columns_to_get=columns)


@pytest.fixture
def table(service: TableStoreService) -> TableStoreService:
    """A table with a stream."""
    options = messages.TableOptions(time_to_live=-1, max_versions=3)
    service.create(stream_spec=spec(), table_options=options)
    return service


def stream_id(service: TableStoreService) -> str:
    [stream] = service.call("ListStream", table_name="t").streams
    found: str = stream.stream_id
    return found


def shards(service: TableStoreService, stream: str | None = None) -> list[Any]:
    return list(service.call("DescribeStream", stream_id=stream or stream_id(service)).shards)


def iterator(
    service: TableStoreService, stream: str | None = None, shard: str | None = None, **more: Any
) -> str:
    stream = stream or stream_id(service)
    shard = shard or shards(service, stream)[0].shard_id
    found: str = service.call("GetShardIterator", stream_id=stream, shard_id=shard, **more).shard_iterator
    return found


def read(service: TableStoreService, place: str, **more: Any) -> list[Any]:
    """All records from an iterator on."""
    found = []
    while True:
        answer = service.call("GetStreamRecord", shard_iterator=place, **more)
        found += answer.stream_records
        if not answer.HasField("next_shard_iterator") or answer.next_shard_iterator == place:
            return found
        place = answer.next_shard_iterator


def records(service: TableStoreService) -> list[tuple[int, WireRow]]:
    return [(each.action_type, decode_row(each.record)) for each in read(service, iterator(service))]


def cell(
    name: str, value: Any = None, stamp_ms: int | None = None, operation: CellOperation | None = None
) -> WireCell:
    return WireCell(name, None if value is None else datum(value), stamp_ms, operation)


# Enabling


def test_a_stream_that_is_made_with_its_table(table: TableStoreService) -> None:
    details = table.call("DescribeTable", table_name="t").stream_details
    assert (details.enable_stream, details.expiration_time) == (True, 24)
    assert details.stream_id == stream_id(table)
    assert details.last_enable_time == table.clock.ms * 1000
    [stream] = table.call("ListStream").streams
    assert (stream.table_name, stream.creation_time) == ("t", table.clock.ms * 1000)
    told = table.call("DescribeStream", stream_id=details.stream_id)
    assert (told.table_name, told.expiration_time, told.creation_time) == ("t", 24, table.clock.ms * 1000)
    assert told.stream_status == messages.STREAM_ACTIVE
    [shard] = told.shards
    assert not shard.HasField("parent_id")


def test_tables_without_a_stream(service: TableStoreService) -> None:
    service.create()
    assert not service.call("ListStream", table_name="t").streams
    details = service.call("DescribeTable", table_name="t").stream_details
    assert not details.enable_stream
    assert not details.HasField("stream_id")


def test_a_stream_can_be_disabled_and_enabled_again(table: TableStoreService) -> None:
    table.put({"pk": 1}, {"a": 1})
    first = stream_id(table)
    answer = table.call("UpdateTable", table_name="t", stream_spec=spec(False))
    assert not answer.stream_details.enable_stream
    assert not table.call("ListStream", table_name="t").streams
    table.put({"pk": 2}, {"a": 1})
    answer = table.call("UpdateTable", table_name="t", stream_spec=spec(True, 48))
    second = answer.stream_details.stream_id
    assert second != first
    assert answer.stream_details.expiration_time == 48
    table.put({"pk": 3}, {"a": 1})
    assert [record.key[0].value for _, record in records(table)] == [datum(3)]


@pytest.mark.parametrize("hours", [-1, limits.STREAM_HOURS_MAX + 1])
def test_times_that_nothing_is_kept_for(service: TableStoreService, hours: int) -> None:
    with pytest.raises(Refused) as told:
        service.create(stream_spec=spec(True, hours))
    assert told.value.code == "OTSParameterInvalid"


def test_times_that_changes_are_kept_for(service: TableStoreService) -> None:
    for name, hours, expected in (("a", 1, 1), ("b", limits.STREAM_HOURS_MAX, 168), ("c", 0, 24)):
        service.create(name, stream_spec=spec(True, hours))
        assert service.call("DescribeTable", table_name=name).stream_details.expiration_time == expected


# Records


def test_a_put_an_update_and_a_delete(table: TableStoreService) -> None:
    now = table.clock.ms
    table.put({"pk": 1}, {"b": "x", "a": 1})
    table.update(
        {"pk": 1},
        [
            cell("z", 5, now - 5),
            cell("a", None, now, CellOperation.DELETE_ONE),
            cell("b", None, None, CellOperation.DELETE_ALL),
            cell("n", 7, None, CellOperation.INCREMENT),
            cell("c", 1),
        ],
    )
    table.delete({"pk": 1})
    (first, put), (second, update), (third, delete) = records(table)
    assert (first, second, third) == (PUT, UPDATE, DELETE)
    assert put.cells == [cell("a", 1, now), cell("b", "x", now)]
    assert update.cells == [
        cell("z", 5, now - 5),
        cell("a", None, now, CellOperation.DELETE_ONE),
        cell("b", None, None, CellOperation.DELETE_ALL),
        cell("n", 7, now),
        cell("c", 1, now),
    ]
    assert delete.cells == []
    assert not delete.is_delete
    for record in (put, update, delete):
        assert record.key == cells_of({"pk": 1})
        assert record.extension is not None
        assert record.extension.stamp_us == now * 1000


def test_a_put_over_a_row_is_one_put(table: TableStoreService) -> None:
    table.put({"pk": 1}, {"a": 1})
    table.put({"pk": 1}, {"b": 2})
    assert [(kind, [each.name for each in row.cells]) for kind, row in records(table)] == [
        (PUT, ["a"]),
        (PUT, ["b"]),
    ]


def test_writes_that_failed_leave_no_record(table: TableStoreService) -> None:
    with pytest.raises(Refused):
        table.put({"pk": 1}, {"a": 1}, expect=messages.EXPECT_EXIST)
    assert records(table) == []


def test_a_delete_of_nothing_is_a_record(table: TableStoreService) -> None:
    table.delete({"pk": 1})
    assert [kind for kind, _ in records(table)] == [DELETE]


@pytest.mark.parametrize("in_transaction", [False, True])
def test_an_update_that_only_deletes_has_its_cells_though_there_is_no_row(
    table: TableStoreService, in_transaction: bool
) -> None:
    """A record of UPDATE_ROW has the cells of its request in their order (aliyun-tablestore-go-sdk, api_test.go,
    TestStream).

    Without a condition, the service does not check whether the row exists.
    """
    cells = [
        cell("b", None, 5, CellOperation.DELETE_ONE),
        cell("a", None, None, CellOperation.DELETE_ALL),
    ]
    if in_transaction:
        begun = table.call("StartLocalTransaction", table_name="t", key=row({"pk": 1}))
        table.update({"pk": 1}, cells, transaction_id=begun.transaction_id)
        table.call("CommitTransaction", transaction_id=begun.transaction_id)
    else:
        table.update({"pk": 1}, cells)
    assert table.get({"pk": 1}) is None
    [(kind, record)] = records(table)
    assert (kind, record.key, record.cells) == (UPDATE, cells_of({"pk": 1}), cells)


def test_columns_of_the_row_before(service: TableStoreService) -> None:
    service.create(stream_spec=spec(True, 24, "a", "c"))
    service.put({"pk": 1}, {"a": 1, "b": 2})
    service.update({"pk": 1}, {"a": 5})
    first, second = read(service, iterator(service))
    assert not first.HasField("origin_record")
    assert [(each.name, each.value) for each in decode_row(second.origin_record).cells] == [("a", datum(1))]
    details = service.call("DescribeTable", table_name="t").stream_details
    assert list(details.columns_to_get) == ["a", "c"]


def test_writes_of_other_dialects(service: TableStoreService) -> None:
    service.create(stream_spec=spec())
    [table] = service.gateway.engine.run([FindTable("shared", "t")])
    schema = table.key_schema
    values = {
        "pk": Value(Kind.INT64, 1),
        "n": decimal(5),
        "gone": text("x"),
        "nothing": Value(Kind.NULL, None),
    }
    put = Write(table, schema.key(values), Replace(Contents.of_values(values)))
    edit = Write(
        table, schema.key(values), Edit((SetTo(("m",), Constant(decimal("1.5"))), Remove(("gone",))))
    )
    service.gateway.engine.run([WriteGroup((put,)), WriteGroup((edit,))])
    (_, first), (_, second) = records(service)
    assert [(each.name, each.value) for each in first.cells] == [("gone", datum("x")), ("n", datum(5))]
    assert [(each.name, each.value, each.operation) for each in second.cells] == [
        ("gone", None, CellOperation.DELETE_ALL),
        ("m", datum(1.5), None),
    ]


# Iterators


def test_an_iterator_without_new_records_is_unchanged(table: TableStoreService) -> None:
    place = iterator(table)
    answer = table.call("GetStreamRecord", shard_iterator=place)
    assert (answer.next_shard_iterator, answer.may_more_record) == (place, False)
    table.put({"pk": 1}, {"a": 1})
    answer = table.call("GetStreamRecord", shard_iterator=place)
    assert answer.may_more_record
    assert answer.next_shard_iterator != place


def test_records_in_pages(table: TableStoreService) -> None:
    for number in range(5):
        table.put({"pk": number}, {"a": 1})
    place = iterator(table)
    numbers = []
    for expected in (2, 2, 1, 0):
        answer = table.call("GetStreamRecord", shard_iterator=place, limit=2)
        assert len(answer.stream_records) == expected
        numbers += [decode_row(each.record).key[0].value for each in answer.stream_records]
        place = answer.next_shard_iterator
    assert numbers == [datum(number) for number in range(5)]


def test_an_iterator_can_start_at_a_time(table: TableStoreService) -> None:
    table.put({"pk": 1}, {"a": 1})
    table.clock.advance(10)
    middle_us = table.clock.ms * 1000
    table.put({"pk": 2}, {"a": 1})
    for timestamp, expected in ((0, 2), (middle_us, 1), (middle_us + 1, 0)):
        assert len(read(table, iterator(table, timestamp=timestamp))) == expected


def test_trimmed_records_are_reported(table: TableStoreService) -> None:
    from tablegate.gateway.engine.streams import streaming

    table.put({"pk": 1}, {"a": 1})
    place = iterator(table)
    table.clock.advance(25 * 3600)
    streaming.maintain(table.gateway.engine._store, streaming.StreamMaintenance(table.clock.ms, 0, 100), 0)
    with pytest.raises(Refused) as told:
        read(table, place)
    assert (told.value.status, told.value.code) == (404, "OTSTrimmedDataAccess")


@pytest.mark.parametrize("stream", ["", "t", "t_", "t_0", "nowhere_1", "é", "a" * 400])
def test_streams_that_are_none(table: TableStoreService, stream: str) -> None:
    for ask in (
        lambda: table.call("DescribeStream", stream_id=stream),
        lambda: table.call("GetShardIterator", stream_id=stream, shard_id="shard-00000000"),
    ):
        with pytest.raises(Refused) as told:
            ask()
        assert told.value.code == "OTSParameterInvalid"
        assert told.value.message.startswith("Invalid stream id")


@pytest.mark.parametrize(
    "place", ["", "x", "::", "a:b:c", "t_1:0:1", "t_1:-1:1", f"t_1:0:{'9' * 30}", "t_1:0:²"]
)
def test_iterators_that_are_none(table: TableStoreService, place: str) -> None:
    with pytest.raises(Refused) as told:
        table.call("GetStreamRecord", shard_iterator=place)
    assert told.value.code == "OTSParameterInvalid"


@pytest.mark.parametrize("shard", ["", "x", "shard-00000099", "shard-1", "shard-²²²²²²²²"])
def test_shards_that_are_none(table: TableStoreService, shard: str) -> None:
    with pytest.raises(Refused) as told:
        table.call("GetShardIterator", stream_id=stream_id(table), shard_id=shard)
    assert told.value.status in (400, 404)


@pytest.mark.parametrize(("length", "fine"), [(238, True), (239, False)])
def test_streams_of_long_names_cannot_be_read(service: TableStoreService, length: int, fine: bool) -> None:
    """aliyun-tablestore-java-sdk, functiontest/APITest, testStreamWithLongTableName."""
    name = "a" * length
    service.create(name, stream_spec=spec())
    service.put({"pk": 1}, {"a": 1}, table=name)
    [stream] = service.call("ListStream", table_name=name).streams
    place = iterator(service, stream.stream_id)
    if fine:
        assert len(read(service, place)) == 1
        return
    with pytest.raises(Refused) as told:
        read(service, place)
    assert told.value.message.startswith("Invalid stream id")


@pytest.mark.parametrize("limit", [0, -1])
def test_limits_are_positive(table: TableStoreService, limit: int) -> None:
    with pytest.raises(Refused):
        table.call("GetStreamRecord", shard_iterator=iterator(table), limit=limit)
    with pytest.raises(Refused):
        table.call("DescribeStream", stream_id=stream_id(table), shard_limit=limit)


# Shards


def reshard(service: TableStoreService, count: int) -> None:
    [table] = service.gateway.engine.run([FindTable("shared", "t")])
    service.gateway.engine.run([Reshard(table, count)])


def test_shards_split_and_merge_and_parents_are_read_first(table: TableStoreService) -> None:
    written = 0
    for count in (1, 3, 1):
        reshard(table, count)
        for _ in range(12):
            table.put({"pk": written % 5}, {"n": written})
            written += 1
    stream = stream_id(table)
    listed = shards(table, stream)
    known = [shard.shard_id for shard in listed]
    for place, shard in enumerate(listed):
        for parent in (shard.parent_id, shard.parent_sibling_id):
            assert not parent or parent in known[:place]
    assert any(shard.HasField("parent_sibling_id") for shard in listed)
    found: list[tuple[Any, Any]] = []
    for shard in listed:
        for record in read(table, iterator(table, stream, shard.shard_id)):
            wire = decode_row(record.record)
            found.append((wire.key[0].value, wire.cells[0].value))
    assert sorted(value.data for _, value in found) == list(range(written))
    for pk in range(5):
        numbers = [value.data for key, value in found if key == datum(pk)]
        assert numbers == sorted(numbers)


def test_a_closed_shard_ends_without_an_iterator(table: TableStoreService) -> None:
    table.put({"pk": 1}, {"a": 1})
    place = iterator(table)
    reshard(table, 2)
    answer = table.call("GetStreamRecord", shard_iterator=place)
    assert len(answer.stream_records) == 1
    assert not answer.HasField("next_shard_iterator")


def test_shards_are_described_in_pages(table: TableStoreService) -> None:
    reshard(table, 4)
    stream = stream_id(table)
    found, start = [], {}
    while True:
        answer = table.call("DescribeStream", stream_id=stream, shard_limit=2, **start)
        found += [shard.shard_id for shard in answer.shards]
        if not answer.HasField("next_shard_id"):
            break
        start = {"inclusive_start_shard_id": answer.next_shard_id}
    assert found == [shard.shard_id for shard in shards(table, stream)]
    assert len(found) == 5
