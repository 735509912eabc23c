"""A table's key and indexes in the format of DescribeTable.

Exports do not contain them. tablegate writes them beside its exports. For other exports, users can add the output of
`aws dynamodb describe-table`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from tablegate.adapters.dynamodb import capabilities  # noqa: F401 (registers the extensions of tables)
from tablegate.adapters.dynamodb.tables import table_definitions, table_extensions
from tablegate.adapters.dynamodb.tables.table_definitions import (
    KINDS,
    defined_types,
    key_schema,
    new_local_index,
)
from tablegate.adapters.dynamodb.wire.errors import ServiceError
from tablegate.gateway.model.commands.table_commands import NewIndex
from tablegate.gateway.model.tables.indexes import BaseIndex
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.transfer.endpoints.endpoint import Definition
from tablegate.transfer.errors import BadFile

_LETTERS = {kind: letter for letter, kind in KINDS.items()}


def description_of(definition: Definition) -> bytes:
    """Return the definition of a table with DynamoDB's kinds in the format of DescribeTable."""
    schemas = [definition.key_schema, *(index.key_schema for index in definition.indexes)]
    types = {column.name: _LETTERS[column.kind] for schema in schemas for column in schema.columns}
    table: dict[str, Any] = {
        "TableName": definition.name,
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": letter} for name, letter in types.items()
        ],
        "KeySchema": table_definitions.key_elements(
            table_definitions.shown_index_keys(definition.key_schema)
        ),
    }
    for member, is_local in (("LocalSecondaryIndexes", True), ("GlobalSecondaryIndexes", False)):
        indexes = [
            table_definitions.index_definition(index)
            for index in definition.indexes
            if index.local == is_local
        ]
        if indexes:
            table[member] = indexes
    table_extensions.add_definitions(table, definition.other_indexes)
    return orjson.dumps({"Table": table}, option=orjson.OPT_INDENT_2)


TableDescription = tuple[KeySchema, tuple[NewIndex, ...], tuple[BaseIndex, ...]]
"""The key, the ordered indexes and the other indexes of a table."""


def read_description(path: Path, table_name: str = "") -> TableDescription:
    """Return the description in an output of DescribeTable, with or without the member `Table`.

    `table_name`: the table of the export, "" if unknown. Raises BadFile, also for the description of another table.
    """
    try:
        document = orjson.loads(path.read_bytes())
        table = document.get("Table", document)
        name = table.get("TableName")
        if name and table_name and name != table_name:
            raise BadFile(
                f"{path} describes the table {name}, but the export is of {table_name}."
                " Remove the file, or give the key as ?keys=NAME:S"
            )
        return parse_description(table)
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError, ServiceError) as error:
        raise BadFile(f"{path} is not an output of `aws dynamodb describe-table`: {error!r}") from None


def parse_description(table: dict[str, Any]) -> TableDescription:
    """Return the description in a member `Table`. Raises KeyError, TypeError, AttributeError, ServiceError."""
    types = defined_types(table)
    indexes = [new_local_index(index, types) for index in table.get("LocalSecondaryIndexes") or ()]
    for index in table.get("GlobalSecondaryIndexes") or ():
        local = new_local_index(index, types)
        indexes.append(NewIndex(local.name, local.key_schema, local.projection, local.included))
    schema = key_schema(table["KeySchema"], types)
    if not schema.partition:
        raise KeyError("HASH")
    return schema, tuple(indexes), table_extensions.described_indexes(table)
