"""Statements of "Working with Items in DynamoDB" (Amazon DynamoDB Developer Guide, 2016) about counters, conditions,
and their units.
"""

from __future__ import annotations

import json
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from decimal import Decimal

import pytest
from boto3.dynamodb.conditions import Attr
from botocore.exceptions import ClientError

from tests.support.live_dynamodb import Index, Live, refused, sized
from tests.support.running import beyond_wsgi
from tests.support.waiting import PATIENCE_S


@pytest.fixture
def prices(dynamodb: Live):
    """A table with item 1 and its Price 10."""
    table = dynamodb.create("Id:N")
    table.put_item(Item={"Id": 1, "Price": 10})
    return table


def price(table) -> Decimal:
    return table.get_item(Key={"Id": 1})["Item"]["Price"]


def add(table, amount, **more):
    """Add to the counter of item 1."""
    return table.update_item(
        Key={"Id": 1},
        UpdateExpression="SET Price = Price + :a",
        ExpressionAttributeValues={":a": amount},
        **more,
    )


def change(table, expected, new):
    """Set the price, if it is what is expected."""
    return table.update_item(
        Key={"Id": 1},
        UpdateExpression="SET Price = :new",
        ConditionExpression="Price = :expected",
        ExpressionAttributeValues={":new": new, ":expected": expected},
    )


# Atomic counters


def test_a_counter_goes_up_by_a_positive_and_down_by_a_negative_number(prices):
    add(prices, 5)
    add(prices, Decimal("0.25"))
    add(prices, -3)
    assert price(prices) == Decimal("12.25")


def test_a_counter_is_changed_by_plus_and_minus_too(prices):
    prices.update_item(
        Key={"Id": 1}, UpdateExpression="SET Price = Price - :a", ExpressionAttributeValues={":a": 4}
    )
    assert price(prices) == 6


def test_only_a_number_is_counted(prices):
    prices.update_item(
        Key={"Id": 1}, UpdateExpression="SET Price = :p", ExpressionAttributeValues={":p": "10"}
    )
    with refused(words="incorrect data type"):
        add(prices, 1)
    with refused(words="Incorrect operand type for operator or function; operator or function: +"):
        add(prices, "1")


def test_increments_of_many_clients_are_all_counted(prices):
    """No increment waits for what another has read, and none is lost."""
    with ThreadPoolExecutor(8) as clients:
        seen = list(clients.map(lambda _: add(prices, 1, ReturnValues="UPDATED_NEW"), range(160)))
    assert price(prices) == 170
    assert sorted(answer["Attributes"]["Price"] for answer in seen) == list(range(11, 171))


def test_a_counter_counts_whatever_its_value_is(prices):
    for amount in (Decimal("1e20"), -1, Decimal("0.5")):
        before = price(prices)
        add(prices, amount)
        assert price(prices) == before + amount


@beyond_wsgi
def test_writes_are_applied_in_the_order_in_which_they_are_received(dynamodb, prices):
    """Sixty updates on one connection, sent without waiting for an answer. Each appends its number to a list."""
    prices.update_item(Key={"Id": 1}, UpdateExpression="SET seen = :e", ExpressionAttributeValues={":e": []})
    sent = b"".join(_append(dynamodb, prices.name, number) for number in range(60))
    host, _, port = dynamodb.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    assert received.count(b"HTTP/1.1 200") == 60
    assert prices.get_item(Key={"Id": 1})["Item"]["seen"] == list(range(60))


def _append(dynamodb: Live, table: str, number: int) -> bytes:
    """The bytes of an UpdateItem."""
    body = {
        "TableName": table,
        "Key": {"Id": {"N": "1"}},
        "UpdateExpression": "SET seen = list_append(seen, :n)",
        "ExpressionAttributeValues": {":n": {"L": [{"N": str(number)}]}},
    }
    content = json.dumps(body).encode()
    headers = {"Host": "localhost", **dynamodb.headers("UpdateItem"), "Content-Length": str(len(content))}
    head = "POST / HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return head.encode() + b"\r\n" + content


def test_an_increment_sent_again_counts_again(prices):
    add(prices, 1)
    add(prices, 1)
    assert price(prices) == 12


def test_a_conditional_update_sent_again_does_not_count_again(prices):
    """The safe way for a bank: the second try finds another balance than it expects."""
    change(prices, 10, 11)
    with refused("ConditionalCheckFailedException"):
        change(prices, 10, 11)
    assert price(prices) == 11


# Conditional writes


def test_without_a_condition_the_last_writer_wins(dynamodb, prices):
    """Clients 1 and 2 have read a price of 10. The update of client 1 is lost."""
    for new in (8, 12):
        prices.update_item(
            Key={"Id": 1}, UpdateExpression="SET Price = :p", ExpressionAttributeValues={":p": new}
        )
    assert price(prices) == 12


def test_with_a_condition_the_second_of_two_writers_is_refused(dynamodb, prices):
    first, second = (Live(dynamodb.url).resource.Table(prices.name) for _ in range(2))
    assert price(first) == price(second) == 10
    change(first, 10, 8)
    with refused("ConditionalCheckFailedException", "The conditional request failed"):
        change(second, 10, 12)
    assert price(prices) == 8


def test_one_of_many_clients_with_the_same_expectation_succeeds(prices):
    def attempt(number: int) -> bool:
        with suppress(ClientError):
            change(prices, 10, 100 + number)
            return True
        return False

    with ThreadPoolExecutor(8) as clients:
        won = [number for number, success in enumerate(clients.map(attempt, range(40))) if success]
    assert len(won) == 1
    assert price(prices) == 100 + won[0]


CONDITIONAL = {
    "put": lambda table, **asked: table.put_item(Item={"Id": 1, "Price": 20}, **asked),
    "update": lambda table, **asked: table.update_item(
        Key={"Id": 1}, UpdateExpression="REMOVE Color", **asked
    ),
    "delete": lambda table, **asked: table.delete_item(Key={"Id": 1}, **asked),
}


@pytest.mark.parametrize("operation", CONDITIONAL)
def test_put_update_and_delete_take_a_condition(prices, operation):
    prices.put_item(Item={"Id": 1, "Price": 10, "Color": "red"})
    with refused("ConditionalCheckFailedException"):
        CONDITIONAL[operation](prices, ConditionExpression=Attr("Price").eq(11))
    assert prices.get_item(Key={"Id": 1})["Item"] == {"Id": 1, "Price": 10, "Color": "red"}
    CONDITIONAL[operation](prices, ConditionExpression=Attr("Price").eq(10))
    assert "Color" not in prices.get_item(Key={"Id": 1}).get("Item", {})


def test_a_price_goes_up_by_ten_per_cent_only_once(prices):
    """The request is sent three times, as after network errors. The expectation makes it idempotent."""
    prices.put_item(Item={"Id": 1, "Price": 20})
    change(prices, 20, 22)
    for _ in range(2):
        with refused("ConditionalCheckFailedException"):
            change(prices, 20, 22)
    assert price(prices) == 22


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("Price = :ten", True),
        ("Price <> :ten", False),
        ("Price < :ten", False),
        ("Price <= :ten", True),
        ("Price > :ten", False),
        ("Price >= :ten", True),
        ("Price BETWEEN :ten AND :ten", True),
        ("Price IN (:ten, :red)", True),
        ("attribute_exists(Price) AND attribute_not_exists(Weight)", True),
        ("attribute_exists(Weight) OR attribute_exists(Price)", True),
        ("NOT attribute_exists(Price)", False),
        ("attribute_type(Price, :N)", True),
        ("begins_with(Color, :re)", True),
        ("contains(Color, :ed)", True),
        ("contains(Sizes, :ten)", True),
        ("size(Color) = :three", True),
        ("size(Color) > :three", False),
        ("Price = :ten AND Color = :ten", False),
        ("(Price = :ten OR Color = :ten) AND Color = :red", True),
        ("Nested.Parts[1] = :ten", True),
    ],
)
def test_a_condition_is_made_of_names_operators_and_functions(prices, condition, holds):
    prices.put_item(
        Item={
            "Id": 1,
            "Price": 10,
            "Color": "red",
            "Sizes": {10, 12},
            "Nested": {"Parts": [1, 10]},
            "Other": 1,
        }
    )
    values = {":ten": 10, ":three": 3, ":red": "red", ":re": "re", ":ed": "ed", ":N": "N"}
    used = {name: values[name] for name in re.findall(r":\w+", condition)}
    asked = {"ExpressionAttributeValues": used} if used else {}
    if holds:
        prices.delete_item(Key={"Id": 1}, ConditionExpression=condition, **asked)
    else:
        with refused("ConditionalCheckFailedException"):
            prices.delete_item(Key={"Id": 1}, ConditionExpression=condition, **asked)


def test_the_entire_condition_must_be_true(prices):
    with refused("ConditionalCheckFailedException"):
        add(
            prices,
            1,
            ConditionExpression=Attr("Price").eq(10) & Attr("Price").exists() & Attr("Color").exists(),
        )
    assert price(prices) == 10


# Consumed capacity

BY_COLOR = Index("by-color", "Color:S", projection="KEYS_ONLY")
BY_SHAPE = Index("by-shape", "Shape:S", projection="KEYS_ONLY")
BY_PRICE = Index("by-price", "Id:S", "Price:N", local=True, projection="KEYS_ONLY")


@pytest.fixture
def indexed(dynamodb: Live):
    """A table with two global indexes and a local one."""
    return dynamodb.create("Id:S", "Sort:S", indexes=[BY_COLOR, BY_SHAPE, BY_PRICE])


def consumed(answer) -> dict:
    return answer["ConsumedCapacity"]


def test_a_conditional_write_tells_the_write_units_it_consumed(prices):
    item = {"Id": 1, "Price": 10, "pad": "x" * 2000}
    told = consumed(
        prices.put_item(Item=item, ConditionExpression=Attr("Price").eq(10), ReturnConsumedCapacity="TOTAL")
    )
    assert told == {"TableName": prices.name, "CapacityUnits": 2.0}


def test_total_is_of_the_table_and_its_indexes_together(indexed):
    item = {"Id": "a", "Sort": "b", "Color": "red", "Shape": "round", "Price": 1, "pad": "x" * 2500}
    assert consumed(indexed.put_item(Item=item, ReturnConsumedCapacity="TOTAL")) == {
        "TableName": indexed.name,
        "CapacityUnits": 3.0 + 1.0 + 1.0 + 1.0,
    }


def test_indexes_tells_of_the_table_and_of_each_index_that_changed(indexed):
    """Since the document: INDEXES shows the total and the table too, and local indexes."""
    item = {"Id": "a", "Sort": "b", "Color": "red", "Price": 1, "pad": "x" * 2500}
    assert consumed(indexed.put_item(Item=item, ReturnConsumedCapacity="INDEXES")) == {
        "TableName": indexed.name,
        "CapacityUnits": 5.0,
        "Table": {"CapacityUnits": 3.0},
        "GlobalSecondaryIndexes": {"by-color": {"CapacityUnits": 1.0}},
        "LocalSecondaryIndexes": {"by-price": {"CapacityUnits": 1.0}},
    }


def test_the_value_none_returns_no_capacity(indexed):
    item = {"Id": "a", "Sort": "b", "Color": "red"}
    assert "ConsumedCapacity" not in indexed.put_item(Item=item, ReturnConsumedCapacity="NONE")


def test_writes_consume_no_read_units_conditional_or_not(dynamodb, prices):
    reads = dynamodb.consumed(prices.name, kind="read")
    writes = dynamodb.consumed(prices.name, kind="write")
    change(prices, 10, 11)
    prices.put_item(Item={"Id": 2}, ReturnValues="ALL_OLD")
    prices.delete_item(Key={"Id": 2}, ConditionExpression=Attr("Id").exists(), ReturnValues="ALL_OLD")
    assert dynamodb.consumed(prices.name, kind="read") == reads
    assert dynamodb.consumed(prices.name, kind="write") == writes + 3


@pytest.mark.parametrize(("size_bytes", "units"), [(100, 1), (1024, 1), (1025, 2), (2048, 2), (10_000, 10)])
@pytest.mark.parametrize("operation", ["put", "update", "delete"])
def test_a_failed_condition_consumes_by_the_size_of_the_item_there(dynamodb, operation, size_bytes, units):
    table = dynamodb.create("Id:S")
    table.put_item(Item=sized(size_bytes, Id="1"))
    before = dynamodb.consumed(table.name)
    fail = {"ConditionExpression": Attr("Price").exists()}
    with refused("ConditionalCheckFailedException"):
        match operation:
            case "put":
                table.put_item(Item=sized(50_000, Id="1"), **fail)
            case "update":
                table.update_item(Key={"Id": "1"}, UpdateExpression="REMOVE a", **fail)
            case _:
                table.delete_item(Key={"Id": "1"}, **fail)
    assert dynamodb.consumed(table.name) == before + units


def test_a_failed_condition_on_no_item_consumes_one_unit(dynamodb, prices):
    before = dynamodb.consumed(prices.name)
    with refused("ConditionalCheckFailedException"):
        prices.put_item(Item={"Id": 7, "pad": "x" * 5000}, ConditionExpression=Attr("Id").exists())
    assert dynamodb.consumed(prices.name) == before + 1


def test_a_failed_condition_is_an_error_that_tells_no_capacity(prices):
    with refused("ConditionalCheckFailedException", "The conditional request failed") as caught:
        add(prices, 1, ConditionExpression=Attr("Price").eq(11), ReturnConsumedCapacity="TOTAL")
    assert "ConsumedCapacity" not in caught.value.response
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400


# Throughput of indexes


def test_a_local_index_has_no_throughput_of_its_own(dynamodb):
    own = Index("by-color", "Color:S", units=(3, 4))
    table = dynamodb.create("Id:S", "Sort:S", indexes=[own, BY_PRICE], units=(10, 20))
    described = dynamodb.client.describe_table(TableName=table.name)["Table"]
    [of_global], [of_local] = described["GlobalSecondaryIndexes"], described["LocalSecondaryIndexes"]
    assert of_global["ProvisionedThroughput"]["WriteCapacityUnits"] == 4
    assert "ProvisionedThroughput" not in of_local


def test_use_of_a_local_index_counts_as_use_of_its_table(indexed):
    item = {"Id": "a", "Sort": "b", "Price": 1}
    written = consumed(indexed.put_item(Item=item, ReturnConsumedCapacity="TOTAL"))
    assert written["CapacityUnits"] == 2.0
    read = consumed(
        indexed.query(
            IndexName="by-price",
            KeyConditionExpression="Id = :a",
            ExpressionAttributeValues={":a": "a"},
            ConsistentRead=True,
            ReturnConsumedCapacity="TOTAL",
        )
    )
    assert read == {"TableName": indexed.name, "CapacityUnits": 1.0}
