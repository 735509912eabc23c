"""Finding TABLE-014 of table-policy-kinesis-autoscaling.md: the answer of each operation for a missing table."""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.dynamodb.measured.test_policies import policy

ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/missing"
BY_NAME: dict[str, dict[str, Any]] = {
    "DescribeTable": {},
    "UpdateTable": {"DeletionProtectionEnabled": True},
    "DeleteTable": {},
    "DescribeTimeToLive": {},
    "UpdateTimeToLive": {"TimeToLiveSpecification": {"Enabled": True, "AttributeName": "ttl"}},
    "DescribeContributorInsights": {},
    "UpdateContributorInsights": {"ContributorInsightsAction": "ENABLE"},
    "DescribeKinesisStreamingDestination": {},
}
BY_ARN: dict[str, dict[str, Any]] = {
    "GetResourcePolicy": {},
    "PutResourcePolicy": {"Policy": policy()},
    "DeleteResourcePolicy": {},
}
TAGS: dict[str, dict[str, Any]] = {
    "ListTagsOfResource": {},
    "TagResource": {"Tags": [{"Key": "a", "Value": "b"}]},
    "UntagResource": {"TagKeys": ["a"]},
}
TYPED: dict[str, dict[str, Any]] = {
    "DescribeContinuousBackups": {},
    "UpdateContinuousBackups": {"PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}},
    "CreateBackup": {"BackupName": "backup"},
}


@pytest.mark.parametrize("operation", [*BY_NAME, *BY_ARN])
def test_the_table_is_named(service, operation):
    given = {"TableName": "missing", **BY_NAME.get(operation, {})}
    if operation in BY_ARN:
        given = {"ResourceArn": ARN, **BY_ARN[operation]}
    text = "Requested resource not found: Table: missing not found"
    assert service.error(operation, given) == ("ResourceNotFoundException", text)


@pytest.mark.parametrize("operation", TAGS)
def test_tags_name_the_arn(service, operation):
    text = f"Requested resource not found: ResourceArn: {ARN} not found"
    found = service.error(operation, {"ResourceArn": ARN, **TAGS[operation]})
    assert found == ("ResourceNotFoundException", text)


@pytest.mark.parametrize("operation", TYPED)
def test_backups_have_a_code_of_their_own(service, operation):
    found = service.error(operation, {"TableName": "missing", **TYPED[operation]})
    assert found == ("TableNotFoundException", "Table not found: missing")


def test_other_operations_on_a_missing_table_have_their_own_errors(service):
    assert service.call("ListBackups", {"TableName": "missing"}) == {"BackupSummaries": []}
    item = {"TableName": "missing", "Item": {"pk": {"S": "a"}}}
    assert service.error("PutItem", item)[0] == "ResourceNotFoundException"
    code, text = service.error("UpdateTable", {"TableName": "missing"})
    assert (code, text.startswith("At least one of ProvisionedThroughput, BillingMode, ")) == (
        "ValidationException",
        True,
    )
    for name in ("a bad/name!", "ab", "a" * 256):
        code, text = service.error("DescribeTable", {"TableName": name})
        assert (code, "at 'tableName' failed to satisfy constraint" in text) == ("ValidationException", True)
