"""Statements of "DynamoDB Data Model" (Amazon DynamoDB Developer Guide, 2016) about data types: scalars, documents and
sets.
"""

from __future__ import annotations

import base64
from decimal import Decimal
from typing import Any

import pytest
from boto3.dynamodb.conditions import Key

from tests.support.live_dynamodb import Live, refused

ITEM_LIMIT = 409_600
PARTITION_KEY_LIMIT, SORT_KEY_LIMIT = 2048, 1024
TEXT = "this text is base64-encoded"


@pytest.fixture
def table(dynamodb: Live):
    return dynamodb.create("Id:S")


@pytest.fixture(scope="module")
def values(dynamodb: Live):
    """A way for one wire value into an item and back."""
    name = dynamodb.create("Id:S").name

    def there_and_back(value: dict[str, Any]) -> dict[str, Any]:
        dynamodb.client.put_item(TableName=name, Item={"Id": {"S": "1"}, "value": value})
        return dynamodb.client.get_item(TableName=name, Key={"Id": {"S": "1"}})["Item"]["value"]

    return there_and_back


@pytest.mark.parametrize(
    "value",
    [
        {"N": "300"},
        {"S": "Bicycle"},
        {"B": base64.b64decode("dGhpcyB0ZXh0IGlzIGJhc2U2NC1lbmNvZGVk")},
        {"BOOL": True},
        {"BOOL": False},
        {"NULL": True},
        {"L": [{"S": "a"}, {"N": "1"}]},
        {"M": {"a": {"S": "b"}, "c": {"N": "1"}}},
        {"SS": ["Black", "Green", "Red"]},
        {"NS": ["-19", "3.14", "7.5", "42.2"]},
        {"BS": [b"Rainy", b"Snowy", b"Sunny"]},
    ],
    ids=lambda value: next(iter(value)),
)
def test_each_data_type_is_kept(values, value):
    back = values(value)
    [(tag, data)] = value.items()
    assert back == value or {tag: sorted(back[tag])} == {tag: sorted(data)}


def test_there_are_no_other_data_types(dynamodb, table):
    for tag in ("X", "D", "b", "SSS"):
        status, answer = dynamodb.send(
            "PutItem", {"TableName": table.name, "Item": {"Id": {"S": "1"}, "a": {tag: "x"}}}
        )
        assert status == 400
        assert answer["__type"].endswith(("#ValidationException", "#SerializationException"))


def ordered(dynamodb: Live, kind: str, keys: list[Any]) -> list[Any]:
    """Sort keys in the order in which a query and a scan give them (the same, or it fails)."""
    table = dynamodb.create("Id:S", f"Sort:{kind}")
    for key in keys:
        table.put_item(Item={"Id": "1", "Sort": key})
    found = [item["Sort"] for item in table.query(KeyConditionExpression=Key("Id").eq("1"))["Items"]]
    assert [item["Sort"] for item in table.scan()["Items"]] == found
    return found


# Strings


@pytest.mark.parametrize("text", ["Bicycle", "ä€😀", "\x00\x1f\x7f", "\ud7ff\ue000￿", " ", '"\\/\b\f\n\r\t'])
def test_a_string_is_any_unicode_text(values, text):
    assert values({"S": text}) == {"S": text}


def test_a_string_has_no_limit_of_its_own_below_that_of_the_item(table):
    room = ITEM_LIMIT - len("Id") - 1 - len("text")
    table.put_item(Item={"Id": "1", "text": "x" * room})
    assert len(table.get_item(Key={"Id": "1"})["Item"]["text"]) == room
    with refused(words="Item size"):
        table.put_item(Item={"Id": "1", "text": "x" * (room + 1)})


@pytest.mark.parametrize("make", [lambda length: "x" * length, bytes], ids=["string", "binary"])
def test_a_key_has_a_limit_of_its_own(dynamodb, make):
    kind = "S" if make(1) == "x" else "B"
    table = dynamodb.create(f"Id:{kind}", f"Sort:{kind}")
    longest = {"Id": make(PARTITION_KEY_LIMIT), "Sort": make(SORT_KEY_LIMIT)}
    table.put_item(Item=longest)
    assert table.get_item(Key=longest)["Item"] == longest
    with refused(words="Size of hashkey has exceeded the maximum size limit of2048 bytes"):
        table.put_item(Item={**longest, "Id": make(PARTITION_KEY_LIMIT + 1)})
    with refused(words="Aggregated size of all range keys has exceeded the size limit of 1024 bytes"):
        table.put_item(Item={**longest, "Sort": make(SORT_KEY_LIMIT + 1)})


def test_the_limit_of_a_key_is_of_utf_8_bytes(table):
    table.put_item(Item={"Id": "€" * 682 + "ä"})
    with refused(words="2048 bytes"):
        table.put_item(Item={"Id": "€" * 683})


@pytest.mark.parametrize("empty", ["", b""], ids=["string", "binary"])
def test_an_empty_value_is_kept_outside_of_keys(table, empty):
    """Rejected at the time of the document. Since May 2020 only key attributes must not be empty."""
    table.put_item(Item={"Id": "1", "empty": empty, "in": [empty], "of": {"a": empty}})
    assert table.get_item(Key={"Id": "1"})["Item"] == {
        "Id": "1",
        "empty": empty,
        "in": [empty],
        "of": {"a": empty},
    }
    table.update_item(
        Key={"Id": "1"}, UpdateExpression="SET more = :e", ExpressionAttributeValues={":e": empty}
    )
    assert table.get_item(Key={"Id": "1"})["Item"]["more"] == empty


@pytest.mark.parametrize(("kind", "empty"), [("S", ""), ("B", b"")])
def test_a_key_is_not_empty(dynamodb, kind, empty):
    table = dynamodb.create(f"Id:{kind}", f"Sort:{kind}")
    other = "x" if kind == "S" else b"x"
    for key in ({"Id": empty, "Sort": other}, {"Id": other, "Sort": empty}):
        with refused(words="The AttributeValue for a key attribute cannot contain an empty"):
            table.put_item(Item=key)
        with refused(words="The AttributeValue for a key attribute cannot contain an empty"):
            table.get_item(Key=key)


def test_strings_are_ordered_by_character_codes(dynamodb):
    """Capitals before small letters, and a longer text of earlier letters before a shorter one of later letters."""
    assert ordered(dynamodb, "S", ["aa", "B", "a", "A", "Z", "~", "0", " ", "b"]) == [
        " ", "0", "A", "B", "Z", "a", "aa", "b", "~",
    ]  # fmt: skip


def test_strings_beyond_ascii_are_ordered_by_their_utf_8_bytes(dynamodb):
    """This is the order of code points: an astral character comes after U+FFFF, unlike in UTF-16."""
    assert ordered(dynamodb, "S", ["😀", "￿", "é", "z", "€", "e"]) == ["e", "z", "é", "€", "￿", "😀"]


def test_strings_are_compared_by_character_codes(table):
    table.put_item(Item={"Id": "1", "a": "a", "A": "A", "aa": "aa", "B": "B"})
    assert table.scan(FilterExpression="a > A AND aa > B")["Count"] == 1


# Numbers


@pytest.mark.parametrize(
    "text",
    [
        "0",
        "1",
        "-1",
        "12345678901234567890123456789012345678",
        "-12345678901234567890123456789012345678",
        "0.12345678901234567890123456789012345678",
        "1234567890123456789.0123456789012345678",
    ],
)
def test_a_number_keeps_38_digits(values, text):
    assert values({"N": text}) == {"N": text}


@pytest.mark.parametrize(
    "text",
    [
        "123456789012345678901234567890123456789",
        "1234567890123456789012345678901234567.89",
        "-0.123456789012345678901234567890123456789",
    ],
)
def test_a_number_of_more_digits_is_refused(values, text):
    with refused():
        values({"N": text})


def test_more_than_38_digits_are_an_error_and_not_rounded(values):
    with refused(words="Attempting to store more than 38 significant digits in a Number"):
        values({"N": "1." + "1" * 38})


SMALLEST, LARGEST = "1E-130", "9.9999999999999999999999999999999999999E+125"


@pytest.mark.parametrize("text", [SMALLEST, LARGEST, "-" + LARGEST, "-" + SMALLEST])
def test_the_ends_of_the_range_of_numbers_are_kept(values, text):
    back = values({"N": text})["N"]
    assert Decimal(back) == Decimal(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("9.99E-131", "underflow"),
        ("1E+126", "overflow"),
        ("-1E+126", "overflow"),
        ("-9.99E-131", "underflow"),
    ],
)
def test_numbers_beyond_the_range_are_refused(values, text, words):
    with refused(words=words):
        values({"N": text})


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("0010", "10"),
        ("1.500", "1.5"),
        ("100", "100"),
        ("-0.0", "0"),
        ("+5", "5"),
        ("1e3", "1000"),
        ("0.010", "0.01"),
    ],
)
def test_leading_and_trailing_zeros_are_trimmed(values, given, kept):
    assert values({"N": given}) == {"N": kept}


def test_zeros_at_the_ends_of_a_number_take_no_room(table):
    """Numbers are of variable length: two digits a byte, without the zeros."""
    room = ITEM_LIMIT - len("Id") - 1 - len("pad") - len("n") - 2
    table.put_item(Item={"Id": "1", "pad": "x" * room, "n": Decimal("12e100")})
    with refused(words="Item size"):
        table.put_item(Item={"Id": "1", "pad": "x" * room, "n": Decimal("121e100")})


def test_a_number_is_sent_as_a_string(dynamodb, table):
    for number in (300, 1.5):
        item = {"Id": {"S": "1"}, "a": {"N": number}}
        status, answer = dynamodb.send("PutItem", {"TableName": table.name, "Item": item})
        assert (status, answer["__type"]) == (400, "com.amazon.coral.service#SerializationException")
    status, _ = dynamodb.send(
        "PutItem", {"TableName": table.name, "Item": {"Id": {"S": "1"}, "a": {"N": "300"}}}
    )
    assert status == 200


def test_numbers_are_ordered_and_compared_as_numbers(dynamodb, table):
    numbers = [Decimal(text) for text in ("10", "9", "-1", "-10", "0", "1e-3", "1e20", "9.5")]
    assert ordered(dynamodb, "N", numbers) == sorted(numbers)
    table.put_item(Item={"Id": "1", "a": 9, "b": 10})
    assert table.scan(FilterExpression="a < b")["Count"] == 1


def test_numbers_are_added_as_numbers(table):
    table.put_item(Item={"Id": "1", "a": Decimal("0.1")})
    table.update_item(
        Key={"Id": "1"}, UpdateExpression="SET a = a + :b", ExpressionAttributeValues={":b": Decimal("0.2")}
    )
    assert table.get_item(Key={"Id": "1"})["Item"]["a"] == Decimal("0.3")


# Binary


def test_binary_is_any_bytes(values):
    every = bytes(range(256))
    assert values({"B": every}) == {"B": every}


def test_binary_is_ordered_by_unsigned_bytes(dynamodb):
    keys = [b"\x80", b"\x7f", b"\xff", b"\x00", b"\x00\x00", b"\x01"]
    assert [bytes(found) for found in ordered(dynamodb, "B", keys)] == sorted(keys)


def test_a_query_compares_unsigned_bytes(dynamodb):
    table = dynamodb.create("Id:S", "Sort:B")
    for key in (b"\x7f", b"\x80", b"\xff"):
        table.put_item(Item={"Id": "1", "Sort": key})
    found = table.query(KeyConditionExpression=Key("Id").eq("1") & Key("Sort").gt(b"\x7f"))
    assert [bytes(item["Sort"]) for item in found["Items"]] == [b"\x80", b"\xff"]


def test_binary_has_no_limit_of_its_own_below_that_of_the_item(table):
    room = ITEM_LIMIT - len("Id") - 1 - len("data")
    table.put_item(Item={"Id": "1", "data": bytes(room)})
    assert len(table.get_item(Key={"Id": "1"})["Item"]["data"].value) == room
    with refused(words="Item size"):
        table.put_item(Item={"Id": "1", "data": bytes(room + 1)})


def test_binary_is_sent_in_base64(dynamodb, table):
    encoded = base64.b64encode(TEXT.encode()).decode()
    for wrong in ("no base64!", encoded[:-1], encoded + "="):
        item = {"Id": {"S": "1"}, "a": {"B": wrong}}
        status, answer = dynamodb.send("PutItem", {"TableName": table.name, "Item": item})
        assert (status, answer["__type"]) == (400, "com.amazon.coral.service#SerializationException")
    item = {"Id": {"S": "1"}, "a": {"B": encoded}}
    assert dynamodb.send("PutItem", {"TableName": table.name, "Item": item})[0] == 200
    _, answer = dynamodb.send("GetItem", {"TableName": table.name, "Key": {"Id": {"S": "1"}}})
    assert answer["Item"] == item
    assert table.get_item(Key={"Id": "1"})["Item"]["a"].value.decode() == TEXT


def test_the_length_of_binary_is_that_of_the_decoded_bytes(table):
    table.put_item(Item={"Id": "1", "data": bytes(300)})
    for length, count in ((300, 1), (400, 0)):
        found = table.scan(FilterExpression="size(#d) = :n", ExpressionAttributeNames={"#d": "data"},
                           ExpressionAttributeValues={":n": length})  # fmt: skip
        assert found["Count"] == count


# Boolean and null


def test_a_boolean_is_true_or_false(values, dynamodb, table):
    for value in (True, False):
        assert values({"BOOL": value}) == {"BOOL": value}
    for wrong in (None, 1, "maybe"):
        status, _ = dynamodb.send(
            "PutItem", {"TableName": table.name, "Item": {"Id": {"S": "1"}, "a": {"BOOL": wrong}}}
        )
        assert status == 400


def test_null_is_a_value_and_not_an_absence(dynamodb, table):
    table.put_item(Item={"Id": "1", "nothing": None})
    for condition, count in (
        ("attribute_exists(nothing)", 1),
        ("attribute_type(nothing, :t)", 1),
        ("nothing = :s", 0),
    ):
        used = {":t": "NULL"} if ":t" in condition else {":s": "NULL"} if ":s" in condition else {}
        asked = {"ExpressionAttributeValues": used} if used else {}
        assert table.scan(FilterExpression=condition, **asked)["Count"] == count
    with refused(words="Null attribute value types must have the value of true"):
        dynamodb.client.put_item(TableName=table.name, Item={"Id": {"S": "1"}, "a": {"NULL": False}})


# Documents

DESK = {
    "Day": "Monday",
    "UnreadEmails": 42,
    "ItemsOnMyDesk": [
        "Coffee Cup",
        "Telephone",
        {"Pens": {"Quantity": 3}, "Pencils": {"Quantity": 2}, "Erasers": {"Quantity": 1}},
    ],
}


def test_lists_and_maps_are_kept_as_they_are_nested(table):
    table.put_item(Item={"Id": "1", "desk": DESK})
    assert table.get_item(Key={"Id": "1"})["Item"]["desk"] == DESK


def test_a_list_keeps_its_order_and_its_repetitions(values):
    texts = {"L": [{"S": text} for text in ("c", "a", "b", "a")]}
    assert values(texts) == texts


def test_the_order_of_names_in_a_map_means_nothing(table):
    table.put_item(Item={"Id": "1", "map": {"a": 1, "b": 2}})
    found = table.scan(FilterExpression="#m = :m", ExpressionAttributeNames={"#m": "map"},
                       ExpressionAttributeValues={":m": {"b": 2, "a": 1}})  # fmt: skip
    assert found["Count"] == 1


EVERYTHING = ["text", 1, b"b", True, None, ["inner"], {"a": "b"}, {"s"}, {1}, {b"b"}]


def test_a_list_holds_every_type_side_by_side(table):
    table.put_item(Item={"Id": "1", "list": EVERYTHING})
    assert table.get_item(Key={"Id": "1"})["Item"]["list"] == EVERYTHING


def test_a_map_holds_every_type_side_by_side(table):
    everything = {f"name-{at}": value for at, value in enumerate(EVERYTHING)}
    table.put_item(Item={"Id": "1", "map": everything})
    assert table.get_item(Key={"Id": "1"})["Item"]["map"] == everything


def nested(levels: int) -> Any:
    """Return a string in this many nested maps."""
    value: Any = "core"
    for _ in range(levels):
        value = {"a": value}
    return value


def test_documents_are_nested_31_levels_around_a_scalar_and_no_deeper(table):
    """The limit is 32 levels. The attribute is the first (alternator test_nested.py, run against the service)."""
    table.put_item(Item={"Id": "1", "deep": nested(31)})
    assert table.get_item(Key={"Id": "1"})["Item"]["deep"] == nested(31)
    with refused(words="Nesting Levels have exceeded supported limits"):
        table.put_item(Item={"Id": "1", "deep": nested(32)})


def test_elements_are_read_and_written_however_deep_they_are(table):
    table.put_item(Item={"Id": "1", "desk": DESK})
    path = "desk.ItemsOnMyDesk[2].Pens.Quantity"
    answer = table.update_item(
        Key={"Id": "1"},
        UpdateExpression=f"SET {path} = {path} + :one, desk.ItemsOnMyDesk[0] = :tea REMOVE desk.ItemsOnMyDesk[1]",
        ConditionExpression=f"{path} = :three",
        ExpressionAttributeValues={":one": 1, ":three": 3, ":tea": "Tea Cup"},
        ReturnValues="ALL_NEW",
    )
    assert answer["Attributes"]["desk"]["ItemsOnMyDesk"][0] == "Tea Cup"
    found = table.get_item(Key={"Id": "1"}, ProjectionExpression="desk.ItemsOnMyDesk[1].Pens.Quantity")[
        "Item"
    ]
    assert found == {"desk": {"ItemsOnMyDesk": [{"Pens": {"Quantity": 4}}]}}


def test_an_element_of_a_deep_document_is_read_by_its_path(table):
    table.put_item(Item={"Id": "1", "deep": nested(31)})
    path = "deep" + ".a" * 31
    assert table.get_item(Key={"Id": "1"}, ProjectionExpression=path)["Item"] == {"deep": nested(31)}
    assert table.scan(FilterExpression=f"{path} = :c", ExpressionAttributeValues={":c": "core"})["Count"] == 1


# Sets


@pytest.mark.parametrize(
    "given",
    [
        {"SS": ["Black", "Green", "Red"]},
        {"NS": ["42.2", "-19", "7.5", "3.14"]},
        {"BS": [base64.b64decode(text) for text in ("U3Vubnk=", "UmFpbnk=", "U25vd3k=")]},
    ],
    ids=["SS", "NS", "BS"],
)
def test_a_set_keeps_its_values_in_no_order(values, given):
    [(tag, members)] = given.items()
    back, turned = values(given), values({tag: members[::-1]})
    assert set(back[tag]) == set(members)
    assert len(back[tag]) == len(members)
    assert back == turned


@pytest.mark.parametrize("twice", [{"SS": ["a", "a"]}, {"NS": ["1", "1.0"]}, {"BS": [b"a", b"a"]}])
def test_values_of_a_set_are_unique(values, twice):
    with refused(words="contains duplicates"):
        values(twice)


@pytest.mark.parametrize(
    ("empty", "words"), [("SS", "string set"), ("NS", "number set"), ("BS", "Binary sets")]
)
def test_a_set_is_not_empty(values, empty, words):
    with refused(words=words):
        values({empty: []})


def test_an_emptied_set_is_gone(table):
    table.put_item(Item={"Id": "1", "colors": {"Red"}})
    table.update_item(
        Key={"Id": "1"}, UpdateExpression="DELETE colors :c", ExpressionAttributeValues={":c": {"Red"}}
    )
    assert table.get_item(Key={"Id": "1"})["Item"] == {"Id": "1"}


def test_a_set_has_one_type(dynamodb, table):
    for tag, members in (("SS", ["a", 1]), ("NS", ["1", "text"]), ("SS", [{"S": "a"}])):
        item = {"Id": {"S": "1"}, "a": {tag: members}}
        assert dynamodb.send("PutItem", {"TableName": table.name, "Item": item})[0] == 400
