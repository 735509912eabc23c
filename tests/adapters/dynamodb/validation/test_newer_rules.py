"""Rules that the service has changed since dynalite recorded it. refusals.txt has the texts."""

from __future__ import annotations

import pytest

from tests.adapters.dynamodb.tables.test_tables import INDEX, definitions, keys, with_index
from tests.adapters.dynamodb.tables.test_update_table import adding

NAME = {"TableName": "orders"}


def test_a_table_on_demand_gets_an_index(service):
    """nubo-db/dynamodb-conformance, tests/tier2/updateTable/gsi.test.ts: no throughput is given."""
    service.table()
    service.update(**adding())
    [index] = service.described()["GlobalSecondaryIndexes"]
    assert index["IndexStatus"] in ("CREATING", "ACTIVE")


def test_an_arn_stands_for_a_name(service):
    """test_item.py test_item_operations_arn of ScyllaDB; API reference, TableName, since 2024."""
    arn = service.table()["TableArn"]
    key = {"pk": {"S": "k"}}
    service.call("PutItem", {"TableName": arn, "Item": key})
    assert service.call("GetItem", {"TableName": arn, "Key": key})["Item"] == key
    assert service.call("Scan", {"TableName": arn})["Count"] == 1
    assert list(service.call("BatchGetItem", {"RequestItems": {arn: {"Keys": [key]}}})["Responses"]) == [arn]


def test_keys_of_an_index_have_several_attributes(service):
    """ "What's New", November 2025: up to four attributes of each role."""
    names = [f"h{n}" for n in range(4)] + [f"r{n}" for n in range(4)]
    schema = keys(*(f"{name}*" if name[0] == "h" else name for name in names))
    service.table(
        AttributeDefinitions=definitions(pk="S", **dict.fromkeys(names, "S")),
        GlobalSecondaryIndexes=[{"IndexName": "wide", **INDEX, "KeySchema": schema}],
    )
    item = {name: {"S": name} for name in ("pk", *names)}
    service.call("PutItem", {**NAME, "Item": item})
    conditions = {name: {"ComparisonOperator": "EQ", "AttributeValueList": [item[name]]} for name in names}
    assert service.call("Query", {**NAME, "IndexName": "wide", "KeyConditions": conditions})["Count"] == 1


@pytest.mark.parametrize(
    ("operation", "given"),
    [
        # nubo-db/dynamodb-conformance, tests/tier3/error-messages/scan.test.ts
        ("Scan", {"Segment": 0}),
        # API reference, TotalSegments: at most 1,000,000
        ("Scan", {"Segment": 0, "TotalSegments": 1_000_001}),
        # paritysuite, ten regions, October 2026
        ("DeleteItem", {"Key": {"pk": {"S": "k"}}, "Expected": {}, "ConditionalOperator": "AND"}),
        (
            "DeleteItem",
            {
                "Key": {"pk": {"S": "k"}},
                "ConditionExpression": "attribute_exists(pk)",
                "ConditionalOperator": "AND",
            },
        ),
        # ack-api-quirks 127, October 2026
        ("CreateTable", {"AttributeDefinitions": definitions(pk="S", g="S"), "KeySchema": keys("pk*")}),
    ],
)
def test_requests_that_the_service_refuses_today_are_refused(service, operation, given):
    more = {}
    if operation == "CreateTable":
        more = with_index() | {"AttributeDefinitions": definitions(pk="S", g="S", spare="S")}
        more |= {"BillingMode": "PAY_PER_REQUEST"}
    else:
        service.table()
    assert service.error(operation, {**NAME, **given, **more})[0] == "ValidationException"


def test_documents_are_compared_by_filters_too(service):
    """test_query_filter.py of ScyllaDB: EQ takes every type."""
    service.table()
    service.call("PutItem", {**NAME, "Item": {"pk": {"S": "k"}, "m": {"M": {"a": {"S": "x"}}}}})
    condition = {"ComparisonOperator": "EQ", "AttributeValueList": [{"M": {"a": {"S": "x"}}}]}
    assert service.call("Scan", {**NAME, "ScanFilter": {"m": condition}})["Count"] == 1
