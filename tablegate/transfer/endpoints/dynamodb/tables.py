"""DynamoDB's table descriptions <-> definitions: keys, indexes, time to live, streams."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from tablegate.adapters.dynamodb import capabilities  # noqa: F401 (registers the extensions of tables)
from tablegate.adapters.dynamodb.tables import table_definitions, table_extensions
from tablegate.adapters.dynamodb.tables.table_definitions import defined_types, key_schema
from tablegate.adapters.dynamodb.wire import limits
from tablegate.gateway.model.commands.table_commands import NewIndex
from tablegate.gateway.model.tables.indexes import IndexProjection
from tablegate.gateway.model.tables.tables import ExpiryRule, Rules, StreamRule
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.transfer.endpoints.dynamodb.client import Client
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.errors import RequestRefused, SchemaChanged, TableAbsent, TransferError

VIEWS = ("KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES")
_POLL_S = 0.25


# From the service


def definition_of(name: str, wire: Mapping[str, Any], expiry: ExpiryRule | None) -> Definition:
    """Return the definition for a description of DescribeTable."""
    types = defined_types(wire)
    local = [_index(index, types, True) for index in wire.get("LocalSecondaryIndexes") or ()]
    others = [_index(index, types, False) for index in wire.get("GlobalSecondaryIndexes") or ()]
    return Definition(
        name,
        Service.DYNAMODB,
        key_schema(wire["KeySchema"], types),
        tuple(local + others),
        Rules(expiry=expiry, stream=stream_rule(wire)),
        rows=wire.get("ItemCount"),
        size_bytes=wire.get("TableSizeBytes"),
        other_indexes=table_extensions.described_indexes(wire),
    )


def _index(description: Mapping[str, Any], types: Mapping[str, str], local: bool) -> NewIndex:
    projection = description.get("Projection") or {}
    return NewIndex(
        description["IndexName"],
        key_schema(description["KeySchema"], types),
        table_definitions.PROJECTIONS[projection.get("ProjectionType", "ALL")],
        tuple(projection.get("NonKeyAttributes") or ()),
        local,
    )


def stream_rule(wire: Mapping[str, Any]) -> StreamRule | None:
    """Return the enabled stream in a description of DescribeTable, None if there is none."""
    specification = wire.get("StreamSpecification") or {}
    if not specification.get("StreamEnabled"):
        return None
    view = specification.get("StreamViewType", VIEWS[0])
    return StreamRule(wire.get("LatestStreamLabel", ""), True, view, limits.STREAM_RETENTION_MS, 0)


def expiry_of(client: Client, table: str) -> ExpiryRule | None:
    """Return the time to live of a table. None if there is none or the server does not support it."""
    try:
        description = (
            client.call("DescribeTimeToLive", {"TableName": table}).get("TimeToLiveDescription") or {}
        )
    except RequestRefused:
        return None
    if (
        description.get("TimeToLiveStatus") not in ("ENABLED", "ENABLING")
        or "AttributeName" not in description
    ):
        return None
    return ExpiryRule(attribute=description["AttributeName"])


# To the service


def creation_of(name: str, definition: Definition) -> tuple[dict[str, Any], list[str]]:
    """Return a CreateTable request and sentences about unsupported parts of the definition."""
    schema = definition.key_schema
    if len(schema.partition) != 1 or len(schema.sort) > 1 or any(c.auto_increment for c in schema.columns):
        raise SchemaChanged(
            f"a DynamoDB table must have one partition key and at most one sort key, not {schema.names}"
        )
    notes: list[str] = []
    types = {column.name: table_definitions.KEY_TYPES[column.kind] for column in schema.columns}
    request: dict[str, Any] = {
        "TableName": name,
        "KeySchema": table_definitions.key_elements(table_definitions.shown_index_keys(schema)),
        "BillingMode": "PAY_PER_REQUEST",
    }
    for index in definition.indexes:
        problem = _problem_of(index, schema, types)
        if problem:
            notes.append(f"index {index.name}: {problem}")
            continue
        types |= {
            column.name: table_definitions.KEY_TYPES[column.kind] for column in index.key_schema.columns
        }
        member = "LocalSecondaryIndexes" if index.local else "GlobalSecondaryIndexes"
        request.setdefault(member, []).append(_index_wire(index))
    request["AttributeDefinitions"] = [
        {"AttributeName": name, "AttributeType": kind} for name, kind in types.items()
    ]
    table_extensions.add_definitions(request, definition.other_indexes)
    rules = definition.rules
    if rules.stream is not None and rules.stream.enabled:
        view = rules.stream.view if rules.stream.view in VIEWS else "NEW_AND_OLD_IMAGES"
        request["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": view}
    if rules.expiry is not None and rules.expiry.age_ms is not None:
        notes.append(f"rows do not expire {rules.expiry.age_ms // 1000} seconds after they were written")
    if rules.max_versions > 1:
        notes.append(f"one version of each value is kept, not {rules.max_versions}")
    return request, notes


def _problem_of(index: NewIndex, schema: KeySchema, types: Mapping[str, str]) -> str:
    """Return the reason why DynamoDB cannot have an index, "" if it can."""
    keys = index.key_schema
    if len(keys.partition) != 1 or len(keys.sort) > 1:
        return "its key has more columns than a DynamoDB index allows"
    if index.local and (
        not schema.sort or keys.partition[0].name != schema.partition[0].name or not keys.sort
    ):
        return (
            "a local index needs a table with a sort key, the table's partition key and a sort key of its own"
        )
    for column in keys.columns:
        kind = table_definitions.KEY_TYPES.get(column.kind)
        if kind is None or types.get(column.name, kind) != kind:
            return f"{column.name} has a type that is not allowed for this key"
    return ""


def _index_wire(index: NewIndex) -> dict[str, Any]:
    definition = table_definitions.index_definition(index)
    if index.projection is IndexProjection.INCLUDE and not index.included:
        definition["Projection"] = {"ProjectionType": "KEYS_ONLY"}
    return definition


def create(client: Client, name: str, definition: Definition) -> list[str]:
    """Create a table and wait until it can be written. Return sentences about unsupported parts of the definition."""
    request, notes = creation_of(name, definition)
    try:
        client.call("CreateTable", request)
    except RequestRefused as refusal:
        if refusal.code == "ResourceInUseException":
            wait_until_active(client, name)
            return []
        raise TransferError(
            f"{client.patience.shown}: the table cannot be created: {refusal.words}"
        ) from None
    wait_until_active(client, name)
    attribute = definition.rules.expiry.attribute if definition.rules.expiry is not None else None
    if attribute is not None:
        specification = {"Enabled": True, "AttributeName": attribute}
        try:
            client.call("UpdateTimeToLive", {"TableName": name, "TimeToLiveSpecification": specification})
        except RequestRefused as refusal:
            notes.append(f"items do not expire by {attribute}: {refusal.words}")
    return notes


def wait_until_active(client: Client, name: str) -> Mapping[str, Any]:
    """Wait until a table and its indexes are ACTIVE and return its description."""
    until = time.monotonic() + client.patience.seconds
    while True:
        try:
            wire = client.call("DescribeTable", {"TableName": name})["Table"]
        except TableAbsent:  # descriptions are eventually consistent
            wire = {}
            if time.monotonic() > until:
                raise
        members = [
            member
            for value in wire.values()
            if isinstance(value, list)
            for member in value
            if isinstance(member, dict)
        ]
        states = [wire.get("TableStatus", ""), *(member.get("IndexStatus", "ACTIVE") for member in members)]
        if all(state == "ACTIVE" for state in states):
            return dict(wire)
        if time.monotonic() > until:
            raise TransferError(f"{client.patience.shown}: the table is still {'/'.join(states)}")
        time.sleep(_POLL_S)
