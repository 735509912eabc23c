"""Tables of a database for a copy: created at its beginning, completed at its end.

The stream of a new table is enabled at the end, since copied rows are no changes of this table. Until then its rule
is stored in the table's properties.
"""

from __future__ import annotations

import dataclasses
import secrets
import time

from tablegate.adapters.dynamodb import DIALECT as DYNAMODB
from tablegate.adapters.dynamodb.tables.properties import TableProperties
from tablegate.adapters.tablestore import DIALECT as TABLE_STORE
from tablegate.adapters.tablestore.tables.options import TableOptions
from tablegate.gateway.model.commands.table_commands import AlterTable, CreateTable
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.store.tables.descriptors import stream_rule
from tablegate.transfer.endpoints.database.client import Client
from tablegate.transfer.endpoints.definitions import service_of
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.errors import SchemaChanged, TableAbsent

# The property with settings that are applied at the end of the copy.
_PENDING = "transfer"
_DIALECTS = {
    Service.DYNAMODB: "dynamodb",
    Service.AZURE_TABLE: "azuretable",
    Service.TABLE_STORE: "tablestore",
    Service.TABLEGATE: "",
}


def dialect_of(table: Table) -> str:
    """Return the dialect that created the table, "" if unknown."""
    return _DIALECTS[service_of(table)]


def as_completed(table: Table) -> Table:
    """Return a table with the stream that it gets at the end of the copy."""
    pending = table.properties.get(_PENDING, {})
    rules = table.rules
    if "stream" in pending:
        rules = dataclasses.replace(rules, stream=stream_rule(pending["stream"]))
    properties = {name: value for name, value in table.properties.items() if name != _PENDING}
    return dataclasses.replace(table, rules=rules, properties=properties)


def create(client: Client, definition: Definition) -> None:
    """Create a table, or use an existing one with the same key. Raises SchemaChanged."""
    command = _creation_of(client, definition)
    try:
        table = client.find()
    except TableAbsent:
        [table] = client.run([command])
        client.remember(table)
    if table.key_schema != definition.key_schema:
        raise SchemaChanged(f"{client.shown}: a table of that name exists with another key")
    client.database().record("copy", client.name)


def _creation_of(client: Client, definition: Definition) -> CreateTable:
    service = definition.service
    rules, properties = definition.rules, dict(definition.properties)
    if service is Service.TABLE_STORE:
        rules = dataclasses.replace(rules, stamped=True)
        properties.setdefault(
            TABLE_STORE, TableOptions(table_id=secrets.token_hex(16)).as_properties()[TABLE_STORE]
        )
    elif service is Service.DYNAMODB:
        properties.setdefault(DYNAMODB, TableProperties().document()[DYNAMODB])
    if rules.stream is not None and rules.stream.enabled:
        stream = dataclasses.replace(rules.stream, id=0, shards=())
        properties[_PENDING] = {"stream": dataclasses.asdict(stream)}
    rules = dataclasses.replace(rules, stream=None)
    return CreateTable(
        _DIALECTS[service], client.namespace, client.name, definition.key_schema, definition.indexes, rules, properties,
        other_indexes=definition.other_indexes,
    )  # fmt: skip


def finish(client: Client) -> None:
    """Enable the stream at the end of a copy."""
    table = client.find(is_refreshed=True)
    if stream := table.properties.get(_PENDING, {}).get("stream"):
        rule = dataclasses.replace(stream_rule(stream), enabled_at_ms=time.time_ns() // 1_000_000)
        client.alter(
            lambda table: AlterTable(
                dialect_of(table), table, dataclasses.replace(table.rules, stream=rule),
                {_PENDING: {}}, instant=True,
            )
        )  # fmt: skip
