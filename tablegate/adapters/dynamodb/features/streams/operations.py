"""DynamoDB Streams: ListStreams, DescribeStream, GetShardIterator, GetRecords, over the change streams of any table.

A record is made from a change when it is read (docs/protocols/dynamodb.md rule 38). The stream's view type selects the
images. INSERT, MODIFY or REMOVE follows from the row before and after. A write that changed nothing has no record. A
merged shard has two parents, but this API can name only one: the first.

A record has keys, images, a size and an event name. Delivery to Kinesis uses the same parts.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Container, Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from tablegate.adapters.dynamodb.call import Answer, CallContext, check_place, own_name
from tablegate.adapters.dynamodb.operation import Operation, by_name
from tablegate.adapters.dynamodb.tables.table_definitions import key_elements, shown_table_keys
from tablegate.adapters.dynamodb.validation import resource_rules
from tablegate.adapters.dynamodb.validation.shapes import (
    INTEGER_FROM_1,
    NAME_OR_ARN,
    Number,
    Shapes,
    Structure,
    Text,
    one_of,
    requests_of,
)
from tablegate.adapters.dynamodb.values.keys import render_shown, shown_key
from tablegate.adapters.dynamodb.values.values import render_values, view
from tablegate.adapters.dynamodb.wire import error_texts, limits
from tablegate.adapters.dynamodb.wire.arns import stream_arn
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.gateway.model.authorization.permissions import Permission, Purpose
from tablegate.gateway.model.commands import stream_commands
from tablegate.gateway.model.errors import StreamMissing
from tablegate.gateway.model.tables.changes import AtTime, Change, Latest, Oldest, Shard, Stream
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.values import Value, size_bytes

# Parts of a record


EXPIRY_ACTOR = "expiry"
BOTH_IMAGES = frozenset({"NewImage", "OldImage"})


def event_name(change: Change) -> str:
    """Return INSERT, MODIFY or REMOVE, from the row before and after."""
    return "INSERT" if change.old is None else "REMOVE" if change.new is None else "MODIFY"


def images(schema: KeySchema, change: Change, image_names: Container[str]) -> tuple[dict[str, Any], int]:
    """Return the members Keys, NewImage and OldImage, and SizeBytes. Images not in `image_names` are left out."""
    keys = {name: view(value) for name, value in shown_key(schema, change.key_values).items()}
    size = _billed_bytes(keys)
    members: dict[str, Any] = {"Keys": render_values(keys)}
    for name, row in (("NewImage", change.new), ("OldImage", change.old)):
        if row is not None and name in image_names:
            members[name] = orjson.Fragment(render_shown(schema, row))
            size += _billed_bytes(row.latest)  # the change log stores no sizes
    return members, size


def _billed_bytes(attributes: Mapping[str, Value]) -> int:
    """Return the part of SizeBytes for a key or for an image that is shown.

    Sources: LocalStack's snapshots of the service, October 2025; the sample records of the developer guide.
    """
    return sum(len(name.encode()) + size_bytes(value) for name, value in attributes.items())


# Handlers


# 21 digits is the shortest length that the service's model allows. All numbers counted from here have the same length.
_FIRST_SEQUENCE = 10**20
_END_OF_SEQUENCES = 2**62
_ARN = re.compile(r"arn:[^:]+:dynamodb:[^:]*:[^:]*:table/(?P<table>[^/]+)/stream/(?P<label>[^/]+)")
_SHARD = re.compile(r"shardId-\d{20}-(?P<number>[0-9a-f]{8})")
_EXPIRY_PRINCIPAL = {"PrincipalId": "dynamodb.amazonaws.com", "Type": "Service"}
# Changes without a record have to be skipped. This is the maximum number of changes read for one answer.
_MAX_SCANNED_CHANGES = 10_000


async def list_streams(call: CallContext) -> Answer:
    """ListStreams: a page of the caller's streams, or of one table's, by name and age. Raises ServiceError."""
    arguments = call.input
    name = own_name(call, arguments["TableName"]) if "TableName" in arguments else None
    streams = await stream_commands.ListStreams(call.caller.namespace, name)
    after = arguments.get("ExclusiveStartStreamArn")
    arns = [(_arn_of(call, stream), stream) for stream in streams]
    if after is not None:
        _table_and_label(call, after)
        earlier = [at for at, (arn, _) in enumerate(arns) if arn == after]
        arns = arns[earlier[-1] + 1 :] if earlier else []
    page = arns[: _page_limit(arguments)]
    answer: dict[str, Any] = {
        "Streams": [
            {"StreamArn": arn, "TableName": stream.table_name, "StreamLabel": stream.label}
            for arn, stream in page
        ]
    }
    if len(page) < len(arns):
        answer["LastEvaluatedStreamArn"] = page[-1][0]
    return answer


async def describe_stream(call: CallContext) -> Answer:
    """DescribeStream: a stream with a page of its shards. ShardFilter CHILD_SHARDS selects the children of one shard.

    Raises ServiceError.
    """
    arguments = call.input
    stream = await _find(call, arguments["StreamArn"])
    shards = await stream_commands.ListShards(stream)
    shard_filter = arguments.get("ShardFilter")
    if shard_filter is not None:
        for member in ("Type", "ShardId"):
            if member not in shard_filter:
                raise validation(
                    f"{error_texts.INVALID}{member} must be provided when ShardFilter is specified"
                )
        parent = _shard_number(stream, shard_filter["ShardId"], arguments["StreamArn"])
        shards = [shard for shard in shards if parent in shard.parents]
    after = arguments.get("ExclusiveStartShardId")
    if after is not None:
        # After an unknown shard, the page is empty. The service reports no error.
        earlier = [at for at, shard in enumerate(shards) if _shard_id(stream, shard.number) == after]
        shards = shards[earlier[0] + 1 :] if earlier else []
    page = shards[: _page_limit(arguments)]
    description: dict[str, Any] = {
        "StreamArn": arguments["StreamArn"],
        "StreamLabel": stream.label,
        "StreamStatus": "ENABLED" if stream.ended_at_ms is None else "DISABLED",
        "StreamViewType": _view_of(stream),
        "CreationRequestDateTime": stream.opened_at_ms / 1000,
        "TableName": stream.table_name,
        "KeySchema": key_elements(shown_table_keys(stream.key_schema)),
        "Shards": [_describe_shard(stream, shard) for shard in page],
    }
    if len(page) < len(shards):
        description["LastEvaluatedShardId"] = _shard_id(stream, page[-1].number)
    return {"StreamDescription": description}


async def get_shard_iterator(call: CallContext) -> Answer:
    """GetShardIterator: an iterator of a shard. Raises ServiceError.

    Types: TRIM_HORIZON, LATEST, AT_SEQUENCE_NUMBER, AFTER_SEQUENCE_NUMBER, AT_TIMESTAMP.
    """
    arguments = call.input
    stream = await _find(call, arguments["StreamArn"])
    number = _shard_number(stream, arguments["ShardId"], arguments["StreamArn"])
    shards = await stream_commands.ListShards(stream)
    if all(shard.number != number for shard in shards):
        raise _no_such_shard(arguments["StreamArn"], arguments["ShardId"])
    kind = arguments["ShardIteratorType"]
    by_sequence = kind in ("AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER")
    if by_sequence:
        sequence = _sequence_of(arguments["SequenceNumber"]) + (kind == "AFTER_SEQUENCE_NUMBER")
    else:
        at: Oldest | Latest | AtTime = Latest() if kind == "LATEST" else Oldest()
        if kind == "AT_TIMESTAMP":
            at_s = max(0, min(arguments.get("Timestamp", 0), limits.LATEST_SECONDS))
            at = AtTime(int(at_s * 1000))
        sequence = await stream_commands.FindPosition(stream, number, at)
    shard_iterator = _Iterator(arguments["StreamArn"], number, sequence, call.gateway.now_ms())
    return {"ShardIterator": shard_iterator.text()}


async def get_records(call: CallContext) -> Answer:
    """GetRecords: at most 1,000 records, or 1 MB of them, from an iterator on.

    NextShardIterator is absent after the end of a closed shard. Raises ServiceError, PositionExpired.
    """
    place = _Iterator.of(call.input["ShardIterator"])
    now_ms = call.gateway.now_ms()
    if now_ms - place.issued_at_ms > limits.STREAM_ITERATOR_LIFETIME_MS:
        text = "Iterator expired. The iterator was created at time {} while now is {}"
        raise ServiceError("ExpiredIteratorException", text.format(place.issued_at_ms, now_ms))
    stream = await _find(call, place.arn)
    limit = call.input.get("Limit", limits.STREAM_RECORDS)
    if limit > limits.STREAM_RECORDS:
        raise _too_high(limit, limits.STREAM_RECORDS)
    records: list[dict[str, Any]] = []
    sequence: int | None = place.sequence
    bytes_left, scanned = limits.STREAM_RECORDS_BYTES, 0
    while sequence is not None and len(records) < limit and bytes_left > 0 and scanned < _MAX_SCANNED_CHANGES:
        page = await stream_commands.ReadChanges(
            stream, place.shard, sequence, limit - len(records), bytes_left
        )
        page_records = list(_records(call, stream, page.changes))
        records += page_records
        bytes_left -= sum(record["dynamodb"]["SizeBytes"] for record in page_records)
        scanned += len(page.changes)
        is_end = page.next == sequence
        sequence = page.next
        if is_end or not page.changes:
            break
    # A disabled stream gets no more records.
    if sequence is not None and stream.ended_at_ms is not None and not page.changes:
        sequence = None
    answer: dict[str, Any] = {"Records": records}
    if sequence is not None:
        answer["NextShardIterator"] = _Iterator(place.arn, place.shard, sequence, now_ms).text()
    return answer


# Streams and shards


def _page_limit(arguments: Mapping[str, Any]) -> int:
    limit: int = arguments.get("Limit", limits.STREAM_SHARDS_PAGE)
    if limit > limits.STREAM_SHARDS_PAGE:
        raise _too_high(limit, limits.STREAM_SHARDS_PAGE)
    return limit


def _too_high(limit: int, limit_max: int) -> ServiceError:
    return validation(
        f"1 validation error detected: Value '{limit}' at 'limit' failed to satisfy constraint: "
        f"Member must have value less than or equal to {limit_max}"
    )


def _table_and_label(call: CallContext, arn: str) -> tuple[str, str]:
    """Return (table, label) of the ARN of a stream of the caller."""
    match = _ARN.fullmatch(arn)
    if match is None:
        raise validation(f"Invalid StreamArn: {arn}")
    check_place(call, arn)
    return match["table"], match["label"]


async def _find(call: CallContext, arn: str) -> Stream:
    table, label = _table_and_label(call, arn)
    try:
        return await stream_commands.FindStream(call.caller.namespace, table, label)
    except StreamMissing:
        text = f"Requested resource not found: Stream: {arn} not found"
        raise ServiceError("ResourceNotFoundException", text) from None


def _arn_of(call: CallContext, stream: Stream) -> str:
    return stream_arn(call.caller, stream.table_name, stream.label)


def _view_of(stream: Stream) -> str:
    """Return the view type of a stream. Streams of other dialects have both images."""
    return stream.rule.view or "NEW_AND_OLD_IMAGES"


def _describe_shard(stream: Stream, shard: Shard) -> dict[str, Any]:
    first = shard.trimmed_sequence + 1
    sequences = {"StartingSequenceNumber": _sequence_number(first)}
    if shard.last_sequence is not None:
        sequences["EndingSequenceNumber"] = _sequence_number(max(first, shard.last_sequence))
    description: dict[str, Any] = {
        "ShardId": _shard_id(stream, shard.number),
        "SequenceNumberRange": sequences,
    }
    if shard.parents:
        description["ParentShardId"] = _shard_id(stream, shard.parents[0])
    return description


def _shard_id(stream: Stream, number: int) -> str:
    return f"shardId-{stream.opened_at_ms:020d}-{number:08x}"


def _shard_number(stream: Stream, shard_id: str, arn: str) -> int:
    match = _SHARD.fullmatch(shard_id)
    if match is None or _shard_id(stream, int(match["number"], 16)) != shard_id:
        raise _no_such_shard(arn, shard_id)
    return int(match["number"], 16)


def _no_such_shard(arn: str, shard_id: str) -> ServiceError:
    text = f"Requested resource not found: Shard: {shard_id} in Stream: {arn} not found"
    return ServiceError("ResourceNotFoundException", text)


def _sequence_number(sequence: int) -> str:
    return str(_FIRST_SEQUENCE + sequence)


def _sequence_of(number: str) -> int:
    is_number = number.isascii() and number.isdigit()
    if not is_number or not 0 <= int(number) - _FIRST_SEQUENCE < _END_OF_SEQUENCES:
        raise validation("1 validation error detected: Invalid SequenceNumber")
    return int(number) - _FIRST_SEQUENCE


class _Iterator(NamedTuple):
    """A shard iterator: opaque to clients, it holds the position from which to continue."""

    arn: str
    shard: int
    sequence: int
    issued_at_ms: int

    def text(self) -> str:
        payload = orjson.dumps([self.shard, self.sequence, self.issued_at_ms])
        return f"{self.arn}|1|{base64.urlsafe_b64encode(payload).decode()}"

    @classmethod
    def of(cls, text: str) -> _Iterator:
        """Parse a shard iterator. Raises ServiceError if it is invalid."""
        try:
            arn, _, payload = text.split("|")
            shard, sequence, issued_at_ms = orjson.loads(base64.urlsafe_b64decode(payload))
            place = cls(arn, int(shard), int(sequence), int(issued_at_ms))
        except (ValueError, TypeError, binascii.Error):
            raise validation("Invalid ShardIterator") from None
        if not (0 <= place.shard < 2**31 and 0 <= place.sequence <= _END_OF_SEQUENCES):
            raise validation("Invalid ShardIterator")
        return place


# Records


def _records(call: CallContext, stream: Stream, changes: list[Change]) -> Iterator[dict[str, Any]]:
    for change in changes:
        if not change.is_noop:
            yield _record(call, stream, change)


def _record(call: CallContext, stream: Stream, change: Change) -> dict[str, Any]:
    shows = _view_of(stream)
    members, size = images(stream.key_schema, change, _SHOWN[shows])
    record: dict[str, Any] = {
        "awsRegion": call.caller.region,
        "dynamodb": {
            "ApproximateCreationDateTime": change.at_ms // 1000,
            **members,
            "SequenceNumber": _sequence_number(change.sequence),
            "SizeBytes": size,
            "StreamViewType": shows,
        },
        "eventID": _event_id(stream, change),
        "eventName": event_name(change),
        "eventSource": "aws:dynamodb",
        "eventVersion": "1.1",
    }
    if change.actor == EXPIRY_ACTOR:
        record["userIdentity"] = _EXPIRY_PRINCIPAL
    return record


def _event_id(stream: Stream, change: Change) -> str:
    identity = f"{stream.id}/{change.shard}/{change.sequence}"
    return hashlib.md5(identity.encode(), usedforsecurity=False).hexdigest()


_SHOWN = {
    "KEYS_ONLY": frozenset[str](),
    "NEW_IMAGE": frozenset({"NewImage"}),
    "OLD_IMAGE": frozenset({"OldImage"}),
    "NEW_AND_OLD_IMAGES": BOTH_IMAGES,
}


# Inputs


_STREAM_ARN = Text(minimum=37, maximum=1024)
_SHARD_ID = Text(minimum=28, maximum=65)
_POSITION = one_of("TRIM_HORIZON", "LATEST", "AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER", "AT_TIMESTAMP")
_SHAPES: Shapes = {
    "ListStreams": (
        {"TableName": NAME_OR_ARN, "Limit": INTEGER_FROM_1, "ExclusiveStartStreamArn": _STREAM_ARN},
        (),
    ),
    "DescribeStream": (
        {
            "StreamArn": _STREAM_ARN,
            "Limit": INTEGER_FROM_1,
            "ExclusiveStartShardId": _SHARD_ID,
            "ShardFilter": Structure("ShardFilter", {"Type": one_of("CHILD_SHARDS"), "ShardId": _SHARD_ID}),
        },
        ("StreamArn",),
    ),
    "GetShardIterator": (
        {
            "StreamArn": _STREAM_ARN,
            "ShardId": _SHARD_ID,
            "ShardIteratorType": _POSITION,
            "SequenceNumber": Text(minimum=21, maximum=40),
            "Timestamp": Number("Double"),
        },
        ("StreamArn", "ShardId", "ShardIteratorType"),
    ),
    "GetRecords": (
        {"ShardIterator": Text(minimum=1, maximum=2048), "Limit": INTEGER_FROM_1},
        ("ShardIterator",),
    ),
}
STREAM_REQUESTS = requests_of(_SHAPES)
"""The inputs of these operations."""


# Operations


_P = Permission
OPERATIONS = by_name(
    Operation("ListStreams", list_streams, STREAM_REQUESTS, Purpose((_P.LIST_STREAMS,))),
    Operation("DescribeStream", describe_stream, STREAM_REQUESTS, Purpose((_P.DESCRIBE_STREAM,))),
    Operation(
        "GetShardIterator", get_shard_iterator, STREAM_REQUESTS, Purpose((_P.POSITION_STREAM,)),
        rule=resource_rules.get_shard_iterator,
    ),
    Operation("GetRecords", get_records, STREAM_REQUESTS, Purpose((_P.READ_STREAM,))),
)  # fmt: skip
