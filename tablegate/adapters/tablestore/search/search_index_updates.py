"""UpdateSearchIndex: more fields, a time to live, the shares of queries of two indexes, and the switch to another schema.

To change a schema, a client creates an index with the old one as its source, and then exchanges their names. Source:
"UpdateSearchIndex" and the Go SDK's search_api_test.go (TestUpdateSchemaAndDescribeSearchIndex).
"""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.message import Message

from tablegate.adapters.tablestore.search import index_schemas
from tablegate.adapters.tablestore.search.search_indexes import (
    WHOLE_WEIGHT,
    described_schema,
    find_indexed_table,
    find_pair,
    find_search_index,
    lifetime_ms_of,
)
from tablegate.adapters.tablestore.search.table_options import check_search_indexes
from tablegate.adapters.tablestore.tables.options import allows_update
from tablegate.adapters.tablestore.wire.call_context import CallContext
from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.features.search.schema import SearchIndex
from tablegate.gateway.features.search.search_commands import AlterSearchIndex, SwapSearchIndexes
from tablegate.gateway.model.tables.tables import Table


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
    """Exchange the names of two indexes, of which one was made to replace the other."""
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
