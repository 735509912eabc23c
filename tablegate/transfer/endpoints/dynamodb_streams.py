"""DynamoDB Streams as changed keys: shards, parents before children, from a position that survives the process.

A position is `{"stream": ARN, "since_ms": ..., "looked_ms": ..., "shards": {id: {"after": ..., "ended_ms": ...}}}`.
Its shards are those being read. `after` is the sequence number of the last record read, null before the first. A
shard that has ended is replaced by its children. Iterators expire after fifteen minutes and are kept in memory only.

Following does not begin at LATEST, because it is not specified which writes a new LATEST iterator omits. Open shards
are read from their oldest record, and records from well before the capture are skipped.
Sources: "Change data capture for DynamoDB Streams" and the API reference of DescribeStream, GetShardIterator and
GetRecords.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from tablegate.adapters.dynamodb.values.values import item_of
from tablegate.gateway.model.values.bodies import untagged
from tablegate.gateway.model.values.keys import Key, KeySchema
from tablegate.transfer.endpoints import dynamodb_client
from tablegate.transfer.endpoints.dynamodb_client import Client, TrimmedData
from tablegate.transfer.endpoints.endpoint import JSON, ChangedKeys
from tablegate.transfer.errors import PositionLost, RequestRefused, TableAbsent, TransferError

_KEPT_MS = 24 * 3600 * 1000
_MARGIN_MS = 300_000  # clocks differ, and times of records are in whole seconds
_LOSS_MARGIN_MS = 600_000
_EMPTY_POLLS = 2
"""Number of replies without records after which a shard counts as caught up. Single empty replies occur between records."""
CHILDLESS_MS = 10_000
"""Time for which an ended shard without listed children is kept, in milliseconds."""


class StreamFollower:
    """The stream of one table."""

    def __init__(self, table: str, client: Client, streams: Client) -> None:
        self._table = table
        self._client = client
        self._streams = streams
        self._iterators: dict[str, str] = {}
        self._empty: dict[str, int] = {}

    def close(self) -> None:
        self._streams.close()

    def capture(self) -> JSON:
        """Return the current position. Enables the stream if necessary."""
        wire = self._client.call("DescribeTable", {"TableName": self._table})["Table"]
        if dynamodb_client.stream_rule(wire) is None:
            wire = self._enable_stream()
        now_ms = self._now_ms()
        stream = wire["LatestStreamArn"]
        shards, _ = self._describe(stream)
        # Later writes go to open shards and their children.
        is_open = [
            shard["ShardId"]
            for shard in shards
            if "EndingSequenceNumber" not in shard.get("SequenceNumberRange", {})
        ]
        ended = {shard["ShardId"] for shard in shards} - set(is_open) if not is_open else set()
        frontier = {shard: {"after": None, "ended_ms": None} for shard in [*is_open, *sorted(ended)]}
        return {
            "stream": stream,
            "since_ms": now_ms - _MARGIN_MS,
            "looked_ms": now_ms,
            "shards": frontier,
        }

    def _enable_stream(self) -> Mapping[str, Any]:
        specification = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
        try:
            self._client.call("UpdateTable", {"TableName": self._table, "StreamSpecification": specification})
        except RequestRefused as refusal:
            raise TransferError(
                f"{self._client.patience.shown}: its stream cannot be enabled: {refusal.words}"
            ) from None
        return dynamodb_client.wait_until_active(self._client, self._table)

    def _now_ms(self) -> int:
        """Return the service's time in milliseconds, with a resolution of one second."""
        try:
            return int(parsedate_to_datetime(self._client.date).timestamp() * 1000)
        except (TypeError, ValueError):
            return time.time_ns() // 1_000_000

    def _describe(self, stream: str) -> tuple[list[Any], str]:
        """Return (all shards, status) of a stream."""
        shards: list[Any] = []
        request = {"StreamArn": stream}
        while True:
            try:
                description = self._streams.call("DescribeStream", request)["StreamDescription"]
            except TableAbsent:
                raise PositionLost(
                    f"{self._client.patience.shown}: its stream {stream} no longer exists. Copy the table again"
                ) from None
            shards += description.get("Shards", ())
            if not description.get("LastEvaluatedShardId"):
                return shards, str(description.get("StreamStatus", ""))
            request["ExclusiveStartShardId"] = description["LastEvaluatedShardId"]

    def poll(self, position: JSON, schema: KeySchema) -> ChangedKeys:
        """Poll all shards of the position once."""
        after = copy.deepcopy(position)
        self._check_kept(position)
        shards: dict[str, Any] = after["shards"]
        keys: dict[Any, Key] = {}
        at_ms = None
        if not shards or any(shard_state["ended_ms"] for shard_state in shards.values()):
            self._replace_ended_shards(after)
        for shard, shard_state in shards.items():
            if shard_state["ended_ms"]:
                continue
            records = self._records(after["stream"], shard, shard_state)
            self._empty[shard] = 0 if records else self._empty.get(shard, 0) + 1
            for record in records:
                made_ms = int(float(record["dynamodb"].get("ApproximateCreationDateTime", 0)) * 1000)
                if made_ms < after["since_ms"]:
                    continue
                at_ms = max(made_ms, at_ms or 0)
                key = _key(schema, record["dynamodb"]["Keys"])
                keys.pop(key.position, None)
                keys[key.position] = key
        caught_up = all(
            not shard_state["ended_ms"] and self._empty.get(shard, 0) >= _EMPTY_POLLS
            for shard, shard_state in shards.items()
        )
        after["looked_ms"] = max(self._now_ms_of_streams(), after["looked_ms"])
        return ChangedKeys(list(keys.values()), after, at_ms, caught_up)

    def _now_ms_of_streams(self) -> int:
        try:
            return int(parsedate_to_datetime(self._streams.date).timestamp() * 1000)
        except (TypeError, ValueError):
            return time.time_ns() // 1_000_000

    def _check_kept(self, position: JSON) -> None:
        """Raise PositionLost after 24 hours without a poll. A shard without records has no number to detect the loss
        by."""
        if time.time_ns() // 1_000_000 - position["looked_ms"] > _KEPT_MS - _LOSS_MARGIN_MS:
            raise PositionLost(
                f"{self._client.patience.shown}: its stream was not read for nearly 24 hours, after which DynamoDB "
                "deletes changes. Copy the table again"
            )

    def _records(self, stream: str, shard: str, shard_state: dict[str, Any]) -> list[Any]:
        """Return the next records of a shard and advance its state."""
        try:
            answer = self._next_page(stream, shard, shard_state)
        except (TrimmedData, TableAbsent):
            raise PositionLost(
                f"{self._client.patience.shown}: changes after the stored position have been deleted. Copy the table again"
            ) from None
        records: list[Any] = answer.get("Records", [])
        if records:
            shard_state["after"] = records[-1]["dynamodb"]["SequenceNumber"]
        following = answer.get("NextShardIterator")
        if following:
            self._iterators[shard] = following
        else:
            self._iterators.pop(shard, None)
            shard_state["ended_ms"] = time.time_ns() // 1_000_000
        return records

    def _next_page(self, stream: str, shard: str, shard_state: dict[str, Any]) -> Any:
        iterator = self._iterators.get(shard)
        if iterator is not None:
            try:
                return self._streams.call("GetRecords", {"ShardIterator": iterator})
            except RequestRefused as refusal:
                if refusal.code != "ExpiredIteratorException":
                    raise self._unusable(refusal) from None
        request = {"StreamArn": stream, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"}
        if shard_state["after"] is not None:
            request |= {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": shard_state["after"]}
        try:
            iterator = self._streams.call("GetShardIterator", request)["ShardIterator"]
            return self._streams.call("GetRecords", {"ShardIterator": iterator})
        except RequestRefused as refusal:
            raise self._unusable(refusal) from None

    def _unusable(self, refusal: RequestRefused) -> TransferError:
        return TransferError(f"{self._client.patience.shown}: its stream cannot be read: {refusal.words}")

    def _replace_ended_shards(self, position: JSON) -> None:
        """Replace ended shards by their children once these are listed."""
        stream_shards, status = self._describe(position["stream"])
        shards: dict[str, Any] = position["shards"]
        listed_ids = {shard["ShardId"] for shard in stream_shards}
        now_ms = time.time_ns() // 1_000_000
        for shard, ended_ms in [(shard, shard_state["ended_ms"]) for shard, shard_state in shards.items()]:
            if not ended_ms:
                continue
            children = [
                candidate["ShardId"] for candidate in stream_shards if candidate.get("ParentShardId") == shard
            ]
            for child in children:
                shards.setdefault(child, {"after": None, "ended_ms": None})
            # A child may be listed late. The child of a merge names only one parent.
            has_others = any(not shard_state["ended_ms"] for shard_state in shards.values())
            is_childless = has_others and (shard not in listed_ids or now_ms - ended_ms > CHILDLESS_MS)
            if children or is_childless:
                del shards[shard]
        if not shards:  # the stream had no shard before
            shards.update({shard["ShardId"]: {"after": None, "ended_ms": None} for shard in stream_shards})
        if status in ("DISABLED", "DISABLING") and all(
            shard_state["ended_ms"] for shard_state in shards.values()
        ):
            raise PositionLost(
                f"{self._client.patience.shown}: its stream was disabled, so later changes are unknown. Copy the table again"
            )


def _key(schema: KeySchema, wire: dict[str, Any]) -> Key:
    item = item_of(wire)
    values = tuple(untagged(item[name]) for name in schema.names)
    return Key(values, schema.position(values))
