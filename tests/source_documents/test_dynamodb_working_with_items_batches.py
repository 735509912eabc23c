"""Statements of "Working with Items in DynamoDB" (Amazon DynamoDB Developer Guide, 2016) about batches."""

from __future__ import annotations

from tests.support.live_dynamodb import refused, sized

BOOK = {"Id": 101, "Title": "Book 101 Title", "InPublication": True}
BICYCLE = {"Id": 201, "Title": "18-Bicycle 201", "Color": ["Red", "Black"]}
ITEM_LIMIT = 409_600
MAXIMAL = 40  # items of the maximal size that 16 MB (16,777,216 bytes) have room for


def everything(table) -> list[dict]:
    return table.scan()["Items"]


def test_a_batch_reads_items_of_several_tables(dynamodb, catalog, thread):
    catalog.put_item(Item=BOOK)
    catalog.put_item(Item=BICYCLE)
    thread.put_item(Item={"ForumName": "f", "Subject": "s"})
    asked = {
        catalog.name: {"Keys": [{"Id": 101}, {"Id": 201}, {"Id": 999}]},
        thread.name: {"Keys": [{"ForumName": "f", "Subject": "s"}]},
    }
    answer = dynamodb.resource.batch_get_item(RequestItems=asked)
    assert sorted(answer["Responses"][catalog.name], key=lambda item: item["Id"]) == [BOOK, BICYCLE]
    assert answer["Responses"][thread.name] == [{"ForumName": "f", "Subject": "s"}]
    assert answer["UnprocessedKeys"] == {}


def test_a_batch_reads_up_to_100_items(dynamodb, catalog):
    with catalog.batch_writer() as batch:
        for number in range(100):
            batch.put_item(Item={"Id": number})
    keys = [{"Id": number} for number in range(101)]
    found = dynamodb.resource.batch_get_item(RequestItems={catalog.name: {"Keys": keys[:100]}})
    assert {item["Id"] for item in found["Responses"][catalog.name]} == set(range(100))
    with refused(words="less than or equal to 100"):
        dynamodb.resource.batch_get_item(RequestItems={catalog.name: {"Keys": keys}})


def test_a_batch_reads_up_to_16_mb_and_says_what_is_left(dynamodb, thread):
    keys = [{"ForumName": "f", "Subject": f"{number:02}"} for number in range(MAXIMAL + 2)]
    for key in keys:
        thread.put_item(Item=sized(ITEM_LIMIT, **key))
    request = {"Keys": keys, "ConsistentRead": True, "ProjectionExpression": "Subject"}
    answer = dynamodb.resource.batch_get_item(RequestItems={thread.name: request})
    read = {item["Subject"] for item in answer["Responses"][thread.name]}
    left = answer["UnprocessedKeys"][thread.name]
    assert len(read) == MAXIMAL
    assert read | {key["Subject"] for key in left["Keys"]} == {key["Subject"] for key in keys}
    assert {name: value for name, value in left.items() if name != "Keys"} == {
        name: value for name, value in request.items() if name != "Keys"
    }
    rest = dynamodb.resource.batch_get_item(RequestItems=answer["UnprocessedKeys"])
    assert len(rest["Responses"][thread.name]) == 2
    assert rest["UnprocessedKeys"] == {}


def test_a_batch_puts_and_deletes_in_several_tables(dynamodb, catalog, thread):
    catalog.put_item(Item=BOOK)
    answer = dynamodb.resource.batch_write_item(
        RequestItems={
            catalog.name: [{"DeleteRequest": {"Key": {"Id": 101}}}, {"PutRequest": {"Item": BICYCLE}}],
            thread.name: [{"PutRequest": {"Item": {"ForumName": "f", "Subject": "s"}}}],
        }
    )
    assert answer["UnprocessedItems"] == {}
    assert everything(catalog) == [BICYCLE]
    assert everything(thread) == [{"ForumName": "f", "Subject": "s"}]


def test_a_batch_writes_up_to_25_items(dynamodb, catalog):
    puts = [{"PutRequest": {"Item": {"Id": number}}} for number in range(26)]
    dynamodb.resource.batch_write_item(RequestItems={catalog.name: puts[:25]})
    assert len(everything(catalog)) == 25
    with refused(words="less than or equal to 25"):
        dynamodb.resource.batch_write_item(RequestItems={catalog.name: puts})


def test_a_batch_writes_items_of_up_to_400_kb(dynamodb, thread):
    puts = [
        {"PutRequest": {"Item": sized(ITEM_LIMIT, ForumName="f", Subject=f"{number:02}")}}
        for number in range(25)
    ]
    dynamodb.resource.batch_write_item(RequestItems={thread.name: puts})
    assert thread.query(
        KeyConditionExpression="ForumName = :f",
        ExpressionAttributeValues={":f": "f"},
        Limit=25,
        Select="COUNT",
    )["Count"] in range(1, 4)  # a page of 1 MB
    puts[24]["PutRequest"]["Item"]["pad"] += "x"
    with refused(words="Item size has exceeded the maximum allowed size"):
        dynamodb.resource.batch_write_item(RequestItems={thread.name: puts})


def test_a_request_of_more_than_16_mb_is_refused(dynamodb, thread):
    # 25 items of 400 KB are 10 MB. base64 and escapes make a longer request of the same data.
    escaped = "\x01" * (ITEM_LIMIT - 100)
    puts = [
        {"PutRequest": {"Item": {"ForumName": "f", "Subject": f"{number}", "pad": escaped}}}
        for number in range(7)
    ]
    with refused("413"):
        dynamodb.resource.batch_write_item(RequestItems={thread.name: puts})
    dynamodb.resource.batch_write_item(RequestItems={thread.name: puts[:6]})


def test_a_batch_cannot_update(dynamodb, catalog):
    update = {"UpdateRequest": {"Key": {"Id": {"N": "1"}}, "UpdateExpression": "SET a = b"}}
    status, answer = dynamodb.send("BatchWriteItem", {"RequestItems": {catalog.name: [update]}})
    assert status == 400
    assert answer["__type"].endswith("#ValidationException")
    assert everything(catalog) == []


def test_a_batch_has_the_effect_of_single_requests(dynamodb, catalog):
    single = dynamodb.create("Id:N")
    items = [{"Id": number, "pad": "x" * 700 * number} for number in range(5)]
    for item in items:
        single.put_item(Item=item)
    puts = [{"PutRequest": {"Item": item}} for item in items]
    dynamodb.resource.batch_write_item(RequestItems={catalog.name: puts})
    keys = [{"Id": number} for number in range(5)]
    alone = [single.get_item(Key=key, ReturnConsumedCapacity="TOTAL") for key in keys]
    batch = dynamodb.resource.batch_get_item(
        RequestItems={catalog.name: {"Keys": keys}}, ReturnConsumedCapacity="TOTAL"
    )
    assert sorted(batch["Responses"][catalog.name], key=lambda item: item["Id"]) == [
        one["Item"] for one in alone
    ]
    [told] = batch["ConsumedCapacity"]
    assert told["CapacityUnits"] == sum(one["ConsumedCapacity"]["CapacityUnits"] for one in alone)


def test_a_batch_write_costs_the_sum_of_its_puts_and_deletes(dynamodb, catalog):
    for number in range(4):
        catalog.put_item(Item={"Id": number, "pad": "x" * 2000})
    puts = [{"PutRequest": {"Item": {"Id": number, "pad": "x" * 3000}}} for number in (10, 11)]
    deletes = [{"DeleteRequest": {"Key": {"Id": number}}} for number in range(4)]
    answer = dynamodb.resource.batch_write_item(
        RequestItems={catalog.name: puts + deletes}, ReturnConsumedCapacity="TOTAL"
    )
    assert {item["Id"] for item in everything(catalog)} == {10, 11}
    assert answer["ConsumedCapacity"] == [{"TableName": catalog.name, "CapacityUnits": 2.0 * 3 + 4.0 * 2}]
