"""The extension of tables by global tables: settings of single replicas and of auto scaling, and their descriptions.

Settings of a replica are its read throughput, class and key. A region without settings inherits those of the group.
Descriptions show a setting of a replica if it differs from the region of the request (ack-api-quirks, live service,
October 2026: findings 250, 252, 321, 422).

Keys of auto scaling settings are "write", "write/INDEX", "REGION/read" and "REGION/read/INDEX". Empty settings mean that
scaling was disabled. Sources: replica_auto_scaling.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from tablegate.adapters.dynamodb.call import CallContext
from tablegate.adapters.dynamodb.tables.properties import (
    DEFAULT_REPLICATION_MODE,
    ON_DEMAND,
    IndexProperties,
    TableProperties,
    seconds,
)
from tablegate.adapters.dynamodb.tables.table_definitions import warm_throughput
from tablegate.adapters.dynamodb.tables.table_extensions import TableExtension
from tablegate.adapters.dynamodb.wire.arns import bare_name
from tablegate.adapters.dynamodb.wire.errors import validation
from tablegate.adapters.dynamodb.wire.signature_claims import Caller
from tablegate.gateway.model.commands.table_commands import TableStatistics
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.tables import Replica, Table

_MAXIMUM = "MaxReadRequestUnits"

Wire = Mapping[str, Any]
_Owner = TypeVar("_Owner", TableProperties, IndexProperties)


# Settings of a region


def _of_table(table: Table, properties: TableProperties, region: str | None = None) -> TableProperties:
    """Return the properties of a table in a region, by default its own. `properties`: those of the group."""
    return _in_region(properties, properties, _settings(table, properties, region))


def _of_index(
    table: Table, index: Index, properties: IndexProperties, region: str | None = None
) -> IndexProperties:
    """Return the properties of an index in a region, by default its own. `properties`: those of the group."""
    if table.rules.replication is None:
        return properties
    of_group = TableProperties.of(table)
    settings = _settings(table, of_group, region).get("indexes", {}).get(index.name, {})
    return _in_region(properties, of_group, settings)


def _settings(table: Table, properties: TableProperties, region: str | None) -> Wire:
    rule = table.rules.replication
    return {} if rule is None else properties.replicas.get(region or rule.name, {})


def _in_region(owner: _Owner, properties: TableProperties, settings: Wire) -> _Owner:
    if properties.billing == ON_DEMAND:
        units = settings.get("max_read_units")
        return owner if units is None else replace(owner, on_demand={**owner.on_demand, _MAXIMUM: units})
    units = settings.get("read_units")
    return owner if units is None else replace(owner, throughput=replace(owner.throughput, read=units))


# Updates


def check(properties: TableProperties, entry: Wire) -> None:
    """Check that an override matches the billing mode. Raises ServiceError."""
    for owner in (entry, *entry.get("GlobalSecondaryIndexes", ())):
        if "OnDemandThroughputOverride" in owner and properties.billing != ON_DEMAND:
            raise validation(
                "MaxReadRequestUnits for OnDemandThroughput cannot be specified when the table BillingMode is PROVISIONED"
            )
        if "ProvisionedThroughputOverride" in owner and properties.billing == ON_DEMAND:
            raise validation(
                "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"
            )


def after(table: Table, properties: TableProperties, entry: Wire) -> dict[str, Any]:
    """Return the throughput of a replica after a request. `properties`: those of the table before it.

    A value equal to the group's is inherited again. An unknown index is ignored (ack-api-quirks 307).
    """
    current = properties.replicas.get(entry["RegionName"], {})
    settings = {**current, **_reads(entry, properties, properties)}
    indexes = dict(current.get("indexes", {}))
    for index_entry in entry.get("GlobalSecondaryIndexes", ()):
        name = index_entry["IndexName"]
        index = table.index(name)
        if index is not None and not index.local:
            indexes[name] = {
                **indexes.get(name, {}),
                **_reads(index_entry, properties, IndexProperties.of(index)),
            }
    return {**settings, "indexes": indexes}


def _reads(
    entry: Wire, properties: TableProperties, owner: TableProperties | IndexProperties
) -> dict[str, Any]:
    if "ProvisionedThroughputOverride" in entry and properties.billing != ON_DEMAND:
        units = entry["ProvisionedThroughputOverride"].get("ReadCapacityUnits")
        return {"read_units": None if units == owner.throughput.read else units}
    if "OnDemandThroughputOverride" in entry and properties.billing == ON_DEMAND:
        units = entry["OnDemandThroughputOverride"].get(_MAXIMUM)
        return {"max_read_units": None if units in (-1, owner.on_demand.get(_MAXIMUM)) else units}
    return {}


def own_settings(properties: TableProperties) -> dict[str, Any]:
    """Return the settings of a table that the other regions store: its key, and its class if that was ever changed."""
    settings: dict[str, Any] = {"encryption_key": properties.encryption_key}
    if properties.table_class_at_ms is not None:
        settings |= {"table_class": properties.table_class, "table_class_at_ms": properties.table_class_at_ms}
    return settings


# Descriptions


def _describe(
    description: dict[str, Any], table: Table, statistics: TableStatistics, caller: Caller, now_ms: int
) -> None:
    description |= _replication(table, TableProperties.of(table), now_ms)


def _replication(table: Table, properties: TableProperties, now_ms: int) -> dict[str, Any]:
    """Return the members about the other regions of a global table.

    Without replicas, only the replication mode, if set.
    """
    rule = table.rules.replication
    if rule is None:
        mode = properties.replication_mode
        return {} if mode == DEFAULT_REPLICATION_MODE else {"GlobalTableSettingsReplicationMode": mode}
    members: dict[str, Any] = {
        "GlobalTableVersion": "2019.11.21",
        "GlobalTableSettingsReplicationMode": properties.replication_mode,
    }
    members["Replicas"] = [_replica(table, properties, peer, now_ms) for peer in rule.peers]
    if rule.strong:
        members["MultiRegionConsistency"] = "STRONG"
    if rule.witness:
        members["GlobalTableWitnesses"] = [{"RegionName": rule.witness, "WitnessStatus": "ACTIVE"}]
    return members


def _replica(table: Table, properties: TableProperties, peer: Replica, now_ms: int) -> dict[str, Any]:
    """Return a ReplicaDescription. Members equal to this region's are absent."""
    settings = properties.replicas.get(peer.name, {})
    description: dict[str, Any] = {
        "RegionName": peer.name,
        "ReplicaStatus": replica_status(properties, peer, now_ms),
    }
    if settings.get("encryption_key") is not None:
        description["KMSMasterKeyId"] = settings["encryption_key"]
    own = _of_table(table, properties)
    description |= _overrides(properties, own, _of_table(table, properties, peer.name))
    indexes = [
        _replica_index(table, properties, index, peer.name) for index in table.indexes if not index.local
    ]
    if indexes:
        description["GlobalSecondaryIndexes"] = indexes
    if settings.get("table_class") is not None:
        at = seconds(settings["table_class_at_ms"])
        description["ReplicaTableClassSummary"] = {
            "TableClass": settings["table_class"],
            "LastUpdateDateTime": at,
        }
    description["WarmThroughput"] = warm_throughput(properties.warm, "ACTIVE")
    description["GlobalTableSettingsReplicationMode"] = properties.replication_mode
    return description


def _replica_index(table: Table, properties: TableProperties, index: Index, region: str) -> dict[str, Any]:
    of_group = IndexProperties.of(index)
    own, theirs = _of_index(table, index, of_group), _of_index(table, index, of_group, region)
    return {
        "IndexName": index.name,
        **_overrides(properties, own, theirs),
        "WarmThroughput": warm_throughput(of_group.warm, "ACTIVE"),
    }


def _overrides(
    properties: TableProperties,
    own: TableProperties | IndexProperties,
    theirs: TableProperties | IndexProperties,
) -> dict[str, Any]:
    """Return the members for the read throughput of a replica, if it differs from that of this region."""
    if properties.billing == ON_DEMAND:
        units = theirs.on_demand.get(_MAXIMUM)
        is_different = units not in (None, own.on_demand.get(_MAXIMUM))
        return {"OnDemandThroughputOverride": {_MAXIMUM: units}} if is_different else {}
    units = theirs.throughput.read
    is_different = units != own.throughput.read
    return {"ProvisionedThroughputOverride": {"ReadCapacityUnits": units}} if is_different else {}


def replica_status(properties: TableProperties, peer: Replica, now_ms: int) -> str:
    """Return the state of a replica."""
    until_ms = properties.replicas.get(peer.name, {}).get("creating_until_ms", 0)
    return "ACTIVE" if peer.ready and now_ms >= until_ms else "CREATING"


EXTENSION = TableExtension(
    (
        "GlobalTableSettingsReplicationMode",
        "GlobalTableWitnessUpdates",
        "MultiRegionConsistency",
        "ReplicaUpdates",
    ),
    table_properties=_of_table,
    index_properties=_of_index,
    describe=_describe,
)


READ, WRITE = "Read", "Write"
_SCALING_OFF = {"AutoScalingDisabled": True, "ScalingPolicies": list[Any]()}
_SCALING_ROLE = (
    "arn:aws:iam::{}:role/aws-service-role/dynamodb.application-autoscaling.amazonaws.com/"
    "AWSServiceRoleForApplicationAutoScaling_DynamoDBTable"
)
_SCALING_OF_NEW_INDEX = {
    "MinimumUnits": 1,
    "MaximumUnits": 10,
    "ScalingPolicyUpdate": {"TargetTrackingScalingPolicyConfiguration": {"TargetValue": 70.0}},
}
"""The default write settings of an index that is added to a provisioned global table."""


def role_of(call: CallContext) -> str:
    """Return the service-linked role, the only role that auto scaling of tables can have."""
    return _SCALING_ROLE.format(call.caller.account)


def check_new_indexes(table: Table, arguments: Wire) -> None:
    """Check that UpdateTable may add indexes to a provisioned global table.

    It may not while auto scaling of writes is disabled for an index. Raises ServiceError.
    """
    properties = TableProperties.of(table)
    off = [index for index in table.indexes if properties.auto_scaling.get(f"write/{index.name}") == {}]
    if added_indexes(arguments) and off and properties.billing != ON_DEMAND:
        raise validation("GSI write capacity should either be Pay-Per-Request or AutoScaled.")


def with_new_indexes(call: CallContext, arguments: Wire, properties: TableProperties) -> TableProperties:
    """Return the properties of a global table after an UpdateTable that adds indexes."""
    if properties.billing == ON_DEMAND:
        return properties
    table = bare_name(arguments["TableName"])
    places = [f"write/{name}" for name in added_indexes(arguments)]
    settings = {place: auto_scaling_of(call, table, place, WRITE, _SCALING_OF_NEW_INDEX) for place in places}
    return replace(properties, auto_scaling={**properties.auto_scaling, **settings})


def added_indexes(arguments: Wire) -> list[str]:
    """Return the names of the indexes that an UpdateTable adds."""
    updates = arguments.get("GlobalSecondaryIndexUpdates", ())
    return [update["Create"]["IndexName"] for update in updates if "Create" in update]


def auto_scaling_of(call: CallContext, table: str, place: str, kind: str, update: Wire) -> dict[str, Any]:
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


def describe_auto_scaling(properties: TableProperties, place: str) -> Wire:
    """Return settings as descriptions show them. If the table became on-demand, they stay but are shown as disabled."""
    settings = properties.auto_scaling.get(place)
    if not settings:
        return _SCALING_OFF
    return {**settings, "AutoScalingDisabled": True} if properties.billing == ON_DEMAND else settings
