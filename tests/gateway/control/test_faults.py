"""Faults over a live server: their effect on requests of the three dialects, and the requests to which they apply."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
import requests
from azure.core.exceptions import HttpResponseError
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError

from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.app import create_app
from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.http.messages import Reply
from tests.adapters.tablestore import client as tablestore
from tests.conftest import Serve
from tests.support.control import Control, count, make
from tests.support.live_azure import LiveAzure
from tests.support.live_dynamodb import REGION, Live, refused
from tests.support.live_tablestore import LiveTableStore
from tests.support.running import ENTRIES, Running
from tests.support.waiting import PATIENCE_S


def codes(live: Live, requests_sent: int, **key: Any) -> list[str]:
    """Return the results of this many reads: "" or the code of an error."""
    answers = []
    for _ in range(requests_sent):
        try:
            live.client.get_item(TableName="table-a", Key={"id": {"S": "1"}})
            answers.append("")
        except ClientError as error:
            answers.append(error.response["Error"]["Code"])
    return answers


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize(
    ("name", "code", "status"),
    [
        ("throttling", "ProvisionedThroughputExceededException", 400),
        ("internal", "InternalServerError", 500),
        ("conflict", "TransactionConflictException", 400),
        ("limit", "RequestLimitExceeded", 400),
        ("ItemCollectionSizeLimitExceededException", "ItemCollectionSizeLimitExceededException", 400),
    ],
)
def test_a_fault_can_name_an_error(
    serve: Serve, sqlite_url: str, entry: str, name: str, code: str, status: int
) -> None:
    server = serve(sqlite_url, entry=entry)
    live, control = Live(server.url), Control(server.url)
    make(live, "table-a")
    fault = control("POST", "/faults", error=name, operation="GetItem", count=1)
    with pytest.raises(ClientError) as caught:
        live.client.get_item(TableName="table-a", Key={"id": {"S": "1"}})
    assert caught.value.response["Error"]["Code"] == code
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == status
    assert codes(live, 2) == ["", ""]
    [listed] = control("GET", "/faults")["faults"]
    assert (listed["id"], listed["met"], listed["seen"]) == (fault["id"], 1, 3)


def test_a_fault_has_a_start_a_count_and_a_rate(live: Live, control: Control) -> None:
    make(live, "table-a")
    busy = "ProvisionedThroughputExceededException"
    control("POST", "/faults", error="throttling", operation="GetItem", after=2, count=3)
    assert codes(live, 7) == ["", "", busy, busy, busy, "", ""]
    control("DELETE", "/faults")
    runs = []
    for seed in (7, 7, 8):
        control("POST", "/faults", error="throttling", operation="GetItem", rate=0.3, seed=seed)
        runs.append(codes(live, 60))
        control("DELETE", "/faults")
    assert runs[0] == runs[1] != runs[2]
    assert 5 <= runs[0].count(busy) <= 30


def test_a_fault_applies_to_the_requests_of_its_filters(
    live: Live, control: Control, server: Running
) -> None:
    make(live, "table-a")
    make(live, "table-b")
    azure = LiveAzure(server.url)
    other = boto3.client(
        "dynamodb", endpoint_url=server.url, region_name=REGION, aws_access_key_id="other",
        aws_secret_access_key="x", config=Config(retries={"total_max_attempts": 1}),
    )  # fmt: skip
    key = {"id": {"S": "1"}}
    control("POST", "/faults", error="internal", table="table-b", caller="other")
    assert codes(live, 1) == [""]
    live.client.get_item(TableName="table-b", Key=key)
    other.get_item(TableName="table-a", Key=key)
    with pytest.raises(ClientError):
        other.get_item(TableName="table-b", Key=key)
    # A batch names several tables, and an ARN names one too.
    with pytest.raises(ClientError):
        other.batch_get_item(RequestItems={"table-a": {"Keys": [key]}, "table-b": {"Keys": [key]}})
    with pytest.raises(ClientError):
        other.get_item(TableName=f"arn:aws:dynamodb:{REGION}:000000000000:table/table-b", Key=key)
    control("DELETE", "/faults")
    fault = control("POST", "/faults", error="internal", dialect="azuretable")["id"]
    assert codes(live, 1) == [""]
    with pytest.raises(HttpResponseError):
        list(azure.service.list_tables())
    control("DELETE", f"/faults/{fault}")
    assert [*azure.service.list_tables()]
    control("DELETE", f"/faults/{fault}", status=404)


@pytest.mark.parametrize("entry", ENTRIES)
def test_azure_and_table_store_use_their_own_errors(serve: Serve, sqlite_url: str, entry: str) -> None:
    server = serve(sqlite_url, entry=entry)
    control, azure, store = Control(server.url), LiveAzure(server.url), LiveTableStore(server.url)
    table = azure.new_table()
    store.create("rows", ("pk", messages.STRING))
    control("POST", "/faults", error="throttling")
    with pytest.raises(HttpResponseError) as caught:
        table.create_entity({"PartitionKey": "p", "RowKey": "r"})
    assert caught.value.status_code == 503
    assert caught.value.response is not None
    assert caught.value.response.headers["x-ms-error-code"] == "ServerBusy"
    with pytest.raises(tablestore.Refused) as refused:
        store.get({"pk": "a"}, "rows")
    assert (refused.value.status, refused.value.code) == (403, "OTSNotEnoughCapacityUnit")
    # Even a fault's reply is signed, because the SDKs check the signature first.
    assert isinstance(store.last, Reply)
    assert "authorization" in dict(store.last.headers)


@pytest.mark.parametrize(("cut", "left"), [("before", 3), ("after", 2)])
def test_a_connection_is_cut_before_or_after_the_work(
    serve: Serve, sqlite_url: str, cut: str, left: int
) -> None:
    server = serve(sqlite_url, entry="server")
    live, control = Live(server.url), Control(server.url)
    make(live, "table-a")
    control("POST", "/faults", cut=cut, operation="DeleteItem", count=1)
    with pytest.raises(ConnectionClosedError):
        live.client.delete_item(TableName="table-a", Key={"id": {"S": "1"}})
    assert count(live, "table-a") == left


@pytest.mark.parametrize("entry", ENTRIES)
def test_latency_delays_no_other_request(serve: Serve, sqlite_url: str, entry: str) -> None:
    server = serve(sqlite_url, entry=entry)
    live, control = Live(server.url), Control(server.url)
    make(live, "table-a")
    control("PUT", "/requests", most=10)
    control("POST", "/faults", latency_ms=300, operation="GetItem")
    codes(live, 1)
    assert control("GET", "/requests")["requests"][-1]["duration_us"] >= 300_000
    for wrong in (-1, 60_001):
        control("POST", "/faults", status=400, latency_ms=wrong)


def test_members_of_a_batch_are_left_unprocessed(live: Live, control: Control, server: Running) -> None:
    make(live, "table-a", items=0)
    control("POST", "/faults", unprocessed=0.5, seed=3)
    left = [{"PutRequest": {"Item": {"id": {"S": str(number)}}}} for number in range(25)]
    sizes = []
    while left:
        try:
            answer = live.client.batch_write_item(RequestItems={"table-a": left})
        except live.client.exceptions.ProvisionedThroughputExceededException:
            continue  # the answer to a batch whose members are all throttled (API reference of BatchGetItem)
        left = answer["UnprocessedItems"].get("table-a", [])
        sizes.append(25 - len(left))
        assert count(live, "table-a") == sizes[-1]
    assert len(sizes) > 1
    keys = [{"id": {"S": str(number)}} for number in range(25)]
    found: list[Any] = []
    while keys:
        try:
            answer = live.client.batch_get_item(RequestItems={"table-a": {"Keys": keys}})
        except live.client.exceptions.ProvisionedThroughputExceededException:
            continue  # the answer to a batch whose members are all throttled (API reference of BatchGetItem)
        found += answer["Responses"]["table-a"]
        keys = answer["UnprocessedKeys"].get("table-a", {}).get("Keys", [])
    assert len(found) == 25
    control("DELETE", "/faults")
    control("POST", "/faults", unprocessed=1)
    with refused("ProvisionedThroughputExceededException"):
        live.client.batch_get_item(RequestItems={"table-a": {"Keys": [{"id": {"S": "1"}}]}})
    # Table Store has an error for each row.
    store = LiveTableStore(server.url)
    store.create("rows", ("pk", messages.STRING))
    put = messages.RowInBatchWriteRowRequest(
        type=messages.PUT, row_change=tablestore.row({"pk": "a"}, tablestore.cells_of({"v": 1})),
        condition=messages.Condition(row_existence=messages.IGNORE),
    )  # fmt: skip
    part = messages.TableInBatchWriteRowRequest(table_name="rows", rows=[put])
    [result] = store.call("BatchWriteRow", tables=[part]).tables[0].rows
    assert (result.is_ok, result.error.code) == (False, "OTSServerBusy")
    assert store.get({"pk": "a"}, "rows") is None
    got = messages.TableInBatchGetRowRequest(
        table_name="rows", primary_key=[tablestore.row({"pk": "a"})], max_versions=1
    )
    [result] = store.call("BatchGetRow", tables=[got]).tables[0].rows
    assert (result.is_ok, result.error.code) == (False, "OTSServerBusy")


def test_a_capacity_budget_fills_with_the_clock(live: Live, control: Control) -> None:
    make(live, "table-a")
    control("PUT", "/clock", frozen=True)
    control("POST", "/faults", capacity={"units": 2, "per_second": 1}, table="table-a")
    busy = "ProvisionedThroughputExceededException"
    # Eventually consistent reads of half a unit each.
    assert codes(live, 6) == ["", "", "", "", busy, busy]
    control("POST", "/clock/advance", seconds=1)
    assert codes(live, 3) == ["", "", busy]
    control("POST", "/clock/advance", seconds=100)
    assert codes(live, 5) == ["", "", "", "", busy]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"rate": 0.5},
        {"error": "NoSuchException"},
        {"error": "throttling", "rate": 1.1},
        {"error": "throttling", "rate": -0.1},
        {"error": "throttling", "count": -1},
        {"error": "throttling", "dialect": "cassandra"},
        {"error": "ServerBusy", "dialect": "dynamodb"},
        {"cut": "sometimes"},
        {"unprocessed": 2},
        {"unprocessed": 0.5, "operation": "GetItem"},
        {"unprocessed": 0.5, "dialect": "azuretable"},
        {"capacity": {}},
        {"capacity": {"units": -1}},
        {"capacity": {"units": "many"}},
        {"error": "internal", "operation": "PutItme"},
        {"error": "internal", "operation": "unknown"},
        {"error": "internal", "operation": "PutItem", "dialect": "tablestore"},
        {"error": "ServerBusy", "operation": "PutItem"},
        {"error": True},
        {"nothing": 1},
    ],
)
def test_a_fault_that_cannot_be_is_refused(shared_server: str, given: dict[str, Any]) -> None:
    control = Control(shared_server)
    answer = requests.post(f"{shared_server}/_tablegate/faults", json=given, timeout=PATIENCE_S)
    assert (answer.status_code, answer.json()["error"]) == (400, "BadRequest"), answer.text
    assert control("GET", "/faults") == {"faults": []}


def test_a_misspelt_operation_is_answered_with_similar_ones(shared_server: str) -> None:
    control = Control(shared_server)
    answer = control("POST", "/faults", status=400, error="internal", operation="PutItme")
    assert answer["message"] == (
        "operation: dynamodb, tablestore, azuretable has no PutItme. Similar ones: PutItem"
    )


@pytest.mark.parametrize(
    ("dialect", "operation"),
    [
        ("dynamodb", "GetRecords"),
        ("tablestore", "PutRow"),
        ("azuretable", "MERGE Entity"),
        ("azuretable", "OPTIONS EntitySet"),
    ],
)
def test_operations_of_every_dialect_are_known(shared_server: str, dialect: str, operation: str) -> None:
    control = Control(shared_server)
    control("POST", "/faults", error="internal", operation=operation, dialect=dialect)
    control("DELETE", "/faults")


def test_several_workers_have_no_clock_faults_and_requests(sqlite_url: str) -> None:
    settings = Settings(database=sqlite_url, workers=2)
    app = create_app(settings)
    for path in ("/clock", "/faults", "/requests"):
        answer = app.test_client().get(f"/_tablegate{path}", environ_base={"REMOTE_ADDR": "127.0.0.1"})
        assert (answer.status_code, answer.json["error"]) == (409, "Refused")  # type: ignore[index]
    assert app.test_client().get("/_tablegate/snapshots").status_code == 200
