"""CreateSearchIndex, UpdateSearchIndex, DescribeSearchIndex, ListSearchIndex, DeleteSearchIndex.

To change a schema, a client creates an index with the old one as its source, and then exchanges their names. The
properties of an index are the `schema` with its defaults, the `source` (the id of the old index, or 0) and the `weights`
of both: pairs of the id of an index and the percentage of searches that it answers. UpdateSearchIndex also adds fields,
and sets the time to live and the weights. Source: "UpdateSearchIndex" and the Go SDK's search_api_test.go
(TestUpdateSchemaAndDescribeSearchIndex).
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Sequence

from google.protobuf.message import Message

from tablegate.adapters.tablestore import DIALECT
from tablegate.adapters.tablestore.call import CallContext, find_table
from tablegate.adapters.tablestore.features.search import index_schemas, request_values
from tablegate.adapters.tablestore.features.search.sorts import sorters_of
from tablegate.adapters.tablestore.features.search.table_options import check_search_indexes
from tablegate.adapters.tablestore.table_properties import allows_update
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import ServiceError, invalid
from tablegate.adapters.tablestore.wire.names import is_name
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.features.search.schema import SearchIndex
from tablegate.gateway.features.search.search_commands import (
    AlterSearchIndex,
    CreateSearchIndex,
    DescribeSearchIndex,
    DropSearchIndex,
    ListSearchIndexes,
    SwapSearchIndexes,
)
from tablegate.gateway.model.errors import TableMissing
from tablegate.gateway.model.tables.tables import Table

_FOREVER_S = -1
WHOLE_WEIGHT = 100
"""The sum of the weights of two indexes."""
_REINDEX = "_reindex"
"""The end of the name of an index that is made to replace another one, as in the Go SDK's search_api_test.go."""


async def create_search_index(call: CallContext) -> Message:
    """CreateSearchIndex: create a search index, with the existing rows. Raises ServiceError, IndexExists."""
    message = call.message
    if not is_name(message.index_name):
        raise invalid(f"Invalid search index name: '{message.index_name}'.")
    lifetime_ms = lifetime_ms_of(message.time_to_live) if message.HasField("time_to_live") else None
    schema = index_schemas.schema_of(message.schema)
    complete = index_schemas.normalized(message.schema)
    sorters_of(complete.index_sort, schema)
    table = await find_indexed_table(call, message.table_name)
    _check_routing(table, message.schema)
    check_search_indexes(table.rules, allows_update(table), [lifetime_ms])
    source_id = 0
    if message.source_index_name:
        if not message.index_name.endswith(_REINDEX):
            raise invalid(f"The name of a search index with a source index must end with '{_REINDEX}'.")
        source_id = (await find_search_index(table, message.source_index_name)).id
    properties = {
        "schema": index_schemas.encoded(complete),
        "source": source_id,
        "weights": [],
    }
    most = limits.SEARCH_INDEXES_MAX
    await CreateSearchIndex(table, message.index_name, DIALECT, schema, properties, most, lifetime_ms)
    return messages.CreateSearchIndexResponse()


def lifetime_ms_of(seconds: int) -> int | None:
    """Return the time to live of a request, None if documents do not expire. Raises ServiceError.

    Source: "UpdateSearchIndex" (2026): at least a day, or -1.
    """
    if seconds == _FOREVER_S:
        return None
    if seconds < limits.TIME_TO_LIVE_MIN_S:
        raise invalid(
            f"The time to live of a search index must be -1 or at least {limits.TIME_TO_LIVE_MIN_S} seconds."
        )
    return seconds * 1000


def _check_routing(table: Table, schema: messages.IndexSchema) -> None:
    """Raise ServiceError unless routing fields are columns of the primary key. Source: "CreateSearchIndex"."""
    for name in schema.index_setting.routing_fields:
        if name not in table.key_schema.names:
            raise invalid(f"The routing field must be a primary key column: '{name}'.")


async def describe_search_index(call: CallContext) -> Message:
    """DescribeSearchIndex: the schema with its defaults, and the progress. Raises ServiceError."""
    message = call.message
    table = await find_indexed_table(call, message.table_name)
    index = await find_search_index(table, message.index_name)
    other = await find_pair(table, index)
    state = await DescribeSearchIndex(table, index.name)
    phase = messages.FULL if state.is_filling else messages.INCR
    return messages.DescribeSearchIndexResponse(
        schema=described_schema(index),
        sync_stat=messages.SyncStat(sync_phase=phase, current_sync_timestamp=state.synced_to_ms * 1_000_000),
        metering_info=messages.MeteringInfo(
            row_count=state.documents, storage_size=state.document_bytes, timestamp=call.now_ms // 1000
        ),
        brother_index_name=None if other is None else other.name,
        query_flow_weight=_described_weights(index, other),
        create_time=index.created_at_ms,
        time_to_live=_FOREVER_S if index.lifetime_ms is None else index.lifetime_ms // 1000,
        index_status=messages.IndexStatus(status=messages.RUNNING),
    )


def _described_weights(index: SearchIndex, other: SearchIndex | None) -> list[messages.QueryFlowWeight]:
    names = {each.id: each.name for each in (index, other) if each is not None}
    weights = index.properties.get("weights", ())
    if not all(index_id in names for index_id, _ in weights):
        return []  # the other index was deleted
    return [
        messages.QueryFlowWeight(index_name=names[index_id], weight=weight) for index_id, weight in weights
    ]


def described_schema(index: SearchIndex) -> messages.IndexSchema:
    """Return the schema of an index as its creator sent it, with the defaults."""
    return messages.IndexSchema.FromString(base64.b64decode(index.properties["schema"]))


async def list_search_index(call: CallContext) -> Message:
    """ListSearchIndex: the search indexes of a table, or of all tables. An absent table has none."""
    name = call.message.table_name
    indexes = await ListSearchIndexes(call.caller.namespace, name)
    return messages.ListSearchIndexResponse(
        indices=[messages.IndexInfo(table_name=table, index_name=index.name) for table, index in indexes]
    )


async def delete_search_index(call: CallContext) -> Message:
    """DeleteSearchIndex: delete a search index. Raises ServiceError."""
    message = call.message
    table = await find_indexed_table(call, message.table_name)
    index = await find_search_index(table, message.index_name)
    await DropSearchIndex(table, index.name)
    return messages.DeleteSearchIndexResponse()


async def find_indexed_table(call: CallContext, name: str) -> Table:
    """Return a table to search, or to change or describe its search indexes. Raises ServiceError.

    Source: parallel_scan_test.py of the Python SDK, and TableOperationFunctiontest of the Java SDK.
    """
    try:
        return await find_table(call, name)
    except TableMissing:
        raise invalid(f"table [{name}] does not exist") from None


async def find_search_index(table: Table, name: str) -> SearchIndex:
    """Return a search index of a table. Raises ServiceError."""
    for index in await _indexes_of(table):
        if index.name == name:
            return index
    raise ServiceError("OTSMetaNotMatch", f"search index [{name}] does not exist")


async def directed(table: Table, index: SearchIndex, token: bytes) -> SearchIndex:
    """Return the index that answers a search of an index: itself, or by its weights the other one of the pair.

    A further page comes from the index of its token.
    """
    weights = dict(index.properties.get("weights", ()))
    other = await find_pair(table, index) if weights else None
    if other is None:
        return index
    if token:
        return other if request_values.index_id_of(token) == other.id else index
    return other if secrets.randbelow(WHOLE_WEIGHT) < weights.get(other.id, 0) else index


async def find_pair(table: Table, index: SearchIndex) -> SearchIndex | None:
    """Return the index that was made to replace this one, or that this one was made to replace. None if there is none."""
    for other in await _indexes_of(table):
        if index.id == other.properties.get("source") or other.id == index.properties.get("source"):
            return other
    return None


async def _indexes_of(table: Table) -> list[SearchIndex]:
    indexes = await ListSearchIndexes(table.namespace, table.name)
    return [index for _, index in indexes]


async def update_search_index(call: CallContext) -> Message:
    """UpdateSearchIndex: change one thing of a search index. Raises ServiceError."""
    message = call.message
    asked = [
        bool(message.switch_index_name),
        bool(message.query_flow_weight),
        message.HasField("time_to_live"),
        bool(message.added_field_schemas),
    ]
    if sum(asked) != 1:
        raise invalid(
            "UpdateSearchIndex must have one of switch_index_name, query_flow_weight, time_to_live and"
            " added_field_schemas."
        )
    table = await find_indexed_table(call, message.table_name)
    index = await find_search_index(table, message.index_name)
    if message.switch_index_name:
        await _switch(table, index, message.switch_index_name)
    elif message.query_flow_weight:
        await _set_weights(table, index, message)
    elif message.added_field_schemas:
        await _add_fields(table, index, message.added_field_schemas)
    else:
        lifetime_ms = lifetime_ms_of(message.time_to_live)
        check_search_indexes(table.rules, allows_update(table), [lifetime_ms])
        await AlterSearchIndex(table, index.name, index.properties, lifetime_ms)
    return messages.UpdateSearchIndexResponse()


async def _switch(table: Table, index: SearchIndex, name: str) -> None:
    """Exchange the names of two indexes. One was made to replace the other."""
    await find_search_index(table, name)
    other = await find_pair(table, index)
    if other is None or other.name != name:
        raise invalid(f"The search indexes are not a source index and its reindex: '{index.name}', '{name}'.")
    await SwapSearchIndexes(table, index.name, name)


async def _add_fields(table: Table, index: SearchIndex, fields: Sequence[messages.FieldSchema]) -> None:
    """Add fields to an index, which is then filled again."""
    wanted = described_schema(index)
    wanted.field_schemas.extend(fields)
    schema = index_schemas.schema_of(wanted)
    properties = {**index.properties, "schema": index_schemas.encoded(index_schemas.normalized(wanted))}
    await AlterSearchIndex(table, index.name, properties, index.lifetime_ms, schema)


async def _set_weights(table: Table, index: SearchIndex, message: messages.UpdateSearchIndexRequest) -> None:
    weights = [(each.index_name, each.weight) for each in message.query_flow_weight]
    other = await find_pair(table, index)
    ids = {each.name: each.id for each in (index, other) if each is not None}
    if len(weights) != 2 or {name for name, _ in weights} != ids.keys():
        raise invalid("query_flow_weight must name a source index and its reindex.")
    if any(weight < 0 for _, weight in weights) or sum(weight for _, weight in weights) != WHOLE_WEIGHT:
        raise invalid(
            f"The weights must be in range: [0, {WHOLE_WEIGHT}], and their sum must be {WHOLE_WEIGHT}."
        )
    properties = {**index.properties, "weights": [(ids[name], weight) for name, weight in weights]}
    await AlterSearchIndex(table, index.name, properties, index.lifetime_ms)
