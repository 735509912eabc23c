"""The actions of DynamoDB that IAM policies name, and the doors that each opens or closes.

An allowance opens just the doors of its action: BatchGetItem is not GetItem, and PartiQL has actions of its own, as in
the service ("Actions, resources, and condition keys for Amazon DynamoDB", service authorization reference). A refusal
closes a permission in every way in which it can be asked for, so that a table on which DeleteItem is refused loses no
row through a batch, a statement or another dialect; that is stricter than the service (docs/operate/grants.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tablegate.gateway.model.authorization.globs import Glob
from tablegate.gateway.model.authorization.permissions import Channel, GrantAction, Permission

_P = Permission
_BY_ITSELF = (Channel.SINGLE, Channel.TRANSACTION)
_BY_STATEMENT = (Channel.STATEMENT, Channel.STATEMENT_TRANSACTION)


def _doors(
    permissions: Iterable[Permission], ways: Iterable[Channel] = (Channel.SINGLE,)
) -> frozenset[GrantAction]:
    ways = tuple(ways)
    return frozenset((permission, way) for permission in permissions for way in ways)


ACTIONS: Mapping[str, frozenset[GrantAction]] = {
    "GetItem": _doors([_P.READ], _BY_ITSELF),
    "Query": _doors([_P.QUERY], _BY_ITSELF),
    "Scan": _doors([_P.SCAN, _P.SPLIT], _BY_ITSELF),
    "SearchVectors": _doors([_P.SEARCH]),
    "PutItem": _doors([_P.PUT], _BY_ITSELF),
    "UpdateItem": _doors([_P.UPDATE], (*_BY_ITSELF, Channel.BATCH)),  # the service has no batch of updates
    "DeleteItem": _doors([_P.DELETE], _BY_ITSELF),
    "ConditionCheckItem": _doors([_P.CHECK], _BY_ITSELF),
    "BatchGetItem": _doors([_P.READ, _P.QUERY], [Channel.BATCH]),  # of an index, a row of a batch is read as a page
    "BatchWriteItem": _doors([_P.PUT, _P.DELETE], [Channel.BATCH]),
    "PartiQLSelect": _doors([_P.READ, _P.QUERY, _P.SCAN, _P.CHECK], _BY_STATEMENT),
    "PartiQLInsert": _doors([_P.PUT], _BY_STATEMENT),
    "PartiQLUpdate": _doors([_P.UPDATE], _BY_STATEMENT),
    "PartiQLDelete": _doors([_P.DELETE], _BY_STATEMENT),
    "ListTables": _doors([_P.LIST]),
    "DescribeTable": _doors([_P.DESCRIBE]),
    "CreateTable": _doors([_P.CREATE]),
    "UpdateTable": _doors([_P.ALTER, _P.CREATE_INDEX, _P.DROP_INDEX, _P.ADD_COLUMNS, _P.DROP_COLUMNS]),
    "DeleteTable": _doors([_P.DROP]),
    "DescribeTimeToLive": _doors([_P.DESCRIBE_EXPIRY]),
    "UpdateTimeToLive": _doors([_P.ALTER_EXPIRY]),
    "ListTagsOfResource": _doors([_P.READ_TAGS]),
    "TagResource": _doors([_P.TAG]),
    "UntagResource": _doors([_P.UNTAG]),
    "GetResourcePolicy": _doors([_P.READ_POLICY]),
    "PutResourcePolicy": _doors([_P.WRITE_POLICY]),
    "DeleteResourcePolicy": _doors([_P.REMOVE_POLICY]),
    "UpdateContinuousBackups": _doors([_P.ALTER_RECOVERY]),
    "CreateBackup": _doors([_P.CREATE_BACKUP]),
    "DescribeBackup": _doors([_P.DESCRIBE_BACKUP]),
    "ListBackups": _doors([_P.LIST_BACKUPS]),
    "DeleteBackup": _doors([_P.DELETE_BACKUP]),
    "RestoreTableFromBackup": _doors([_P.RESTORE_BACKUP]),
    "RestoreTableToPointInTime": _doors([_P.RESTORE_MOMENT]),
    "ListStreams": _doors([_P.LIST_STREAMS]),
    "DescribeStream": _doors([_P.DESCRIBE_STREAM]),
    "GetShardIterator": _doors([_P.POSITION_STREAM]),
    "GetRecords": _doors([_P.READ_STREAM]),
    "DescribeLimits": _doors([_P.READ_ACCOUNT]),
    "DescribeEndpoints": _doors([_P.READ_ACCOUNT]),
    **dict.fromkeys(
        (
            "DescribeContinuousBackups", "DescribeContributorInsights", "DescribeKinesisStreamingDestination",
            "DescribeTableReplicaAutoScaling", "DescribeGlobalTable", "DescribeGlobalTableSettings",
        ),
        _doors([_P.DESCRIBE_FEATURES]),
    ),
    **dict.fromkeys(
        ("ListContributorInsights", "ListGlobalTables"),
        _doors([_P.LIST_FEATURES]),
    ),
    "ExportTableToPointInTime": _doors([_P.EXPORT]),
    "ImportTable": _doors([_P.IMPORT]),
    "StartBulkPutItems": _doors([_P.LOAD]),
    "CancelBulkOperation": _doors([_P.CANCEL_JOB]),
    **dict.fromkeys(("ListExports", "ListImports", "ListBulkOperations"), _doors([_P.LIST_JOBS])),
    **dict.fromkeys(("DescribeExport", "DescribeImport", "DescribeBulkOperation"), _doors([_P.DESCRIBE_JOB])),
    "UpdateContributorInsights": _doors([_P.ALTER_INSIGHTS]),
    **dict.fromkeys(
        (
            "EnableKinesisStreamingDestination", "DisableKinesisStreamingDestination",
            "UpdateKinesisStreamingDestination",
        ),
        _doors([_P.ALTER_DELIVERIES]),
    ),
    **dict.fromkeys(
        (
            "UpdateTableReplicaAutoScaling", "CreateGlobalTable", "UpdateGlobalTable", "UpdateGlobalTableSettings",
        ),
        _doors([_P.ALTER_FEATURES]),
    ),
}  # fmt: skip
"""Action -> the doors that it opens. An action of the service that is not here is one that this server has no operation for."""


def doors_of(patterns: Iterable[str], is_refusal: bool) -> frozenset[GrantAction]:
    """The doors that actions by pattern (`dynamodb:Get*`, without case) open, or close."""
    found: set[GrantAction] = set()
    for pattern in patterns:
        service, separator, name = pattern.lower().partition(":")
        if not separator:
            service, name = ("*", "*") if pattern == "*" else ("", "")
        if not Glob.of(service).matches("dynamodb"):
            continue
        actions = Glob.of(name)
        if name == "*":
            found |= _EVERY
        for action, doors in ACTIONS.items():
            if actions.matches(action.lower()):
                found |= _closed(action, doors) if is_refusal else doors
    return frozenset(found)


_EVERY = frozenset((permission, way) for permission in Permission for way in Channel)


def _closed(action: str, doors: frozenset[GrantAction]) -> frozenset[GrantAction]:
    """The doors that the refusal of an action closes: of one that is not a batch's or a statement's own, every way."""
    if action.startswith(("Batch", "PartiQL")):
        return doors
    return frozenset((permission, way) for permission, _ in doors for way in Channel)


def everything_but(patterns: Iterable[str]) -> frozenset[GrantAction]:
    """The doors that NotAction leaves: what none of these actions opens."""
    return _EVERY - doors_of(patterns, is_refusal=False)


def is_known(pattern: str) -> bool:
    """Whether a pattern of actions can be of the service: `*`, or a service and a name."""
    return pattern == "*" or pattern.count(":") == 1
