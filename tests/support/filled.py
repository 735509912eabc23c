"""A live server with a table of each dialect, and all that clients see of these tables."""

from __future__ import annotations

from typing import Any

from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tests.support.live_azure import LiveAzure
from tests.support.live_dynamodb import Index, Live
from tests.support.live_tablestore import LiveTableStore


def fill(url: str) -> None:
    """Create tables of all three dialects, with indexes, binary and nested values, and cells of several versions."""
    live, azure, store = Live(url), LiveAzure(url), LiveTableStore(url)
    table = live.create("id:S", "at:N", name="people", indexes=[Index("by-city", "city:S")])
    for number in range(30):
        table.put_item(
            Item={
                "id": f"p{number % 3}",
                "at": number,
                "city": f"c{number % 2}",
                "b": b"\0\xff",
                "m": {"l": [1, None, True]},
            }
        )
    live.client.update_time_to_live(
        TableName="people", TimeToLiveSpecification={"Enabled": True, "AttributeName": "ttl"}
    )
    entities = azure.service.create_table("things")
    for number in range(3):
        entities.create_entity(
            {"PartitionKey": "p", "RowKey": str(number), "n": number, "d": 1.5, "on": True}
        )
    options = messages.TableOptions(time_to_live=-1, max_versions=3)
    store.create("rows", ("pk", messages.STRING), ("at", messages.INTEGER), table_options=options)
    for value in (1, 2, 3):
        store.put({"pk": "a", "at": 5}, {"v": value}, table="rows")


def state(url: str) -> Any:
    """Return all that clients see of the tables, ETags too."""
    live, azure, store = Live(url), LiveAzure(url), LiveTableStore(url)
    described = live.client.describe_table(TableName="people")["Table"]
    entities = [
        (dict(each), each.metadata["etag"])
        for each in azure.service.get_table_client("things").list_entities()
    ]
    scan = store.range({"pk": "", "at": 0}, {"pk": "z", "at": 0}, table="rows", max_versions=5)
    return {
        "tables": live.client.list_tables()["TableNames"],
        "items": live.client.scan(TableName="people")["Items"],
        "by-city": live.client.query(
            TableName="people", IndexName="by-city", KeyConditionExpression="city = :c",
            ExpressionAttributeValues={":c": {"S": "c1"}},
        )["Items"],
        "keys": (described["KeySchema"], described["AttributeDefinitions"]),
        "expiry": live.client.describe_time_to_live(TableName="people")["TimeToLiveDescription"],
        "entities": entities,
        "rows": scan.rows,
    }  # fmt: skip
