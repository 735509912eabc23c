"""Reads as complete requests: the end of a page, and the order in which the clauses are checked.

Sources: dynalite getItem.js, query.js and scan.js (recorded from the service); docs/protocols/dynamodb.md rules 20, 27.
"""

from __future__ import annotations

from typing import Any

import pytest

from tablegate.adapters.dynamodb.expressions.projections import in_their_order
from tests.adapters.dynamodb.client import DynamoDBService

MEGABYTE = 1024 * 1024
SCALARS = "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: {}"


def schema(*names: str) -> list[dict[str, str]]:
    return [
        {"AttributeName": name, "KeyType": role} for name, role in zip(names, ("HASH", "RANGE"), strict=False)
    ]


@pytest.fixture
def pairs(service: DynamoDBService) -> DynamoDBService:
    """The service with `pairs`: key p, s, and a global index on g with projection KEYS_ONLY."""
    service.table(
        "pairs",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in "psg"],
        KeySchema=schema("p", "s"),
        GlobalSecondaryIndexes=[
            {"IndexName": "on-g", "KeySchema": schema("g"), "Projection": {"ProjectionType": "KEYS_ONLY"}}
        ],
    )
    return service


def refused(service: DynamoDBService, operation: str, **given: Any) -> str:
    code, text = service.error(operation, {"TableName": "pairs", **given})
    assert code == "ValidationException"
    return text


def query(**more: Any) -> dict[str, Any]:
    values = {":p": {"S": "p"}, **more.pop("values", {})}
    return {"KeyConditionExpression": "p = :p", "ExpressionAttributeValues": values, **more}


# Attributes that a filter can use


def test_a_query_is_filtered_by_what_the_index_projects(pairs: DynamoDBService) -> None:
    """dynoxide's captures (eu-west-2, August 2026) have it for PartiQL. The rule for a Query has the same words."""
    given = query(IndexName="on-g", values={":x": {"S": "x"}})
    given["KeyConditionExpression"] = "g = :p"
    text = "One or more parameter values were invalid: Secondary index on-g does not project one or more filter attributes: "
    assert refused(pairs, "Query", **given, FilterExpression="b = :x OR size(a.x[0]) > :x") == text + "[a, b]"
    hidden = {
        "FilterExpression": "a = :x AND s = :x",
        "ProjectionExpression": "b",
        "Select": "SPECIFIC_ATTRIBUTES",
    }
    assert refused(pairs, "Query", **given, **hidden) == text + "[a]"
    conditions = {"g": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "g"}]}}
    legacy = {"KeyConditions": conditions, "QueryFilter": {"a": {"ComparisonOperator": "NULL"}}}
    assert refused(pairs, "Query", IndexName="on-g", **legacy) == text + "[a]"
    assert pairs.call("Query", {"TableName": "pairs", **given, "FilterExpression": "s = :x"})["Count"] == 0


def test_a_scan_finds_what_the_index_does_not_project_missing(pairs: DynamoDBService) -> None:
    pairs.call("PutItem", {"TableName": "pairs", "Item": {name: {"S": name} for name in "psga"}})
    given = {"TableName": "pairs", "IndexName": "on-g", "FilterExpression": "attribute_exists(a)"}
    assert (found := pairs.call("Scan", given))["Count"] == 0 and found["ScannedCount"] == 1


def test_names_are_listed_in_the_services_order() -> None:
    assert in_their_order(["b", "a"]) == ["a", "b"]
    assert in_their_order(["zz", "aa", "mm"]) == ["zz", "aa", "mm"]


@pytest.mark.parametrize("index", ["on-g", None])
def test_a_query_for_an_empty_key_names_the_index(pairs: DynamoDBService, index: str | None) -> None:
    """praetorian-inc/chariot-ui issue 353 shows the service's answer for an index (July 2024)."""
    empty = "The AttributeValue for a key attribute cannot contain an empty string value. "
    name = "p" if index is None else "g"
    given = {
        "KeyConditionExpression": f"{name} = :empty",
        "ExpressionAttributeValues": {":empty": {"S": ""}},
        **({} if index is None else {"IndexName": index}),
    }
    told = "One or more parameter values are not valid. "
    if index is None:
        told += empty + "Key: p"
    else:
        told += f"A value specified for a secondary index key is not supported. {empty}IndexName: on-g, IndexKey: g"
    assert refused(pairs, "Query", **given) == told


# End of a page


@pytest.mark.parametrize("operation", ["Query", "Scan"])
def test_the_item_that_reaches_a_megabyte_is_the_last_of_its_page(pairs, operation):
    """dynalite query.js "should return all if just under limit": with it the page consumes 133.5 units, so it is over."""
    given = {"TableName": "pairs", **(query() if operation == "Query" else {})}
    for name, size in (("1", 400_000), ("2", 400_000), ("3", 248_575), ("4", 400_000), ("5", 10)):
        ballast = "x" * (size - len("pp" + "s" + name + "b"))
        item = {"p": {"S": "p"}, "s": {"S": name}, "b": {"S": ballast}}
        pairs.call("PutItem", {"TableName": "pairs", "Item": item})
        assert pairs.last.status == 200
    answer = pairs.call(operation, {**given, "Select": "COUNT", "ReturnConsumedCapacity": "TOTAL"})
    assert (answer["Count"], answer["LastEvaluatedKey"]["s"]) == (4, {"S": "4"})
    assert answer["ConsumedCapacity"]["CapacityUnits"] == 177.0
    # One byte more in the third, and the fourth is another page's.
    pairs.call(
        "UpdateItem",
        {
            "TableName": "pairs",
            "Key": {"p": {"S": "p"}, "s": {"S": "3"}},
            "UpdateExpression": "SET c = :c",
            "ExpressionAttributeValues": {":c": {"NULL": True}},
        },
    )
    answer = pairs.call(operation, {**given, "Select": "COUNT"})
    assert (answer["Count"], answer["LastEvaluatedKey"]["s"]) == (3, {"S": "3"})
    start = answer["LastEvaluatedKey"]
    answer = pairs.call(operation, {**given, "Select": "COUNT", "ExclusiveStartKey": start})
    assert answer == {"Count": 2, "ScannedCount": 2}


# Paths into keys


@pytest.mark.parametrize("path", ["p.x", "p[0]", "s.x", "g[1]"])
@pytest.mark.parametrize("operation", ["GetItem", "BatchGetItem", "TransactGetItems", "Query", "Scan"])
def test_no_projection_leads_into_a_key_attribute(pairs, operation, path):
    told = SCALARS.format(("IndexKey: " if path[0] == "g" else "Key: ") + path[0])
    key, asked = {"p": {"S": "p"}, "s": {"S": "s"}}, {"ProjectionExpression": path}
    match operation:
        case "GetItem":
            given = {"TableName": "pairs", "Key": key, **asked}
        case "BatchGetItem":
            given = {"RequestItems": {"pairs": {"Keys": [key], **asked}}}
        case "TransactGetItems":
            given = {"TransactItems": [{"Get": {"TableName": "pairs", "Key": key, **asked}}]}
        case "Query":
            given = {"TableName": "pairs", **query(), **asked}
        case _:
            given = {"TableName": "pairs", **asked}
    assert pairs.error(operation, given) == ("ValidationException", told)


def test_no_filter_leads_into_a_key_attribute(pairs):
    assert refused(pairs, "Scan", FilterExpression="attribute_exists(p.x)") == SCALARS.format("Key: p")
    assert refused(pairs, "Scan", FilterExpression="attribute_exists(g[0])") == SCALARS.format("IndexKey: g")
    told = SCALARS.format("IndexKey: g")
    assert refused(pairs, "Query", **query(FilterExpression="attribute_exists(g[0])")) == told


def test_only_a_transaction_leaves_out_an_item_without_projected_attributes(pairs):
    """Against the service: ExtendDB #74 and #81 (TransactGetItems), dynoxide #53 (GetItem and BatchGetItem), May 2026."""
    key = {"p": {"S": "p"}, "s": {"S": "s"}}
    pairs.call("PutItem", {"TableName": "pairs", "Item": {**key, "m": {"M": {"x": {"S": "x"}}}}})
    for path in ("absent", "m.absent", "m.x[0]"):
        asked = {"ProjectionExpression": path}
        get = {"TableName": "pairs", "Key": key, **asked}
        answer = pairs.call("TransactGetItems", {"TransactItems": [{"Get": get}]})
        assert answer["Responses"] == [{}]
        assert pairs.call("GetItem", get)["Item"] == {}
        answer = pairs.call("BatchGetItem", {"RequestItems": {"pairs": {"Keys": [key], **asked}}})
        assert answer["Responses"] == {"pairs": [{}]}


# The order of the clauses


def test_all_expressions_are_parsed_before_the_key_condition_is_checked(pairs):
    key_condition = {
        "KeyConditionExpression": "attribute_type(p, :p)",
        "ExpressionAttributeValues": {":p": {"S": "N"}},
    }
    empty = "Invalid {}: The expression can not be empty;"
    both = {"FilterExpression": "", "ProjectionExpression": ""}
    assert refused(pairs, "Query", **key_condition, **both) == empty.format("FilterExpression")
    both["FilterExpression"] = "x > y"
    assert refused(pairs, "Query", **key_condition, **both) == empty.format("ProjectionExpression")
    both["ProjectionExpression"] = "x"
    told = "Invalid operator used in KeyConditionExpression: attribute_type"
    assert refused(pairs, "Query", **key_condition, **both) == told


def test_a_filter_on_keys_comes_before_select_and_paths_into_keys_after_it(pairs):
    given = {
        "IndexName": "on-g",
        "Select": "ALL_ATTRIBUTES",
        "KeyConditionExpression": "g = :g",
        "ExpressionAttributeValues": {":g": {"S": "g"}},
    }
    told = "Filter Expression can only contain non-primary key attributes: Primary key attribute: g"
    assert refused(pairs, "Query", **given, FilterExpression="attribute_exists(g)") == told
    told = "because its projection type is not ALL"
    assert told in refused(pairs, "Query", **given, FilterExpression="attribute_exists(p.x)")
