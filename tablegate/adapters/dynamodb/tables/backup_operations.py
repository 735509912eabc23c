"""The operations on backups and continuous backups."""

from __future__ import annotations

from tablegate.adapters.dynamodb.operation import Operation, by_name
from tablegate.adapters.dynamodb.tables import backups, recovery
from tablegate.adapters.dynamodb.validation.schemas.backup_schemas import BACKUP_REQUESTS
from tablegate.gateway.model.authorization.permissions import Permission, Purpose

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
