"""Tables written through one dialect and read through the others, by the official SDKs, against one live server on each
database.

Other tests cover pairs of dialects. Properties of values and keys seen from Azure:
adapters/azuretable/test_other_dialects.py and test_keys.py. Round trips between DynamoDB and Azure:
test_dynamodb_and_azure.py. These tests need all three dialects.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

import pytest
import tablestore as ots
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.data.tables import EdmType, EntityProperty, UpdateMode
from boto3.dynamodb.conditions import Attr, Key
from boto3.dynamodb.types import Binary
from botocore.exceptions import ClientError
from click.testing import CliRunner

from tablegate.adapters.tablestore.wire.plainbuffer import decode_row
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.__main__ import main
from tests.support.across import Across
from tests.support.concurrency import all_at_once
from tests.support.live_dynamodb import pages, refused
from tests.support.running import ENTRIES, start


@pytest.fixture(scope="module", params=ENTRIES)
def across(shared_database_url: str, request: pytest.FixtureRequest) -> Iterator[Across]:
    """Through both entries always: this is what `make test` has of `make test-wsgi`."""
    running = start(shared_database_url, request.param)
    made = Across(running.url)
    yield made
    # The test through the other entry uses the same database, and the number of tables of a database is limited.
    for page in made.dynamodb.client.get_paginator("list_tables").paginate():
        for name in page["TableNames"]:
            made.dynamodb.client.delete_table(TableName=name)
    running.stop()


def item(across: Across, table: str, **key: Any) -> dict[str, Any]:
    found: dict[str, Any] = across.dynamodb.resource.Table(table).get_item(Key=key)["Item"]
    return found


def text_pair(across: Across) -> str:
    """A table that Azure makes: its key columns are PartitionKey and RowKey in every dialect."""
    name = across.new_name()
    across.azure.service.create_table(name)
    return name


PAIR = {"PartitionKey": "p", "RowKey": "r"}

# Values

FROM_DYNAMODB = [
    ("text", "ü🙂", "ü🙂", "ü🙂"),
    ("bytes", Binary(b"\x00\xff"), b"\x00\xff", b"\x00\xff"),
    ("boolean", True, True, True),
    ("small", Decimal(5), 5, 5),
    ("large", Decimal(2**40), 2**40, 2**40),
    ("half", Decimal("0.5"), 0.5, 0.5),
    ("tenth", Decimal("0.1"), 0.1, 0.1),
    (
        "precise",
        Decimal("1.2345678901234567890123456789012345678"),
        "1.2345678901234567890123456789012345678",
        "1.2345678901234567890123456789012345678",
    ),
    ("beyond", Decimal(2**63 + 1), str(2**63 + 1), str(2**63 + 1)),
    ("list", ["a", Decimal(1)], '{"L":[{"S":"a"},{"N":"1"}]}', '{"L":[{"S":"a"},{"N":"1"}]}'),
    ("map", {"a": None}, '{"M":{"a":{"NULL":true}}}', '{"M":{"a":{"NULL":true}}}'),
    ("texts", {"a", "b"}, '{"SS":["a","b"]}', '{"SS":["a","b"]}'),
    ("numbers", {Decimal(2), Decimal(10)}, '{"NS":["2","10"]}', '{"NS":["2","10"]}'),
    ("binaries", {Binary(b"a")}, '{"BS":["YQ=="]}', '{"BS":["YQ=="]}'),
]


@pytest.mark.parametrize(("name", "written", "azure", "tablestore"), FROM_DYNAMODB)
def test_values_of_dynamodb_are_read_by_azure_and_table_store(
    across: Across, name: str, written: Any, azure: Any, tablestore: Any
) -> None:
    table = text_pair(across)
    across.dynamodb.resource.Table(table).put_item(Item={**PAIR, name: written})
    entity = across.entities(table).get_entity("p", "r")
    assert plain(entity[name]) == azure
    row = across.get(table, PAIR)
    assert row is not None
    assert row[name] == tablestore
    # Either SDK writes back what it read, and the entity is unchanged.
    across.entities(table).update_entity(entity, mode=UpdateMode.REPLACE)
    assert item(across, table, **PAIR)[name] == written
    across.put(table, PAIR, **{name: row[name]})
    assert item(across, table, **PAIR)[name] == written


def plain(value: Any) -> Any:
    return value.value if isinstance(value, EntityProperty) else value


MOMENT = datetime(2024, 2, 29, 1, 2, 3, 456789, tzinfo=UTC)
GUID = UUID("01234567-89ab-cdef-0123-456789abcdef")
FROM_AZURE = [
    ("text", "x", "x", "x"),
    ("bytes", b"\x01", Binary(b"\x01"), b"\x01"),
    ("boolean", False, False, False),
    ("int32", 7, Decimal(7), 7),
    ("int64", EntityProperty(2**62 + 1, EdmType.INT64), Decimal(2**62 + 1), 2**62 + 1),
    ("double", 0.1, Decimal("0.1"), 0.1),
    ("whole", 3.0, Decimal(3), 3.0),
    ("huge", 1e300, "1e+300", 1e300),
    ("infinite", float("inf"), "Infinity", float("inf")),
    ("moment", MOMENT, "2024-02-29T01:02:03.4567890Z", "2024-02-29T01:02:03.4567890Z"),
    ("guid", GUID, str(GUID), str(GUID)),
]


@pytest.mark.parametrize(("name", "written", "dynamodb", "tablestore"), FROM_AZURE)
def test_values_of_azure_are_read_by_dynamodb_and_table_store(
    across: Across, name: str, written: Any, dynamodb: Any, tablestore: Any
) -> None:
    table = text_pair(across)
    across.entities(table).create_entity({**PAIR, name: written})
    before = across.entities(table).get_entity("p", "r")[name]
    shown = item(across, table, **PAIR)
    assert shown[name] == dynamodb
    row = across.get(table, PAIR)
    assert row is not None
    assert row[name] == tablestore
    assert isinstance(row[name], bytearray if isinstance(tablestore, bytes) else type(tablestore))
    # Written back unchanged, it keeps Azure's type: by a put, by an update, by a PutRow.
    ours = across.dynamodb.resource.Table(table)
    ours.put_item(Item=shown)
    ours.update_item(
        Key=PAIR,
        UpdateExpression="SET #n = :v, twin = :v",
        ExpressionAttributeNames={"#n": name},
        ExpressionAttributeValues={":v": shown[name]},
    )
    across.put(table, PAIR, **{name: row[name]})
    after = across.entities(table).get_entity("p", "r")[name]
    assert (after, type(after)) == (before, type(before))


IN_AN_INDEX = [
    ("number", "INTEGER", lambda: 5, 5),
    ("moment", "STRING", lambda: datetime(2026, 11, 29, 20, tzinfo=UTC), "2026-11-29T20:00:00.0000000Z"),
    ("guid", "STRING", lambda: GUID, str(GUID)),
]


@pytest.mark.parametrize(
    ("name", "kind", "written", "shown"), IN_AN_INDEX, ids=[case[0] for case in IN_AN_INDEX]
)
def test_table_store_reads_values_of_azure_in_the_key_of_an_index(
    across: Across, name: str, kind: str, written: Callable[[], Any], shown: Any
) -> None:
    """The index holds what Table Store sees of the attribute, and so its rows show it."""
    table, index = across.new_name(), across.new_name()
    meta = ots.TableMeta(table, [("PartitionKey", "STRING"), ("RowKey", "STRING")], [(name, kind)])
    across.tablestore.create_table(
        meta,
        ots.TableOptions(),
        ots.ReservedThroughput(ots.CapacityUnit(0, 0)),
        [ots.SecondaryIndexMeta(index, [name], [])],
    )
    across.entities(table).create_entity({**PAIR, name: written()})
    assert across.rows(index, [name, *PAIR]) == [{name: shown, **PAIR}]
    assert across.get(index, {name: shown, **PAIR}) == {name: shown, **PAIR}


def test_table_store_reads_a_number_of_dynamodb_in_the_key_of_an_index(across: Across) -> None:
    table, index = across.new_name(), across.new_name()
    meta = ots.TableMeta(table, [("PartitionKey", "STRING"), ("RowKey", "STRING")], [("n", "INTEGER")])
    across.tablestore.create_table(
        meta,
        ots.TableOptions(),
        ots.ReservedThroughput(ots.CapacityUnit(0, 0)),
        [ots.SecondaryIndexMeta(index, ["n"], [])],
    )
    across.dynamodb.resource.Table(table).put_item(Item={**PAIR, "n": 5})
    assert across.rows(index, ["n", *PAIR]) == [{"n": 5, **PAIR}]


FROM_TABLESTORE = [
    ("integer", 2**62 + 1, Decimal(2**62 + 1), 2**62 + 1),
    ("double", 1.5, Decimal("1.5"), 1.5),
    ("whole", 2.0, Decimal(2), 2.0),
    ("boolean", True, True, True),
    ("string", "", "", ""),
    ("binary", bytearray(b"\x00"), Binary(b"\x00"), b"\x00"),
]


@pytest.mark.parametrize(("name", "written", "dynamodb", "azure"), FROM_TABLESTORE)
def test_values_of_table_store_are_read_by_dynamodb_and_azure(
    across: Across, name: str, written: Any, dynamodb: Any, azure: Any
) -> None:
    table = across.table("PartitionKey:STRING", "RowKey:STRING")
    across.put(table, PAIR, **{name: written})
    before = across.get(table, PAIR)
    assert before is not None
    shown = item(across, table, **PAIR)
    assert shown[name] == dynamodb
    entity = across.entities(table).get_entity("p", "r")
    assert plain(entity[name]) == azure
    across.entities(table).update_entity(entity, mode=UpdateMode.REPLACE)
    across.dynamodb.resource.Table(table).put_item(Item=shown)
    after = across.get(table, PAIR)
    assert after is not None
    assert (after[name], type(after[name])) == (before[name], type(before[name]))


def test_an_update_touches_only_what_it_names(across: Across) -> None:
    table = text_pair(across)
    across.entities(table).create_entity({**PAIR, "guid": GUID, "int32": 7, "at": MOMENT})
    before = across.entities(table).get_entity("p", "r")
    across.dynamodb.resource.Table(table).update_item(
        Key=PAIR, UpdateExpression="SET tags = :t", ExpressionAttributeValues={":t": {"a", "b"}}
    )
    row = ots.Row(list(PAIR.items()), {"PUT": [("score", 1.5)]})
    across.tablestore.update_row(table, row, ots.Condition(ots.RowExistenceExpectation.IGNORE))
    across.entities(table).update_entity({**PAIR, "mine": True}, mode=UpdateMode.MERGE)
    after = across.entities(table).get_entity("p", "r")
    assert {name: after[name] for name in before} == before
    assert item(across, table, **PAIR)["tags"] == {"a", "b"}
    row_now = across.get(table, PAIR)
    assert row_now is not None
    assert (row_now["score"], row_now["mine"], row_now["int32"]) == (1.5, True, 7)


def test_arithmetic_keeps_the_stored_kind(across: Across) -> None:
    table = text_pair(across)
    across.entities(table).create_entity({**PAIR, "n": EntityProperty(5, EdmType.INT64)})
    across.dynamodb.resource.Table(table).update_item(
        Key=PAIR, UpdateExpression="ADD n :one", ExpressionAttributeValues={":one": 1}
    )
    assert across.entities(table).get_entity("p", "r")["n"] == EntityProperty(6, EdmType.INT64)


def test_a_null_is_no_property_and_lost_by_a_replace(across: Across) -> None:
    table = text_pair(across)
    across.dynamodb.resource.Table(table).put_item(Item={**PAIR, "nothing": None, "n": 1})
    assert "nothing" not in (across.get(table, PAIR) or {})
    entity = across.entities(table).get_entity("p", "r")
    assert "nothing" not in entity
    across.entities(table).update_entity(entity, mode=UpdateMode.MERGE)
    assert item(across, table, **PAIR)["nothing"] is None
    across.entities(table).update_entity(entity, mode=UpdateMode.REPLACE)
    assert "nothing" not in item(across, table, **PAIR)


# Keys

COLUMNS = ("a:STRING", "b:INTEGER", "c:STRING", "d:BINARY")
ROWS: list[tuple[dict[str, Any], str]] = [
    ({"a": "x", "b": -5, "c": "p|q%", "d": bytearray(b"\x01")}, "-5|p%7Cq%25|01"),
    ({"a": "x", "b": 10, "c": "", "d": bytearray(b"")}, "10||"),
    ({"a": "x", "b": 10, "c": "|", "d": bytearray(b"\xff")}, "10|%7C|ff"),
    ({"a": "x", "b": 10, "c": "%7C", "d": bytearray(b"\xff")}, "10|%257C|ff"),
]


@pytest.fixture
def wide(across: Across) -> str:
    """A table of four key columns with a few rows. Some of their keys would be equal if columns were only joined."""
    name = across.table(*COLUMNS)
    for number, (key, _) in enumerate(ROWS):
        across.put(name, key, n=number)
    return name


def shown_key(text: str) -> dict[str, str]:
    return {"a": "x", "b/c/d": text}


def test_four_columns_are_two_keys_elsewhere(across: Across, wide: str) -> None:
    description = across.dynamodb.client.describe_table(TableName=wide)["Table"]
    assert description["KeySchema"] == [
        {"AttributeName": "a", "KeyType": "HASH"},
        {"AttributeName": "b/c/d", "KeyType": "RANGE"},
    ]
    table = across.dynamodb.resource.Table(wide)
    for number, (key, text) in enumerate(ROWS):
        found = table.get_item(Key=shown_key(text))["Item"]
        stored = {"a": "x", "b": Decimal(key["b"]), "c": key["c"], "d": Binary(bytes(key["d"]))}
        assert found == {**stored, "b/c/d": text, "n": Decimal(number)}
        assert across.entities(wide).get_entity("x", text)["n"].value == number
    listed = [entity["RowKey"] for entity in across.entities(wide).list_entities()]
    assert listed == [found["b/c/d"] for found in table.scan()["Items"]]
    assert sorted(listed) == sorted(text for _, text in ROWS)


@pytest.mark.parametrize("reverse", [False, True])
def test_pages_of_composite_keys(across: Across, wide: str, reverse: bool) -> None:
    table = across.dynamodb.resource.Table(wide)
    asked = {"KeyConditionExpression": Key("a").eq("x"), "Limit": 1, "ScanIndexForward": not reverse}
    queried = [found["n"] for page in pages(table.query, **asked) for found in page["Items"]]
    assert sorted(queried) == [0, 1, 2, 3]
    scanned = [found["n"] for page in pages(table.scan, Limit=1) for found in page["Items"]]
    assert scanned == (queried[::-1] if reverse else queried)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (Key("b/c/d").eq("10||"), [1]),
        (Key("b/c/d").eq("10"), []),
        (Key("b/c/d").eq("010||"), []),
        (Key("b/c/d").begins_with("10|"), [1, 2, 3]),
        (Key("b/c/d").between("10|%7", "10|%~"), [2]),
        (Key("b/c/d").lt("10"), [0]),
        (Key("b/c/d").gte("10|%7"), [1, 2]),
    ],
)
def test_conditions_on_a_composite_key(
    across: Across, wide: str, condition: Any, expected: list[int]
) -> None:
    found = across.dynamodb.resource.Table(wide).query(KeyConditionExpression=Key("a").eq("x") & condition)
    assert sorted(found["n"] for found in found["Items"]) == expected


def test_items_put_by_the_composite_or_by_its_columns(across: Across, wide: str) -> None:
    table = across.dynamodb.resource.Table(wide)
    table.put_item(Item={"a": "y", "b/c/d": "7|z|0a", "n": 1})
    columns = {"a": "y", "b": 7, "c": "z", "d": Binary(b"\x0a")}
    table.put_item(Item={**columns, "n": 2})
    key = {"a": "y", "b": 7, "c": "z", "d": bytearray(b"\x0a")}
    assert across.get(wide, key) == {**key, "n": 2}
    shown = table.get_item(Key={"a": "y", "b/c/d": "7|z|0a"})["Item"]
    table.put_item(Item=shown)
    assert across.get(wide, key) == {**key, "n": 2}
    with refused():
        table.put_item(Item={**shown, "b": 8})
    with refused():
        table.put_item(Item={"a": "y", "b": 7})
    for text in ("7|z", "07|z|0a", "7|z|0A", "7|%41|0a"):
        with refused():
            table.put_item(Item={"a": "y", "b/c/d": text})
        with refused():
            table.get_item(Key={"a": "y", "b/c/d": text})


def test_conditions_updates_and_groups_with_composite_keys(across: Across, wide: str) -> None:
    table = across.dynamodb.resource.Table(wide)
    key = shown_key("10||")
    with refused("ConditionalCheckFailedException"):
        table.put_item(Item=key, ConditionExpression=Attr("b/c/d").not_exists())
    updated = table.update_item(
        Key=key,
        UpdateExpression="SET n = :n",
        ConditionExpression=Attr("b/c/d").begins_with("10|") & Attr("b/c/d").size().eq(4),
        ExpressionAttributeValues={":n": 9},
        ReturnValues="ALL_NEW",
    )
    assert updated["Attributes"]["b/c/d"] == "10||"
    with refused():
        table.update_item(
            Key=key,
            UpdateExpression="SET #k = :v",
            ExpressionAttributeNames={"#k": "b/c/d"},
            ExpressionAttributeValues={":v": "10||00"},
        )
    assert table.scan(FilterExpression=Attr("b/c/d").eq("10||"), ProjectionExpression="n")["Items"] == [
        {"n": 9}
    ]
    resource, client = across.dynamodb.resource, across.dynamodb.client
    got = resource.batch_get_item(RequestItems={wide: {"Keys": [shown_key(text) for _, text in ROWS]}})
    assert {found["b/c/d"] for found in got["Responses"][wide]} == {text for _, text in ROWS}
    wire = {"a": {"S": "x"}, "b/c/d": {"S": "-5|p%7Cq%25|01"}}
    client.transact_write_items(
        TransactItems=[
            {"Delete": {"TableName": wide, "Key": wire}},
            {"Put": {"TableName": wide, "Item": {"a": {"S": "x"}, "b/c/d": {"S": "1|t|"}}}},
        ]
    )
    assert client.transact_get_items(TransactItems=[{"Get": {"TableName": wide, "Key": wire}}])[
        "Responses"
    ] == [{}]
    assert across.get(wide, {"a": "x", "b": 1, "c": "t", "d": bytearray(b"")}) is not None
    with table.batch_writer() as batch:
        batch.delete_item(Key=shown_key("1|t|"))
    assert across.get(wide, {"a": "x", "b": 1, "c": "t", "d": bytearray(b"")}) is None


@pytest.mark.parametrize(
    ("columns", "key", "dynamodb", "azure"),
    [
        (
            ("i:INTEGER", "j:INTEGER"),
            {"i": -3, "j": 2**63 - 1},
            {"i": -3, "j": 2**63 - 1},
            ("-3", str(2**63 - 1)),
        ),
        (
            ("i:BINARY", "j:INTEGER"),
            {"i": bytearray(b"\x00\xff"), "j": 0},
            {"i": b"\x00\xff", "j": 0},
            ("00ff", "0"),
        ),
        (("i:INTEGER",), {"i": 4}, {"i": 4}, ("4", "")),
        (("i:STRING", "j:STRING"), {"i": "USER#1", "j": ""}, {"i": "USER#1", "j": ""}, ("USER#1", "")),
        (
            ("i:STRING", "j:STRING"),
            {"i": "字" * 341, "j": "a/b"},
            {"i": "字" * 341, "j": "a/b"},
            ("字" * 341, "a/b"),
        ),
    ],
)
def test_keys_of_other_kinds(
    across: Across,
    columns: tuple[str, ...],
    key: dict[str, Any],
    dynamodb: dict[str, Any],
    azure: tuple[str, str],
) -> None:
    name = across.table(*columns)
    across.put(name, key, n=1)
    table = across.dynamodb.resource.Table(name)
    shown = table.get_item(Key=dynamodb)["Item"]
    assert shown["n"] == 1
    if "" not in dynamodb.values():  # no item that DynamoDB puts has an empty key
        table.put_item(Item={**shown, "n": 2})
    entity = across.entities(name).get_entity(*azure)
    assert (entity["PartitionKey"], entity["RowKey"]) == azure
    across.entities(name).update_entity({**entity, "n": 3}, mode=UpdateMode.REPLACE)
    [row] = across.rows(name, [column.partition(":")[0] for column in columns])
    assert row == {**key, "n": 3}
    table.delete_item(Key=dynamodb)
    assert across.get(name, key) is None


def test_keys_longer_than_dynamodb_makes_them_are_read_paged_and_deleted(across: Across) -> None:
    name = across.table("a:STRING", "b:STRING", "c:BINARY")
    keys = [{"a": "x", "b": letter * 1024, "c": bytearray(b"\xab" * 1024)} for letter in "|%z"]
    for key in keys:
        across.put(name, key, n=1)
    table = across.dynamodb.resource.Table(name)
    found = [found for page in pages(table.scan, Limit=1) for found in page["Items"]]
    assert len(found) == len({shown["b/c"] for shown in found}) == 3
    assert {entity["RowKey"] for entity in across.entities(name).list_entities()} == {
        shown["b/c"] for shown in found
    }
    with refused(words="size"):
        table.put_item(Item=found[0])
    for shown in found:
        table.delete_item(Key={"a": "x", "b/c": shown["b/c"]})
    assert across.rows(name, ["a", "b", "c"]) == []


def test_an_update_makes_a_row_from_a_composite_key(across: Across, wide: str) -> None:
    across.dynamodb.resource.Table(wide).update_item(
        Key=shown_key("77|new|"), UpdateExpression="SET n = :n", ExpressionAttributeValues={":n": 1}
    )
    key = {"a": "x", "b": 77, "c": "new", "d": bytearray(b"")}
    assert across.get(wide, key) == {**key, "n": 1}


@pytest.mark.parametrize("expression", ["SET z = #k", "SET z = if_not_exists(#k, n)"])
def test_an_update_does_not_compute_with_a_composite_key(across: Across, wide: str, expression: str) -> None:
    with refused(words="several columns"):
        across.dynamodb.resource.Table(wide).update_item(
            Key=shown_key("10||"),
            UpdateExpression=expression,
            ExpressionAttributeNames={"#k": "b/c/d"},
        )


def test_a_put_row_loses_a_null(across: Across) -> None:
    table = text_pair(across)
    across.dynamodb.resource.Table(table).put_item(Item={**PAIR, "nothing": None, "n": 1})
    across.put(table, PAIR, n=1)
    assert "nothing" not in item(across, table, **PAIR)


def test_an_azure_insert_makes_a_row_from_a_composite_key(across: Across, wide: str) -> None:
    across.entities(wide).create_entity({"PartitionKey": "x", "RowKey": "78|new|0a", "n": 1})
    key = {"a": "x", "b": 78, "c": "new", "d": bytearray(b"\x0a")}
    assert across.get(wide, key) == {**key, "n": 1}
    with pytest.raises(HttpResponseError) as caught:
        across.entities(wide).create_entity({"PartitionKey": "x", "RowKey": "078|new|0a"})
    assert caught.value.status_code == 400


def test_a_table_with_a_composite_key_has_indexes(across: Across, wide: str) -> None:
    def create(attribute: str, kind: str) -> None:
        create = {
            "IndexName": f"by-{kind}",
            "KeySchema": [{"AttributeName": attribute, "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
        across.dynamodb.client.update_table(
            TableName=wide,
            AttributeDefinitions=[{"AttributeName": attribute, "AttributeType": kind}],
            GlobalSecondaryIndexUpdates=[{"Create": create}],
        )

    with refused(words="index key"):
        create("b/c/d", "S")
    create("b", "N")
    table = across.dynamodb.resource.Table(wide)
    while (
        "Backfilling"
        in table.meta.client.describe_table(TableName=wide)["Table"]["GlobalSecondaryIndexes"][0]
    ):
        threading.Event().wait(0.01)
    asked = {"IndexName": "by-N", "KeyConditionExpression": Key("b").eq(10), "Limit": 1}
    found = [found for page in pages(table.query, **asked) for found in page["Items"]]
    assert {shown["b/c/d"] for shown in found} == {text for _, text in ROWS[1:]}
    projected = table.query(
        **{**asked, "Limit": 10}, ProjectionExpression="#k", ExpressionAttributeNames={"#k": "b/c/d"}
    )
    assert len(projected["Items"]) == 3
    assert all(set(shown) == {"b/c/d"} for shown in projected["Items"])


def test_a_key_condition_of_the_legacy_form_reads_a_composite(across: Across, wide: str) -> None:
    found = across.dynamodb.client.query(
        TableName=wide,
        KeyConditions={
            "a": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "x"}]},
            "b/c/d": {"ComparisonOperator": "BEGINS_WITH", "AttributeValueList": [{"S": "10|%"}]},
        },
    )
    assert found["Count"] == 2


def test_a_filter_of_a_query_must_not_read_the_composite(across: Across, wide: str) -> None:
    with refused(words="primary key"):
        across.dynamodb.resource.Table(wide).query(
            KeyConditionExpression=Key("a").eq("x"), FilterExpression=Attr("b/c/d").eq("10||")
        )


def test_a_start_key_that_is_no_key_of_the_table(across: Across, wide: str) -> None:
    with refused(words="starting key"):
        across.dynamodb.resource.Table(wide).scan(ExclusiveStartKey=shown_key("010||"))


def test_number_keys_come_in_the_order_of_numbers(across: Across) -> None:
    table = across.dynamodb.create("pk:S", "at:N", name=across.new_name())
    for number in ("10", "9", "-1", "1.5"):
        table.put_item(Item={"pk": "p", "at": Decimal(number)})
    assert [entity["RowKey"] for entity in across.entities(table.name).list_entities()] == [
        "-1",
        "1.5",
        "9",
        "10",
    ]
    assert [row["at"] for row in across.rows(table.name, ["pk", "at"])] == ["-1", "1.5", "9", "10"]


def test_keys_that_are_not_legal_everywhere_are_reached_everywhere(across: Across) -> None:
    """An empty RowKey, and 512 units of CJK: more than the 1,024 bytes of a DynamoDB sort key."""
    table = text_pair(across)
    ours = across.dynamodb.resource.Table(table)
    for row_key in ("", "字" * 512):
        across.entities(table).create_entity({"PartitionKey": "p", "RowKey": row_key, "n": 1})
        key = {"PartitionKey": "p", "RowKey": row_key}
        assert ours.get_item(Key=key)["Item"]["n"] == 1
        with refused():
            ours.put_item(Item={**key, "n": 2})
        assert next(pages(ours.scan, Limit=1))["Count"] == 1
        ours.delete_item(Key=key)
        with pytest.raises(HttpResponseError):
            across.entities(table).get_entity("p", row_key)


# Writers


def test_an_optimistic_lock_holds_across_dialects(across: Across) -> None:
    table = text_pair(across)
    entities, ours = across.entities(table), across.dynamodb.resource.Table(table)
    entities.create_entity({**PAIR, "version": 0.1})
    read = entities.get_entity("p", "r")
    lock = {"ConditionExpression": Attr("version").eq(item(across, table, **PAIR)["version"])}
    ours.update_item(
        Key=PAIR,
        UpdateExpression="SET version = :v",
        ExpressionAttributeValues={":v": Decimal("0.2")},
        **lock,
    )
    with refused("ConditionalCheckFailedException"):
        ours.put_item(Item=PAIR, **lock)
    with pytest.raises(HttpResponseError) as caught:
        entities.update_entity(
            read, match_condition=MatchConditions.IfNotModified, etag=read.metadata["etag"]
        )
    assert caught.value.status_code == 412
    stale = ots.SingleColumnCondition("version", 0.1, ots.ComparatorType.EQUAL, False)
    fresh = ots.SingleColumnCondition("version", 0.2, ots.ComparatorType.EQUAL, False)
    row = ots.Row(list(PAIR.items()), [("version", 0.3)])
    ignore = ots.RowExistenceExpectation.IGNORE
    with pytest.raises(ots.OTSServiceError) as failed:
        across.tablestore.put_row(table, row, ots.Condition(ignore, stale))
    assert failed.value.code == "OTSConditionCheckFail"
    across.tablestore.put_row(table, row, ots.Condition(ignore, fresh))
    assert item(across, table, **PAIR)["version"] == Decimal("0.3")


def test_one_of_three_racing_writers_of_a_row_wins(across: Across) -> None:
    table = text_pair(across)
    ours, entities, client = across.dynamodb.resource.Table(table), across.entities(table), across.tablestore

    def by_dynamodb(key: dict[str, str]) -> None:
        ours.put_item(Item={**key, "by": "dynamodb"}, ConditionExpression=Attr("RowKey").not_exists())

    def by_azure(key: dict[str, str]) -> None:
        entities.create_entity({**key, "by": "azure"})

    def by_tablestore(key: dict[str, str]) -> None:
        condition = ots.Condition(ots.RowExistenceExpectation.EXPECT_NOT_EXIST)
        client.put_row(table, ots.Row(list(key.items()), [("by", "tablestore")]), condition)

    losing = (ClientError, HttpResponseError, ots.OTSServiceError)
    codes = {"ConditionalCheckFailedException", "EntityAlreadyExists", "OTSConditionCheckFail"}
    for number in range(10):
        key = {"PartitionKey": "p", "RowKey": str(number)}
        won: list[str] = []
        lost: list[str] = []

        def attempt(name: str, write: Any, key: Any = key, won: Any = won, lost: Any = lost) -> None:
            try:
                write(key)
                won.append(name)
            except losing as error:
                lost.append(_code_of(error))

        writers = (("dynamodb", by_dynamodb), ("azure", by_azure), ("tablestore", by_tablestore))
        all_at_once([partial(attempt, *writer) for writer in writers])
        assert len(won) == 1
        assert len(lost) == 2
        assert set(lost) <= codes
        assert item(across, table, **key)["by"] == won[0]


def _code_of(error: Any) -> str:
    if isinstance(error, ClientError):
        return str(error.response["Error"]["Code"])
    if isinstance(error, ots.OTSServiceError):
        return str(error.code)
    return "EntityAlreadyExists" if "EntityAlreadyExists" in str(error) else str(error)


# Streams


def test_a_dynamodb_stream_of_a_table_that_azure_writes(across: Across) -> None:
    table = text_pair(across)
    specification = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    across.dynamodb.client.update_table(TableName=table, StreamSpecification=specification)
    entities = across.entities(table)
    entities.create_entity({**PAIR, "id": GUID})
    entities.update_entity({**PAIR, "n": 1}, mode=UpdateMode.MERGE)
    entities.delete_entity("p", "r")
    records = dynamodb_records(across, table)
    assert [record["eventName"] for record in records] == ["INSERT", "MODIFY", "REMOVE"]
    assert records[1]["dynamodb"]["Keys"] == {"PartitionKey": {"S": "p"}, "RowKey": {"S": "r"}}
    assert records[1]["dynamodb"]["NewImage"]["id"] == {"S": str(GUID)}
    assert records[2]["dynamodb"]["OldImage"]["n"] == {"N": "1"}


def test_a_dynamodb_stream_shows_composite_keys(across: Across) -> None:
    table = across.table(*COLUMNS)
    across.dynamodb.client.update_table(
        TableName=table, StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    )
    across.put(table, ROWS[0][0], n=1)
    [record] = dynamodb_records(across, table)
    assert record["dynamodb"]["Keys"] == {"a": {"S": "x"}, "b/c/d": {"S": ROWS[0][1]}}
    assert record["dynamodb"]["NewImage"]["b/c/d"] == {"S": ROWS[0][1]}
    assert record["dynamodb"]["NewImage"]["b"] == {"N": "-5"}


def dynamodb_records(across: Across, table: str) -> list[dict[str, Any]]:
    """All records of a table's stream."""
    streams = across.dynamodb.session.client("dynamodbstreams", endpoint_url=across.url)
    [stream] = streams.list_streams(TableName=table)["Streams"]
    found = []
    for shard in streams.describe_stream(StreamArn=stream["StreamArn"])["StreamDescription"]["Shards"]:
        place = streams.get_shard_iterator(
            StreamArn=stream["StreamArn"], ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        while records := streams.get_records(ShardIterator=place):
            found += records["Records"]
            if not records["Records"] or "NextShardIterator" not in records:
                break
            place = records["NextShardIterator"]
    return found


def test_a_tablestore_stream_of_a_table_that_boto3_writes(across: Across) -> None:
    name = across.new_name()
    table = across.dynamodb.create("pk:S", "at:N", name=name)
    stream = messages.StreamSpecification(enable_stream=True, expiration_time=24)
    across.ask("UpdateTable", table_name=name, stream_spec=stream)
    table.put_item(Item={"pk": "p", "at": Decimal("1.5"), "tags": {"a"}, "n": 7})
    table.delete_item(Key={"pk": "p", "at": Decimal("1.5")})
    [listed] = across.ask("ListStream", table_name=name).streams
    records = []
    for shard in across.ask("DescribeStream", stream_id=listed.stream_id).shards:
        place = across.ask(
            "GetShardIterator", stream_id=listed.stream_id, shard_id=shard.shard_id
        ).shard_iterator
        records += across.ask("GetStreamRecord", shard_iterator=place).stream_records
    assert [record.action_type for record in records] == [messages.PUT_ROW, messages.DELETE_ROW]
    row = decode_row(records[0].record)
    assert [(cell.name, cell.value.data) for cell in row.key] == [("pk", "p"), ("at", "1.5")]  # type: ignore[union-attr]
    shown = {cell.name: cell.value.data for cell in row.cells}  # type: ignore[union-attr]
    assert shown == {"tags": '{"SS":["a"]}', "n": 7}


# Names


def test_attribute_names_that_others_cannot_spell(across: Across) -> None:
    table = text_pair(across)
    names = ["my-attr", "1st", "odata.etag", "Timestamp", "with space"]
    across.dynamodb.resource.Table(table).put_item(Item={**PAIR, **dict.fromkeys(names, 1)})
    entity = across.entities(table).get_entity("p", "r")
    assert entity["my_x002D_attr"] == 1
    across.entities(table).update_entity(entity, mode=UpdateMode.REPLACE)
    shown = item(across, table, **PAIR)
    assert shown == {**PAIR, **dict.fromkeys(names, Decimal(1))}
    row = across.get(table, PAIR)
    assert row is not None
    assert len(row) == len(shown)


def test_rows_of_names_that_others_gave_are_put_back(across: Across) -> None:
    """Read, put, deleted and put again through the SDK: each time the item is what it was."""
    names = ["my-attr", "a.b", "#h", "1st", "with space", "x" * 300]
    table = across.new_name()
    across.dynamodb.create("PartitionKey:S", "RowKey:S", name=table)
    theirs = across.dynamodb.resource.Table(table)
    theirs.put_item(Item={**PAIR, **dict.fromkeys(names, Decimal(7))})
    shown = item(across, table, **PAIR)
    read = across.get(table, PAIR)
    assert read is not None
    columns = {name: value for name, value in read.items() if name not in PAIR}
    assert columns.keys() == set(names)
    across.put(table, PAIR, **columns)
    assert item(across, table, **PAIR) == shown
    theirs.delete_item(Key=PAIR)
    across.put(table, PAIR, **columns)
    assert item(across, table, **PAIR) == shown
    # In a table of Table Store's own the row must still have the name.
    own = across.table("PartitionKey:STRING", "RowKey:STRING")
    across.dynamodb.resource.Table(own).put_item(Item={**PAIR, "#h": "x"})
    across.put(own, PAIR, **{"#h": "x", "my-attr": "y", "a.b": "z"})
    assert item(across, own, **PAIR) == {**PAIR, "#h": "x", "my-attr": "y", "a.b": "z"}
    across.tablestore.delete_row(
        own, ots.Row(list(PAIR.items())), ots.Condition(ots.RowExistenceExpectation.IGNORE)
    )
    with pytest.raises(ots.OTSServiceError):
        across.put(own, PAIR, **{"#h": "x"})


def test_the_command_tables_shows_each_dialects_names(
    across: Across, shared_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"my-table.{across.new_name()}", f"Twin{across.new_name()}"]
    names.append(names[1].swapcase())
    for name in names:
        across.dynamodb.create("pk:S", name=name)
    wide = across.table(*COLUMNS)
    listed = {table.name for table in across.azure.service.list_tables()}
    monkeypatch.setenv("TABLEGATE_DATABASE", shared_database_url)
    done = CliRunner().invoke(main, ["tables"])
    assert done.exit_code == 0, done.output
    blocks = {block.splitlines()[0]: block for block in done.stdout.strip().split("\n\n")}
    for name in names:
        azure_name = azure_name_in(blocks[name])
        assert azure_name in listed
        assert list(across.entities(azure_name).list_entities()) == []
    assert len({azure_name_in(blocks[name]).lower() for name in names}) == 3
    assert "a HASH S, b/c/d RANGE S" in blocks[wide]
    assert "a STRING, b INTEGER, c STRING, d BINARY" in blocks[wide]
    # A table is stored as being created until a moment, which has come (Table.state_at).
    assert blocks[wide].splitlines()[1] == "  namespace shared, active"


def azure_name_in(block: str) -> str:
    [line] = [line for line in block.splitlines() if line.strip().startswith("azuretable")]
    return line.split()[1]
