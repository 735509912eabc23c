"""The mapping of a table's indexes, expiry and stream to another service."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from tablegate.adapters.dynamodb.wire import limits as dynamodb_limits
from tablegate.adapters.tablestore.wire import limits as tablestore_limits
from tablegate.adapters.tablestore.wire.names import is_name
from tablegate.gateway.model.commands.table_commands import NewIndex
from tablegate.gateway.model.tables.indexes import BaseIndex, IndexProjection
from tablegate.gateway.model.tables.tables import Rules
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.values import Kind
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.mapping import rules
from tablegate.transfer.mapping.keys import EXACT_NUMBERS
from tablegate.transfer.mapping.names import table_name
from tablegate.transfer.mapping.rules import MappingFinding
from tablegate.transfer.mapping.to_dynamodb import key_column


def defined_in(
    source: Definition, target: Service, key_schema: KeySchema, name: str | None = None
) -> tuple[Definition, tuple[MappingFinding, ...]]:
    """Return the definition of the copy and findings for the parts that the target does not support.

    `name` is the copy's name if it is known already.
    """
    notes: list[MappingFinding] = []
    if target is Service.TABLEGATE:
        return dataclasses.replace(
            source, key_schema=key_schema, name=name or source.name, is_stored=True
        ), ()
    new_name = name or table_name(target, source.name)
    if new_name != source.name and name is None:
        notes.append(MappingFinding(rules.TABLE_RENAMED, source.name))
    _note_keys(source, key_schema, notes)
    own = source.key_schema
    renamed = {
        mine.name: other
        for columns, others in ((own.partition, key_schema.partition), (own.sort, key_schema.sort))
        if len(columns) == len(others)
        for mine, other in zip(columns, others, strict=True)
    }
    definition = Definition(
        new_name,
        target,
        key_schema,
        tuple(_indexes(source, target, key_schema, renamed, notes)),
        _rules(source, target, notes),
        dict(source.properties) if source.service is target else {},
        source.rows,
        source.size_bytes,
        other_indexes=_other_indexes(source, target, notes),
    )
    return definition, tuple(notes)


def _note_keys(source: Definition, key_schema: KeySchema, notes: list[MappingFinding]) -> None:
    own = source.key_schema
    for mine, other in ((own.partition, key_schema.partition), (own.sort, key_schema.sort)):
        names = [column.name for column in other]
        notes += [
            MappingFinding(rules.KEY_RENAMED, column.name)
            for at, column in enumerate(mine)
            if names[at : at + 1] != [column.name] or len(names) != len(mine)
        ]
        if any(column.kind is Kind.TEXT for column in other):
            notes += [
                MappingFinding(rules.KEY_ORDER, column.name)
                for at, column in enumerate(mine)
                if column.kind in EXACT_NUMBERS and (len(mine) != len(other) or other[at].kind is Kind.TEXT)
            ]
    if source.service is Service.AZURE_TABLE:
        notes.append(MappingFinding(rules.TIMESTAMP_NOT_KEPT, "Timestamp"))


def _rules(source: Definition, target: Service, notes: list[MappingFinding]) -> Rules:
    own = source.rules
    expiry, stream = own.expiry, own.stream
    if expiry is not None:
        is_kept = (
            target is Service.DYNAMODB if expiry.attribute is not None else target is Service.TABLE_STORE
        )
        if not is_kept:
            notes.append(MappingFinding(rules.EXPIRY_NOT_KEPT, expiry.attribute or ""))
            expiry = None
    if stream is not None and stream.enabled and target is Service.AZURE_TABLE:
        notes.append(MappingFinding(rules.STREAM_NOT_KEPT, ""))
        stream = None
    if target is Service.TABLE_STORE:
        return Rules(expiry, stream, own.max_versions, stamped=True)
    if own.stamped:
        notes.append(MappingFinding(rules.STAMPS_NOT_KEPT, ""))
    assigned_columns = [column for column in source.key_schema.columns if column.auto_increment]
    notes += [MappingFinding(rules.AUTO_INCREMENT_NOT_KEPT, column.name) for column in assigned_columns]
    return Rules(expiry, stream)


# Indexes


def _indexes(
    source: Definition,
    target: Service,
    key_schema: KeySchema,
    renamed: dict[str, KeyColumn],
    notes: list[MappingFinding],
) -> Sequence[NewIndex]:
    new_indexes: list[NewIndex] = []
    joined = {*source.key_schema.names} - renamed.keys()
    for index in source.indexes:
        index_copy = None
        if not joined & {*index.key_schema.names} and target is not Service.AZURE_TABLE:
            columns = _IndexColumns(index.key_schema, renamed)
            index_copy = (
                _to_dynamodb(index, columns, key_schema, new_indexes)
                if target is Service.DYNAMODB
                else _to_table_store(index, columns, key_schema, new_indexes, source.rules, notes)
            )
        if index_copy is None:
            notes.append(MappingFinding(rules.INDEX_NOT_KEPT, index.name))
        else:
            new_indexes.append(index_copy)
    return new_indexes


def _other_indexes(source: Definition, target: Service, notes: list[MappingFinding]) -> tuple[BaseIndex, ...]:
    """Return the indexes of other kinds than the ordered ones. Only DynamoDB has such indexes."""
    if target is Service.DYNAMODB:
        return source.other_indexes
    notes += [MappingFinding(rules.INDEX_NOT_KEPT, index.name) for index in source.other_indexes]
    return ()


class _IndexColumns:
    """The key columns of an index under the names of the target table."""

    def __init__(self, schema: KeySchema, renamed: dict[str, KeyColumn]) -> None:
        self.partition = [renamed.get(column.name, column) for column in schema.partition]
        self.sort = [renamed.get(column.name, column) for column in schema.sort]


def _to_dynamodb(
    index: NewIndex, columns: _IndexColumns, key_schema: KeySchema, new_indexes: Sequence[NewIndex]
) -> NewIndex | None:
    attributes_max = dynamodb_limits.INDEX_KEY_ATTRIBUTES_PER_ROLE
    if len(columns.partition) > attributes_max or len(columns.sort) > attributes_max:
        return None
    same = [earlier for earlier in new_indexes if earlier.local is index.local]
    if len(same) >= (dynamodb_limits.LOCAL_INDEXES if index.local else dynamodb_limits.GLOBAL_INDEXES):
        return None
    schema = KeySchema(
        tuple(key_column(column) for column in columns.partition),
        tuple(key_column(column) for column in columns.sort),
    )
    if index.local and not (
        key_schema.sort and schema.partition == key_schema.partition and len(schema.sort) == 1
    ):
        return None
    shortest = dynamodb_limits.TABLE_NAME_MIN_CHARACTERS  # index names have the form of table names
    name = index.name if len(index.name) >= shortest else table_name(Service.DYNAMODB, index.name)
    return dataclasses.replace(index, name=name, key_schema=schema, properties={})


def _to_table_store(
    index: NewIndex,
    columns: _IndexColumns,
    key_schema: KeySchema,
    new_indexes: Sequence[NewIndex],
    source_rules: Rules,
    notes: list[MappingFinding],
) -> NewIndex | None:
    all_columns = (*columns.partition, *columns.sort)
    if (
        len(all_columns) > tablestore_limits.KEY_COLUMNS_MAX
        or len(new_indexes) >= tablestore_limits.INDEXES_MAX
        or source_rules.max_versions != 1
        or any(column.kind is Kind.DECIMAL or not is_name(column.name) for column in all_columns)
        or (index.local and all_columns[0].name != key_schema.columns[0].name)
    ):
        return None
    name = index.name if is_name(index.name) else table_name(Service.TABLE_STORE, index.name)
    if index.properties.get("update_mode") is None and index.projection is not IndexProjection.KEYS:
        notes.append(MappingFinding(rules.INDEX_PROJECTION, index.name))
        index = dataclasses.replace(index, projection=IndexProjection.KEYS, included=())
    return dataclasses.replace(index, name=name, key_schema=KeySchema(all_columns[:1], all_columns[1:]))
