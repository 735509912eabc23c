"""Features of DynamoDB that this server does not have, described truthfully: off, none, not there.

Terraform, CDK and consoles ask for them whenever they look at a table, and go on when they hear so. Switching one on is an
unknown operation, so nobody believes that it works. Shapes: botocore 1.44.5; what a table that never used a feature
answers: measured by ack-api-quirks in October 2026 (findings 083, 089, 187).
"""

from __future__ import annotations

from adapters.dynamodb.tables.tables import find_table
from adapters.dynamodb.wire.calls import Answer, Call, check_place
from adapters.dynamodb.wire.errors import ServiceError
from adapters.dynamodb.wire.resources import bare_name, table_of_arn
from gateway.engine.engine import one
from gateway.model.commands import Exchange, FindTable
from gateway.model.errors import TableMissing


def list_contributor_insights(call: Call) -> Exchange[Answer]:
    """ListContributorInsights: names only tables that have had them."""
    yield from ()
    return {"ContributorInsightsSummaries": []}


def list_global_tables(call: Call) -> Exchange[Answer]:
    """ListGlobalTables: none."""
    yield from ()
    return {"GlobalTables": []}


def describe_global_table(call: Call) -> Exchange[Answer]:
    """DescribeGlobalTable: not there."""
    yield from ()
    name = call.input["GlobalTableName"]
    raise ServiceError("GlobalTableNotFoundException", f"Global table with name: '{name}' does not exist.")


def describe_contributor_insights(call: Call) -> Exchange[Answer]:
    """DescribeContributorInsights: off, for the table and each of its indexes."""
    table = yield from find_table(call)
    answer = {"TableName": table.name}
    index = call.input.get("IndexName")
    if index is not None:
        known = table.index(index)
        if known is None or known.local:
            text = f"Requested resource not found: Index: {index} not found for table: {table.name}"
            raise ServiceError("ResourceNotFoundException", text)
        answer["IndexName"] = index
    return {**answer, "ContributorInsightsStatus": "DISABLED"}


def describe_kinesis_destination(call: Call) -> Exchange[Answer]:
    """DescribeKinesisStreamingDestination: none."""
    table = yield from find_table(call)
    return {"TableName": table.name, "KinesisDataStreamDestinations": []}


def describe_replica_auto_scaling(call: Call) -> Exchange[Answer]:
    """DescribeTableReplicaAutoScaling: known of global tables only, and there is none."""
    yield from ()
    name = bare_name(call.input["TableName"])
    raise ServiceError("ResourceNotFoundException", f"Global table with name: '{name}' does not exist.")


def get_resource_policy(call: Call) -> Exchange[Answer]:
    """GetResourcePolicy: no table has one."""
    arn = call.input["ResourceArn"]
    name = table_of_arn(arn, call.gateway.settings.message_style)
    check_place(call, arn)
    try:
        yield from one(FindTable(call.caller.namespace, name))
    except TableMissing:
        text = f"Requested resource not found: ResourceArn: {arn} not found"
        raise ServiceError("ResourceNotFoundException", text) from None
    text = f"Resource-based policy not found for the provided ResourceArn: Policy is not found for: {arn}"
    raise ServiceError("PolicyNotFoundException", text)
