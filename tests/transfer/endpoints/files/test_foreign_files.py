"""Files of other tools: streams, models, entities of Azure Table, rows of Table Store's command line, CSV, and folders."""

from __future__ import annotations

import base64
import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tablegate.gateway.model.values.values import Kind, Value
from tablegate.transfer.endpoints.endpoint import Service
from tablegate.transfer.endpoints.files.opening import format_of, open_file
from tablegate.transfer.errors import BadAddress, BadFile, TransferError
from tests.transfer.support.small_table import DEFINITION, of_values, scanned, simple_row, written

KEYS = {"keys": "pk:S,sk:N"}
ITEM: dict[str, Any] = {"pk": {"S": "a"}, "sk": {"N": "1"}, "v": {"SS": ["x"]}}
SECOND: dict[str, Any] = {"pk": {"S": "b"}, "sk": {"N": "2"}}


def put(folder: Path, data: object, name: str = "in.json") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if not isinstance(data, bytes):
        data = (data if isinstance(data, str) else json.dumps(data)).encode()
    path.write_bytes(data)
    return path


def rows(path: Path, **options: str) -> list[dict[str, Any]]:
    """The rows as {name: data}."""
    return [
        {name: value.data for name, value in row.latest.items()}
        for row in scanned(open_file(str(path), options))
    ]


def kinds(path: Path, **options: str) -> list[dict[str, Value]]:
    return [row.latest for row in scanned(open_file(str(path), options))]


def wire(path: Path, **options: str) -> list[dict[str, Any]]:
    return [json.loads(row.body) for row in scanned(open_file(str(path), options))]


def refused(path: Path, words: str, **options: str) -> None:
    with pytest.raises(TransferError) as error:
        described_and_scanned(path, options)
    assert words in str(error.value)


def described_and_scanned(path: Path, options: dict[str, str]) -> None:
    endpoint = open_file(str(path), options)
    endpoint.describe()
    scanned(endpoint)


# Batches


def test_batches_of_several_tables_are_read_one_at_a_time(tmp_path):
    """https://docs.aws.amazon.com/cli/latest/reference/dynamodb/batch-write-item.html and batch-get-item.html"""
    puts = {"one": [{"PutRequest": {"Item": ITEM}}], "two": [{"PutRequest": {"Item": SECOND}}]}
    got = {"Responses": {"one": [ITEM], "two": [SECOND]}, "UnprocessedKeys": {}, "ConsumedCapacity": []}
    for document in (puts, {"RequestItems": puts}, got):
        path = put(tmp_path, document)
        assert wire(path, **KEYS, table="two") == [SECOND]
        refused(path, "for several tables: one, two. Add ?table=NAME", **KEYS)
        refused(path, "no batch up to here has items of the table three", **KEYS, table="three")
    path = put(tmp_path, "".join(json.dumps({name: puts[name]}) for name in puts))
    refused(path, "for several tables: one, two", **KEYS)
    assert wire(path, **KEYS, table="two") == [SECOND]
    path = put(tmp_path, got | {"UnprocessedKeys": {"one": {"Keys": [{}]}}})
    refused(path, "UnprocessedKeys, so that items are missing", **KEYS, table="one")


def test_answers_of_transactions_and_statements_are_read(tmp_path):
    """TransactGetItems: an absent item has no member Item (API_ItemResponse)."""
    path = put(tmp_path, {"Responses": [{"Item": ITEM}, {}, {"TableName": "t", "Item": SECOND}]})
    assert wire(path, **KEYS) == [ITEM, SECOND]
    path = put(tmp_path, {"Responses": [{"Item": ITEM}, {"Error": {"Code": "ItemNotFound"}}]})
    refused(path, "expected Item in Responses", **KEYS)
    assert wire(put(tmp_path, {"Responses": {"L": [{"S": "x"}]}} | ITEM), **KEYS)[0]["Responses"] == {
        "L": [{"S": "x"}]
    }


@pytest.mark.parametrize("name", ["Items", "items", "value", "Records"])
def test_a_batch_for_a_table_called_like_a_list_is_read(tmp_path, name):
    path = put(tmp_path, {name: [{"PutRequest": {"Item": ITEM}}, {"PutRequest": {"Item": SECOND}}]})
    assert wire(path, **KEYS) == [ITEM, SECOND]
    path = put(tmp_path, {name: [{"PutRequest": {"Item": ITEM}}], "other": []})
    refused(path, "requests for several tables", **KEYS)
    refused(put(tmp_path, {name: [{"DeleteRequest": {"Key": {}}}]}), "a DeleteRequest is no item", **KEYS)
    both = [{each: [{"PutRequest": {"Item": ITEM}}]} for each in (name, "other")]
    for batches in (both, both[::-1]):
        refused(put(tmp_path, "".join(map(json.dumps, batches))), "requests for several tables", **KEYS)
    path = put(tmp_path, {name: [{"PutRequest": {"Item": ITEM}}]})
    assert wire(path, **KEYS, table=name) == [ITEM]
    refused(path, f"requests for the table {name}, not other", **KEYS, table="other")


def test_a_list_that_occurs_twice_is_refused(tmp_path):
    """JSON objects may repeat a name, and parsers keep the last one only."""
    for name in ("Items", "value", "items"):
        path = put(tmp_path, f'{{"{name}":[],"{name}":[{json.dumps(ITEM)}]}}')
        refused(path, f"{name} occurs twice", **({} if format_of(str(path), {}) == "azure-json" else KEYS))


def test_binary_values_of_node_are_read(tmp_path):
    """JSON.stringify of an item: Buffer.toJSON (https://nodejs.org/api/buffer.html#buftojson), or a Uint8Array."""
    buffer, array = {"type": "Buffer", "data": [0, 255]}, {"0": 0, "1": 255}
    for binary in (buffer, array):
        item = {
            **SECOND,
            "b": {"B": binary},
            "s": {"BS": [binary]},
            "m": {"M": {"B": {"L": [{"B": binary}]}}},
        }
        for document in (item, {"Item": item}, [item], {"Items": [item]}):
            [row] = rows(put(tmp_path, document), **KEYS)
            assert row["b"] == b"\0\xff"
            assert row["s"] == frozenset({b"\0\xff"})
            assert row["m"]["B"].data[0].data == b"\0\xff"
    for wrong in ({"type": "Buffer", "data": [256]}, {"0": -1}, {"1": 1}, {"type": "Buffer"}):
        refused(put(tmp_path, {**SECOND, "b": {"B": wrong}}), "in.json, line 1: ", **KEYS)


# Streams


def record(event: str, key: int, number: int | None = None, at: int = 1, **more: Any) -> dict[str, Any]:
    """A record as Lambda gets it (with a number), or as Kinesis has it."""
    keys = {"pk": {"S": "a"}, "sk": {"N": str(key)}}
    change: dict[str, Any] = {"Keys": keys, "SizeBytes": 9, "ApproximateCreationDateTime": at}
    if event != "REMOVE":
        change["NewImage"] = {**keys, "v": {"N": str(at if number is None else number)}}
    if number is not None:
        change |= {"SequenceNumber": str(number), "StreamViewType": "NEW_AND_OLD_IMAGES"}
    more = {"eventSource": "aws:dynamodb", "awsRegion": "us-east-1", "eventID": "e"} | more
    return {"eventName": event, "dynamodb": change, **more}


def test_records_of_lambda_give_the_items_that_they_leave(tmp_path):
    """https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html, example event"""
    arn = "arn:aws:dynamodb:us-east-1:123456789012:table/t/stream/2015-06-27T00:48:05.899"
    event = [
        record("INSERT", 1, 10, eventSourceARN=arn),
        record("MODIFY", 1, 30, eventSourceARN=arn),
        record("MODIFY", 1, 20, eventSourceARN=arn),
        record("INSERT", 2, 11, eventSourceARN=arn),
        record("REMOVE", 2, 12, eventSourceARN=arn),
        record("INSERT", 3, 10**20, eventSourceARN=arn),
    ]
    for document in ({"Records": event}, {"Records": event, "NextShardIterator": "x"}, event):
        path = put(tmp_path, document)
        assert format_of(str(path), {}) == "dynamodb-stream"
        found = {row["sk"]: row["v"] for row in rows(path, **KEYS)}
        assert found == {Decimal(1): Decimal(30), Decimal(3): Decimal(10**20)}
    refused(path, "Add ?keys=NAME:S")


@pytest.mark.parametrize("between", ["", "\n", "\r\n"])
def test_records_of_firehose_are_read_in_the_order_of_their_times(tmp_path, between):
    """Kinesis may repeat and disorder records: "Working with Kinesis Data Streams" in the developer guide."""
    records = [
        record("INSERT", 1, at=1000, tableName="t", recordFormat="application/json", userIdentity=None),
        record("MODIFY", 1, at=3000, tableName="t"),
        record("MODIFY", 1, at=2000, tableName="t"),
        record("MODIFY", 1, at=3000, tableName="t"),
        record("REMOVE", 2, at=5, tableName="t"),
    ]
    path = put(tmp_path, between.join(map(json.dumps, records)), "firehose-1-2026-11-28-00-00-00-abc")
    [row] = rows(path, **KEYS)
    assert row["v"] == 3000


def test_records_that_do_not_give_a_table_are_refused(tmp_path):
    no_image = record("INSERT", 1, 10)
    del no_image["dynamodb"]["NewImage"]
    other_key = record("INSERT", 1, 10)
    other_key["dynamodb"]["Keys"]["sk"] = {"N": "7"}
    for records, words in (
        ([no_image], "a record without NewImage: the view type"),
        ([other_key], "the key of NewImage differs from Keys"),
        ([record("INSERT", 1, at=1, tableName="t"), record("INSERT", 2, at=1, tableName="u")],
         "a record of the table 'u' after records of 't'"),
        ([record("INSERT", 1, 10), record("INSERT", 2, at=1)], "with and without SequenceNumber"),
        ([record("UPDATE", 1, 10)], "eventName 'UPDATE'"),
        ([record("INSERT", 1, 10), ITEM], "no record of a stream"),
    ):  # fmt: skip
        refused(put(tmp_path, {"Records": records}), words, **KEYS)
    refused(
        put(tmp_path, {"Records": [record("INSERT", 1, 10)], "More": []}),
        "unexpected members beside Records: More",
        **KEYS,
    )


# NoSQL Workbench


MODEL_TABLE = {
    "TableName": "Orders",
    "KeyAttributes": {
        "PartitionKey": {"AttributeName": "pk", "AttributeType": "S"},
        "SortKey": {"AttributeName": "sk", "AttributeType": "N"},
    },
    "NonKeyAttributes": [{"AttributeName": "v", "AttributeType": "SS"}],
    "TableFacets": [],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by_city",
            "KeyAttributes": {"PartitionKey": {"AttributeName": "city", "AttributeType": "S"}},
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
    "TableData": [ITEM, SECOND],
    "DataAccess": {"MySql": {}},
    "BillingMode": "PAY_PER_REQUEST",
}


def model(*tables: dict[str, Any]) -> dict[str, Any]:
    return {"ModelName": "Shop", "ModelMetadata": {"Version": "3.0"}, "DataModel": list(tables)}


def test_a_table_of_a_data_model_is_read_with_its_key(tmp_path):
    """https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/workbench.Modeler.ExportModel.html"""
    path = put(tmp_path, json.dumps(model(MODEL_TABLE), indent=2))
    definition = open_file(str(path), {}).describe()
    assert (definition.name, definition.service) == ("Orders", Service.DYNAMODB)
    assert definition.key_schema.names == ("pk", "sk")
    assert [index.name for index in definition.indexes] == ["by_city"]
    assert wire(path) == [ITEM, SECOND]
    path = put(tmp_path, model(MODEL_TABLE, {**MODEL_TABLE, "TableName": "Other", "TableData": [SECOND]}))
    refused(path, "NoSQL Workbench has 2 tables: Orders, Other. Add ?table=NAME")
    assert wire(path, table="Other") == [SECOND]
    refused(path, "has not one table Third", table="Third")
    refused(put(tmp_path, model({**MODEL_TABLE, "KeyAttributes": {}})), "KeyAttributes of Orders are invalid")
    refused(put(tmp_path, model({**MODEL_TABLE, "TableData": [{"pk": "a"}]})), "row 1 of TableData")


# Azure Table


ENTITY = {
    "PartitionKey": "p", "RowKey": "r", "Timestamp": "2026-11-28T10:00:00.1234567Z",
    "big@odata.type": "Edm.Int64", "big": "9007199254740993", "small": 5, "half": 0.5, "flag": True,
    "text": "2026-01-01T00:00:00Z",
    "at@odata.type": "Edm.DateTime", "at": "2026-01-01T00:00:00Z",
    "id@odata.type": "Edm.Guid", "id": "c9da6455-213d-42c9-9a79-3e9149a57833",
    "data@odata.type": "Edm.Binary", "data": "AAE=",
    "bad@odata.type": "Edm.Double", "bad": "NaN", "none": None,
}  # fmt: skip


@pytest.mark.parametrize("form", ["answer", "array", "lines", "pretty", "entity"])
def test_entities_of_odata_keep_their_types(tmp_path, form):
    """https://learn.microsoft.com/rest/api/storageservices/payload-format-for-table-service-operations

    AzCopy 7 exports a table as JSON with minimal metadata ("Export table to JSON").
    """
    entity = {"odata.etag": "W/\"datetime'2026-11-28T10%3A00%3A00Z'\"", "odata.id": "x", **ENTITY}
    texts = {
        "answer": json.dumps({"odata.metadata": "https://a/$metadata#t", "value": [entity]}),
        "array": json.dumps([entity]),
        "lines": json.dumps(entity) + "\n",
        "pretty": json.dumps([entity], indent=1),
        "entity": json.dumps(entity, indent=2),
    }
    path = put(tmp_path, texts[form])
    [row] = scanned(open_file(str(path), {}))
    found = {name: (value.kind, value.data) for name, value in row.latest.items()}
    assert found.pop("bad")[0] is Kind.DOUBLE
    assert row.modified_at > 0
    assert found.pop("at")[0] is Kind.DATETIME
    assert found == {
        "PartitionKey": (Kind.TEXT, "p"), "RowKey": (Kind.TEXT, "r"), "big": (Kind.INT64, 9007199254740993),
        "small": (Kind.INT32, 5), "half": (Kind.DOUBLE, 0.5), "flag": (Kind.BOOL, True), "data": (Kind.BYTES, b"\0\1"),
        "id": (Kind.GUID, UUID("c9da6455-213d-42c9-9a79-3e9149a57833")), "text": (Kind.TEXT, "2026-01-01T00:00:00Z"),
    }  # fmt: skip


def az(*entities: dict[str, Any], marker: object = None) -> dict[str, Any]:
    keys = {
        "PartitionKey": "p",
        "Timestamp": "2023-02-02T13:59:42.123456+00:00",
        "etag": "W/\"datetime'2023'\"",
    }
    items = [{**keys, "RowKey": str(number), **entity} for number, entity in enumerate(entities)]
    return {"items": items, "nextMarker": {} if marker is None else marker}


def test_answers_of_az_storage_entity_query_are_read(tmp_path):
    """The form is in "Test performance" of MicrosoftDocs/azure-docs (edm_type), and in Azure/azure-cli#6194."""
    path = put(
        tmp_path,
        json.dumps(
            az({"n": {"edm_type": "Edm.Int64", "value": 1}, "small": 2, "text": "x", "d": 1.0}), indent=2
        ),
    )
    [found] = kinds(path)
    assert (found["n"], found["small"]) == (Value(Kind.INT64, 1), Value(Kind.INT32, 2))
    assert (found["text"], found["d"]) == (Value(Kind.TEXT, "x"), Value(Kind.DOUBLE, 1.0))
    assert "etag" not in found
    marker = {"nextpartitionkey": "1!4!cA--", "nextrowkey": "1!4!MQ--"}
    refused(
        put(tmp_path, az({}, marker=marker)), "the last answer has nextMarker, so that entities are missing"
    )
    path = put(tmp_path, json.dumps(az({}, marker=marker)) + json.dumps({"items": [], "nextMarker": {}}))
    assert len(rows(path)) == 1
    refused(put(tmp_path, az({"n": {"a": 1}})), "'n': an object is no value of Azure Table")
    refused(put(tmp_path, {"items": [], "more": 1}), "unexpected members beside the entities: more")


def test_types_that_a_file_lost_are_inferred_only_if_asked(tmp_path):
    """az prints times and GUIDs as texts, and Cosmos DB's migration tool all numbers without a type."""
    plain = {"PartitionKey": "p", "RowKey": "r", "n": 5, "big": 2**40, "at": "2026-01-01T00:00:00.5Z"}
    path = put(tmp_path, [plain])
    refused(
        path, "line 1: 'n': the type of '5' is not clear, because the file has no types. Add ?types=infer"
    )
    [found] = kinds(path, types="infer")
    assert (found["n"].kind, found["big"].kind, found["at"].kind) == (Kind.INT32, Kind.INT64, Kind.DATETIME)
    [found] = kinds(path, types="text")
    assert (found["n"].kind, found["at"]) == (Kind.INT32, Value(Kind.TEXT, "2026-01-01T00:00:00.5Z"))
    path = put(tmp_path, az({"g": "c9da6455-213d-42c9-9a79-3e9149a57833"}))
    refused(path, "'g': the type of 'c9da6455")
    assert kinds(path, types="infer")[0]["g"].kind is Kind.GUID
    refused(path, "unknown types=x", types="x")


def test_wrong_entities_are_named_with_their_line(tmp_path):
    for changes, words in (
        ({"x@odata.type": "Edm.Int64"}, "'x@odata.type' has no value"),
        ({"x@odata.type": "Edm.Int64", "x": "1.5"}, "'x': '1.5' is not a valid Edm.Int64"),
        ({"x@odata.type": "Edm.None", "x": "1"}, "'x': '1' is not a valid Edm.None"),
        ({"x": [1]}, "'x': '[1]' is not a value of Azure Table"),
        ({"Timestamp": "now"}, "'Timestamp': 'now' is not a time"),
        ({"RowKey": 5}, "PartitionKey or RowKey is missing"),
    ):
        path = put(tmp_path, json.dumps(ENTITY) + "\n" + json.dumps(ENTITY | changes) + "\n")
        refused(path, f"in.json, line 2: {words}" if "RowKey" not in words else words)


def test_an_untyped_null_in_csv_is_absent(tmp_path):
    """Storage Explorer writes the type Null for a property that an entity lacks (AzureStorageExplorer)."""
    head = "PartitionKey,RowKey,Timestamp,a,a@type,b,b@type\r\n"
    path = put(tmp_path, head + "p,r,,,Null,,Edm.Null\r\np,s,,1,Int32,,null\r\n", "in.csv")
    assert rows(path) == [{"PartitionKey": "p", "RowKey": "r"}, {"PartitionKey": "p", "RowKey": "s", "a": 1}]
    refused(put(tmp_path, head + "p,r,,x,Null,,\r\n", "in.csv"), "'a': the value 'x' has the type Null")


# Table Store


def cli(keys: list[Any], *columns: dict[str, Any]) -> dict[str, Any]:
    return {"PK": {"Values": keys}, "Attr": {"Values": list(columns)}}


def test_rows_of_the_command_line_of_table_store_are_read(tmp_path):
    """https://www.alibabacloud.com/help/en/tablestore/developer-reference/operations-on-data"""
    lines = [
        {"PK": {"Values": ["86", 6773]}, "Attr": {"Values": None}},
        cli(
            ["86", 6772],
            {"C": "h", "V": 2},
            {"C": "b", "V": "AAE=", "T": "binary"},
            {"c": "ok", "v": True},
            {"C": "d", "V": 1.5},
        ),
    ]
    path = put(tmp_path, "".join(json.dumps(line) + "\n" for line in lines), "mydata")
    assert format_of(str(path), {}) == "tablestore-json"
    source = open_file(str(path), {"keys": "uid:S,pid:I"})
    assert not source.describe().rules.stamped
    first, second = scanned(source)
    assert first.latest.keys() == {"uid", "pid"}
    assert {name: value.kind for name, value in second.latest.items()} == {
        "uid": Kind.TEXT, "pid": Kind.INT64, "h": Kind.DOUBLE, "b": Kind.BYTES, "ok": Kind.BOOL, "d": Kind.DOUBLE,
    }  # fmt: skip
    refused(path, "Add them in their order, such as ?keys=NAME:S,NAME:I")
    refused(path, "types of Table Store are S, I and B", keys="uid:S,pid:N")
    refused(path, "the row has 2 key columns, but ?keys= names 1", keys="uid:S")
    refused(path, "'pid': '6773' is not of the kind TEXT", keys="uid:S,pid:S")


def test_versions_in_rows_of_the_command_line_are_kept(tmp_path):
    row = cli(
        ["86", 6771], {"C": "age", "V": 32, "TS": 1626860801604, "IsInt": True}, {"C": "n", "V": "x", "TS": 7}
    )
    source = open_file(str(put(tmp_path, row)), {"keys": "uid:S,pid:I"})
    assert source.describe().rules.stamped
    [found] = scanned(source)
    assert found.latest["age"] == Value(Kind.INT64, 32)
    assert [found.cells[name][0].stamp_ms for name in ("age", "n")] == [1626860801604, 7]


def test_wrong_rows_of_the_command_line_are_refused(tmp_path):
    for row, words in (
        (cli(["a", None]), "'pid': 'None' is not of the kind INT64"),
        (cli(["a", 1], {"C": "x", "V": 2**63, "IsInt": True}), "'x': "),
        (cli(["a", 1], {"C": "x", "V": "!", "T": "binary"}), "'x': '!' is not of the kind BYTES"),
        (cli(["a", 1], {"C": "x", "V": 1, "T": "long"}), "'x': unknown type 'long'"),
        (cli(["a", 1], {"C": "x", "V": 1}, {"C": "x", "V": 2}), "the column 'x' occurs twice"),
        (cli(["a", 1], {"C": "x", "V": 1, "W": 2}), "unexpected members beside C: W"),
        (cli(["a", 1], {"C": "x"}), "'x': 'None' is not of the kind DOUBLE"),
        (
            cli(["a", 1], {"C": "x", "V": 1, "TS": 5}, {"C": "y", "V": 1}),
            "'y': some columns have TS, others have none",
        ),
        ({**cli(["a", 1]), "More": 1}, "unexpected members beside PK: More"),
        ({"PK": {"Values": ["a", 1]}, "Attr": {"Columns": []}}, "Attr has no list Values"),
    ):
        path = put(tmp_path, json.dumps(cli(["a", 1])) + "\n" + json.dumps(row) + "\n")
        refused(path, f"line 2: {words}", keys="uid:S,pid:I")


# CSV of DynamoDB


def test_csv_of_the_import_from_s3_is_read_as_texts(tmp_path):
    """https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/S3DataImport.Format.html#S3DataImport.Requesting.Formats.CSV"""
    path = put(tmp_path, 'pk,sk,name,age\r\na,1,"x, y",30\r\nb,2,,\r\n', "in.csv")
    assert wire(path, **KEYS, types="text") == [
        {"pk": {"S": "a"}, "sk": {"N": "1"}, "name": {"S": "x, y"}, "age": {"S": "30"}},
        {"pk": {"S": "b"}, "sk": {"N": "2"}, "name": {"S": ""}, "age": {"S": ""}},
    ]
    assert wire(path, **KEYS, types="text", empty="drop")[1] == {"pk": {"S": "b"}, "sk": {"N": "2"}}
    refused(path, "CSV of DynamoDB has no types, but the columns name, age. Add &types=text", **KEYS)
    refused(path, "If it is CSV of DynamoDB, of the console or for its import from S3, add ?keys=NAME:S")


def test_results_of_the_console_are_read_with_the_named_types(tmp_path):
    """ "Download results to CSV" of the console: maps, lists and sets are DynamoDB JSON, and an absent attribute is empty."""
    data = '"pk","sk","n","ok","m","s"\n"a","1","5","true","{""x"":{""S"":""y""}}","[""p"",""q""]"\n"b","2","","","",""\n'
    path = put(tmp_path, data, "results.csv")
    assert wire(path, **KEYS, types="n:N,ok:BOOL,m:M,s:SS") == [
        {"pk": {"S": "a"}, "sk": {"N": "1"}, "n": {"N": "5"}, "ok": {"BOOL": True},
         "m": {"M": {"x": {"S": "y"}}}, "s": {"SS": ["p", "q"]}},
        SECOND,
    ]  # fmt: skip
    refused(path, "the header has no column zz", **KEYS, types="zz:N")
    refused(path, "types=n:X: use text, or NAME:TYPE", **KEYS, types="n:X")
    refused(put(tmp_path, "pk,sk\na,1,2\n", "in.csv"), "line 2: the record has 3 cells", **KEYS)
    refused(put(tmp_path, "pk,sk\na,x\n", "in.csv"), "line 2: ", **KEYS)
    refused(put(tmp_path, "pk,sk\na,", "in.csv"), "the last line has no line break", **KEYS)
    refused(put(tmp_path, "pk,pk\n", "in.csv"), "empty or repeated name", **KEYS)
    refused(put(tmp_path, "pk,sk,v,v@type\n", "in.csv"), "this is typed CSV of Storage Explorer", **KEYS)


# Folders


def lines_of(*items: dict[str, Any]) -> str:
    return "".join(json.dumps({"Item": item}) + "\n" for item in items)


def test_a_folder_of_dynamodump_is_a_table(tmp_path):
    """https://github.com/bchew/dynamodump: TABLE/schema.json and TABLE/data/0001.json, pages of Scan."""
    schema = {
        "Table": {
            "TableName": "t",
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            "AttributeDefinitions": [
                {"AttributeName": "pk", "AttributeType": "S"},
                {"AttributeName": "sk", "AttributeType": "N"},
            ],
        }
    }
    folder = tmp_path / "dump" / "t"
    put(folder, schema, "schema.json")
    page = {
        "Items": [ITEM],
        "Count": 1,
        "ScannedCount": 1,
        "LastEvaluatedKey": {"pk": {"S": "a"}, "sk": {"N": "1"}},
    }
    put(folder, page, "data/0001.json")
    last = put(folder, {"Items": [SECOND], "Count": 1, "ScannedCount": 1}, "data/0002.json")
    assert open_file(str(folder), {}).describe().key_schema.names == ("pk", "sk")
    assert wire(folder) == [ITEM, SECOND]
    more = put(folder, {"Items": [SECOND]}, "0003.json")
    refused(folder, "has no manifest-summary.json", **KEYS)
    more.unlink()
    last.unlink()
    refused(folder, "0001.json, line 1: the last answer has a LastEvaluatedKey")
    refused(tmp_path / "dump", "To read each of its folders as a table, add /*")


def test_parts_of_emr_are_one_table(tmp_path):
    """Export to Amazon S3 with EMR or AWS Data Pipeline: part files, _SUCCESS, and a manifest with the names of the parts."""
    folder = tmp_path / "out"
    lower = {"pk": {"s": "a"}, "sk": {"n": "1"}, "v": {"sS": ["x"]}}
    put(folder, json.dumps(lower) + "\n", "part-00000")
    put(folder, gzip.compress(lines_of(SECOND).encode()), "part-00001.gz")
    put(folder, "", "part-00002")
    put(folder, "", "_SUCCESS")
    put(folder, b"crc", ".part-00000.crc")
    entries = [{"url": f"s3://b/out/part-0000{number}", "mandatory": True} for number in (0, 2)]
    put(folder, {"name": "DynamoDB-export", "version": 3, "entries": entries}, "manifest")
    assert wire(folder, **KEYS) == [ITEM, SECOND]
    refused(folder, "Add ?keys=NAME:S")
    put(folder, {"version": 3, "entries": [*entries, {"url": "s3://b/out/part-00009"}]}, "manifest")
    refused(folder, "manifest names part-00009, which is missing", **KEYS)
    put(folder, "", "manifest").unlink()
    put(folder, "notes\n", "readme.txt")
    refused(folder, "readme.txt, line 1: not JSON", **KEYS)


def test_the_data_folder_of_an_export_is_read_alone_or_with_its_manifest(tmp_path):
    original = tmp_path / "export"
    table = [simple_row(number) for number in range(5)]
    written(open_file(str(original), {"format": "dynamodb-export"}), DEFINITION, table)
    [data] = original.glob("AWSDynamoDB/*/data")
    expected = sorted(map(of_values, table))
    assert format_of(str(data), {}) == "dynamodb-export"
    assert sorted(map(of_values, scanned(open_file(str(data), KEYS)))) == expected
    alone = data.rename(tmp_path / "alone")
    assert format_of(str(alone), {}) == "dynamodb-json"
    assert sorted(map(of_values, scanned(open_file(str(alone), KEYS)))) == expected


def test_a_folder_of_entities_is_a_table(tmp_path):
    """AzCopy 7 splits a table into files and a manifest (/SplitSize)."""
    for number in range(2):
        name = f"acct_t_20140903T051850.8128447Z_0_{number}_C3040FE8.json"
        put(tmp_path / "az", {"value": [ENTITY | {"RowKey": str(number)}]}, name)
    put(tmp_path / "az", "x", "acct_t_20140903T051850.8128447Z.manifest")
    assert [row["RowKey"] for row in rows(tmp_path / "az")] == ["0", "1"]


def test_the_first_part_with_a_document_selects_the_format(tmp_path):
    folder = tmp_path / "out"
    put(folder, "", "part-0")
    put(folder, {"Records": [record("INSERT", 1, 10)]}, "part-1")
    assert len(rows(folder, **KEYS)) == 1
    put(folder, ENTITY, "part-2")
    refused(folder, "part-2, line 1: no record of a stream", **KEYS)


def test_reading_a_folder_resumes_and_notices_changes(tmp_path):
    folder = tmp_path / "out"
    found = [{"pk": {"S": "a"}, "sk": {"N": str(number)}} for number in range(1200)]
    put(folder, lines_of(*found[:700]), "part-0")
    put(folder, lines_of(*found[700:]), "part-1")
    source = open_file(str(folder), KEYS)
    [segment] = source.segments(4)
    pages = list(source.scan(segment))
    again = [row for page in source.scan(segment, pages[0].resume) for row in page.rows]
    assert len(pages[0].rows) + len(again) == 1200
    put(folder, lines_of(SECOND), "part-2")
    with pytest.raises(TransferError, match="has changed since reading began"):
        next(source.scan(segment, pages[0].resume))


def test_formats_that_are_only_read_refuse_to_be_written(tmp_path):
    for document, options in ((az({}), {}), (model(MODEL_TABLE), {}), (cli(["a"]), {"keys": "a:S"})):
        target = open_file(str(put(tmp_path, document)), options)
        with pytest.raises(BadAddress, match="can only be read"):
            target.create(DEFINITION)
    with pytest.raises(BadAddress, match="can only be read"):
        open_file(str(tmp_path / "x.csv"), {"format": "dynamodb-csv", **KEYS}).create(DEFINITION)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"pk": "a", "n": 1}, "boto3's resource, the document client and Cosmos DB write JSON without types"),
        ({"Table": {"TableName": "t"}}, "no typed item"),
        ({"Attributes": ITEM}, "in.json, line 1: "),
    ],
)
def test_unreadable_forms_are_named(tmp_path, document, words):
    refused(put(tmp_path, document), words, **KEYS)


def test_base64_stays_base64(tmp_path):
    item = {**SECOND, "b": {"B": base64.b64encode(b"x").decode()}}
    assert wire(put(tmp_path, item), **KEYS) == [item]
    with pytest.raises(BadFile):
        wire(put(tmp_path, {**SECOND, "b": {"B": "!"}}), **KEYS)
