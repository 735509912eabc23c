"""The operations on backups, continuous backups and restores, with their inputs as data."""

from __future__ import annotations

from tablegate.adapters.dynamodb.features.backups import backups, recovery
from tablegate.adapters.dynamodb.operation import Operation, by_name
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
from tablegate.adapters.dynamodb.wire import limits
from tablegate.gateway.features.history.backup_commands import RECOVERY_DAYS
from tablegate.gateway.model.authorization.permissions import Permission, Purpose

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
    Operation("CreateBackup", backups.create_backup, BACKUP_REQUESTS, Purpose((_P.CREATE_BACKUP,)), may_block=True),
    Operation("DescribeBackup", backups.describe_backup, BACKUP_REQUESTS, Purpose((_P.DESCRIBE_BACKUP,))),
    Operation("ListBackups", backups.list_backups, BACKUP_REQUESTS, Purpose((_P.LIST_BACKUPS,))),
    Operation("DeleteBackup", backups.delete_backup, BACKUP_REQUESTS, Purpose((_P.DELETE_BACKUP,))),
    Operation(
        "RestoreTableFromBackup", backups.restore_from_backup, BACKUP_REQUESTS, Purpose((_P.RESTORE_BACKUP,)),
        may_block=True,
    ),
)  # fmt: skip
