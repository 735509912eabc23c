"""Requests of one side to DynamoDB: on its own tables, and with every identifier of the other side."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import boto3
from botocore.exceptions import ClientError

from tests.support.live_dynamodb import ONCE
from tests.tenants.attacks.sides import Side

REGION = "eu-central-1"
INDEX = "byAlbum"
STREAM = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
NAMES = ("TableName", "TableNames", "TableArn", "LastEvaluatedTableName", "SourceTableArn")
ARNS = ("TableArn", "IndexArn", "LatestStreamArn", "StreamArn", "BackupArn", "ExportArn", "ImportArn")
STREAMS = ("StreamArn", "LatestStreamArn")
Values = dict[str, Any]


class DynamoDB:
    """A side by boto3."""

    def __init__(self, side: Side, bucket: str = "") -> None:
        self.side = side
        self.bucket = bucket
        self.clients = {}
        for service in ("dynamodb", "dynamodbstreams"):
            made = boto3.client(
                service, REGION, endpoint_url=side.url, config=ONCE,
                aws_access_key_id=side.name, aws_secret_access_key=side.name + " secret",
            )  # fmt: skip
            made.meta.events.register(
                f"before-parse.{made.meta.service_model.service_id.hyphenize()}", self._heard
            )
            self.clients[service] = made

    def _heard(self, response_dict: Any, **_: Any) -> None:
        self.side.seen(response_dict["body"])

    def ask(self, operation: str, streams: bool = False, **members: Any) -> Any:
        """Send a request and keep the identifiers of its answer. Returns the answer or None."""
        self.side.doing = f"{operation} {members}"
        client = self.clients["dynamodbstreams" if streams else "dynamodb"]
        try:
            answer = client._make_api_call(operation, members)
        except ClientError as error:
            told = error.response
            self.side.answered(operation, told["ResponseMetadata"]["HTTPStatusCode"], told["Error"]["Code"])
            return None
        self.side.answered(operation, 200, "")
        self.side.bag.collect(answer, (self.side.secret, self.side.other.secret))
        return answer

    # Operations on its own tables

    def furnish(self) -> None:
        """Create the vault with every kind of named resource."""
        vault = self.side.vault
        self.create(vault)
        for pk in ("p0", "p1"):
            for number in range(5):
                self.ask(
                    "PutItem", TableName=vault, Item=self.item({"pk": {"S": pk}, "sk": {"S": f"s{number}"}})
                )
        arn = self.arn
        recovery = {"PointInTimeRecoveryEnabled": True}
        self.ask("UpdateContinuousBackups", TableName=vault, PointInTimeRecoverySpecification=recovery)
        self.ask("TagResource", ResourceArn=arn, Tags=[{"Key": "owner", "Value": self.side.secret}])
        self.ask("CreateBackup", TableName=vault, BackupName=f"{self.side.name}-backup")
        self.ask("PutResourcePolicy", ResourceArn=arn, Policy=json.dumps(self.policy_of_own()))
        if self.bucket:
            self.ask("ExportTableToPointInTime", TableArn=arn, S3Bucket=self.bucket)

    @property
    def arn(self) -> str:
        """The ARN of the vault."""
        return f"arn:aws:dynamodb:{REGION}:{self.side.account}:table/{self.side.vault}"

    def policy_of_own(self) -> Values:
        """Return a policy that refuses nothing, and whose text only its owner can read."""
        statement = {"Sid": self.side.secret.replace("-", ""), "Effect": "Deny", "Principal": "*",
                     "Action": "dynamodb:DeleteTable", "Resource": self.arn}  # fmt: skip
        return {"Version": "2012-10-17", "Statement": [statement]}

    def create(self, name: str) -> None:
        """A table like all others here."""
        keys = [{"AttributeName": each, "AttributeType": "S"} for each in ("pk", "sk", "album")]
        schema = [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]
        by_album = [{"AttributeName": "album", "KeyType": "HASH"}]
        index = {"IndexName": INDEX, "KeySchema": by_album, "Projection": {"ProjectionType": "ALL"}}
        self.ask(
            "CreateTable", TableName=name, KeySchema=schema, AttributeDefinitions=keys, BillingMode="PAY_PER_REQUEST",
            GlobalSecondaryIndexes=[index], StreamSpecification=STREAM,
        )  # fmt: skip

    def item(self, key: Values) -> Values:
        """A row of this side's."""
        return {**key, "album": {"S": "a"}, "note": {"S": self.side.secret}}

    def fingerprint(self) -> list[Any]:
        """Return all data that the other side could have changed."""
        vault, arn = self.side.vault, self.arn
        table = self.ask("DescribeTable", TableName=vault)["Table"]
        counts = ("ItemCount", "TableSizeBytes", "GlobalSecondaryIndexes", "Replicas")
        return [
            {name: value for name, value in table.items() if name not in counts},
            sorted(map(str, self.ask("Scan", TableName=vault, ConsistentRead=True)["Items"])),
            self.ask("ListTagsOfResource", ResourceArn=arn)["Tags"],
            self.ask("DescribeTimeToLive", TableName=vault)["TimeToLiveDescription"],
            self.ask("GetResourcePolicy", ResourceArn=arn)["Policy"],
            self.ask("DescribeContinuousBackups", TableName=vault)["ContinuousBackupsDescription"][
                "PointInTimeRecoveryDescription"
            ]["PointInTimeRecoveryStatus"],
        ]

    def work(self) -> None:
        """One thing that a tenant does: it fills the bag with fresh identifiers."""
        self.side.chance.choice(OWN)(self)

    def attack(self) -> None:
        """One request with something that the other side has seen."""
        operation = self.side.chance.choice(ATTACKS)
        streams = operation in STREAM_ATTACKS
        build = STREAM_ATTACKS[operation] if streams else TABLE_ATTACKS[operation]
        answer = self.ask(operation, streams, **build(self))
        # A returned iterator must read nothing either.
        if operation == "GetShardIterator" and answer:
            self.ask("GetRecords", True, ShardIterator=answer["ShardIterator"])


def _look_through(aws: DynamoDB) -> None:
    """All tables that the side has, in which nothing of the other's may be."""
    listed = aws.ask("ListTables") or {"TableNames": []}
    own = [name for name in listed["TableNames"] if name.startswith(aws.side.name)]
    if own:
        aws.ask("Scan", TableName=aws.side.chance.choice(own), Limit=20)
    for name in own[6:]:
        if name != aws.side.vault:
            aws.ask("DeleteTable", TableName=name)


def _page(aws: DynamoDB) -> None:
    aws.ask("Scan", TableName=aws.side.vault, Limit=2)
    aws.ask(
        "Query", TableName=aws.side.vault, IndexName=INDEX, KeyConditionExpression="album = :a", Limit=2,
        ExpressionAttributeValues={":a": {"S": "a"}},
    )  # fmt: skip


def _statement(aws: DynamoDB) -> None:
    statement = f'SELECT * FROM "{aws.side.vault}"'
    aws.side.bag.keep("Statement", statement)
    aws.ask("ExecuteStatement", Statement=statement, Limit=2)


def _stream(aws: DynamoDB) -> None:
    table = aws.ask("DescribeTable", TableName=aws.side.vault) or {}
    arn = table.get("Table", {}).get("LatestStreamArn", "")
    described = aws.ask("DescribeStream", True, StreamArn=arn)
    aws.ask("ListStreams", True, TableName=aws.side.vault)
    if not described:
        return
    shard = aws.side.chance.choice(described["StreamDescription"]["Shards"])["ShardId"]
    seek = {"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"}
    place = aws.ask("GetShardIterator", True, **seek)
    if place:
        aws.ask("GetRecords", True, ShardIterator=place["ShardIterator"], Limit=2)


def _scratch(aws: DynamoDB) -> None:
    name = aws.side.new_name()
    aws.create(name)
    aws.ask("PutItem", TableName=name, Item=aws.item(_key(aws)))


def _names(aws: DynamoDB) -> None:
    token = f"{aws.side.name}-{aws.side.chance.randrange(5)}"
    aws.side.bag.keep("ClientRequestToken", token)
    check = {"TableName": aws.side.vault, "Key": {"pk": {"S": "p0"}, "sk": {"S": "s0"}},
             "ConditionExpression": "attribute_exists(pk)"}  # fmt: skip
    aws.ask("TransactWriteItems", TransactItems=[{"ConditionCheck": check}], ClientRequestToken=token)
    aws.ask("ListBackups", TableName=aws.side.vault)
    aws.ask("GetResourcePolicy", ResourceArn=aws.arn)
    if aws.bucket:
        aws.ask("ListExports")
        aws.ask("ListImports")


OWN: list[Callable[[DynamoDB], None]] = [_look_through, _page, _statement, _stream, _scratch, _names]


# With what the other side has seen


def _key(aws: DynamoDB) -> Values:
    chance = aws.side.chance
    if chance.random() < 0.2:
        found = aws.side.foreign("LastEvaluatedKey", "Keys")
        if isinstance(found, dict):
            return {name: value for name, value in found.items() if name in ("pk", "sk")}
    return {"pk": {"S": f"p{chance.randrange(2)}"}, "sk": {"S": f"s{chance.randrange(5)}"}}


def _of(*kinds: str) -> Callable[[DynamoDB], Values]:
    """Return a request with one member, named as the first of these kinds."""
    return lambda aws: {kinds[0]: aws.side.foreign(*kinds)}


def _named(aws: DynamoDB, **more: Any) -> Values:
    return {"TableName": aws.side.foreign(*NAMES, "IndexArn"), **more}


def _with(**more: Any) -> Callable[[DynamoDB], Values]:
    return lambda aws: _named(aws, **more)


def _in(aws: DynamoDB) -> str:
    """A table, and sometimes an index, in a statement."""
    name = f'"{aws.side.foreign(*NAMES)}"'
    return f'{name}."{aws.side.foreign("IndexName")}"' if aws.side.chance.random() < 0.2 else name


def _text(aws: DynamoDB) -> str:
    place = "pk = 'p0' AND sk = 's0'"
    texts = (
        f"SELECT * FROM {_in(aws)}", f"SELECT * FROM {_in(aws)} WHERE {place}", f"DELETE FROM {_in(aws)} WHERE {place}",
        f"UPDATE {_in(aws)} SET note = '{aws.side.secret}' WHERE {place}",
        f"INSERT INTO {_in(aws)} VALUE {{'pk': 'p9', 'sk': 's9', 'note': '{aws.side.secret}'}}",
    )  # fmt: skip
    return aws.side.chance.choice(texts)


def _executed(aws: DynamoDB) -> Values:
    if aws.side.chance.random() < 0.4:
        return {"Statement": aws.side.foreign("Statement"), "NextToken": aws.side.foreign("NextToken")}
    return {"Statement": _text(aws)}


def _paged(aws: DynamoDB) -> Values:
    index = {"IndexName": aws.side.foreign("IndexName")} if aws.side.chance.random() < 0.5 else {}
    start = (
        {"ExclusiveStartKey": aws.side.foreign("LastEvaluatedKey") or {}}
        if aws.side.chance.random() < 0.5
        else {}
    )
    return _named(aws, **index, **start)


def _queried(aws: DynamoDB) -> Values:
    name = aws.side.chance.choice(("pk", "album"))
    value = {"pk": "p0", "album": "a"}[name]
    return {
        **_paged(aws),
        "KeyConditionExpression": f"{name} = :v",
        "ExpressionAttributeValues": {":v": {"S": value}},
    }


def _transacted(aws: DynamoDB) -> Values:
    key = _key(aws)
    parts = (
        {"Put": _named(aws, Item=aws.item(key))}, {"Delete": _named(aws, Key=key)},
        {"ConditionCheck": _named(aws, Key=key, ConditionExpression="attribute_exists(pk)",
                                  ReturnValuesOnConditionCheckFailure="ALL_OLD")},
        {"Update": _named(aws, Key=key, UpdateExpression="SET note = note", ConditionExpression="note = :n",
                          ExpressionAttributeValues={":n": {"S": "?"}},
                          ReturnValuesOnConditionCheckFailure="ALL_OLD")},
    )  # fmt: skip
    token = (
        {"ClientRequestToken": aws.side.foreign("ClientRequestToken")}
        if aws.side.chance.random() < 0.5
        else {}
    )
    return {"TransactItems": [aws.side.chance.choice(parts)], **token}


def _sought(aws: DynamoDB) -> Values:
    kind = aws.side.chance.choice(("TRIM_HORIZON", "LATEST", "AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"))
    after = (
        {"SequenceNumber": aws.side.foreign("SequenceNumber", "StartingSequenceNumber")}
        if "SEQ" in kind
        else {}
    )
    stream, shard = aws.side.foreign(*STREAMS), aws.side.foreign("ShardId")
    return {"StreamArn": stream, "ShardId": shard, "ShardIteratorType": kind, **after}


def _policy(aws: DynamoDB) -> Values:
    arn = aws.side.foreign(*ARNS)
    accounts = {"AWS": [aws.side.account, aws.side.other.account]}
    statement = {"Effect": "Allow", "Principal": accounts, "Action": "dynamodb:*", "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    revision = aws.side.foreign("RevisionId", "ExpectedRevisionId")
    return {"ResourceArn": arn, "Policy": policy, "ExpectedRevisionId": revision}


def _restored(aws: DynamoDB) -> Values:
    source = aws.side.chance.choice(("SourceTableName", "SourceTableArn"))
    target = aws.side.chance.choice((aws.side.new_name(), aws.side.foreign("TableName")))
    return {source: aws.side.foreign(*NAMES), "TargetTableName": target, "UseLatestRestorableTime": True}


def _exported(aws: DynamoDB) -> Values:
    """Return a location of the other side's exports."""
    return {"S3Bucket": aws.side.foreign("S3Bucket"), "S3KeyPrefix": "AWSDynamoDB/"}


def _imported(aws: DynamoDB) -> Values:
    schema = [{"AttributeName": "pk", "KeyType": "HASH"}]
    made = {"TableName": aws.side.new_name(), "KeySchema": schema, "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}]}  # fmt: skip
    return {"S3BucketSource": _exported(aws), "InputFormat": "DYNAMODB_JSON", "TableCreationParameters": made}


_ATTRIBUTES = {"UpdateExpression": "SET stolen = :t", "ExpressionAttributeValues": {":t": {"S": "t"}}}
_TTL = {"Enabled": True, "AttributeName": "note"}
_INSIGHTS = {"ContributorInsightsAction": "ENABLE"}
_TO_KINESIS = {"StreamArn": f"arn:aws:kinesis:{REGION}:111111111111:stream/s"}
_REPLICA = {"ReplicaUpdates": [{"Create": {"RegionName": "us-east-1"}}]}

TABLE_ATTACKS: dict[str, Callable[[DynamoDB], Values]] = {
    "GetItem": lambda aws: _named(aws, Key=_key(aws)),
    "PutItem": lambda aws: _named(aws, Item=aws.item(_key(aws)), ReturnValues="ALL_OLD"),
    "UpdateItem": lambda aws: _named(aws, Key=_key(aws), ReturnValues="ALL_NEW", **_ATTRIBUTES),
    "DeleteItem": lambda aws: _named(aws, Key=_key(aws), ReturnValues="ALL_OLD"),
    "Scan": _paged,
    "Query": _queried,
    "BatchGetItem": lambda aws: {"RequestItems": {aws.side.foreign(*NAMES): {"Keys": [_key(aws)]}}},
    "BatchWriteItem": lambda aws: {
        "RequestItems": {aws.side.foreign(*NAMES): [{"PutRequest": {"Item": aws.item(_key(aws))}}]}
    },
    "TransactGetItems": lambda aws: {"TransactItems": [{"Get": _named(aws, Key=_key(aws))}]},
    "TransactWriteItems": _transacted,
    "ExecuteStatement": _executed,
    "BatchExecuteStatement": lambda aws: {"Statements": [{"Statement": _text(aws)}]},
    "ExecuteTransaction": lambda aws: {
        "TransactStatements": [{"Statement": _text(aws)}], "ClientRequestToken": aws.side.foreign("ClientRequestToken")
    },
    "DescribeTable": _of("TableName", *NAMES),
    "ListTables": lambda aws: {"ExclusiveStartTableName": aws.side.foreign("TableName", "LastEvaluatedTableName")},
    "UpdateTable": lambda aws: _named(aws, StreamSpecification={"StreamEnabled": False}),
    "DeleteTable": _of("TableName", *NAMES),
    "DescribeTimeToLive": _of("TableName", *NAMES),
    "UpdateTimeToLive": _with(TimeToLiveSpecification=_TTL),
    "DescribeContinuousBackups": _of("TableName", *NAMES),
    "UpdateContinuousBackups": _with(PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": False}),
    "CreateBackup": _with(BackupName="stolen"),
    "DescribeBackup": _of("BackupArn"),
    "DeleteBackup": _of("BackupArn"),
    "ListBackups": lambda aws: _named(aws, ExclusiveStartBackupArn=aws.side.foreign("BackupArn")),
    "RestoreTableFromBackup": lambda aws: {
        "BackupArn": aws.side.foreign("BackupArn"), "TargetTableName": aws.side.new_name()
    },
    "RestoreTableToPointInTime": _restored,
    "ExportTableToPointInTime": lambda aws: {
        "TableArn": aws.side.foreign(*ARNS), "S3Bucket": aws.bucket or "b", "ClientToken": aws.side.foreign("ClientToken")
    },
    "DescribeExport": _of("ExportArn"),
    "ListExports": lambda aws: {"TableArn": aws.side.foreign(*ARNS), "NextToken": aws.side.foreign("NextToken")},
    "ImportTable": _imported,
    "DescribeImport": _of("ImportArn"),
    "ListImports": lambda aws: {"TableArn": aws.side.foreign(*ARNS)},
    "DescribeContributorInsights": _of("TableName", *NAMES),
    "UpdateContributorInsights": lambda aws: _named(aws, IndexName=aws.side.foreign("IndexName"), **_INSIGHTS),
    "ListContributorInsights": lambda aws: _named(aws, NextToken=aws.side.foreign("NextToken")),
    "EnableKinesisStreamingDestination": _with(**_TO_KINESIS),
    "DescribeKinesisStreamingDestination": _of("TableName", *NAMES),
    "DescribeTableReplicaAutoScaling": _of("TableName", *NAMES),
    "ListTagsOfResource": lambda aws: {"ResourceArn": aws.side.foreign(*ARNS), "NextToken": aws.side.foreign("NextToken")},
    "TagResource": lambda aws: {"ResourceArn": aws.side.foreign(*ARNS), "Tags": [{"Key": "owner", "Value": "t"}]},
    "UntagResource": lambda aws: {"ResourceArn": aws.side.foreign(*ARNS), "TagKeys": ["owner"]},
    "GetResourcePolicy": lambda aws: {"ResourceArn": aws.side.foreign(*ARNS)},
    "PutResourcePolicy": _policy,
    "DeleteResourcePolicy": lambda aws: {
        "ResourceArn": aws.side.foreign(*ARNS), "ExpectedRevisionId": aws.side.foreign("RevisionId")
    },
    "DescribeBulkOperation": _of("BulkOperationArn", *ARNS),
    "CancelBulkOperation": _of("BulkOperationArn", *ARNS),
    "ListBulkOperations": lambda aws: {"NextToken": aws.side.foreign("NextToken")},
    "StartBulkPutItems": lambda aws: _named(
        aws, InputS3Configuration={**_exported(aws), "InputFormat": "DYNAMODB_JSON"},
        OutputS3Configuration={"S3Bucket": aws.side.foreign("S3Bucket"), "OutputType": ["ERROR"]},
    ),
    "SearchVectors": lambda aws: _named(
        aws, IndexName=aws.side.foreign("IndexName"), SearchVector=[{"N": "1"}], TopK=3
    ),
    "UpdateTableReplicaAutoScaling": _of("TableName", *NAMES),
    "DisableKinesisStreamingDestination": _with(**_TO_KINESIS),
    "CreateGlobalTable": lambda aws: {
        "GlobalTableName": aws.side.foreign("TableName"), "ReplicationGroup": [{"RegionName": REGION}]
    },
    "DescribeGlobalTable": lambda aws: {"GlobalTableName": aws.side.foreign("TableName")},
    "CreateTable": lambda aws: {
        "TableName": aws.side.foreign("TableName"), "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}], "BillingMode": "PAY_PER_REQUEST",
    },
}  # fmt: skip
STREAM_ATTACKS: dict[str, Callable[[DynamoDB], Values]] = {
    "DescribeStream": lambda aws: {
        "StreamArn": aws.side.foreign(*STREAMS), "ExclusiveStartShardId": aws.side.foreign("ShardId")
    },
    "GetShardIterator": _sought,
    "GetRecords": lambda aws: {"ShardIterator": aws.side.foreign("ShardIterator", "NextShardIterator")},
    "ListStreams": lambda aws: {
        "TableName": aws.side.foreign("TableName"), "ExclusiveStartStreamArn": aws.side.foreign(*STREAMS)
    },
}  # fmt: skip
_OFTEN = ("Scan", "Query", "GetItem", "ExecuteStatement", "TransactWriteItems", *STREAM_ATTACKS) * 2
ATTACKS = [*TABLE_ATTACKS, *STREAM_ATTACKS, *_OFTEN]
