"""Global tables of version 2017.11.29, as the service answers for them today (ack-api-quirks, live service, October 2026)."""

from __future__ import annotations

import pytest

from tests.adapters.dynamodb.client import signed

NAME = {"GlobalTableName": "orders"}
GROUP = {**NAME, "ReplicationGroup": [{"RegionName": "us-east-1"}]}
OLD = (
    "One or more parameter values were invalid: DynamoDB global tables version 2017.11.29 is not supported. We recommend using "
    "DynamoDB global tables version 2019.11.21, instead of version 2017.11.29 (Legacy)."
)


def test_global_tables_of_the_old_version_cannot_be_created(service):
    service.table()
    assert service.error("CreateGlobalTable", GROUP) == ("ValidationException", OLD)
    text = service.error("CreateGlobalTable", GROUP, **signed(region="eu-north-1"))[1]
    assert "is not supported in this region 'eu-north-1', supported regions are : [" in text
    assert "replicationGroup" in service.error("CreateGlobalTable", NAME)[1]


@pytest.mark.parametrize("operation", ["DescribeGlobalTableSettings", "UpdateGlobalTableSettings"])
def test_global_tables_of_the_old_version_have_no_settings(service, operation):
    assert service.error(operation, NAME) == (
        "GlobalTableNotFoundException", "Global table with name: 'orders' does not exist.",
    )  # fmt: skip


def test_global_tables_of_the_old_version_are_not_found(service):
    service.table()
    assert service.error("DescribeGlobalTable", NAME) == (
        "GlobalTableNotFoundException", "Global table not found: Global table with name: 'orders' does not exist.",
    )  # fmt: skip
    assert service.call("ListGlobalTables", {"Limit": 1, "RegionName": "us-east-1"}) == {"GlobalTables": []}
    assert service.error("ListGlobalTables", {"Limit": 0})[0] == "ValidationException"


def test_global_tables_of_the_old_version_cannot_be_updated(service):
    def updated(*updates):
        return service.error("UpdateGlobalTable", {**NAME, "ReplicaUpdates": list(updates)})

    region = {"RegionName": "us-west-2"}
    assert updated({"Create": region}) == ("ValidationException", OLD)
    assert updated({"Delete": region})[0] == "GlobalTableNotFoundException"
    assert updated() == ("ValidationException", "One or more parameter values were invalid")
