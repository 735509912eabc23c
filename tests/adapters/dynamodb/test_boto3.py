"""Unmodified boto3 in front of a live server: resources, paginators, waiters, a batch writer, parallel scans, errors.

Nothing of boto3 is switched off here: it checks parameters, checks the CRC of answers, and tries again as it likes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
from boto3 import Session
from boto3.dynamodb.conditions import Attr, Key
from boto3.dynamodb.types import Binary, TypeDeserializer, TypeSerializer
from botocore.config import Config
from botocore.exceptions import ClientError, WaiterError

from tablegate.gateway.configuration.loading import load
from tablegate.gateway.security.credentials import Credential, Scheme
from tablegate.gateway.security.grant_store import ALL
from tablegate.gateway.wiring import connect, open_store
from tests.support.live_dynamodb import REGION, Index, Live
from tests.support.running import start

DEFAULTS = Config(max_pool_connections=16)
SECRET_KEY = "a key that encrypts what is stored in this test"
SOON = {"Delay": 1, "MaxAttempts": 10}


@pytest.fixture(scope="module")
def live(shared_database_url: str) -> Iterator[Live]:
    running = start(shared_database_url, dialects="dynamodb")
    yield Live(running.url, DEFAULTS)
    running.stop()


@pytest.fixture
def music(live: Live) -> Any:
    """Songs by artist and title, with an index by year."""
    return live.create("Artist:S", "Title:S", indexes=[Index("by-year", "Released:N", "Title:S")])


@pytest.fixture(scope="module")
def catalog(live: Live) -> Any:
    """Three hundred items of about 2 KB in seven partitions, and an index of them: to be read only."""
    table = live.create(
        "group:N", "at:N", indexes=[Index("by-parity", "parity:N", "at:N", projection="KEYS_ONLY")]
    )
    with table.batch_writer() as batch:
        for number in range(300):
            batch.put_item(
                Item={
                    "group": number % 7,
                    "at": number,
                    "parity": number % 2,
                    "text": f"item {number} " + "x" * 2000,
                }
            )
    return table


# Resources


def test_a_table_resource_makes_reads_and_drops_a_table(live):
    table = live.create("Artist:S", "Title:S")
    assert table.table_status == "CREATING"
    table.load()
    assert table.table_status == "ACTIVE"
    assert table.key_schema[0] == {"AttributeName": "Artist", "KeyType": "HASH"}
    assert table.table_arn.startswith(f"arn:aws:dynamodb:{REGION}:")
    assert table.name in {other.name for other in live.resource.tables.all()}
    assert table.delete()["TableDescription"]["TableStatus"] == "DELETING"
    table.wait_until_not_exists()
    with pytest.raises(live.client.exceptions.ResourceNotFoundException):
        table.load()


def test_a_table_resource_writes_and_reads_python_values(music):
    song = {
        "Artist": "Arturus Ardvarkian",
        "Title": "Carrot Eton",
        "Released": 1999,
        "Price": Decimal("9.99"),
        "Cover": Binary(b"\x89PNG"),
        "Genres": {"rock", "roots"},
        "Ratings": {Decimal(1), Decimal("2.5")},
        "Tracks": [{"Name": "one", "Seconds": 61}, None, True],
    }
    music.put_item(Item=song)
    assert music.get_item(Key={"Artist": song["Artist"], "Title": song["Title"]})["Item"] == song


def test_conditions_are_built_of_python_objects(music):
    for number in range(6):
        music.put_item(
            Item={
                "Artist": "a",
                "Title": f"song-{number}",
                "Released": 1990 + number,
                "Tags": ["x", f"t{number}"],
            }
        )
    found = music.query(
        KeyConditionExpression=Key("Artist").eq("a") & Key("Title").between("song-1", "song-4"),
        FilterExpression=Attr("Released").is_in([1991, 1993])
        | Attr("Tags").contains("t4") & ~Attr("None").exists(),
        ProjectionExpression="Title",
        ScanIndexForward=False,
    )
    assert [item["Title"] for item in found["Items"]] == ["song-4", "song-3", "song-1"]
    released = music.query(IndexName="by-year", KeyConditionExpression=Key("Released").eq(1992))
    assert [item["Title"] for item in released["Items"]] == ["song-2"]


def test_errors_are_exceptions_of_the_client_with_what_the_service_sent(live, music):
    with pytest.raises(live.client.exceptions.ConditionalCheckFailedException) as caught:
        music.put_item(Item={"Artist": "a", "Title": "b"}, ConditionExpression=Attr("Artist").exists())
    response = caught.value.response
    assert response["Error"] == {
        "Message": "The conditional request failed",
        "Code": "ConditionalCheckFailedException",
    }
    assert response["ResponseMetadata"]["HTTPStatusCode"] == 400
    assert len(response["ResponseMetadata"]["RequestId"]) == 52
    assert response["ResponseMetadata"]["RetryAttempts"] == 0


def test_the_item_that_failed_a_condition_comes_with_the_error(live, music):
    music.put_item(Item={"Artist": "a", "Title": "b", "Price": 5})
    with pytest.raises(live.client.exceptions.ConditionalCheckFailedException) as caught:
        music.delete_item(
            Key={"Artist": "a", "Title": "b"},
            ConditionExpression=Attr("Price").eq(6),
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    assert caught.value.response["Item"] == {"Artist": {"S": "a"}, "Title": {"S": "b"}, "Price": {"N": "5"}}


def test_a_cancelled_transaction_has_its_reasons_in_the_order_of_its_actions(live, music):
    put = {"TableName": music.name, "Item": {"Artist": {"S": "a"}, "Title": {"S": "b"}}}
    check = {
        **put,
        "Item": {"Artist": {"S": "c"}, "Title": {"S": "d"}},
        "ConditionExpression": "attribute_exists(Artist)",
    }
    with pytest.raises(live.client.exceptions.TransactionCanceledException) as caught:
        live.client.transact_write_items(TransactItems=[{"Put": put}, {"Put": check}])
    assert [reason["Code"] for reason in caught.value.response["CancellationReasons"]] == [
        "None",
        "ConditionalCheckFailed",
    ]
    assert music.scan(Select="COUNT")["Count"] == 0


def test_a_transaction_writes_all_and_reads_all(live, music):
    keys = [{"Artist": "a", "Title": str(at)} for at in range(10)]
    serialize, deserialize = TypeSerializer().serialize, TypeDeserializer().deserialize
    wire = [{name: serialize(value) for name, value in key.items()} for key in keys]
    live.client.transact_write_items(
        TransactItems=[{"Put": {"TableName": music.name, "Item": item}} for item in wire]
    )
    answer = live.client.transact_get_items(
        TransactItems=[{"Get": {"TableName": music.name, "Key": key}} for key in wire[::-1]]
    )
    read = [{name: deserialize(value) for name, value in one["Item"].items()} for one in answer["Responses"]]
    assert read == keys[::-1]


# Batch writers


def test_a_batch_writer_writes_more_than_one_batch(live):
    table = live.create("id:N")
    with table.batch_writer() as batch:
        for number in range(120):
            batch.put_item(Item={"id": number, "text": "x" * 1000})
        for number in range(0, 120, 3):
            batch.delete_item(Key={"id": number})
    found = {int(item["id"]) for item in table.scan()["Items"]}
    assert found == {number for number in range(120) if number % 3}


def test_a_batch_writer_keeps_the_last_of_equal_keys_on_request(live):
    table = live.create("id:N")
    with table.batch_writer(overwrite_by_pkeys=["id"]) as batch:
        for version in range(3):
            batch.put_item(Item={"id": 1, "version": version})
    assert table.scan()["Items"] == [{"id": 1, "version": 2}]
    batch = table.batch_writer()
    batch.__enter__()
    for version in range(2):
        batch.put_item(Item={"id": 1, "version": version})
    with pytest.raises(ClientError, match="Provided list of item keys contains duplicates"):
        batch.__exit__(None, None, None)


# Paginators


@pytest.mark.parametrize("page_size", [7, 50, 299, 300, 1000])
def test_a_paginator_of_scans_sees_each_item_once(live, catalog, page_size):
    pages = list(live.client.get_paginator("scan").paginate(
        TableName=catalog.name, PaginationConfig={"PageSize": page_size, "MaxItems": 400}
    ))  # fmt: skip
    assert len(pages) in (-(-300 // page_size), 300 // page_size + 1)
    numbers = [int(item["at"]["N"]) for page in pages for item in page["Items"]]
    assert sorted(numbers) == list(range(300))


def test_a_paginator_of_queries_goes_on_where_it_was(live, catalog):
    asked = {
        "TableName": catalog.name,
        "IndexName": "by-parity",
        "KeyConditionExpression": "parity = :p AND #at < :most",
        "ExpressionAttributeNames": {"#at": "at"},
        "ExpressionAttributeValues": {":p": {"N": "1"}, ":most": {"N": "200"}},
        "ScanIndexForward": False,
    }
    paginator = live.client.get_paginator("query")
    first = paginator.paginate(**asked, PaginationConfig={"MaxItems": 30, "PageSize": 7}).build_full_result()
    token = first["NextToken"]
    rest = paginator.paginate(**asked, PaginationConfig={"StartingToken": token}).build_full_result()
    numbers = [int(item["at"]["N"]) for item in first["Items"] + rest["Items"]]
    assert len(first["Items"]) == 30
    assert numbers == list(range(199, 0, -2))


def test_a_paginator_counts_over_pages(live, catalog):
    result = live.client.get_paginator("scan").paginate(
        TableName=catalog.name, Select="COUNT", FilterExpression="parity = :p",
        ExpressionAttributeValues={":p": {"N": "0"}}, PaginationConfig={"PageSize": 64},
    ).build_full_result()  # fmt: skip
    assert (result["Count"], result["ScannedCount"]) == (150, 300)


def test_a_paginator_of_tables_names_each_once(live):
    made = {live.create("id:N", name=f"paged-{number:02}").name for number in range(7)}
    paginator = live.client.get_paginator("list_tables")
    names = [
        name for page in paginator.paginate(PaginationConfig={"PageSize": 3}) for name in page["TableNames"]
    ]
    assert made <= set(names)
    assert names == sorted(set(names))


# Parallel scans


@pytest.mark.parametrize("total", [1, 2, 5, 300])
def test_segments_of_a_parallel_scan_share_the_items(live, catalog, total):
    """All segments at once, each paged by its own thread: together everything, and nothing twice."""

    def scan_segment(segment: int) -> list[int]:
        pages = live.client.get_paginator("scan").paginate(
            TableName=catalog.name, Segment=segment, TotalSegments=total, PaginationConfig={"PageSize": 20}
        )
        return [int(item["at"]["N"]) for page in pages for item in page["Items"]]

    with ThreadPoolExecutor(8) as threads:
        parts = list(threads.map(scan_segment, range(total)))
    assert sorted(number for part in parts for number in part) == list(range(300))


def test_segments_of_an_index_share_its_entries(live, catalog):
    parts = [
        live.client.get_paginator("scan")
        .paginate(TableName=catalog.name, IndexName="by-parity", Segment=segment, TotalSegments=3)
        .build_full_result()["Items"]
        for segment in range(3)
    ]
    assert sorted(int(item["at"]["N"]) for part in parts for item in part) == list(range(300))
    assert {frozenset(item) for part in parts for item in part} == {frozenset(("group", "at", "parity"))}


def test_a_segment_goes_on_from_its_own_keys_only(live, catalog):
    asked = {"TableName": catalog.name, "TotalSegments": 4, "Limit": 5}
    pages = {at: live.client.scan(**asked, Segment=at) for at in range(4)}
    at, page = next((at, page) for at, page in pages.items() if "LastEvaluatedKey" in page)
    key = page["LastEvaluatedKey"]
    assert live.client.scan(**asked, Segment=at, ExclusiveStartKey=key)["ScannedCount"] >= 0
    with pytest.raises(ClientError, match="Please use ExclusiveStartKey with correct Segment"):
        live.client.scan(**asked, Segment=(at + 1) % 4, ExclusiveStartKey=key)


def test_a_segment_reads_about_its_share(live):
    """Capacity shows the amount scanned: with many partitions, a quarter for each segment."""
    table = live.create("id:N")
    with table.batch_writer() as batch:
        for number in range(400):
            batch.put_item(Item={"id": number, "text": "x" * 4000})
    read = []
    for segment in range(4):
        scanned = 0.0
        for page in live.client.get_paginator("scan").paginate(
            TableName=table.name,
            Segment=segment,
            TotalSegments=4,
            ReturnConsumedCapacity="TOTAL",
            ConsistentRead=True,
        ):
            scanned += page["ConsumedCapacity"]["CapacityUnits"]
        read.append(scanned)
    assert 390 < sum(read) < 410
    assert all(60 < units < 140 for units in read)


# Waiters


@pytest.fixture(scope="module")
def slow(shared_database_url: str) -> Iterator[Live]:
    """A server that takes half a second to create or drop a table."""
    running = start(shared_database_url, dialects="dynamodb", table_creation_delay=0.5)
    yield Live(running.url, DEFAULTS)
    running.stop()


def test_waiters_wait_for_a_table_to_come_and_to_go(slow):
    table = slow.create("id:N", name="awaited")
    slow.client.get_waiter("table_exists").wait(TableName="awaited", WaiterConfig=SOON)
    table.put_item(Item={"id": 1})
    table.delete()
    slow.client.get_waiter("table_not_exists").wait(TableName="awaited", WaiterConfig=SOON)
    with pytest.raises(slow.client.exceptions.ResourceNotFoundException):
        table.put_item(Item={"id": 1})


def test_a_waiter_gives_up_on_a_missing_table(live):
    with pytest.raises(WaiterError, match="Max attempts exceeded"):
        live.client.get_waiter("table_exists").wait(
            TableName="nowhere", WaiterConfig={"Delay": 0, "MaxAttempts": 2}
        )


# Automatic behaviour of boto3


def test_many_threads_share_a_client(live):
    table = live.create("id:N")
    barrier = threading.Barrier(8)

    def work(worker: int) -> int:
        barrier.wait()
        for number in range(15):
            live.client.put_item(
                TableName=table.name,
                Item={"id": {"N": f"{worker * 100 + number}"}, "worker": {"N": f"{worker}"}},
            )
        return 15

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(work, range(8))) == 120
    assert table.scan(Select="COUNT")["Count"] == 120


def test_signatures_are_checked_when_auth_is_strict(serve, database_url):
    settings = load({"database": database_url, "secret_key": SECRET_KEY}, {})
    opened = open_store(settings, connect(settings))
    opened.credential_store.add(Credential(Scheme.AWS, "AKIDEXAMPLE", ("a secret",)), [ALL])
    opened.close()
    running = serve(database_url, dialects="dynamodb", auth="strict", secret_key=SECRET_KEY)
    for access_id, secret, code in (
        ("AKIDEXAMPLE", "a secret", ""),
        ("AKIDEXAMPLE", "another", "InvalidSignatureException"),
        ("AKIDUNKNOWN", "a secret", "UnrecognizedClientException"),
    ):
        client = Session(access_id, secret, region_name=REGION).client("dynamodb", endpoint_url=running.url)
        if not code:
            assert client.list_tables()["TableNames"] == []
            continue
        with pytest.raises(ClientError) as caught:
            client.list_tables()
        assert caught.value.response["Error"]["Code"] == code
