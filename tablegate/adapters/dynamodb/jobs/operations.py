"""The operations on exports, imports and bulk puts."""

from __future__ import annotations

from tablegate.adapters.dynamodb.jobs import bulk_put_api, export_api, import_api
from tablegate.adapters.dynamodb.operation import Operation, by_name
from tablegate.adapters.dynamodb.validation.rules import table_rules
from tablegate.adapters.dynamodb.validation.schemas.job_schemas import JOB_REQUESTS
from tablegate.gateway.model.authorization.permissions import Permission, Purpose

# Operations


_P = Permission
# Those that may block count the size of a table or backup first, where quotas of bytes are set (security/gate.py).
OPERATIONS = by_name(
    Operation("ExportTableToPointInTime", export_api.export_table, JOB_REQUESTS, Purpose((_P.EXPORT,))),
    Operation("DescribeExport", export_api.describe_export, JOB_REQUESTS, Purpose((_P.DESCRIBE_JOB,))),
    Operation("ListExports", export_api.list_exports, JOB_REQUESTS, Purpose((_P.LIST_JOBS,))),
    Operation(
        "ImportTable", import_api.import_table, JOB_REQUESTS, Purpose((_P.IMPORT,)), rule=table_rules.import_table,
        may_block=True,
    ),
    Operation("DescribeImport", import_api.describe_import, JOB_REQUESTS, Purpose((_P.DESCRIBE_JOB,))),
    Operation("ListImports", import_api.list_imports, JOB_REQUESTS, Purpose((_P.LIST_JOBS,))),
    Operation("StartBulkPutItems", bulk_put_api.start_bulk_put_items, JOB_REQUESTS, Purpose((_P.LOAD,)), may_block=True),
    Operation("DescribeBulkOperation", bulk_put_api.describe_bulk_operation, JOB_REQUESTS, Purpose((_P.DESCRIBE_JOB,))),
    Operation("ListBulkOperations", bulk_put_api.list_bulk_operations, JOB_REQUESTS, Purpose((_P.LIST_JOBS,))),
    Operation("CancelBulkOperation", bulk_put_api.cancel_bulk_operation, JOB_REQUESTS, Purpose((_P.CANCEL_JOB,))),
)  # fmt: skip
