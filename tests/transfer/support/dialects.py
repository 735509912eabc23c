"""tablegate's three dialects as services of a transfer, each in this process on a database in memory.

Rows are written and read by requests as their SDKs send them, and rejected as the services reject them.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import orjson

from tablegate.adapters.azuretable import values as azure_values
from tablegate.adapters.tablestore.wire.plainbuffer import WireCell, WireRow, decode_row, encode_row
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.values import bodies
from tablegate.gateway.model.values.keys import Key
from tablegate.gateway.model.values.rows import Cell, Contents, Row
from tablegate.gateway.model.values.values import Kind, Value
from tablegate.transfer.endpoints.endpoint import Definition
from tests.adapters.azuretable.client import AzureTableService
from tests.adapters.dynamodb.client import DynamoDBService
from tests.adapters.tablestore.client import Refused, TableStoreService, condition
from tests.support.clock import Clock

_KEY_TYPES = {Kind.TEXT: "S", Kind.BYTES: "B", Kind.DECIMAL: "N"}
_COLUMN_TYPES = {Kind.TEXT: messages.STRING, Kind.BYTES: messages.BINARY, Kind.INT64: messages.INTEGER}


class Dialects:
    """Three services with any number of tables. A table with one key is created once."""

    def __init__(
        self, dynamodb: DynamoDBService, azure: AzureTableService, tablestore: TableStoreService
    ) -> None:
        self._dynamodb, self._azure, self._tablestore = dynamodb, azure, tablestore
        self._names: dict[object, str] = {}
        self._numbers = itertools.count()

    def write(self, definition: Definition, row: Row) -> str | None:
        """Put a row into a table of the definition's service. Returns None, or the reason of the refusal."""
        return getattr(self, f"_write_{definition.service.name.lower()}")(definition, row)

    def read(self, definition: Definition, key: Key) -> Row:
        """A row that is there."""
        values = getattr(self, f"_read_{definition.service.name.lower()}")(definition, key)
        return Row(key.position, values, 0)

    def _name(self, definition: Definition) -> tuple[str, bool]:
        """The table, and whether it has yet to be made."""
        index_names = tuple(index.name for index in definition.indexes)
        known = (definition.service, definition.key_schema, definition.rules.max_versions, index_names)
        is_new = known not in self._names
        return self._names.setdefault(known, f"table{next(self._numbers)}"), is_new

    # DynamoDB

    def _write_dynamodb(self, definition: Definition, row: Row) -> str | None:
        name, is_new = self._name(definition)
        if is_new:
            self._create_dynamodb(name, definition)
        answer = self._dynamodb.call("PutItem", {"TableName": name, "Item": _item(row.latest)})
        return None if self._dynamodb.last.status == 200 else str(answer)

    def _create_dynamodb(self, name: str, definition: Definition) -> None:
        def schema_of(schema: Any) -> list[dict[str, str]]:
            return [
                {"AttributeName": column.name, "KeyType": role}
                for role, columns in (("HASH", schema.partition), ("RANGE", schema.sort))
                for column in columns
            ]

        columns = {column.name: column for column in definition.key_schema.columns}
        for index in definition.indexes:
            columns |= {column.name: column for column in index.key_schema.columns}
        indexes = [
            {
                "IndexName": index.name,
                "KeySchema": schema_of(index.key_schema),
                "Projection": {"ProjectionType": "ALL"},
            }
            for index in definition.indexes
        ]
        more = {"GlobalSecondaryIndexes": indexes} if indexes else {}
        self._dynamodb.table(
            name,
            AttributeDefinitions=[
                {"AttributeName": column.name, "AttributeType": _KEY_TYPES[column.kind]}
                for column in columns.values()
            ],
            KeySchema=schema_of(definition.key_schema),
            **more,
        )

    def _read_dynamodb(self, definition: Definition, key: Key) -> Contents:
        name, _ = self._name(definition)
        wire = _item(dict(zip(definition.key_schema.names, key.values, strict=True)))
        answer = self._dynamodb.call("GetItem", {"TableName": name, "Key": wire})
        return Contents.of_values(bodies.untagged_all(answer["Item"]))

    # Azure Table

    def _write_azure_table(self, definition: Definition, row: Row) -> str | None:
        name, is_new = self._name(definition)
        if is_new:
            self._azure.create(name)
        entity: dict[str, Any] = {}
        for attribute, value in row.latest.items():
            if attribute in definition.key_schema.names:
                entity[attribute] = value.data
                continue
            wire, edm = azure_values.spell(value)
            entity[attribute] = wire
            if edm is not None or isinstance(wire, float):
                entity[f"{attribute}@odata.type"] = edm or "Edm.Double"
        address = _address(row.latest["PartitionKey"].data, row.latest["RowKey"].data)
        self._azure.send("DELETE", f"/{name}({address})", headers={"If-Match": "*"})
        reply = self._azure.send("POST", f"/{name}", orjson.dumps(entity))
        return None if reply.status < 300 else str(reply)

    def _read_azure_table(self, definition: Definition, key: Key) -> Contents:
        name, _ = self._name(definition)
        address = _address(key.values[0].data, key.values[1].data)
        headers = {"Accept": "application/json;odata=fullmetadata"}
        reply = self._azure.send("GET", f"/{name}({address})", headers=headers)
        assert reply.status == 200, reply
        entity = orjson.loads(reply.body)
        values = {}
        for name, wire in entity.items():
            if "@" in name or name.startswith("odata.") or name == "Timestamp":
                continue
            value = azure_values.read(wire, entity.get(f"{name}@odata.type"))
            assert value is not None
            values[name] = value
        return Contents.of_values(values)

    # Table Store

    def _write_table_store(self, definition: Definition, row: Row) -> str | None:
        name, is_new = self._name(definition)
        key_names = definition.key_schema.names
        if is_new:
            self._create_table_store(name, definition)
        key = [WireCell(column, row.latest[column]) for column in key_names]
        stamped = row.kinds is not None and b'"cells"' in row.kinds
        cells = [
            WireCell(attribute, cell.value, cell.stamp_ms if stamped else None)
            for attribute, versions in row.cells.items()
            if attribute not in key_names
            for cell in versions
        ]
        try:
            self._tablestore.call(
                "PutRow",
                table_name=name,
                row=encode_row(WireRow(key, cells)),
                condition=condition({}),
            )
        except Refused as refusal:
            return str(refusal)
        return None

    def _create_table_store(self, name: str, definition: Definition) -> None:
        versions = definition.rules.max_versions
        # As wide as can be, so that cells keep the times that they had.
        table_options = messages.TableOptions(
            time_to_live=-1, max_versions=versions, deviation_cell_version_in_sec=2**31 - 1
        )
        columns = [(column.name, _COLUMN_TYPES[column.kind]) for column in definition.key_schema.columns]
        self._tablestore.create(name, *columns, table_options=table_options)

    def _read_table_store(self, definition: Definition, key: Key) -> Contents:
        name, _ = self._name(definition)
        wire = [
            WireCell(column, value)
            for column, value in zip(definition.key_schema.names, key.values, strict=True)
        ]
        answer = self._tablestore.call(
            "GetRow", table_name=name, primary_key=encode_row(WireRow(wire)), max_versions=2000
        )
        found = decode_row(answer.row)
        assert found is not None
        cells: dict[str, tuple[Cell, ...]] = {}
        for cell in found.cells:
            assert isinstance(cell.value, Value) and cell.stamp_ms is not None
            cells[cell.name] = (*cells.get(cell.name, ()), Cell(cell.value, cell.stamp_ms))
        return Contents.of_cells({cell.name: cell.value for cell in found.key}, cells)  # type: ignore[misc]


def _item(values: Any) -> dict[str, Any]:
    return {name: bodies.tagged(value) for name, value in values.items()}


def _address(partition_key: str, row_key: str) -> str:
    quoted = [quote(text.replace("'", "''"), safe="") for text in (partition_key, row_key)]
    return f"PartitionKey='{quoted[0]}',RowKey='{quoted[1]}'"


@contextlib.contextmanager
def opened() -> Iterator[Dialects]:
    """The three, for as long as the block runs."""
    with (
        DynamoDBService.opened(Clock()) as dynamodb,
        AzureTableService.opened(Clock(step_ns=1_000)) as azure,
        TableStoreService.opened(Clock(), tablestore_tables=0) as tablestore,
    ):
        yield Dialects(dynamodb, azure, tablestore)
