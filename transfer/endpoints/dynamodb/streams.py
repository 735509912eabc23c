"""DynamoDB Streams as keys that changed: shards, parents before children, from a position that outlives the process.

A position is `{"stream": ARN, "since_ms": ..., "looked_ms": ..., "shards": {id: {"after": ..., "ended_ms": ...}}}`: the shards
that are read now, each from behind the record whose sequence number is `after` (null: from its oldest). A shard that has ended
makes place for its children. Iterators are kept in memory only: they live fifteen minutes.

Following does not begin at LATEST, because nothing says which writes an iterator that was asked for just now leaves out. The
shards that are open are read from their oldest record, and records made well before the capture are passed over.
Sources: "Change data capture for DynamoDB Streams" and the API reference of DescribeStream, GetShardIterator and GetRecords.
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
from tablegate.transfer.endpoints.dynamodb import tables
from tablegate.transfer.endpoints.dynamodb.client import Client, TrimmedData
from tablegate.transfer.endpoints.endpoint import JSON, ChangedKeys
from tablegate.transfer.errors import PositionLost, RequestRefused, TableAbsent, TransferError

_KEPT_MS = 24 * 3600 * 1000
_MARGIN_MS = 300_000  # clocks differ, and records say when they were made to the second
_LOSS_MARGIN_MS = 600_000
_EMPTY_LOOKS = 2
"""After how many answers without records a shard counts as read to its end: empty ones occur between records too."""
CHILDLESS_MS = 10_000
"""How long a shard that has ended is kept in mind while no child of it is listed."""


class StreamFollower:
    """The stream of one table."""

    def __init__(self, table: str, client: Client, streams: Client) -> None:
        self._table = table
        self._client = client
        self._streams = streams
        self._iterators: dict[str, str] = {}
        self._empty: dict[str, int] = {}

    def close(self) -> None:
        """Give back the connections."""
        self._streams.close()

    def capture(self) -> JSON:
        """The position of now; switches a stream on if there is none."""
        wire = self._client.call("DescribeTable", {"TableName": self._table})["Table"]
        if tables.stream_rule(wire) is None:
            wire = self._switch_on()
        now_ms = self._now_ms()
        stream = wire["LatestStreamArn"]
        shards, _ = self._describe(stream)
        # Writes of from now on go into shards that are open, and into their children.
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

    def _switch_on(self) -> Mapping[str, Any]:
        specification = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
        try:
            self._client.call("UpdateTable", {"TableName": self._table, "StreamSpecification": specification})
        except RequestRefused as refusal:
            raise TransferError(
                f"{self._client.patience.shown}: its stream cannot be switched on: {refusal.words}"
            ) from None
        return tables.wait_until_active(self._client, self._table)

    def _now_ms(self) -> int:
        """The service's time, to the second."""
        try:
            return int(parsedate_to_datetime(self._client.date).timestamp() * 1000)
        except (TypeError, ValueError):
            return time.time_ns() // 1_000_000

    def _describe(self, stream: str) -> tuple[list[Any], str]:
        """(all shards, status) of a stream."""
        shards: list[Any] = []
        request = {"StreamArn": stream}
        while True:
            try:
                found = self._streams.call("DescribeStream", request)["StreamDescription"]
            except TableAbsent:
                raise PositionLost(f"{self._client.patience.shown}: its stream {stream} is gone") from None
            shards += found.get("Shards", ())
            if not found.get("LastEvaluatedShardId"):
                return shards, str(found.get("StreamStatus", ""))
            request["ExclusiveStartShardId"] = found["LastEvaluatedShardId"]

    def look(self, position: JSON, schema: KeySchema) -> ChangedKeys:
        """One look at every shard that is read now."""
        after = copy.deepcopy(position)
        self._check_kept(position)
        shards: dict[str, Any] = after["shards"]
        keys: dict[Any, Key] = {}
        at_ms = None
        if not shards or any(place["ended_ms"] for place in shards.values()):
            self._go_on_to_children(after)
        for shard, place in shards.items():
            if place["ended_ms"]:
                continue
            records = self._records(after["stream"], shard, place)
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
            not place["ended_ms"] and self._empty.get(shard, 0) >= _EMPTY_LOOKS
            for shard, place in shards.items()
        )
        after["looked_ms"] = max(self._now_ms_of_streams(), after["looked_ms"])
        return ChangedKeys(list(keys.values()), after, at_ms, caught_up)

    def _now_ms_of_streams(self) -> int:
        try:
            return int(parsedate_to_datetime(self._streams.date).timestamp() * 1000)
        except (TypeError, ValueError):
            return time.time_ns() // 1_000_000

    def _check_kept(self, position: JSON) -> None:
        """A shard that nothing was read of yet has no number whose loss the service would tell."""
        if time.time_ns() // 1_000_000 - position["looked_ms"] > _KEPT_MS - _LOSS_MARGIN_MS:
            raise PositionLost(
                f"{self._client.patience.shown}: nobody looked at its stream for nearly 24 hours, after which DynamoDB "
                "forgets changes: copy again"
            )

    def _records(self, stream: str, shard: str, place: dict[str, Any]) -> list[Any]:
        """The next records of a shard; moves its place on."""
        try:
            answer = self._next_page(stream, shard, place)
        except (TrimmedData, TableAbsent):
            raise PositionLost(
                f"{self._client.patience.shown}: changes after the position are no longer kept: copy again"
            ) from None
        records: list[Any] = answer.get("Records", [])
        if records:
            place["after"] = records[-1]["dynamodb"]["SequenceNumber"]
        following = answer.get("NextShardIterator")
        if following:
            self._iterators[shard] = following
        else:
            self._iterators.pop(shard, None)
            place["ended_ms"] = time.time_ns() // 1_000_000
        return records

    def _next_page(self, stream: str, shard: str, place: dict[str, Any]) -> Any:
        iterator = self._iterators.get(shard)
        if iterator is not None:
            try:
                return self._streams.call("GetRecords", {"ShardIterator": iterator})
            except RequestRefused as refusal:
                if refusal.code != "ExpiredIteratorException":
                    raise self._unusable(refusal) from None
        request = {"StreamArn": stream, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"}
        if place["after"] is not None:
            request |= {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": place["after"]}
        try:
            iterator = self._streams.call("GetShardIterator", request)["ShardIterator"]
            return self._streams.call("GetRecords", {"ShardIterator": iterator})
        except RequestRefused as refusal:
            raise self._unusable(refusal) from None

    def _unusable(self, refusal: RequestRefused) -> TransferError:
        return TransferError(f"{self._client.patience.shown}: its stream cannot be read: {refusal.words}")

    def _go_on_to_children(self, position: JSON) -> None:
        """Put the children of shards that have ended in their place, as soon as they are listed."""
        listed, status = self._describe(position["stream"])
        shards: dict[str, Any] = position["shards"]
        known = {shard["ShardId"] for shard in listed}
        now_ms = time.time_ns() // 1_000_000
        for shard, ended_ms in [(shard, place["ended_ms"]) for shard, place in shards.items()]:
            if not ended_ms:
                continue
            children = [one["ShardId"] for one in listed if one.get("ParentShardId") == shard]
            for child in children:
                shards.setdefault(child, {"after": None, "ended_ms": None})
            # A child may be listed a little late; and where shards were merged it names the other parent only.
            has_others = any(not place["ended_ms"] for place in shards.values())
            is_barren = has_others and (shard not in known or now_ms - ended_ms > CHILDLESS_MS)
            if children or is_barren:
                del shards[shard]
        if not shards:  # a stream that had no shard yet
            shards.update({shard["ShardId"]: {"after": None, "ended_ms": None} for shard in listed})
        if status in ("DISABLED", "DISABLING") and all(place["ended_ms"] for place in shards.values()):
            raise PositionLost(
                f"{self._client.patience.shown}: its stream was switched off; changes since then are unknown: copy again"
            )


def _key(schema: KeySchema, wire: dict[str, Any]) -> Key:
    item = item_of(wire)
    values = tuple(untagged(item[name]) for name in schema.names)
    return Key(values, schema.position(values))
