"""The operations on backups: CreateBackup, DescribeBackup, ListBackups, DeleteBackup, RestoreTableFromBackup.

The records of operations with their inputs stand at the end, also those of continuous backups (recovery.py). Shapes:
botocore 1.44.5. Texts and absent members: ack-api-quirks (live service, October 2026).
"""

from __future__ import annotations

import re
from typing import Any

from tablegate.adapters.dynamodb.call import Answer, CallContext, own_name
from tablegate.adapters.dynamodb.features.backups import recovery
from tablegate.adapters.dynamodb.operation import Operation, by_name
from tablegate.adapters.dynamodb.tables.properties import TableProperties, seconds
from tablegate.adapters.dynamodb.tables.table_definitions import describe, index_definition
from tablegate.adapters.dynamodb.tables.tables import find_table
from tablegate.adapters.dynamodb.validation import table_schemas
from tablegate.adapters.dynamodb.validation.shapes import (
    NAME,
    TABLE_NAME,
    Boolean,
    Members,
    Number,
    Shapes,
    Structure,
    Text,
    named,
    one_of,
    requests_of,
)
from tablegate.adapters.dynamodb.wire import error_texts, limits
from tablegate.adapters.dynamodb.wire.arns import REGIONS, backup_arn, partition_of, table_arn
from tablegate.adapters.dynamodb.wire.error_texts import INVALID
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.gateway.features.history.backup_commands import (
    RECOVERY_DAYS,
    Backup,
    BackupKind,
    CreateBackup,
    DeleteBackup,
    ListBackups,
    backup_path,
)
from tablegate.gateway.model.authorization.permissions import Permission, Purpose
from tablegate.gateway.model.commands.table_commands import TableStatistics
from tablegate.gateway.model.errors import BackupBusy, BackupMissing
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.security.credentials import Scheme

_ARN = re.compile(
    r"arn:(?P<partition>[a-z-]*):(?P<service>[a-z0-9-]*):(?P<region>[a-z0-9-]*):(?P<account>[0-9]*)"
    r":table/(?P<table>[A-Za-z0-9_.-]{3,255})"
    r"/backup/(?P<at>[0-9]{14})-(?P<digits>[0-9a-f]{8})"
)
_SYSTEM_DIGITS = "00000000"
_KINDS = {"USER": BackupKind.USER, "SYSTEM": BackupKind.SYSTEM}


async def create_backup(call: CallContext) -> Answer:
    """CreateBackup: start a backup of a table. Raises ServiceError, TableMissing."""
    table = await find_table(call)
    backup = await CreateBackup(table, call.input["BackupName"])
    return {"BackupDetails": _details(call, backup)}


async def describe_backup(call: CallContext) -> Answer:
    """DescribeBackup: a backup and the table at its time. Raises ServiceError."""
    backup = await _find(call)
    return {"BackupDescription": _description(call, backup)}


async def delete_backup(call: CallContext) -> Answer:
    """DeleteBackup: delete a backup that is not a system backup. Raises ServiceError."""
    backup = await _find(call)
    arn = call.input["BackupArn"]
    if backup.kind is BackupKind.SYSTEM:
        expires = seconds(backup.expires_at_ms or 0)
        text = f"User is not allowed to delete the system backup with arn {arn}. It will automatically expire on {expires}"
        raise validation(error_texts.INVALID_REQUEST + text)
    try:
        await DeleteBackup(backup)
    except BackupMissing:
        raise _missing(arn) from None
    except BackupBusy as error:
        raise _in_use(arn, error, "Backup is being used to restore table") from None
    description = _description(call, backup)
    description["BackupDetails"]["BackupStatus"] = "DELETED"
    return {"BackupDescription": description}


async def list_backups(call: CallContext) -> Answer:
    """ListBackups: a page of backups by table and age. LastEvaluatedBackupArn is absent from the last page.

    Backups that the caller may not list are omitted, so a page may be empty. Raises ServiceError.
    """
    arguments = call.input
    lower, upper = (arguments.get(f"TimeRange{side}Bound") for side in ("Lower", "Upper"))
    if lower is not None and upper is not None and lower > upper:
        raise validation(f"{INVALID}Time range lower bound must be less than or equal to upper bound")
    limit = arguments.get("Limit", 100)
    kind = arguments.get("BackupType", "USER")
    name = arguments.get("TableName")
    if kind == "AWS_BACKUP":  # made by AWS Backup, which does not exist here
        return {"BackupSummaries": []}
    backups = await ListBackups(
        call.caller.namespace,
        _after(call),
        limit + 1,
        None if name is None else own_name(call, name),
        _KINDS.get(kind),
        _milliseconds(lower),
        _milliseconds(upper),
    )
    visible_backups = [backup for backup in backups[:limit] if call.can_list(backup_path(backup))]
    answer: dict[str, Any] = {"BackupSummaries": [_summary(call, backup) for backup in visible_backups]}
    if len(backups) > limit:
        answer["LastEvaluatedBackupArn"] = _arn(call, backups[limit - 1])
    return answer


def _milliseconds(at: float | None) -> int | None:
    return None if at is None else round(max(0.0, min(at, 1e12)) * 1000)


async def restore_from_backup(call: CallContext) -> Answer:
    """RestoreTableFromBackup: create a table with the rows of a backup. Raises ServiceError."""
    arn = call.input["BackupArn"]
    recovery.require_key(call, _arn_match(call, arn)["region"])
    backup = await _find(call)
    summary = {
        "SourceBackupArn": arn,
        "SourceTableArn": table_arn(call.caller, backup.table_name),
        "RestoreDateTime": seconds(backup.created_at_ms),
    }
    try:
        return await recovery.begin_restore(call, backup, None, summary)
    except BackupMissing:
        raise _missing(arn) from None
    except BackupBusy as error:
        raise _in_use(arn, error, "Backup is being used to restore another table") from None


# Names of backups


def _digits(backup: Backup) -> str:
    return _SYSTEM_DIGITS if backup.kind is BackupKind.SYSTEM else f"{backup.id & 0xFFFF_FFFF:08x}"


def _arn(call: CallContext, backup: Backup) -> str:
    return backup_arn(call.caller, backup.table_name, backup.created_at_ms, _digits(backup))


def _arn_match(call: CallContext, arn: str) -> re.Match[str]:
    """Parse the ARN of a backup. Its region may differ from the backup's (ack-api-quirks 012). Raises ServiceError."""
    match = _ARN.fullmatch(arn)
    if match is None and (not arn.startswith("arn:") or re.match(r"arn:aws[a-z-]*:dynamodb:", arn)):
        raise validation("Invalid Backup ARN")
    if match is None or match["service"] != "dynamodb" or not _is_region(call, match):
        raise validation(f"{error_texts.INVALID_REQUEST}BackupArn is not valid")
    return match


def _is_region(call: CallContext, match: re.Match[str]) -> bool:
    region, partition = match["region"], partition_of(match["region"])
    is_known = region in ("", call.caller.region, *REGIONS) or partition != "aws"
    return is_known and partition == match["partition"]


def _missing(arn: str) -> ServiceError:
    return ServiceError("BackupNotFoundException", f"Backup not found: {arn}")


def _in_use(arn: str, error: BackupBusy, text_of_restore: str) -> ServiceError:
    text = "Backup is being created" if error.is_creating else text_of_restore
    return ServiceError("BackupInUseException", f"{text}: {arn}")


async def _find(call: CallContext) -> Backup:
    """Return the backup that BackupArn names. Raises ServiceError."""
    arn = call.input["BackupArn"]
    match = _arn_match(call, arn)
    place = call.gateway.credentials.namespace(Scheme.AWS, match["account"], call.caller.region)
    if not (match["account"] and match["region"]) or place != call.caller.namespace:
        raise ServiceError("AccessDeniedException", "Access is denied")
    at_ms = int(match["at"])
    command = ListBackups(
        call.caller.namespace, table_name=match["table"], from_ms=at_ms, before_ms=at_ms + 1
    )
    for backup in await command:
        if _digits(backup) == match["digits"]:
            return backup
    raise _missing(arn)


def _after(call: CallContext) -> tuple[str, int, int]:
    """Return the position after which a page begins.

    An ARN is a position even if no such backup exists. Raises ServiceError.
    """
    arn = call.input.get("ExclusiveStartBackupArn")
    if arn is None:
        return "", 0, 0
    match = _arn_match(call, arn)
    if match["region"] != call.caller.region:
        raise validation(
            f"{error_texts.INVALID_REQUEST}The supplied ExclusiveStartBackupArn does not match the region"
        )
    # A system backup has no id in its name. It sorts as the last of its millisecond.
    number = int(match["digits"], 16) if match["digits"] != _SYSTEM_DIGITS else 1 << 62
    return match["table"], int(match["at"]), number


# Descriptions


def _details(call: CallContext, backup: Backup) -> dict[str, Any]:
    is_system = backup.kind is BackupKind.SYSTEM
    details = {
        "BackupArn": _arn(call, backup),
        "BackupName": f"{backup.table_name}$DeletedTableBackup" if is_system else backup.name,
        "BackupSizeBytes": backup.size_bytes,
        "BackupStatus": "AVAILABLE" if backup.ready else "CREATING",
        "BackupType": backup.kind.value.upper(),
        "BackupCreationDateTime": seconds(backup.created_at_ms),
    }
    if backup.expires_at_ms is not None:
        details["BackupExpiryDateTime"] = seconds(backup.expires_at_ms)
    return details


def _summary(call: CallContext, backup: Backup) -> dict[str, Any]:
    source = _table_description(call, backup)
    names = {name: source[name] for name in ("TableName", "TableId", "TableArn")}
    return {**names, **_details(call, backup)}


def _table_description(call: CallContext, backup: Backup) -> dict[str, Any]:
    statistics = TableStatistics(backup.rows, backup.size_bytes, {})
    return describe(backup.source, statistics, call.caller, backup.created_at_ms)


def _description(call: CallContext, backup: Backup) -> dict[str, Any]:
    source = backup.source
    table_description = _table_description(call, backup)
    details = {
        "TableName": table_description["TableName"],
        "TableId": table_description["TableId"],
        "TableArn": table_description["TableArn"],
        "TableSizeBytes": backup.size_bytes,
        "KeySchema": table_description["KeySchema"],
        "TableCreationDateTime": table_description["CreationDateTime"],
        "ProvisionedThroughput": _units(table_description["ProvisionedThroughput"]),
        "ItemCount": backup.rows,
        "BillingMode": TableProperties.of(source).billing,
    }
    if "OnDemandThroughput" in table_description:
        details["OnDemandThroughput"] = table_description["OnDemandThroughput"]
    backup_details = _details(call, backup)
    backup_details["BackupArn"] = call.input["BackupArn"]
    features = {} if backup.kind is BackupKind.SYSTEM else _features(source, table_description)
    return {
        "BackupDetails": backup_details,
        "SourceTableDetails": details,
        "SourceTableFeatureDetails": features,
    }


_STATE_OF_INDEX = ("IndexStatus", "Backfilling", "IndexSizeBytes", "ItemCount", "IndexArn")


def _units(throughput: dict[str, Any]) -> dict[str, Any]:
    return {name: throughput[name] for name in ("ReadCapacityUnits", "WriteCapacityUnits")}


def _features(source: Table, table_description: dict[str, Any]) -> dict[str, Any]:
    """Return SourceTableFeatureDetails: only features that the table had."""
    features: dict[str, Any] = {}
    local = [index_definition(index) for index in source.indexes if index.local]
    if local:
        features["LocalSecondaryIndexes"] = local
    units = {index["IndexName"]: index for index in table_description.get("GlobalSecondaryIndexes", ())}
    wide = [index for index in source.indexes if not index.local]
    if wide:
        features["GlobalSecondaryIndexes"] = [
            {
                **index_definition(index),
                "ProvisionedThroughput": _units(units[index.name]["ProvisionedThroughput"]),
            }
            for index in wide
        ]
    if "VectorIndexes" in table_description:
        features["VectorIndexes"] = [
            {name: value for name, value in index.items() if name not in _STATE_OF_INDEX}
            for index in table_description["VectorIndexes"]
        ]
    if "StreamSpecification" in table_description:
        features["StreamDescription"] = table_description["StreamSpecification"]
    if source.rules.expiry is not None and source.rules.expiry.attribute is not None:
        features["TimeToLiveDescription"] = {
            "TimeToLiveStatus": "ENABLED",
            "AttributeName": source.rules.expiry.attribute,
        }
    if "SSEDescription" in table_description:
        features["SSEDescription"] = table_description["SSEDescription"]
    return features


# Inputs


_TABLE: Members = {"TableName": TABLE_NAME}
# A short one is reported as an invalid backup ARN (ack-api-quirks 457).
_BACKUP: Members = {"BackupArn": Text(maximum=1024)}
_RECOVERY = Structure(
    "PointInTimeRecoverySpecification",
    {
        "PointInTimeRecoveryEnabled": Boolean(),
        "RecoveryPeriodInDays": Number("Integer", 1, RECOVERY_DAYS),
    },
    ("PointInTimeRecoveryEnabled",),
)
_LISTED: Members = {
    **_TABLE,
    "Limit": Number("Integer", 1, 100),
    "TimeRangeLowerBound": Number("Double"),
    "TimeRangeUpperBound": Number("Double"),
    "ExclusiveStartBackupArn": Text(minimum=37, maximum=1024),
    "BackupType": one_of("USER", "SYSTEM", "AWS_BACKUP", "ALL"),
}
_MOMENT: Members = {
    "SourceTableArn": Text(minimum=1, maximum=limits.TABLE_ARN_CHARACTERS),
    "SourceTableName": NAME,
    "UseLatestRestorableTime": Boolean(),
    "RestoreDateTime": Number("Double"),
}
_RESTORED: Members = {
    "TargetTableName": named("TableName"),
    "BillingModeOverride": table_schemas.BILLING,
    "GlobalSecondaryIndexOverride": table_schemas.GLOBAL_INDEXES,
    "LocalSecondaryIndexOverride": table_schemas.LOCAL_INDEXES,
    "VectorIndexOverride": table_schemas.VECTOR_INDEXES,
    "ProvisionedThroughputOverride": table_schemas.UNITS,
    "OnDemandThroughputOverride": table_schemas.ON_DEMAND,
    "SSESpecificationOverride": table_schemas.ENCRYPTION,
}
_SHAPES: Shapes = {
    "DescribeContinuousBackups": (_TABLE, ("TableName",)),
    "UpdateContinuousBackups": (
        {**_TABLE, "PointInTimeRecoverySpecification": _RECOVERY},
        ("TableName", "PointInTimeRecoverySpecification"),
    ),
    "CreateBackup": ({**_TABLE, "BackupName": NAME}, ("TableName", "BackupName")),
    "DescribeBackup": (_BACKUP, ("BackupArn",)),
    "DeleteBackup": (_BACKUP, ("BackupArn",)),
    "ListBackups": (_LISTED, ()),
    "RestoreTableFromBackup": ({**_BACKUP, **_RESTORED}, ("BackupArn", "TargetTableName")),
    "RestoreTableToPointInTime": ({**_MOMENT, **_RESTORED}, ("TargetTableName",)),
}
BACKUP_REQUESTS = requests_of(_SHAPES)
"""The inputs of these operations."""


# Operations


_P = Permission
# Those that may block count the size of a table or backup first, where quotas of bytes are set (security/gate.py).
OPERATIONS = by_name(
    Operation(
        "DescribeContinuousBackups", recovery.describe_continuous_backups, BACKUP_REQUESTS,
        Purpose((_P.DESCRIBE_FEATURES,)),
    ),
    Operation("UpdateContinuousBackups", recovery.update_continuous_backups, BACKUP_REQUESTS, Purpose((_P.ALTER_RECOVERY,))),
    Operation(
        "RestoreTableToPointInTime", recovery.restore_to_point_in_time, BACKUP_REQUESTS, Purpose((_P.RESTORE_MOMENT,)),
        may_block=True,
    ),
    Operation("CreateBackup", create_backup, BACKUP_REQUESTS, Purpose((_P.CREATE_BACKUP,)), may_block=True),
    Operation("DescribeBackup", describe_backup, BACKUP_REQUESTS, Purpose((_P.DESCRIBE_BACKUP,))),
    Operation("ListBackups", list_backups, BACKUP_REQUESTS, Purpose((_P.LIST_BACKUPS,))),
    Operation("DeleteBackup", delete_backup, BACKUP_REQUESTS, Purpose((_P.DELETE_BACKUP,))),
    Operation(
        "RestoreTableFromBackup", restore_from_backup, BACKUP_REQUESTS, Purpose((_P.RESTORE_BACKUP,)),
        may_block=True,
    ),
)  # fmt: skip
