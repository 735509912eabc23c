"""Key schemas and secondary indexes: conversion to the gateway's types, and the rules for UpdateTable. Pure.

Rules that need no table are in table_rules.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tablegate.adapters.dynamodb.tables import billing, running_changes
from tablegate.adapters.dynamodb.tables.descriptions import PROJECTIONS, shown_index_keys, shown_table_keys
from tablegate.adapters.dynamodb.values.composites import composite_name
from tablegate.adapters.dynamodb.wire import limits, messages
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.gateway.model.commands.table_commands import NewIndex
from tablegate.gateway.model.tables.indexes import IndexProjection
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.values import Kind

KINDS = {"S": Kind.TEXT, "N": Kind.DECIMAL, "B": Kind.BYTES}

Wire = Mapping[str, Any]


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


def new_local(definition: Wire, types: Mapping[str, str]) -> NewIndex:
    """Return the index of a member of LocalSecondaryIndexes."""
    keys = key_schema(definition["KeySchema"], types)
    return NewIndex(definition["IndexName"], keys, *_projection(definition), local=True)


def new_global(definition: Wire, types: Mapping[str, str], mode: str, updating: bool = False) -> NewIndex:
    """Return the index of a member of GlobalSecondaryIndexes or of a Create in UpdateTable.

    `mode`: the billing mode of the table.
    """
    keys = key_schema(definition["KeySchema"], types)
    properties = billing.of_new_index(definition, mode, updating).document()
    return NewIndex(definition["IndexName"], keys, *_projection(definition), properties=properties)


def changes(
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
    return tuple(new_global(create, types, mode, updating=True) for create in creates), tuple(deletes)


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
            f"{messages.INVALID}A key of several columns cannot be an index key; its columns can"
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
                f"{messages.INVALID}Attributes cannot be redefined. Please check that your attribute has the same type as "
                f"previously defined. Existing schema: Schema:[SchemaElement: key{{{name}:{key.type}:{key.role}}}] "
                f"New schema: Schema:[SchemaElement: key{{{name}:{types[name]}:{role}}}]"
            )
