"""Features of DynamoDB that this server does not have, described truthfully: off, none, not there.

Terraform, CDK and consoles ask for them whenever they look at a table, and go on when they hear so. Switching one on is an
unknown operation, so nobody believes that it works. Shapes: botocore 1.44.5; what a table that never used a feature
answers: measured by ack-api-quirks in October 2026 (findings 083, 089, 187).
"""

from __future__ import annotations

from adapters.dynamodb.wire.calls import Answer, Call, check_place
from adapters.dynamodb.wire.errors import ServiceError
from adapters.dynamodb.wire.resources import table_of_arn
from gateway.engine.engine import one
from gateway.model.commands import Exchange, FindTable
from gateway.model.errors import TableMissing


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
