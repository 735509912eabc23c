"""Secondary indexes as read-only tables: their keys, their columns, base data, and what cannot be one."""

from __future__ import annotations

from typing import Any

import pytest

from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.plainbuffer import Bound, decode_row
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tests.adapters.tablestore.client import Refused, TableStoreService, plain, row, rows_of, units_of
from tests.adapters.tablestore.filter_messages import single

MIN, MAX = Bound.INF_MIN, Bound.INF_MAX
DEFINED = [
    messages.DefinedColumnSchema(name="s", type=messages.DCT_STRING),
    messages.DefinedColumnSchema(name="n", type=messages.DCT_INTEGER),
    messages.DefinedColumnSchema(name="x", type=messages.DCT_BLOB),
    messages.DefinedColumnSchema(name="d", type=messages.DCT_DOUBLE),
]


def index(
    name: str = "i", key: tuple[str, ...] = ("s",), columns: tuple[str, ...] = ("d",), local: bool = False
) -> messages.IndexMeta:
    return messages.IndexMeta(
        name=name,
        primary_key=key,
        defined_column=columns,
        index_update_mode=messages.IUM_SYNC_INDEX if local else messages.IUM_ASYNC_INDEX,
        index_type=messages.IT_LOCAL_INDEX if local else messages.IT_GLOBAL_INDEX,
    )


@pytest.fixture
def table(service: TableStoreService) -> TableStoreService:
    """A table (p STRING, q INTEGER) with an index `i` on s that shows d."""
    service.create(
        "t", ("p", messages.STRING), ("q", messages.INTEGER), defined=DEFINED, index_metas=[index()]
    )
    return service


def everything(
    service: TableStoreService, name: str = "i", key: tuple[str, ...] = ("s", "p", "q"), **more: Any
) -> Any:
    return service.range(dict.fromkeys(key, MIN), dict.fromkeys(key, MAX), table=name, **more)


def fill(service: TableStoreService) -> None:
    while service.gateway.engine.background.next_batch():
        pass


def test_rows_have_the_index_columns_first_and_then_the_rest_of_the_key(table: TableStoreService) -> None:
    table.put({"p": "b", "q": 1}, {"s": "y", "d": 1.5, "n": 1})
    table.put({"p": "a", "q": 2}, {"s": "y", "n": 2})
    table.put({"p": "a", "q": 1}, {"s": "x", "d": 2.5})
    table.put({"p": "c", "q": 1}, {"n": 3})
    assert rows_of(everything(table)) == [
        {"s": "x", "p": "a", "q": 1, "d": 2.5},
        {"s": "y", "p": "a", "q": 2},
        {"s": "y", "p": "b", "q": 1, "d": 1.5},
    ]
    assert plain(table.get({"s": "y", "p": "b", "q": 1}, table="i")) == {"s": "y", "p": "b", "q": 1, "d": 1.5}
    assert table.get({"s": "y", "p": "b", "q": 2}, table="i") is None


def test_a_defined_column_holds_values_of_its_type(table: TableStoreService) -> None:
    for write in (table.put, table.update):
        with pytest.raises(Refused) as told:
            write({"p": "d", "q": 1}, {"n": b"x"})
        assert (told.value.status, told.value.code) == (400, "OTSParameterInvalid")
        assert told.value.message == "Invalid column type for column n expect VT_INTEGER actual VT_BLOB"
    request = messages.BatchWriteRowRequest()
    part = request.tables.add(table_name="t")
    for value in ("text", 5):
        part.rows.add(
            type=messages.PUT,
            row_change=row({"p": "d", "q": 1}, {"s": value}),
            condition=messages.Condition(row_existence=messages.IGNORE),
        )
    assert [result.is_ok for result in table.ask("BatchWriteRow", request).tables[0].rows] == [True, False]


def test_an_index_follows_its_table(table: TableStoreService) -> None:
    table.put({"p": "a", "q": 1}, {"s": "x", "d": 1.0})
    table.update({"p": "a", "q": 1}, {"s": "y"})
    assert rows_of(everything(table)) == [{"s": "y", "p": "a", "q": 1, "d": 1.0}]
    table.delete({"p": "a", "q": 1})
    assert rows_of(everything(table)) == []


def test_ranges_pages_and_filters_of_an_index(table: TableStoreService) -> None:
    for number in range(6):
        table.put({"p": "a", "q": number}, {"s": f"s{number // 2}", "d": float(number)})
    bounds: Any = ({"s": "s1", "p": "a", "q": 3}, {"s": "s2", "p": "a", "q": 5})
    found = [each["q"] for each in rows_of(table.range(*bounds, table="i")) if each]
    assert found == [3, 4]
    back = [
        each["q"]
        for each in rows_of(table.range(*bounds[::-1], table="i", direction=messages.BACKWARD))
        if each
    ]
    assert back == [5, 4]
    page = everything(table, limit=4)
    assert plain(decode_row(page.next_start_primary_key)) == {"s": "s2", "p": "a", "q": 4}
    filtered = everything(table, filter=single("d", messages.CT_GREATER_THAN, 3.5))
    assert [each["q"] for each in rows_of(filtered) if each] == [4, 5]
    assert rows_of(everything(table, columns_to_get=["d"], limit=1)) == [
        {"s": "s0", "p": "a", "q": 0, "d": 0.0}
    ]


def test_an_index_may_name_key_columns(service: TableStoreService) -> None:
    metas = [index("i", ("n", "q"), ()), index("l", ("p", "s"), ("n",), local=True)]
    service.create("t", ("p", messages.STRING), ("q", messages.INTEGER), defined=DEFINED, index_metas=metas)
    service.put({"p": "a", "q": 2}, {"n": 7, "s": "y"})
    service.put({"p": "a", "q": 1}, {"n": 7, "s": "x"})
    assert rows_of(everything(service, "i", ("n", "q", "p"))) == [
        {"n": 7, "q": 1, "p": "a"},
        {"n": 7, "q": 2, "p": "a"},
    ]
    bounds: Any = ({"n": 7, "q": 1, "p": MIN}, {"n": 7, "q": 1, "p": MAX})
    assert rows_of(service.range(*bounds, table="i")) == [{"n": 7, "q": 1, "p": "a"}]
    assert rows_of(everything(service, "l", ("p", "s", "q"))) == [
        {"p": "a", "s": "x", "q": 1, "n": 7},
        {"p": "a", "s": "y", "q": 2, "n": 7},
    ]


def test_batches_read_indexes(table: TableStoreService) -> None:
    table.put({"p": "a", "q": 1}, {"s": "x", "d": 1.0})
    request = messages.BatchGetRowRequest()
    keys = [row({"s": "x", "p": "a", "q": 1}), row({"s": "x", "p": "a", "q": 2})]
    request.tables.add(table_name="i", primary_key=keys, max_versions=1)
    first, second = table.ask("BatchGetRow", request).tables[0].rows
    assert plain(decode_row(first.row)) == {"s": "x", "p": "a", "q": 1, "d": 1.0}
    assert second.is_ok
    assert not second.row


def test_an_index_is_not_written_to(table: TableStoreService) -> None:
    for ask in (table.put, table.delete):
        with pytest.raises(Refused) as told:
            ask({"s": "x", "p": "a", "q": 1}, table="i")
        assert told.value.code == "OTSParameterInvalid"


def test_a_write_to_a_table_with_indexes_costs_a_read(table: TableStoreService) -> None:
    assert units_of(table.put({"p": "a", "q": 1}, {"s": "x"})) == (1, 1)


def test_indexes_are_described(table: TableStoreService) -> None:
    [meta] = table.call("DescribeTable", table_name="t").index_metas
    assert (meta.name, list(meta.primary_key), list(meta.defined_column)) == ("i", ["s"], ["d"])
    assert meta.index_type == messages.IT_GLOBAL_INDEX
    assert meta.index_sync_phase == messages.ISP_INCR


@pytest.mark.parametrize("include", [True, False])
def test_base_data_is_in_a_new_index_on_request(table: TableStoreService, include: bool) -> None:
    table.put({"p": "a", "q": 1}, {"s": "x", "n": 5})
    table.call(
        "CreateIndex", main_table_name="t", index_meta=index("j", ("n",), ()), include_base_data=include
    )
    if include:
        with pytest.raises(Refused) as told:
            everything(table, "j", ("n", "p", "q"))
        assert told.value.message == "Disallow read index table in building base state"
    fill(table)
    table.put({"p": "a", "q": 2}, {"s": "x", "n": 6})
    old = [{"n": 5, "p": "a", "q": 1}] if include else []
    assert rows_of(everything(table, "j", ("n", "p", "q"))) == [*old, {"n": 6, "p": "a", "q": 2}]


def test_indexes_can_be_dropped(table: TableStoreService) -> None:
    table.call("DropIndex", main_table_name="t", index_name="i")
    with pytest.raises(Refused) as told:
        everything(table)
    assert told.value.code == "OTSObjectNotExist"
    with pytest.raises(Refused) as told:
        table.call("DropIndex", main_table_name="t", index_name="i")
    assert told.value.code == "OTSObjectNotExist"


def test_an_index_is_dropped_with_its_table(table: TableStoreService) -> None:
    table.call("DeleteTable", table_name="t")
    with pytest.raises(Refused) as told:
        everything(table)
    assert told.value.code == "OTSObjectNotExist"


def test_tables_and_indexes_share_their_names(table: TableStoreService) -> None:
    with pytest.raises(Refused) as told:
        table.create("i")
    assert told.value.code == "OTSObjectAlreadyExist"
    for name in ("t", "i"):
        with pytest.raises(Refused) as told:
            table.call("CreateIndex", main_table_name="t", index_meta=index(name))
        assert told.value.code == "OTSObjectAlreadyExist"


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        (index("j", ()), "The number of primary key columns must be in range: [1, 4] in index."),
        (
            index("j", tuple(f"c{number}" for number in range(5))),
            "The number of primary key columns must be in range: [1, 4] in index.",
        ),
        (
            index("j", ("s",), tuple(f"c{number}" for number in range(33))),
            "The number of attribute columns must be in range: [0, 32] in index.",
        ),
        (index("j-"), "Invalid table name: 'j-'."),
        (index("j", ("unknown",)), None),
        (index("j", ("d",)), None),
        (index("j", ("s",), ("unknown",)), None),
        (index("j", ("s", "s")), None),
        (index("j", ("s",), local=True), None),
    ],
)
def test_indexes_that_cannot_be(
    table: TableStoreService, meta: messages.IndexMeta, message: str | None
) -> None:
    with pytest.raises(Refused) as told:
        table.call("CreateIndex", main_table_name="t", index_meta=meta)
    assert (told.value.status, told.value.code) == (400, "OTSParameterInvalid")
    if message is not None:
        assert told.value.message == message


def test_number_of_indexes(table: TableStoreService) -> None:
    for number in range(limits.INDEXES_MAX - 1):
        table.call("CreateIndex", main_table_name="t", index_meta=index(f"i{number}"))
        fill(table)
    with pytest.raises(Refused) as told:
        table.call("CreateIndex", main_table_name="t", index_meta=index("more"))
    assert told.value.message == "Number of index per table exceeds the quota:5."


def test_indexes_need_a_single_version(service: TableStoreService) -> None:
    options = messages.TableOptions(time_to_live=-1, max_versions=2)
    with pytest.raises(Refused) as told:
        service.create(
            "t", ("p", messages.STRING), defined=DEFINED, index_metas=[index()], table_options=options
        )
    assert told.value.code == "OTSParameterInvalid"


def test_a_defined_column_of_an_index_stays(table: TableStoreService) -> None:
    for name in ("s", "d"):
        with pytest.raises(Refused) as told:
            table.call("DeleteDefinedColumn", table_name="t", columns=[name])
        assert told.value.code == "OTSParameterInvalid"
    table.call("DeleteDefinedColumn", table_name="t", columns=["n"])


def test_time_series_are_not_supported(table: TableStoreService) -> None:
    assert not table.call("ListTimeseriesTable").table_metas
