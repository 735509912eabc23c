"""What differs by nature between two services that were told the same: the one table of rules.

Each rule has a name, by which reports count it, and a reason. Its places are paths in an answer (`headers/etag`,
`body/Items`): `*` is one name, `**` any number of them, `[]` an element of a list, and an operation and a colon in front
bind it to that operation. What comparing does with a place is in comparing.py; what is sent again, in dialects/.
Source: docs/protocols/dynamodb.md, azure-table.md, table-store.md, and what the services' documents leave open.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache


class Treatment(Enum):
    """What a rule does with its places."""

    IGNORED = "not compared, but for whether it is there"
    PASSING = "not compared"
    MAPPED = "the live one stands for the recorded one, also in later requests"
    TIME = "equal if both are times of their own run"
    UNORDERED = "compared without order"
    TEXT = "compared after ids, times, addresses and mapped tokens in it are made equal"


DYNAMODB, AZURE_TABLE, TABLE_STORE = "dynamodb", "azuretable", "tablestore"


@dataclass(frozen=True, slots=True)
class ComparisonRule:
    """One rule. `sent_as`: the members, headers or options of requests in which a mapped token is sent back. `is_strict`: one
    recorded token stands for one live token, and another is a divergence. `is_needed`: a request with such a token cannot be
    sent as long as its live one is not known."""

    name: str
    dialect: str
    treatment: Treatment
    places: tuple[str, ...]
    reason: str
    sent_as: tuple[str, ...] = ()
    is_strict: bool = False
    is_needed: bool = True
    patterns: tuple[tuple[str, re.Pattern[str]], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "patterns", tuple(_pattern(place) for place in self.places))

    def takes(self, value: object) -> bool:
        """Whether a value in one of the rule's places is what the rule is about. Items of DynamoDB have attributes of any
        name, whose values are documents with a type; what the service itself says under a name is none."""
        return self.dialect != DYNAMODB or not isinstance(value, dict) or not self.places[0].startswith("**")

    def covers(self, operation: str, path: str) -> bool:
        """Whether a place in the answer of an operation is one of the rule's."""
        return any(
            bound in ("", operation) and pattern.fullmatch(path) is not None
            for bound, pattern in self.patterns
        )


def _pattern(place: str) -> tuple[str, re.Pattern[str]]:
    """(operation or "", pattern of paths)"""
    operation, _, path = place.rpartition(":")
    parts = []
    for part in path.split("/"):
        match part:
            case "**":
                parts.append(r"(?:[^/]+/)*")
            case "*":
                parts.append(r"[^/]+/")
            case _:
                parts.append(re.escape(part) + "/")
    return operation, re.compile("".join(parts))


_I, _M, _U = Treatment.IGNORED, Treatment.MAPPED, Treatment.UNORDERED

RULES: tuple[ComparisonRule, ...] = (
    # DynamoDB
    ComparisonRule(
        "shard-iterator", DYNAMODB, _M, ("**/ShardIterator", "**/NextShardIterator"),
        "An iterator is the service's own, and opaque.", ("ShardIterator",),
    ),
    ComparisonRule(
        "stream-arn", DYNAMODB, _M, ("**/StreamArn", "**/LatestStreamArn", "**/LastEvaluatedStreamArn"),
        "The ARN of a stream holds account, region and the time at which it was enabled.",
        ("StreamArn", "ExclusiveStartStreamArn"),
    ),
    ComparisonRule(
        "stream-label", DYNAMODB, _I, ("**/StreamLabel", "**/LatestStreamLabel"),
        "A stream's label is the time at which it was enabled.",
    ),
    ComparisonRule(
        "shard-id", DYNAMODB, _M, ("**/ShardId", "**/ParentShardId", "**/LastEvaluatedShardId"),
        "The names of shards are the service's own.", ("ShardId", "ExclusiveStartShardId"),
    ),
    ComparisonRule(
        "sequence-number", DYNAMODB, _M,
        ("**/SequenceNumber", "**/StartingSequenceNumber", "**/EndingSequenceNumber"),
        "Sequence numbers grow, and nothing else is promised of them.", ("SequenceNumber",),
    ),
    ComparisonRule("event-id", DYNAMODB, _I, ("**/eventID",), "The id of a stream record is made up for it."),
    ComparisonRule(
        "region", DYNAMODB, _I, ("GetRecords:body/Records/[]/awsRegion",),
        "The other service may be in another region.",
    ),
    ComparisonRule(
        "backup-arn", DYNAMODB, _M,
        ("**/BackupArn", "**/LastEvaluatedBackupArn", "**/ExportArn", "**/ImportArn", "**/SourceBackupArn"),
        "The ARN of a backup, an export or an import ends in an id that is made up.",
        ("BackupArn", "ExclusiveStartBackupArn", "ExportArn", "ImportArn"),
    ),
    ComparisonRule(
        "table-arn", DYNAMODB, _M,
        ("**/TableArn", "**/IndexArn", "**/ResourceArn", "**/SourceTableArn", "**/GlobalTableArn"),
        "The ARN of a table holds account and region.", ("ResourceArn", "TableArn", "TableName"), is_needed=False,
    ),
    ComparisonRule("table-id", DYNAMODB, _I, ("**/TableId", "**/SourceTableId"), "The id of a table is made up."),
    ComparisonRule(
        "page-token", DYNAMODB, _M, ("body/NextToken", "body/Responses/[]/NextToken"),
        "A page's token is the service's own, and opaque.", ("NextToken",),
    ),
    ComparisonRule(
        "scan-position", DYNAMODB, _M, ("Scan:body/LastEvaluatedKey",),
        "Items of a Scan come in the order of a hash that is the service's own, and so do its pages.",
        ("Scan:ExclusiveStartKey",),
    ),
    ComparisonRule("scan-order", DYNAMODB, _U, ("Scan:body/Items",), "The order of a Scan is not promised."),
    ComparisonRule(
        "batch-order", DYNAMODB, _U,
        ("BatchGetItem:body/Responses/*", "BatchGetItem:body/UnprocessedKeys/*/Keys", "BatchWriteItem:body/UnprocessedItems/*"),
        "The order of the items of a batch is not promised.",
    ),
    ComparisonRule("set-order", DYNAMODB, _U, ("**/SS", "**/NS", "**/BS"), "Sets have no order."),
    ComparisonRule(
        "description-order", DYNAMODB, _U,
        (
            "**/AttributeDefinitions", "**/GlobalSecondaryIndexes", "**/LocalSecondaryIndexes", "**/NonKeyAttributes",
            "**/Tags", "**/TableNames", "**/Streams", "**/BackupSummaries",
        ),
        "The order of what is listed about tables is not promised.",
    ),
    ComparisonRule(
        "creation-times", DYNAMODB, _I,
        (
            "**/CreationDateTime", "**/ApproximateCreationDateTime", "**/CreationRequestDateTime",
            "**/BackupCreationDateTime", "**/TableCreationDateTime", "**/LastIncreaseDateTime", "**/LastDecreaseDateTime",
            "**/LastUpdateToPayPerRequestDateTime", "**/EarliestRestorableDateTime", "**/LatestRestorableDateTime",
        ),
        "The time at which something happened.",
    ),
    ComparisonRule(
        "estimated-sizes", DYNAMODB, _I,
        ("**/TableSizeBytes", "**/ItemCount", "**/IndexSizeBytes", "**/BackupSizeBytes", "body/ItemCollectionMetrics"),
        "Sizes and counts of tables are estimates that are hours old.",
    ),
    ComparisonRule(
        "under-way", DYNAMODB, Treatment.PASSING,
        ("**/TableStatus", "**/IndexStatus", "**/Backfilling", "**/WarmThroughput/Status"),
        "How long making a table or an index takes is the service's own; where clients had waited, replay waits.",
    ),
    ComparisonRule(
        "service-address", DYNAMODB, _I, ("DescribeEndpoints:body/Endpoints/[]/Address",),
        "The service's own address.",
    ),
    ComparisonRule(
        "consumed-capacity", DYNAMODB, _I, ("body/ConsumedCapacity",),
        "What an operation costs is the service's own.",
    ),
    ComparisonRule(
        "error-text", DYNAMODB, Treatment.TEXT, ("body/message", "body/Message", "body/CancellationReasons/[]/Message"),
        "An error's text may name ARNs and ids.",
    ),
    # Azure Table
    ComparisonRule(
        "etag", AZURE_TABLE, _M, ("**/headers/etag", "**/odata.etag"),
        "An ETag is the time of a write. It must be the same as long as the recorded one is.",
        ("If-Match", "If-None-Match"), is_strict=True, is_needed=False,
    ),
    ComparisonRule("timestamp", AZURE_TABLE, _I, ("**/Timestamp",), "The time at which an entity was written."),
    ComparisonRule(
        "service-address", AZURE_TABLE, Treatment.TEXT,
        ("**/headers/location", "**/odata.metadata", "**/odata.id", "**/odata.editLink"),
        "An answer's links hold the address and the account of the service.",
    ),
    ComparisonRule(
        "continuation", AZURE_TABLE, _M,
        (
            "headers/x-ms-continuation-nextpartitionkey", "headers/x-ms-continuation-nextrowkey",
            "headers/x-ms-continuation-nexttablename",
        ),
        "A page's token is the service's own, and opaque.", ("NextPartitionKey", "NextRowKey", "NextTableName"),
    ),
    ComparisonRule(
        "error-text", AZURE_TABLE, Treatment.TEXT, ("**/odata.error/message/value", "body/Message/[]", "body/message/[]"),
        "An error's text ends in the request's id and the time.",
    ),
    ComparisonRule(
        "replication-time", AZURE_TABLE, _I, ("body/GeoReplication/[]/LastSyncTime/[]",),
        "When the secondary was last in step.",
    ),
    # Table Store
    ComparisonRule("consumed-capacity", TABLE_STORE, _I, ("**/consumed",), "What an operation costs is the service's own."),
    ComparisonRule(
        "cell-stamps", TABLE_STORE, Treatment.TIME, ("**/stamp_ms",),
        "The version of a cell is the time of its write, unless the client gave one.",
    ),
    ComparisonRule("record-position", TABLE_STORE, _I, ("**/extension",), "The position of a stream record is a time."),
    ComparisonRule(
        "stream-id", TABLE_STORE, _M, ("**/stream_id",), "The id of a stream holds the time at which it was enabled.",
        ("stream_id",),
    ),
    ComparisonRule(
        "shard-id", TABLE_STORE, _M, ("**/shard_id", "**/parent_id", "**/parent_sibling_id", "**/next_shard_id"),
        "The names of shards are the service's own.", ("shard_id", "inclusive_start_shard_id"),
    ),
    ComparisonRule(
        "shard-iterator", TABLE_STORE, _M, ("**/shard_iterator", "**/next_shard_iterator"),
        "An iterator is the service's own, and opaque.", ("shard_iterator",),
    ),
    ComparisonRule(
        "transaction-id", TABLE_STORE, _M, ("**/transaction_id",), "The id of a local transaction is made up.",
        ("transaction_id",),
    ),
    ComparisonRule("page-token", TABLE_STORE, _M, ("**/next_token",), "A token inside of a row is opaque.", ("token",)),
    ComparisonRule(
        "under-way", TABLE_STORE, Treatment.PASSING, ("**/table_status", "**/index_sync_phase"),
        "How long making a table or an index takes is the service's own; where clients had waited, replay waits.",
    ),
    ComparisonRule("table-id", TABLE_STORE, _I, ("**/table_id",), "The id of a table is made up."),
    ComparisonRule(
        "creation-times", TABLE_STORE, _I,
        ("**/creation_time", "**/last_enable_time", "**/last_increase_time", "**/last_decrease_time"),
        "The time at which something happened.",
    ),
    ComparisonRule(
        "listing-order", TABLE_STORE, _U, ("ListTable:body/table_names", "ListStream:body/streams"),
        "The order of what is listed is not promised.",
    ),
    ComparisonRule("error-text", TABLE_STORE, Treatment.TEXT, ("**/message",), "An error's text may name ids."),
)  # fmt: skip


@lru_cache(maxsize=16384)
def rule_of(dialect: str, operation: str, path: str) -> ComparisonRule | None:
    """The rule of a place in an answer. `path` has `[]` for every element of a list."""
    for rule in RULES:
        if rule.dialect == dialect and rule.covers(operation, path + "/"):
            return rule
    return None


@lru_cache(maxsize=64)
def tokens_sent(dialect: str, operation: str) -> Mapping[str, ComparisonRule]:
    """Member, header or option of a request -> the rule of the token that it may hold."""
    found = {}
    for rule in RULES:
        for name in rule.sent_as if rule.dialect == dialect else ():
            bound, _, member = name.rpartition(":")
            if bound in ("", operation):
                found[member] = rule
    return found
