"""CreateSearchIndex, DescribeSearchIndex, ListSearchIndex, DeleteSearchIndex."""

from __future__ import annotations

import base64

from google.protobuf.message import Message

from tablegate.adapters.tablestore import DIALECT
from tablegate.adapters.tablestore.search import index_schemas
from tablegate.adapters.tablestore.search.sorts import sorters_of
from tablegate.adapters.tablestore.tables.options import allows_update, cell_lifetime_ms
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.call_context import CallContext, find_table
from tablegate.adapters.tablestore.wire.errors import ServiceError, invalid
from tablegate.adapters.tablestore.wire.names import is_name
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.exchanges import one
from tablegate.gateway.model.commands.commands import Exchange
from tablegate.gateway.model.commands.search_commands import (
    CreateSearchIndex,
    DescribeSearchIndex,
    DropSearchIndex,
    ListSearchIndexes,
)
from tablegate.gateway.model.search.schema import SearchIndex
from tablegate.gateway.model.tables.tables import Table

_FOREVER_S = -1


def create_search_index(call: CallContext) -> Exchange[Message]:
    """CreateSearchIndex: create a search index, with the existing rows. Raises ServiceError, TableMissing, IndexExists."""
    message = call.message
    if not is_name(message.index_name):
        raise invalid(f"Invalid search index name: '{message.index_name}'.")
    if message.source_index_name:
        raise invalid("source_index_name is not supported.")
    if message.HasField("time_to_live") and message.time_to_live not in (0, _FOREVER_S):
        raise invalid("The time to live of a search index is not supported.")
    schema = index_schemas.schema_of(message.schema)
    complete = index_schemas.normalized(message.schema)
    sorters_of(complete.index_sort, schema)
    table: Table = yield from find_table(call, message.table_name)
    _check_table(table, message.schema)
    properties = {"schema": base64.b64encode(complete.SerializeToString()).decode()}
    yield from one(
        CreateSearchIndex(table, message.index_name, DIALECT, schema, properties, limits.SEARCH_INDEXES_MAX)
    )
    return messages.CreateSearchIndexResponse()


def _check_table(table: Table, schema: messages.IndexSchema) -> None:
    """Raise ServiceError if a table cannot have an index.

    Source: "Virtual columns" (2026): one version, and cells that do not expire, or rows that are not updated. Routing
    fields are columns of the primary key ("CreateSearchIndex").
    """
    for name in schema.index_setting.routing_fields:
        if name not in table.key_schema.names:
            raise invalid(f"The routing field must be a primary key column: '{name}'.")
    if table.rules.max_versions != 1:
        raise invalid("The max versions of a table with search index must be 1.")
    if cell_lifetime_ms(table) != float("inf") and allows_update(table):
        raise invalid(
            "The time to live of a table with search index must be -1, or allow_update must be false."
        )


def describe_search_index(call: CallContext) -> Exchange[Message]:
    """DescribeSearchIndex: the schema with its defaults, and the progress. Raises ServiceError, TableMissing."""
    message = call.message
    table: Table = yield from find_table(call, message.table_name)
    index = yield from find_search_index(table, message.index_name)
    state = yield from one(DescribeSearchIndex(table, index.name))
    phase = messages.FULL if state.is_filling else messages.INCR
    return messages.DescribeSearchIndexResponse(
        schema=described_schema(index),
        sync_stat=messages.SyncStat(sync_phase=phase, current_sync_timestamp=state.synced_to_ms * 1_000_000),
        metering_info=messages.MeteringInfo(row_count=state.documents, timestamp=call.now_ms // 1000),
        create_time=index.created_at_ms,
        time_to_live=_FOREVER_S,
        index_status=messages.IndexStatus(status=messages.RUNNING),
    )


def described_schema(index: SearchIndex) -> messages.IndexSchema:
    """Return the schema of an index as its creator sent it, with the defaults."""
    return messages.IndexSchema.FromString(base64.b64decode(index.properties["schema"]))


def list_search_index(call: CallContext) -> Exchange[Message]:
    """ListSearchIndex: the search indexes of a table, or of all tables. An absent table has none."""
    name = call.message.table_name
    indexes = yield from one(ListSearchIndexes(call.caller.namespace, name))
    return messages.ListSearchIndexResponse(
        indices=[messages.IndexInfo(table_name=table, index_name=index.name) for table, index in indexes]
    )


def delete_search_index(call: CallContext) -> Exchange[Message]:
    """DeleteSearchIndex: delete a search index. Raises ServiceError, TableMissing."""
    message = call.message
    table: Table = yield from find_table(call, message.table_name)
    index = yield from find_search_index(table, message.index_name)
    yield from one(DropSearchIndex(table, index.name))
    return messages.DeleteSearchIndexResponse()


def find_search_index(table: Table, name: str) -> Exchange[SearchIndex]:
    """Return a search index of a table. Raises ServiceError."""
    indexes = yield from one(ListSearchIndexes(table.namespace, table.name))
    for _, index in indexes:
        if index.name == name:
            return index
    raise ServiceError("OTSMetaNotMatch", f"search index [{name}] does not exist")
