"""Thirty days at once, over a live server: all that has to do with time in three dialects is where it would be by then."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableClient, TableSasPermissions, generate_table_sas

from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tests.adapters.azuretable.client import ACCOUNT, DEV_KEY
from tests.adapters.tablestore import client as tablestore
from tests.support.control import Control
from tests.support.live_azure import LiveAzure
from tests.support.live_dynamodb import Live
from tests.support.live_tablestore import LiveTableStore
from tests.support.running import Running

DAY = 86_400


def test_everything_that_expires_has_expired_after_thirty_days(
    live: Live, control: Control, server: Running
) -> None:
    azure, store, now = LiveAzure(server.url), LiveTableStore(server.url), datetime.now(UTC)
    # DynamoDB: an item with a time to live, a stream, a token of idempotency.
    table = live.create(
        "id:S", name="things", StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    )
    expiry = {"Enabled": True, "AttributeName": "ttl"}
    live.client.update_time_to_live(TableName="things", TimeToLiveSpecification=expiry)
    table.put_item(Item={"id": "old", "ttl": int(now.timestamp()) + DAY})
    table.put_item(Item={"id": "kept", "n": 0})
    add = {
        "TableName": "things", "Key": {"id": {"S": "kept"}}, "UpdateExpression": "ADD n :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }  # fmt: skip

    def add_once() -> int:
        live.client.transact_write_items(TransactItems=[{"Update": add}], ClientRequestToken="token")
        return int(table.get_item(Key={"id": "kept"})["Item"]["n"])

    assert (add_once(), add_once()) == (1, 1)
    assert len(records(live)) == 3
    # Azure: the same item, and a shared access signature.
    sas = generate_table_sas(
        AzureNamedKeyCredential(ACCOUNT, DEV_KEY), "things",
        permission=TableSasPermissions(read=True), expiry=now + timedelta(days=1),
    )  # fmt: skip
    entities = TableClient(azure.endpoint, "things", credential=AzureSasCredential(sas), retry_total=0)
    assert {each["PartitionKey"] for each in entities.list_entities()} == {"old", "kept"}
    # Table Store: rows of a table with a time to live, and a local transaction.
    store.create(
        "rows", ("pk", messages.STRING), ("at", messages.INTEGER),
        table_options=messages.TableOptions(time_to_live=DAY, max_versions=1),
    )  # fmt: skip
    store.put({"pk": "a", "at": 1}, {"v": 1}, table="rows")
    store.create("held", ("pk", messages.STRING), ("at", messages.INTEGER), enable_local_txn=True)
    key = tablestore.row({"pk": "a"})
    begun = store.call("StartLocalTransaction", table_name="held", key=key)

    control("POST", "/clock/advance", seconds=30 * DAY)

    assert [item["id"] for item in table.scan()["Items"]] == ["kept"]
    assert records(live) == [] or all(record["eventName"] == "REMOVE" for record in records(live))
    assert add_once() == 2
    with pytest.raises(HttpResponseError) as refused:
        [*entities.list_entities()]
    assert refused.value.status_code == 403
    assert [each["PartitionKey"] for each in azure.service.get_table_client("things").list_entities()] == [
        "kept"
    ]
    assert store.get({"pk": "a", "at": 1}, "rows") is None
    with pytest.raises(tablestore.Refused, match="OTSSessionNotExist"):
        store.call("CommitTransaction", transaction_id=begun.transaction_id)


def records(live: Live) -> list[Any]:
    """All records that the stream of the table still has."""
    streams = live.session.client("dynamodbstreams", endpoint_url=live.url)
    [stream] = streams.list_streams(TableName="things")["Streams"]
    found = []
    for shard in streams.describe_stream(StreamArn=stream["StreamArn"])["StreamDescription"]["Shards"]:
        iterator = streams.get_shard_iterator(
            StreamArn=stream["StreamArn"], ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        found += streams.get_records(ShardIterator=iterator)["Records"]
    return found
