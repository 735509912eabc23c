"""Statements of "Working with Items in DynamoDB" (Amazon DynamoDB Developer Guide, 2016) about items, and their reads
and writes.

coverage.toml maps lines to tests. Batches, counters, conditions and capacity are in files beside this one.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from boto3.dynamodb.conditions import Attr

from tests.support.live_dynamodb import Live, refused, sized
from tests.support.running import Process

BOOK = {
    "Id": 101,
    "Title": "Book 101 Title",
    "ISBN": "111-1111111111",
    "Authors": "Author 1",
    "Price": "-2",
    "Dimensions": "8.5 x 11.0 x 0.5",
    "PageCount": "500",
    "InPublication": True,
    "ProductCategory": "Book",
}
BICYCLE = {
    "Id": 201,
    "Title": "18-Bicycle 201",
    "Description": "201 description",
    "BicycleType": "Road",
    "Brand": "Brand-Company A",
    "Price": "100",
    "Color": ["Red", "Black"],
    "ProductCategory": "Bike",
}
ITEM_LIMIT = 409_600


def everything(table) -> list[dict]:
    return table.scan()["Items"]


# Items and attributes


def test_an_item_is_the_attributes_that_were_put(catalog):
    catalog.put_item(Item=BOOK)
    assert catalog.get_item(Key={"Id": 101})["Item"] == BOOK


def test_an_attribute_is_a_scalar_a_set_or_a_document(catalog):
    item = {
        "Id": 1,
        "number": Decimal("1.5"),
        "string": "s",
        "binary": b"\x00\xff",
        "boolean": False,
        "null": None,
        "strings": {"a", "b"},
        "numbers": {1, 2},
        "binaries": {b"a", b"b"},
        "list": [1, "two"],
        "map": {"inner": True},
    }
    catalog.put_item(Item=item)
    assert catalog.get_item(Key={"Id": 1})["Item"] == item


def test_an_attribute_without_a_value_or_with_two_is_refused(dynamodb, catalog):
    for value, words in (({}, "is empty"), ({"S": "a", "N": "1"}, "more than one datatypes")):
        with refused(words=words):
            dynamodb.client.put_item(TableName=catalog.name, Item={"Id": {"N": "1"}, "a": value})


def test_an_attribute_without_a_name_is_refused(catalog):
    with refused(words="Empty attribute name"):
        catalog.put_item(Item={"Id": 1, "": "value"})


def test_an_item_needs_nothing_but_its_key(catalog):
    catalog.put_item(Item={"Id": 1})
    assert catalog.get_item(Key={"Id": 1})["Item"] == {"Id": 1}


def test_an_item_without_attributes_is_refused(catalog):
    with refused(words="Missing the key Id in the item"):
        catalog.put_item(Item={})


def test_items_of_one_table_have_no_schema_in_common(catalog):
    for item in (BOOK, BICYCLE):
        catalog.put_item(Item=item)
    assert catalog.get_item(Key={"Id": 101})["Item"] == BOOK
    assert catalog.get_item(Key={"Id": 201})["Item"] == BICYCLE


def test_one_attribute_has_another_type_in_each_item(catalog):
    values = ["text", Decimal(5), True, None, ["list"], {"a": "map"}, {"set"}]
    for number, value in enumerate(values):
        catalog.put_item(Item={"Id": number, "Price": value})
    assert [catalog.get_item(Key={"Id": number})["Item"]["Price"] for number in range(7)] == values


def test_an_item_has_any_number_of_attributes(catalog):
    item = {"Id": 1, **{f"attribute-{number}": number for number in range(5000)}}
    catalog.put_item(Item=item)
    assert catalog.get_item(Key={"Id": 1})["Item"] == item


# The size of an item


def test_an_item_of_400_kb_is_written_and_one_byte_more_is_refused(thread):
    key = {"ForumName": "f", "Subject": "s"}
    thread.put_item(Item=sized(ITEM_LIMIT, **key))
    with refused(words="Item size has exceeded the maximum allowed size"):
        thread.put_item(Item=sized(ITEM_LIMIT + 1, **key))


def test_names_count_in_the_size_of_an_item(thread):
    item = sized(ITEM_LIMIT, ForumName="f", Subject="s")
    longer = {"longer" if name == "pad" else name: value for name, value in item.items()}
    with refused(words="Item size"):
        thread.put_item(Item=longer)
    longer["longer"] = longer["longer"][: -len("longer") + len("pad")]
    thread.put_item(Item=longer)


def test_text_counts_by_its_utf_8_bytes(thread):
    item = sized(ITEM_LIMIT - 2, ForumName="f", Subject="s")
    thread.put_item(Item={**item, "ä": ""})  # the name: two bytes
    with refused(words="Item size"):
        thread.put_item(Item={**item, "€": ""})
    with refused(words="Item size"):
        thread.put_item(Item={**item, "a": "ä"})


def test_binary_counts_by_its_bytes_and_not_by_base64(thread):
    room = ITEM_LIMIT - len("ForumName" + "f" + "Subject" + "s" + "pad")
    item = {"ForumName": "f", "Subject": "s", "pad": bytes(room)}
    thread.put_item(Item=item)
    with refused(words="Item size"):
        thread.put_item(Item={**item, "pad": bytes(room + 1)})


# Reading an item


def test_get_item_needs_a_table_and_a_key(dynamodb, catalog):
    with refused(words="'tableName'"):
        dynamodb.client.get_item(Key={"Id": {"N": "1"}})
    with refused(words="'key'"):
        dynamodb.client.get_item(TableName=catalog.name)
    with refused("ResourceNotFoundException", "Requested resource not found"):
        dynamodb.client.get_item(TableName="nowhere", Key={"Id": {"N": "1"}})


READ_OR_WRITE = {
    "get": lambda table, key: table.get_item(Key=key),
    "update": lambda table, key: table.update_item(Key=key),
    "delete": lambda table, key: table.delete_item(Key=key),
    "batch get": lambda table, key: table.meta.client.batch_get_item(
        RequestItems={table.name: {"Keys": [key]}}
    ),
    "batch delete": lambda table, key: table.meta.client.batch_write_item(
        RequestItems={table.name: [{"DeleteRequest": {"Key": key}}]}
    ),
}


@pytest.mark.parametrize("operation", READ_OR_WRITE)
def test_a_simple_key_is_named_by_its_partition_key_alone(catalog, operation):
    READ_OR_WRITE[operation](catalog, {"Id": 1})
    for wrong in ({}, {"Other": 1}, {"Id": 1, "Other": 1}, {"Id": "1"}):
        with refused(words="The provided key element does not match the schema"):
            READ_OR_WRITE[operation](catalog, wrong)


@pytest.mark.parametrize("operation", READ_OR_WRITE)
def test_a_composite_key_is_named_by_both_its_parts(thread, operation):
    READ_OR_WRITE[operation](thread, {"ForumName": "f", "Subject": "s"})
    for part in ({"ForumName": "f"}, {"Subject": "s"}):
        with refused(words="The provided key element does not match the schema"):
            READ_OR_WRITE[operation](thread, part)


def test_an_item_to_be_put_has_all_parts_of_the_key(thread):
    for part, missing in (({"ForumName": "f"}, "Subject"), ({"Subject": "s"}, "ForumName")):
        with refused(words=f"Missing the key {missing} in the item"):
            thread.put_item(Item=part)


def test_get_item_shows_all_attributes_or_those_that_are_asked_for(catalog):
    catalog.put_item(Item=BICYCLE)
    assert catalog.get_item(Key={"Id": 201})["Item"] == BICYCLE
    some = catalog.get_item(Key={"Id": 201}, ProjectionExpression="Brand, Color[0], NotThere")
    assert some["Item"] == {"Brand": "Brand-Company A", "Color": ["Red"]}


def test_get_item_tells_consumed_capacity_only_when_asked(catalog):
    catalog.put_item(Item=BOOK)
    assert "ConsumedCapacity" not in catalog.get_item(Key={"Id": 101})
    assert "ConsumedCapacity" not in catalog.get_item(Key={"Id": 101}, ReturnConsumedCapacity="NONE")
    told = catalog.get_item(Key={"Id": 101}, ReturnConsumedCapacity="TOTAL")["ConsumedCapacity"]
    assert told == {"TableName": catalog.name, "CapacityUnits": 0.5}


@pytest.mark.parametrize(("size_bytes", "units"), [(100, 1), (4096, 1), (4097, 2), (ITEM_LIMIT, 100)])
def test_an_eventually_consistent_read_costs_half_of_a_strongly_consistent_one(thread, size_bytes, units):
    thread.put_item(Item=sized(size_bytes, ForumName="f", Subject="s"))
    asked = {"Key": {"ForumName": "f", "Subject": "s"}, "ReturnConsumedCapacity": "TOTAL"}
    by_default = thread.get_item(**asked)["ConsumedCapacity"]["CapacityUnits"]
    assert by_default == thread.get_item(**asked, ConsistentRead=False)["ConsumedCapacity"]["CapacityUnits"]
    strong = thread.get_item(**asked, ConsistentRead=True)["ConsumedCapacity"]["CapacityUnits"]
    assert (by_default, strong) == (units / 2, units)


@pytest.mark.parametrize("consistent", [False, True])
def test_a_read_shows_the_write_before_it(catalog, consistent):
    for price in range(50):
        catalog.put_item(Item={"Id": 1, "Price": price})
        assert catalog.get_item(Key={"Id": 1}, ConsistentRead=consistent)["Item"]["Price"] == price


def test_an_acknowledged_write_survives_the_death_of_the_server(database_url, tmp_path: Path):
    process = Process(tmp_path, "--database", database_url, "--dialects", "dynamodb")
    process.wait_until_ready()
    table = Live(process.url).create("Id:N")
    for number in range(20):
        table.put_item(Item={"Id": number})
    process.kill()
    process = Process(tmp_path, "--database", database_url, "--dialects", "dynamodb")
    process.wait_until_ready()
    try:
        assert {item["Id"] for item in everything(Live(process.url).resource.Table(table.name))} == set(
            range(20)
        )
    finally:
        process.terminate()


# Writing an item


def test_put_item_creates_an_item_or_replaces_the_whole_of_it(catalog):
    catalog.put_item(Item={"Id": 1, "Title": "old", "Color": "red"})
    catalog.put_item(Item={"Id": 1, "Title": "new"})
    assert everything(catalog) == [{"Id": 1, "Title": "new"}]


def test_put_item_needs_a_table_and_an_item(dynamodb, catalog):
    with refused(words="'tableName'"):
        dynamodb.client.put_item(Item={"Id": {"N": "1"}})
    with refused(words="'item'"):
        dynamodb.client.put_item(TableName=catalog.name)


def test_update_item_creates_an_item_where_there_is_none(catalog):
    catalog.update_item(
        Key={"Id": 1}, UpdateExpression="SET Title = :t", ExpressionAttributeValues={":t": "new"}
    )
    assert everything(catalog) == [{"Id": 1, "Title": "new"}]


def test_update_item_changes_the_attributes_it_names_and_no_other(catalog):
    catalog.put_item(Item={"Id": 1, "Title": "old", "Color": "red", "Weight": 5})
    catalog.update_item(
        Key={"Id": 1},
        UpdateExpression="SET Title = :t, Brand = :b REMOVE Weight",
        ExpressionAttributeValues={":t": "new", ":b": "A"},
    )
    assert everything(catalog) == [{"Id": 1, "Title": "new", "Color": "red", "Brand": "A"}]


def test_update_item_needs_a_table_a_key_and_new_values(dynamodb, catalog):
    with refused(words="'tableName'"):
        dynamodb.client.update_item(Key={"Id": {"N": "1"}})
    with refused(words="'key'"):
        dynamodb.client.update_item(TableName=catalog.name)
    with refused(
        words="An expression attribute value used in expression is not defined; attribute value: :t"
    ):
        catalog.update_item(Key={"Id": 1}, UpdateExpression="SET Title = :t")


def test_delete_item_deletes_an_item(catalog):
    for number in (1, 2):
        catalog.put_item(Item={"Id": number})
    catalog.delete_item(Key={"Id": 1})
    assert everything(catalog) == [{"Id": 2}]


def test_delete_item_needs_a_table_and_a_key(dynamodb, catalog):
    with refused(words="'tableName'"):
        dynamodb.client.delete_item(Key={"Id": {"N": "1"}})
    with refused(words="'key'"):
        dynamodb.client.delete_item(TableName=catalog.name)


def test_return_values_of_put_and_delete_show_the_item_before(catalog):
    old, new = {"Id": 1, "Title": "old"}, {"Id": 1, "Title": "new"}
    assert "Attributes" not in catalog.put_item(Item=old, ReturnValues="ALL_OLD")
    assert "Attributes" not in catalog.put_item(Item=old)
    assert catalog.put_item(Item=new, ReturnValues="ALL_OLD")["Attributes"] == old
    assert catalog.delete_item(Key={"Id": 1}, ReturnValues="ALL_OLD")["Attributes"] == new
    assert "Attributes" not in catalog.delete_item(Key={"Id": 1}, ReturnValues="ALL_OLD")
    for mode in ("ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"):
        with refused(words="ReturnValues can only be ALL_OLD or NONE"):
            catalog.put_item(Item=old, ReturnValues=mode)
        with refused(words="ReturnValues can only be ALL_OLD or NONE"):
            catalog.delete_item(Key={"Id": 1}, ReturnValues=mode)


@pytest.mark.parametrize(
    ("mode", "shown"),
    [
        ("NONE", None),
        ("ALL_OLD", {"Id": 1, "Title": "old", "Color": "red"}),
        ("UPDATED_OLD", {"Title": "old"}),
        ("ALL_NEW", {"Id": 1, "Title": "new", "Color": "red", "Brand": "A"}),
        ("UPDATED_NEW", {"Title": "new", "Brand": "A"}),
    ],
)
def test_return_values_of_an_update_show_it_before_or_after(catalog, mode, shown):
    catalog.put_item(Item={"Id": 1, "Title": "old", "Color": "red"})
    answer = catalog.update_item(
        Key={"Id": 1},
        UpdateExpression="SET Title = :t, Brand = :b",
        ExpressionAttributeValues={":t": "new", ":b": "A"},
        ReturnValues=mode,
    )
    assert answer.get("Attributes") == shown


def test_writes_tell_consumed_capacity_only_when_asked(catalog):
    put = {"Item": {"Id": 1}}
    update = {"Key": {"Id": 1}, "UpdateExpression": "SET a = :a", "ExpressionAttributeValues": {":a": 1}}
    for write, asked in (
        (catalog.put_item, put),
        (catalog.update_item, update),
        (catalog.delete_item, {"Key": {"Id": 1}}),
    ):
        assert "ConsumedCapacity" not in write(**asked)
        told = write(**asked, ReturnConsumedCapacity="TOTAL")["ConsumedCapacity"]
        assert told == {"TableName": catalog.name, "CapacityUnits": 1.0}


# Conditions of writes, as the overview has them


def test_put_item_writes_only_what_is_not_there_yet(catalog):
    catalog.put_item(Item={"Id": 1, "Title": "first"}, ConditionExpression="attribute_not_exists(Id)")
    with refused("ConditionalCheckFailedException"):
        catalog.put_item(Item={"Id": 1, "Title": "second"}, ConditionExpression="attribute_not_exists(Id)")
    assert everything(catalog) == [{"Id": 1, "Title": "first"}]


def test_the_partition_key_tells_whether_an_item_with_that_composite_key_exists(thread):
    thread.put_item(Item={"ForumName": "f", "Subject": "a"})
    condition = Attr("ForumName").not_exists()
    thread.put_item(Item={"ForumName": "f", "Subject": "b"}, ConditionExpression=condition)
    with refused("ConditionalCheckFailedException"):
        thread.put_item(Item={"ForumName": "f", "Subject": "b"}, ConditionExpression=condition)


def test_a_condition_keeps_an_item_from_being_deleted_by_accident(catalog):
    catalog.put_item(Item={"Id": 1, "InPublication": True})
    with refused("ConditionalCheckFailedException"):
        catalog.delete_item(Key={"Id": 1}, ConditionExpression=Attr("InPublication").eq(False))
    assert len(everything(catalog)) == 1
    catalog.delete_item(Key={"Id": 1}, ConditionExpression=Attr("InPublication").eq(True))
    assert everything(catalog) == []


def test_a_write_may_name_several_conditions(catalog):
    catalog.put_item(Item={"Id": 1, "Price": 10, "Color": "red"})
    both = Attr("Price").eq(10) & Attr("Color").eq("blue")
    update = {"UpdateExpression": "SET Price = :p", "ExpressionAttributeValues": {":p": 8}}
    with refused("ConditionalCheckFailedException"):
        catalog.update_item(Key={"Id": 1}, ConditionExpression=both, **update)
    catalog.update_item(
        Key={"Id": 1}, ConditionExpression=Attr("Price").eq(10) & Attr("Color").eq("red"), **update
    )
    assert everything(catalog) == [{"Id": 1, "Price": 8, "Color": "red"}]
