"""Delivery of changes to Kinesis data streams with PutRecords, through boto3.

Loaded only if `--kinesis-endpoint-url` is set.

The record is the JSON in the developer guide ("Using Kinesis Data Streams to capture changes to DynamoDB"; LocalStack's
snapshots of the service). The partition key is the item's key, so that all changes of an item are in one shard.

PutRecords may reject single records, so it keeps no order. Therefore a call never has two records of one item. A
rejected record is put again before any later one of its item. So a shard has the records of an item in order, possibly
with duplicates.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from typing import Any

import boto3
import orjson
from botocore.config import Config
from botocore.exceptions import ClientError

from tablegate.adapters.dynamodb.features.kinesis.stored_destinations import (
    MICROSECOND,
    NO_PERMISSION,
    precision_of,
    region_of,
)
from tablegate.adapters.dynamodb.features.streams.operations import (
    BOTH_IMAGES,
    EXPIRY_ACTOR,
    event_name,
    images,
)
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.arns import stable_uuid
from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.model.tables.changes import Change
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.rows import TICKS_PER_MS
from tablegate.gateway.observability.metrics import record_delivery

log = logging.getLogger("tablegate")

_EXPIRY = {"principalId": "dynamodb.amazonaws.com", "type": "Service"}
_PAUSE_S = 0.1
_ATTEMPTS = 3
_REFUSALS = frozenset({"ResourceNotFoundException", "AccessDeniedException"})
_USABLE = frozenset({"ACTIVE", "UPDATING"})


class RecordsNotAccepted(Exception):
    """Kinesis has rejected some records. They are put again later."""


class Producer:
    """Puts records into the streams of one Kinesis endpoint."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._clients: dict[str, Any] = {}

    def deliver(self, table: Table, stream_arn: str, changes: Sequence[Change]) -> None:
        """Put the records of changes into a stream, and return when all are stored.

        Raises RecordsNotAccepted and errors of boto3.
        """
        region = region_of(stream_arn)
        in_microseconds = precision_of(table, stream_arn) == MICROSECOND
        records = []
        for change in changes:
            if not change.is_noop:
                record = record_of(table, change, region, in_microseconds)
                if len(record["Data"]) + len(record["PartitionKey"].encode()) > limits.KINESIS_RECORD_BYTES:
                    # The service drops such records, too.
                    log.warning(
                        "dropped a change of table %s: it is too large for a Kinesis record", table.name
                    )
                    continue
                records.append(record)
        for batch in batches(records):
            self._put_all(region, stream_arn, batch)
        record_delivery(table.name, len(records))

    def failure_of(self, stream_arn: str) -> str | None:
        """Return the reason why a stream cannot receive records, or None.

        It is None, too, if Kinesis does not answer: records wait until it does.
        """
        name = stream_arn.rpartition("/")[2]
        try:
            answer = self._client(region_of(stream_arn)).describe_stream_summary(StreamName=name)
        except Exception as error:
            if isinstance(error, ClientError) and error.response["Error"]["Code"] in _REFUSALS:
                return NO_PERMISSION
            log.warning("Kinesis did not tell whether stream %s exists: %s", name, error)
            return None
        return None if answer["StreamDescriptionSummary"]["StreamStatus"] in _USABLE else NO_PERMISSION

    def _put_all(self, region: str, stream_arn: str, records: list[dict[str, Any]]) -> None:
        for attempt in range(_ATTEMPTS):
            answer = self._client(region).put_records(
                StreamName=stream_arn.rpartition("/")[2], Records=records
            )
            if not answer["FailedRecordCount"]:
                return
            rejections = [
                (record, result)
                for record, result in zip(records, answer["Records"], strict=True)
                if "ErrorCode" in result
            ]
            records = [record for record, _ in rejections]
            reason = rejections[0][1].get("ErrorMessage", "")
            time.sleep(_PAUSE_S * 2**attempt)
        raise RecordsNotAccepted(f"Kinesis rejected {len(records)} records: {reason}")

    def _client(self, region: str) -> Any:
        if region not in self._clients:
            settings = self._settings
            session = boto3.session.Session(
                aws_access_key_id=settings.kinesis_access_key_id or None,
                aws_secret_access_key=settings.kinesis_secret_access_key or None,
                region_name=region,
            )
            config = Config(connect_timeout=2, read_timeout=10, retries={"total_max_attempts": 1})
            self._clients[region] = session.client(
                "kinesis", endpoint_url=settings.kinesis_endpoint_url, config=config
            )
        return self._clients[region]


def record_of(table: Table, change: Change, region: str, in_microseconds: bool) -> dict[str, Any]:
    """Return a change as an entry of PutRecords. `in_microseconds` selects microseconds instead of milliseconds."""
    members, size = images(table.key_schema, change, BOTH_IMAGES)
    at = change.at_ms
    if in_microseconds:
        # The row's own timestamp is finer than that of its change.
        ticks = 0 if change.new is None else change.new.modified_at
        at = ticks // 10 if ticks // TICKS_PER_MS == change.at_ms else change.at_ms * 1000
    identity = f"{table.id}/{change.at_ms}/{change.shard}/{change.sequence}"
    record = {
        "awsRegion": region,
        "eventID": stable_uuid(identity),
        "eventName": event_name(change),
        "userIdentity": _EXPIRY if change.actor == EXPIRY_ACTOR else None,
        "recordFormat": "application/json",
        "tableName": table.name,
        "dynamodb": {
            "ApproximateCreationDateTime": at,
            **members,
            "SizeBytes": size,
            **({"ApproximateCreationDateTimePrecision": MICROSECOND} if in_microseconds else {}),
        },
        "eventSource": "aws:dynamodb",
    }
    return {"Data": orjson.dumps(record), "PartitionKey": _partition_key(members["Keys"])}


def _partition_key(keys: dict[str, Any]) -> str:
    text = orjson.dumps(keys, option=orjson.OPT_SORT_KEYS).decode()
    return text if len(text) <= limits.KINESIS_PARTITION_KEY_CHARACTERS else stable_uuid(text)


def batches(records: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Split records into calls of a bounded size, with at most one record of an item in each.

    Records of an item keep their order, as each call ends before the next begins.
    """
    remaining = list(records)
    while remaining:
        batch: list[dict[str, Any]] = []
        postponed: list[dict[str, Any]] = []
        keys: set[str] = set()
        size = 0
        for record in remaining:
            size_with = size + len(record["Data"]) + len(record["PartitionKey"].encode())
            is_full = len(batch) >= limits.KINESIS_RECORDS or (
                batch and size_with > limits.KINESIS_CALL_BYTES
            )
            if is_full or record["PartitionKey"] in keys:
                postponed.append(record)
            else:
                batch.append(record)
                size = size_with
            keys.add(record["PartitionKey"])
        yield batch
        remaining = postponed
