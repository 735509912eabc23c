"""`throughput = enforce`: token buckets that fill each second, hold five minutes' worth, and can be in debt.

Also the refusals.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.adapters.dynamodb.client import DynamoDBService
from tests.support.clock import Clock

TABLE = {"TableName": "orders"}
TOO_MUCH = "ProvisionedThroughputExceededException"


@pytest.fixture
def limited(clock: Clock) -> Iterator[DynamoDBService]:
    """A service that enforces throughput."""
    with DynamoDBService.opened(clock, throughput="enforce") as made:
        yield made


@pytest.fixture
def orders(limited: DynamoDBService) -> DynamoDBService:
    """With the table `orders`: ten units a second to read and to write."""
    limited.table(BillingMode=None, ProvisionedThroughput=units(10, 10))
    return limited


def units(read: int, write: int) -> dict[str, int]:
    return {"ReadCapacityUnits": read, "WriteCapacityUnits": write}


def item(key: str, kilobytes: float = 0.01, **more: Any) -> dict[str, Any]:
    """Return an item of at most this many kilobytes."""
    return {"pk": {"S": key}, "ballast": {"S": "x" * max(0, int(kilobytes * 1024) - 30)}, **more}


def put(service: DynamoDBService, key: str, kilobytes: float = 0.01, **more: Any) -> bool:
    """Put an item. Returns True if it is accepted."""
    answer = service.call("PutItem", {**TABLE, "Item": item(key, kilobytes, **more)})
    if service.last.status != 200:
        assert answer["__type"].endswith(TOO_MUCH)
    return service.last.status == 200


def get(service: DynamoDBService, key: str, **more: Any) -> bool:
    answer = service.call("GetItem", {**TABLE, "Key": {"pk": {"S": key}}, **more})
    if service.last.status != 200:
        assert answer["__type"].endswith(TOO_MUCH)
    return service.last.status == 200


def test_the_provisioned_units_are_admitted_in_a_second(orders):
    assert [put(orders, str(at)) for at in range(12)] == [True] * 10 + [False] * 2
    orders.clock.ms += 500
    assert [put(orders, str(at)) for at in range(6)] == [True] * 5 + [False]


def test_reads_have_a_bucket_of_their_own(orders):
    assert [get(orders, "1") for _ in range(21)] == [True] * 20 + [False]
    assert put(orders, "1")
    orders.clock.ms += 1000
    assert [get(orders, "1", ConsistentRead=True) for _ in range(11)] == [True] * 10 + [False]


def test_unused_units_are_kept_for_five_minutes(orders):
    orders.clock.ms += 1000 * 3600
    assert put(orders, "0", 2999 / 10)
    orders.clock.ms += 1000 * 3600
    for at in range(8):
        assert put(orders, str(at), 374)
    assert put(orders, "8", 8)
    assert not put(orders, "9")


def test_an_admitted_request_may_exceed_the_remaining_units(orders):
    assert put(orders, "1", 100)
    orders.clock.ms += 8_900
    assert not put(orders, "2")
    orders.clock.ms += 300
    assert put(orders, "2")


def test_a_false_condition_uses_units_and_other_errors_do_not(orders):
    assert put(orders, "1", 9)
    fail = {**TABLE, "Item": item("1"), "ConditionExpression": "attribute_not_exists(pk)"}
    orders.clock.ms += 900
    assert orders.error("PutItem", {**TABLE, "Item": {"no": {"S": "key"}}})[0] == "ValidationException"
    assert orders.error("PutItem", fail)[0] == "ConditionalCheckFailedException"
    assert [put(orders, "2") for _ in range(2)] == [True, False]


def test_a_replaced_item_counts_if_it_is_larger(orders):
    assert put(orders, "1", 9)
    orders.clock.ms += 900
    assert put(orders, "1")
    assert [put(orders, "2") for _ in range(2)] == [True, False]


def test_a_refusal_names_the_exceeded_resource(orders):
    assert put(orders, "1", 50)
    answer = orders.call("PutItem", {**TABLE, "Item": item("1")})
    assert orders.last.status == 400
    assert "The level of configured provisioned throughput for the table was exceeded" in answer["message"]
    assert answer["ThrottlingReasons"] == [
        {
            "reason": "TableWriteProvisionedThroughputExceeded",
            "resource": "arn:aws:dynamodb:us-east-1:000000000000:table/orders",
        }
    ]


def test_tables_on_demand_are_not_limited(limited):
    limited.table()
    assert all(put(limited, str(at), 300) for at in range(5))


def test_a_table_on_demand_is_limited_to_the_maximum_that_was_set_for_it(limited):
    limited.table(OnDemandThroughput={"MaxWriteRequestUnits": 2})
    answers = [limited.call("PutItem", {**TABLE, "Item": item(str(at))}) for at in range(3)]
    assert answers[:2] == [{}, {}]
    assert answers[2]["__type"].endswith("#ThrottlingException")
    assert answers[2]["message"].startswith("Throughput exceeds the maximum OnDemandThroughput configured")
    assert answers[2]["throttlingReasons"] == [
        {
            "reason": "TableWriteMaxOnDemandThroughputExceeded",
            "resource": "arn:aws:dynamodb:us-east-1:000000000000:table/orders",
        }
    ]
    assert all(get(limited, "1") for _ in range(30))
    puts = [{"Put": {**TABLE, "Item": item("9")}}]
    answer = limited.call("TransactWriteItems", {"TransactItems": puts})
    assert [reason["Code"] for reason in answer["CancellationReasons"]] == ["ThrottlingError"]
    limited.update(OnDemandThroughput={"MaxWriteRequestUnits": -1})
    assert all(limited.call("PutItem", {**TABLE, "Item": item(str(at))}) == {} for at in range(5))


def test_a_change_of_throughput_counts_at_once(orders):
    assert put(orders, "1", 30)
    orders.update(ProvisionedThroughput=units(10, 1000))
    orders.clock.ms += 100
    assert put(orders, "1")


# Indexes


def indexed(limited: DynamoDBService, local: bool) -> DynamoDBService:
    """`orders` with key pk, sk, 100 write units, and an index on `g` (2 units if it is global)."""
    keys = [{"AttributeName": name, "KeyType": role} for name, role in (("pk", "HASH"), ("sk", "RANGE"))]
    index: dict[str, Any] = {"IndexName": "by-g", "Projection": {"ProjectionType": "ALL"}}
    if local:
        index["KeySchema"] = [keys[0], {"AttributeName": "g", "KeyType": "RANGE"}]
    else:
        index |= {
            "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
            "ProvisionedThroughput": units(1, 2),
        }
    limited.table(
        BillingMode=None,
        ProvisionedThroughput=units(4, 100),
        KeySchema=keys,
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "g")],
        **{"LocalSecondaryIndexes" if local else "GlobalSecondaryIndexes": [index]},
    )
    return limited


SORT = {"S": "1"}


def test_a_global_index_holds_back_the_writes_that_change_it(limited):
    orders = indexed(limited, local=False)
    assert put(orders, "1", 10, sk=SORT, g={"S": "a"})
    answer = orders.call("PutItem", {**TABLE, "Item": item("2", sk=SORT, g={"S": "a"})})
    assert answer["ThrottlingReasons"][0] == {
        "reason": "IndexWriteProvisionedThroughputExceeded",
        "resource": "arn:aws:dynamodb:us-east-1:000000000000:table/orders/index/by-g",
    }
    assert put(orders, "3", sk=SORT)
    update = {**TABLE, "Key": {"pk": {"S": "1"}, "sk": SORT}, "UpdateExpression": "REMOVE g"}
    assert orders.error("UpdateItem", update)[0] == TOO_MUCH


def test_a_query_of_a_global_index_uses_the_units_of_the_index(limited):
    orders = indexed(limited, local=False)
    query = {
        **TABLE,
        "IndexName": "by-g",
        "KeyConditionExpression": "g = :g",
        "ExpressionAttributeValues": {":g": {"S": "a"}},
    }
    for _ in range(2):
        orders.call("Query", query)
        assert orders.last.status == 200
    assert orders.error("Query", query)[0] == TOO_MUCH
    orders.call("Scan", TABLE)
    assert orders.last.status == 200


def test_a_local_index_uses_the_units_of_its_table(limited):
    orders = indexed(limited, local=True)
    query = {
        **TABLE,
        "IndexName": "by-g",
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": {"S": "1"}},
    }
    for _ in range(8):
        orders.call("Query", query)
        assert orders.last.status == 200
    assert orders.error("Query", query)[0] == TOO_MUCH
    assert orders.error("Scan", TABLE)[0] == TOO_MUCH
    assert put(orders, "1", 55, sk=SORT, g={"S": "a"})  # as much again for the index
    assert not put(orders, "2", sk=SORT)


# Batches and transactions


def test_a_batch_processes_the_admitted_items_and_returns_the_others(orders):
    puts = [{"PutRequest": {"Item": item(f"{at:02}")}} for at in range(14)]
    answer = orders.call("BatchWriteItem", {"RequestItems": {"orders": puts}})
    assert answer["UnprocessedItems"] == {"orders": puts[10:]}
    assert orders.error("BatchWriteItem", {"RequestItems": answer["UnprocessedItems"]})[0] == TOO_MUCH
    orders.clock.ms += 1000
    again = orders.call("BatchWriteItem", {"RequestItems": answer["UnprocessedItems"]})
    assert again["UnprocessedItems"] == {}
    request = {"Keys": [{"pk": {"S": f"{at:02}"}} for at in range(14)], "ConsistentRead": True}
    answer = orders.call("BatchGetItem", {"RequestItems": {"orders": request}})
    assert len(answer["Responses"]["orders"]) == 10
    assert answer["UnprocessedKeys"] == {"orders": {**request, "Keys": request["Keys"][10:]}}
    assert orders.error("BatchGetItem", {"RequestItems": answer["UnprocessedKeys"]})[0] == TOO_MUCH


def test_a_batch_goes_on_in_the_tables_that_have_units(orders):
    orders.table("others")
    assert put(orders, "1", 50)
    puts = [{"PutRequest": {"Item": item("1")}}]
    answer = orders.call("BatchWriteItem", {"RequestItems": {"orders": puts, "others": puts}})
    assert answer["UnprocessedItems"] == {"orders": puts}


def test_a_transaction_is_cancelled_whole(orders):
    orders.table("others")
    assert put(orders, "1", 50)
    puts = [{"Put": {"TableName": name, "Item": item("9")}} for name in ("others", "orders")]
    answer = orders.call("TransactWriteItems", {"TransactItems": puts})
    assert [reason["Code"] for reason in answer["CancellationReasons"]] == [
        "None",
        "ProvisionedThroughputExceeded",
    ]
    assert "Item" not in orders.call("GetItem", {"TableName": "others", "Key": {"pk": {"S": "9"}}})


def test_a_transaction_costs_twice(orders):
    puts = [{"Put": {**TABLE, "Item": item(str(at))}} for at in range(5)]
    orders.call("TransactWriteItems", {"TransactItems": puts})
    assert orders.last.status == 200
    assert not put(orders, "1")
    gets = [{"Get": {**TABLE, "Key": {"pk": {"S": str(at)}}}} for at in range(5)]
    orders.call("TransactGetItems", {"TransactItems": gets})
    assert orders.last.status == 200
    answer = orders.call("TransactGetItems", {"TransactItems": gets[:1]})
    assert [reason["Code"] for reason in answer["CancellationReasons"]] == ["ProvisionedThroughputExceeded"]


def test_off_means_off(service):
    service.table(BillingMode=None, ProvisionedThroughput=units(1, 1))
    assert all(put(service, str(at), 100) for at in range(5))
