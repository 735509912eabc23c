"""The three official SDKs through a recorder in front of a server on SQLite. The trace is then sent to a server on
PostgreSQL.

Rules explain incidental differences. A fault of one service is found, and nothing else.
"""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path
from typing import Any

import pytest
import tablestore as ots
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.data.tables import UpdateMode

from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.http.messages import Reply, Request
from tablegate.transfer.traffic.comparing import BODY, ORDER, STATUS
from tablegate.transfer.traffic.reports import DivergenceReport
from tests.contract.clients import CLIENTS, Delete, Insert, Put, Refused
from tests.support.across import Across
from tests.support.live_dynamodb import refused
from tests.support.running import Running, start
from tests.transfer.traffic.proxies import faulty, recorder, replayed

KEYS = [("partition", f"row{number}") for number in range(5)]


def what_all_three_promise(across: Across) -> None:
    """Inserts, conditions, pages and groups, through each SDK."""
    for kind in CLIENTS.values():
        table = kind(across)
        for version, key in enumerate(KEYS):
            table.insert(key, {"version": version, "text": f"number {version}"})
        for refused_write in (
            lambda table=table: table.insert(KEYS[0], {"version": 9}),
            lambda table=table: table.replace_if(KEYS[0], 7, {"version": 8}),
        ):
            with contextlib.suppress(Refused):
                refused_write()
        table.replace_if(KEYS[1], 1, {"version": 11})
        table.merge(KEYS[2], {"more": "text"})
        assert table.partition("partition", 2) == KEYS
        table.group(
            [Put(KEYS[3], {"version": 33}), Delete(KEYS[4]), Insert(("partition", "row9"), {"a": "b"})]
        )
        with pytest.raises(Refused):
            table.group([Put(KEYS[0], {"version": 0}), Insert(KEYS[1], {"a": "b"})])
        assert table.get(KEYS[3]) == {"version": 33}
        assert table.get(("nobody", "here")) is None


def streams_and_scans(across: Across) -> None:
    """DynamoDB: scans in pages, batches, descriptions, and a stream from its shard to its records."""
    live = across.dynamodb
    stream = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    table = live.create("pk:S", "sk:N", StreamSpecification=stream)
    with table.batch_writer() as batch:
        for number in range(12):
            batch.put_item(Item={"pk": f"p{number % 4}", "sk": number, "tags": {"a", "b", f"t{number}"}})
    asked: dict[str, Any] = {"Limit": 5}
    while page := table.scan(**asked):
        if "LastEvaluatedKey" not in page:
            break
        asked["ExclusiveStartKey"] = page["LastEvaluatedKey"]
    client = live.resource.meta.client
    described = client.describe_table(TableName=table.name)["Table"]
    client.tag_resource(ResourceArn=described["TableArn"], Tags=[{"Key": "a", "Value": "b"}])
    client.list_tags_of_resource(ResourceArn=described["TableArn"])
    keys = [{"pk": f"p{number % 4}", "sk": number} for number in (1, 2, 3)]
    client.batch_get_item(RequestItems={table.name: {"Keys": keys}}, ReturnConsumedCapacity="TOTAL")
    with refused("ConditionalCheckFailedException"):
        table.put_item(Item={"pk": "p1", "sk": 1}, ConditionExpression="attribute_not_exists(pk)")
    streams, arn = live.session.client("dynamodbstreams", endpoint_url=live.url), described["LatestStreamArn"]
    shard = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"][0]["ShardId"]
    given = {"StreamArn": arn, "ShardId": shard}
    first = streams.get_shard_iterator(**given, ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
    page = streams.get_records(ShardIterator=first, Limit=5)
    assert len(page["Records"]) == 5
    after = page["Records"][-1]["dynamodb"]["SequenceNumber"]
    assert len(streams.get_records(ShardIterator=page["NextShardIterator"])["Records"]) == 7
    second = streams.get_shard_iterator(
        **given, ShardIteratorType="AFTER_SEQUENCE_NUMBER", SequenceNumber=after
    )
    assert len(streams.get_records(ShardIterator=second["ShardIterator"])["Records"]) == 7


def etags(across: Across) -> None:
    """Azure Table: writes on the condition of an ETag that came from an insert, a read, a query, and a batch."""
    table = across.azure.new_table()
    for number in range(3):
        table.create_entity({"PartitionKey": "p", "RowKey": str(number), "n": number})
    entity = next(iter(table.query_entities("PartitionKey eq 'p'", results_per_page=2)))
    condition = {"etag": entity.metadata["etag"], "match_condition": MatchConditions.IfNotModified}
    written = table.update_entity({**entity, "n": 10}, mode=UpdateMode.REPLACE, **condition)
    with pytest.raises(HttpResponseError):
        table.update_entity({**entity, "n": 11}, mode=UpdateMode.REPLACE, **condition)
    condition["etag"] = written["etag"]
    table.submit_transaction(
        [("update", {**entity, "n": 12}, condition), ("upsert", {"PartitionKey": "p", "RowKey": "2"})]
    )
    with pytest.raises(HttpResponseError):
        table.submit_transaction([("update", {**entity, "n": 13}, condition)])
    fresh = table.get_entity("p", "0")
    condition["etag"] = fresh.metadata["etag"]
    table.delete_entity(fresh, **condition)
    assert [entity["RowKey"] for entity in table.list_entities(results_per_page=1)] == ["1", "2"]
    list(across.azure.service.list_tables())


def tablestore_streams(across: Across) -> None:
    """Table Store: a stream with identifiers of the service, and cells with times of the client."""
    name = across.new_name()
    meta = ots.TableMeta(name, [("pk", "STRING")])
    throughput = ots.ReservedThroughput(ots.CapacityUnit(0, 0))
    options = ots.TableOptions(max_version=3)
    across.tablestore.create_table(meta, options, throughput)
    old = int((time.time() - 7_200) * 1000)
    row = ots.Row([("pk", "a")], [("at", 1, old), ("now", 2)])
    across.tablestore.put_row(name, row, ots.Condition(ots.RowExistenceExpectation.IGNORE))
    across.tablestore.get_row(name, [("pk", "a")], max_version=3)
    across.put(name, {"pk": "b"}, n=1)
    across.tablestore.get_row(name, [("pk", "b")], max_version=3)
    across.tablestore.describe_table(name)
    stream = messages.StreamSpecification(enable_stream=True, expiration_time=24)
    across.ask("UpdateTable", table_name=name, stream_spec=stream)
    across.put(name, {"pk": "c"}, n=2)
    [listed] = across.ask("ListStream", table_name=name).streams
    [shard] = across.ask("DescribeStream", stream_id=listed.stream_id).shards
    asked = {"stream_id": listed.stream_id, "shard_id": shard.shard_id}
    place = across.ask("GetShardIterator", **asked).shard_iterator
    assert across.ask("GetStreamRecord", shard_iterator=place).stream_records


def everything(across: Across) -> None:
    what_all_three_promise(across)
    streams_and_scans(across)
    etags(across)
    tablestore_streams(across)


@pytest.fixture(scope="module")
def trace(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trace of everything above, recorded in front of SQLite."""
    folder = tmp_path_factory.mktemp("trace")
    (folder / "test.sqlite").write_bytes(sqlite_template.read_bytes())
    server = start(f"sqlite:///{folder}/test.sqlite")
    path = folder / "trace.jsonl.zst"
    with recorder(server.url, path) as run:
        everything(Across(run.url))
    server.stop()
    assert run.error is None
    return path


def told(report: DivergenceReport) -> str:
    return report.as_text(100)


def test_one_database_answers_as_the_other(trace: Path, postgres_server: Running) -> None:
    report = replayed(trace, postgres_server.url)
    assert report.exit_status == 0, told(report)
    assert not report.skipped
    assert report.equal.total() >= 90
    assert {dialect for dialect, _ in report.equal} == {"dynamodb", "azuretable", "tablestore"}
    used = {name for _, name in report.rules}
    expected = {
        "stream-id",
        "etag",
        "timestamp",
        "stream-arn",
        "shard-iterator",
        "service-address",
        "cell-stamps",
        "transaction-id",
    }
    assert expected <= used, used
    document = json.loads(report.as_json())
    assert document["result"] == "equal"
    assert {rule["rule"] for rule in document["rules"]} == used


def once(request_is: Any, change: Any) -> Any:
    """A change of one answer: the first to such a request."""
    done = []

    def changed(request: Request, reply: Reply) -> Reply:
        if done or not request_is(request):
            return reply
        answer = change(json.loads(reply.body))
        if answer is None:
            return reply
        done.append(request)
        return answer(reply)

    return changed


def with_body(tree: Any) -> Any:
    return lambda reply: reply._replace(body=json.dumps(tree).encode())


def test_one_wrong_status_is_found_and_nothing_else(trace: Path, postgres_server: Running) -> None:
    change = once(
        lambda request: request.header("x-amz-target").endswith(".GetItem"),
        lambda tree: lambda reply: reply._replace(status=400),
    )
    with faulty(postgres_server.url, change) as service:
        report = replayed(trace, service.url)
    assert report.exit_status == 1
    assert [each.divergence.what for each in report.found] == [STATUS], told(report)
    assert report.found[0].operation == "GetItem"
    assert not report.found[0].is_raced


def test_one_wrong_attribute_is_found_and_nothing_else(trace: Path, postgres_server: Running) -> None:
    def change(tree: Any) -> Any:
        if "version" not in tree:
            return None
        return with_body({**tree, "version": 34})

    change_it = once(lambda request: request.method == "GET" and "RowKey='row3'" in request.target, change)
    with faulty(postgres_server.url, change_it) as service:
        report = replayed(trace, service.url)
    [found] = report.found
    assert found.divergence == type(found.divergence)(BODY, "body/version", "33", "34"), told(report)
    assert (found.dialect, found.operation) == ("azuretable", "GET Entity")


def test_one_wrong_order_is_found_and_nothing_else(trace: Path, postgres_server: Running) -> None:
    def change(tree: Any) -> Any:
        return with_body({**tree, "Items": tree["Items"][::-1]}) if len(tree["Items"]) > 1 else None

    change_it = once(lambda request: request.header("x-amz-target").endswith(".Query"), change)
    with faulty(postgres_server.url, change_it) as service:
        report = replayed(trace, service.url)
    assert [(each.divergence.what, each.divergence.place) for each in report.found] == [(ORDER, "body/Items")]
    assert "row1" in report.found[0].divergence.recorded


def test_a_scan_may_come_in_any_order_but_not_with_other_items(trace: Path, postgres_server: Running) -> None:
    def reversed_items(request: Request, reply: Reply) -> Reply:
        if not request.header("x-amz-target").endswith(".Scan"):
            return reply
        tree = json.loads(reply.body)
        return with_body({**tree, "Items": tree["Items"][::-1]})(reply)

    with faulty(postgres_server.url, reversed_items) as service:
        report = replayed(trace, service.url)
    assert report.exit_status == 0, told(report)
    assert report.rules["dynamodb", "scan-order"]


def test_a_request_to_an_unready_service_is_retried(trace: Path, postgres_server: Running) -> None:
    """A state that was ready in the recording may not be ready in the live service yet."""
    code = b'{"__type": "com.amazon.coral.availability#ThrottlingException", "message": "later"}'
    refused_first: set[bytes] = set()

    def change(request: Request, reply: Reply) -> Reply:
        is_read = request.header("x-amz-target").endswith(".GetItem")
        if not is_read or request.body in refused_first:
            return reply
        refused_first.add(request.body)
        return Reply(400, reply.headers, code)

    with faulty(postgres_server.url, change) as service:
        report = replayed(trace, service.url)
    assert report.exit_status == 0, told(report)
    assert report.repeated == len(refused_first) > 0
