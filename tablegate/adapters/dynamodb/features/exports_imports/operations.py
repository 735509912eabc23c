"""The operations on exports, imports and bulk puts, with their inputs as data (botocore 1.44.5 service-2.json)."""

from __future__ import annotations

from tablegate.adapters.dynamodb.features.exports_imports import bulk_puts, exports, imports
from tablegate.adapters.dynamodb.operation import Operation, by_name
from tablegate.adapters.dynamodb.validation import table_rules
from tablegate.adapters.dynamodb.validation.shapes import (
    PLACEHOLDERS,
    TABLE_NAME,
    TEXT,
    Members,
    Number,
    Sequence,
    Shapes,
    Structure,
    Text,
    one_of,
    requests_of,
)
from tablegate.adapters.dynamodb.validation.table_schemas import TABLE_CREATION_PARAMETERS
from tablegate.adapters.dynamodb.wire import limits
from tablegate.gateway.model.authorization.permissions import Permission, Purpose

# Inputs


_ARN = Text(minimum=37, maximum=1024)
_TABLE_ARN = Text(minimum=1, maximum=limits.TABLE_ARN_CHARACTERS)
_TOKEN = Text(pattern=r"^[^\$]+$")
_BUCKET = Text(
    pattern=r"^[a-z0-9A-Z]+[\.\-\w]*[a-z0-9A-Z]+$",
    linear=r"[a-z0-9A-Z][\.\-\w]*[a-z0-9A-Z]",
    maximum=255,
)
_OWNER = Text(pattern="[0-9]{12}")
_PREFIX = Text(maximum=1024)
_ENCRYPTION: Members = {
    "S3SseAlgorithm": one_of("AES256", "KMS"),
    "S3SseKmsKeyId": Text(minimum=1, maximum=2048),
}
_COMPRESSION = one_of("ZSTD", "NONE", "GZIP")
_PAGE = Number("Integer", 1, limits.JOBS_PAGE_MOST)
_HEX_TOKEN = "([0-9a-f]{16})+"


def _exports() -> Shapes:
    window = Structure(
        "IncrementalExportSpecification",
        {
            "ExportFromTime": Number("Double"),
            "ExportToTime": Number("Double"),
            "ExportViewType": one_of("NEW_IMAGE", "NEW_AND_OLD_IMAGES"),
        },
    )
    members: Members = {
        "TableArn": Text(maximum=limits.TABLE_ARN_CHARACTERS),
        "ExportTime": Number("Double"),
        "ClientToken": _TOKEN,
        "S3Bucket": _BUCKET,
        "S3BucketOwner": _OWNER,
        "S3Prefix": _PREFIX,
        **_ENCRYPTION,
        "ExportFormat": one_of("DYNAMODB_JSON", "ION"),
        "ExportType": one_of("FULL_EXPORT", "INCREMENTAL_EXPORT"),
        "IncrementalExportSpecification": window,
        "FilterSpecification": Structure(
            "FilterSpecification",
            {
                "FilterExpression": TEXT,
                "ProjectionExpression": TEXT,
                "KeyConditionExpression": TEXT,
                **PLACEHOLDERS,
            },
        ),
    }
    return {
        "ExportTableToPointInTime": (members, ("TableArn", "S3Bucket")),
        "DescribeExport": ({"ExportArn": _ARN}, ("ExportArn",)),
        "ListExports": ({"TableArn": _TABLE_ARN, "MaxResults": _PAGE, "NextToken": TEXT}, ()),
    }


def _imports() -> Shapes:
    name = Text(pattern=r"[\x20-\x21\x23-\x2B\x2D-\x7E]*", minimum=1, maximum=65536)
    options: Members = {
        "Delimiter": Text(pattern=r"[,;:|\t ]", minimum=1, maximum=1),
        "HeaderList": Sequence(name, 1, 255),
    }
    members: Members = {
        "ClientToken": _TOKEN,
        "S3BucketSource": Structure(
            "S3BucketSource",
            {"S3BucketOwner": _OWNER, "S3Bucket": _BUCKET, "S3KeyPrefix": _PREFIX},
            ("S3Bucket",),
        ),
        "InputFormat": one_of("DYNAMODB_JSON", "ION", "CSV"),
        "InputFormatOptions": Structure("InputFormatOptions", {"Csv": Structure("CsvOptions", options)}),
        "InputCompressionType": _COMPRESSION,
        "TableCreationParameters": TABLE_CREATION_PARAMETERS,
    }
    token = Text(pattern=_HEX_TOKEN, minimum=112, maximum=1024)
    return {
        "ImportTable": (members, ("S3BucketSource", "InputFormat", "TableCreationParameters")),
        "DescribeImport": ({"ImportArn": _ARN}, ("ImportArn",)),
        "ListImports": ({"TableArn": _TABLE_ARN, "PageSize": _PAGE, "NextToken": token}, ()),
    }


def _bulk_puts() -> Shapes:
    place: Members = {"S3BucketOwner": _OWNER, "S3Bucket": _BUCKET, "S3KeyPrefix": _PREFIX}
    source: Members = {
        **place,
        "InputFormat": one_of("DYNAMODB_JSON", "ION"),
        "InputCompressionType": _COMPRESSION,
    }
    report: Members = {
        **place,
        **_ENCRYPTION,
        "OutputType": Sequence(one_of("ERROR", "CONDITION_CHECK_FAILURE")),
    }
    members: Members = {
        "ClientToken": _TOKEN,
        "InputS3Configuration": Structure("InputS3Configuration", source, ("S3Bucket", "InputFormat")),
        "OutputS3Configuration": Structure("OutputS3Configuration", report, ("OutputType",)),
        "TableName": TABLE_NAME,
        "MaxWriteRequestUnits": Number("Long", 1024),
        "PerformanceTier": one_of("STANDARD", "ACCELERATED"),
    }
    by_arn: Members = {"BulkOperationArn": _ARN}
    arn = (by_arn, ("BulkOperationArn",))
    token = Text(pattern=_HEX_TOKEN, minimum=1, maximum=1024)
    return {
        "StartBulkPutItems": (members, ("InputS3Configuration", "OutputS3Configuration", "TableName")),
        "DescribeBulkOperation": arn,
        "CancelBulkOperation": arn,
        "ListBulkOperations": ({"MaxResults": _PAGE, "NextToken": token}, ()),
    }


JOB_REQUESTS = requests_of({**_exports(), **_imports(), **_bulk_puts()})


# Operations


_P = Permission
# Those that may block count the size of a table or backup first, where quotas of bytes are set (security/gate.py).
OPERATIONS = by_name(
    Operation("ExportTableToPointInTime", exports.export_table, JOB_REQUESTS, Purpose((_P.EXPORT,))),
    Operation("DescribeExport", exports.describe_export, JOB_REQUESTS, Purpose((_P.DESCRIBE_JOB,))),
    Operation("ListExports", exports.list_exports, JOB_REQUESTS, Purpose((_P.LIST_JOBS,))),
    Operation(
        "ImportTable", imports.import_table, JOB_REQUESTS, Purpose((_P.IMPORT,)), rule=table_rules.import_table,
        may_block=True,
    ),
    Operation("DescribeImport", imports.describe_import, JOB_REQUESTS, Purpose((_P.DESCRIBE_JOB,))),
    Operation("ListImports", imports.list_imports, JOB_REQUESTS, Purpose((_P.LIST_JOBS,))),
    Operation("StartBulkPutItems", bulk_puts.start_bulk_put_items, JOB_REQUESTS, Purpose((_P.LOAD,)), may_block=True),
    Operation("DescribeBulkOperation", bulk_puts.describe_bulk_operation, JOB_REQUESTS, Purpose((_P.DESCRIBE_JOB,))),
    Operation("ListBulkOperations", bulk_puts.list_bulk_operations, JOB_REQUESTS, Purpose((_P.LIST_JOBS,))),
    Operation("CancelBulkOperation", bulk_puts.cancel_bulk_operation, JOB_REQUESTS, Purpose((_P.CANCEL_JOB,))),
)  # fmt: skip
