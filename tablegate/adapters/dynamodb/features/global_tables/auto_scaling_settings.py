"""Settings of auto scaling, stored with a global table: their defaults, updates and descriptions.

Keys are "write", "write/INDEX", "REGION/read" and "REGION/read/INDEX". Empty settings mean that scaling was disabled.
Sources: replica_auto_scaling.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tablegate.adapters.dynamodb.call import CallContext
from tablegate.adapters.dynamodb.features.global_tables.replica_settings import Wire
from tablegate.adapters.dynamodb.tables.properties import ON_DEMAND, TableProperties
from tablegate.adapters.dynamodb.wire.arns import bare_name
from tablegate.adapters.dynamodb.wire.errors import validation
from tablegate.gateway.model.tables.tables import Table

READ, WRITE = "Read", "Write"
_OFF = {"AutoScalingDisabled": True, "ScalingPolicies": list[Any]()}
_ROLE = (
    "arn:aws:iam::{}:role/aws-service-role/dynamodb.application-autoscaling.amazonaws.com/"
    "AWSServiceRoleForApplicationAutoScaling_DynamoDBTable"
)
_NEW_INDEX = {
    "MinimumUnits": 1,
    "MaximumUnits": 10,
    "ScalingPolicyUpdate": {"TargetTrackingScalingPolicyConfiguration": {"TargetValue": 70.0}},
}
"""The default write settings of an index that is added to a provisioned global table."""


def role_of(call: CallContext) -> str:
    """Return the service-linked role, the only role that auto scaling of tables can have."""
    return _ROLE.format(call.caller.account)


def check_new_indexes(table: Table, arguments: Wire) -> None:
    """Check that UpdateTable may add indexes to a provisioned global table.

    It may not while auto scaling of writes is disabled for an index. Raises ServiceError.
    """
    properties = TableProperties.of(table)
    off = [index for index in table.indexes if properties.auto_scaling.get(f"write/{index.name}") == {}]
    if added(arguments) and off and properties.billing != ON_DEMAND:
        raise validation("GSI write capacity should either be Pay-Per-Request or AutoScaled.")


def with_new_indexes(call: CallContext, arguments: Wire, properties: TableProperties) -> TableProperties:
    """Return the properties of a global table after an UpdateTable that adds indexes."""
    if properties.billing == ON_DEMAND:
        return properties
    table = bare_name(arguments["TableName"])
    places = [f"write/{name}" for name in added(arguments)]
    settings = {place: settings_of(call, table, place, WRITE, _NEW_INDEX) for place in places}
    return replace(properties, auto_scaling={**properties.auto_scaling, **settings})


def added(arguments: Wire) -> list[str]:
    """Return the names of the indexes that an UpdateTable adds."""
    updates = arguments.get("GlobalSecondaryIndexUpdates", ())
    return [update["Create"]["IndexName"] for update in updates if "Create" in update]


def settings_of(call: CallContext, table: str, place: str, kind: str, update: Wire) -> dict[str, Any]:
    """Return the settings that an update demands, with the defaults of the service. `place`: their key."""
    policy = update["ScalingPolicyUpdate"]
    tracking = policy["TargetTrackingScalingPolicyConfiguration"]
    index = place.partition(f"{kind.lower()}/")[2]
    resource = f"table/{table}" + (f"/index/{index}" if index else "")
    return {
        "MinimumUnits": update["MinimumUnits"],
        "MaximumUnits": update["MaximumUnits"],
        "AutoScalingRoleArn": update.get("AutoScalingRoleArn", role_of(call)),
        "ScalingPolicies": [
            {
                "PolicyName": policy.get("PolicyName", f"DynamoDB{kind}CapacityUtilization:{resource}"),
                "TargetTrackingScalingPolicyConfiguration": {
                    **tracking,
                    "TargetValue": float(tracking["TargetValue"]),
                },
            }
        ],
    }


def describe_settings(properties: TableProperties, place: str) -> Wire:
    """Return settings as descriptions show them. If the table became on-demand, they stay but are shown as disabled."""
    settings = properties.auto_scaling.get(place)
    if not settings:
        return _OFF
    return {**settings, "AutoScalingDisabled": True} if properties.billing == ON_DEMAND else settings
