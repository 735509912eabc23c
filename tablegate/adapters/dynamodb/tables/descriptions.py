"""Descriptions of tables, as in DescribeTable. Pure: made from the descriptor, its statistics and the caller.

Tables of other dialects are described too. Integer keys become N. Several sort columns become one composite S attribute
(composites.py). Shapes: botocore 1.44.5 TableDescription. Absent members and the order of lists: measured on the
service by ack-api-quirks in October 2026 (findings 028, 033, 125, 134, 138).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tablegate.adapters.dynamodb.tables import encryption, table_class
from tablegate.adapters.dynamodb.tables.properties import (
    DEFAULT_REPLICATION_MODE,
    ON_DEMAND,
    PROVISIONED,
    IndexProperties,
    TableProperties,
    Throughput,
    WarmThroughput,
    is_being_restored,
    seconds,
)
from tablegate.adapters.dynamodb.tables.replica_settings import of_index, of_table, overrides
from tablegate.adapters.dynamodb.wire.resources import index_arn, stable_uuid, stream_arn, table_arn
from tablegate.adapters.dynamodb.wire.signature_claims import Caller
from tablegate.gateway.model.commands.table_commands import NewIndex, TableStatistics
from tablegate.gateway.model.tables.indexes import Index, IndexProjection
from tablegate.gateway.model.tables.tables import Replica, State, Table
from tablegate.gateway.model.tables.vector_indexes import VectorIndex, vector_indexes
from tablegate.gateway.model.values.composites import name_of
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.values import Kind
from tablegate.gateway.model.values.vectors import Metric

KEY_TYPES = {Kind.TEXT: "S", Kind.BYTES: "B", Kind.DECIMAL: "N", Kind.INT64: "N"}
DISTANCE_FUNCTIONS = {metric.name: metric for metric in Metric}
PROJECTIONS = {
    "ALL": IndexProjection.ALL,
    "KEYS_ONLY": IndexProjection.KEYS,
    "INCLUDE": IndexProjection.INCLUDE,
}
_PROJECTION_NAMES = {projection: name for name, projection in PROJECTIONS.items()}

EMPTY = TableStatistics(0, 0, {})


class ShownKey(NamedTuple):
    """A key attribute for DynamoDB clients. `role` is HASH or RANGE, `type` S, N or B."""

    name: str
    type: str
    role: str


def shown_table_keys(schema: KeySchema) -> tuple[ShownKey, ...]:
    """Return the one or two key attributes of a table. Several columns of one role become one composite text."""
    keys = [_shown_as_one(schema.partition, "HASH")]
    if schema.sort:
        keys.append(_shown_as_one(schema.sort, "RANGE"))
    return tuple(keys)


def _shown_as_one(columns: tuple[Any, ...], role: str) -> ShownKey:
    if len(columns) == 1:
        return ShownKey(columns[0].name, KEY_TYPES[columns[0].kind], role)
    return ShownKey(name_of(columns), "S", role)


def shown_index_keys(schema: KeySchema) -> tuple[ShownKey, ...]:
    """Return the key attributes of an index: up to 4 of each role if DynamoDB created it."""
    roles = (("HASH", schema.partition), ("RANGE", schema.sort))
    return tuple(
        ShownKey(column.name, KEY_TYPES[column.kind], role) for role, columns in roles for column in columns
    )


def describe(table: Table, statistics: TableStatistics | None, caller: Caller, now_ms: int) -> dict[str, Any]:
    """Return the TableDescription of a table. Without statistics its counts are zero."""
    known_statistics = statistics or EMPTY
    properties = of_table(table)
    state = table.state_at(now_ms)
    keys = shown_table_keys(table.key_schema)
    description: dict[str, Any] = {
        "AttributeDefinitions": _attribute_definitions(table, keys),
        "TableName": table.name,
        "KeySchema": key_elements(keys),
        "TableStatus": state.value.upper(),
        "CreationDateTime": seconds(table.created_at_ms),
        "ProvisionedThroughput": _throughput(properties, properties.throughput, now_ms, state),
        "TableSizeBytes": known_statistics.size_bytes,
        "ItemCount": known_statistics.rows,
        "TableArn": table_arn(caller, table.name),
        "TableId": table_id(table),
    }
    if properties.billing == ON_DEMAND or table.rules.replication is None:  # TABLE-320
        description |= _billing_summary(properties, table.created_at_ms)
    for name, local in (("LocalSecondaryIndexes", True), ("GlobalSecondaryIndexes", False)):
        indexes = [index for index in table.indexes if index.local is local]
        if indexes:
            description[name] = [
                describe_index(table, index, known_statistics, caller, now_ms) for index in indexes
            ]
    if vectors := vector_indexes(table):
        description["VectorIndexes"] = [
            _describe_vector_index(table, index, known_statistics, caller, now_ms) for index in vectors
        ]
    description |= _stream(table, caller)
    description |= encryption.description(properties, now_ms)
    is_changing = state is State.UPDATING and (properties.change or {}).get("kind") == "class"
    description |= table_class.summary(properties, is_changing)
    description["DeletionProtectionEnabled"] = properties.deletion_protection
    if properties.on_demand:
        description["OnDemandThroughput"] = dict(properties.on_demand)
    description["WarmThroughput"] = _warm(
        properties.warm, "UPDATING" if state is State.CREATING else "ACTIVE"
    )
    description |= _replication(table, properties, now_ms)
    if properties.restore is not None and state is State.CREATING:
        description["RestoreSummary"] = {**properties.restore, "RestoreInProgress": True}
    return description


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


def replica_status(properties: TableProperties, peer: Replica, now_ms: int) -> str:
    """Return the state of a replica."""
    until_ms = properties.replicas.get(peer.name, {}).get("creating_until_ms", 0)
    return "ACTIVE" if peer.ready and now_ms >= until_ms else "CREATING"


def _replica(table: Table, properties: TableProperties, peer: Replica, now_ms: int) -> dict[str, Any]:
    """Return a ReplicaDescription. Members equal to this region's are absent."""
    settings = properties.replicas.get(peer.name, {})
    description: dict[str, Any] = {
        "RegionName": peer.name,
        "ReplicaStatus": replica_status(properties, peer, now_ms),
    }
    if settings.get("encryption_key") is not None:
        description["KMSMasterKeyId"] = settings["encryption_key"]
    description |= overrides(properties, properties, of_table(table, peer.name))
    indexes = [
        {
            "IndexName": index.name,
            **overrides(properties, of_index(table, index), of_index(table, index, peer.name)),
            "WarmThroughput": _warm(IndexProperties.of(index).warm, "ACTIVE"),
        }
        for index in table.indexes
        if not index.local
    ]
    if indexes:
        description["GlobalSecondaryIndexes"] = indexes
    if settings.get("table_class") is not None:
        at = seconds(settings["table_class_at_ms"])
        description["ReplicaTableClassSummary"] = {
            "TableClass": settings["table_class"],
            "LastUpdateDateTime": at,
        }
    description["WarmThroughput"] = _warm(properties.warm, "ACTIVE")
    description["GlobalTableSettingsReplicationMode"] = properties.replication_mode
    return description


def describe_index(
    table: Table, index: Index, statistics: TableStatistics, caller: Caller, now_ms: int
) -> dict[str, Any]:
    """Return one member of LocalSecondaryIndexes or GlobalSecondaryIndexes."""
    rows, size_bytes = statistics.indexes.get(index.name, (0, 0))
    description = index_definition(index)
    counts = {
        "IndexSizeBytes": size_bytes,
        "ItemCount": rows,
        "IndexArn": index_arn(caller, table.name, index.name),
    }
    if index.local:
        return description | counts
    state = table.state_at(now_ms)
    properties = of_index(table, index)
    active = index.is_active(now_ms)
    if not is_being_restored(table, now_ms):  # ack-api-quirks 282
        description["IndexStatus"] = "ACTIVE" if active else "CREATING"
    if not active and state is not State.CREATING:
        # Only an index added later has this member: false while the table is UPDATING, then true until it is filled.
        description["Backfilling"] = state is State.ACTIVE
    description["ProvisionedThroughput"] = _throughput(
        TableProperties.of(table), properties.throughput, now_ms, state
    )
    description |= counts
    if properties.on_demand:
        description["OnDemandThroughput"] = dict(properties.on_demand)
    description["WarmThroughput"] = _warm(properties.warm, "ACTIVE" if active else "UPDATING")
    return description


def _describe_vector_index(
    table: Table, index: VectorIndex, statistics: TableStatistics, caller: Caller, now_ms: int
) -> dict[str, Any]:
    """Return one member of VectorIndexes."""
    rows, size_bytes = statistics.indexes.get(index.name, (0, 0))
    description = vector_index_definition(index)
    state, active = table.state_at(now_ms), index.is_active(now_ms)
    description["IndexStatus"] = "ACTIVE" if active else "CREATING"
    if not active and state is not State.CREATING:
        description["Backfilling"] = state is State.ACTIVE
    return description | {
        "IndexSizeBytes": size_bytes,
        "ItemCount": rows,
        "IndexArn": index_arn(caller, table.name, index.name),
    }


def vector_index_definition(index: VectorIndex) -> dict[str, Any]:
    """Return the immutable definition of a vector index."""
    definition: dict[str, Any] = {
        "IndexName": index.name,
        "VectorAttribute": {"AttributeName": index.attribute},
        "Projection": _shown_projection(index),
        "Dimensions": index.dimensions,
        "DistanceFunction": index.metric.name,
    }
    columns = index.filters if index.partition is None else (index.partition, *index.filters)
    if columns:
        definition["SearchSchema"] = [
            {
                "AttributeName": column.name,
                "SearchSchemaElementType": "HASH" if column is index.partition else "INLINE_FILTER",
            }
            for column in columns
        ]
    return definition


def index_definition(index: Index | NewIndex) -> dict[str, Any]:
    """Return the immutable definition of an index."""
    return {
        "IndexName": index.name,
        "KeySchema": key_elements(shown_index_keys(index.key_schema)),
        "Projection": _shown_projection(index),
    }


def _shown_projection(index: Index | NewIndex | VectorIndex) -> dict[str, Any]:
    projection: dict[str, Any] = {"ProjectionType": _PROJECTION_NAMES[index.projection]}
    if index.projection is IndexProjection.INCLUDE:
        projection["NonKeyAttributes"] = sorted(index.included)
    return projection


def table_id(table: Table) -> str:
    """Return a UUID of the table. A table created again under the same name has another."""
    return table_id_of(table.id, table.created_at_ms, table.name)


def table_id_of(number: int, created_at_ms: int, name: str) -> str:
    """Return the UUID of a table that is to be created."""
    return stable_uuid(f"{number}/{created_at_ms}/{name}")


def _attribute_definitions(table: Table, keys: tuple[ShownKey, ...]) -> list[dict[str, str]]:
    """Return the key attributes of the table and its indexes, by name."""
    types = {key.name: key.type for key in keys}
    for index in table.indexes:
        for key in shown_index_keys(index.key_schema):
            types.setdefault(key.name, key.type)
    for vector_index in vector_indexes(table):
        for column in vector_index.columns:
            types.setdefault(column.name, KEY_TYPES[column.kind])
    return [{"AttributeName": name, "AttributeType": types[name]} for name in sorted(types)]


def key_elements(keys: tuple[ShownKey, ...]) -> list[dict[str, str]]:
    """Return key attributes in the form of KeySchema."""
    return [{"AttributeName": key.name, "KeyType": key.role} for key in keys]


def _throughput(
    properties: TableProperties, throughput: Throughput, now_ms: int, state: State
) -> dict[str, Any]:
    """Return ProvisionedThroughput, which is zero for an on-demand table (rule 40)."""
    description = throughput.describe(now_ms, state is State.UPDATING)
    if properties.billing == ON_DEMAND:
        description |= {"ReadCapacityUnits": 0, "WriteCapacityUnits": 0}
    return description


def _billing_summary(properties: TableProperties, created_at_ms: int) -> dict[str, Any]:
    """Return BillingModeSummary and TableThroughputModeSummary. Empty for a table that was never on-demand.

    TableThroughputModeSummary is in no model, but in every answer. A table created as on-demand has its creation time,
    which is slightly later than the time of the request.
    """
    if properties.billing == PROVISIONED and properties.on_demand_since_ms is None:
        return {}
    since = {}
    if properties.on_demand_since_ms is not None:
        since_ms = max(properties.on_demand_since_ms, created_at_ms)
        since = {"LastUpdateToPayPerRequestDateTime": seconds(since_ms)}
    return {
        "BillingModeSummary": {"BillingMode": properties.billing, **since},
        "TableThroughputModeSummary": {"TableThroughputMode": properties.billing, **since},
    }


def _stream(table: Table, caller: Caller) -> dict[str, Any]:
    """Return the stream's members. The label of the latest stream stays after it is switched off."""
    rule = table.rules.stream
    if rule is None:
        return {}
    members: dict[str, Any] = {}
    if rule.enabled:
        members["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": rule.view}
    members["LatestStreamLabel"] = rule.label
    members["LatestStreamArn"] = stream_arn(caller, table.name, rule.label)
    return members


def _warm(warm: WarmThroughput, status: str) -> dict[str, Any]:
    return {"ReadUnitsPerSecond": warm.read, "WriteUnitsPerSecond": warm.write, "Status": status}
