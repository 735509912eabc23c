"""Table Store's table descriptions <-> definitions: keys, options, indexes, streams."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from tablegate.adapters.tablestore import DIALECT
from tablegate.adapters.tablestore.table_properties import TableOptions, rules_with
from tablegate.adapters.tablestore.values import DEFINED_KINDS, KEY_KINDS, key_type
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.commands.table_commands import NewIndex
from tablegate.gateway.model.tables.indexes import IndexProjection
from tablegate.gateway.model.tables.tables import Rules, StreamRule
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.values import Kind
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.endpoints.table_store_client import Client
from tablegate.transfer.errors import RequestRefused, SchemaChanged, TableAbsent, TransferError

_HOUR_MS = 3_600_000
_POLL_S = 0.25
# A copy keeps the stamps of cells. This is the largest accepted difference from the current time, in seconds.
_DEVIATION_S = 2**31 - 1
_KEY_KINDS = (Kind.TEXT, Kind.BYTES, Kind.INT64)
_DEFINED_TYPES = {kind: number for number, kind in DEFINED_KINDS.items()}


# From the service


def definition_of(name: str, answer: messages.DescribeTableResponse) -> Definition:
    """Return the definition for a reply of DescribeTable. Its properties have the types of defined columns."""
    meta, options_given = answer.table_meta, answer.table_options
    columns = [
        KeyColumn(
            column.name,
            KEY_KINDS[column.type],
            column.HasField("option") and column.option == messages.AUTO_INCREMENT,
        )
        for column in meta.primary_key
    ]
    defined = {column.name: column.type for column in meta.defined_column}
    kinds = {column.name: column.kind for column in columns} | {
        name: DEFINED_KINDS[kind] for name, kind in defined.items() if kind in DEFINED_KINDS
    }
    metas = answer.index_metas or meta.index_meta
    options = TableOptions(
        table_id=meta.table_id,
        deviation_s=options_given.deviation_cell_version_in_sec or limits.DEVIATION_DEFAULT_S,
        allow_update=not options_given.HasField("allow_update") or options_given.allow_update,
        defined=tuple(defined.items()),
    )
    rules = rules_with(Rules(stamped=True, stream=_stream_rule(answer.stream_details)), options_given)
    return Definition(
        name,
        Service.TABLE_STORE,
        KeySchema(tuple(columns[:1]), tuple(columns[1:])),
        tuple(_index(index, kinds) for index in metas),
        rules,
        options.as_properties(),
    )


def _index(meta: messages.IndexMeta, kinds: Mapping[str, Kind]) -> NewIndex:
    columns = [KeyColumn(name, kinds.get(name, Kind.TEXT)) for name in meta.primary_key]
    return NewIndex(
        meta.name,
        KeySchema(tuple(columns[:1]), tuple(columns[1:])),
        IndexProjection.INCLUDE,
        tuple(meta.defined_column),
        meta.index_type == messages.IT_LOCAL_INDEX,
        {"update_mode": meta.index_update_mode},
    )


def _stream_rule(details: messages.StreamDetails) -> StreamRule | None:
    if not details.enable_stream:
        return None
    return StreamRule(
        details.stream_id,
        True,
        "NEW_AND_OLD_IMAGES",
        details.expiration_time * _HOUR_MS,
        details.last_enable_time // 1000,
        {"columns": list(details.columns_to_get)},
    )


# To the service


def creation_of(name: str, definition: Definition) -> tuple[messages.CreateTableRequest, list[str]]:
    """Return a CreateTable request and sentences about unsupported parts of the definition."""
    notes: list[str] = []
    meta = messages.TableMeta(table_name=name)
    for column in definition.key_schema.columns:
        meta.primary_key.add(name=column.name, type=_key_type(column))
        if column.auto_increment:
            notes.append(f"key column {column.name} has no auto-increment, so that rows keep their keys")
    if not 1 <= len(meta.primary_key) <= limits.KEY_COLUMNS_MAX:
        raise SchemaChanged(f"a Table Store table must have 1 to {limits.KEY_COLUMNS_MAX} key columns")
    rules = definition.rules
    options = messages.TableOptions(
        time_to_live=_time_to_live(rules, notes),
        max_versions=rules.max_versions,
        deviation_cell_version_in_sec=_DEVIATION_S,
    )
    request = messages.CreateTableRequest(
        table_meta=meta,
        reserved_throughput=messages.ReservedThroughput(capacity_unit=messages.CapacityUnit(read=0, write=0)),
        table_options=options,
    )
    _add_indexes(request, definition, notes)
    stream = rules.stream
    if stream is not None and stream.enabled:
        hours = min(max(stream.retention_ms // _HOUR_MS, 1), limits.STREAM_HOURS_MAX)
        request.stream_spec.enable_stream = True
        request.stream_spec.expiration_time = hours
    return request, notes


def _key_type(column: KeyColumn) -> Any:
    if column.kind not in _KEY_KINDS:
        raise SchemaChanged(
            f"{column.name}: a key column of a Table Store table cannot be {column.kind.value}"
        )
    return key_type(column)


def _time_to_live(rules: Rules, notes: list[str]) -> int:
    if rules.expiry is None:
        return -1
    if rules.expiry.age_ms is None:
        notes.append(
            f"rows do not expire by {rules.expiry.attribute}: Table Store supports the age of cells only"
        )
        return -1
    seconds = rules.expiry.age_ms // 1000
    if seconds < limits.TIME_TO_LIVE_MIN_S:
        notes.append(
            f"cells do not expire: the minimum in Table Store is {limits.TIME_TO_LIVE_MIN_S} seconds"
        )
        return -1
    return seconds


def _add_indexes(request: messages.CreateTableRequest, definition: Definition, notes: list[str]) -> None:
    """Add the indexes with columns of known types, and define their columns that are no key columns."""
    if definition.rules.max_versions > 1:
        notes += [
            f"index {i.name}: a table with several versions cannot have indexes" for i in definition.indexes
        ]
        return
    defined_types = dict(definition.properties.get(DIALECT, {}).get("defined", ()))
    keys = {column.name: column.kind for column in definition.key_schema.columns}
    defined: dict[str, int] = {}
    for index in definition.indexes:
        columns = _index_key(index, keys)
        if not columns or len(request.index_metas) == limits.INDEXES_MAX:
            notes.append(f"index {index.name}: Table Store does not support it")
            continue
        needed_types = {
            column.name: _DEFINED_TYPES[column.kind] for column in columns if column.name not in keys
        }
        included = [name for name in index.included if name in defined_types]
        hidden = [name for name in index.included if name not in defined_types and name not in keys]
        if hidden or index.projection is IndexProjection.ALL:
            notes.append(
                f"index {index.name} does not show {', '.join(hidden) or 'all columns'}: their types are not defined"
            )
        needed_types |= {name: defined_types[name] for name in included}
        if any(defined.get(name, kind) != kind for name, kind in needed_types.items()):
            notes.append(f"index {index.name}: one of its columns is defined with another type")
            continue
        defined |= needed_types
        request.index_metas.add(
            name=index.name,
            primary_key=[column.name for column in columns],
            defined_column=[name for name in included if name not in keys],
            index_update_mode=messages.IUM_SYNC_INDEX if index.local else messages.IUM_ASYNC_INDEX,
            index_type=messages.IT_LOCAL_INDEX if index.local else messages.IT_GLOBAL_INDEX,
        )
    for name, kind in defined.items():
        request.table_meta.defined_column.add(name=name, type=kind)
    if request.index_metas and request.table_options.time_to_live != -1:
        request.table_options.allow_update = False
        notes.append(
            "single cells cannot be updated: Table Store requires that of a table with indexes and a time to live"
        )


def _index_key(index: NewIndex, keys: Mapping[str, Kind]) -> list[KeyColumn]:
    """Return the key columns of an index, none if Table Store does not support it. `keys` are those of the table."""
    columns = list(index.key_schema.columns)
    # The service appends the table's key to that of an index and returns it in descriptions.
    while len(columns) > limits.KEY_COLUMNS_MAX and columns[-1].name in keys:
        columns.pop()
    is_possible = len(columns) <= limits.KEY_COLUMNS_MAX and all(
        column.kind in _KEY_KINDS and keys.get(column.name, column.kind) == column.kind for column in columns
    )
    return columns if is_possible else []


def create(client: Client, name: str, definition: Definition) -> list[str]:
    """Create a table and wait until it exists. Return sentences about unsupported parts of the definition."""
    request, notes = creation_of(name, definition)
    try:
        client.call("CreateTable", request, messages.CreateTableResponse)
    except RequestRefused as refusal:
        if refusal.code == "OTSObjectAlreadyExist":
            return []
        raise TransferError(
            f"{client.patience.shown}: the table cannot be created: {refusal.words}"
        ) from None
    until = time.monotonic() + client.patience.seconds
    while True:
        try:
            describe(client, name)
        except TableAbsent:
            if time.monotonic() > until:
                raise
            time.sleep(_POLL_S)
        else:
            return notes


def describe(client: Client, name: str) -> messages.DescribeTableResponse:
    """Return DescribeTable's reply. Raises TableAbsent and the other errors of a transfer."""
    request = messages.DescribeTableRequest(table_name=name)
    return client.call("DescribeTable", request, messages.DescribeTableResponse)
