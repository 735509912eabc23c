"""Findings of table-subresources.md on contributor insights. There are no rules of CloudWatch here, and no quota of them."""

from __future__ import annotations

import pytest

from tests.adapters.dynamodb.features.backups.test_backups import background, ok
from tests.adapters.dynamodb.measured.conftest import BY_A, with_index
from tests.adapters.dynamodb.measured.recorded import ENABLE, OK, check, not_found
from tests.adapters.dynamodb.measured.test_indexes import DELETE_A, ORDERS, defined, index, keys, updates

BOTH = "ACCESSED_AND_THROTTLED_KEYS"
OF_INDEX = {"IndexName": "gsi1"}
DISABLE = {"ContributorInsightsAction": "DISABLE"}
NEVER_HAD = {"TableName": "orders", "ContributorInsightsStatus": "DISABLED"}


def described(service, **place):
    return ok(service, "DescribeContributorInsights", **ORDERS, **place)


def status(service, **place):
    return described(service, **place)["ContributorInsightsStatus"]


def update(service, given, **place):
    return ok(service, "UpdateContributorInsights", **ORDERS, **given, **place)


def listed(service, **given):
    """(table, index, status) of a list's only page."""
    answered = ok(service, "ListContributorInsights", **given)
    assert "NextToken" not in answered
    return [entry(each) for each in answered["ContributorInsightsSummaries"]]


def entry(summary):
    assert summary["ContributorInsightsMode"] == BOTH
    return summary["TableName"], summary.get("IndexName"), summary["ContributorInsightsStatus"]


def pages(service, **given):
    """Return the contents of the pages of a list."""
    found, token = [], {}
    while True:
        answered = ok(service, "ListContributorInsights", **given, **token)
        found.append([entry(each) for each in answered["ContributorInsightsSummaries"]])
        if "NextToken" not in answered:
            return found
        token = {"NextToken": answered["NextToken"]}


@pytest.fixture
def slow(delayed):
    """`orders` with an index, on a control plane that takes ten seconds."""
    delayed.table(**with_index())
    delayed.clock.ms += 20_000
    return delayed


def test_contributor_insights_are_enabled_and_disabled_table_090_table_089(slow):
    assert described(slow) == NEVER_HAD
    assert listed(slow, **ORDERS) == []
    answered = update(slow, ENABLE)
    assert answered == {**NEVER_HAD, "ContributorInsightsStatus": "ENABLING", "ContributorInsightsMode": BOTH}
    assert status(slow) == "ENABLING"
    assert slow.described()["TableStatus"] == "ACTIVE"
    slow.clock.ms += 10_000
    assert status(slow) == "ENABLED"
    assert update(slow, DISABLE)["ContributorInsightsStatus"] == "DISABLING"
    at = slow.clock.ms / 1000
    assert status(slow) == "DISABLING"
    slow.clock.ms += 10_000
    assert described(slow) == {**NEVER_HAD, "LastUpdateDateTime": at, "ContributorInsightsMode": BOTH}
    assert update(slow, ENABLE)["ContributorInsightsStatus"] == "ENABLING"


def test_requests_that_change_nothing_are_accepted_table_091_table_089_table_341(slow):
    assert update(slow, DISABLE) == NEVER_HAD
    update(slow, ENABLE)
    slow.clock.ms += 10_000
    before = described(slow)
    assert update(slow, ENABLE)["ContributorInsightsStatus"] == "ENABLED"
    assert described(slow) == before
    update(slow, DISABLE)
    slow.clock.ms += 10_000
    assert update(slow, DISABLE)["ContributorInsightsStatus"] == "DISABLED"
    assert status(slow) == "DISABLED"


def test_another_mode_keeps_the_names_of_the_rules_that_stay_table_341(slow):
    update(slow, ENABLE)
    slow.clock.ms += 10_000
    rules = described(slow)["ContributorInsightsRuleList"]
    throttled = {**ENABLE, "ContributorInsightsMode": "THROTTLED_KEYS"}
    assert update(slow, throttled)["ContributorInsightsStatus"] == "ENABLING"
    slow.clock.ms += 10_000
    shown = described(slow)
    assert (shown["ContributorInsightsStatus"], shown["ContributorInsightsMode"]) == (
        "ENABLED",
        "THROTTLED_KEYS",
    )
    assert shown["ContributorInsightsRuleList"] == [rule for rule in rules if "-PKT-" in rule]


def test_rules_of_one_and_of_two_keys_table_093(service):
    service.table(
        AttributeDefinitions=defined("pk", "sk", "a"),
        KeySchema=keys("pk", "-sk"),
        GlobalSecondaryIndexes=[BY_A],
    )
    update(service, ENABLE)
    update(service, ENABLE, **OF_INDEX)
    first = described(service)["ContributorInsightsRuleList"]
    assert [rule.rpartition("-")[0] for rule in first] == [
        f"DynamoDBContributorInsights-{kind}-orders" for kind in ("PKC", "PKT", "SKC", "SKT")
    ]
    of_index = described(service, **OF_INDEX)["ContributorInsightsRuleList"]
    assert [rule.rpartition("-")[0] for rule in of_index] == [
        f"DynamoDBContributorInsights-{kind}-orders-gsi1" for kind in ("PKC", "PKT")
    ]
    update(service, DISABLE)
    service.clock.ms += 1_000
    update(service, ENABLE)
    again = described(service)["ContributorInsightsRuleList"]
    assert len(again) == 4
    assert not set(again) & set(first)


def test_tables_and_global_indexes_have_them_apart_table_094(slow):
    update(slow, ENABLE)
    update(slow, ENABLE, **OF_INDEX)
    both = [("orders", None, "ENABLING"), ("orders", "gsi1", "ENABLING")]
    assert listed(slow, **ORDERS) == both
    slow.clock.ms += 10_000
    update(slow, DISABLE)
    assert (status(slow), status(slow, **OF_INDEX)) == ("DISABLING", "ENABLED")


@pytest.mark.parametrize("name", ["lsi1", "nope"])
def test_other_indexes_have_no_insights_table_094(service, name):
    service.table(
        AttributeDefinitions=defined("pk", "sk", "a"),
        KeySchema=keys("pk", "-sk"),
        LocalSecondaryIndexes=[index("lsi1", keys("pk", "-a"))],
    )
    recorded = not_found(f"Index: {name} not found for table: orders")
    place = {**ORDERS, "IndexName": name}
    check(service, "DescribeContributorInsights", place, recorded)
    check(service, "UpdateContributorInsights", {**place, **ENABLE}, recorded)


def test_a_table_that_is_missing_has_no_list_table_094(service):
    missing = not_found("Table: missing not found")
    check(service, "ListContributorInsights", {"TableName": "missing"}, missing)


def test_lists_show_all_insights_that_are_not_disabled_table_095_table_343(slow):
    for name in ("other", "third"):
        slow.table(name)
    slow.clock.ms += 20_000
    for name in ("orders", "other", "third"):
        ok(slow, "UpdateContributorInsights", TableName=name, **ENABLE)
    update(slow, ENABLE, **OF_INDEX)
    slow.clock.ms += 10_000
    others = [(name, None, "ENABLED") for name in ("other", "third")]
    of_index = ("orders", "gsi1", "ENABLED")
    update(slow, DISABLE)
    assert listed(slow, **ORDERS) == [("orders", None, "DISABLING"), of_index]
    assert listed(slow) == [("orders", None, "DISABLING"), of_index, *others]
    slow.clock.ms += 10_000
    assert listed(slow, **ORDERS) == [of_index]
    assert listed(slow, MaxResults=100) == [of_index, *others]
    assert described(slow).keys() == {*NEVER_HAD, "ContributorInsightsMode", "LastUpdateDateTime"}
    update(slow, ENABLE)
    assert listed(slow, **ORDERS) == [("orders", None, "ENABLING"), of_index]


def test_pages_of_a_table_count_listed_insights_table_095_table_399(slow):
    for place in ({}, OF_INDEX):
        update(slow, ENABLE, **place)
    slow.clock.ms += 10_000
    table, of_index = ("orders", None, "ENABLED"), ("orders", "gsi1", "ENABLED")
    assert pages(slow, **ORDERS, MaxResults=1) == [[table], [of_index]]
    update(slow, DISABLE)
    slow.clock.ms += 10_000
    assert pages(slow, **ORDERS, MaxResults=1) == [[of_index]]


def test_pages_of_a_table_have_all_its_indexes_table_095(service):
    indexes = [index(name) for name in ("zzz", "aaa", "mmm")]
    service.table(AttributeDefinitions=defined("pk", "a"), GlobalSecondaryIndexes=indexes)
    for name in ("zzz", "aaa", "mmm"):
        update(service, ENABLE, IndexName=name)
    for given in (ORDERS, {}):
        found = [each for page in pages(service, **given, MaxResults=1) for each in page]
        assert {each[1] for each in found} == {"zzz", "aaa", "mmm"}


def test_pages_of_all_tables_count_every_table_and_index_table_344(service):
    """A page counts tables and indexes without insights, too. AWS counted more than the tables and indexes that there were."""
    for name in "abcdef":
        service.table(f"table-{name}", **(with_index() if name in "bcd" else {}))
    for size, count in ((1, 9), (2, 5), (5, 2), (100, 1), (None, 1)):
        given = {} if size is None else {"MaxResults": size}
        assert pages(service, **given) == [[]] * count
    for name in "bdf":
        ok(service, "UpdateContributorInsights", TableName=f"table-{name}", **ENABLE)
    found = pages(service, MaxResults=1)
    assert [len(page) for page in found] == [0, 1, 0, 0, 0, 1, 0, 0, 1]
    check(service, "ListContributorInsights", {"TableName": "table-a", "MaxResults": 1}, OK)
    assert listed(service, TableName="table-a", MaxResults=1) == []


def test_insights_of_a_table_being_deleted_have_recorded_answers_table_097(slow):
    update(slow, ENABLE)
    slow.clock.ms += 10_000
    ok(slow, "DeleteTable", **ORDERS)
    assert slow.described()["TableStatus"] == "DELETING"
    assert status(slow) == "ENABLED"
    assert update(slow, DISABLE)["ContributorInsightsStatus"] == "DISABLING"
    check(slow, "ListContributorInsights", ORDERS, OK)
    slow.clock.ms += 20_000
    background(slow)
    gone = not_found("Table: orders not found")
    check(slow, "DescribeContributorInsights", ORDERS, gone)
    check(slow, "UpdateContributorInsights", {**ORDERS, **DISABLE}, gone)
    check(slow, "ListContributorInsights", ORDERS, gone)


def test_a_table_that_has_them_can_be_deleted_table_342(slow):
    update(slow, ENABLE)
    slow.clock.ms += 10_000
    check(slow, "DeleteTable", ORDERS, OK)
    slow.clock.ms += 20_000
    background(slow)
    check(slow, "DescribeContributorInsights", ORDERS, not_found("Table: orders not found"))
    assert listed(slow) == []


def test_an_index_that_has_them_can_be_deleted_table_112_table_096(slow):
    update(slow, ENABLE, **OF_INDEX)
    slow.clock.ms += 10_000
    before = described(slow, **OF_INDEX)
    assert slow.update(**updates(DELETE_A))["TableStatus"] == "UPDATING"
    assert described(slow, **OF_INDEX) == before
    assert listed(slow, **ORDERS) == [("orders", "gsi1", "ENABLED")]
    slow.clock.ms += 20_000
    background(slow)
    gone = not_found("Index: gsi1 not found for table: orders")
    check(slow, "DescribeContributorInsights", {**ORDERS, **OF_INDEX}, gone)
    check(slow, "UpdateContributorInsights", {**ORDERS, **OF_INDEX, **DISABLE}, gone)
    assert listed(slow, **ORDERS) == listed(slow) == []
    slow.update(AttributeDefinitions=defined("a"), **updates({"Create": BY_A}))
    slow.clock.ms += 40_000
    background(slow)
    assert described(slow, **OF_INDEX) == {**NEVER_HAD, **OF_INDEX}
