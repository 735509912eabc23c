"""Contributor insights: their description and their counts.

States and texts: ack-api-quirks (live service, October 2026). Shapes: botocore 1.44.5.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.adapters.dynamodb.features.insights.contributors import COUNTERS, SHOWN, SpaceSaving
from tablegate.gateway.observability.metrics import exposition
from tests.adapters.dynamodb.tables.test_tables import with_index

ON = {"TableName": "orders", "ContributorInsightsAction": "ENABLE"}
OFF = {"TableName": "orders", "ContributorInsightsAction": "DISABLE"}


def counted(table: str) -> dict[tuple[str, str, str, str], float]:
    """Return the counts in /metrics: (index, rule, partition, sort) -> count."""
    found = {}
    for line in exposition()[0].decode().splitlines():
        if line.startswith("tablegate_contributor_requests{") and f'table="{table}"' in line:
            labels = dict(part.split("=") for part in line[line.index("{") + 1 : line.index("}")].split(","))
            key = tuple(labels[name].strip('"') for name in ("index", "rule", "partition", "sort"))
            found[key] = float(line.rpartition(" ")[2])
    return found


def test_a_table_that_never_had_them_has_nothing_else_to_tell(service):
    service.table()
    answer = service.call("DescribeContributorInsights", {"TableName": "orders"})
    assert answer == {"TableName": "orders", "ContributorInsightsStatus": "DISABLED"}
    assert service.call("UpdateContributorInsights", OFF) == answer


def test_insights_need_a_table(service):
    given = {"TableName": "orders"}
    assert service.error("DescribeContributorInsights", given)[0] == "ResourceNotFoundException"
    service.table()
    assert service.call("ListContributorInsights") == {"ContributorInsightsSummaries": []}


def test_insights_of_indexes_can_be_requested(service):
    service.table(**with_index())
    given = {"TableName": "orders", "IndexName": "by-g"}
    assert service.call("DescribeContributorInsights", given)["IndexName"] == "by-g"
    given["IndexName"] = "nobody"
    assert service.error("DescribeContributorInsights", given)[0] == "ResourceNotFoundException"


def test_contributor_insights_are_switched_on_and_off(service):
    service.table()
    mode = "ACCESSED_AND_THROTTLED_KEYS"
    assert service.call("UpdateContributorInsights", ON) == {
        "TableName": "orders", "ContributorInsightsStatus": "ENABLING", "ContributorInsightsMode": mode,
    }  # fmt: skip
    at = service.clock.ms
    service.clock.ms += 1000
    assert service.call("UpdateContributorInsights", ON)["ContributorInsightsStatus"] == "ENABLED"
    assert service.call("DescribeContributorInsights", {"TableName": "orders"}) == {
        "TableName": "orders",
        "ContributorInsightsStatus": "ENABLED",
        "ContributorInsightsRuleList": [
            f"DynamoDBContributorInsights-{kind}-orders-{at}" for kind in ("PKC", "PKT")
        ],
        "LastUpdateDateTime": at / 1000,
        "ContributorInsightsMode": mode,
    }
    assert service.call("UpdateContributorInsights", OFF)["ContributorInsightsStatus"] == "DISABLING"
    shown = service.call("DescribeContributorInsights", {"TableName": "orders"})
    assert shown == {
        "TableName": "orders",
        "ContributorInsightsStatus": "DISABLED",
        "LastUpdateDateTime": (at + 1000) / 1000,
        "ContributorInsightsMode": mode,
    }


def test_the_control_plane_may_take_its_time(delayed):
    delayed.table()
    assert "TableStatus must be ACTIVE" in delayed.error("UpdateContributorInsights", ON)[1]
    delayed.clock.ms += 10_000
    delayed.call("UpdateContributorInsights", ON)
    asked = {"TableName": "orders"}
    delayed.clock.ms += 9_999
    assert delayed.call("DescribeContributorInsights", asked)["ContributorInsightsStatus"] == "ENABLING"
    delayed.clock.ms += 1
    assert delayed.call("DescribeContributorInsights", asked)["ContributorInsightsStatus"] == "ENABLED"


def test_another_mode_keeps_the_names_of_the_rules(service):
    at = service.clock.ms
    service.table(**with_index())
    service.call("UpdateContributorInsights", {**ON, "IndexName": "by-g"})
    service.clock.ms += 5_000
    narrow = {**ON, "IndexName": "by-g", "ContributorInsightsMode": "THROTTLED_KEYS"}
    assert service.call("UpdateContributorInsights", narrow)["ContributorInsightsStatus"] == "ENABLING"
    shown = service.call("DescribeContributorInsights", {"TableName": "orders", "IndexName": "by-g"})
    assert shown["ContributorInsightsRuleList"] == [f"DynamoDBContributorInsights-PKT-orders-by-g-{at}"]


def test_only_global_indexes_have_contributor_insights(service):
    service.table(**with_index())
    code, text = service.error("UpdateContributorInsights", {**ON, "IndexName": "nobody"})
    assert (code, text) == (
        "ResourceNotFoundException",
        "Requested resource not found: Index: nobody not found for table: orders",
    )
    code, text = service.error("UpdateContributorInsights", {**ON, "TableName": "nobody"})
    assert (code, text) == (
        "ResourceNotFoundException",
        "Requested resource not found: Table: nobody not found",
    )


def test_the_list_has_tables_before_their_indexes_and_pages(service):
    for name in ("orders", "others", "unseen"):
        service.table(name, **with_index())
    for name, index in (("orders", "by-g"), ("orders", ""), ("others", "")):
        asked = {**ON, "TableName": name, **({"IndexName": index} if index else {})}
        service.call("UpdateContributorInsights", asked)
    names, token = [], None
    while True:
        asked = {"MaxResults": 1, **({"NextToken": token} if token else {})}
        answer = service.call("ListContributorInsights", asked)
        assert len(answer["ContributorInsightsSummaries"]) <= 1
        names += [
            (each["TableName"], each.get("IndexName")) for each in answer["ContributorInsightsSummaries"]
        ]
        token = answer.get("NextToken")
        if token is None:
            break
    assert names == [("orders", None), ("orders", "by-g"), ("others", None)]
    of_one = service.call("ListContributorInsights", {"TableName": "others"})
    assert [each["TableName"] for each in of_one["ContributorInsightsSummaries"]] == ["others"]
    assert service.error("ListContributorInsights", {"TableName": "nobody"})[0] == "ResourceNotFoundException"
    assert service.error("ListContributorInsights", {"MaxResults": 101})[0] == "ValidationException"


def test_keys_are_counted_where_insights_are_on(service):
    service.table("counted")
    item = {"pk": {"S": "a"}}
    service.call("PutItem", {"TableName": "counted", "Item": item})
    assert counted("counted") == {}
    service.call("UpdateContributorInsights", {**ON, "TableName": "counted"})
    service.call("PutItem", {"TableName": "counted", "Item": item})
    service.call("GetItem", {"TableName": "counted", "Key": {"pk": {"S": "b"}}})
    service.call("BatchGetItem", {"RequestItems": {"counted": {"Keys": [item, {"pk": {"S": "b"}}]}}})
    service.call("BatchWriteItem", {"RequestItems": {"counted": [{"PutRequest": {"Item": item}}]}})
    service.call("TransactGetItems", {"TransactItems": [{"Get": {"TableName": "counted", "Key": item}}]})
    service.call("TransactWriteItems", {"TransactItems": [{"Put": {"TableName": "counted", "Item": item}}]})
    values = {":a": {"S": "a"}}
    query = {"KeyConditionExpression": "pk = :a", "ExpressionAttributeValues": values}
    service.call("Query", {"TableName": "counted", **query})
    assert counted("counted") == {("", "PKC", "a", ""): 6, ("", "PKC", "b", ""): 2}
    service.call("UpdateContributorInsights", {**OFF, "TableName": "counted"})
    service.call("PutItem", {"TableName": "counted", "Item": item})
    assert counted("counted") == {}


def test_an_index_counts_its_own_keys(service):
    service.table("indexed", **with_index())
    on = {**ON, "TableName": "indexed", "IndexName": "by-g"}
    service.call("UpdateContributorInsights", on)
    service.call("PutItem", {"TableName": "indexed", "Item": {"pk": {"S": "a"}, "g": {"S": "green"}}})
    service.call("PutItem", {"TableName": "indexed", "Item": {"pk": {"S": "b"}}})
    assert counted("indexed") == {("by-g", "PKC", "green", ""): 1}


def test_a_dropped_index_has_no_contributor_insights(service):
    service.table(**with_index())
    service.call("UpdateContributorInsights", {**ON, "IndexName": "by-g"})
    service.update(GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by-g"}}])
    assert service.call("ListContributorInsights") == {"ContributorInsightsSummaries": []}


def test_an_index_that_is_made_again_has_none(service):
    service.table("again", **with_index())
    service.call("UpdateContributorInsights", {**ON, "TableName": "again", "IndexName": "by-g"})
    service.update("again", GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by-g"}}])
    create = with_index()["GlobalSecondaryIndexes"][0]
    definitions = with_index()["AttributeDefinitions"]
    updates = [{"Create": create}]
    service.update("again", AttributeDefinitions=definitions, GlobalSecondaryIndexUpdates=updates)
    service.call("PutItem", {"TableName": "again", "Item": {"pk": {"S": "a"}, "g": {"S": "green"}}})
    assert counted("again") == {}


@pytest.mark.parametrize("counters", [1, 5, COUNTERS])
@given(keys=st.lists(st.integers(0, 300), max_size=400))
def test_a_sketch_never_counts_too_few_and_little_too_many(counters, keys):
    """Metwally et al.: each count is right, or too high by at most all there was divided by the counters."""
    sketch = SpaceSaving(counters)
    for key in keys:
        sketch.add((str(key),))
    truth = Counter(str(key) for key in keys)
    found = dict(sketch.top(counters))
    assert len(found) <= counters
    for (key,), count in found.items():
        assert truth[key] <= count <= truth[key] + len(keys) / counters
    assert all(((key,) in found) for key, count in truth.items() if count > len(keys) / counters)


def test_a_sketch_finds_the_heavy_ones_among_many():
    chosen = random.Random(1)
    sketch = SpaceSaving()
    for _ in range(20_000):
        key = chosen.randrange(5) if chosen.random() < 0.5 else chosen.randrange(100_000)
        sketch.add((str(key),))
    assert {key for (key,), _ in sketch.top(5)} == {"0", "1", "2", "3", "4"}
    assert len(sketch.top()) == SHOWN
