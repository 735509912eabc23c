"""UpdateTableReplicaAutoScaling and DescribeTableReplicaAutoScaling: auto scaling of global tables, as it was set.

Nothing is scaled: settings are kept with the table in all regions and read back. Texts and what is absent when:
ack-api-quirks (live service, October 2026); shapes: botocore 1.44.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from adapters.dynamodb.tables.descriptions import replica_status
from adapters.dynamodb.tables.properties import ON_DEMAND, TableProperties
from adapters.dynamodb.tables.replicas import spread
from adapters.dynamodb.wire.calls import Answer, Call, own_name
from adapters.dynamodb.wire.errors import ServiceError, validation
from adapters.dynamodb.wire.resources import bare_name
from gateway.model.commands import Exchange, FindTable
from gateway.model.tables import Index, State, Table

Wire = Mapping[str, Any]

_READ, _WRITE = "Read", "Write"
_OFF = {"AutoScalingDisabled": True, "ScalingPolicies": list[Any]()}
_ROLE = (
    "arn:aws:iam::{}:role/aws-service-role/dynamodb.application-autoscaling.amazonaws.com/"
    "AWSServiceRoleForApplicationAutoScaling_DynamoDBTable"
)
_LEAST_TARGET, _MOST_TARGET = 10.0, 90.0


def describe_replica_auto_scaling(call: Call) -> Exchange[Answer]:
    """DescribeTableReplicaAutoScaling: of every region of a global table. Raises ServiceError."""
    table = yield from _find(call)
    return _described(call, table)


def update_replica_auto_scaling(call: Call) -> Exchange[Answer]:
    """UpdateTableReplicaAutoScaling: keep settings. The answer shows those that were. Raises ServiceError."""
    table = yield from _find(call)
    failed = f"Failed to update settings for global table with name: \u2018{table.name}\u2019"
    updates = list(_updates(call, table, failed))
    if not updates:
        raise validation(f"{failed}: because at least one update parameter must be specified.")
    properties = TableProperties.of(table)
    scaling = dict(properties.auto_scaling)
    for place, kind, update in updates:
        _check(table, properties, kind, update, failed)
        if update.get("AutoScalingDisabled"):
            scaling.pop(place, None)
        else:
            scaling[place] = _settings(call, table, place, kind, update)
    answer = _described(call, table)
    yield from spread(call, lambda known: replace(known, auto_scaling=scaling))
    return answer


def _find(call: Call) -> Exchange[Table]:
    """The global table that is meant. Raises ServiceError where it has one region, or is not there."""
    name = call.input["TableName"]
    [found] = yield [FindTable(call.caller.namespace, own_name(call, name))]
    if not isinstance(found, Table) or found.rules.replication is None:
        text = f"Global table with name: '{bare_name(name)}' does not exist."
        raise ServiceError("ResourceNotFoundException", text)
    return found


# What is asked for


def _updates(call: Call, table: Table, failed: str) -> Iterator[tuple[str, str, Wire]]:
    """(place, kind, settings) of each update of a request."""
    given = call.input
    rule = table.rules.replication
    assert rule is not None
    if "ProvisionedWriteCapacityAutoScalingUpdate" in given:
        yield "write", _WRITE, given["ProvisionedWriteCapacityAutoScalingUpdate"]
    for index in given.get("GlobalSecondaryIndexUpdates", ()):
        _check_index(table, index, failed)
        if "ProvisionedWriteCapacityAutoScalingUpdate" in index:
            yield f"write/{index['IndexName']}", _WRITE, index["ProvisionedWriteCapacityAutoScalingUpdate"]
    seen: set[str] = set()
    for update in given.get("ReplicaUpdates", ()):
        region = update["RegionName"]
        if region in seen:
            raise validation(
                f"{failed}: because the regions: \u2018[{region}]\u2019 were specified more than once."
            )
        seen.add(region)
        if region not in {rule.name, *(peer.name for peer in rule.peers)}:
            raise validation(f"{failed}: because the regions: \u2018[{region}]\u2019 are not part of it.")
        found = list(_updates_of(table, update, failed))
        if not found:
            text = (
                f"because at least one update parameter must be specified for region: \u2018{region}\u2019."
            )
            raise validation(f"{failed}: {text}")
        yield from found


def _updates_of(table: Table, update: Wire, failed: str) -> Iterator[tuple[str, str, Wire]]:
    region = update["RegionName"]
    if "ReplicaProvisionedReadCapacityAutoScalingUpdate" in update:
        yield f"{region}/read", _READ, update["ReplicaProvisionedReadCapacityAutoScalingUpdate"]
    for index in update.get("ReplicaGlobalSecondaryIndexUpdates", ()):
        _check_index(table, index, failed)
        if "ProvisionedReadCapacityAutoScalingUpdate" in index:
            place = f"{region}/read/{index['IndexName']}"
            yield place, _READ, index["ProvisionedReadCapacityAutoScalingUpdate"]


def _check_index(table: Table, update: Wire, failed: str) -> None:
    name = update.get("IndexName", "")
    found = table.index(name)
    if found is None or found.local:
        text = f"{failed} because the global secondary indexes with names: \u2018[{name}]\u2019 do not exist."
        raise ServiceError("ResourceNotFoundException", text)


def _check(table: Table, properties: TableProperties, kind: str, update: Wire, failed: str) -> None:
    if update.get("AutoScalingDisabled"):
        return
    if properties.billing == ON_DEMAND:
        rule = table.rules.replication
        assert rule is not None
        regions = sorted([rule.name, *(peer.name for peer in rule.peers)])
        names = ", ".join(f"\u2018{region.upper()}\u2019" for region in regions)
        raise validation(
            f"Failed to update global table with name \u2018{table.name}\u2019. Replicas {names} BillingMode is PayPerRequest. "
            "You must convert table's BillingMode to PROVISIONED to set parameters: "
            f"\u2018GlobalTableProvisioned{kind}CapacityAutoScalingSettingsUpdate\u2019."
        )
    members = ("MaximumUnits", "ScalingPolicyUpdate", "MinimumUnits")
    missing = ", ".join(f"\u2018{member}\u2019" for member in members if member not in update)
    if missing:
        text = f"Parameters {missing} are required unless auto scaling is being disabled."
        raise validation(f"{failed}: {text}")
    if update["MinimumUnits"] > update["MaximumUnits"]:
        raise validation(f"{failed}: Maximum capacity cannot be less than minimum capacity")
    target = update["ScalingPolicyUpdate"]["TargetTrackingScalingPolicyConfiguration"]["TargetValue"]
    if not _LEAST_TARGET <= target <= _MOST_TARGET:
        raise validation(f"{failed}: TargetValue must be between {_LEAST_TARGET} and {_MOST_TARGET}")


def _settings(call: Call, table: Table, place: str, kind: str, update: Wire) -> dict[str, Any]:
    policy = update["ScalingPolicyUpdate"]
    index = place.rpartition(f"{kind.lower()}/")[2] if f"{kind.lower()}/" in place else ""
    resource = f"table/{table.name}" + (f"/index/{index}" if index else "")
    return {
        "MinimumUnits": update["MinimumUnits"],
        "MaximumUnits": update["MaximumUnits"],
        "AutoScalingRoleArn": update.get("AutoScalingRoleArn", _ROLE.format(call.caller.account)),
        "ScalingPolicies": [
            {
                "PolicyName": policy.get("PolicyName", f"DynamoDB{kind}CapacityUtilization:{resource}"),
                "TargetTrackingScalingPolicyConfiguration": {
                    "DisableScaleIn": False,
                    **policy["TargetTrackingScalingPolicyConfiguration"],
                },
            }
        ],
    }


# What is told


def _described(call: Call, table: Table) -> dict[str, Any]:
    rule = table.rules.replication
    assert rule is not None
    now_ms = call.gateway.now_ms()
    properties = TableProperties.of(table)
    states = {peer.name: replica_status(properties, peer, now_ms) for peer in rule.peers}
    states[rule.name] = "CREATING" if table.state_at(now_ms) is State.CREATING else "ACTIVE"
    scaling = properties.auto_scaling
    replicas = []
    for region in sorted(states):
        shown: dict[str, Any] = {"RegionName": region}
        indexes = [_index(scaling, region, index, now_ms) for index in table.indexes if not index.local]
        if indexes:
            shown["GlobalSecondaryIndexes"] = indexes
        shown["ReplicaProvisionedReadCapacityAutoScalingSettings"] = scaling.get(f"{region}/read", _OFF)
        shown["ReplicaProvisionedWriteCapacityAutoScalingSettings"] = scaling.get("write", _OFF)
        shown["ReplicaStatus"] = states[region]
        replicas.append(shown)
    return {
        "TableAutoScalingDescription": {
            "TableName": table.name,
            "TableStatus": table.state_at(now_ms).value.upper(),
            "Replicas": replicas,
        }
    }


def _index(scaling: Wire, region: str, index: Index, now_ms: int) -> dict[str, Any]:
    return {
        "IndexName": index.name,
        "IndexStatus": "ACTIVE" if index.is_active(now_ms) else "CREATING",
        "ProvisionedReadCapacityAutoScalingSettings": scaling.get(f"{region}/read/{index.name}", _OFF),
        "ProvisionedWriteCapacityAutoScalingSettings": scaling.get(f"write/{index.name}", _OFF),
    }
