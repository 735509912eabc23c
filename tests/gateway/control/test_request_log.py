"""The record of requests: the fields of each dialect. Frozen time makes two runs equal."""

from __future__ import annotations

import contextlib
import json
import random
from typing import Any

import pytest
import requests
import tablestore as ots
from azure.core.exceptions import HttpResponseError
from botocore.exceptions import ClientError

from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tests.adapters.tablestore import client as tablestore
from tests.conftest import Serve
from tests.support.control import Control, make
from tests.support.live_azure import LiveAzure
from tests.support.live_dynamodb import Live, refused
from tests.support.live_tablestore import LiveTableStore
from tests.support.running import ENTRIES, Running
from tests.support.waiting import PATIENCE_S


def recorded(control: Control) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = control("GET", "/requests")["requests"]
    return found


@pytest.mark.parametrize("entry", ENTRIES)
def test_requests_of_dynamodb_are_recorded_with_their_fields(
    serve: Serve, sqlite_url: str, entry: str
) -> None:
    server = serve(sqlite_url, entry=entry)
    live, control = Live(server.url), Control(server.url)
    make(live, "table-a", items=1)
    assert recorded(control) == []
    control("PUT", "/requests", most=100)
    client, one = live.client, {"id": {"S": "1"}}
    client.put_item(TableName="table-a", Item={**one, "n": {"N": "1"}})
    client.get_item(TableName="table-a", Key=one, ConsistentRead=True)
    client.batch_write_item(
        RequestItems={
            "table-a": [{"DeleteRequest": {"Key": one}}, {"PutRequest": {"Item": {"id": {"S": "2"}}}}]
        }
    )
    client.transact_get_items(TransactItems=[{"Get": {"TableName": "table-a", "Key": one}}])
    with refused("ResourceNotFoundException"):
        client.scan(TableName="table-b")
    client.execute_statement(Statement="SELECT * FROM \"table-a\" WHERE id = '1'")
    arn = client.describe_table(TableName="table-a")["Table"]["TableArn"]
    client.list_tags_of_resource(ResourceArn=arn)
    client.list_tables()
    found = recorded(control)
    assert [(line["operation"], line["status"], line["tables"]) for line in found] == [
        ("PutItem", 200, ["table-a"]),
        ("GetItem", 200, ["table-a"]),
        ("BatchWriteItem", 200, ["table-a"]),
        ("TransactGetItems", 200, ["table-a"]),
        ("Scan", 400, ["table-b"]),
        ("ExecuteStatement", 200, ["table-a"]),
        ("DescribeTable", 200, ["table-a"]),
        ("ListTagsOfResource", 200, ["table-a"]),
        ("ListTables", 200, []),
    ]
    assert [[key["key"] for key in line["keys"]] for line in found[:4]] == [
        [one], [one], [one, {"id": {"S": "2"}}], [one],
    ]  # fmt: skip
    assert [line["units"] for line in found] == [
        {"write": 1}, {"read": 1}, {"write": 2}, {"read": 2}, {}, {"read": 0.5}, {}, {}, {},
    ]  # fmt: skip
    assert {(line["dialect"], line["caller"]) for line in found} == {("dynamodb", "anybody")}
    assert [line["number"] for line in found] == list(range(1, 10))
    assert all(line["duration_us"] > 0 for line in found)


@pytest.mark.parametrize("entry", ENTRIES)
def test_requests_of_azure_and_table_store_are_recorded_with_their_fields(
    serve: Serve, sqlite_url: str, entry: str
) -> None:
    server = serve(sqlite_url, entry=entry)
    control, azure, store = Control(server.url), LiveAzure(server.url), LiveTableStore(server.url)
    control("PUT", "/requests", most=100)
    table = azure.new_table()
    key = {"PartitionKey": "p", "RowKey": "r's"}
    table.create_entity({**key, "v": 1})
    table.get_entity("p", "r's")
    table.submit_transaction([("upsert", {**key, "v": 2}), ("create", {"PartitionKey": "p", "RowKey": "2"})])
    store.create("rows", ("pk", messages.STRING), ("at", messages.INTEGER))
    store.put({"pk": "a", "at": 5}, {"v": 1}, table="rows")
    got = messages.TableInBatchGetRowRequest(
        table_name="rows",
        primary_key=[tablestore.row({"pk": name, "at": 1}) for name in "ab"],
        max_versions=1,
    )
    store.call("BatchGetRow", tables=[got])
    found = recorded(control)
    name = table.table_name
    assert [(line["dialect"], line["operation"], line["tables"]) for line in found] == [
        ("azuretable", "POST TableSet", [name]),
        ("azuretable", "POST EntitySet", [name]),
        ("azuretable", "GET Entity", [name]),
        ("azuretable", "POST Batch", [name]),
        ("tablestore", "CreateTable", ["rows"]),
        ("tablestore", "PutRow", ["rows"]),
        ("tablestore", "BatchGetRow", ["rows"]),
    ]
    assert [[each["key"] for each in line["keys"]] for line in found] == [
        [], [key], [key], [key, {"PartitionKey": "p", "RowKey": "2"}],
        [], [{"pk": "a", "at": 5}], [{"pk": "a", "at": 1}, {"pk": "b", "at": 1}],
    ]  # fmt: skip
    assert [line["units"] for line in found[5:]] == [{"write": 1}, {"read": 2}]


def test_only_the_last_requests_are_kept(live: Live, control: Control) -> None:
    make(live, "table-a")
    control("PUT", "/requests", most=3)
    for number in range(5):
        live.client.get_item(TableName="table-a", Key={"id": {"S": str(number)}})
    assert [line["keys"][0]["key"]["id"]["S"] for line in recorded(control)] == ["2", "3", "4"]
    control("PUT", "/requests", most=1)
    assert len(recorded(control)) == 1
    assert control("DELETE", "/requests") == {"requests": 1}
    assert recorded(control) == []
    control("PUT", "/requests", most=0)
    live.client.list_tables()
    assert recorded(control) == []
    for wrong in (-1, 100_001):
        control("PUT", "/requests", status=400, most=wrong)


def test_requests_are_selected_by_their_members(live: Live, control: Control) -> None:
    make(live, "table-a", items=2)
    control("PUT", "/requests", most=10)
    live.client.list_tables()
    for name in ("table-a", "table-b"):
        with contextlib.suppress(ClientError):
            live.client.scan(TableName=name)

    def found(query: str) -> list[tuple[str, int]]:
        answer = control("GET", f"/requests?{query}")["requests"]
        return [(line["operation"], line["status"]) for line in answer]

    assert found("operation=Scan") == [("Scan", 200), ("Scan", 400)]
    assert found("operation=Scan&status=200") == found("table=table-a") == [("Scan", 200)]
    assert found("dialect=dynamodb&caller=anybody&operation=ListTables") == [("ListTables", 200)]
    assert found("dialect=tablestore") == []
    for wrong in ("operation=Scann", "operation=Scan&dialect=tablestore", "dialect=sql", "op=Scan"):
        answer = control("GET", f"/requests?{wrong}", status=400)
        assert answer["error"] == "BadRequest"


@pytest.mark.parametrize(
    ("headers", "target", "body"),
    [
        ({"X-Amz-Target": "DynamoDB_20120810.PutItem"}, "/", b"{"),
        (
            {"X-Amz-Target": "DynamoDB_20120810.PutItem", "Authorization": "AWS4-HMAC-SHA256 nonsense"},
            "/",
            b"[]",
        ),
        ({"x-ots-date": "now"}, "/PutRow", b"\xff"),
        ({}, "/devstoreaccount1/$batch", b"--x"),
        ({}, "/devstoreaccount1/t(PartitionKey='", b""),
    ],
)
def test_unreadable_requests_are_recorded(
    live: Live, control: Control, server: Running, headers: dict[str, str], target: str, body: bytes
) -> None:
    control("PUT", "/requests", most=10)
    control("POST", "/faults", error="internal", table="nobody")
    answer = requests.post(server.url + target, data=body, headers=headers, timeout=PATIENCE_S)
    assert 400 <= answer.status_code < 500
    [line] = recorded(control)
    assert (line["status"], line["keys"]) == (answer.status_code, [])


@pytest.mark.parametrize("sent", ["dynamodb", "azuretable", "tablestore"])
def test_a_planted_error_proves_no_caller(serve: Serve, sqlite_url: str, sent: str) -> None:
    """A request that gets an injected error is never authenticated.

    Its caller and its content are therefore not recorded.
    """
    server = serve(sqlite_url, auth="strict", admin_token="the token")
    control = Control(server.url, Authorization="Bearer the token")
    control("PUT", "/requests", most=10)
    control("POST", "/faults", error="internal")
    with contextlib.suppress(ClientError, HttpResponseError, ots.OTSError):
        match sent:
            case "dynamodb":
                Live(server.url).client.get_item(TableName="table-a", Key={"id": {"S": "1"}})
            case "azuretable":
                LiveAzure(server.url).service.get_table_client("people").get_entity("p", "1")
            case _:
                ots.OTSClient(server.url, "AKID", "secret", "here", retry_policy=ots.NoRetryPolicy()).get_row(
                    "table", [("pk", "a")]
                )
    [line] = recorded(control)
    assert (line["dialect"], line["status"], line["caller"]) == (sent, 500, "")
    assert (line["tables"], line["keys"]) == ([], [])


def _play(server: Running, seed: int) -> bytes:
    """Run a seeded test on an empty server with frozen time. Returns its recorded requests as bytes."""
    control, chance = Control(server.url), random.Random(seed)
    control("POST", "/reset")
    control("DELETE", "/requests")
    control("DELETE", "/faults")
    live = Live(server.url)
    make(live, "table-a")
    control("POST", "/faults", error="throttling", rate=0.3, seed=seed, operation="PutItem")
    azure = LiveAzure(server.url).service.create_table("people")
    for _ in range(40):
        key = str(chance.randrange(10))
        if chance.random() < 0.7:
            live.send("PutItem", {"TableName": "table-a", "Item": {"id": {"S": key}}})
        else:
            azure.upsert_entity({"PartitionKey": "p", "RowKey": key, "n": chance.random()})
    return requests.get(f"{server.url}/_tablegate/requests", timeout=PATIENCE_S).content


def test_frozen_time_makes_two_runs_of_a_seeded_test_equal(serve: Serve, sqlite_url: str) -> None:
    server = serve(sqlite_url)
    control = Control(server.url)
    control("PUT", "/requests", most=1000)
    control("PUT", "/clock", at="2040-01-01T00:00:00Z", frozen=True)
    first, second, other = _play(server, 1), _play(server, 1), _play(server, 2)
    assert first == second
    assert first != other
    assert len(json.loads(first)["requests"]) == 1 + 3 + 1 + 40
