"""A table's key and indexes in the format of DescribeTable.

Exports do not contain them. tablegate writes them beside its exports. For other exports, users can add the output of
`aws dynamodb describe-table`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from tablegate.adapters.dynamodb.export_files.manifests import ManifestSummary
from tablegate.adapters.dynamodb.tables import descriptions, vector_indexes
from tablegate.adapters.dynamodb.tables.indexes import KINDS, defined_types, key_schema, new_local
from tablegate.adapters.dynamodb.wire.errors import ServiceError
from tablegate.gateway.model.commands.table_commands import NewIndex, NewVectorIndex
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.transfer.endpoints.endpoint import Definition
from tablegate.transfer.errors import BadFile

_LETTERS = {kind: letter for letter, kind in KINDS.items()}


def description_of(definition: Definition) -> bytes:
    """Return the definition of a table with DynamoDB's kinds in the format of DescribeTable."""
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


def read_description(
    path: Path, summary: ManifestSummary
) -> tuple[KeySchema, tuple[NewIndex, ...], tuple[NewVectorIndex, ...]]:
    """Return (key, indexes, vector indexes) from the output of DescribeTable, with or without the member `Table`.

    Raises BadFile, also if it describes another table than the one that the summary of the export names.
    """
    try:
        document = orjson.loads(path.read_bytes())
        table = document.get("Table", document)
        name = table.get("TableName")
        if name and summary.table_name and name != summary.table_name:
            raise BadFile(
                f"{path} describes the table {name}, but the export is of {summary.table_name}."
                " Remove the file, or give the key as ?keys=NAME:S"
            )
        types = defined_types(table)
        indexes = [new_local(index, types) for index in table.get("LocalSecondaryIndexes") or ()]
        for index in table.get("GlobalSecondaryIndexes") or ():
            local = new_local(index, types)
            indexes.append(NewIndex(local.name, local.key_schema, local.projection, local.included))
        vector = tuple(vector_indexes.new(index, types) for index in table.get("VectorIndexes") or ())
        return key_schema(table["KeySchema"], types), tuple(indexes), vector
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError, ServiceError) as error:
        raise BadFile(f"{path} is not an output of `aws dynamodb describe-table`: {error!r}") from None
