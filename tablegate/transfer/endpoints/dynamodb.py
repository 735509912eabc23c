"""A DynamoDB table as an endpoint.

Some servers ignore the Segment of a Scan (DynamoDB Local). Two probes detect that, and the table is read as one
segment. So no row is returned twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import orjson

from tablegate.adapters.dynamodb.values.values import item_of, render_row, render_values
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.errors import ServiceError
from tablegate.gateway.model.values.bodies import untagged
from tablegate.gateway.model.values.keys import Key, KeySchema, Position
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Value
from tablegate.transfer.endpoints import dynamodb_client, dynamodb_streams, endpoint
from tablegate.transfer.endpoints.batching import (
    PATIENCE_S,
    Backoff,
    RetryBudget,
    Sent,
    in_batches,
    require_deleted,
    write_batch,
)
from tablegate.transfer.endpoints.dynamodb_client import Account, Client
from tablegate.transfer.errors import TransferError

_PUTS = 25  # limit of BatchWriteItem (API reference)
_GETS = 100  # limit of BatchGetItem
_SEGMENTS_MAX = 1_000_000
_PROBES_MAX = 64


class DynamoDBEndpoint(endpoint.Endpoint):
    """One table. If `table` is "", an account for listing tables."""

    service = endpoint.Service.DYNAMODB
    write_rows = 100

    def __init__(self, table: str, account: Account, shown: str, patience_s: float = PATIENCE_S) -> None:
        self.shown = shown
        self._table = table
        self._account = account
        self._patience = RetryBudget(patience_s, shown)
        self._client = Client("dynamodb", account, self._patience)

    # The table

    def describe(self) -> endpoint.Definition:
        wire = self._client.call("DescribeTable", {"TableName": self._table})["Table"]
        return dynamodb_client.definition_of(
            self._table, wire, dynamodb_client.expiry_of(self._client, self._table)
        )

    def create(self, definition: endpoint.Definition) -> list[str]:
        return dynamodb_client.create_table(self._client, self._table, definition)

    def list_tables(self) -> list[str]:
        names: list[str] = []
        request: dict[str, Any] = {}
        while True:
            page = self._client.call("ListTables", request)
            names += page["TableNames"]
            if not page.get("LastEvaluatedTableName"):
                return names
            request["ExclusiveStartTableName"] = page["LastEvaluatedTableName"]

    @cached_property
    def _schema(self) -> KeySchema:
        wire = self._client.call("DescribeTable", {"TableName": self._table})["Table"]
        return dynamodb_client.definition_of(self._table, wire, None).key_schema

    # Reading

    def segments(self, count: int) -> list[endpoint.JSON]:
        total = max(1, min(count, _SEGMENTS_MAX))
        if total > 1 and not self._is_divided(total):
            total = 1
        return [{"segment": number, "of": total} for number in range(total)]

    def _is_divided(self, total: int) -> bool:
        """True if the server divides a scan into segments, so that their first items differ."""
        first: Position | None = None
        for number in range(min(total, _PROBES_MAX)):
            answer = self._scan_once({"segment": number, "of": total}, None, limit=1)
            for item in answer.get("Items", ()):
                position = self._row(item).position
                if first is not None:
                    return position != first
                first = position
        return True

    def scan(
        self, segment: endpoint.JSON, resume: endpoint.JSON | None = None
    ) -> Iterator[endpoint.ScanPage]:
        while True:
            answer = self._scan_once(segment, resume)
            resume = answer.get("LastEvaluatedKey") or None
            yield endpoint.ScanPage.of([self._row(item) for item in answer.get("Items", ())], resume)
            if resume is None:
                return

    def _scan_once(
        self, segment: endpoint.JSON, resume: endpoint.JSON | None, limit: int | None = None
    ) -> Any:
        request: dict[str, Any] = {"TableName": self._table, "ConsistentRead": True}
        if segment["of"] > 1:
            request |= {"Segment": segment["segment"], "TotalSegments": segment["of"]}
        if resume is not None:
            request["ExclusiveStartKey"] = resume
        if limit is not None:
            request["Limit"] = limit
        return self._client.call("Scan", request)

    def get(self, keys: Sequence[Key]) -> Sequence[endpoint.AnyRow | None]:
        rows: dict[Position, endpoint.AnyRow] = {}
        distinct = list({key.position: key for key in keys}.values())
        for at in range(0, len(distinct), _GETS):
            self._get_batch([self._wire_key(key) for key in distinct[at : at + _GETS]], rows)
        return [rows.get(key.position) for key in keys]

    def _get_batch(self, wire_keys: list[Any], rows: dict[Position, endpoint.AnyRow]) -> None:
        backoff = Backoff(self._patience)
        while wire_keys:
            request = {"RequestItems": {self._table: {"Keys": wire_keys, "ConsistentRead": True}}}
            answer = self._client.call("BatchGetItem", request)
            for item in answer.get("Responses", {}).get(self._table, ()):
                row = self._row(item)
                rows[row.position] = row
            unprocessed = answer.get("UnprocessedKeys", {}).get(self._table, {}).get("Keys", [])
            if len(unprocessed) < len(wire_keys):
                backoff.progressed()
            if unprocessed:
                backoff.wait("reads are throttled")
            wire_keys = unprocessed

    def _row(self, wire: dict[str, Any]) -> endpoint.AnyRow:
        try:
            item = item_of(wire)
        except ServiceError as error:
            return endpoint.UnreadableRow(self._key(wire), str(error.message), orjson.dumps(wire))
        return Row(self._schema.position(self._key_values(item)), item.contents, 0)

    def _key(self, wire: dict[str, Any]) -> Key:
        """Return the key of an item with unreadable attributes."""
        try:
            values = self._key_values(item_of({name: wire[name] for name in self._schema.names}))
        except (ServiceError, KeyError) as error:
            raise TransferError(f"{self.shown}: an item has an unreadable key: {error}") from None
        return self._schema.key(dict(zip(self._schema.names, values, strict=True)))

    def _key_values(self, wire: dict[str, Any]) -> list[Value]:
        return [untagged(wire[name]) for name in self._schema.names]

    def _wire_key(self, key: Key) -> dict[str, Any]:
        return render_values(dict(zip(self._schema.names, key.values, strict=True)))

    # Writing

    def write(self, rows: Sequence[Row]) -> list[endpoint.Reject]:
        # A batch must not contain two puts of one key. The later row wins.
        latest = {row.position: row for row in rows}
        put = b'{"PutRequest":{"Item":%s}}'
        return self._write([(row, put % render_row(row)) for row in latest.values()])

    def delete(self, keys: Sequence[Key]) -> None:
        distinct = {key.position: key for key in keys}
        deletes = []
        for key in distinct.values():
            wire = orjson.dumps(self._wire_key(key))
            # The row represents its key in a possible reject.
            deletes.append((_key_row(self._schema, key), b'{"DeleteRequest":{"Key":%s}}' % wire))
        require_deleted(self._write(deletes), self.shown)

    def _write(self, changes: list[tuple[Row, bytes]]) -> list[endpoint.Reject]:
        batches = _batches(changes)
        return [
            reject for batch in batches for reject in write_batch(batch, self._send_batch, self._patience)
        ]

    def _send_batch(self, batch: list[tuple[Row, bytes]]) -> Sent[bytes]:
        requests = b",".join([request for _, request in batch])
        body = b'{"RequestItems":{%s:[%s]}}' % (orjson.dumps(self._table), requests)
        unprocessed = self._unprocessed(self._client.call("BatchWriteItem", body))
        left = [entry for entry in batch if entry[0].position in unprocessed]
        return Sent(left=left, reason="writes are throttled")

    def _unprocessed(self, answer: Any) -> set[Position]:
        """Return the positions of rows that BatchWriteItem did not write."""
        positions = set()
        for request in answer.get("UnprocessedItems", {}).get(self._table, ()):
            put = request.get("PutRequest")
            key = put["Item"] if put else request["DeleteRequest"]["Key"]
            key = item_of({name: key[name] for name in self._schema.names})
            positions.add(self._schema.position(self._key_values(key)))
        return positions

    # Following

    @cached_property
    def _follower(self) -> dynamodb_streams.StreamFollower:
        stream_client = Client("dynamodbstreams", self._account, self._patience)
        return dynamodb_streams.StreamFollower(self._table, self._client, stream_client)

    def capture(self) -> endpoint.JSON:
        return self._follower.capture()

    def changes(self, position: endpoint.JSON) -> endpoint.ChangedKeys:
        return self._follower.poll(position, self._schema)

    def close(self) -> None:
        self._client.close()
        if "_follower" in self.__dict__:
            self._follower.close()


def _key_row(schema: KeySchema, key: Key) -> Row:
    item = item_of(render_values(dict(zip(schema.names, key.values, strict=True))))
    return Row(key.position, item.contents, 0)


def _batches(entries: list[tuple[Row, bytes]]) -> Iterator[list[tuple[Row, bytes]]]:
    """Yield batches for BatchWriteItem: at most 25 requests and 16 MB on the wire."""
    return in_batches(
        entries, lambda entry: len(entry[1]) + 1, _PUTS, limits.REQUEST_BYTES, overhead_bytes=1024
    )
