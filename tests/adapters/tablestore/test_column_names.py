"""Names of columns: those that the service accepts, and those that only another dialect can create.

The documents list letters, digits and `_`. The service accepts more, as the SDK's tests show:
aliyun-tablestore-java-sdk 5.17.6, functiontest/ParameterLegalityTest, testInvalidColumnName and testValidColumnName.
"""

from __future__ import annotations

import pytest

from tablegate.adapters.tablestore.wire.plainbuffer import CellOperation, WireCell
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.commands.row_commands import WriteGroup
from tablegate.gateway.model.commands.table_commands import CreateTable, FindTable
from tablegate.gateway.model.commands.writes import Replace, Write
from tablegate.gateway.model.tables.tables import Rules, Table
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Contents
from tablegate.gateway.model.values.values import Kind, Value, text
from tests.adapters.tablestore.client import Refused, TableStoreService, plain, row, rows_of
from tests.adapters.tablestore.filter_messages import single


@pytest.fixture
def table(service: TableStoreService) -> TableStoreService:
    """A table `t`, key `pk` INTEGER, one version."""
    service.create()
    return service


def deletion(name: str) -> WireCell:
    return WireCell(name, None, None, CellOperation.DELETE_ALL)


@pytest.mark.parametrize("name", ["", "#", "#abc", "#公司", "# ", "a" * 256, "é" * 128])
def test_names_that_no_column_can_have(table: TableStoreService, name: str) -> None:
    for write in (table.put, table.update):
        with pytest.raises(Refused) as told:
            write({"pk": 1}, {name: 1})
        assert (told.value.status, told.value.code) == (400, "OTSParameterInvalid")
        assert told.value.message == f"Invalid column name: '{name}'."
    assert table.get({"pk": 1}) is None


SPECIAL = ".:'\"$&*()/\\\n\r "
VALID = ["a", "_", "A9_", "a" * 255, "é" * 127, "公司", "price-2", "1a", "a#"]


@pytest.mark.parametrize(
    "name", [*VALID, *(form.format(each) for each in SPECIAL for form in ("{}abc", "abc{}", "{}", "a{}b"))]
)
def test_names_that_a_column_can_have(table: TableStoreService, name: str) -> None:
    table.put({"pk": 1}, {name: 1})
    assert plain(table.get({"pk": 1}, columns_to_get=[name])) == {"pk": 1, name: 1}
    table.update({"pk": 1}, {name: "x", "more": 1})
    assert rows_of(table.range({"pk": 1}, {"pk": 2})) == [{"pk": 1, name: "x", "more": 1}]
    table.update({"pk": 1}, [deletion(name)])
    assert plain(table.get({"pk": 1})) == {"pk": 1, "more": 1}


def test_names_are_checked_before_key_and_table(table: TableStoreService) -> None:
    """functiontest/RestrictedItemTest, testCase12."""
    for key, name in (({"other": 1}, "t"), ({"pk": "text"}, "t"), ({"pk": 1}, "absent")):
        with pytest.raises(Refused) as told:
            table.put(key, {"#": 1}, name)
        assert told.value.message == "Invalid column name: '#'."


FOREIGN = ["#h", "#", "x" * 256, "é" * 200]


def put_by_another_dialect(service: TableStoreService, table: Table, *names: str) -> None:
    """A row with key 1 and such attributes, as DynamoDB and Azure may write it."""
    values = {"pk": Value(Kind.INT64, 1), **{name: text("theirs") for name in names}}
    write = Write(table, table.key_schema.key(values), Replace(Contents.of_values(values)))
    [outcome] = service.gateway.engine.run([WriteGroup((write,))])
    assert not isinstance(outcome, Exception)


@pytest.mark.parametrize("name", FOREIGN)
def test_a_name_that_the_row_has_can_be_put_back(table: TableStoreService, name: str) -> None:
    [found] = table.gateway.engine.run([FindTable("shared", "t")])
    put_by_another_dialect(table, found, name, "a-b")
    before = plain(table.get({"pk": 1}))
    assert before == {"pk": 1, name: "theirs", "a-b": "theirs"}
    table.put({"pk": 1}, {name: "theirs", "a-b": "theirs"})
    assert plain(table.get({"pk": 1})) == before
    table.update({"pk": 1}, {name: "mine"})
    assert plain(table.get({"pk": 1})) == {**before, name: "mine"}
    batch = messages.BatchWriteRowRequest()
    batch.tables.add(table_name="t").rows.add(
        type=messages.PUT,
        row_change=row({"pk": 1}, {name: "batch"}),
        condition=messages.Condition(row_existence=messages.IGNORE),
    )
    assert table.ask("BatchWriteRow", batch).tables[0].rows[0].is_ok
    assert plain(table.get({"pk": 1})) == {"pk": 1, name: "batch"}
    table.update({"pk": 1}, [deletion(name), WireCell("a", Value(Kind.INT64, 1))])
    assert plain(table.get({"pk": 1})) == {"pk": 1, "a": 1}
    for key, given in ((1, name), (2, name)):
        with pytest.raises(Refused) as told:
            table.put({"pk": key}, {given: 1})
        assert told.value.message == f"Invalid column name: '{given}'."


def test_a_row_that_has_one_such_name_does_not_take_another(table: TableStoreService) -> None:
    [found] = table.gateway.engine.run([FindTable("shared", "t")])
    put_by_another_dialect(table, found, "#h")
    with pytest.raises(Refused) as told:
        table.put({"pk": 1}, {"#h": 1, "#i": 1})
    assert told.value.message == "Invalid column name: '#i'."


@pytest.mark.parametrize("name", FOREIGN)
def test_a_table_that_another_dialect_made_takes_its_names_again(
    service: TableStoreService, name: str
) -> None:
    """A deleted row can be put back as it was read."""
    schema = KeySchema((KeyColumn("pk", Kind.INT64),), ())
    service.gateway.engine.run(
        [CreateTable("dynamodb", "shared", "theirs", schema, (), Rules(), {"dynamodb": {}})]
    )
    service.put({"pk": 1}, {name: "x", "a-b": 1}, "theirs")
    assert plain(service.get({"pk": 1}, "theirs")) == {"pk": 1, name: "x", "a-b": 1}
    service.call("UpdateTable", table_name="theirs", table_options=messages.TableOptions(max_versions=1))
    service.update({"pk": 2}, {name: "y"}, "theirs")
    assert plain(service.get({"pk": 2}, "theirs")) == {"pk": 2, name: "y"}


def test_columns_of_such_names_are_compared_and_read_in_ranges(table: TableStoreService) -> None:
    for number, name in enumerate(SPECIAL):
        column = f"a{name}b"
        for key in range(20):
            table.put({"pk": 100 * number + key}, {column: key, "公司": "x"})
        bounds = {"pk": 100 * number}, {"pk": 100 * number + 100}
        whole = [{"pk": 100 * number + key, column: key, "公司": "x"} for key in range(20)]
        assert rows_of(table.range(*bounds)) == whole
        chosen = single(column, messages.CT_GREATER_EQUAL, 18)
        assert rows_of(table.range(*bounds, filter=chosen)) == whole[18:]
