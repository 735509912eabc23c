"""The control plane: create, describe, update and delete. Options, throughput, defined columns, split points."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import pytest

from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.plainbuffer import Bound, decode_row, encode_value
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.commands.table_commands import CreateTable
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.values import Kind
from tests.adapters.tablestore.client import Refused, TableStoreService, datum, no_throughput, plain, rows_of

INTEGER, STRING, BINARY = messages.INTEGER, messages.STRING, messages.BINARY


def describe(service: TableStoreService, name: str = "t") -> Any:
    return service.call("DescribeTable", table_name=name)


def make(
    service: TableStoreService, columns: list[messages.PrimaryKeySchema], name: str = "t", **members: Any
) -> None:
    meta = messages.TableMeta(table_name=name, primary_key=columns, defined_column=members.pop("defined", ()))
    members.setdefault("reserved_throughput", no_throughput())
    service.call("CreateTable", table_meta=meta, **members)


def column(name: str, kind: int = INTEGER, is_drawn: bool = False) -> messages.PrimaryKeySchema:
    made = messages.PrimaryKeySchema(name=name, type=kind)  # type: ignore[arg-type]
    if is_drawn:
        made.option = messages.AUTO_INCREMENT
    return made


def test_a_table_is_described_as_it_was_created(service: TableStoreService) -> None:
    unit = messages.CapacityUnit(read=3, write=5)
    make(
        service,
        [column("a", STRING), column("b", INTEGER, is_drawn=True), column("c", BINARY)],
        defined=[messages.DefinedColumnSchema(name="d", type=messages.DCT_DOUBLE)],
        reserved_throughput=messages.ReservedThroughput(capacity_unit=unit),
        table_options=messages.TableOptions(
            time_to_live=86_400, max_versions=2, deviation_cell_version_in_sec=500
        ),
    )
    told = describe(service)
    assert told.table_meta.table_name == "t"
    key = told.table_meta.primary_key
    assert [(each.name, each.type) for each in key] == [("a", STRING), ("b", INTEGER), ("c", BINARY)]
    assert [each.HasField("option") for each in key] == [False, True, False]
    assert [(each.name, each.type) for each in told.table_meta.defined_column] == [("d", messages.DCT_DOUBLE)]
    assert len(told.table_meta.table_id) == 32
    assert told.reserved_throughput_details.capacity_unit == unit
    assert told.reserved_throughput_details.last_increase_time == service.clock.ms // 1000
    options = told.table_options
    assert (options.time_to_live, options.max_versions, options.deviation_cell_version_in_sec) == (
        86_400,
        2,
        500,
    )
    assert (options.allow_update, options.update_full_row) == (True, False)
    assert told.table_status == messages.ACTIVE
    assert (told.stream_details.enable_stream, told.sse_details.enable) == (False, False)
    assert not told.stream_details.stream_id
    assert told.creation_time == service.clock.ms * 1000


def test_options_have_defaults(service: TableStoreService) -> None:
    make(service, [column("a")])
    options = describe(service).table_options
    assert (options.time_to_live, options.max_versions) == (-1, 1)
    assert options.deviation_cell_version_in_sec == 86_400


def test_tables_are_listed_and_deleted(service: TableStoreService) -> None:
    assert list(service.call("ListTable").table_names) == []
    for name in ("b", "a", "_9"):
        make(service, [column("pk")], name)
    assert sorted(service.call("ListTable").table_names) == ["_9", "a", "b"]
    service.call("DeleteTable", table_name="b")
    assert sorted(service.call("ListTable").table_names) == ["_9", "a"]
    for operation in ("DeleteTable", "DescribeTable"):
        with pytest.raises(Refused) as told:
            service.call(operation, table_name="b")
        assert (told.value.status, told.value.code) == (404, "OTSObjectNotExist")


def test_a_name_is_taken_once(service: TableStoreService) -> None:
    make(service, [column("pk")])
    with pytest.raises(Refused) as told:
        make(service, [column("other")])
    assert (told.value.status, told.value.code) == (409, "OTSObjectAlreadyExist")
    assert told.value.message == "Requested table already exists."
    make(service, [column("pk")], "T")


@pytest.mark.parametrize("name", ["", "1a", "a-b", "a.b", "é", "a" * 256])
def test_names_that_no_table_can_have(service: TableStoreService, name: str) -> None:
    for ask in (
        lambda: make(service, [column("pk")], name),
        lambda: describe(service, name),
        lambda: service.get({"pk": 1}, table=name, max_versions=None),
    ):
        with pytest.raises(Refused) as told:
            ask()
        assert (told.value.code, told.value.message) == (
            "OTSParameterInvalid",
            f"Invalid table name: '{name}'.",
        )


def test_a_name_of_255_characters_is_accepted(service: TableStoreService) -> None:
    make(service, [column("pk")], "a" * 255)
    assert describe(service, "a" * 255).table_meta.table_name == "a" * 255


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([], "The number of primary key columns must be in range: [1, 4]."),
        ([column(f"c{n}") for n in range(5)], "The number of primary key columns must be in range: [1, 4]."),
        ([column("a"), column("a")], "Duplicated primary key name: 'a'."),
        ([column("a-b")], "Invalid column name: 'a-b'."),
        ([column("a", is_drawn=True)], "The first primary key column can not be auto increment."),
        (
            [column("a"), column("b", STRING, is_drawn=True)],
            "The type of an auto increment primary key column must be INTEGER.",
        ),
        (
            [column("a"), column("b", is_drawn=True), column("c", is_drawn=True)],
            "The number of auto increment primary key columns must be in range: [0, 1].",
        ),
    ],
)
def test_keys_that_no_table_can_have(service: TableStoreService, columns: Any, message: str) -> None:
    with pytest.raises(Refused) as told:
        make(service, columns)
    assert (told.value.status, told.value.code, told.value.message) == (400, "OTSParameterInvalid", message)


@pytest.mark.parametrize(
    "options",
    [
        {"time_to_live": 0},
        {"time_to_live": limits.TIME_TO_LIVE_MIN_S - 1},
        {"time_to_live": -2},
        {"max_versions": 0},
        {"deviation_cell_version_in_sec": 0},
    ],
)
def test_options_that_cannot_be(service: TableStoreService, options: dict[str, int]) -> None:
    asked = messages.TableOptions(**{"time_to_live": -1, "max_versions": 1, **options})
    with pytest.raises(Refused) as told:
        make(service, [column("pk")], table_options=asked)
    assert told.value.code == "OTSParameterInvalid"
    make(service, [column("pk")])
    with pytest.raises(Refused):
        service.call("UpdateTable", table_name="t", table_options=asked)


@pytest.mark.parametrize("seconds", [0, -2, -(2**31)])
def test_time_to_live_of_zero_or_below_minus_one_is_refused(service: TableStoreService, seconds: int) -> None:
    """Source: aliyun/aliyun-tablestore-go-sdk issue 18."""
    make(service, [column("pk")])
    with pytest.raises(Refused) as told:
        service.call(
            "UpdateTable",
            table_name="t",
            table_options=messages.TableOptions(time_to_live=seconds, max_versions=5),
        )
    expected = (400, "OTSParameterInvalid", "TimeToLive cannot be 0 or less than -1.")
    assert (told.value.status, told.value.code, told.value.message) == expected
    assert describe(service).table_options.max_versions == 1


@pytest.mark.parametrize("units", [(-1, 0), (0, limits.THROUGHPUT_MAX_UNITS + 1)])
def test_throughput_that_cannot_be(service: TableStoreService, units: tuple[int, int]) -> None:
    asked = messages.ReservedThroughput(capacity_unit=messages.CapacityUnit(read=units[0], write=units[1]))
    with pytest.raises(Refused) as told:
        make(service, [column("pk")], reserved_throughput=asked)
    assert told.value.code == "OTSParameterInvalid"


def test_the_maximum_throughput_is_accepted(service: TableStoreService) -> None:
    most = limits.THROUGHPUT_MAX_UNITS
    unit = messages.CapacityUnit(read=most, write=most)
    make(service, [column("pk")], reserved_throughput=messages.ReservedThroughput(capacity_unit=unit))
    assert describe(service).reserved_throughput_details.capacity_unit == unit


# Updating


def test_an_update_touches_only_what_it_names(service: TableStoreService) -> None:
    make(service, [column("pk")], table_options=messages.TableOptions(time_to_live=-1, max_versions=2))
    service.clock.advance(100)
    answer = service.call(
        "UpdateTable",
        table_name="t",
        reserved_throughput=messages.ReservedThroughput(capacity_unit=messages.CapacityUnit(read=7)),
    )
    assert answer.reserved_throughput_details.capacity_unit == messages.CapacityUnit(read=7, write=0)
    assert answer.reserved_throughput_details.last_increase_time == service.clock.ms // 1000
    assert answer.table_options.max_versions == 2
    answer = service.call(
        "UpdateTable", table_name="t", table_options=messages.TableOptions(time_to_live=100_000)
    )
    assert (answer.table_options.time_to_live, answer.table_options.max_versions) == (100_000, 2)
    assert answer.reserved_throughput_details.capacity_unit.read == 7
    assert describe(service).table_options == answer.table_options
    answer = service.call("UpdateTable", table_name="t", table_options=messages.TableOptions(time_to_live=-1))
    assert answer.table_options.time_to_live == -1


def test_full_rows_are_decided_at_creation(service: TableStoreService) -> None:
    make(
        service,
        [column("pk")],
        table_options=messages.TableOptions(time_to_live=-1, max_versions=1, update_full_row=True),
    )
    assert describe(service).table_options.update_full_row
    with pytest.raises(Refused) as told:
        service.call(
            "UpdateTable", table_name="t", table_options=messages.TableOptions(update_full_row=False)
        )
    assert "contain updateFullRow" in told.value.message


def test_an_update_of_nothing_is_refused(service: TableStoreService) -> None:
    make(service, [column("pk")])
    with pytest.raises(Refused) as told:
        service.call("UpdateTable", table_name="t")
    assert told.value.code == "OTSParameterInvalid"


# Defined columns


def defined(*names: str) -> list[messages.DefinedColumnSchema]:
    return [messages.DefinedColumnSchema(name=name, type=messages.DCT_STRING) for name in names]


def names_of(service: TableStoreService) -> list[str]:
    return [each.name for each in describe(service).table_meta.defined_column]


def test_defined_columns_come_and_go(service: TableStoreService) -> None:
    make(service, [column("pk")], defined=defined("a"))
    service.call("AddDefinedColumn", table_name="t", columns=defined("b", "c"))
    assert names_of(service) == ["a", "b", "c"]
    service.call("DeleteDefinedColumn", table_name="t", columns=["a", "c"])
    assert names_of(service) == ["b"]
    for ask in (
        lambda: service.call("AddDefinedColumn", table_name="t", columns=defined("b")),
        lambda: service.call("AddDefinedColumn", table_name="t", columns=defined("pk")),
        lambda: service.call("AddDefinedColumn", table_name="t"),
        lambda: service.call("DeleteDefinedColumn", table_name="t", columns=["a"]),
    ):
        with pytest.raises(Refused):
            ask()


def test_number_of_defined_columns(service: TableStoreService) -> None:
    most = [f"c{number}" for number in range(limits.DEFINED_COLUMNS_MAX)]
    make(service, [column("pk")], defined=defined(*most))
    with pytest.raises(Refused) as told:
        service.call("AddDefinedColumn", table_name="t", columns=defined("more"))
    assert told.value.message == "The number of defined columns must be in range: [0, 32]."
    with pytest.raises(Refused):
        make(service, [column("pk")], "u", defined=defined(*most, "more"))


# Split points


def partition(begin: Any, end: Any) -> messages.PartitionRange:
    return messages.PartitionRange(begin=encode_value(datum(begin)), end=encode_value(datum(end)))


def test_split_points_of_a_table_are_returned(service: TableStoreService) -> None:
    ranges = [partition(Bound.INF_MIN, 10), partition(10, 20), partition(20, Bound.INF_MAX)]
    make(service, [column("pk"), column("x", STRING)], partitions=ranges)
    splits = [decode_row(data).key for data in describe(service).shard_splits]
    assert [[cell.value for cell in key] for key in splits] == [
        [datum(10), Bound.INF_MIN],
        [datum(20), Bound.INF_MIN],
    ]


@pytest.mark.parametrize(
    ("kind", "bounds", "message"),
    [
        (INTEGER, ["x"], "The value type of partition does not match with primary key."),
        (INTEGER, [-(2**63)], "The value of partition range can not be INT64_MIN or INT64_MAX."),
        (INTEGER, [2**63 - 1], "The value of partition range can not be INT64_MIN or INT64_MAX."),
        (STRING, [""], "The value of partition range can not be empty string."),
        (BINARY, [b""], "The value of partition range can not be empty binary."),
        (STRING, ["x" * 65], "The value of partition range exceeds the MaxLength:64 with CurrentLength:65."),
        (INTEGER, list(range(10)), "The count of partitions cannot be greater than 10"),
    ],
)
def test_splits_that_cannot_be(
    service: TableStoreService, kind: int, bounds: list[Any], message: str
) -> None:
    edges = [Bound.INF_MIN, *bounds, Bound.INF_MAX]
    ranges = [partition(begin, end) for begin, end in itertools.pairwise(edges)]
    with pytest.raises(Refused) as told:
        make(service, [column("pk", kind)], partitions=ranges)
    assert told.value.message == message


def test_split_points_lie_between_partitions(service: TableStoreService) -> None:
    make(service, [column("p"), column("i")])
    for p in range(6):
        for i in range(2):
            service.put({"p": p, "i": i}, {"blob": b"x" * 600_000})
    answer = service.call(
        "ComputeSplitPointsBySize",
        table_name="t",
        split_size=2,
        split_size_unit_in_byte=limits.SPLIT_SIZE_UNIT_MIN_BYTES,
    )
    assert [each.name for each in answer.schema] == ["p", "i"]
    points = [[cell.value for cell in decode_row(data).key] for data in answer.split_points]
    assert points == [[datum(2), Bound.INF_MIN], [datum(4), Bound.INF_MIN]]
    assert [(len(each.location), each.repeat) for each in answer.locations] == [(32, 3)]
    answer = service.call("ComputeSplitPointsBySize", table_name="t", split_size=1)
    assert not answer.split_points


@pytest.mark.parametrize("ttl", [-1, 86_400])
def test_split_points_are_the_same_however_many_rows_are_weighed_at_once(
    service: TableStoreService, monkeypatch: pytest.MonkeyPatch, ttl: int
) -> None:
    make(
        service,
        [column("p"), column("i")],
        table_options=messages.TableOptions(time_to_live=ttl, max_versions=1),
    )
    part_bytes, parts, expected = 0, [0, 0, 5, 5, 5, 9, 9, 9, 9, 12, 14, 14, 15], []
    for i, p in enumerate(parts):
        blob = b"x" * (90_000 + 400_000 * (i % 3))
        service.put({"p": p, "i": i}, {"blob": blob})
        if part_bytes >= limits.SPLIT_SIZE_UNIT_MIN_BYTES and p != parts[i - 1]:
            expected.append(p)
            part_bytes = 0
        part_bytes += len("piblob") + 16 + len(blob)
    for at_once in (1, 2, 24, 30, 50_000):
        monkeypatch.setattr("tablegate.adapters.tablestore.tables._RANGE_ROWS", at_once)
        answer = service.call(
            "ComputeSplitPointsBySize",
            table_name="t",
            split_size=1,
            split_size_unit_in_byte=limits.SPLIT_SIZE_UNIT_MIN_BYTES,
        )
        points = [decode_row(data).key[0].value for data in answer.split_points]
        assert points == [datum(p) for p in expected]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"split_size": 0}, "The split_size should be greater than 0."),
        ({"split_size": -1}, "The split_size should be greater than 0."),
        (
            {"split_size": 1, "split_size_unit_in_byte": 1_048_575},
            "The split_size_unit_in_byte should be greater equal than: 1048576",
        ),
    ],
)
def test_split_sizes_that_cannot_be(
    service: TableStoreService, members: dict[str, int], message: str
) -> None:
    make(service, [column("pk")])
    with pytest.raises(Refused) as told:
        service.call("ComputeSplitPointsBySize", table_name="t", **members)
    assert told.value.message == message


# Tables of other dialects


def test_a_table_of_another_dialect_is_shown(service: TableStoreService) -> None:
    schema = KeySchema((KeyColumn("user-id", Kind.TEXT),), (KeyColumn("at", Kind.DECIMAL),))
    service.gateway.engine.run([CreateTable("dynamodb", "shared", "my.table-1", schema)])
    told = describe(service, "my.table-1")
    assert [(each.name, each.type) for each in told.table_meta.primary_key] == [
        ("user-id", STRING),
        ("at", STRING),
    ]
    assert told.table_options.max_versions == 1
    assert list(service.call("ListTable").table_names) == ["my.table-1"]
    key = {"user-id": "x", "at": "12.50"}
    service.put(key, {"a": 1}, table="my.table-1")
    assert plain(service.get({"user-id": "x", "at": "12.5"}, table="my.table-1")) == {
        "user-id": "x",
        "at": "12.5",
        "a": 1,
    }
    service.put({"user-id": "x", "at": "9"}, {"a": 2}, table="my.table-1")
    bounds: Any = ({"user-id": "x", "at": Bound.INF_MIN}, {"user-id": "x", "at": "12.5"})
    assert [each["a"] for each in rows_of(service.range(*bounds, table="my.table-1")) if each] == [2]
    with pytest.raises(Refused) as refused:
        service.put({"user-id": "x", "at": "no number"}, {"a": 1}, table="my.table-1")
    assert refused.value.code == "OTSInvalidPK"


def test_number_of_tables(service: TableStoreService) -> None:
    """Counts tables that Table Store created. 0 in the setting permits any number."""
    service.gateway.engine.run(
        [CreateTable("dynamodb", "shared", "other", KeySchema((KeyColumn("p", Kind.TEXT),)))]
    )
    quota = service.gateway.settings.tablestore_tables
    for number in range(quota):
        make(service, [column("pk")], f"t{number}")
    with pytest.raises(Refused) as told:
        make(service, [column("pk")], "more")
    assert (told.value.status, told.value.code) == (403, "OTSQuotaExhausted")
    assert told.value.message == f"Number of tables exceeds the quota:{quota}."
    free = dataclasses.replace(
        service.gateway, settings=dataclasses.replace(service.gateway.settings, tablestore_tables=0)
    )
    make(service.on(free), [column("pk")], "more")
