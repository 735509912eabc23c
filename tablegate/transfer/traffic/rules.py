"""The table of rules for expected differences between two services that received the same requests.

Each rule has a name and a reason. Reports count rules by name. Its places are paths in a reply, such as
`headers/etag` or `body/Items`. In a path `*` is one name, `**` any number of names and `[]` a list element. A prefix
with a colon limits the path to that operation. Module comparing.py applies the rules to replies, and the dialects to
requests.
Source: docs/protocols/dynamodb.md, azure-table.md, table-store.md. The rest is unspecified by the services'
documents.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache


class Treatment(Enum):
    """The treatment of a rule's places in a comparison."""

    IGNORED = "compared for presence only"
    PASSING = "not compared"
    MAPPED = "the live token replaces the recorded one, also in later requests"
    TIME = "equal if each is a time of its own run"
    UNORDERED = "compared without order"
    TEXT = "compared after normalization of ids, times, addresses and mapped tokens"


DYNAMODB, AZURE_TABLE, TABLE_STORE = "dynamodb", "azuretable", "tablestore"


@dataclass(frozen=True, slots=True)
class ComparisonRule:
    """A rule for expected differences.

    - `sent_as`: members, headers or options of requests that return a mapped token to the service.
    - `is_strict`: one recorded token maps to one live token. Another live token is a divergence.
    - `is_needed`: a request with such a token cannot be sent before the live token is known.
    """

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

    def applies_to(self, value: object) -> bool:
        """True if the rule applies to this value.

        Attributes of DynamoDB items may have the same names as the service's members. Their values are typed
        documents, while the members that rules with `**` cover are no documents.
        """
        return self.dialect != DYNAMODB or not isinstance(value, dict) or not self.places[0].startswith("**")

    def covers(self, operation: str, path: str) -> bool:
        """True if a path in a reply of the operation is one of the rule's places."""
        return any(
            bound in ("", operation) and pattern.fullmatch(path) is not None
            for bound, pattern in self.patterns
        )


def _pattern(place: str) -> tuple[str, re.Pattern[str]]:
    """Return (operation or "", pattern of paths)."""
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
        "An iterator is opaque and specific to the service.", ("ShardIterator",),
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
        "Shard names are specific to the service.", ("ShardId", "ExclusiveStartShardId"),
    ),
    ComparisonRule(
        "sequence-number", DYNAMODB, _M,
        ("**/SequenceNumber", "**/StartingSequenceNumber", "**/EndingSequenceNumber"),
        "Only the order of sequence numbers is specified.", ("SequenceNumber",),
    ),
    ComparisonRule("event-id", DYNAMODB, _I, ("**/eventID",), "The id of a stream record is generated."),
    ComparisonRule(
        "region", DYNAMODB, _I, ("GetRecords:body/Records/[]/awsRegion",),
        "The other service may be in another region.",
    ),
    ComparisonRule(
        "backup-arn", DYNAMODB, _M,
        ("**/BackupArn", "**/LastEvaluatedBackupArn", "**/ExportArn", "**/ImportArn", "**/SourceBackupArn"),
        "The ARN of a backup, an export or an import ends in a generated id.",
        ("BackupArn", "ExclusiveStartBackupArn", "ExportArn", "ImportArn"),
    ),
    ComparisonRule(
        "table-arn", DYNAMODB, _M,
        ("**/TableArn", "**/IndexArn", "**/ResourceArn", "**/SourceTableArn", "**/GlobalTableArn"),
        "The ARN of a table holds account and region.", ("ResourceArn", "TableArn", "TableName"), is_needed=False,
    ),
    ComparisonRule("table-id", DYNAMODB, _I, ("**/TableId", "**/SourceTableId"), "The id of a table is generated."),
    ComparisonRule(
        "page-token", DYNAMODB, _M, ("body/NextToken", "body/Responses/[]/NextToken"),
        "A page's token is opaque and specific to the service.", ("NextToken",),
    ),
    ComparisonRule(
        "scan-position", DYNAMODB, _M, ("Scan:body/LastEvaluatedKey",),
        "The order of items and pages of a Scan is that of a hash specific to the service.",
        ("Scan:ExclusiveStartKey",),
    ),
    ComparisonRule("scan-order", DYNAMODB, _U, ("Scan:body/Items",), "The order of a Scan is unspecified."),
    ComparisonRule(
        "batch-order", DYNAMODB, _U,
        ("BatchGetItem:body/Responses/*", "BatchGetItem:body/UnprocessedKeys/*/Keys", "BatchWriteItem:body/UnprocessedItems/*"),
        "The order of the items of a batch is unspecified.",
    ),
    ComparisonRule("set-order", DYNAMODB, _U, ("**/SS", "**/NS", "**/BS"), "Sets have no order."),
    ComparisonRule(
        "description-order", DYNAMODB, _U,
        (
            "**/AttributeDefinitions", "**/GlobalSecondaryIndexes", "**/LocalSecondaryIndexes", "**/NonKeyAttributes",
            "**/Tags", "**/TableNames", "**/Streams", "**/BackupSummaries",
        ),
        "The order of lists in table descriptions is unspecified.",
    ),
    ComparisonRule(
        "creation-times", DYNAMODB, _I,
        (
            "**/CreationDateTime", "**/ApproximateCreationDateTime", "**/CreationRequestDateTime",
            "**/BackupCreationDateTime", "**/TableCreationDateTime", "**/LastIncreaseDateTime", "**/LastDecreaseDateTime",
            "**/LastUpdateToPayPerRequestDateTime", "**/EarliestRestorableDateTime", "**/LatestRestorableDateTime",
        ),
        "The time of an event.",
    ),
    ComparisonRule(
        "estimated-sizes", DYNAMODB, _I,
        ("**/TableSizeBytes", "**/ItemCount", "**/IndexSizeBytes", "**/BackupSizeBytes", "body/ItemCollectionMetrics"),
        "Sizes and counts of tables are estimates, up to hours old.",
    ),
    ComparisonRule(
        "under-way", DYNAMODB, Treatment.PASSING,
        ("**/TableStatus", "**/IndexStatus", "**/Backfilling", "**/WarmThroughput/Status"),
        "The time to create a table or an index differs. Replay waits where clients waited.",
    ),
    ComparisonRule(
        "service-address", DYNAMODB, _I, ("DescribeEndpoints:body/Endpoints/[]/Address",),
        "The service's own address.",
    ),
    ComparisonRule(
        "consumed-capacity", DYNAMODB, _I, ("body/ConsumedCapacity",),
        "The capacity that an operation consumes is specific to the service.",
    ),
    ComparisonRule(
        "error-text", DYNAMODB, Treatment.TEXT, ("body/message", "body/Message", "body/CancellationReasons/[]/Message"),
        "An error's text may name ARNs and ids.",
    ),
    # Azure Table
    ComparisonRule(
        "etag", AZURE_TABLE, _M, ("**/headers/etag", "**/odata.etag"),
        "An ETag is the time of a write. It must stay equal while the recorded one does.",
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
        "A page's token is opaque and specific to the service.", ("NextPartitionKey", "NextRowKey", "NextTableName"),
    ),
    ComparisonRule(
        "error-text", AZURE_TABLE, Treatment.TEXT, ("**/odata.error/message/value", "body/Message/[]", "body/message/[]"),
        "An error's text ends in the request's id and the time.",
    ),
    ComparisonRule(
        "replication-time", AZURE_TABLE, _I, ("body/GeoReplication/[]/LastSyncTime/[]",),
        "The time of the last replication.",
    ),
    # Table Store
    ComparisonRule(
        "consumed-capacity", TABLE_STORE, _I, ("**/consumed",),
        "The capacity that an operation consumes is specific to the service.",
    ),
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
        "Shard names are specific to the service.", ("shard_id", "inclusive_start_shard_id"),
    ),
    ComparisonRule(
        "shard-iterator", TABLE_STORE, _M, ("**/shard_iterator", "**/next_shard_iterator"),
        "An iterator is opaque and specific to the service.", ("shard_iterator",),
    ),
    ComparisonRule(
        "transaction-id", TABLE_STORE, _M, ("**/transaction_id",), "The id of a local transaction is generated.",
        ("transaction_id",),
    ),
    ComparisonRule(
        "page-token", TABLE_STORE, _M, ("**/next_token", "**/session_id", "**/checkpoint"),
        "The token of a page, a scan or a checkpoint is opaque.", ("token", "session_id", "checkpoint"),
    ),
    ComparisonRule(
        "tunnel-id", TABLE_STORE, _M, ("**/tunnel_id", "**/client_id", "**/channel_id"),
        "The ids of tunnels, their clients and channels are generated.", ("tunnel_id", "client_id", "channel_id"),
    ),
    ComparisonRule(
        "tunnel-times", TABLE_STORE, _I,
        ("**/create_time", "**/channel_rpo", "**/tunnel_rpo", "**/rpo_infos", "**/tunnel_rpo_infos"),
        "The time of an event.",
    ),
    ComparisonRule(
        "under-way", TABLE_STORE, Treatment.PASSING, ("**/table_status", "**/index_sync_phase"),
        "The time to create a table or an index differs. Replay waits where clients waited.",
    ),
    ComparisonRule("table-id", TABLE_STORE, _I, ("**/table_id",), "The id of a table is generated."),
    ComparisonRule(
        "creation-times", TABLE_STORE, _I,
        ("**/creation_time", "**/last_enable_time", "**/last_increase_time", "**/last_decrease_time"),
        "The time of an event.",
    ),
    ComparisonRule(
        "listing-order", TABLE_STORE, _U, ("ListTable:body/table_names", "ListStream:body/streams"),
        "The order of lists is unspecified.",
    ),
    ComparisonRule("error-text", TABLE_STORE, Treatment.TEXT, ("**/message",), "An error's text may name ids."),
)  # fmt: skip


@lru_cache(maxsize=16384)
def rule_of(dialect: str, operation: str, path: str) -> ComparisonRule | None:
    """Return the rule of a place in a reply. `path` has `[]` for each list element."""
    for rule in RULES:
        if rule.dialect == dialect and rule.covers(operation, path + "/"):
            return rule
    return None


@lru_cache(maxsize=64)
def tokens_sent(dialect: str, operation: str) -> Mapping[str, ComparisonRule]:
    """Map each member, header or option of a request to the rule of the token in it."""
    rules_by_name = {}
    for rule in RULES:
        for name in rule.sent_as if rule.dialect == dialect else ():
            bound, _, member = name.rpartition(":")
            if bound in ("", operation):
                rules_by_name[member] = rule
    return rules_by_name
