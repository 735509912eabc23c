"""DynamoDB requests that name a table, for every operation, valid and invalid.

Each function takes the name of a table and yields (operation, description, request). The table need not exist. If it
does, it has the schema of test_absent_and_forbidden.py: keys pk and sk, an index byStatus, a stream, a backup.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

from tablegate.adapters.dynamodb.operation_table import OPERATIONS as DYNAMODB_OPERATIONS
from tablegate.gateway.model.authorization.permissions import ACCOUNT_PERMISSIONS
from tests.support.strict import Strict

INDEX = "byStatus"
ACCOUNT = "arn:aws:dynamodb:us-east-1:000000000000:table/"
KINESIS = "arn:aws:kinesis:us-east-1:000000000000:stream/images"


class Handles(NamedTuple):
    """Identifiers that an unrestricted caller obtained from the existing table: the label of its stream, a shard, the
    end of an iterator after the ARN, and the ends of the ARNs of a backup and of jobs.
    """

    label: str = "2023-11-14T22:13:20.000"
    shard: str = "shardId-00000000000000000000-00000000"
    iterator: str = "|1|WzEsMCwwXQ=="
    backup: str = "01700000000000-00000001"
    job: str = "01700000000000-00000001"


def furnish(server: Strict, table: str) -> Handles:
    """Make a table with all that the requests name. Return what a full caller has seen of it."""
    server.ok(
        "CreateTable",
        TableName=table,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[{"AttributeName": each, "AttributeType": "S"} for each in ("pk", "sk", "status")],
        BillingMode="PAY_PER_REQUEST",
        GlobalSecondaryIndexes=[_index(INDEX, "status")],
        LocalSecondaryIndexes=[_index("bySort", "pk", "status")],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    )  # fmt: skip
    on = {"PointInTimeRecoveryEnabled": True}
    server.ok("UpdateContinuousBackups", TableName=table, PointInTimeRecoverySpecification=on)
    server.ok("PutItem", TableName=table, Item={"pk": {"S": "a"}, "sk": {"S": "b"}})
    backup = server.ok("CreateBackup", TableName=table, BackupName="saved")["BackupDetails"]["BackupArn"]
    arn = ACCOUNT + table
    export = server.ok("ExportTableToPointInTime", TableArn=arn, S3Bucket="bucket")["ExportDescription"]
    stream = server.ok("DescribeTable", TableName=table)["Table"]["LatestStreamArn"]
    shard = server.ok("DescribeStream", StreamArn=stream)["StreamDescription"]["Shards"][0]["ShardId"]
    place = {"StreamArn": stream, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"}
    iterator = server.ok("GetShardIterator", **place)["ShardIterator"]
    return Handles(
        stream.rpartition("/")[2],
        shard,
        iterator.removeprefix(stream),
        backup.rpartition("/")[2],
        export["ExportArn"].rpartition("/")[2],
    )


def _index(name: str, *keys: str) -> dict[str, Any]:
    schema = [
        {"AttributeName": key, "KeyType": kind} for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)
    ]
    return {"IndexName": name, "KeySchema": schema, "Projection": {"ProjectionType": "ALL"}}


S, N = (lambda value: {"S": value}), (lambda value: {"N": value})
KEYS: dict[str, dict[str, Any]] = {
    "a right key": {"pk": S("a"), "sk": S("b")},
    "half a key": {"pk": S("a")},
    "a key of another type": {"pk": N("1"), "sk": S("b")},
    "a key and more": {"pk": S("a"), "sk": S("b"), "x": S("c")},
    "another key": {"id": S("a")},
    "an empty key value": {"pk": S(""), "sk": S("b")},
    "no key": {},
}
ITEMS = {
    **{f"an item of {said}": key for said, key in KEYS.items()},
    "an index key of another type": {**KEYS["a right key"], "status": N("1")},
    "a large item": {**KEYS["a right key"], "x": S("x" * 410_000)},
}
INDEXES = (INDEX, "nowhere", "bySort")
CONDITIONS: dict[str, dict[str, Any]] = {
    "no condition": {},
    "a condition": {"ConditionExpression": "attribute_exists(pk)"},
    "a bad condition": {"ConditionExpression": "attribute_exists("},
    "an unknown placeholder": {"ConditionExpression": "#a = :a"},
}
SCHEMA = {
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
Given = tuple[str, str, dict[str, Any]]


def of_dynamodb(table: str, has: Handles) -> Iterator[Given]:
    groups = (
        _items(table), _pages(table), _many(table), _statements(table), _streams(table, has), _definitions(table),
        _copies(table, has),
    )  # fmt: skip
    return (given for given in chain.from_iterable(groups) if given[0] in DYNAMODB_OPERATIONS)


def _items(table: str) -> Iterator[Given]:
    for said, key in KEYS.items():
        for shape in ({}, {"ProjectionExpression": "a.b"}, {"ProjectionExpression": "a..b"}):
            yield "GetItem", f"{said} {shape}", {"TableName": table, "Key": key, **shape}
        for about, condition in CONDITIONS.items():
            yield "DeleteItem", f"{said} {about}", {"TableName": table, "Key": key, **condition}
        for change in ("SET note = :n", "SET pk = :n", "ADD sk :n", "SET"):
            values = {"ExpressionAttributeValues": {":n": S("n")}}
            given = {"TableName": table, "Key": key, "UpdateExpression": change, **values}
            yield "UpdateItem", f"{said} {change}", given
    for said, item in ITEMS.items():
        yield "PutItem", said, {"TableName": table, "Item": item}
    yield "GetItem", "by ARN", {"TableName": ACCOUNT + table, "Key": KEYS["half a key"]}
    yield "GetItem", "members of other types", {"TableName": table, "Key": "a"}


def _pages(table: str) -> Iterator[Given]:
    values: tuple[dict[str, str], ...] = (S("a"), N("1"))
    for value in values:
        for condition in ("pk = :v", "status = :v", "pk = :v AND sk = :v", "sk = :v", "pk > :v"):
            for index in (None, *INDEXES):
                given: dict[str, Any] = {
                    "TableName": table,
                    "KeyConditionExpression": condition,
                    "ExpressionAttributeValues": {":v": value},
                }
                if index:
                    given["IndexName"] = index
                yield "Query", f"{condition} {value} {index}", given
    for index in (None, *INDEXES):
        base: dict[str, Any] = {"TableName": table, **({"IndexName": index} if index else {})}
        yield "Scan", f"{index}", base
        yield "Scan", f"consistent {index}", {**base, "ConsistentRead": True}
        yield "Scan", f"from half a key {index}", {**base, "ExclusiveStartKey": KEYS["half a key"]}
        yield "Scan", f"all attributes {index}", {**base, "Select": "ALL_ATTRIBUTES"}
        yield "Scan", f"no such segment {index}", {**base, "Segment": 7, "TotalSegments": 2}
        vector = {"QueryVector": {"L": [N("1"), N("2")]}, "TopK": 1}
        yield "SearchVectors", f"{index}", {**base, "IndexName": index or "byVector", **vector}


def _many(table: str) -> Iterator[Given]:
    for said, key in KEYS.items():
        yield "BatchGetItem", said, {"RequestItems": {table: {"Keys": [key]}}}
        yield "BatchGetItem", f"twice {said}", {"RequestItems": {table: {"Keys": [key, key]}}}
        projected = {"Keys": [key], "ProjectionExpression": "a, a"}
        yield "BatchGetItem", f"projected {said}", {"RequestItems": {table: projected}}
        deleted = [{"DeleteRequest": {"Key": key}}]
        yield "BatchWriteItem", f"delete {said}", {"RequestItems": {table: deleted}}
        get = {"Get": {"TableName": table, "Key": key}}
        yield "TransactGetItems", said, {"TransactItems": [get]}
        yield "TransactGetItems", f"twice {said}", {"TransactItems": [get, get]}
        check = {"TableName": table, "Key": key, "ConditionExpression": "attribute_exists(pk)"}
        values = {"ExpressionAttributeValues": {":n": S("n")}}
        update = {"TableName": table, "Key": key, "UpdateExpression": "SET a = :n", **values}
        for kind, action in (("Delete", get["Get"]), ("ConditionCheck", check), ("Update", update)):
            yield "TransactWriteItems", f"{kind} {said}", {"TransactItems": [{kind: action}]}
    for said, item in ITEMS.items():
        yield "BatchWriteItem", said, {"RequestItems": {table: [{"PutRequest": {"Item": item}}]}}
        put = {"Put": {"TableName": table, "Item": item}}
        yield "TransactWriteItems", said, {"TransactItems": [put]}


def _statements(table: str) -> Iterator[Given]:
    texts = [
        f'SELECT * FROM "{table}"',
        f"SELECT * FROM \"{table}\" WHERE pk = 'a'",
        f'SELECT * FROM "{table}" WHERE pk = 1',
        f"SELECT * FROM \"{table}\" WHERE pk = 'a' AND sk = 'b'",
        f"SELECT * FROM \"{table}\" WHERE pk = 'a' ORDER BY note",
        *(f'SELECT * FROM "{table}"."{index}"' for index in INDEXES),
        f'SELECT * FROM "{table}"."{INDEX}" WHERE status = \'open\'',
        f"INSERT INTO \"{table}\" VALUE {{'pk': 'a', 'sk': 'b'}}",
        f"INSERT INTO \"{table}\" VALUE {{'pk': 'a'}}",
        f"INSERT INTO \"{table}\" VALUE {{'pk': 1, 'sk': 'b'}}",
        f"INSERT INTO \"{table}\" VALUE {{'pk': 'a', 'sk': 'b', 'status': 1}}",
        f"UPDATE \"{table}\" SET note = 'n' WHERE pk = 'a' AND sk = 'b'",
        f"UPDATE \"{table}\" SET note = 'n' WHERE pk = 'a'",
        f"UPDATE \"{table}\" SET pk = 'n' WHERE pk = 'a' AND sk = 'b'",
        f"DELETE FROM \"{table}\" WHERE pk = 'a' AND sk = 'b'",
        f'DELETE FROM "{table}" WHERE pk = 1',
        f"EXISTS(SELECT * FROM \"{table}\" WHERE pk = 'a' AND sk = 'b' AND note = 'n')",
        f"EXISTS(SELECT * FROM \"{table}\" WHERE pk = 'a')",
        f'SELEKT * FROM "{table}"',
    ]
    for text in texts:
        yield "ExecuteStatement", text, {"Statement": text}
        yield "ExecuteStatement", f"parameter {text}", {"Statement": text, "Parameters": [S("a")]}
        yield "BatchExecuteStatement", text, {"Statements": [{"Statement": text}]}
        yield "BatchExecuteStatement", f"twice {text}", {"Statements": [{"Statement": text}] * 2}
        yield "ExecuteTransaction", text, {"TransactStatements": [{"Statement": text}]}
        yield "ExecuteTransaction", f"twice {text}", {"TransactStatements": [{"Statement": text}] * 2}


def _streams(table: str, has: Handles) -> Iterator[Given]:
    for label in (has.label, "2001-01-01T00:00:00.000", "x"):
        arn = f"{ACCOUNT}{table}/stream/{label}"
        yield "DescribeStream", label, {"StreamArn": arn}
        yield "DescribeStream", f"after {label}", {"StreamArn": arn, "ExclusiveStartShardId": has.shard}
        for shard in (has.shard, Handles().shard):
            for kind in ("TRIM_HORIZON", "AT_SEQUENCE_NUMBER"):
                place = {"StreamArn": arn, "ShardId": shard, "ShardIteratorType": kind}
                yield "GetShardIterator", f"{kind} {label} {shard}", place
        yield "GetRecords", label, {"ShardIterator": arn + has.iterator}
        yield "GetRecords", f"an old one {label}", {"ShardIterator": arn + Handles().iterator}


def _definitions(table: str) -> Iterator[Given]:
    arn = ACCOUNT + table
    tags = [{"Key": "a", "Value": "b"}]
    yield "CreateTable", "", {"TableName": table, **SCHEMA}
    yield "CreateTable", "with tags", {"TableName": table, "Tags": tags, **SCHEMA}
    yield "CreateTable", "without definitions", {"TableName": table, **SCHEMA, "AttributeDefinitions": []}
    yield "UpdateTable", "", {"TableName": table, "DeletionProtectionEnabled": True}
    yield "UpdateTable", "nothing", {"TableName": table}
    for change in ({"Delete": {"IndexName": INDEX}}, {"Delete": {"IndexName": "nowhere"}}):
        yield "UpdateTable", f"{change}", {"TableName": table, "GlobalSecondaryIndexUpdates": [change]}
    yield "UpdateTable", "stream", {"TableName": table, "StreamSpecification": {"StreamEnabled": False}}
    replica = {"Create": {"RegionName": "eu-west-1"}}
    yield "UpdateTable", "replicas", {"TableName": table, "ReplicaUpdates": [replica]}
    for operation in (
        "DescribeTable", "DeleteTable", "DescribeTimeToLive", "DescribeContinuousBackups", "DescribeContributorInsights",
        "DescribeKinesisStreamingDestination", "DescribeTableReplicaAutoScaling", "UpdateTableReplicaAutoScaling",
    ):  # fmt: skip
        yield operation, "", {"TableName": table}
        yield operation, "by ARN", {"TableName": ACCOUNT + table}
    for name in ("until", "pk"):
        ttl = {"Enabled": True, "AttributeName": name}
        yield "UpdateTimeToLive", name, {"TableName": table, "TimeToLiveSpecification": ttl}
    on = {"PointInTimeRecoveryEnabled": True}
    yield "UpdateContinuousBackups", "", {"TableName": table, "PointInTimeRecoverySpecification": on}
    for index in (None, *INDEXES):
        more = {"IndexName": index} if index else {}
        insights = {"TableName": table, "ContributorInsightsAction": "ENABLE", **more}
        yield "UpdateContributorInsights", f"{index}", insights
        yield "DescribeContributorInsights", f"{index}", {"TableName": table, **more}
    for resource in (arn, f"{arn}/stream/2001-01-01T00:00:00.000", f"{arn}/index/{INDEX}"):
        yield "ListTagsOfResource", resource.removeprefix(arn), {"ResourceArn": resource}
        yield "TagResource", resource.removeprefix(arn), {"ResourceArn": resource, "Tags": tags}
        yield "UntagResource", resource.removeprefix(arn), {"ResourceArn": resource, "TagKeys": ["a"]}
        yield "GetResourcePolicy", resource.removeprefix(arn), {"ResourceArn": resource}
        yield "DeleteResourcePolicy", resource.removeprefix(arn), {"ResourceArn": resource}
        for policy in ("{}", json.dumps({"Version": "2012-10-17", "Statement": []})):
            yield "PutResourcePolicy", policy, {"ResourceArn": resource, "Policy": policy}
    yield "DescribeGlobalTable", "", {"GlobalTableName": table}
    yield "DescribeGlobalTableSettings", "", {"GlobalTableName": table}
    regions = [{"RegionName": "us-east-1"}]
    yield "CreateGlobalTable", "", {"GlobalTableName": table, "ReplicationGroup": regions}
    yield "UpdateGlobalTable", "", {"GlobalTableName": table, "ReplicaUpdates": [replica]}
    yield "UpdateGlobalTableSettings", "", {"GlobalTableName": table}
    destination = {"TableName": table, "StreamArn": KINESIS}
    for operation in ("EnableKinesisStreamingDestination", "DisableKinesisStreamingDestination"):
        yield operation, "", destination
    precision = {"ApproximateCreationDateTimePrecision": "MICROSECOND"}
    yield (
        "UpdateKinesisStreamingDestination",
        "",
        {**destination, "UpdateKinesisStreamingConfiguration": precision},
    )


def _copies(table: str, has: Handles) -> Iterator[Given]:
    arn = ACCOUNT + table
    yield "CreateBackup", "", {"TableName": table, "BackupName": "saved"}
    for backup in (has.backup, Handles().backup, "x"):
        name = f"{arn}/backup/{backup}"
        yield "DescribeBackup", backup, {"BackupArn": name}
        yield "DeleteBackup", backup, {"BackupArn": name}
        yield (
            "RestoreTableFromBackup",
            backup,
            {"BackupArn": name, "TargetTableName": "granted2"},
        )
    yield (
        "RestoreTableFromBackup",
        "into it",
        {"BackupArn": f"{ACCOUNT}granted/backup/{Handles().backup}", "TargetTableName": table},
    )
    for more in ({"UseLatestRestorableTime": True}, {"RestoreDateTime": 1}, {}):
        given = {"SourceTableName": table, "TargetTableName": "granted2", **more}
        yield "RestoreTableToPointInTime", f"{more}", given
        by_arn = {"SourceTableArn": arn, "TargetTableName": "granted2", **more}
        yield "RestoreTableToPointInTime", f"by ARN {more}", by_arn
        into = {"SourceTableName": "granted", "TargetTableName": table, **more}
        yield "RestoreTableToPointInTime", f"into it {more}", into
    export = {"TableArn": arn, "S3Bucket": "bucket"}
    yield "ExportTableToPointInTime", "", export
    yield "ExportTableToPointInTime", "of a past", {**export, "ExportTime": 1}
    selected = {"FilterSpecification": {"ProjectionExpression": "a..b"}}
    yield "ExportTableToPointInTime", "of a part", {**export, **selected}
    source = {"S3BucketSource": {"S3Bucket": "bucket"}, "InputFormat": "DYNAMODB_JSON"}
    yield "ImportTable", "", {"TableCreationParameters": {"TableName": table, **SCHEMA}, **source}
    token = {"ClientToken": "a token"}
    yield (
        "ImportTable",
        "again",
        {"TableCreationParameters": {"TableName": table, **SCHEMA}, **source, **token},
    )
    bulk = {
        "InputS3Configuration": {"S3Bucket": "bucket", "InputFormat": "DYNAMODB_JSON"},
        "OutputS3Configuration": {"S3Bucket": "bucket", "OutputType": ["ERROR"]},
    }
    yield "StartBulkPutItems", "", {"TableName": table, **bulk}
    for job in (has.job, "x"):
        yield "DescribeExport", job, {"ExportArn": f"{arn}/export/{job}"}
        yield "DescribeImport", job, {"ImportArn": f"{arn}/import/{job}"}
        for operation in ("DescribeBulkOperation", "CancelBulkOperation"):
            yield operation, job, {"BulkOperationArn": f"{arn}/bulk-operation/{job}"}
    yield "ListExports", "", {"TableArn": arn}
    yield "ListImports", "", {"TableArn": arn}


OF_DYNAMODB = {
    name
    for name, operation in DYNAMODB_OPERATIONS.items()
    if operation.purpose.permissions[0] not in ACCOUNT_PERMISSIONS and name != "ListBulkOperations"
}
"""The operations on resources that have a name. Those on an account list its names (docs/operate/grants.md)."""
