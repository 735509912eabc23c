"""Data models of NoSQL Workbench: tables with their keys, indexes and sample rows.

Source: exported models, "Exporting a data model" in the developer guide to DynamoDB.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from tablegate.adapters.dynamodb.export_files.compression import UnreadableFile
from tablegate.adapters.dynamodb.export_files.line_formats import LineFormat, read_item, shown_names
from tablegate.adapters.dynamodb.wire.errors import ServiceError
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.row_lines import json_object, position_of_members
from tablegate.gateway.model.values.rows import Row
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.endpoints.files.document_files import MODEL, DocumentFiles, document_parts
from tablegate.transfer.endpoints.files.file_endpoint import LineReader, keys_of
from tablegate.transfer.errors import BadFile

_ROLES = (("PartitionKey", "HASH"), ("SortKey", "RANGE"))


class WorkbenchModel(DocumentFiles):
    """A table of a data model. The option `table` names it if there are several. The option `keys` replaces its key."""

    service = Service.DYNAMODB
    format_name = MODEL

    def __init__(self, path: Path, options: Mapping[str, str]) -> None:
        super().__init__(path, options)
        self._table = options.get("table", "")
        self._schema = keys_of(options, self.shown)

    def read_definition(self) -> Definition:
        lines = LineReader(self.path)
        try:
            return self._definition(self._model_table(lines))
        finally:
            lines.close()

    def rows(self, files: Iterator[LineReader]) -> Iterator[Row]:
        for lines in files:
            table = self._model_table(lines)
            schema = self._definition(table).key_schema
            items = table.get("TableData") or []
            if not isinstance(items, list):
                raise BadFile(f"{self.path}: TableData is no list")
            for number, item in enumerate(items, 1):
                yield self._row(item, schema, number)

    def _row(self, item: Any, schema: KeySchema, number: int) -> Row:
        try:
            parsed = read_item(orjson.dumps(item), LineFormat.BARE)
            return Row(position_of_members(parsed, schema), parsed.contents, 0)
        except UnreadableFile as error:
            raise BadFile(f"{self.path}, row {number} of TableData: {error}") from None

    def _model_table(self, lines: LineReader) -> dict[str, Any]:
        """Return the selected table of the model. Raises BadFile."""
        parts = list(document_parts(lines))
        try:
            if len(parts) != 1:
                raise UnreadableFile(f"{len(parts)} documents, expected one data model of NoSQL Workbench")
            tables = json_object(parts[0].data).get("DataModel")
            if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
                raise UnreadableFile("the data model of NoSQL Workbench has no list DataModel")
            names = [str(table.get("TableName")) for table in tables]
            if not self._table and len(tables) != 1:
                raise UnreadableFile(
                    f"the data model of NoSQL Workbench has {len(tables)} tables: {shown_names(names)}."
                    " Add ?table=NAME to read one of them"
                )
            if self._table and names.count(self._table) != 1:
                raise UnreadableFile(
                    f"the data model has not one table {self._table}, but {shown_names(names)}"
                )
        except UnreadableFile as error:
            raise lines.bad(error) from None
        found: dict[str, Any] = tables[names.index(self._table) if self._table else 0]
        return found

    def _definition(self, table: dict[str, Any]) -> Definition:
        # Imported here, because it loads the adapter's control plane, the largest part of it.
        from tablegate.transfer.endpoints.files.table_description import parse_description

        try:
            schema, indexes, _ = parse_description(_description_of(table))
        except (KeyError, TypeError, AttributeError, ServiceError) as error:
            raise BadFile(
                f"{self.path}: KeyAttributes of {table.get('TableName')} are invalid: {error!r}"
            ) from None
        if self._schema is not None:
            schema = self._schema
        name = str(table.get("TableName", self.table_name))
        return Definition(name, Service.DYNAMODB, schema, indexes, size_bytes=self.size_bytes())


def _description_of(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table in the form of DescribeTable."""
    types: dict[str, str] = {}
    indexes = [
        {
            "IndexName": index["IndexName"],
            "KeySchema": _key_schema(index["KeyAttributes"], types),
            "Projection": index.get("Projection") or {"ProjectionType": "ALL"},
        }
        for index in table.get("GlobalSecondaryIndexes") or ()
    ]
    return {
        "KeySchema": _key_schema(table["KeyAttributes"], types),
        "GlobalSecondaryIndexes": indexes,
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": letter} for name, letter in types.items()
        ],
    }


def _key_schema(keys: Mapping[str, Any], types: dict[str, str]) -> list[dict[str, str]]:
    elements = []
    for member, role in _ROLES:
        if keys.get(member):
            name = keys[member]["AttributeName"]
            types[name] = keys[member]["AttributeType"]
            elements.append({"AttributeName": name, "KeyType": role})
    return elements
