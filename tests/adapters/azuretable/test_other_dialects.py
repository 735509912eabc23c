"""Data of other dialects, read and changed through Azure: shown exactly or as text, and kept where it is unchanged.

Commands create the tables and rows, as the other adapters create them.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tablegate.gateway.model.commands.row_commands import Get, WriteGroup
from tablegate.gateway.model.commands.table_commands import CreateTable, FindTable
from tablegate.gateway.model.commands.writes import Replace, Write
from tablegate.gateway.model.tables.tables import Rules, Table
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Cell, Contents, Row
from tablegate.gateway.model.values.values import NULL, TRUE, Kind, Value, decimal, number_set, text
from tablegate.gateway.security.credentials import SHARED_NAMESPACE
from tests.adapters.azuretable.client import AzureTableService, code_of
from tests.support.examples import examples

PAIR = KeySchema((KeyColumn("pk", Kind.TEXT),), (KeyColumn("sk", Kind.TEXT),))
HASH_ONLY = KeySchema((KeyColumn("id", Kind.DECIMAL),), ())
NUMBERED = KeySchema((KeyColumn("pk", Kind.TEXT),), (KeyColumn("at", Kind.DECIMAL),))
BINARY = KeySchema((KeyColumn("pk", Kind.BYTES),), ())
FOUR = KeySchema(
    (KeyColumn("a", Kind.TEXT),),
    (KeyColumn("b", Kind.INT64), KeyColumn("c", Kind.TEXT), KeyColumn("d", Kind.BYTES)),
)
OWN = KeySchema((KeyColumn("PartitionKey", Kind.TEXT),), (KeyColumn("RowKey", Kind.TEXT),))


_NO_RULES = Rules()


class Foreign:
    """A table of another dialect and its rows, from below."""

    def __init__(
        self, service: AzureTableService, schema: KeySchema, name: str = "things", rules: Rules = _NO_RULES
    ) -> None:
        self._engine = service.gateway.engine
        [table] = self._engine.run([CreateTable("dynamodb", SHARED_NAMESPACE, name, schema, rules=rules)])
        assert isinstance(table, Table), table
        self.table: Table = table

    def put(self, **values: Value) -> None:
        key = self.table.key_schema.key(values)
        write = Write(self.table, key, Replace(Contents.of_values(values)))
        [[outcome]] = self._engine.run([WriteGroup((write,))])
        assert outcome.new is not None

    def row(self, *key: Value) -> Row | None:
        [row] = self._engine.run([Get(self.table, self.table.key_schema.position(key))])
        return row


def get_only(service: AzureTableService, table: str = "things") -> dict[str, Any]:
    [entity] = service.query(table)
    return entity


def path_of(entity: dict[str, Any], table: str = "things") -> str:
    keys = [quote(entity[name].replace("'", "''"), safe="") for name in ("PartitionKey", "RowKey")]
    return f"/{table}(PartitionKey='{keys[0]}',RowKey='{keys[1]}')"


KEYS: list[tuple[KeySchema, dict[str, Value], tuple[str, str]]] = [
    (PAIR, {"pk": text("USER#1"), "sk": text("a/b?c\\d")}, ("USER#1", "a/b?c\\d")),
    (PAIR, {"pk": text("\x00\x7f"), "sk": text("字" * 512)}, ("\x00\x7f", "字" * 512)),
    (HASH_ONLY, {"id": decimal("-1.50")}, ("-1.5", "")),
    (NUMBERED, {"pk": text("p"), "at": decimal("1E+20")}, ("p", "100000000000000000000")),
    (BINARY, {"pk": Value(Kind.BYTES, b"\x00\xff")}, ("00ff", "")),
    (
        FOUR,
        {"a": text("x"), "b": Value(Kind.INT64, -5), "c": text("p|q%"), "d": Value(Kind.BYTES, b"\x01")},
        ("x", "-5|p%7Cq%25|01"),
    ),
]


@pytest.mark.parametrize(("schema", "key", "shown"), KEYS)
def test_keys_are_listed_and_addressable(
    service: AzureTableService, schema: KeySchema, key: dict[str, Value], shown: tuple[str, str]
) -> None:
    things = Foreign(service, schema)
    things.put(**key, n=decimal(1))
    entity = get_only(service)
    assert (entity["PartitionKey"], entity["RowKey"]) == shown
    assert set(entity) == {"odata.etag", "PartitionKey", "RowKey", "Timestamp", "n"}
    path = path_of(entity)
    assert json.loads(service.send("GET", path).body)["n"] == 1
    quoted = "PartitionKey eq '{}' and RowKey eq '{}'".format(*(part.replace("'", "''") for part in shown))
    assert len(service.query("things", filter=quoted)) == 1
    assert service.send("MERGE", path, {"m": 2}, {"If-Match": entity["odata.etag"]}).status == 204
    row = things.row(*key.values())
    assert row is not None
    assert row.latest["m"] == Value(Kind.INT32, 2)
    assert service.send("DELETE", path, headers={"If-Match": "*"}).status == 204
    assert things.row(*key.values()) is None


@pytest.mark.parametrize(
    ("schema", "keys", "code"),
    [
        (HASH_ONLY, ("5", "x"), "InvalidInput"),
        (HASH_ONLY, ("05", ""), "InvalidInput"),
        (HASH_ONLY, ("five", ""), "InvalidInput"),
        (PAIR, ("a#b", "r"), "OutOfRangeInput"),
        (FOUR, ("x", "1|2"), "InvalidInput"),
    ],
)
def test_keys_that_the_table_cannot_have(
    service: AzureTableService, schema: KeySchema, keys: tuple[str, str], code: str
) -> None:
    Foreign(service, schema)
    assert code_of(service.insert("things", *keys)) == (400, code)
    path = path_of({"PartitionKey": keys[0], "RowKey": keys[1]})
    assert code_of(service.send("PUT", path, {})) == (400, code)
    assert code_of(service.send("GET", path)) == (404, "ResourceNotFound")
    assert code_of(service.send("DELETE", path, headers={"If-Match": "*"})) == (404, "ResourceNotFound")
    assert code_of(service.send("PUT", path, {}, {"If-Match": "*"})) == (404, "ResourceNotFound")


def test_inserts_into_tables_with_other_keys(service: AzureTableService) -> None:
    things = Foreign(service, NUMBERED)
    assert service.insert("things", "p", "1.5", n=1).status == 201
    row = things.row(text("p"), decimal("1.5"))
    assert row is not None
    assert row.latest == {"pk": text("p"), "at": decimal("1.5"), "n": Value(Kind.INT32, 1)}
    assert code_of(service.insert("things", "p", "2", pk="other")) == (400, "PropertyNameInvalid")


def test_numeric_keys_come_in_numeric_order_and_filter_as_text(service: AzureTableService) -> None:
    things = Foreign(service, NUMBERED)
    for number in (10, 9, -1, 100):
        things.put(pk=text("p"), at=decimal(number))
    assert [entity["RowKey"] for entity in service.query("things")] == ["-1", "9", "10", "100"]
    found = service.query("things", filter="RowKey ge '10' and RowKey lt '9'")
    assert [entity["RowKey"] for entity in found] == ["10", "100"]
    assert len(service.query("things", top="1")) == 4  # page after page


def test_attribute_names_that_azure_cannot_spell(service: AzureTableService) -> None:
    things = Foreign(service, PAIR)
    attributes = {"my-attr": 1, "1st": 2, "PartitionKey": 3, "odata.etag": 4, "Timestamp": 5, "a_x0041_": 6}
    things.put(pk=text("p"), sk=text("r"), **{name: decimal(number) for name, number in attributes.items()})
    entity = get_only(service)
    spellings = [
        "my_x002D_attr",
        "_x0031_st",
        "_x0050_artitionKey",
        "odata_x002E_etag",
        "_x0054_imestamp",
        "a_x0041_",
    ]
    names = {name: number for number, name in enumerate(spellings, 1)}
    assert {name: entity[name] for name in names} == names
    assert len(service.query("things", filter="my_x002D_attr eq 1 and _x0050_artitionKey eq 3")) == 1
    [selected] = service.query("things", select="_x0031_st")
    assert set(selected) == {"odata.etag", "_x0031_st"}
    assert service.send("PUT", path_of(entity), entity, {"If-Match": "*"}).status == 204
    row = things.row(text("p"), text("r"))
    assert row is not None
    assert row.latest == {
        "pk": text("p"),
        "sk": text("r"),
        **{name: decimal(number) for name, number in attributes.items()},
    }


_plain = st.one_of(
    st.text("aé\"'🙂", max_size=4).map(text),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=2).map(
        lambda number: decimal(Decimal(number))
    ),
    st.integers(-(2**70), 2**70).map(decimal),
    st.floats(allow_nan=False).map(lambda number: Value(Kind.DOUBLE, number)),
    st.integers(-(2**63), 2**63 - 1).map(lambda number: Value(Kind.INT64, number)),
    st.integers(-(2**31), 2**31 - 1).map(lambda number: Value(Kind.INT32, number)),
    st.binary(max_size=4).map(lambda data: Value(Kind.BYTES, data)),
    st.uuids().map(lambda guid: Value(Kind.GUID, guid)),
    st.integers(504911232000000000, 3155378975999999999).map(lambda ticks: Value(Kind.DATETIME, ticks)),
    st.just(TRUE),
)
_document = st.recursive(
    st.one_of(st.integers(-9, 9).map(decimal), st.text("ab", max_size=2).map(text), st.just(NULL)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2).map(lambda members: Value(Kind.LIST, tuple(members))),
        st.dictionaries(st.text("ab", max_size=2), inner, max_size=2).map(
            lambda members: Value(Kind.MAP, members)
        ),
    ),
    max_leaves=4,
)
_sets = st.one_of(
    st.frozensets(st.text("ab", max_size=2), min_size=1, max_size=3).map(
        lambda data: Value(Kind.TEXT_SET, data)
    ),
    st.frozensets(st.integers(-9, 9).map(Decimal), min_size=1, max_size=3).map(number_set),
    st.frozensets(st.binary(max_size=2), min_size=1, max_size=3).map(
        lambda data: Value(Kind.BYTES_SET, data)
    ),
)
_attributes = st.dictionaries(
    st.sampled_from(["a", "b-c", "d", "Timestamp", "1"]), st.one_of(_plain, _document, _sets), max_size=4
)


@pytest.fixture
def things(service: AzureTableService) -> Foreign:
    return Foreign(service, PAIR)


@pytest.mark.parametrize("method", ["PUT", "MERGE"])
@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(attributes=_attributes.filter(lambda found: NULL not in found.values()))
def test_writing_back_what_was_read_keeps_every_kind(
    service: AzureTableService, things: Foreign, method: str, attributes: dict[str, Value]
) -> None:
    things.put(pk=text("p"), sk=text("r"), **attributes)
    entity = get_only(service)
    assert service.send(method, path_of(entity), entity, {"If-Match": entity["odata.etag"]}).status == 204
    row = things.row(text("p"), text("r"))
    assert row is not None
    assert row.latest == {"pk": text("p"), "sk": text("r"), **attributes}
    again = get_only(service)
    for volatile in ("odata.etag", "Timestamp"):
        del entity[volatile], again[volatile]
    assert again == entity


@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(attributes=_attributes)
def test_a_merge_touches_only_what_it_names(
    service: AzureTableService, things: Foreign, attributes: dict[str, Value]
) -> None:
    things.put(pk=text("p"), sk=text("r"), **attributes)
    assert service.send("MERGE", "/things(PartitionKey='p',RowKey='r')", {"z": "new"}).status == 204
    row = things.row(text("p"), text("r"))
    assert row is not None
    assert row.latest == {"pk": text("p"), "sk": text("r"), **attributes, "z": text("new")}


@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(attributes=_attributes)
def test_a_value_just_read_equals_itself(
    service: AzureTableService, things: Foreign, attributes: dict[str, Value]
) -> None:
    things.put(pk=text("p"), sk=text("r"), **attributes)
    entity = get_only(service)
    for name, wire in entity.items():
        if "@" in name or "." in name or name in ("PartitionKey", "RowKey"):
            continue
        literal = _literal(wire, entity.get(f"{name}@odata.type"))
        assert len(service.query("things", filter=f"{name} eq {literal}")) == 1, (name, literal)


def _literal(wire: Any, edm: str | None) -> str:
    import base64

    if edm == "Edm.Int64":
        return f"{wire}L"
    if edm == "Edm.Guid":
        return f"guid'{wire}'"
    if edm == "Edm.Binary":
        return f"X'{base64.b64decode(wire).hex()}'"
    if edm == "Edm.Double":
        return {"Infinity": "INF", "-Infinity": "-INF"}.get(wire, str(wire))
    if edm == "Edm.DateTime" or (isinstance(wire, str) and wire.endswith("Z") and wire[4:5] == "-"):
        return f"datetime'{wire}'"
    if isinstance(wire, str):
        return "'" + wire.replace("'", "''") + "'"
    return json.dumps(wire)


def test_a_null_is_shown_as_absent_and_lost_by_a_replace_only(
    service: AzureTableService, things: Foreign
) -> None:
    things.put(pk=text("p"), sk=text("r"), nothing=NULL, n=decimal(1))
    entity = get_only(service)
    assert "nothing" not in entity
    service.send("MERGE", path_of(entity), {"n": 2})
    row = things.row(text("p"), text("r"))
    assert row is not None
    assert row.latest["nothing"] == NULL
    service.send("PUT", path_of(entity), entity)
    row = things.row(text("p"), text("r"))
    assert row is not None
    assert "nothing" not in row.latest


def test_other_dialects_read_azure_values_in_azure_kinds(service: AzureTableService) -> None:
    service.create("people")
    service.insert(
        "people", "p", "r", n=1, big="5", text="x", **{"big@odata.type": "Edm.Int64", "my_x002D_attr": True}
    )
    engine = service.gateway.engine
    [table] = engine.run([FindTable(SHARED_NAMESPACE, "people")])
    assert table.key_schema == OWN
    [row] = engine.run([Get(table, OWN.position([text("p"), text("r")]))])
    assert row.latest == {
        "PartitionKey": text("p"),
        "RowKey": text("r"),
        "n": Value(Kind.INT32, 1),
        "big": Value(Kind.INT64, 5),
        "text": text("x"),
        "my-attr": TRUE,
    }


def test_tables_of_others_are_listed_under_a_name_that_azure_can_spell(service: AzureTableService) -> None:
    for name in ("plain", "Plain", "my-table", "Tables", "x" * 100):
        Foreign(service, PAIR, name)
    listed = [table["TableName"] for table in json.loads(service.send("GET", "/Tables").body)["value"]]
    assert len(listed) == len({name.lower() for name in listed}) == 5
    assert all(name.isalnum() and len(name) <= 63 for name in listed)
    assert "plain" in listed
    for name in listed:
        assert service.send("GET", f"/{name}()").status == 200
    assert code_of(service.send("POST", "/Tables", {"TableName": "PLAIN"})) == (409, "TableAlreadyExists")
    assert service.send("DELETE", f"/Tables('{listed[0]}')").status == 204


def test_a_row_larger_than_azure_lets_one_be_made_is_read_and_deleted(
    service: AzureTableService, things: Foreign
) -> None:
    things.put(pk=text("p"), sk=text("r"), huge=text("x" * 390_000), more=text("y" * 100_000))
    entity = get_only(service)
    assert len(entity["huge"]) == 390_000
    assert service.send("DELETE", path_of(entity), headers={"If-Match": "*"}).status == 204


def test_cells_with_stamps_of_their_own(service: AzureTableService) -> None:
    """A table of Table Store keeps the time of each cell.

    A merge through Azure adds versions where it changes something.
    """
    stamped = Foreign(service, PAIR, rules=Rules(stamped=True, max_versions=3))
    key_values = {"pk": text("p"), "sk": text("r")}
    contents = Contents.of_cells(
        key_values,
        {
            "kept": (Cell(Value(Kind.INT64, 1), 1000), Cell(Value(Kind.INT64, 0), 500)),
            "changed": (Cell(text("old"), 1000),),
        },
    )
    write = Write(stamped.table, stamped.table.key_schema.key(key_values), Replace(contents))
    service.gateway.engine.run([WriteGroup((write,))])
    entity = get_only(service)
    assert (entity["kept"], entity["changed"]) == ("1", "old")
    assert service.send("MERGE", path_of(entity), {"changed": "new"}).status == 204
    row = stamped.row(text("p"), text("r"))
    assert row is not None
    assert row.cells["kept"] == (Cell(Value(Kind.INT64, 1), 1000), Cell(Value(Kind.INT64, 0), 500))
    assert [cell.value for cell in row.cells["changed"]] == [text("new"), text("old")]
