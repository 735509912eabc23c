"""What global tables add to tables: settings of the region, and the members of descriptions about replicas."""

from __future__ import annotations

from typing import Any

from tablegate.adapters.dynamodb.tables.descriptions import warm_throughput
from tablegate.adapters.dynamodb.tables.properties import (
    DEFAULT_REPLICATION_MODE,
    IndexProperties,
    TableProperties,
    seconds,
)
from tablegate.adapters.dynamodb.tables.replica_settings import of_index, of_table, overrides, replica_status
from tablegate.adapters.dynamodb.tables.table_extensions import TableExtension
from tablegate.adapters.dynamodb.wire.signature_claims import Caller
from tablegate.gateway.model.commands.table_commands import TableStatistics
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.tables import Replica, Table


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
    own = of_table(table, properties)
    description |= overrides(properties, own, of_table(table, properties, peer.name))
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
    own, theirs = of_index(table, index, of_group), of_index(table, index, of_group, region)
    return {
        "IndexName": index.name,
        **overrides(properties, own, theirs),
        "WarmThroughput": warm_throughput(of_group.warm, "ACTIVE"),
    }


REPLICATION = TableExtension(
    (
        "GlobalTableSettingsReplicationMode",
        "GlobalTableWitnessUpdates",
        "MultiRegionConsistency",
        "ReplicaUpdates",
    ),
    table_properties=of_table,
    index_properties=of_index,
    describe=_describe,
)
