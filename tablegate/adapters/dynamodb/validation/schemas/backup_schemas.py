"""Inputs of continuous backups, backups and restores, as data."""

from __future__ import annotations

from tablegate.adapters.dynamodb.validation.schemas import table_parts
from tablegate.adapters.dynamodb.validation.schemas.schema_parts import (
    NAME,
    TABLE_NAME,
    Members,
    Shapes,
    named,
    one_of,
    requests_of,
)
from tablegate.adapters.dynamodb.validation.schemas.schema_types import Boolean, Number, Structure, Text
from tablegate.adapters.dynamodb.wire import limits
from tablegate.gateway.features.history.backup_commands import RECOVERY_DAYS

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
    "BillingModeOverride": table_parts.BILLING,
    "GlobalSecondaryIndexOverride": table_parts.GLOBAL_INDEXES,
    "LocalSecondaryIndexOverride": table_parts.LOCAL_INDEXES,
    "VectorIndexOverride": table_parts.VECTOR_INDEXES,
    "ProvisionedThroughputOverride": table_parts.UNITS,
    "OnDemandThroughputOverride": table_parts.ON_DEMAND,
    "SSESpecificationOverride": table_parts.ENCRYPTION,
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
