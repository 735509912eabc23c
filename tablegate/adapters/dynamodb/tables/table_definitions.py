"""Definitions of tables and their indexes: descriptions as in DescribeTable, and requests to the gateway's types.

Descriptions are made from the descriptor, its statistics and the caller. Key schemas and secondary indexes of requests
are converted, and checked by the rules for UpdateTable. Rules that need no table are in validation/table_rules.py.
All of it is pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tablegate.adapters.dynamodb.tables import billing, running_changes, table_settings
from tablegate.adapters.dynamodb.tables.properties import (
    ON_DEMAND,
    PROVISIONED,
    TableProperties,
    Throughput,
    WarmThroughput,
    is_being_restored,
    seconds,
)
from tablegate.adapters.dynamodb.tables.table_extensions import EXTENSIONS, index_properties, table_properties
from tablegate.adapters.dynamodb.values.keys import composite_name
from tablegate.adapters.dynamodb.wire import error_texts, limits
from tablegate.adapters.dynamodb.wire.arns import index_arn, stable_uuid, stream_arn, table_arn
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.adapters.dynamodb.wire.signature_claims import Caller
from tablegate.gateway.model.commands.table_commands import NewIndex, TableStatistics
from tablegate.gateway.model.tables.indexes import Index, IndexProjection
from tablegate.gateway.model.tables.tables import State, Table
from tablegate.gateway.model.values.composites import name_of
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
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


KINDS = {"S": Kind.TEXT, "N": Kind.DECIMAL, "B": Kind.BYTES}

Wire = Mapping[str, Any]


# Key schemas and indexes of requests


def defined_types(arguments: Wire) -> dict[str, str]:
    """Return attribute name -> S, N or B, from AttributeDefinitions."""
    return {
        item["AttributeName"]: item["AttributeType"] for item in arguments.get("AttributeDefinitions", ())
    }


def key_schema(elements: Sequence[Wire], types: Mapping[str, str]) -> KeySchema:
    """Return the gateway's schema of a KeySchema. All its attributes must have a type."""
    by_role: dict[str, list[KeyColumn]] = {"HASH": [], "RANGE": []}
    for element in elements:
        name = element["AttributeName"]
        by_role[element["KeyType"]].append(KeyColumn(name, KINDS[types[name]]))
    return KeySchema(tuple(by_role["HASH"]), tuple(by_role["RANGE"]))


def _projection(definition: Wire) -> tuple[IndexProjection, tuple[str, ...]]:
    """Return (projection, further attributes that it names)."""
    projection = definition["Projection"]
    return PROJECTIONS[projection["ProjectionType"]], tuple(projection.get("NonKeyAttributes", ()))


def new_local_index(definition: Wire, types: Mapping[str, str]) -> NewIndex:
    """Return the index of a member of LocalSecondaryIndexes."""
    keys = key_schema(definition["KeySchema"], types)
    return NewIndex(definition["IndexName"], keys, *_projection(definition), local=True)


def new_global_index(
    definition: Wire, types: Mapping[str, str], mode: str, updating: bool = False
) -> NewIndex:
    """Return the index of a member of GlobalSecondaryIndexes or of a Create in UpdateTable.

    `mode`: the billing mode of the table.
    """
    keys = key_schema(definition["KeySchema"], types)
    properties = billing.of_new_index(definition, mode, updating).document()
    return NewIndex(definition["IndexName"], keys, *_projection(definition), properties=properties)


def index_changes(
    table: Table, arguments: Wire, mode: str, now_ms: int
) -> tuple[tuple[NewIndex, ...], tuple[str, ...]]:
    """Return (indexes to create, names to drop) of an UpdateTable.

    Raises ServiceError, in the service's order (rule 37).
    """
    updates = arguments.get("GlobalSecondaryIndexUpdates", ())
    vector_updates = arguments.get("VectorIndexUpdates", ())
    creates = [update["Create"] for update in updates if "Create" in update]
    deletes = [update["Delete"]["IndexName"] for update in updates if "Delete" in update]
    running_changes.refuse_busy_index(table, arguments, now_ms)
    building = [index.name for index in table.all_indexes if not index.is_active(now_ms)]
    if "index" in (deleted_index := running_changes.deleting(table, now_ms)):
        building.append(deleted_index["index"])
    stopped = {*deletes, *_vectors_stopped(vector_updates)}
    others_at_work = [name for name in building if name not in stopped]
    online = len(creates) + len(deletes) + len(vector_updates)
    if online:
        online += len(others_at_work)
    if online > limits.ONLINE_INDEX_CHANGES:
        text = "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table"
        raise ServiceError("LimitExceededException", text)
    for name in deletes:
        index = billing.global_index(table, name, "delete")
        running_changes.refuse_allocating(table, index, now_ms)
    types = defined_types(arguments)
    for create in creates:
        _check_new(table, create, types)
    return tuple(new_global_index(create, types, mode, updating=True) for create in creates), tuple(deletes)


def _vectors_stopped(updates: Sequence[Wire]) -> list[str]:
    """Return the names of the vector indexes in these updates.

    An index being created may be dropped. For one to be created again, vector_indexes.py has another error.
    """
    return [change["IndexName"] for update in updates for change in update.values()]


def _check_new(table: Table, create: Wire, types: Mapping[str, str]) -> None:
    """Check that an index may be added to a table. Raises ServiceError."""
    if create["IndexName"] in [index.name for index in table.all_indexes]:
        raise validation("Attempting to create an index which already exists")
    _refuse_redefinition(table, create, types)
    if composite_name(table.key_schema) in [element["AttributeName"] for element in create["KeySchema"]]:
        # Entries are made from the stored columns. Composite attributes are not stored.
        raise validation(
            f"{error_texts.INVALID}A key of several columns cannot be an index key; its columns can"
        )
    if sum(not index.local for index in table.indexes) >= limits.GLOBAL_INDEXES:
        text = f"Number of global secondary indexes exceeds per-table limit of {limits.GLOBAL_INDEXES}"
        raise ServiceError("LimitExceededException", f"Subscriber limit exceeded: {text}")
    included = sum(len(index.included) for index in table.indexes)
    included += len(create["Projection"].get("NonKeyAttributes", ()))
    if included > limits.PROJECTED_NAMES_PER_TABLE:
        text = f"Number of projected attributes exceeds per-table limit of {limits.PROJECTED_NAMES_PER_TABLE}"
        raise ServiceError("LimitExceededException", f"Subscriber limit exceeded: {text}")


def _refuse_redefinition(table: Table, create: Wire, types: Mapping[str, str]) -> None:
    """Check that a key attribute keeps its type, as writes could not obey two types (test_gsi_updatetable.py)."""
    keys_by_name = {key.name: key for key in shown_table_keys(table.key_schema)}
    for index in table.indexes:
        keys_by_name |= {key.name: key for key in shown_index_keys(index.key_schema)}
    for element in create["KeySchema"]:
        name, role = element["AttributeName"], element["KeyType"]
        key = keys_by_name.get(name)
        if key is not None and key.type != types[name]:
            raise validation(
                f"{error_texts.INVALID}Attributes cannot be redefined. Please check that your attribute has the same type as "
                f"previously defined. Existing schema: Schema:[SchemaElement: key{{{name}:{key.type}:{key.role}}}] "
                f"New schema: Schema:[SchemaElement: key{{{name}:{types[name]}:{role}}}]"
            )
