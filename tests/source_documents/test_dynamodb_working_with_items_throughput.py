"""Statements of "Working with Items in DynamoDB" (Amazon DynamoDB Developer Guide, 2016) about requests beyond the
throughput.

A setting enforces the throughput. One large write uses up the units, and its debt lasts longer than the test.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.live_dynamodb import Index, Live, refused
from tests.support.running import start

EXCEEDED = "ProvisionedThroughputExceededException"
LARGE = "x" * 350_000


@pytest.fixture(scope="module")
def limited(shared_database_url: str) -> Iterator[Live]:
    """A server that enforces throughput."""
    running = start(shared_database_url, dialects="dynamodb", throughput="enforce")
    yield Live(running.url)
    running.stop()


def test_a_batch_write_beyond_the_throughput_is_done_in_part(limited):
    table, other = limited.create("Id:S", "Sort:S", units=(1, 1)), limited.create("Id:S", "Sort:S")
    table.put_item(Item={"Id": "a", "Sort": "a", "text": LARGE})
    put = {"PutRequest": {"Item": {"Id": "b", "Sort": "b"}}}
    answer = limited.resource.batch_write_item(RequestItems={table.name: [put], other.name: [put]})
    assert answer["UnprocessedItems"] == {table.name: [put]}
    assert other.scan()["Items"] == [{"Id": "b", "Sort": "b"}]


def test_a_batch_get_beyond_the_throughput_is_done_in_part(limited):
    table, other = limited.create("Id:S", units=(1, 1)), limited.create("Id:S")
    table.put_item(Item={"Id": "a", "text": LARGE})
    other.put_item(Item={"Id": "a"})
    table.get_item(Key={"Id": "a"}, ConsistentRead=True)
    wanted = {"Keys": [{"Id": "a"}], "ConsistentRead": True}
    answer = limited.resource.batch_get_item(RequestItems={table.name: wanted, other.name: wanted})
    assert answer["Responses"] == {table.name: [], other.name: [{"Id": "a"}]}
    assert answer["UnprocessedKeys"] == {table.name: wanted}


def test_a_batch_without_a_processed_item_fails(limited):
    table = limited.create("Id:S", units=(1, 1))
    table.put_item(Item={"Id": "a", "text": LARGE})
    table.get_item(Key={"Id": "a"}, ConsistentRead=True)
    with refused(EXCEEDED, "provisioned throughput for the table was exceeded"):
        limited.resource.batch_write_item(
            RequestItems={table.name: [{"DeleteRequest": {"Key": {"Id": "a"}}}]}
        )
    with refused(EXCEEDED):
        limited.resource.batch_get_item(RequestItems={table.name: {"Keys": [{"Id": "a"}]}})


def test_a_local_index_uses_up_the_throughput_of_its_table(limited):
    """A query of the index leaves nothing for the table."""
    table = limited.create(
        "Id:S", "Sort:S", indexes=[Index("by-place", "Id:S", "Place:S", local=True)], units=(1, 1)
    )
    table.put_item(Item={"Id": "a", "Sort": "a", "Place": "x", "text": LARGE})
    query = {
        "IndexName": "by-place",
        "KeyConditionExpression": "Id = :i",
        "ExpressionAttributeValues": {":i": "a"},
    }
    assert table.query(**query, ConsistentRead=True)["Count"] == 1
    with refused(EXCEEDED, "provisioned throughput for the table was exceeded"):
        table.get_item(Key={"Id": "a", "Sort": "a"})


def test_a_global_index_has_throughput_of_its_own(limited):
    """The units of the index are used up. Requests to the table succeed, except writes that change the index."""
    index = Index("by-place", "Place:S", units=(1, 1))
    table = limited.create("Id:S", indexes=[index], units=(500, 500))
    table.put_item(Item={"Id": "a", "Place": "x", "text": LARGE})
    query = {
        "IndexName": "by-place",
        "KeyConditionExpression": "Place = :p",
        "ExpressionAttributeValues": {":p": "x"},
    }
    assert table.query(**query)["Count"] == 1
    with refused(EXCEEDED, "one or more global secondary indexes"):
        table.query(**query)
    with refused(EXCEEDED):
        table.put_item(Item={"Id": "b", "Place": "x"})
    table.put_item(Item={"Id": "b"})
    assert table.get_item(Key={"Id": "b"})["Item"] == {"Id": "b"}
