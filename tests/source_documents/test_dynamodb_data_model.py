"""Statements of "DynamoDB Data Model" (Amazon DynamoDB Developer Guide, 2016) about tables, primary keys, indexes and
data distribution.

coverage.toml maps lines to tests. Data types are in the file beside this one.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from boto3.dynamodb.conditions import Attr, Key

from tests.support.live_dynamodb import Index, Live, definitions, key_schema, pages, refused
from tests.support.running import start
from tests.support.waiting import wait_until

BOOK = {
    "Id": 101,
    "ProductName": "Book 101 Title",
    "ISBN": "111-1111111111",
    "Authors": {"Author 1", "Author 2"},
    "Price": -2,
    "Dimensions": "8.5 x 11.0 x 0.5",
    "PageCount": 500,
    "InPublication": 1,
    "ProductCategory": "Book",
}
BICYCLES = [
    {
        "Id": number,
        "ProductName": f"{number - 183}-Bicycle {number}",
        "Description": f"{number} description",
        "BicycleType": "Road",
        "Brand": "Brand-Company A",
        "Price": price,
        "Color": colors,
        "ProductCategory": "Bike",
    }
    for number, price, colors in ((201, 100, {"Red", "Black"}), (202, 200, {"Green", "Black"}))
]


@pytest.fixture
def catalog(dynamodb: Live):
    """ProductCatalog with the book and the two bicycles."""
    table = dynamodb.create("Id:N")
    for item in (BOOK, *BICYCLES):
        table.put_item(Item=item)
    return table


@pytest.fixture
def reply(dynamodb: Live):
    """Reply, with a local index on the author. It has four replies in two threads."""
    poster = Index("PostedBy-index", "Id:S", "PostedBy:S", local=True)
    table = dynamodb.create("Id:S", "ReplyDateTime:S", indexes=[poster])
    for thread, at, user in (
        ("1", "09:00", "A"),
        ("1", "10:00", "B"),
        ("1", "11:00", "A"),
        ("2", "09:30", "A"),
    ):
        table.put_item(
            Item={
                "Id": f"Amazon DynamoDB#Thread {thread}",
                "ReplyDateTime": at,
                "PostedBy": f"User {user}",
                "Message": at,
            }
        )
    return table


@pytest.fixture
def pets(dynamodb: Live):
    """Pets by type and name, put in no order."""
    table = dynamodb.create("AnimalType:S", "Name:S")
    names = {
        "Dog": ["Rex", "Fido", "Bowser", "Alma", "Kobe", "Zero"],
        "Cat": ["Misty", "Fluffy"],
        "Bird": ["Polly"],
    }
    for kind, group in names.items():
        for name in group:
            table.put_item(Item={"AnimalType": kind, "Name": name})
    return table


def names_of(answer) -> list[str]:
    return [item["Name"] for item in answer["Items"]]


# Tables, items, attributes


def test_a_table_holds_items_of_different_attributes(catalog):
    items = sorted(catalog.scan()["Items"], key=lambda item: item["Id"])
    assert items == [BOOK, *BICYCLES]


def test_a_table_defines_its_key_attributes_and_no_others(dynamodb):
    with refused(words="does not exactly match number of attributes defined"):
        dynamodb.create("Id:N", AttributeDefinitions=definitions(["Id:N", "Title:S"]))


def test_a_table_needs_a_name_and_a_key(dynamodb):
    complete = {
        "TableName": "complete",
        "KeySchema": key_schema("Id:N"),
        "AttributeDefinitions": definitions(["Id:N"]),
        "BillingMode": "PAY_PER_REQUEST",
    }
    for missing in ("TableName", "KeySchema", "AttributeDefinitions"):
        with refused():
            dynamodb.client.create_table(**{name: part for name, part in complete.items() if name != missing})
    dynamodb.client.create_table(**complete)


def test_a_query_reads_only_what_the_key_names(catalog):
    found = catalog.query(KeyConditionExpression=Key("Id").eq(201))
    assert (found["Items"], found["ScannedCount"]) == ([BICYCLES[0]], 1)


# Primary keys


def test_no_two_items_have_the_same_simple_key(catalog):
    catalog.put_item(Item={"Id": 101, "ProductName": "another"})
    assert catalog.scan(Select="COUNT")["Count"] == 3
    assert catalog.query(KeyConditionExpression=Key("Id").eq(101))["Items"] == [
        {"Id": 101, "ProductName": "another"}
    ]


def test_keys_are_the_same_if_their_values_are(catalog):
    """101 and 1.01E2 are one number."""
    catalog.put_item(Item={"Id": Decimal("1.01E2"), "ProductName": "another"})
    assert catalog.scan(Select="COUNT")["Count"] == 3


def test_two_items_have_one_partition_key_if_their_sort_keys_differ(pets):
    pets.put_item(Item={"AnimalType": "Dog", "Name": "Fido", "Age": 3})
    pets.put_item(Item={"AnimalType": "Dog", "Name": "Fida"})
    dogs = pets.query(KeyConditionExpression=Key("AnimalType").eq("Dog"))
    assert names_of(dogs) == ["Alma", "Bowser", "Fida", "Fido", "Kobe", "Rex", "Zero"]


def test_two_items_have_one_sort_key_if_their_partition_keys_differ(pets):
    pets.put_item(Item={"AnimalType": "Cat", "Name": "Fido"})
    for kind in ("Dog", "Cat"):
        assert pets.get_item(Key={"AnimalType": kind, "Name": "Fido"})["Item"]["AnimalType"] == kind


def test_the_partition_key_is_called_hash_and_the_sort_key_range(dynamodb, pets):
    described = dynamodb.client.describe_table(TableName=pets.name)["Table"]
    assert described["KeySchema"] == [
        {"AttributeName": "AnimalType", "KeyType": "HASH"},
        {"AttributeName": "Name", "KeyType": "RANGE"},
    ]


def test_a_key_has_one_or_two_attributes_the_first_of_them_hash(dynamodb):
    for schema in ([], key_schema("a:S", "b:S")[1:], key_schema("a:S", "b:S")[::-1]):
        with refused():
            dynamodb.create("a:S", "b:S", KeySchema=schema)
    three = [*key_schema("a:S", "b:S"), {"AttributeName": "c", "KeyType": "RANGE"}]
    with refused(words="less than or equal to 2"):
        dynamodb.create(
            "a:S", "b:S", KeySchema=three, AttributeDefinitions=definitions(["a:S", "b:S", "c:S"])
        )


@pytest.mark.parametrize(("kind", "value"), [("S", "text"), ("N", Decimal("-1.5")), ("B", b"\x00\xff")])
def test_a_key_attribute_is_string_number_or_binary(dynamodb, kind, value):
    table = dynamodb.create(f"Id:{kind}", f"Sort:{kind}")
    key = {"Id": value, "Sort": value}
    table.put_item(Item={**key, "a": 1})
    assert table.get_item(Key=key)["Item"] == {**key, "a": 1}


@pytest.mark.parametrize("kind", ["BOOL", "NULL", "L", "M", "SS", "NS", "BS", "", "X"])
def test_a_key_attribute_is_nothing_else(dynamodb, kind):
    with refused(words="Member must satisfy enum value set"):
        dynamodb.create(f"Id:{kind}")


def test_a_key_attribute_has_the_type_that_was_defined(pets):
    for wrong in (5, b"Fido", True, None, ["Fido"], {"Fido"}):
        with refused(words="Type mismatch for key Name expected: S actual: "):
            pets.put_item(Item={"AnimalType": "Dog", "Name": wrong})


# The discussion forum


def test_forums_threads_and_replies_are_three_tables(dynamodb, reply):
    """The id of a reply is made of the forum and the subject, so that it leads to both without a join."""
    forum, thread = dynamodb.create("Name:S"), dynamodb.create("ForumName:S", "Subject:S")
    forum.put_item(Item={"Name": "Amazon DynamoDB", "Category": "Amazon Web Services"})
    for subject in ("Thread 1", "Thread 2"):
        thread.put_item(Item={"ForumName": "Amazon DynamoDB", "Subject": subject})
    first = reply.query(KeyConditionExpression=Key("Id").eq("Amazon DynamoDB#Thread 1"), Limit=1)["Items"][0]
    name, _, subject = first["Id"].partition("#")
    assert forum.get_item(Key={"Name": name})["Item"]["Category"] == "Amazon Web Services"
    assert thread.get_item(Key={"ForumName": name, "Subject": subject})["Item"]
    subjects = thread.query(KeyConditionExpression=Key("ForumName").eq(name))["Items"]
    assert [item["Subject"] for item in subjects] == ["Thread 1", "Thread 2"]


def test_there_are_no_joins(dynamodb):
    """Not in the one language that has a spelling for them, nor does a condition reach another table's attributes."""
    forum, thread = dynamodb.create("Name:S", name="Forum"), dynamodb.create("Forum:S", name="Thread")
    forum.put_item(Item={"Name": "Amazon DynamoDB"})
    thread.put_item(Item={"Forum": "Amazon DynamoDB"})

    def execute(statement):
        return dynamodb.client.execute_statement(Statement=statement)["Items"]

    for name in ("Forum", "Thread"):
        assert len(execute(f"SELECT * FROM {name}")) == 1
    for joined in (
        "{}, {}",
        "{} JOIN {}",
        "{} CROSS JOIN {}",
        "{} INNER JOIN {} ON Name = Forum",
        "{} f, {} t",
        "{} WHERE Name IN (SELECT Forum FROM {})",
    ):
        # The text alone is rejected before the table is looked up.
        answers = [
            dynamodb.send("ExecuteStatement", {"Statement": "SELECT * FROM " + joined.format(*tables)})
            for tables in (("Forum", "Thread"), ("Nobody", "Nothing"))
        ]
        assert answers[0] == answers[1]
        assert answers[0][0] == 400
    assert execute("SELECT * FROM Forum WHERE Name = Thread.Forum") == []


# Secondary indexes


def test_replies_are_queried_by_id_and_by_time(reply):
    thread = Key("Id").eq("Amazon DynamoDB#Thread 1")
    assert reply.query(KeyConditionExpression=thread)["Count"] == 3
    later = reply.query(KeyConditionExpression=thread & Key("ReplyDateTime").gt("09:30"))
    assert [item["ReplyDateTime"] for item in later["Items"]] == ["10:00", "11:00"]


def test_replies_of_a_user_are_queried_by_an_index_and_no_other_item_is_read(reply):
    condition = Key("Id").eq("Amazon DynamoDB#Thread 1") & Key("PostedBy").eq("User A")
    found = reply.query(IndexName="PostedBy-index", KeyConditionExpression=condition)
    assert [item["ReplyDateTime"] for item in found["Items"]] == ["09:00", "11:00"]
    assert found["ScannedCount"] == 2


def test_a_global_index_has_a_key_that_the_table_has_not(dynamodb):
    table = dynamodb.create("Id:S", "At:S", indexes=[Index("by-user", "PostedBy:S", "Stars:N")])
    for number, (user, stars) in enumerate([("A", 3), ("B", 5), ("A", 1)]):
        table.put_item(Item={"Id": f"{number}", "At": "now", "PostedBy": user, "Stars": stars})
    found = table.query(IndexName="by-user", KeyConditionExpression=Key("PostedBy").eq("A"))
    assert [item["Id"] for item in found["Items"]] == ["2", "0"]


def test_a_global_index_may_have_the_key_of_the_table_turned_round(dynamodb):
    table = dynamodb.create("Id:S", "At:S", indexes=[Index("turned", "At:S", "Id:S")])
    for name in ("b", "a"):
        table.put_item(Item={"Id": name, "At": "now"})
    found = table.query(IndexName="turned", KeyConditionExpression=Key("At").eq("now"))
    assert [item["Id"] for item in found["Items"]] == ["a", "b"]


def test_a_table_of_a_simple_key_has_global_indexes_too(dynamodb):
    table = dynamodb.create("Id:S", indexes=[Index("by-user", "PostedBy:S")])
    table.put_item(Item={"Id": "1", "PostedBy": "A"})
    assert table.query(IndexName="by-user", KeyConditionExpression=Key("PostedBy").eq("A"))["Count"] == 1


def test_a_local_index_has_the_partition_key_of_the_table_and_another_sort_key(dynamodb):
    with refused(words="does not have the same leading hash key"):
        dynamodb.create("Id:S", "At:S", indexes=[Index("wrong", "PostedBy:S", "At:S", local=True)])
    with refused(words="Table KeySchema does not have a range key"):
        dynamodb.create("Id:S", indexes=[Index("wrong", "Id:S", "At:S", local=True)])
    with refused(words="Index KeySchema does not have a range key"):
        dynamodb.create("Id:S", "At:S", indexes=[Index("wrong", "Id:S", local=True)])


@pytest.mark.parametrize(
    ("local", "limit", "words"), [(True, 5, "Secondary"), (False, 20, "per-table limit of 20")]
)
def test_a_table_has_up_to_5_local_and_20_global_indexes(dynamodb, local, limit, words):
    """Five and five until December 2018. The quotas page now has 20 global ones."""
    indexes = [Index(f"index-{at}", "Id:S", f"key-{at}:S", local=local) for at in range(limit + 1)]
    table = dynamodb.create("Id:S", "Sort:S", indexes=indexes[:limit])
    table.put_item(Item={"Id": "1", "Sort": "1", **{f"key-{at}": "x" for at in range(limit)}})
    last = table.query(IndexName=f"index-{limit - 1}", KeyConditionExpression=Key("Id").eq("1"))
    assert last["Count"] == 1
    with refused(words=words):
        dynamodb.create("Id:S", "Sort:S", indexes=indexes)


def test_index_data_is_stored_apart_from_table_data(dynamodb):
    """An index has a separate size and count of its contents. Its deletion leaves the table unchanged."""
    table = dynamodb.create("Id:S", indexes=[Index("by-user", "PostedBy:S", projection="KEYS_ONLY")])
    items = [{"Id": f"{number}", "pad": "x" * 100, "PostedBy": "A"} for number in range(1, 4)]
    for item in [{"Id": "0", "pad": "x" * 100}, *items]:
        table.put_item(Item=item)

    def describe() -> dict[str, Any]:
        return dynamodb.client.describe_table(TableName=table.name)["Table"]

    wait_until(lambda: describe()["ItemCount"] == 4, describe)  # a count that took long is kept for a while
    described = describe()
    [index] = described["GlobalSecondaryIndexes"]
    key, pad, user = len("Id") + 1, len("pad") + 100, len("PostedBy") + 1
    assert (described["ItemCount"], described["TableSizeBytes"]) == (4, 4 * (key + pad) + 3 * user)
    assert (index["ItemCount"], index["IndexSizeBytes"]) == (3, 3 * (key + user))
    by_user = {"IndexName": "by-user", "KeyConditionExpression": Key("PostedBy").eq("A")}
    found = table.query(**by_user)["Items"]
    assert sorted(found, key=lambda item: item["Id"]) == [
        {"Id": f"{at}", "PostedBy": "A"} for at in (1, 2, 3)
    ]
    dynamodb.client.update_table(
        TableName=table.name, GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by-user"}}]
    )
    with refused():
        table.query(**by_user)
    assert table.get_item(Key={"Id": "1"})["Item"] == items[0]


# Item distribution


def test_a_new_table_is_creating_and_cannot_be_used(shared_database_url):
    running = start(shared_database_url, dialects="dynamodb", table_creation_delay=3600)
    table = Live(running.url).create("Id:S", name="table-of-an-hour")
    assert table.table_status == "CREATING"
    for use in (table.scan, lambda: table.put_item(Item={"Id": "1"})):
        with refused("ResourceNotFoundException"):
            use()
    running.stop()


def test_a_table_is_used_once_it_is_active(shared_database_url):
    running = start(shared_database_url, dialects="dynamodb", table_creation_delay=0.2)
    table = Live(running.url).create("Id:S", name="table-of-a-moment")
    while table.table_status != "ACTIVE":
        table.reload()
    table.put_item(Item={"Id": "1"})
    assert table.get_item(Key={"Id": "1"})["Item"] == {"Id": "1"}
    running.stop()


def test_an_item_is_found_by_its_partition_key(dynamodb):
    table = dynamodb.create("AnimalType:S")
    for kind in ("Dog", "Cat", "Fish", "Bird", "Lizard", "Bird", "Turtle", "Snake"):
        table.put_item(Item={"AnimalType": kind, "Sound": f"of a {kind}"})
    assert table.get_item(Key={"AnimalType": "Dog"})["Item"]["Sound"] == "of a Dog"
    assert "Item" not in table.get_item(Key={"AnimalType": "dog"})


def segments(table, total: int) -> list[list[dict]]:
    """The items of each segment of a parallel scan."""
    return [
        [item for page in pages(table.scan, Segment=at, TotalSegments=total) for item in page["Items"]]
        for at in range(total)
    ]


def test_a_hash_of_the_partition_key_says_where_an_item_is(dynamodb):
    """Segments of a scan show it to a client: they do not depend on the key order, and each gets its share."""
    table = dynamodb.create("AnimalType:S")
    with table.batch_writer() as batch:
        for number in range(200):
            batch.put_item(Item={"AnimalType": f"kind-{number:03}"})
    found = segments(table, 4)
    assert sorted(item["AnimalType"] for part in found for item in part) == [
        f"kind-{at:03}" for at in range(200)
    ]
    for part in found:
        numbers = sorted(int(item["AnimalType"][5:]) for item in part)
        assert len(part) > 20
        assert numbers != list(range(numbers[0], numbers[-1] + 1))


def test_the_place_of_an_item_is_its_partition_key_s_alone(dynamodb):
    """The place is equal in two tables and for all sort keys."""
    one, two = dynamodb.create("AnimalType:S"), dynamodb.create("AnimalType:S", "Name:S")
    for number in range(40):
        one.put_item(Item={"AnimalType": f"kind-{number}"})
        for name in "ba":
            two.put_item(Item={"AnimalType": f"kind-{number}", "Name": name})
    for of_one, of_two in zip(segments(one, 3), segments(two, 3), strict=True):
        kinds = {item["AnimalType"] for item in of_one}
        assert {item["AnimalType"] for item in of_two} == kinds
        assert len(of_two) == 2 * len(kinds)


def test_items_of_a_partition_lie_together_in_the_order_of_the_sort_key(pets):
    """A scan passes through each partition once, in ascending order."""
    seen = [(item["AnimalType"], item["Name"]) for item in pets.scan()["Items"]]
    partitions = [kind for at, (kind, _) in enumerate(seen) if at == 0 or seen[at - 1][0] != kind]
    assert sorted(partitions) == ["Bird", "Cat", "Dog"]
    for kind in partitions:
        names = [name for other, name in seen if other == kind]
        assert names == sorted(names)


# Queries of a partition


def test_an_item_is_read_by_partition_and_sort_key(pets):
    assert pets.get_item(Key={"AnimalType": "Dog", "Name": "Fido"})["Item"] == {
        "AnimalType": "Dog",
        "Name": "Fido",
    }
    assert "Item" not in pets.get_item(Key={"AnimalType": "Cat", "Name": "Fido"})


def test_a_query_reads_all_items_of_a_partition_in_ascending_order(pets):
    found = pets.query(KeyConditionExpression=Key("AnimalType").eq("Dog"))
    assert names_of(found) == ["Alma", "Bowser", "Fido", "Kobe", "Rex", "Zero"]


def test_a_query_reads_in_descending_order_if_asked(pets):
    found = pets.query(KeyConditionExpression=Key("AnimalType").eq("Dog"), ScanIndexForward=False)
    assert names_of(found) == ["Zero", "Rex", "Kobe", "Fido", "Bowser", "Alma"]


@pytest.mark.parametrize(
    ("condition", "names"),
    [
        (Key("Name").eq("Fido"), ["Fido"]),
        (Key("Name").lt("Fido"), ["Alma", "Bowser"]),
        (Key("Name").lte("Fido"), ["Alma", "Bowser", "Fido"]),
        (Key("Name").gt("Kobe"), ["Rex", "Zero"]),
        (Key("Name").gte("Kobe"), ["Kobe", "Rex", "Zero"]),
        (Key("Name").between("A", "K"), ["Alma", "Bowser", "Fido"]),
        (Key("Name").between("Fido", "Rex"), ["Fido", "Kobe", "Rex"]),
        (Key("Name").begins_with("F"), ["Fido"]),
    ],
)
@pytest.mark.parametrize("forward", [True, False])
def test_a_condition_on_the_sort_key_names_a_range(pets, condition, names, forward):
    found = pets.query(
        KeyConditionExpression=Key("AnimalType").eq("Dog") & condition, ScanIndexForward=forward
    )
    assert names_of(found) == (names if forward else names[::-1])
    assert found["ScannedCount"] == len(names)


def test_a_query_names_one_partition_key(pets):
    for condition in (
        Key("Name").eq("Fido"),
        Key("AnimalType").gt("Cat"),
        Key("AnimalType").begins_with("D"),
    ):
        with refused():
            pets.query(KeyConditionExpression=condition)


def test_a_filter_is_no_key_condition(pets):
    """It hides items that were read."""
    pets.put_item(Item={"AnimalType": "Dog", "Name": "Fido", "Age": 3})
    found = pets.query(KeyConditionExpression=Key("AnimalType").eq("Dog"), FilterExpression=Attr("Age").eq(3))
    assert (found["Count"], found["ScannedCount"]) == (1, 6)


def test_a_partition_holds_any_number_of_sort_keys(dynamodb):
    table = dynamodb.create("AnimalType:S", "Name:N")
    with table.batch_writer() as batch:
        for number in range(1200):
            batch.put_item(Item={"AnimalType": "Dog", "Name": number, "pad": "x" * 1000})
    found = [
        item["Name"]
        for page in pages(table.query, KeyConditionExpression=Key("AnimalType").eq("Dog"))
        for item in page["Items"]
    ]
    assert found == list(range(1200))


def test_a_table_grows_and_no_reader_notices(dynamodb):
    """A scan that was begun in a small table ends in a larger one: what was there comes once, and so it does in segments."""
    table = dynamodb.create("AnimalType:S")

    def add(numbers):
        with table.batch_writer() as batch:
            for number in numbers:
                batch.put_item(Item={"AnimalType": f"kind-{number:04}", "pad": "x" * 2000})

    add(range(0, 100, 2))
    begun = [table.scan(Limit=20), table.scan(Limit=10, Segment=0, TotalSegments=2)]
    add(range(1, 1200, 2))
    seen = []
    for first, more in zip(begun, ({}, {"Segment": 0, "TotalSegments": 2}), strict=True):
        rest = pages(table.scan, ExclusiveStartKey=first["LastEvaluatedKey"], **more)
        seen.append([item["AnimalType"] for page in (first, *rest) for item in page["Items"]])
    old = {f"kind-{number:04}" for number in range(0, 100, 2)}
    whole, half = seen
    assert len(whole) == len(set(whole)) > 500
    assert old <= set(whole)
    assert len(half) == len(set(half))
    assert set(half) & old == {item["AnimalType"] for item in segments(table, 2)[0]} & old
