"""UpdateTableReplicaAutoScaling and DescribeTableReplicaAutoScaling: auto scaling settings of global tables.

Nothing is scaled: settings are only stored with the table, in all regions. The service stores them in Application Auto
Scaling and forwards its errors. Texts and absent members: ack-api-quirks, measured in October 2026 (findings 187 to
198, 237 to 243, 253 to 256, 289 to 291, 317, 322, 323). Shapes: botocore 1.44.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from uuid import uuid4

from tablegate.adapters.dynamodb.call import Answer, CallContext, own_name
from tablegate.adapters.dynamodb.features.global_tables.replica_settings import (
    READ,
    WRITE,
    auto_scaling_of,
    describe_auto_scaling,
    replica_status,
    role_of,
)
from tablegate.adapters.dynamodb.features.global_tables.replicas import change_all_regions
from tablegate.adapters.dynamodb.tables.properties import ON_DEMAND, TableProperties
from tablegate.adapters.dynamodb.wire.arns import bare_name
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.gateway.dialects.coroutines import all_of
from tablegate.gateway.model.commands.table_commands import FindTable
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.tables import State, Table

Wire = Mapping[str, Any]

_LEAST_TARGET, _MOST_TARGET = 10.0, 90.0


async def describe_replica_auto_scaling(call: CallContext) -> Answer:
    """DescribeTableReplicaAutoScaling: the settings of every region of a global table. Raises ServiceError."""
    table = await _find(call)
    return _description(call, table)


async def update_replica_auto_scaling(call: CallContext) -> Answer:
    """UpdateTableReplicaAutoScaling: store settings. The answer shows the former ones. Raises ServiceError."""
    table = await _find(call)
    failed = f"Failed to update settings for global table with name: \u2018{table.name}\u2019"
    updates = list(_updates(call, table, failed))
    if not updates:
        raise validation(f"{failed} because at least one update parameter must be specified.")
    properties = TableProperties.of(table)
    scaling = dict(properties.auto_scaling)
    for place, kind, update in updates:
        _check(call, table, properties, kind, update, failed)
        if update.get("AutoScalingDisabled"):
            scaling[place] = {}
        else:
            scaling[place] = auto_scaling_of(call, table.name, place, kind, update)
    answer = _description(call, table)
    await change_all_regions(
        call, lambda _, properties_of_region: replace(properties_of_region, auto_scaling=scaling)
    )
    return answer


async def _find(call: CallContext) -> Table:
    """Return the global table of a request. Raises ServiceError if it is missing or has one region only."""
    name = call.input["TableName"]
    [table] = await all_of([FindTable(call.caller.namespace, own_name(call, name))])
    if not isinstance(table, Table) or table.rules.replication is None:
        text = f"Global table with name: '{bare_name(name)}' does not exist."
        raise ServiceError("ResourceNotFoundException", text)
    return table


# Updates


def _updates(call: CallContext, table: Table, failed: str) -> Iterator[tuple[str, str, Wire]]:
    """Yield (key of the settings, kind, settings) for each update of a request."""
    arguments = call.input
    rule = table.rules.replication
    assert rule is not None
    if "ProvisionedWriteCapacityAutoScalingUpdate" in arguments:
        yield "write", WRITE, arguments["ProvisionedWriteCapacityAutoScalingUpdate"]
    for index in arguments.get("GlobalSecondaryIndexUpdates", ()):
        name = index.get("IndexName", "")
        if not _has_index(call, table, name):
            text = f"{failed} because the global secondary indexes with names: \u2018[{name}]\u2019 do not exist."
            raise ServiceError("ResourceNotFoundException", text)
        if "ProvisionedWriteCapacityAutoScalingUpdate" in index:
            yield f"write/{index['IndexName']}", WRITE, index["ProvisionedWriteCapacityAutoScalingUpdate"]
    regions: set[str] = set()
    for update in arguments.get("ReplicaUpdates", ()):
        region = update["RegionName"]
        if region in regions:
            raise validation(
                f"{failed} because the regions: \u2018[{region}]\u2019 were specified more than once."
            )
        regions.add(region)
        if region not in rule.regions:
            text = f"{failed} because the regions: \u2018[{region}]\u2019 do not exist."
            raise ServiceError("ResourceNotFoundException", text)
        region_updates = list(_updates_of(call, table, update, failed))
        if not region_updates:
            text = (
                f"because at least one update parameter must be specified for region: \u2018{region}\u2019."
            )
            raise validation(f"{failed} {text}")
        yield from region_updates


def _updates_of(
    call: CallContext, table: Table, update: Wire, failed: str
) -> Iterator[tuple[str, str, Wire]]:
    region = update["RegionName"]
    if "ReplicaProvisionedReadCapacityAutoScalingUpdate" in update:
        yield f"{region}/read", READ, update["ReplicaProvisionedReadCapacityAutoScalingUpdate"]
    for index in update.get("ReplicaGlobalSecondaryIndexUpdates", ()):
        name = index.get("IndexName", "")
        if not _has_index(call, table, name):
            where = f"with name: \u2018{name}\u2019 does not exist in region: \u2018{region}\u2019."
            text = f"{failed} because a global secondary index {where}"
            raise ServiceError("ResourceNotFoundException", text)
        if "ProvisionedReadCapacityAutoScalingUpdate" in index:
            place = f"{region}/read/{index['IndexName']}"
            yield place, READ, index["ProvisionedReadCapacityAutoScalingUpdate"]


def _has_index(call: CallContext, table: Table, name: str) -> bool:
    """Return True if there is a global index of that name. An index in state CREATING does not count."""
    index = table.index(name)
    return index is not None and not index.local and index.is_active(call.gateway.now_ms())


def _check(
    call: CallContext, table: Table, properties: TableProperties, kind: str, update: Wire, failed: str
) -> None:
    """Check that settings contradict neither each other nor the table. Raises ServiceError."""
    members = ("MaximumUnits", "ScalingPolicyUpdate", "MinimumUnits")
    if update.get("AutoScalingDisabled"):
        present_members = ", ".join(f"'{member}'" for member in members if member in update)
        if present_members:
            text = f"Parameters {present_members} must be left blank when disabling auto scaling."
            raise validation(f"{failed.replace('name: ', 'name ')}: {text}")
        return
    if properties.billing == ON_DEMAND:
        raise _on_demand(table, kind)
    missing = ", ".join(f"'{member}'" for member in members if member not in update)
    if missing:
        text = f"Parameters {missing} are required unless auto scaling is being disabled."
        raise validation(f"{failed}: {text}")
    role = update.get("AutoScalingRoleArn", role_of(call))
    if role != role_of(call):
        user = f"arn:aws:sts::{call.caller.account}:assumed-role/AWSServiceRoleForDynamoDBReplication"
        raise _of_auto_scaling(
            f"User: {user} is not authorized to perform: iam:PassRole on resource: {role} because no identity-based policy "
            "allows the iam:PassRole action"
        )
    if update["MinimumUnits"] > update["MaximumUnits"]:
        raise _of_auto_scaling("Maximum capacity cannot be less than minimum capacity")
    _check_target(
        kind, update["ScalingPolicyUpdate"]["TargetTrackingScalingPolicyConfiguration"]["TargetValue"]
    )


def _on_demand(table: Table, kind: str) -> ServiceError:
    rule = table.rules.replication
    assert rule is not None
    regions = sorted(rule.regions)
    names = ", ".join(f"'{region.upper()}'" for region in regions)
    scope = "GlobalTable" if kind == WRITE else "Replica"
    return validation(
        f"Failed to update global table with name \u2018{table.name}\u2018. Replicas {names} BillingMode is PayPerRequest. "
        "You must convert table's BillingMode to PROVISIONED to set parameters: "
        f"'{scope}Provisioned{kind}CapacityAutoScalingSettingsUpdate'."
    )


def _check_target(kind: str, target: float) -> None:
    if target <= 0:
        text = "For target tracking scaling, target value must be between '8.51592E-109' and '1.174271E108'"
        raise _of_auto_scaling(f"{text}, but was '{float(target)}'.")
    if not _LEAST_TARGET <= target <= _MOST_TARGET:
        text = f"For predefined metric type DynamoDB{kind}CapacityUtilization, target value must be between"
        raise _of_auto_scaling(f"{text} '{_LEAST_TARGET}' and '{_MOST_TARGET}', but was '{float(target)}'.")


def _of_auto_scaling(text: str) -> ServiceError:
    """Return an error of Application Auto Scaling, as the service forwards it."""
    kind = "Service: AWSApplicationAutoScaling; Status Code: 400; Error Code: ValidationException"
    return validation(f"{text} ({kind}; Request ID: {uuid4()}; Proxy: null)")


# Descriptions


def _description(call: CallContext, table: Table) -> dict[str, Any]:
    rule = table.rules.replication
    assert rule is not None
    now_ms = call.gateway.now_ms()
    properties = TableProperties.of(table)
    states = {peer.name: replica_status(properties, peer, now_ms) for peer in rule.peers}
    states[rule.name] = "CREATING" if table.state_at(now_ms) is State.CREATING else "ACTIVE"
    replicas = []
    for region in sorted(states):
        replica: dict[str, Any] = {"RegionName": region}
        replica["GlobalSecondaryIndexes"] = [
            _index(properties, region, index)
            for index in table.indexes
            if not index.local and index.is_active(now_ms)
        ]
        replica["ReplicaProvisionedReadCapacityAutoScalingSettings"] = describe_auto_scaling(
            properties, f"{region}/read"
        )
        replica["ReplicaProvisionedWriteCapacityAutoScalingSettings"] = describe_auto_scaling(
            properties, "write"
        )
        replica["ReplicaStatus"] = states[region]
        replicas.append(replica)
    return {
        "TableAutoScalingDescription": {
            "TableName": table.name,
            "TableStatus": table.state_at(now_ms).value.upper(),
            "Replicas": replicas,
        }
    }


def _index(properties: TableProperties, region: str, index: Index) -> dict[str, Any]:
    read, write = f"{region}/read/{index.name}", f"write/{index.name}"
    return {
        "IndexName": index.name,
        "IndexStatus": "ACTIVE",
        "ProvisionedReadCapacityAutoScalingSettings": describe_auto_scaling(properties, read),
        "ProvisionedWriteCapacityAutoScalingSettings": describe_auto_scaling(properties, write),
    }
