"""Findings 448, 449, 456 and 457 of service.md: requests that satisfy the schema and have no meaning or contradict
themselves.
"""

from __future__ import annotations

from tests.adapters.dynamodb.measured.recorded import (
    CREATE,
    DETECTED,
    ENABLE,
    GONE,
    INVALID,
    NO_TABLE,
    OK,
    Case,
    answer,
    arn,
    check,
    each,
    not_found,
)

KEY = "The Tag Key provided is invalid, Key: "

WANTED = (
    "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates, SSESpecification, "
    "ReplicaUpdates, MultiAccountReplicaReady, ReplicaTransitRoleArn, MultiRegionConsistency, DeletionProtectionEnabled, "
    "OnDemandThroughput, WarmThroughput or TableClass is required"
)
NO_UNITS_ON_DEMAND = (
    "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"
)
WARM_EMPTY = (
    "WarmThroughput must have at least one of ReadUnitsPerSecond or WriteUnitsPerSecond specified for index: "
)
ONLY_UPDATES = (
    "The only Updates for index: gsi1 when TableThroughputMode is PAY_PER_REQUEST can be "
    "to OnDemandThroughput, WarmThroughput"
)
FAILS = " failed to satisfy constraint: Member must "
EMPTY_NAME = (
    "2 validation errors detected: Value '' at '{0}'" + FAILS + "have length greater than or equal to 3; "
    "Value '' at '{0}'" + FAILS + "satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
)
ORDERS = {"TableName": "orders"}


def changed(finding: str, recorded, /, **more) -> Case:
    return finding, "UpdateTable", {**ORDERS, **more}, recorded


def index_changed(finding: str, recorded, name: str = "gsi1", **more) -> Case:
    update = {"GlobalSecondaryIndexUpdates": [{"Update": {"IndexName": name, **more}}]}
    return finding, "UpdateTable", {**ORDERS, **update}, recorded


def null(*paths: str) -> str:
    listed = "; ".join(f"Value null at '{path}'{FAILS}not be null" for path in paths)
    return f"{len(paths)} validation error{'s' if len(paths) > 1 else ''} detected: {listed}"


DEGENERATE: list[Case] = [
    changed("TABLE-449", WANTED),
    changed("TABLE-449", WANTED.replace("MultiRegionConsistency, ", ""), MultiRegionConsistency="STRONG"),
    changed("TABLE-442", WANTED, AttributeDefinitions=CREATE["AttributeDefinitions"]),
    changed(
        "TABLE-442",
        f"{INVALID}Server-Side Encryption modification must be the only operation in the request",
        SSESpecification={"Enabled": True},
        DeletionProtectionEnabled=True,
    ),
    changed(
        "TABLE-442",
        INVALID + NO_UNITS_ON_DEMAND,
        ProvisionedThroughput={"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
    ),
    changed(
        "TABLE-442",
        "Table has no stream to disable: TableName: orders",
        StreamSpecification={"StreamEnabled": False},
    ),
    (
        "TABLE-448",
        "UpdateTable",
        {**GONE, "WarmThroughput": {}},
        NO_TABLE,
    ),
    changed(
        "TABLE-448",
        INVALID + NO_UNITS_ON_DEMAND,
        WarmThroughput={},
        ProvisionedThroughput={"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
    ),
    (
        "TABLE-448",
        "UpdateTable",
        {"TableName": "ab", "WarmThroughput": {}},
        f"{DETECTED}'ab' at 'tableName'{FAILS}have length greater than or equal to 3",
    ),
    changed("TABLE-456", OK, WarmThroughput={}, DeletionProtectionEnabled=False),
    changed("TABLE-456", OK, WarmThroughput={}, TableClass="STANDARD"),
    changed("TABLE-456", OK, OnDemandThroughput={}, BillingMode="PAY_PER_REQUEST"),
    index_changed("TABLE-456", f"{INVALID}{WARM_EMPTY}gsi1", WarmThroughput={}),
    index_changed("TABLE-456", f"{INVALID}{WARM_EMPTY}ghost", "ghost", WarmThroughput={}),
    (
        "TABLE-456",
        "UpdateTable",
        {**GONE, "GlobalSecondaryIndexUpdates": [{"Update": {"IndexName": "ghost", "WarmThroughput": {}}}]},
        f"{INVALID}{WARM_EMPTY}ghost",
    ),
    changed(
        "TABLE-456",
        f"{INVALID}{WARM_EMPTY}gsi1",
        TableClass="STANDARD",
        GlobalSecondaryIndexUpdates=[{"Update": {"IndexName": "gsi1", "WarmThroughput": {}}}],
    ),
    index_changed("TABLE-456", INVALID + ONLY_UPDATES, OnDemandThroughput={}),
    index_changed("TABLE-456", INVALID + ONLY_UPDATES),
    index_changed(
        "TABLE-456", OK, OnDemandThroughput={"MaxReadRequestUnits": -1, "MaxWriteRequestUnits": -1}
    ),
    index_changed("TABLE-457", not_found("Index ghost for table orders"), "ghost", OnDemandThroughput={}),
    index_changed(
        "TABLE-457",
        f"{INVALID}Requested ReadUnitsPerSecond for WarmThroughput for index gsi1 is lower than current WarmThroughput, "
        "decreasing WarmThroughput is not supported",
        WarmThroughput={"ReadUnitsPerSecond": -1, "WriteUnitsPerSecond": -1},
    ),
    index_changed(
        "TABLE-457",
        null(
            "globalSecondaryIndexUpdates.1.member.update.provisionedThroughput.writeCapacityUnits",
            "globalSecondaryIndexUpdates.1.member.update.provisionedThroughput.readCapacityUnits",
        ),
        ProvisionedThroughput={},
    ),
    *(
        changed(
            "TABLE-457",
            f"{INVALID}Requested ReadUnitsPerSecond for WarmThroughput for table is lower than current WarmThroughput, "
            "decreasing WarmThroughput is not supported",
            WarmThroughput=given,
        )
        for given in (
            {"ReadUnitsPerSecond": -1, "WriteUnitsPerSecond": -1},
            {"ReadUnitsPerSecond": -1},
            {"ReadUnitsPerSecond": 0, "WriteUnitsPerSecond": 0},
        )
    ),
    changed(
        "TABLE-457",
        f"{INVALID}Requested MaxReadRequestUnits for OnDemandThroughput for table is outside of valid range",
        OnDemandThroughput={"MaxReadRequestUnits": 0, "MaxWriteRequestUnits": 0},
    ),
    changed("TABLE-457", WANTED, GlobalTableWitnessUpdates=[{}]),
    changed("TABLE-457", WANTED, GlobalTableWitnessUpdates=[{"Create": {"RegionName": ""}}]),
    changed("TABLE-457", WANTED, GlobalTableWitnessUpdates=[{"Delete": {"RegionName": ""}}]),
    changed("TABLE-457", "One or more parameter values were invalid", ReplicaUpdates=[{"Create": {}}]),
    changed("TABLE-457", null("replicaUpdates.1.member.update.regionName"), ReplicaUpdates=[{"Update": {}}]),
    changed(
        "TABLE-457",
        "Region  is not supported. The latest version of global tables are only supported in the following regions: […",
        ReplicaUpdates=[{"Delete": {"RegionName": ""}}],
    ),
    changed(
        "TABLE-457",
        null("attributeDefinitions.1.member.attributeType", "attributeDefinitions.1.member.attributeName"),
        AttributeDefinitions=[{}],
        DeletionProtectionEnabled=True,
    ),
    changed(
        "TABLE-457",
        f"{DETECTED}'' at 'attributeDefinitions.1.member.attributeType'{FAILS}satisfy enum value set: [B, N, S]",
        AttributeDefinitions=[{"AttributeName": "a", "AttributeType": ""}],
        DeletionProtectionEnabled=True,
    ),
    changed(
        "TABLE-457",
        f"{DETECTED}'' at 'sSESpecification.kMSMasterKeyId'{FAILS}have length greater than or equal to 1",
        SSESpecification={"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": ""},
    ),
    changed(
        "TABLE-457",
        f"{DETECTED}'' at 'streamSpecification.streamViewType'{FAILS}satisfy enum value set: "
        "[OLD_IMAGE, KEYS_ONLY, NEW_AND_OLD_IMAGES, NEW_IMAGE]",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": ""},
    ),
]
DEGENERATE += [
    ("TABLE-457", "CreateTable", {**CREATE, **more}, recorded)
    for more, recorded in [
        (
            {"AttributeDefinitions": [{}]},
            null(
                "attributeDefinitions.1.member.attributeType", "attributeDefinitions.1.member.attributeName"
            ),
        ),
        (
            {"KeySchema": [{}]},
            null("keySchema.1.member.attributeName", "keySchema.1.member.keyType"),
        ),
        ({"KeySchema": []}, f"{DETECTED}'[]' at 'keySchema'{FAILS}have length greater than or equal to 1"),
        (
            {"BillingMode": ""},
            f"{DETECTED}'' at 'billingMode'{FAILS}satisfy enum value set: [PROVISIONED, PAY_PER_REQUEST]",
        ),
        (
            {"SSESpecification": {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": ""}},
            f"{DETECTED}'' at 'sSESpecification.kMSMasterKeyId'{FAILS}have length greater than or equal to 1",
        ),
        ({"Tags": [{}]}, f"{KEY}null"),
        (
            {"WarmThroughput": {"ReadUnitsPerSecond": -1, "WriteUnitsPerSecond": -1}},
            (
                f"{INVALID}Requested ReadUnitsPerSecond for WarmThroughput for table is lower than initial throughput "
                "for OnDemand. See: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html#on-demand-capacity-mode-initial"
            ),
        ),
    ]
]
DEGENERATE += [
    (
        "TABLE-457",
        "CreateTable",
        {
            **CREATE,
            "AttributeDefinitions": [
                *CREATE["AttributeDefinitions"],
                {"AttributeName": "a", "AttributeType": "S"},
            ],
            "GlobalSecondaryIndexes": [
                {
                    "IndexName": "gsi1",
                    "KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "ALL"},
                    **more,
                }
            ],
        },
        recorded,
    )
    for more, recorded in [
        ({"WarmThroughput": {}}, OK),
        ({"OnDemandThroughput": {}}, OK),
        ({"Projection": {}}, f"{INVALID}Unknown ProjectionType: null"),
        ({"IndexName": ""}, EMPTY_NAME.format("globalSecondaryIndexes.1.member.indexName")),
    ]
]
DEGENERATE += [
    ("TABLE-457", operation, request, recorded)
    for operation, request, recorded in [
        (
            "CreateBackup",
            {**ORDERS, "BackupName": ""},
            "2 validation errors detected: Value '' at 'backupName'"
            + FAILS
            + "satisfy regular expression pattern: "
            "[a-zA-Z0-9_.-]+; Value '' at 'backupName'" + FAILS + "have length greater than or equal to 3",
        ),
        ("DescribeBackup", {"BackupArn": ""}, "Invalid Backup ARN"),
        ("DescribeTable", {"TableName": ""}, EMPTY_NAME.format("tableName")),
        ("ListTables", {"Limit": 0}, f"{DETECTED}'0' at 'limit'{FAILS}have value greater than or equal to 1"),
        (
            "ListBackups",
            {"Limit": 0},
            f"{DETECTED}'0' at 'limit'{FAILS}have value greater than or equal to 1",
        ),
        (
            "ListTables",
            {"ExclusiveStartTableName": ""},
            "2 validation errors detected: Value '' at 'exclusiveStartTableName'"
            + FAILS
            + "satisfy regular expression pattern: "
            "[a-zA-Z0-9_.-]+; Value '' at 'exclusiveStartTableName'"
            + FAILS
            + "have length greater than or equal to 3",
        ),
        (
            "DescribeGlobalTable",
            {"GlobalTableName": ""},
            "TableName must be at least 3 characters long and at most 255 characters long",
        ),
        (
            "DescribeGlobalTableSettings",
            {"GlobalTableName": ""},
            "TableName must be at least 3 characters long and at most 255 characters long",
        ),
        (
            "UpdateGlobalTable",
            {"GlobalTableName": "orders", "ReplicaUpdates": [{}]},
            "One or more parameter values were invalid",
        ),
        (
            "UpdateGlobalTableSettings",
            {"GlobalTableName": "orders", "ReplicaSettingsUpdate": [{}]},
            null("replicaSettingsUpdate.1.member.regionName"),
        ),
        (
            "ExportTableToPointInTime",
            {"TableArn": "", "S3Bucket": "bucket"},
            "Invalid TableArn: Invalid Table ARN",
        ),
        (
            "ExportTableToPointInTime",
            {"TableArn": arn("orders"), "S3Bucket": ""},
            f"{DETECTED}'' at 's3Bucket'{FAILS}satisfy regular expression pattern: ^[a-z0-9A-Z]+[\\.\\-\\w]*[a-z0-9A-Z]+$",
        ),
        (
            "ExportTableToPointInTime",
            {
                "TableArn": arn("orders"),
                "S3Bucket": "bucket",
                "ExportType": "INCREMENTAL_EXPORT",
                "IncrementalExportSpecification": {},
            },
            "Invalid Request: ExportFromTime must be provided in IncrementalExportSpecification",
        ),
        (
            "UpdateContributorInsights",
            {**ORDERS, "ContributorInsightsAction": ""},
            f"{DETECTED}'' at 'contributorInsightsAction'{FAILS}satisfy enum value set: [ENABLE, DISABLE]",
        ),
        (
            "UpdateContributorInsights",
            {**ORDERS, **ENABLE, "ContributorInsightsMode": ""},
            (
                f"{DETECTED}'' at 'contributorInsightsMode'{FAILS}satisfy enum value set: "
                "[THROTTLED_KEYS, ACCESSED_AND_THROTTLED_KEYS]"
            ),
        ),
        (
            "UpdateContributorInsights",
            {**ORDERS, **ENABLE, "IndexName": ""},
            "IndexName must be at least 3 characters long and at most 255 characters long",
        ),
        (
            "DescribeContributorInsights",
            {**ORDERS, "IndexName": ""},
            "IndexName must be at least 3 characters long and at most 255 characters long",
        ),
        (
            "EnableKinesisStreamingDestination",
            {**ORDERS, "StreamArn": ""},
            f"{DETECTED}'' at 'streamArn'{FAILS}have length greater than or equal to 37",
        ),
        (
            "DeleteResourcePolicy",
            {"ResourceArn": arn("orders"), "ExpectedRevisionId": ""},
            f"{DETECTED}'' at 'expectedRevisionId'{FAILS}have length greater than or equal to 1",
        ),
        (
            "UpdateTimeToLive",
            {**ORDERS, "TimeToLiveSpecification": {}},
            null("timeToLiveSpecification.attributeName", "timeToLiveSpecification.enabled"),
        ),
        (
            "UpdateTimeToLive",
            {**ORDERS, "TimeToLiveSpecification": {"AttributeName": "ttl"}},
            null("timeToLiveSpecification.enabled"),
        ),
        (
            "UpdateTimeToLive",
            {**ORDERS, "TimeToLiveSpecification": {"Enabled": True}},
            null("timeToLiveSpecification.attributeName"),
        ),
        (
            "UpdateTimeToLive",
            {**ORDERS, "TimeToLiveSpecification": {"Enabled": True, "AttributeName": ""}},
            f"{DETECTED}'' at 'timeToLiveSpecification.attributeName'{FAILS}have length greater than or equal to 1",
        ),
        (
            "UpdateContinuousBackups",
            {**ORDERS, "PointInTimeRecoverySpecification": {}},
            null("pointInTimeRecoverySpecification.pointInTimeRecoveryEnabled"),
        ),
        *(
            (
                "UpdateContinuousBackups",
                {
                    **ORDERS,
                    "PointInTimeRecoverySpecification": {
                        "PointInTimeRecoveryEnabled": on,
                        "RecoveryPeriodInDays": days,
                    },
                },
                (
                    f"{DETECTED}'{days}' at 'pointInTimeRecoverySpecification.recoveryPeriodInDays'{FAILS}"
                    "have value greater than or equal to 1"
                ),
            )
            for on, days in ((True, 0), (True, -1), (False, 0))
        ),
    ]
]


@each(DEGENERATE)
def test_requests_that_mean_nothing(prepared, operation, request_, recorded):
    check(prepared, operation, request_, recorded)


def test_an_empty_structure_alone_changes_nothing_table_448(prepared):
    """The service fails (HTTP 500, no text).

    Here such a request changes nothing and gets such an answer (docs/explain/differences.md).
    """
    before = prepared.described()
    for member in ("WarmThroughput", "OnDemandThroughput"):
        code, _ = answer(prepared, "UpdateTable", {**ORDERS, member: {}})
        assert code in ("", "ValidationException")
    assert prepared.described() == before


def test_limit_errors_name_the_exceeded_limit_table_443(prepared):
    for name in ("first", "second"):
        code, text = answer(
            prepared,
            "UpdateTable",
            {
                **ORDERS,
                "AttributeDefinitions": [{"AttributeName": "b", "AttributeType": "S"}],
                "GlobalSecondaryIndexUpdates": [
                    {
                        "Create": {
                            "IndexName": name,
                            "KeySchema": [{"AttributeName": "b", "KeyType": "HASH"}],
                            "Projection": {"ProjectionType": "ALL"},
                        }
                    }
                ],
            },
        )
    assert (code, text) == (
        "LimitExceededException",
        "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table",
    )
