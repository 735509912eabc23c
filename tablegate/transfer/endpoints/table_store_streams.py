"""Table Store streams as changed keys: shards, parents before children, from a position that survives the process.

A position is `{"stream": id, "since_us": ..., "looked_ms": ..., "hours": ..., "shards": {id: {"iterator": text or
null, "at_us": ..., "ended": bool}}, "done": [ids]}`. A shard from a merge has two parents and is read after both
have ended.
Source: "Stream" of the API reference: DescribeStream, GetShardIterator, GetStreamRecord.
"""

from __future__ import annotations

import copy
import time
from typing import Any

from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.plainbuffer import decode_row
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.values.keys import Key, KeySchema
from tablegate.gateway.model.values.values import Value
from tablegate.transfer.endpoints import table_store_tables
from tablegate.transfer.endpoints.endpoint import JSON, ChangedKeys
from tablegate.transfer.endpoints.table_store_client import Client, milliseconds
from tablegate.transfer.errors import PositionLost, RequestRefused, TableAbsent, TransferError

_HOUR_MS = 3_600_000
_MARGIN_US = 300_000_000  # clocks differ
_LOSS_MARGIN_MS = 600_000
_UNLIMITED = 1 << 62


class StreamFollower:
    """The stream of one table."""

    def __init__(self, table: str, client: Client) -> None:
        self._table = table
        self._client = client
        self._stream = ""

    def capture(self) -> JSON:
        """Return the current position. Enables the stream if necessary."""
        details = table_store_tables.describe(self._client, self._table).stream_details
        if not details.enable_stream:
            details = self._enable_stream()
        now_ms = self._now_ms()
        self._stream = details.stream_id
        position = {
            "stream": details.stream_id,
            "since_us": now_ms * 1000 - _MARGIN_US,
            "looked_ms": now_ms,
            "hours": details.expiration_time or limits.STREAM_HOURS_DEFAULT,
            "shards": {},
            "done": [],
        }
        self._add_ready(position)
        return position

    def _enable_stream(self) -> messages.StreamDetails:
        request = messages.UpdateTableRequest(table_name=self._table)
        request.stream_spec.enable_stream = True
        request.stream_spec.expiration_time = limits.STREAM_HOURS_MAX
        try:
            self._client.call("UpdateTable", request, messages.UpdateTableResponse)
        except RequestRefused as refusal:
            raise TransferError(
                f"{self._client.patience.shown}: its stream cannot be enabled: {refusal.words}"
            ) from None
        return table_store_tables.describe(self._client, self._table).stream_details

    def _now_ms(self) -> int:
        service_ms = milliseconds(self._client.date)
        return time.time_ns() // 1_000_000 if service_ms is None else service_ms

    def _shards(self, stream: str) -> list[messages.StreamShard]:
        shards: list[messages.StreamShard] = []
        request = messages.DescribeStreamRequest(stream_id=stream)
        while True:
            answer = self._call("DescribeStream", request, messages.DescribeStreamResponse)
            shards += answer.shards
            if not answer.next_shard_id:
                return shards
            request.inclusive_start_shard_id = answer.next_shard_id

    def _add_ready(self, position: Any) -> None:
        """Add the shards with parents that have been read to their ends or no longer exist."""
        shards = self._shards(position["stream"])
        shard_ids = {shard.shard_id for shard in shards}
        position["done"] = [shard for shard in position["done"] if shard in shard_ids]
        unfinished = shard_ids - set(position["done"])
        for shard in shards:
            parents = {shard.parent_id, shard.parent_sibling_id} - {""}
            is_known = shard.shard_id in position["shards"] or shard.shard_id in position["done"]
            if not is_known and not parents & unfinished:
                position["shards"][shard.shard_id] = {
                    "iterator": None,
                    "at_us": position["since_us"],
                    "ended": False,
                }

    def poll(self, position: JSON, schema: KeySchema) -> ChangedKeys:
        """Poll all shards of the position once."""
        after = copy.deepcopy(position)
        self._stream = after["stream"]
        kept_ms = after["hours"] * _HOUR_MS
        if time.time_ns() // 1_000_000 - after["looked_ms"] > kept_ms - _LOSS_MARGIN_MS:
            raise PositionLost(
                f"{self._client.patience.shown}: its stream was not read for nearly {after['hours']} hours, after which "
                "Table Store deletes changes. Copy the table again"
            )
        keys: dict[Any, Key] = {}
        at_us, found_any = 0, False
        for shard, shard_state in list(after["shards"].items()):
            answer = self._records(after["stream"], shard, shard_state)
            for record in answer.stream_records:
                found_any = True
                wire = decode_row(record.record, _UNLIMITED)
                if wire.extension is not None:
                    shard_state["at_us"] = max(shard_state["at_us"], wire.extension.stamp_us)
                    if wire.extension.stamp_us < after["since_us"]:
                        continue
                    at_us = max(at_us, wire.extension.stamp_us)
                key = _key(schema, {cell.name: cell.value for cell in wire.key})
                keys.pop(key.position, None)
                keys[key.position] = key
            if shard_state["ended"]:
                del after["shards"][shard]
                after["done"].append(shard)
        has_ended = len(after["done"]) > len(position["done"])
        if has_ended or not after["shards"]:
            self._add_ready(after)
        after["looked_ms"] = max(self._now_ms(), after["looked_ms"])
        is_done = not found_any and not has_ended and bool(after["shards"])
        return ChangedKeys(list(keys.values()), after, at_us // 1000 if at_us else None, is_done)

    def _records(self, stream: str, shard: str, shard_state: Any) -> messages.GetStreamRecordResponse:
        """Return the next records of a shard and advance its state."""
        if shard_state["iterator"] is None:
            shard_state["iterator"] = self._iterator(stream, shard, shard_state["at_us"])
        request = messages.GetStreamRecordRequest(shard_iterator=shard_state["iterator"])
        try:
            answer = self._call("GetStreamRecord", request, messages.GetStreamRecordResponse)
        except _Expired:
            shard_state["iterator"] = request.shard_iterator = self._iterator(
                stream, shard, shard_state["at_us"]
            )
            answer = self._call("GetStreamRecord", request, messages.GetStreamRecordResponse)
        shard_state["iterator"] = answer.next_shard_iterator or None
        shard_state["ended"] = not answer.next_shard_iterator
        return answer

    def _iterator(self, stream: str, shard: str, at_us: int) -> str:
        request = messages.GetShardIteratorRequest(stream_id=stream, shard_id=shard, timestamp=max(at_us, 0))
        try:
            answer = self._call("GetShardIterator", request, messages.GetShardIteratorResponse)
        except TransferError as error:
            if isinstance(error, PositionLost):
                raise
            # An iterator without a time begins at the oldest record.
            request.ClearField("timestamp")
            answer = self._call("GetShardIterator", request, messages.GetShardIteratorResponse)
        return str(answer.shard_iterator)

    def _call(self, operation: str, request: Any, answer: Any) -> Any:
        address = self._client.patience.shown
        try:
            return self._client.call(operation, request, answer)
        except TableAbsent:
            raise PositionLost(
                f"{address}: its stream or a part of it no longer exists. Copy the table again"
            ) from None
        except RequestRefused as refusal:
            if "Expired" in refusal.code:
                raise _Expired from None
            if "Trimmed" in refusal.code:
                raise PositionLost(
                    f"{address}: changes after the stored position have been deleted. Copy the table again"
                ) from None
            if (
                table_store_tables.describe(self._client, self._table).stream_details.stream_id
                != self._stream
            ):
                raise PositionLost(
                    f"{address}: the table has another stream now. Copy the table again"
                ) from None
            raise TransferError(f"{address}: its stream cannot be read: {refusal.words}") from None


class _Expired(Exception):
    """A stream iterator has expired."""


def _key(schema: KeySchema, cells: dict[str, Any]) -> Key:
    values: tuple[Value, ...] = tuple(cells[name] for name in schema.names)
    return Key(values, schema.position(values))
