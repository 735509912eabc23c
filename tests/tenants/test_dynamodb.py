"""A foreign AWS key, and every identifier of DynamoDB: names and ARNs of tables, indexes and streams, shards, iterators, page
tokens, idempotency tokens, regions."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.support.live_dynamodb import ONCE
from tests.support.tables import each_row
from tests.support.waiting import wait_until
from tests.tenants.conftest import (
    ABSENT,
    MUSIC,
    REGION,
    Tenants,
    made_by,
    same_as_of_nobody,
    secret_of,
    told,
)

KEY = {"pk": {"S": "p"}, "sk": {"S": "s0"}}
NEW = {"pk": {"S": "p"}, "sk": {"S": "stolen"}}
VALUES = {":p": {"S": "p"}}
BY_ALBUM = {
    "IndexName": "byAlbum",
    "KeyConditionExpression": "album = :p",
    "ExpressionAttributeValues": {":p": {"S": "a"}},
}

Ask = Callable[[Any, str], Any]
BY_NAME: dict[str, Ask] = {
    "DescribeTable": lambda c, n: c.describe_table(TableName=n),
    "GetItem": lambda c, n: c.get_item(TableName=n, Key=KEY),
    "PutItem": lambda c, n: c.put_item(TableName=n, Item=NEW),
    "UpdateItem": lambda c, n: c.update_item(TableName=n, Key=NEW),
    "DeleteItem": lambda c, n: c.delete_item(TableName=n, Key=KEY, ReturnValues="ALL_OLD"),
    "Query": lambda c, n: c.query(
        TableName=n, KeyConditionExpression="pk = :p", ExpressionAttributeValues=VALUES
    ),
    "Query an index": lambda c, n: c.query(TableName=n, **BY_ALBUM),
    "Scan": lambda c, n: c.scan(TableName=n),
    "Scan an index": lambda c, n: c.scan(TableName=n, IndexName="byAlbum"),
    "Scan from a key": lambda c, n: c.scan(TableName=n, ExclusiveStartKey=KEY),
    "BatchGetItem": lambda c, n: c.batch_get_item(RequestItems={n: {"Keys": [KEY]}}),
    "BatchWriteItem": lambda c, n: c.batch_write_item(RequestItems={n: [{"PutRequest": {"Item": NEW}}]}),
    "TransactGetItems": lambda c, n: c.transact_get_items(
        TransactItems=[{"Get": {"TableName": n, "Key": KEY}}]
    ),
    "TransactWriteItems": lambda c, n: c.transact_write_items(
        TransactItems=[{"Put": {"TableName": n, "Item": NEW}}]
    ),
    "ConditionCheck": lambda c, n: c.transact_write_items(
        TransactItems=[
            {"ConditionCheck": {"TableName": n, "Key": KEY, "ConditionExpression": "attribute_exists(pk)"}}
        ]
    ),
    "SELECT": lambda c, n: c.execute_statement(Statement=f"SELECT * FROM \"{n}\" WHERE pk = 'p'"),
    "SELECT by an index": lambda c, n: c.execute_statement(
        Statement=f'SELECT * FROM "{n}"."byAlbum" WHERE album = \'a\''
    ),
    "INSERT": lambda c, n: c.execute_statement(
        Statement=f"INSERT INTO \"{n}\" VALUE {{'pk': 'p', 'sk': 'stolen'}}"
    ),
    "UPDATE": lambda c, n: c.execute_statement(
        Statement=f"UPDATE \"{n}\" SET a = 1 WHERE pk = 'p' AND sk = 's0'"
    ),
    "DELETE": lambda c, n: c.execute_statement(Statement=f"DELETE FROM \"{n}\" WHERE pk = 'p' AND sk = 's0'"),
    "BatchExecuteStatement": lambda c, n: c.batch_execute_statement(
        Statements=[{"Statement": f"SELECT * FROM \"{n}\" WHERE pk = 'p' AND sk = 's0'"}]
    ),
    "ExecuteTransaction": lambda c, n: c.execute_transaction(
        TransactStatements=[{"Statement": f"DELETE FROM \"{n}\" WHERE pk = 'p' AND sk = 's0'"}]
    ),
    "UpdateTable": lambda c, n: c.update_table(TableName=n, DeletionProtectionEnabled=False),
    "DeleteTable": lambda c, n: c.delete_table(TableName=n),
    "DescribeTimeToLive": lambda c, n: c.describe_time_to_live(TableName=n),
    "UpdateTimeToLive": lambda c, n: c.update_time_to_live(
        TableName=n, TimeToLiveSpecification={"Enabled": True, "AttributeName": "a"}
    ),
    "DescribeContinuousBackups": lambda c, n: c.describe_continuous_backups(TableName=n),
    "UpdateContinuousBackups": lambda c, n: c.update_continuous_backups(
        TableName=n, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
    ),
    "CreateBackup": lambda c, n: c.create_backup(TableName=n, BackupName="stolen"),
    "DescribeContributorInsights": lambda c, n: c.describe_contributor_insights(TableName=n),
    "DescribeKinesisStreamingDestination": lambda c, n: c.describe_kinesis_streaming_destination(TableName=n),
    "DescribeTableReplicaAutoScaling": lambda c, n: c.describe_table_replica_auto_scaling(TableName=n),
    "ListBackups": lambda c, n: c.list_backups(TableName=n),
    "ListContributorInsights": lambda c, n: c.list_contributor_insights(TableName=n),
}
POLICY = json.dumps(
    {
        "Statement": {
            "Effect": "Allow",
            "Principal": {"AWS": ["111111111111", "222222222222"]},
            "Action": "dynamodb:*",
            "Resource": "*",
        }
    }
)
BY_ARN: dict[str, Ask] = {
    "ListTagsOfResource": lambda c, arn: c.list_tags_of_resource(ResourceArn=arn),
    "TagResource": lambda c, arn: c.tag_resource(ResourceArn=arn, Tags=[{"Key": "owner", "Value": "thief"}]),
    "UntagResource": lambda c, arn: c.untag_resource(ResourceArn=arn, TagKeys=["owner"]),
    "GetResourcePolicy": lambda c, arn: c.get_resource_policy(ResourceArn=arn),
    "PutResourcePolicy": lambda c, arn: c.put_resource_policy(ResourceArn=arn, Policy=POLICY),
    "DeleteResourcePolicy": lambda c, arn: c.delete_resource_policy(ResourceArn=arn),
}
MISSING = ("ResourceNotFoundException", "TableNotFoundException", "ResourceNotFound")
# Their answers name no table: DescribeTableReplicaAutoScaling finds none, the lists are empty.
EMPTY = ("List", "DescribeTableReplicaAutoScaling")

FOREIGN_SOURCE = "This action is only supported by accounts that match the resource owner\u2019s account."


@each_row("operation", BY_NAME)
def test_a_name_is_a_name_of_the_callers(tenants: Tenants, operation: str) -> None:
    thief = tenants.thief.dynamodb()
    said = same_as_of_nobody(lambda name: told(lambda: BY_NAME[operation](thief, name)))
    assert any(code in said for code in MISSING) or operation.startswith(EMPTY), said


@each_row("operation", BY_NAME)
def test_an_arn_of_another_tenant_does_not_exist(tenants: Tenants, operation: str) -> None:
    thief = tenants.thief.dynamodb()
    said = same_as_of_nobody(lambda name: told(lambda: BY_NAME[operation](thief, tenants.victim.arn(name))))
    refusals = ("AccessDenied", "ValidationException", "ResourceNotFoundException", "ValidationError")
    assert any(code in said for code in refusals) or operation.startswith(EMPTY), said


@pytest.fixture
def own(tenants: Tenants) -> Any:
    """The thief's own table with the victim's name and key, and one row. Dropped after the test."""
    made = made_by(tenants.thief).create(
        "pk:S", "sk:S", name=MUSIC, StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    )
    client = tenants.thief.dynamodb()
    client.put_item(TableName=MUSIC, Item={**KEY, "mine": {"BOOL": True}})
    yield client
    made.delete()


@pytest.mark.parametrize(
    "operation", [name for name in BY_NAME if not name.startswith((*EMPTY, "DeleteTable"))]
)
def test_foreign_arn_does_not_resolve_to_own_table(tenants: Tenants, own: Any, operation: str) -> None:
    """It is refused as the service does without a policy ("Cross-account access with resource-based policies")."""
    before = own.scan(TableName=MUSIC)["Items"]
    said = told(lambda: BY_NAME[operation](own, tenants.victim.arn()))
    assert "AccessDenied" in said or "ValidationException" in said, said
    assert own.scan(TableName=MUSIC)["Items"] == before
    assert "AccessDenied" not in told(lambda: BY_NAME[operation](own, tenants.thief.arn()))


@pytest.mark.parametrize(
    "name", ["arn:", "arn:::::", f"arn:aws:dynamodb:{REGION}", f"arn:aws:dynamodb:{REGION}::table/x"]
)
def test_a_malformed_arn_does_not_exist(tenants: Tenants, name: str) -> None:
    thief = tenants.thief.dynamodb()
    for ask in (BY_NAME["SELECT"], BY_NAME["GetItem"], BY_ARN["ListTagsOfResource"]):
        said = told(lambda ask=ask: ask(thief, name))
        assert said.startswith(("AccessDeniedException", "ValidationException")), said


@each_row("operation", BY_ARN)
@each_row("suffix", ["", "/index/byAlbum", "/stream/2026-01-01T00:00:00.000"])
def test_tags_and_policies(tenants: Tenants, operation: str, suffix: str) -> None:
    thief = tenants.thief.dynamodb()
    said = same_as_of_nobody(
        lambda name: told(lambda: BY_ARN[operation](thief, tenants.victim.arn(name) + suffix))
    )
    assert said.startswith(("AccessDeniedException", "ValidationException")), said
    mine = same_as_of_nobody(
        lambda name: told(lambda: BY_ARN[operation](thief, tenants.thief.arn(name) + suffix))
    )
    assert mine.startswith(("ResourceNotFoundException", "ValidationException")), mine


def test_lists_are_of_the_caller(tenants: Tenants) -> None:
    thief, streams = tenants.thief.dynamodb(), tenants.thief.dynamodb(streams=True)
    assert thief.list_tables()["TableNames"] == []
    assert thief.list_tables(ExclusiveStartTableName=ABSENT)["TableNames"] == []
    [theirs] = tenants.victim.dynamodb(streams=True).list_streams()["Streams"]
    # Streams of the thief's dropped tables of that name may exist.
    for asked in ({}, {"TableName": MUSIC}):
        shown = streams.list_streams(**asked)["Streams"]
        assert all(tenants.thief.account in stream["StreamArn"] for stream in shown)
        assert theirs["StreamLabel"] not in [stream["StreamLabel"] for stream in shown]


def test_streams_shards_and_iterators(tenants: Tenants, own: Any) -> None:
    mine, theirs = tenants.thief.dynamodb(streams=True), tenants.victim.dynamodb(streams=True)
    [stream] = theirs.list_streams()["Streams"]
    arn = stream["StreamArn"]
    shard = theirs.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"][0]["ShardId"]
    seek = {"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"}
    iterator = theirs.get_shard_iterator(**seek)["ShardIterator"]
    assert theirs.get_records(ShardIterator=iterator)["Records"]
    as_mine = arn.replace(tenants.victim.account, tenants.thief.account)
    refusals = ("AccessDeniedException", "ResourceNotFoundException")
    for foreign in (arn, as_mine):
        for ask in (
            lambda foreign=foreign: mine.describe_stream(StreamArn=foreign),
            lambda foreign=foreign: mine.get_shard_iterator(**{**seek, "StreamArn": foreign}),
            lambda foreign=foreign: mine.get_records(ShardIterator=iterator.replace(arn, foreign)),
        ):
            assert told(ask).startswith(refusals)
    assert told(lambda: mine.list_streams(ExclusiveStartStreamArn=arn)).startswith(refusals)
    # The victim's shard and place in a stream of one's own.
    my_stream = own.describe_table(TableName=MUSIC)["Table"]["LatestStreamArn"]
    said = told(lambda: mine.get_shard_iterator(**{**seek, "StreamArn": my_stream}))
    assert said.startswith("ResourceNotFoundException")
    listed = mine.describe_stream(StreamArn=my_stream, ExclusiveStartShardId=shard)["StreamDescription"][
        "Shards"
    ]
    assert shard not in [each["ShardId"] for each in listed]
    records = mine.get_records(ShardIterator=iterator.replace(arn, my_stream))["Records"]
    assert all(record["dynamodb"]["Keys"] == KEY for record in records)


def test_foreign_page_tokens_lead_through_own_rows(tenants: Tenants, own: Any) -> None:
    victim = tenants.victim.dynamodb()
    last = victim.scan(TableName=MUSIC, Limit=2)["LastEvaluatedKey"]
    own.put_item(TableName=MUSIC, Item={"pk": {"S": "p"}, "sk": {"S": "s9"}, "mine": {"BOOL": True}})
    found = own.scan(TableName=MUSIC, ExclusiveStartKey=last)["Items"]
    assert [item["sk"]["S"] for item in found] == ["s9"]
    statement = f'SELECT * FROM "{MUSIC}"'
    token = victim.execute_statement(Statement=statement, Limit=2)["NextToken"]
    assert own.execute_statement(Statement=statement)["Items"]
    assert told(lambda: own.execute_statement(Statement=statement, NextToken=token)).startswith(
        "ValidationException"
    )


def test_two_tenants_may_use_one_idempotency_token(tenants: Tenants, own: Any) -> None:
    token, victim = "a-token-that-both-have-in-mind", tenants.victim.dynamodb()
    check = {
        "ConditionCheck": {"TableName": MUSIC, "Key": KEY, "ConditionExpression": "attribute_exists(pk)"}
    }
    put = {"Put": {"TableName": MUSIC, "Item": {**NEW, "mine": {"BOOL": True}}}}
    victim.transact_write_items(TransactItems=[check], ClientRequestToken=token)
    # Another request with the same token of one caller is a mismatch. With another caller's token it is the first.
    own.transact_write_items(TransactItems=[put], ClientRequestToken=token)
    assert own.get_item(TableName=MUSIC, Key=NEW)["Item"]["mine"] == {"BOOL": True}
    with pytest.raises(ClientError, match="IdempotentParameterMismatch"):
        victim.transact_write_items(TransactItems=[put], ClientRequestToken=token)
    # Nor is the very same request, under the very same token, taken for a replay of the other's.
    own.delete_item(TableName=MUSIC, Key=KEY)
    same = {"TransactItems": [check], "ClientRequestToken": "a-token-for-the-same-request"}
    victim.transact_write_items(**same)
    with pytest.raises(ClientError, match="ConditionalCheckFailed"):
        own.transact_write_items(**same)


def test_a_key_reaches_every_region_of_its_own_account_and_no_other(tenants: Tenants) -> None:
    assert tenants.victim.dynamodb("us-east-1").list_tables()["TableNames"] == []
    for access_id in ("thief", "unsaid"):
        for region in (REGION, "us-east-1"):
            assert tenants.thief.dynamodb(region, access_id=access_id).list_tables()["TableNames"] == []
    unsaid = tenants.thief.dynamodb(access_id="unsaid")
    made = unsaid.create_table(
        TableName="default",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
    )
    assert ":000000000000:" in made["TableDescription"]["TableArn"]
    unsaid.delete_table(TableName="default")


def test_the_victims_id_is_no_use_without_its_secret(tenants: Tenants) -> None:
    session = boto3.Session("victim", secret_of("thief"), region_name=REGION)
    client = session.client("dynamodb", endpoint_url=tenants.server.url, config=ONCE)
    assert told(client.list_tables).startswith("InvalidSignatureException")


def test_backups_and_restores(tenants: Tenants) -> None:
    """A backup of the victim's does not exist for the thief, who cannot list, delete or restore it."""
    thief, victim = tenants.thief.dynamodb(), tenants.victim.dynamodb()
    arn = victim.create_backup(TableName=MUSIC, BackupName="mine")["BackupDetails"]["BackupArn"]
    as_mine = arn.replace(tenants.victim.account, tenants.thief.account)
    try:
        assert [each["BackupArn"] for each in victim.list_backups()["BackupSummaries"]] == [arn]
        # The thief's own table of that name may have some.
        shown = thief.list_backups(BackupType="ALL")["BackupSummaries"]
        assert victim.describe_table(TableName=MUSIC)["Table"]["TableId"] not in [
            each["TableId"] for each in shown
        ]
        for foreign in (arn, as_mine):
            for ask in (
                lambda foreign=foreign: thief.describe_backup(BackupArn=foreign),
                lambda foreign=foreign: thief.delete_backup(BackupArn=foreign),
                lambda foreign=foreign: thief.restore_table_from_backup(
                    BackupArn=foreign, TargetTableName="stolen"
                ),
            ):
                assert told(ask).startswith(("AccessDeniedException", "BackupNotFoundException"))
        # An ARN of another account has a separate refusal, whether or not the table exists (api-quirks,
        # table-restore.md, TABLE-272: tests/adapters/dynamodb/measured/test_restores.py).
        for source, refusal in (
            ({"SourceTableName": MUSIC}, f"TableNotFoundException: Table not found: {MUSIC}"),
            ({"SourceTableArn": tenants.victim.arn()}, f"ValidationException: {FOREIGN_SOURCE}"),
            ({"SourceTableArn": tenants.victim.arn(ABSENT)}, f"ValidationException: {FOREIGN_SOURCE}"),
        ):
            found = told(
                lambda source=source: thief.restore_table_to_point_in_time(
                    **source, TargetTableName="stolen", UseLatestRestorableTime=True
                )
            )
            assert found == refusal
        assert thief.list_tables()["TableNames"] == []
    finally:
        wait_until(
            lambda: not told(lambda: victim.delete_backup(BackupArn=arn)).startswith("BackupInUseException")
        )
