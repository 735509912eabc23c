"""Both sides of each limit of the data plane, through whole requests: what is just allowed is done, one more is refused.

Limits of tables and tags are in tables/, those of single values in values/test_values.py. Numbers: the developer guide's quotas
page and docs/protocols/dynamodb.md (rules in brackets).
"""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.adapters.dynamodb.client import DynamoDBService

ITEM = 409_600
KEY = {"pk": {"S": "k"}}
TABLE = {"TableName": "orders"}


@pytest.fixture
def orders(service: DynamoDBService) -> DynamoDBService:
    """The service with the table `orders` and its key `pk`."""
    service.table()
    return service


@pytest.fixture
def pairs(service: DynamoDBService) -> DynamoDBService:
    """The service with `pairs` (key pk and sk) and an index of each sort."""
    index = {"IndexName": "by-g", "KeySchema": keys("g", "h"), "Projection": {"ProjectionType": "ALL"}}
    local = {"IndexName": "by-l", "KeySchema": keys("pk", "l"), "Projection": {"ProjectionType": "ALL"}}
    types = [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "g", "h", "l")]
    service.table(
        "pairs",
        AttributeDefinitions=types,
        KeySchema=keys("pk", "sk"),
        GlobalSecondaryIndexes=[index],
        LocalSecondaryIndexes=[local],
    )
    return service


def keys(*names: str) -> list[dict[str, str]]:
    return [
        {"AttributeName": name, "KeyType": role} for name, role in zip(names, ("HASH", "RANGE"), strict=False)
    ]


def done(service: DynamoDBService, operation: str, **given: Any) -> Any:
    """The answer of an operation that succeeds."""
    answer = service.call(operation, given)
    assert service.last.status == 200, answer
    return answer


def refused(service: DynamoDBService, words: str, operation: str, **given: Any) -> None:
    """The operation ends in a ValidationException with these words."""
    code, text = service.error(operation, given)
    assert code == "ValidationException"
    assert words in text


# Items (rules 25, 26)


def sized(size_bytes: int, key: str = "k") -> dict[str, Any]:
    """Return an item of `orders` that is billed as this many bytes."""
    return {"pk": {"S": key}, "ballast": {"S": "x" * (size_bytes - len("pk") - len(key) - len("ballast"))}}


def transacted(**action: Any) -> list[Any]:
    return [{name: {**TABLE, **given} for name, given in action.items()}]


PUTS = {
    "PutItem": lambda item: {**TABLE, "Item": item},
    "BatchWriteItem": lambda item: {"RequestItems": {"orders": [{"PutRequest": {"Item": item}}]}},
    "TransactWriteItems": lambda item: {"TransactItems": transacted(Put={"Item": item})},
}


@pytest.mark.parametrize("operation", PUTS)
def test_an_item_of_409600_bytes_is_put_and_one_byte_more_is_not(orders, operation):
    done(orders, operation, **PUTS[operation](sized(ITEM)))
    refused(orders, "Item size has exceeded", operation, **PUTS[operation](sized(ITEM + 1)))
    assert done(orders, "GetItem", **TABLE, Key=KEY)["Item"] == sized(ITEM)


GROWTHS = {
    "SET": ("SET ballast = :v", {"S": "x"}),
    "list_append": ("SET ballast = list_append(ballast, :v)", {"L": [{"S": "x"}]}),
    "ADD": ("ADD ballast :v", {"SS": ["x"]}),
}
LONG_KEY = "k" * 100  # long enough that what the service adds for an action does not count (rule 26)


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("transactional", [False, True])
def test_an_update_makes_items_of_409600_bytes_and_no_larger_ones(orders, growth, transactional):
    expression, value = GROWTHS[growth]
    [tag] = value
    key = {"pk": {"S": LONG_KEY}}
    room = ITEM - len("pk") - len(LONG_KEY) - len("ballast")
    # Each element of a list costs a byte more, and the list itself three.
    grow = {
        "SET": lambda size: {tag: "x" * size},
        "list_append": lambda size: {tag: [{"S": "x" * (size - 3 - 2 - 1)}]},
        "ADD": lambda size: {tag: ["x" * (size - 1)]},
    }[growth]
    for size, fits in ((room + 1, False), (room, True)):
        start = {"list_append": {"L": [{"S": "y"}]}, "ADD": {"SS": ["y"]}}.get(growth, {"S": ""})
        done(orders, "PutItem", **TABLE, Item={**key, "ballast": start})
        action = {"Key": key, "UpdateExpression": expression, "ExpressionAttributeValues": {":v": grow(size)}}
        if transactional:
            answer = orders.call("TransactWriteItems", {"TransactItems": transacted(Update=action)})
        else:
            answer = orders.call("UpdateItem", {**TABLE, **action})
        if fits:
            assert orders.last.status == 200, answer
        elif transactional:
            [reason] = answer["CancellationReasons"]
            assert reason["Code"] == "ValidationError"
            assert "Item size to update has exceeded the maximum allowed size" in reason["Message"]
        else:
            assert "Item size to update has exceeded the maximum allowed size" in answer["message"]


# The clauses beside `SET b = :pad`: the item before, the clause, its values, the charge. paritysuite
# itemSizeBySurface.test.ts, "UpdateItem charges each kind of clause" (eu-west-2, 2026-10-09, each accepted at the
# figure and refused one byte over). The figure of several additions follows from its rules.
TEN, ONE = {"S": "y" * 10}, {"N": "1"}
CLAUSES = [
    ({}, "", {}, 0),
    ({"u": TEN}, "", {}, 0),
    ({}, ", c = :c", {":c": {"S": "y" * 500}}, 19 + 1 + 500),
    ({"abcdefghij": TEN}, ", c = abcdefghij", {}, 19 + 1 + 1 + 14 + 10),
    ({"m": {"M": {"a": {"M": {"z": TEN}}}}}, ", c = m.a.z", {}, 19 + 1 + 1 + 3 * (14 + 1)),
    ({"l": {"L": [ONE] * 11}}, ", c = l[10]", {}, 19 + 1 + 1 + 14 + 1 + 14 + 2),
    (
        {"l": {"L": [{"S": "e"}]}},
        ", l = list_append(l, :n)",
        {":n": {"L": [TEN]}},
        19 + 1 + 37 + 1 + 14 + 1 + 3 + 1 + 10,
    ),
    (
        {"c": {"S": "c"}},
        ", c = if_not_exists(c, :m)",
        {":m": {"M": {"a": {"S": "y" * 100}}}},
        19 + 1 + 39 + 1 + 14 + 1 + 3 + 1 + 1 + 100,
    ),
    ({"n": {"N": "12345678901234567890"}}, ", n = n + :one", {":one": ONE}, 19 + 1 + 34 + 1 + 14 + 1 + 2),
    ({"n": ONE}, ", n = n - :one", {":one": ONE}, 19 + 1 + 37 + 1 + 14 + 1 + 2),
    ({"l": {"L": [ONE]}}, ", l[0] = :one", {":one": ONE}, 19 + 1 + 4 + 1 + 2),
    ({"m": {"M": {}}}, ", m.leaf = :one", {":one": ONE}, 19 + 1 + 4 + 4 + 2),
    ({"abcdefghij": ONE}, " ADD abcdefghij :one", {":one": ONE}, 19 + 10 + 2),
    ({"ss": {"SS": ["p" * 5]}}, " ADD ss :new", {":new": {"SS": ["s" * 500]}}, 19 + 2 + 500),
    ({"abcdefghij": TEN}, " REMOVE abcdefghij", {}, 1 + 10),
    ({"m": {"M": {"x": TEN, "yyyyyyyyyy": TEN}}}, " REMOVE m.yyyyyyyyyy", {}, 1 + 1 + 4 + 10),
    ({"l": {"L": [{"S": "e"}] * 11}}, " REMOVE l[10]", {}, 1 + 1 + 4 + 2),
    ({"ss": {"SS": ["p" * 5, "q" * 20]}}, " DELETE ss :rm", {":rm": {"SS": ["q" * 20]}}, 1 + 2),
]


@pytest.mark.parametrize(("before", "clause", "values", "charge"), CLAUSES)
def test_an_update_expression_is_charged_for_its_values(orders, before, clause, values, charge):
    """The key and what is not named are free: 409,577 bytes beside an untouched attribute pass."""
    counted = ITEM - 3 - 19 - len("b") - charge
    assert charge or counted == 409_577
    for size, fits in ((counted + 1, False), (counted, True)):
        done(orders, "PutItem", **TABLE, Item={**KEY, **before})
        update = {
            **TABLE,
            "Key": KEY,
            "UpdateExpression": "SET b = :pad" + clause,
            "ExpressionAttributeValues": {":pad": {"S": "x" * size}, **values},
        }
        if fits:
            done(orders, "UpdateItem", **update)
        else:
            refused(orders, "Item size to update", "UpdateItem", **update)


def test_the_charge_comes_before_the_condition_and_after_the_table(orders):
    """paritysuite itemSizeBySurface.test.ts: "The charge is checked before the ConditionExpression"."""
    update = {
        "Key": KEY,
        "UpdateExpression": "SET b = :pad",
        "ConditionExpression": "attribute_exists(pk)",
        "ExpressionAttributeValues": {":pad": {"S": "x" * 409_578}},
    }
    refused(orders, "Item size to update", "UpdateItem", **TABLE, **update)
    code, _ = orders.error("UpdateItem", {"TableName": "nobodys", **update})
    assert code == "ResourceNotFoundException"


UNCHARGED = {
    "AttributeUpdates": lambda pad: (
        "UpdateItem",
        {**TABLE, "Key": KEY, "AttributeUpdates": {"b": {"Value": pad}}},
    ),
    "TransactWriteItems": lambda pad: (
        "TransactWriteItems",
        {
            "TransactItems": transacted(
                Update={
                    "Key": KEY,
                    "UpdateExpression": "SET b = :v",
                    "ExpressionAttributeValues": {":v": pad},
                }
            )
        },
    ),
    "PartiQL": lambda pad: (
        "ExecuteStatement",
        {"Statement": "UPDATE orders SET b = ? WHERE pk = 'k'", "Parameters": [pad]},
    ),
}


@pytest.mark.parametrize("surface", UNCHARGED)
def test_other_updates_are_measured_by_the_finished_item_alone(orders, surface):
    """paritysuite itemSizeBySurface.test.ts (October 2026; most regions, of a transaction's Update)."""
    done(orders, "PutItem", **TABLE, Item=KEY)
    room = ITEM - len("pk") - len("k") - len("b")
    for size, fits in ((room + 1, False), (room, True)):
        operation, given = UNCHARGED[surface]({"S": "x" * size})
        answer = orders.call(operation, given)
        assert (orders.last.status == 200) is fits, answer
    assert len(done(orders, "GetItem", **TABLE, Key=KEY)["Item"]["b"]["S"]) == room


# Keys (rule 24)


def longest(pk: int = 2048, sk: int = 1024) -> dict[str, Any]:
    return {"pk": {"S": "p" * pk}, "sk": {"S": "s" * sk}}


ON_KEYS = {
    "GetItem": lambda key: {"TableName": "pairs", "Key": key},
    "DeleteItem": lambda key: {"TableName": "pairs", "Key": key},
    "UpdateItem": lambda key: {"TableName": "pairs", "Key": key},
    "PutItem": lambda key: {"TableName": "pairs", "Item": key},
    "BatchGetItem": lambda key: {"RequestItems": {"pairs": {"Keys": [key]}}},
    "BatchWriteItem": lambda key: {"RequestItems": {"pairs": [{"PutRequest": {"Item": key}}]}},
    "TransactGetItems": lambda key: {"TransactItems": [{"Get": {"TableName": "pairs", "Key": key}}]},
    "TransactWriteItems": lambda key: {"TransactItems": [{"Put": {"TableName": "pairs", "Item": key}}]},
}


@pytest.mark.parametrize("operation", ON_KEYS)
def test_partition_keys_have_2048_bytes_and_sort_keys_1024(pairs, operation):
    done(pairs, operation, **ON_KEYS[operation](longest()))
    words = "Size of hashkey has exceeded the maximum size limit of2048 bytes"
    refused(pairs, words, operation, **ON_KEYS[operation](longest(pk=2049)))
    words = "Aggregated size of all range keys has exceeded the size limit of 1024 bytes"
    refused(pairs, words, operation, **ON_KEYS[operation](longest(sk=1025)))


@pytest.mark.parametrize(("name", "limit"), [("g", 2048), ("h", 1024), ("l", 1024)])
def test_keys_of_indexes_have_the_same_limits(pairs, name, limit):
    for length in (limit, limit + 1):
        item = {**longest(1, 1), "g": {"S": "g"}, "h": {"S": "h"}, "l": {"S": "l"}, name: {"S": "x" * length}}
        code = pairs.call("PutItem", {"TableName": "pairs", "Item": item}).get("__type", "")
        assert code.endswith("#ValidationException") is (length > limit)


def test_a_partition_key_that_an_index_sorts_by_has_the_limit_of_sort_keys(service):
    """An inverted index: 2,048 bytes are valid for the table and too many for the index.

    test_gsi.py of ScyllaDB has the limit of index keys, and moto test_put_long_string_gsi_range_key_exception the case.
    """
    definitions = [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")]
    inverted = {
        "IndexName": "inverted",
        "KeySchema": keys("sk", "pk"),
        "Projection": {"ProjectionType": "ALL"},
    }
    service.table(
        AttributeDefinitions=definitions, KeySchema=keys("pk", "sk"), GlobalSecondaryIndexes=[inverted]
    )
    words = "Aggregated size of all range keys has exceeded the size limit of 1024 bytes"
    done(service, "PutItem", **TABLE, Item=longest(1024))
    refused(service, words, "PutItem", **TABLE, Item=longest(1025))
    requests = {"orders": [{"PutRequest": {"Item": longest(1025)}}]}
    refused(service, words, "BatchWriteItem", RequestItems=requests)
    done(service, "UpdateItem", **TABLE, Key=longest(1024, 1))
    refused(service, "beyond allowed size limits", "UpdateItem", **TABLE, Key=longest(1025, 1))


# Names (rule 24)


def test_attribute_names_have_65535_bytes(orders):
    for name in ("n" * 65_535, "ä" * 32_767):
        done(orders, "PutItem", **TABLE, Item={**KEY, name: {"S": ""}})
        done(orders, "PutItem", **TABLE, Item={**KEY, "map": {"M": {name: {"S": ""}}}})
        done(
            orders,
            "GetItem",
            **TABLE,
            Key=KEY,
            ProjectionExpression="#n",
            ExpressionAttributeNames={"#n": name},
        )
        name += "n" if name[0] == "n" else "ä"
        words = "Attribute name is too large, must be less than 65536 bytes"
        refused(orders, words, "PutItem", **TABLE, Item={**KEY, name: {"S": ""}})
        refused(orders, words, "PutItem", **TABLE, Item={**KEY, "map": {"M": {name: {"S": ""}}}})
        refused(
            orders,
            words,
            "GetItem",
            **TABLE,
            Key=KEY,
            ProjectionExpression="#n",
            ExpressionAttributeNames={"#n": name},
        )


def test_names_of_key_attributes_have_255_characters(service):
    for length, status in ((255, 200), (256, 400)):
        name = "k" * length
        given = {
            "TableName": "named",
            "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"}],
            "KeySchema": keys(name),
            "BillingMode": "PAY_PER_REQUEST",
        }
        service.call("CreateTable", given)
        assert service.last.status == status


# Nesting (rule 6)


def nested(levels: int, in_lists: bool = False) -> dict[str, Any]:
    """Return a scalar in this many nested maps or lists."""
    value: dict[str, Any] = {"S": "core"}
    for _ in range(levels):
        value = {"L": [value]} if in_lists else {"M": {"a": value}}
    return value


TOO_DEEP = "Nesting Levels have exceeded supported limits"


@pytest.mark.parametrize("in_lists", [False, True])
def test_31_documents_around_a_scalar_are_put_and_32_are_not(orders, in_lists):
    for operation, request in PUTS.items():
        done(orders, operation, **request({**KEY, "deep": nested(31, in_lists)}))
        refused(orders, TOO_DEEP, operation, **request({**KEY, "deep": nested(32, in_lists)}))


def test_values_of_expressions_are_as_deep_and_looked_at_before_the_condition(orders):
    """Also where the condition would have been false (alternator test_nested.py, run against the service)."""
    asked = {
        **TABLE,
        "Key": KEY,
        "UpdateExpression": "SET deep = :v",
        "ConditionExpression": "attribute_exists(pk)",
    }
    refused(orders, TOO_DEEP, "UpdateItem", **asked, ExpressionAttributeValues={":v": nested(32)})
    code, _ = orders.error("UpdateItem", {**asked, "ExpressionAttributeValues": {":v": nested(31)}})
    assert code == "ConditionalCheckFailedException"


def test_an_update_does_not_nest_deeper_either(orders):
    done(orders, "PutItem", **TABLE, Item={**KEY, "deep": nested(1)})
    path = "SET deep.a = :v"
    refused(
        orders,
        TOO_DEEP,
        "UpdateItem",
        **TABLE,
        Key=KEY,
        UpdateExpression=path,
        ExpressionAttributeValues={":v": nested(31)},
    )
    done(
        orders,
        "UpdateItem",
        **TABLE,
        Key=KEY,
        UpdateExpression=path,
        ExpressionAttributeValues={":v": nested(30)},
    )


# Numbers (rule 21)


@pytest.mark.parametrize(
    ("fits", "breaks"),
    [
        ("9" * 38, "9" * 39),
        ("9." + "9" * 37 + "E125", "1E126"),
        ("-1E-130", "-1E-131"),
        ("1" + "0" * 125, "1" + "0" * 126),
    ],
)
def test_numbers_of_38_digits_and_exponents_from_minus_130_to_125(orders, fits, breaks):
    for operation, request in PUTS.items():
        done(orders, operation, **request({**KEY, "n": {"N": fits}}))
        refused(orders, "umber", operation, **request({**KEY, "n": {"N": breaks}}))
    condition = {**TABLE, "Key": KEY, "ConditionExpression": "n = :n"}
    done(orders, "DeleteItem", **condition, ExpressionAttributeValues={":n": {"N": fits}})
    refused(orders, "umber", "DeleteItem", **condition, ExpressionAttributeValues={":n": {"N": breaks}})


def test_arithmetic_keeps_38_digits_and_the_range(orders):
    for start, amount, fits in (
        ("9" * 37 + "8", "1", True),
        ("1E37", "1", True),
        ("1E38", "1", False),
        ("9E125", "9E124", True),
        ("9E125", "1E125", False),
    ):
        for expression in ("SET n = n + :a", "ADD n :a"):
            done(orders, "PutItem", **TABLE, Item={**KEY, "n": {"N": start}})
            asked = {
                **TABLE,
                "Key": KEY,
                "UpdateExpression": expression,
                "ExpressionAttributeValues": {":a": {"N": amount}},
            }
            answer = orders.call("UpdateItem", asked)
            assert (orders.last.status == 200) is fits, (start, amount, answer)


# Expressions (rule 13)

ANY = {":v": {"S": "v"}}
EXPRESSIONS = {
    "ConditionExpression": ("DeleteItem", {"Key": KEY}, "NOT a = :v"),
    "UpdateExpression": ("UpdateItem", {"Key": KEY}, "SET a = :v"),
    "FilterExpression": ("Scan", {}, "a = :v"),
    "KeyConditionExpression": ("Query", {}, "pk = :v"),
    "ProjectionExpression": ("GetItem", {"Key": KEY}, "a"),
}


@pytest.mark.parametrize("parameter", EXPRESSIONS)
def test_an_expression_has_4096_bytes(orders, parameter):
    operation, given, text = EXPRESSIONS[parameter]
    values = {} if parameter == "ProjectionExpression" else {"ExpressionAttributeValues": ANY}
    done(orders, operation, **TABLE, **given, **values, **{parameter: text.ljust(4096)})
    words = (
        f"Invalid {parameter}: Expression size has exceeded the maximum allowed size; expression size: 4097"
    )
    refused(orders, words, operation, **TABLE, **given, **values, **{parameter: text.ljust(4097)})


@pytest.mark.parametrize("parameter", ["ConditionExpression", "FilterExpression"])
def test_an_expression_has_300_operators(orders, parameter):
    operation, given, _ = EXPRESSIONS[parameter]
    # Each = and each AND is one: 150 comparisons have 299.
    text = " AND ".join(["a=:v"] * 150)
    for extra, fits in (("NOT ", True), ("NOT NOT ", False)):
        asked = {**TABLE, **given, "ExpressionAttributeValues": ANY, parameter: extra + text}
        answer = orders.call(operation, asked)
        if fits:
            assert "too many operators" not in answer.get("message", "")
        else:
            assert "The expression contains too many operators; operator count: 301" in answer["message"]


def test_an_update_has_300_operators(orders):
    """+ and - count, and = and commas do not."""
    done(orders, "PutItem", **TABLE, Item={**KEY, "n": {"N": "0"}})
    for count, fits in ((300, True), (301, False)):
        text = "SET " + ",".join(f"a{at}=n+:v" for at in range(count))
        asked = {
            **TABLE,
            "Key": KEY,
            "UpdateExpression": text,
            "ExpressionAttributeValues": {":v": {"N": "1"}},
        }
        answer = orders.call("UpdateItem", asked)
        assert (orders.last.status == 200) is fits, answer


def test_in_has_100_operands(orders):
    values = {f":{at}": {"N": str(at)} for at in range(101)}
    hundred = {name: values[name] for name in list(values)[:100]}
    done(
        orders,
        "Scan",
        **TABLE,
        FilterExpression=f"a IN ({','.join(hundred)})",
        ExpressionAttributeValues=hundred,
    )
    words = "Invalid FilterExpression: "
    refused(
        orders,
        words,
        "Scan",
        **TABLE,
        FilterExpression=f"a IN ({','.join(values)})",
        ExpressionAttributeValues=values,
    )


# Pages (rule 27)

MEGABYTE = 1_048_576


def fill(service: DynamoDBService, total_bytes: int) -> list[str]:
    """Put four items of this total size into one partition of `pairs`."""
    names = [str(at) for at in range(4)]
    share = total_bytes // 4
    for name in names:
        size = share if name != "3" else total_bytes - 3 * share
        item = {"pk": {"S": "p"}, "sk": {"S": name}, "l": {"S": name}}
        size -= len("pk" + "p" + "sk" + name + "l" + name + "ballast")
        done(service, "PutItem", TableName="pairs", Item={**item, "ballast": {"S": "x" * size}})
    return names


READS = {
    "Scan": {},
    "Query": {"KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": "p"}}},
    "Query backwards": {
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": {"S": "p"}},
        "ScanIndexForward": False,
    },
    "Query of an index": {
        "IndexName": "by-l",
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": {"S": "p"}},
    },
    "Query with a filter": {
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": {"S": "p"}},
        "FilterExpression": "attribute_not_exists(ballast)",
        "ProjectionExpression": "sk",
    },
}


@pytest.mark.parametrize("read", READS)
def test_a_page_ends_after_a_megabyte_of_evaluated_items(pairs, read):
    operation = read.partition(" ")[0]
    asked = {"TableName": "pairs", **READS[read]}
    fill(pairs, MEGABYTE - 1)
    page = done(pairs, operation, **asked)
    assert (page["ScannedCount"], "LastEvaluatedKey" in page) == (4, False)
    fill(pairs, MEGABYTE + 1)
    page = done(pairs, operation, **asked)
    assert "LastEvaluatedKey" in page
    rest = done(pairs, operation, **asked, ExclusiveStartKey=page["LastEvaluatedKey"])
    assert page["ScannedCount"] + rest["ScannedCount"] == 4
    assert "LastEvaluatedKey" not in rest


def test_a_limit_counts_items_looked_at_and_says_that_it_stopped(pairs):
    names = fill(pairs, 4000)
    asked = {"TableName": "pairs", **READS["Query with a filter"]}
    for limit, stopped in ((3, True), (4, True), (5, False)):
        page = done(pairs, "Query", **asked, Limit=limit)
        assert (page["Count"], page["ScannedCount"]) == (0, min(limit, len(names)))
        assert ("LastEvaluatedKey" in page) is stopped
    refused(pairs, "imit", "Query", **asked, Limit=0)


# Batches (rule 29)


def test_a_batch_reads_100_items_over_all_its_tables(orders):
    orders.table("second")
    wanted = [{"pk": {"S": str(at)}} for at in range(60)]
    asked = {"orders": {"Keys": wanted}, "second": {"Keys": wanted[:40]}}
    done(orders, "BatchGetItem", RequestItems=asked)
    asked["second"]["Keys"] = wanted[:41]
    refused(orders, "", "BatchGetItem", RequestItems=asked)


def test_a_batch_writes_25_items_over_all_its_tables(orders):
    orders.table("second")
    puts = [{"PutRequest": {"Item": {"pk": {"S": str(at)}}}} for at in range(13)]
    deletes = [{"DeleteRequest": {"Key": {"pk": {"S": str(at)}}}} for at in range(13)]
    done(orders, "BatchWriteItem", RequestItems={"orders": puts, "second": deletes[:12]})
    refused(orders, "", "BatchWriteItem", RequestItems={"orders": puts, "second": deletes})


def test_a_batch_answers_16_mb_and_leaves_the_rest(orders):
    """40 items of 400 KB are 16,384,000 bytes. A 41st with the rest of 16 MB fits, and with one more byte does not."""
    for at in range(40):
        done(orders, "PutItem", **TABLE, Item=sized(ITEM, f"{at:02}"))
    left = 16 * MEGABYTE - 40 * ITEM
    wanted = [{"pk": {"S": f"{at:02}"}} for at in range(41)]
    for size, unprocessed in ((left, {}), (left + 1, {"orders": {"Keys": [wanted[40]]}})):
        done(orders, "PutItem", **TABLE, Item=sized(size, "40"))
        answer = done(orders, "BatchGetItem", RequestItems={"orders": {"Keys": wanted}})
        assert answer["UnprocessedKeys"] == unprocessed
        assert len(answer["Responses"]["orders"]) == 41 - len(unprocessed)


# Transactions (rule 34)


@pytest.mark.parametrize("operation", ["TransactWriteItems", "TransactGetItems"])
def test_a_transaction_has_100_actions(orders, operation):
    if operation == "TransactGetItems":
        actions = [{"Get": {**TABLE, "Key": {"pk": {"S": str(at)}}}} for at in range(101)]
    else:
        actions = [{"Put": {**TABLE, "Item": {"pk": {"S": str(at)}}}} for at in range(101)]
    done(orders, operation, TransactItems=actions[:100])
    refused(orders, "Member must have length less than or equal to 100", operation, TransactItems=actions)
    refused(orders, "Member must have length greater than or equal to 1", operation, TransactItems=[])


def test_a_transaction_writes_4_mb(orders):
    """The requested items count: ten of 400 KB and one of the rest of 4 MB (4,194,304) fit."""
    left = 4 * MEGABYTE - 10 * ITEM
    puts = [{"Put": {**TABLE, "Item": sized(ITEM, f"{at:02}")}} for at in range(10)]
    done(orders, "TransactWriteItems", TransactItems=[*puts, {"Put": {**TABLE, "Item": sized(left, "10")}}])
    answer = orders.call(
        "TransactWriteItems", {"TransactItems": [*puts, {"Put": {**TABLE, "Item": sized(left + 1, "10")}}]}
    )
    assert orders.last.status == 400, answer


def test_a_transaction_reads_4_mb(orders):
    """API reference, TransactGetItems: refused where "the aggregate size of the items in the transaction exceeded 4
    MB".

    The sizes are those of the stored items, because a projection reads them too. The words are DynamoDB Local 2.6.1's.
    """
    left = 4 * MEGABYTE - 10 * ITEM
    for at in range(10):
        done(orders, "PutItem", **TABLE, Item=sized(ITEM, f"{at:02}"))
    for size, is_read in ((left, True), (left + 1, False)):
        done(orders, "PutItem", **TABLE, Item=sized(size, "10"))
        names = [f"{at:02}" for at in range(11)]
        gets = [{"Get": {**TABLE, "Key": {"pk": {"S": name}}}} for name in names]
        narrow = [{"Get": {**get["Get"], "ProjectionExpression": "pk"}} for get in gets]
        selects = [{"Statement": f"SELECT pk FROM orders WHERE pk = '{name}'"} for name in names]
        for operation, given in (
            ("TransactGetItems", {"TransactItems": gets}),
            ("TransactGetItems", {"TransactItems": narrow}),
            ("TransactGetItems", {"TransactItems": [*reversed(gets)]}),
            ("ExecuteTransaction", {"TransactStatements": selects}),
        ):
            if is_read:
                assert len(done(orders, operation, **given)["Responses"]) == 11
            else:
                refused(orders, "Payload in response is too large.", operation, **given)


def test_a_transaction_of_statements_writes_4_mb(orders):
    """As TransactWriteItems counts it: the items that are put, and elsewhere the key and the values that are given."""
    left = 4 * MEGABYTE - 10 * ITEM

    def inserts(names, last):
        statement = "INSERT INTO orders VALUE {'pk': ?, 'ballast': ?}"
        items = [sized(ITEM, name) for name in names] + [sized(last, "l")]
        return [{"Statement": statement, "Parameters": [item["pk"], item["ballast"]]} for item in items]

    def updates(last):
        statement = "UPDATE orders SET ballast = ? WHERE pk = ?"
        # A key is measured with its attribute's name, a value that is set without it (rule 34).
        sizes = [ITEM - 64] * 10 + [last + 640]
        return [
            {"Statement": statement, "Parameters": [{"S": "x" * (size - 3)}, {"S": chr(ord("a") + at)}]}
            for at, size in enumerate(sizes)
        ]

    done(orders, "ExecuteTransaction", TransactStatements=inserts("abcdefghij", left))
    words = "Transaction payload size cannot exceed 4 MB"
    refused(orders, words, "ExecuteTransaction", TransactStatements=inserts("0123456789", left + 1))
    done(orders, "PutItem", **TABLE, Item={"pk": {"S": "k"}})
    done(orders, "ExecuteTransaction", TransactStatements=updates(left))
    refused(orders, words, "ExecuteTransaction", TransactStatements=updates(left + 1))


def test_a_transaction_token_has_36_characters(orders):
    actions = transacted(Put={"Item": KEY})
    for token, status in (("t", 200), ("t" * 36, 200), ("t" * 37, 400), ("", 400)):
        orders.call("TransactWriteItems", {"TransactItems": actions, "ClientRequestToken": token})
        assert orders.last.status == status


# Requests and segments (rules 6, 28)


def test_a_request_has_16_mb(orders):
    filler = {**TABLE, "Key": KEY, "AttributesToGet": ["x"], "Comment": ""}
    length = len(orjson.dumps(filler))
    for size, status in ((16 * MEGABYTE, 200), (16 * MEGABYTE + 1, 413)):
        answer = orders.call("GetItem", {**filler, "Comment": "x" * (size - length)})
        assert orders.last.status == status, answer


def test_a_scan_has_a_million_segments(orders):
    done(orders, "Scan", **TABLE, Segment=999_999, TotalSegments=1_000_000)
    refused(orders, "less than or equal to 1000000", "Scan", **TABLE, Segment=0, TotalSegments=1_000_001)
    refused(orders, "is not less than TotalSegments", "Scan", **TABLE, Segment=4, TotalSegments=4)
    refused(orders, "greater than or equal to 1", "Scan", **TABLE, Segment=0, TotalSegments=0)
