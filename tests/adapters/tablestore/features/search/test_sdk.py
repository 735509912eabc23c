"""Search indexes with Alibaba's SDK over a socket. Rows of DynamoDB are in them, too."""

from __future__ import annotations

from typing import Any

import boto3
import tablestore as ots

from tests.conftest import Serve
from tests.support.waiting import wait_until


def wait_for(client: Any, table: str, total: int) -> None:
    """Wait until an index has this number of rows."""
    query = ots.SearchQuery(ots.MatchAllQuery(), limit=1, get_total_count=True)
    wait_until(lambda: client.search(table, "i", query, ots.ColumnsToGet()).total_count == total)


def test_the_sdk_searches(serve: Serve, database_url: str) -> None:
    client = ots.OTSClient(serve(database_url).url, "tablegate", "tablegate", "inst")
    meta = ots.TableMeta("t", [("pk", "INTEGER")])
    client.create_table(meta, ots.TableOptions(), ots.ReservedThroughput(ots.CapacityUnit(0, 0)))
    for number in range(25):
        client.put_row("t", ots.Row([("pk", number)], [("k", f"k{number % 2}"), ("l", number)]))
    fields = [ots.FieldSchema("k", ots.FieldType.KEYWORD), ots.FieldSchema("l", ots.FieldType.LONG)]
    client.create_search_index("t", "i", ots.SearchIndexMeta(fields))
    assert client.list_search_index("t") == [("t", "i")]
    wait_for(client, "t", 25)
    query = ots.BoolQuery(must_queries=[ots.TermQuery("k", "k1"), ots.RangeQuery("l", 5, 20)])
    sort = ots.Sort([ots.FieldSort("l", ots.SortOrder.DESC)])
    wanted = ots.SearchQuery(query, sort=sort, limit=5, get_total_count=True, aggs=[ots.Sum("l", name="s")])
    found = client.search("t", "i", wanted, ots.ColumnsToGet(["l"], ots.ColumnReturnType.SPECIFIED))
    assert (found.total_count, found.agg_results[0].value) == (8, 96)
    numbers = [row[1][0][1] for row in found.rows]
    wanted = ots.SearchQuery(query, next_token=found.next_token, limit=5)
    found = client.search("t", "i", wanted, ots.ColumnsToGet(["l"], ots.ColumnReturnType.SPECIFIED))
    assert numbers + [row[1][0][1] for row in found.rows] == [19, 17, 15, 13, 11, 9, 7, 5]
    assert not found.next_token
    wanted = ots.SearchQuery(query, sort=sort, limit=5, collapse_field=ots.Collapse("k"))
    found = client.search("t", "i", wanted, ots.ColumnsToGet())
    assert ([row[0] for row in found.rows], found.next_token) == ([[("pk", 19)]], b"")
    parts = [ots.RangeQuery("l", least) for least in (5, 10, 15, 20)]
    share = ots.SearchQuery(
        ots.BoolQuery(should_queries=parts, minimum_should_match="75%"), get_total_count=True
    )
    assert client.search("t", "i", share, ots.ColumnsToGet()).total_count == 10
    client.delete_search_index("t", "i")
    assert client.list_search_index("t") == []


def test_rows_of_dynamodb_are_found(serve: Serve, database_url: str) -> None:
    url = serve(database_url).url
    session = boto3.Session("any", "any", region_name="us-east-1")
    dynamodb = session.client("dynamodb", endpoint_url=url)
    dynamodb.create_table(
        TableName="orders",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    client = ots.OTSClient(url, "tablegate", "tablegate", "inst")
    fields = [ots.FieldSchema("total", ots.FieldType.DOUBLE), ots.FieldSchema("state", ots.FieldType.KEYWORD)]
    client.create_search_index("orders", "i", ots.SearchIndexMeta(fields))
    for number in range(3):
        item = {"id": {"S": f"o{number}"}, "total": {"N": f"{number}.5"}, "state": {"S": "open"}}
        dynamodb.put_item(TableName="orders", Item=item)
    wait_for(client, "orders", 3)
    query = ots.SearchQuery(ots.RangeQuery("total", 1.0, 9.0), limit=10)
    found = client.search("orders", "i", query, ots.ColumnsToGet())
    assert [row[0][0][1] for row in found.rows] == ["o1", "o2"]
    dynamodb.delete_item(TableName="orders", Key={"id": {"S": "o1"}})
    wait_for(client, "orders", 2)
