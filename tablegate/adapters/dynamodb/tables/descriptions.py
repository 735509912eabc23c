"""Descriptions of tables, as in DescribeTable. Pure: made from the descriptor, its statistics and the caller.

Tables of other dialects are described too. Integer keys become N. Several sort columns become one composite S attribute
(composites.py). Shapes: botocore 1.44.5 TableDescription. Absent members and the order of lists: measured on the
service by ack-api-quirks in October 2026 (findings 028, 033, 125, 134, 138).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tablegate.adapters.dynamodb.tables import table_settings
from tablegate.adapters.dynamodb.tables.properties import (
    ON_DEMAND,
    PROVISIONED,
    TableProperties,
    Throughput,
    WarmThroughput,
    is_being_restored,
    seconds,
)
from tablegate.adapters.dynamodb.tables.table_extensions import (
    EXTENSIONS,
    index_properties,
    table_properties,
)
from tablegate.adapters.dynamodb.wire.arns import index_arn, stable_uuid, stream_arn, table_arn
from tablegate.adapters.dynamodb.wire.signature_claims import Caller
from tablegate.gateway.model.commands.table_commands import NewIndex, TableStatistics
from tablegate.gateway.model.tables.indexes import Index, IndexProjection
from tablegate.gateway.model.tables.tables import State, Table
from tablegate.gateway.model.values.composites import name_of
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.values import Kind

KEY_TYPES = {Kind.TEXT: "S", Kind.BYTES: "B", Kind.DECIMAL: "N", Kind.INT64: "N"}
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
    properties = table_properties(table)
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
    description |= _stream(table, caller)
    description |= table_settings.encryption_description(properties, now_ms)
    is_changing = state is State.UPDATING and (properties.change or {}).get("kind") == "class"
    description |= table_settings.table_class_summary(properties, is_changing)
    description["DeletionProtectionEnabled"] = properties.deletion_protection
    if properties.on_demand:
        description["OnDemandThroughput"] = dict(properties.on_demand)
    description["WarmThroughput"] = warm_throughput(
        properties.warm, "UPDATING" if state is State.CREATING else "ACTIVE"
    )
    for extension in EXTENSIONS:
        extension.describe(description, table, known_statistics, caller, now_ms)
    if properties.restore is not None and state is State.CREATING:
        description["RestoreSummary"] = {**properties.restore, "RestoreInProgress": True}
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
    properties = index_properties(table, index)
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
    description["WarmThroughput"] = warm_throughput(properties.warm, "ACTIVE" if active else "UPDATING")
    return description


def index_definition(index: Index | NewIndex) -> dict[str, Any]:
    """Return the immutable definition of an index."""
    return {
        "IndexName": index.name,
        "KeySchema": key_elements(shown_index_keys(index.key_schema)),
        "Projection": projection_definition(index.projection, index.included),
    }


def projection_definition(projection: IndexProjection, included: Sequence[str]) -> dict[str, Any]:
    """Return the Projection of an index."""
    definition: dict[str, Any] = {"ProjectionType": _PROJECTION_NAMES[projection]}
    if projection is IndexProjection.INCLUDE:
        definition["NonKeyAttributes"] = sorted(included)
    return definition


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
    return attribute_definitions(types)


def attribute_definitions(types: Mapping[str, str]) -> list[dict[str, str]]:
    """Return AttributeDefinitions for attribute name -> S, N or B."""
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


def warm_throughput(warm: WarmThroughput, status: str) -> dict[str, Any]:
    """Return a WarmThroughput with its status."""
    return {"ReadUnitsPerSecond": warm.read, "WriteUnitsPerSecond": warm.write, "Status": status}
