"""The DynamoDB actions of IAM policies, each as a set of (permission, channel) pairs.

An Allow covers only the pairs of its action, as in the service. BatchGetItem is not GetItem, and PartiQL has its own actions
("Actions, resources, and condition keys for Amazon DynamoDB", service authorization reference). A Deny covers the permission
in all channels. So if DeleteItem is denied, batches, statements and other dialects cannot delete rows either. This is stricter
than the service (docs/operate/grants.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tablegate.gateway.model.authorization.globs import Glob
from tablegate.gateway.model.authorization.permissions import Channel, GrantAction, Permission

_P = Permission
_BY_ITSELF = (Channel.SINGLE, Channel.TRANSACTION)
_BY_STATEMENT = (Channel.STATEMENT, Channel.STATEMENT_TRANSACTION)


def _pairs(
    permissions: Iterable[Permission], channels: Iterable[Channel] = (Channel.SINGLE,)
) -> frozenset[GrantAction]:
    channels = tuple(channels)
    return frozenset((permission, channel) for permission in permissions for channel in channels)


ACTIONS: Mapping[str, frozenset[GrantAction]] = {
    "GetItem": _pairs([_P.READ], _BY_ITSELF),
    "Query": _pairs([_P.QUERY], _BY_ITSELF),
    "Scan": _pairs([_P.SCAN, _P.SPLIT], _BY_ITSELF),
    "SearchVectors": _pairs([_P.SEARCH]),
    "PutItem": _pairs([_P.PUT], _BY_ITSELF),
    "UpdateItem": _pairs([_P.UPDATE], (*_BY_ITSELF, Channel.BATCH)),  # the service has no batch of updates
    "DeleteItem": _pairs([_P.DELETE], _BY_ITSELF),
    "ConditionCheckItem": _pairs([_P.CHECK], _BY_ITSELF),
    "BatchGetItem": _pairs([_P.READ, _P.QUERY], [Channel.BATCH]),  # of an index, a row of a batch is read as a page
    "BatchWriteItem": _pairs([_P.PUT, _P.DELETE], [Channel.BATCH]),
    "PartiQLSelect": _pairs([_P.READ, _P.QUERY, _P.SCAN, _P.CHECK], _BY_STATEMENT),
    "PartiQLInsert": _pairs([_P.PUT], _BY_STATEMENT),
    "PartiQLUpdate": _pairs([_P.UPDATE], _BY_STATEMENT),
    "PartiQLDelete": _pairs([_P.DELETE], _BY_STATEMENT),
    "ListTables": _pairs([_P.LIST]),
    "DescribeTable": _pairs([_P.DESCRIBE]),
    "CreateTable": _pairs([_P.CREATE]),
    "UpdateTable": _pairs([_P.ALTER, _P.CREATE_INDEX, _P.DROP_INDEX, _P.ADD_COLUMNS, _P.DROP_COLUMNS]),
    "DeleteTable": _pairs([_P.DROP]),
    "DescribeTimeToLive": _pairs([_P.DESCRIBE_EXPIRY]),
    "UpdateTimeToLive": _pairs([_P.ALTER_EXPIRY]),
    "ListTagsOfResource": _pairs([_P.READ_TAGS]),
    "TagResource": _pairs([_P.TAG]),
    "UntagResource": _pairs([_P.UNTAG]),
    "GetResourcePolicy": _pairs([_P.READ_POLICY]),
    "PutResourcePolicy": _pairs([_P.WRITE_POLICY]),
    "DeleteResourcePolicy": _pairs([_P.REMOVE_POLICY]),
    "UpdateContinuousBackups": _pairs([_P.ALTER_RECOVERY]),
    "CreateBackup": _pairs([_P.CREATE_BACKUP]),
    "DescribeBackup": _pairs([_P.DESCRIBE_BACKUP]),
    "ListBackups": _pairs([_P.LIST_BACKUPS]),
    "DeleteBackup": _pairs([_P.DELETE_BACKUP]),
    "RestoreTableFromBackup": _pairs([_P.RESTORE_BACKUP]),
    "RestoreTableToPointInTime": _pairs([_P.RESTORE_MOMENT]),
    "ListStreams": _pairs([_P.LIST_STREAMS]),
    "DescribeStream": _pairs([_P.DESCRIBE_STREAM]),
    "GetShardIterator": _pairs([_P.POSITION_STREAM]),
    "GetRecords": _pairs([_P.READ_STREAM]),
    "DescribeLimits": _pairs([_P.READ_ACCOUNT]),
    "DescribeEndpoints": _pairs([_P.READ_ACCOUNT]),
    **dict.fromkeys(
        (
            "DescribeContinuousBackups", "DescribeContributorInsights", "DescribeKinesisStreamingDestination",
            "DescribeTableReplicaAutoScaling", "DescribeGlobalTable", "DescribeGlobalTableSettings",
        ),
        _pairs([_P.DESCRIBE_FEATURES]),
    ),
    **dict.fromkeys(
        ("ListContributorInsights", "ListGlobalTables"),
        _pairs([_P.LIST_FEATURES]),
    ),
    "ExportTableToPointInTime": _pairs([_P.EXPORT]),
    "ImportTable": _pairs([_P.IMPORT]),
    "StartBulkPutItems": _pairs([_P.LOAD]),
    "CancelBulkOperation": _pairs([_P.CANCEL_JOB]),
    **dict.fromkeys(("ListExports", "ListImports", "ListBulkOperations"), _pairs([_P.LIST_JOBS])),
    **dict.fromkeys(("DescribeExport", "DescribeImport", "DescribeBulkOperation"), _pairs([_P.DESCRIBE_JOB])),
    "UpdateContributorInsights": _pairs([_P.ALTER_INSIGHTS]),
    **dict.fromkeys(
        (
            "EnableKinesisStreamingDestination", "DisableKinesisStreamingDestination",
            "UpdateKinesisStreamingDestination",
        ),
        _pairs([_P.ALTER_DELIVERIES]),
    ),
    **dict.fromkeys(
        (
            "UpdateTableReplicaAutoScaling", "CreateGlobalTable", "UpdateGlobalTable", "UpdateGlobalTableSettings",
        ),
        _pairs([_P.ALTER_FEATURES]),
    ),
}  # fmt: skip
"""The pairs that an Allow of each action covers. Actions of the service that are not listed have no operation here."""


def pairs_of(patterns: Iterable[str], is_refusal: bool) -> frozenset[GrantAction]:
    """Return the pairs that an Allow or a Deny of action patterns covers (`dynamodb:Get*`, without case)."""
    result: set[GrantAction] = set()
    for pattern in patterns:
        service, separator, name = pattern.lower().partition(":")
        if not separator:
            service, name = ("*", "*") if pattern == "*" else ("", "")
        if not Glob.of(service).matches("dynamodb"):
            continue
        actions = Glob.of(name)
        if name == "*":
            result |= _EVERY
        for action, pairs in ACTIONS.items():
            if actions.matches(action.lower()):
                result |= _denied_pairs(action, pairs) if is_refusal else pairs
    return frozenset(result)


_EVERY = frozenset((permission, channel) for permission in Permission for channel in Channel)


def _denied_pairs(action: str, pairs: frozenset[GrantAction]) -> frozenset[GrantAction]:
    """Return the pairs that a Deny of an action covers: all channels, except for actions of batches and statements."""
    if action.startswith(("Batch", "PartiQL")):
        return pairs
    return frozenset((permission, channel) for permission, _ in pairs for channel in Channel)


def everything_but(patterns: Iterable[str]) -> frozenset[GrantAction]:
    """Return the pairs of NotAction: all pairs that these actions do not cover."""
    return _EVERY - pairs_of(patterns, is_refusal=False)


def is_known(pattern: str) -> bool:
    """True if a pattern of actions is `*`, or a service and a name."""
    return pattern == "*" or pattern.count(":") == 1
