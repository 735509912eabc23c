"""Vector indexes: conversion to the gateway's types and back, the rules for UpdateTable, and their extension of tables.

Rules that need no table are in vector_rules.py. Texts and order: captures of the live service, August 2026
(nubo-db/dynamodb-conformance, eu-west-2; ExtendDB's change notes, us-east-1). Costs of writes: docs/protocols/dynamodb.md
rule 42.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tablegate.adapters.dynamodb.capacity import is_same_in
from tablegate.adapters.dynamodb.features.vectors import vector_rules
from tablegate.adapters.dynamodb.tables import running_changes, table_definitions
from tablegate.adapters.dynamodb.tables.properties import ON_DEMAND
from tablegate.adapters.dynamodb.tables.table_definitions import KINDS, defined_types
from tablegate.adapters.dynamodb.tables.table_extensions import TableExtension
from tablegate.adapters.dynamodb.values.keys import composite_name
from tablegate.adapters.dynamodb.wire import error_texts, limits
from tablegate.adapters.dynamodb.wire.arns import index_arn
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.adapters.dynamodb.wire.signature_claims import Caller
from tablegate.gateway.features.vectors import vector_support
from tablegate.gateway.features.vectors.vectors import (
    COMPONENT_BYTES,
    Metric,
    VectorEntry,
    VectorIndex,
    vector_index,
    vector_indexes,
)
from tablegate.gateway.model.commands.row_commands import WriteOutcome
from tablegate.gateway.model.commands.table_commands import TableStatistics
from tablegate.gateway.model.errors import NotInstalled
from tablegate.gateway.model.tables.indexes import BaseIndex
from tablegate.gateway.model.tables.tables import State, Table
from tablegate.gateway.model.values.keys import KeyColumn
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import size_bytes

# Indexes


Wire = Mapping[str, Any]


def new(definition: Wire, types: Mapping[str, str]) -> VectorIndex:
    """Return the index of a member of VectorIndexes or of a Create in UpdateTable. All attributes must have a type."""
    columns: dict[str, list[KeyColumn]] = {"HASH": [], "INLINE_FILTER": []}
    for element in definition.get("SearchSchema", ()):
        name = element["AttributeName"]
        columns[element["SearchSchemaElementType"]].append(KeyColumn(name, KINDS[types[name]]))
    projection = definition["Projection"]
    return VectorIndex(
        0,
        definition["IndexName"],
        definition["VectorAttribute"]["AttributeName"],
        definition["Dimensions"],
        Metric[definition["DistanceFunction"]],
        table_definitions.PROJECTIONS[projection["ProjectionType"]],
        tuple(projection.get("NonKeyAttributes", ())),
        next(iter(columns["HASH"]), None),
        tuple(columns["INLINE_FILTER"]),
    )


def new_indexes(arguments: Wire) -> tuple[VectorIndex, ...]:
    """Return the indexes of a CreateTable. Raises NotInstalled."""
    if arguments.get("VectorIndexes"):
        _require_searches()
    return described(arguments)


def _require_searches() -> None:
    if not vector_support.can_search():
        raise NotInstalled("vectors")


def changes(
    table: Table, arguments: Wire, mode: str, now_ms: int
) -> tuple[tuple[VectorIndex, ...], tuple[str, ...]]:
    """Return (indexes to create, names to drop) of an UpdateTable.

    `mode`: the billing mode after it. Raises ServiceError, NotInstalled.
    """
    updates = arguments.get("VectorIndexUpdates", ())
    creates = [update["Create"] for update in updates if "Create" in update]
    deletes = [update["Delete"]["IndexName"] for update in updates if "Delete" in update]
    for name in deletes:
        _check_deleted(table, name, now_ms)
    remaining = [index for index in vector_indexes(table) if index.name not in deletes]
    if mode != ON_DEMAND and (creates or remaining):
        raise validation(error_texts.bare("vector-billing"))
    types = defined_types(arguments)
    for create in creates:
        _check_new(table, create, types, now_ms)
    if creates:
        _require_searches()
    return tuple(new(create, types) for create in creates), tuple(deletes)


def _check_deleted(table: Table, name: str, now_ms: int) -> None:
    index = vector_index(table, name)
    if index is None:
        text = f"Requested resource not found: Index {name} for table {table.name}"
        raise ServiceError("ResourceNotFoundException", text)
    running_changes.refuse_allocating(table, index, now_ms)


def _check_new(table: Table, create: Wire, types: Mapping[str, str], now_ms: int) -> None:
    """Check that an index may be added to a table. Raises ServiceError."""
    name = create["IndexName"]
    existing = vector_index(table, name) or table.index(name)
    if existing is not None:
        if existing.is_active(now_ms):
            raise validation("Attempting to create an index which already exists")
        raise running_changes.in_use(f"Index is being created.  Table: {table.name} Index: {name}")
    if len(vector_indexes(table)) >= limits.VECTOR_INDEXES:
        text = f"Number of vector secondary indexes exceeds per-table limit of {limits.VECTOR_INDEXES}"
        raise ServiceError("LimitExceededException", f"Subscriber limit exceeded: {text}")
    _refuse_redefinition(table, create, types)
    vector_rules.check_dimensions(
        [(index.attribute, index.dimensions) for index in vector_indexes(table)], create
    )
    if composite_name(table.key_schema) in [
        element["AttributeName"] for element in create.get("SearchSchema", ())
    ]:
        raise validation(
            error_texts.INVALID + "A key of several columns cannot be in a search schema; its columns can"
        )


def _refuse_redefinition(table: Table, create: Wire, types: Mapping[str, str]) -> None:
    """Check that a key attribute keeps its type, as writes could not obey two types. Raises ServiceError."""
    keys_by_name = {key.name: key for key in table_definitions.shown_table_keys(table.key_schema)}
    for index in table.indexes:
        keys_by_name |= {key.name: key for key in table_definitions.shown_index_keys(index.key_schema)}
    vector = create["VectorAttribute"]["AttributeName"]
    columns = {column.name: column for index in vector_indexes(table) for column in index.columns}
    if vector in keys_by_name:
        raise _redefinition_error(
            f"SchemaElement: key{{{vector}:{keys_by_name[vector].type}:{keys_by_name[vector].role}}}",
            f"VectorIndexSchema:[VectorAttribute: key{{{vector}:L:{create['Dimensions']}}}]",
        )
    for element in create.get("SearchSchema", ()):
        name, role = element["AttributeName"], element["SearchSchemaElementType"]
        key, column = keys_by_name.get(name), columns.get(name)
        old = (
            key.type
            if key is not None
            else table_definitions.KEY_TYPES[column.kind]
            if column is not None
            else types[name]
        )
        if old != types[name]:
            old_role = role if key is None else key.role
            raise _redefinition_error(
                f"SchemaElement: key{{{name}:{old}:{old_role}}}",
                f"Schema:[SchemaElement: key{{{name}:{types[name]}:{role}}}]",
            )


def _redefinition_error(old: str, new_schema: str) -> ServiceError:
    return validation(
        f"{error_texts.INVALID}Attributes cannot be redefined. Please check that your attribute has the same type as "
        f"previously defined. Existing schema: Schema:[{old}] New schema: {new_schema}"
    )


def restored(source: Table, arguments: Wire) -> tuple[VectorIndex, ...]:
    """Return the indexes of a restored table: all, or those in VectorIndexOverride.

    An override must match indexes of the source. Raises ServiceError.
    """
    copied_indexes = vector_indexes(source)
    if "VectorIndexOverride" not in arguments:
        return copied_indexes
    definitions = {index.name: definition_of(index) for index in copied_indexes}
    for override in arguments["VectorIndexOverride"]:
        if _comparable(override) != _comparable(definitions.get(override["IndexName"], {})):
            raise validation(
                f"Index {override['IndexName']} does not match a secondary index that existed in the source table and cannot be "
                "created during the restore operation"
            )
    names = {override["IndexName"] for override in arguments["VectorIndexOverride"]}
    return tuple(index for index in copied_indexes if index.name in names)


def _comparable(definition: Wire) -> dict[str, Any]:
    """Return a definition in which unordered lists are sorted."""
    projection = dict(definition.get("Projection", {}))
    if "NonKeyAttributes" in projection:
        projection["NonKeyAttributes"] = sorted(projection["NonKeyAttributes"])
    elements = definition.get("SearchSchema", ())
    schema = sorted((element["AttributeName"], element["SearchSchemaElementType"]) for element in elements)
    return {**definition, "Projection": projection, "SearchSchema": schema}


# Descriptions


def describe(
    description: dict[str, Any], table: Table, statistics: TableStatistics, caller: Caller, now_ms: int
) -> None:
    """Add the indexes of a table, and the types of their columns, to its description."""
    indexes = vector_indexes(table)
    if indexes:
        add_definitions(description, indexes)
        description["VectorIndexes"] = [
            _describe_index(table, index, statistics, caller, now_ms) for index in indexes
        ]


def _describe_index(
    table: Table, index: VectorIndex, statistics: TableStatistics, caller: Caller, now_ms: int
) -> dict[str, Any]:
    """Return one member of VectorIndexes."""
    rows, size_bytes = statistics.indexes.get(index.name, (0, 0))
    description = definition_of(index)
    state, active = table.state_at(now_ms), index.is_active(now_ms)
    description["IndexStatus"] = "ACTIVE" if active else "CREATING"
    if not active and state is not State.CREATING:
        description["Backfilling"] = state is State.ACTIVE
    return description | {
        "IndexSizeBytes": size_bytes,
        "ItemCount": rows,
        "IndexArn": index_arn(caller, table.name, index.name),
    }


def add_definitions(description: dict[str, Any], indexes: Iterable[BaseIndex]) -> None:
    """Add the definitions of vector indexes, and the types of their columns, to a table definition."""
    found = [index for index in indexes if isinstance(index, VectorIndex)]
    if not found:
        return
    types = {
        column.name: table_definitions.KEY_TYPES[column.kind] for index in found for column in index.columns
    }
    description["AttributeDefinitions"] = table_definitions.attribute_definitions(
        types | defined_types(description)
    )
    description["VectorIndexes"] = [definition_of(index) for index in found]


def described(description: Wire) -> tuple[VectorIndex, ...]:
    """Return the indexes in a table definition, also on a server that cannot search them."""
    types = defined_types(description)
    return tuple(new(definition, types) for definition in description.get("VectorIndexes") or ())


def definition_of(index: VectorIndex) -> dict[str, Any]:
    """Return the immutable definition of a vector index."""
    definition: dict[str, Any] = {
        "IndexName": index.name,
        "VectorAttribute": {"AttributeName": index.attribute},
        "Projection": table_definitions.projection_definition(index.projection, index.included),
        "Dimensions": index.dimensions,
        "DistanceFunction": index.metric.name,
    }
    if index.columns:
        definition["SearchSchema"] = [
            {
                "AttributeName": column.name,
                "SearchSchemaElementType": "HASH" if column is index.partition else "INLINE_FILTER",
            }
            for column in index.columns
        ]
    return definition


# The extension of tables


def _write_bytes(index: VectorIndex, old: Row | None, new: Row | None) -> int:
    """Return the bytes that a write costs an index: the size of the entry, or 0 if the entry does not change.

    A delete costs the size of the old entry. A move to another partition costs both.
    """
    before = None if old is None else index.entry(old)
    after = None if new is None else index.entry(new)
    if before is not None and after is not None:
        if before.partition != after.partition:
            return _charged_bytes(before) + _charged_bytes(after)
        if before.is_stored_as(after) and is_same_in(index.projected_names, before.row, after.row):
            return 0
    charged = after or before
    return 0 if charged is None else _charged_bytes(charged)


def _charged_bytes(entry: VectorEntry) -> int:
    return max(limits.VECTOR_REQUEST_BYTES, entry.size_bytes)


def _consumed_members(writes: Iterable[tuple[Table, WriteOutcome]]) -> dict[str, Any]:
    """Return the member of ConsumedCapacity about the indexes that writes change. Empty if there is none."""
    sizes: dict[str, int] = {}
    for table, outcome in writes:
        for index in vector_indexes(table):
            if size := _write_bytes(index, *outcome):
                sizes[index.name] = sizes.get(index.name, 0) + size
    blocks = {name: {"VectorWriteRequestBytes": float(size)} for name, size in sizes.items()}
    return {"VectorIndexes": blocks} if blocks else {}


def _item_bytes(table: Table, row: Row, size: int) -> int:
    """Return the billed size of an item. `size`: its size in a table without vector indexes.

    An indexed vector counts as 32-bit numbers. Any list of the index's length counts as a vector.
    """
    contents = row.contents
    for name, dimensions in {index.attribute: index.dimensions for index in vector_indexes(table)}.items():
        if len(contents.members.get(name, {}).get("L", ())) == dimensions:
            value = contents.value(name)
            assert value is not None
            size += COMPONENT_BYTES * dimensions - size_bytes(value)
    return size


EXTENSION = TableExtension(
    ("VectorIndexes", "VectorIndexUpdates", "VectorIndexOverride"),
    check_new_table=vector_rules.new_indexes,
    key_names=vector_rules.schema_names,
    projected_number=vector_rules.projected_number,
    check_update=vector_rules.index_updates,
    new_indexes=new_indexes,
    index_changes=changes,
    described_indexes=described,
    add_definitions=add_definitions,
    restored_indexes=restored,
    describe=describe,
    check_item=vector_rules.check_vectors,
    item_bytes=_item_bytes,
    consumed_members=_consumed_members,
)
