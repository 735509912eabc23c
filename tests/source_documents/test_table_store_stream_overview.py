"""Statements of "Stream: Overview" (Table Store documentation, 27 March 2018) about a stream."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tablegate.adapters.tablestore.wire.plainbuffer import WireRow, decode_row
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.__main__ import main
from tests.support.live_tablestore import LiveTableStore

ENABLED = messages.StreamSpecification(enable_stream=True, expiration_time=24)
DISABLED = messages.StreamSpecification(enable_stream=False)
PUT, UPDATE, DELETE = messages.PUT_ROW, messages.UPDATE_ROW, messages.DELETE_ROW


@pytest.fixture
def table(tablestore: LiveTableStore) -> str:
    """A new table with key `pk` INTEGER and a stream."""
    name = tablestore.new_name()
    tablestore.create(name, stream_spec=ENABLED)
    return name


def stream_of(tablestore: LiveTableStore, table: str) -> str:
    [stream] = tablestore.call("ListStream", table_name=table).streams
    found: str = stream.stream_id
    return found


def shards_of(tablestore: LiveTableStore, stream: str) -> list[Any]:
    return list(tablestore.call("DescribeStream", stream_id=stream).shards)


def iterator(tablestore: LiveTableStore, stream: str, shard: str, **more: Any) -> str:
    found: str = tablestore.call("GetShardIterator", stream_id=stream, shard_id=shard, **more).shard_iterator
    return found


def drained(tablestore: LiveTableStore, place: str) -> tuple[list[tuple[int, WireRow]], str | None]:
    """Return the records from an iterator on, and the iterator after them. It is None at the end of a closed shard."""
    found = []
    while True:
        answer = tablestore.call("GetStreamRecord", shard_iterator=place, limit=7)
        found += [(each.action_type, decode_row(each.record)) for each in answer.stream_records]
        if not answer.HasField("next_shard_iterator"):
            return found, None
        if answer.next_shard_iterator == place:
            return found, place
        place = answer.next_shard_iterator


def everything(tablestore: LiveTableStore, table: str) -> list[tuple[int, WireRow]]:
    """All records of a table, shard by shard, parents before their children."""
    stream = stream_of(tablestore, table)
    read: list[str] = []
    found: list[tuple[int, WireRow]] = []
    for shard in shards_of(tablestore, stream):
        for parent in (shard.parent_id, shard.parent_sibling_id):
            assert not parent or parent in read
        found += drained(tablestore, iterator(tablestore, stream, shard.shard_id))[0]
        read.append(shard.shard_id)
    return found


def key_of(record: tuple[int, WireRow]) -> int:
    value: int = record[1].key[0].value.data  # type: ignore[union-attr]
    return value


def number_of(record: tuple[int, WireRow]) -> int:
    value: int = record[1].cells[0].value.data  # type: ignore[union-attr]
    return value


def test_a_stream_gives_the_changes_of_a_table(tablestore: LiveTableStore, table: str) -> None:
    tablestore.put({"pk": 1}, {"a": 1}, table)
    tablestore.update({"pk": 1}, {"a": 2}, table)
    tablestore.delete({"pk": 1}, table)
    records = everything(tablestore, table)
    assert [kind for kind, _ in records] == [PUT, UPDATE, DELETE]
    assert [[(cell.name, cell.value.data) for cell in row.cells] for _, row in records] == [  # type: ignore[union-attr]
        [("a", 1)],
        [("a", 2)],
        [],
    ]
    assert {key_of(record) for record in records} == {1}


def test_changes_are_kept_for_the_time_of_the_stream(tablestore: LiveTableStore, table: str) -> None:
    """tests/gateway/engine/streams/test_streaming.py tests their removal with a clock set by the test."""
    details = tablestore.call("DescribeTable", table_name=table).stream_details
    assert details.expiration_time == 24


def test_an_iterator_marks_the_next_record(tablestore: LiveTableStore, table: str) -> None:
    stream = stream_of(tablestore, table)
    [shard] = shards_of(tablestore, stream)
    place = iterator(tablestore, stream, shard.shard_id)
    seen = []
    for number in range(5):
        tablestore.put({"pk": number}, {"n": number}, table)
        answer = tablestore.call("GetStreamRecord", shard_iterator=place)
        seen += [number_of((0, decode_row(each.record))) for each in answer.stream_records]
        assert answer.next_shard_iterator != place
        place = answer.next_shard_iterator
    assert seen == list(range(5))


def test_a_stream_that_is_enabled_later_begins_there(tablestore: LiveTableStore) -> None:
    name = tablestore.new_name()
    tablestore.create(name)
    for number in range(3):
        tablestore.put({"pk": number}, {"n": number}, name)
    tablestore.call("UpdateTable", table_name=name, stream_spec=ENABLED)
    tablestore.put({"pk": 4}, {"n": 4}, name)
    assert [number_of(record) for record in everything(tablestore, name)] == [4]


def test_disabled_and_enabled_again_it_begins_at_now(tablestore: LiveTableStore, table: str) -> None:
    tablestore.put({"pk": 1}, {"n": 1}, table)
    before = stream_of(tablestore, table)
    tablestore.call("UpdateTable", table_name=table, stream_spec=DISABLED)
    assert not tablestore.call("ListStream", table_name=table).streams
    tablestore.put({"pk": 2}, {"n": 2}, table)
    tablestore.call("UpdateTable", table_name=table, stream_spec=ENABLED)
    assert stream_of(tablestore, table) != before
    assert everything(tablestore, table) == []
    tablestore.put({"pk": 3}, {"n": 3}, table)
    assert [number_of(record) for record in everything(tablestore, table)] == [3]


def test_writes_to_one_key_are_read_in_their_order(tablestore: LiveTableStore, table: str) -> None:
    for number in range(30):
        tablestore.put({"pk": number % 3}, {"n": number}, table)
    records = everything(tablestore, table)
    for key in range(3):
        assert [number_of(record) for record in records if key_of(record) == key] == list(range(key, 30, 3))


def test_each_modification_is_read_once_in_the_order_of_its_shard(
    tablestore: LiveTableStore, table: str
) -> None:
    def write(writer: int) -> None:
        for number in range(25):
            live_of_mine.put({"pk": writer}, {"n": number}, table)

    live_of_mine = LiveTableStore(tablestore.url)
    writers = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in writers:
        thread.start()
    stream = stream_of(tablestore, table)
    [shard] = shards_of(tablestore, stream)
    place: str | None = iterator(tablestore, stream, shard.shard_id)
    records: list[tuple[int, WireRow]] = []
    while any(thread.is_alive() for thread in writers):
        found, place = drained(tablestore, str(place))
        records += found
    records += drained(tablestore, str(place))[0]
    assert len(records) == 100
    for writer in range(4):
        assert [number_of(record) for record in records if key_of(record) == writer] == list(range(25))
    indexes = [row.extension.row_index for _, row in records if row.extension]
    assert indexes == sorted(set(indexes))


def reshard(url: str, table: str, count: int, folder: Path) -> None:
    """Run the operator's command while the server runs."""
    done = CliRunner().invoke(main, ["streams", "reshard", table, "--shards", str(count), "--database", url])
    assert done.exit_code == 0, done.output


def test_split_and_merge_with_parents_first(
    tablestore: LiveTableStore, table: str, shared_database_url: str, tmp_path: Path
) -> None:
    written = 0
    for count in (1, 3, 6, 2, 1):
        if count > 1 or written:
            reshard(shared_database_url, table, count, tmp_path)
        for _ in range(15):
            tablestore.put({"pk": written % 7}, {"n": written}, table)
            written += 1
    stream = stream_of(tablestore, table)
    shards = shards_of(tablestore, stream)
    assert any(shard.parent_id for shard in shards)
    assert any(shard.parent_sibling_id for shard in shards)
    records = everything(tablestore, table)
    assert sorted(number_of(record) for record in records) == list(range(written))
    for key in range(7):
        numbers = [number_of(record) for record in records if key_of(record) == key]
        assert numbers == sorted(numbers)


def test_earlier_shards_get_nothing_more_and_children_can_be_read_apart(
    tablestore: LiveTableStore, table: str, shared_database_url: str, tmp_path: Path
) -> None:
    for number in range(10):
        tablestore.put({"pk": number}, {"n": number}, table)
    stream = stream_of(tablestore, table)
    [parent] = shards_of(tablestore, stream)
    place = iterator(tablestore, stream, parent.shard_id)
    reshard(shared_database_url, table, 2, tmp_path)
    for number in range(10):
        tablestore.put({"pk": number}, {"n": 100 + number}, table)
    old, end = drained(tablestore, place)
    assert [number_of(record) for record in old] == list(range(10))
    assert end is None
    first, second = shards_of(tablestore, stream)[1:]
    assert first.parent_id == second.parent_id == parent.shard_id
    # Either child may be read before the other, or further than it.
    right = drained(tablestore, iterator(tablestore, stream, second.shard_id))[0]
    left = drained(tablestore, iterator(tablestore, stream, first.shard_id))[0]
    assert sorted(number_of(record) for record in left + right) == list(range(100, 110))
    assert not {key_of(record) for record in left} & {key_of(record) for record in right}
