"""A table's key and indexes as DescribeTable tells them. An export says nothing of them: ours has them beside it, and what
`aws dynamodb describe-table` prints may be put there by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from tablegate.adapters.dynamodb.tables import descriptions, vector_indexes
from tablegate.adapters.dynamodb.tables.indexes import KINDS, defined_types, key_schema, new_local
from tablegate.adapters.dynamodb.wire.errors import ServiceError
from tablegate.gateway.model.commands.table_commands import NewIndex, NewVectorIndex
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.transfer.endpoints.endpoint import Definition
from tablegate.transfer.errors import BadFile

_LETTERS = {kind: letter for letter, kind in KINDS.items()}


def description_of(definition: Definition) -> bytes:
    """The definition of a table of DynamoDB's kinds, as DescribeTable answers."""
    schemas = [definition.key_schema, *(index.key_schema for index in definition.indexes)]
    columns = {column.name: column for schema in schemas for column in schema.columns}
    for index in definition.vector_indexes:
        columns |= {column.name: column for column in (index.partition, *index.filters) if column is not None}
    table: dict[str, Any] = {
        "TableName": definition.name,
        "AttributeDefinitions": [
            {"AttributeName": column.name, "AttributeType": _LETTERS[column.kind]}
            for column in columns.values()
        ],
        "KeySchema": descriptions.key_elements(descriptions.shown_index_keys(definition.key_schema)),
    }
    for member, is_local in (("LocalSecondaryIndexes", True), ("GlobalSecondaryIndexes", False)):
        indexes = [
            descriptions.index_definition(index) for index in definition.indexes if index.local == is_local
        ]
        if indexes:
            table[member] = indexes
    if definition.vector_indexes:
        table["VectorIndexes"] = [
            descriptions.vector_index_definition(index) for index in definition.vector_indexes
        ]
    return orjson.dumps({"Table": table}, option=orjson.OPT_INDENT_2)


def read_description(path: Path) -> tuple[KeySchema, tuple[NewIndex, ...], tuple[NewVectorIndex, ...]]:
    """(key, indexes, vector indexes) of a file that holds what DescribeTable answers, with `Table` around it or without. Raises
    BadFile."""
    try:
        document = orjson.loads(path.read_bytes())
        table = document.get("Table", document)
        types = defined_types(table)
        indexes = [new_local(given, types) for given in table.get("LocalSecondaryIndexes") or ()]
        for given in table.get("GlobalSecondaryIndexes") or ():
            local = new_local(given, types)
            indexes.append(NewIndex(local.name, local.key_schema, local.projection, local.included))
        vector = tuple(vector_indexes.new(given, types) for given in table.get("VectorIndexes") or ())
        return key_schema(table["KeySchema"], types), tuple(indexes), vector
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError, ServiceError) as error:
        raise BadFile(f"{path} is not what `aws dynamodb describe-table` prints: {error!r}") from None
