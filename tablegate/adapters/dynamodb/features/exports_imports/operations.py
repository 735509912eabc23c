"""The operations of exports, imports and bulk puts, with their inputs as data, and their workers.

The workers use the object store that the settings name. Inputs: botocore 1.44.5 service-2.json.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from tablegate.adapters.dynamodb.features.exports_imports import bulk_puts, exports, imports, object_stores
from tablegate.adapters.dynamodb.features.exports_imports.bulk_puts import BulkPutWorker
from tablegate.adapters.dynamodb.features.exports_imports.export_worker import ExportWorker
from tablegate.adapters.dynamodb.features.exports_imports.imports import ImportWorker
from tablegate.adapters.dynamodb.features.exports_imports.job_documents import BULK, EXPORT, IMPORT
from tablegate.adapters.dynamodb.features.exports_imports.object_stores import Folder
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
from tablegate.gateway.configuration.settings import BadSetting, Settings
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.features.jobs.job_runner import JobWorker, add_workers
from tablegate.gateway.model.authorization.permissions import Permission, Purpose

# The object store


def open_store(settings: Settings) -> object_stores.ObjectStore:
    """Return the object store of the settings, restricted to the allowed buckets. Raises BadSetting."""
    return AllowedBuckets(_unrestricted_store(settings), settings)


def _unrestricted_store(settings: Settings) -> object_stores.ObjectStore:
    if settings.s3_folder is not None:
        if not settings.s3_folder.is_dir():
            raise BadSetting(
                f"{{}}: {settings.s3_folder} is not a folder. Create it or name another", "s3_folder"
            )
        return Folder(settings.s3_folder)
    try:
        # boto3 is a large import, and an extra.
        from tablegate.adapters.dynamodb.features.exports_imports.s3_store import S3
    except ModuleNotFoundError as error:
        raise BadSetting(
            f"{{}} needs {error.name}: pip install 'tablegate[clouds]'", "s3_endpoint_url"
        ) from None
    try:
        return S3(settings)
    except ValueError as error:
        raise BadSetting(f"{{}}: {error}", "s3_endpoint_url") from None


class AllowedBuckets:
    """An object store restricted to the buckets that the settings allow."""

    def __init__(self, store: object_stores.ObjectStore, settings: Settings) -> None:
        self._store = store
        self._allowed = frozenset(settings.s3_bucket)
        self._allows_any = not settings.s3_bucket and settings.namespaces == "shared"

    def listed(
        self, bucket: object_stores.BucketReference, prefix: str, after: str = ""
    ) -> Iterator[object_stores.StoredObject]:
        """See ObjectStore."""
        self._check(bucket)
        return self._store.listed(bucket, prefix, after)

    def read(self, bucket: object_stores.BucketReference, key: str) -> object_stores.OpenObject:
        """See ObjectStore."""
        self._check(bucket)
        return self._store.read(bucket, key)

    def write(
        self, bucket: object_stores.BucketReference, key: str, data: BinaryIO, new: object_stores.NewObject
    ) -> str:
        """See ObjectStore."""
        self._check(bucket)
        return self._store.write(bucket, key, data, new)

    def _check(self, bucket: object_stores.BucketReference) -> None:
        names = {bucket.name, f"{bucket.account}/{bucket.name}"}
        if not self._allows_any and self._allowed.isdisjoint(names):
            text = f"Account {bucket.account} may not use the bucket {bucket.name}. Allow it with --s3-bucket"
            raise object_stores.ObjectStoreRejection(object_stores.ACCESS_DENIED, text)


# Workers


def register_workers(gateway: Gateway) -> None:
    """Register the workers. Raises BadSetting."""
    store = open_store(gateway.settings)
    workers: dict[str, JobWorker] = {
        EXPORT.name: ExportWorker(gateway, store),
        IMPORT.name: ImportWorker(gateway, store),
        BULK.name: BulkPutWorker(gateway, store),
    }
    add_workers(gateway.engine.background, workers)


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
