"""`mock_aws` in the forms in which suites use moto's decorator of that name. moto itself is compared where it can be."""

from __future__ import annotations

import asyncio
import os
import re
import unittest
from collections.abc import Callable
from typing import Any

import boto3
import moto
import pytest
from botocore.exceptions import ClientError, NoRegionError

from tablegate.testing import mock_aws
from tests.support.document_blocks import chapter_of
from tests.support.running import ROOT

TABLE: dict[str, Any] = {
    "TableName": "things",
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
}
ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/things"


def client() -> Any:
    return boto3.client("dynamodb", region_name="us-east-1")


def create() -> str:
    """Create the table, which fails if it is there already, and return its ARN."""
    return str(client().create_table(**TABLE)["TableDescription"]["TableArn"])


def tables() -> list[str]:
    names: list[str] = client().list_tables()["TableNames"]
    return names


BOTH = pytest.mark.parametrize("mock", [mock_aws, moto.mock_aws], ids=["tablegate", "moto"])


@BOTH
def test_each_use_begins_empty(mock: Callable[..., Any]) -> None:
    @mock
    def bare() -> str:
        return create()

    @mock()
    def called() -> str:
        return create()

    assert [bare(), called(), bare()] == [ARN] * 3
    with mock(config={"core": {"reset_boto3_session": True}}):
        assert create() == ARN


@BOTH
def test_a_mock_is_empty_after_each_start(mock: Callable[..., Any]) -> None:
    started = mock()
    started.start()
    create()
    started.stop()
    started.start()
    assert tables() == []
    started.stop()


def test_a_stop_without_a_start_is_an_error() -> None:
    with pytest.raises(RuntimeError, match=r"Called stop\(\) before start\(\)"):
        mock_aws().stop()
    with mock_aws():
        create()


@BOTH
def test_an_inner_mock_shares_the_tables_of_the_outer_one(mock: Callable[..., Any]) -> None:
    with mock():
        create()
        with mock():
            assert tables() == ["things"]
        assert tables() == ["things"]


@BOTH
def test_each_test_of_a_test_case_begins_empty_at_its_set_up(mock: Callable[..., Any]) -> None:
    @mock
    class Things(unittest.TestCase):
        def setUp(self) -> None:
            create()

        def test_one(self) -> None:
            assert tables() == ["things"]

        def test_two(self) -> None:
            assert tables() == ["things"]

        def tearDown(self) -> None:
            client().delete_table(TableName="things")

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Things).run(result)
    assert (result.testsRun, result.failures, result.errors) == (2, [], [])


@BOTH
@pytest.mark.parametrize("set_up", [True, False])
def test_each_test_of_a_plain_class_begins_empty(mock: Callable[..., Any], set_up: bool) -> None:
    class Things:
        def test_one(self) -> None:
            assert self.made() == ARN

        def made(self) -> str:
            return create()

    class Filled(Things):
        def setup_method(self) -> None:
            create()

        def test_one(self) -> None:
            assert tables() == ["things"]

    decorated = mock(Filled if set_up else Things)
    for _ in range(2):
        case = decorated()
        if set_up:
            case.setup_method()
        case.test_one()


def test_the_mock_lasts_while_a_coroutine_runs() -> None:
    @mock_aws
    async def work() -> str:
        await asyncio.sleep(0)
        return create()

    assert [asyncio.run(work()), asyncio.run(work())] == [ARN] * 2


def test_mock_aws_keeps_the_region_and_restores_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "own")
    monkeypatch.setenv("AWS_PROFILE", "of another account")
    before = dict(os.environ)
    with mock_aws():
        made = boto3.client("dynamodb").create_table(**TABLE)
        assert made["TableDescription"]["TableArn"] == ARN.replace("us-east-1", "eu-west-1")
    assert dict(os.environ) == before


@BOTH
def test_without_a_region_none_is_chosen(mock: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Libraries fall back to a region of their own, and would miss the tables in another one."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    with mock(), pytest.raises(NoRegionError):
        boto3.client("dynamodb")


@BOTH
def test_each_region_has_its_own_tables(mock: Callable[..., Any]) -> None:
    with mock():
        create()
        elsewhere = boto3.client("dynamodb", region_name="ca-central-1")
        with pytest.raises(elsewhere.exceptions.ResourceNotFoundException):
            elsewhere.describe_table(TableName="things")
        elsewhere.create_table(**TABLE)
        assert tables() == ["things"]


@BOTH
def test_all_made_up_keys_are_of_one_account(mock: Callable[..., Any]) -> None:
    with mock():
        create()
        for key in ("testing", "AKIAIOSFODNN7EXAMPLE"):
            session = boto3.Session(key, "secret", region_name="us-east-1")
            found = session.client("dynamodb").describe_table(TableName="things")
            assert found["Table"]["TableArn"] == ARN


def test_a_client_of_an_earlier_mock_reaches_the_server_of_a_later_one() -> None:
    with mock_aws() as mock:
        made = client()
        mock.server.control.advance(10 * 86400)  # the next mock needs another server
    with mock_aws() as mock:
        assert mock.server.control.clock()["ahead_ms"] < 1000
        made.create_table(**TABLE)
        assert tables() == ["things"]


def test_moto_serves_the_other_services() -> None:
    with mock_aws(), moto.mock_aws():
        boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="pictures")
        # moto replaces the credentials, and with them the account of the ARN.
        create()
        assert client().describe_table(TableName="things")["Table"]["TableStatus"] == "ACTIVE"
    with mock_aws():
        assert tables() == []


# Requests of docs/test/moving.md that moto accepts and AWS refuses.

KEY = {"id": {"S": "1"}}
ITEM = {**KEY, "tags": {"SS": ["a"]}, "cents": {"N": "1"}, "more": {"M": {}}}
VALUE = {":v": {"N": "1"}}


def on_table(operation: str, **request: Any) -> Callable[[], object]:
    """A request for the table with one item."""

    def send() -> object:
        create()
        client().put_item(TableName="things", Item=ITEM)
        return getattr(client(), operation)(TableName="things", **request)

    return send


def on_account(operation: str, times: int = 1, **request: Any) -> Callable[[], object]:
    """A request that names its table itself, sent this number of times."""

    def send() -> object:
        create()
        return [getattr(client(), operation)(**request) for _ in range(times)]

    return send


def with_index(name: str = "by-cents", kind: str = "N", **projection: Any) -> dict[str, Any]:
    """CreateTable with an index."""
    attributes = [*TABLE["AttributeDefinitions"], {"AttributeName": "cents", "AttributeType": kind}]
    index = {
        "IndexName": name,
        "KeySchema": [{"AttributeName": "cents", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL", **projection},
    }
    return {**TABLE, "AttributeDefinitions": attributes, "GlobalSecondaryIndexes": [index]}


def new_table(**request: Any) -> Callable[[], object]:
    return lambda: client().create_table(**request)


def put_with_text_in_the_index() -> object:
    client().create_table(**with_index())
    return client().put_item(TableName="things", Item={**KEY, "cents": {"S": "x"}})


REFUSED_BY_AWS: dict[str, Callable[[], object]] = {
    "a value in `ExpressionAttributeValues` that no expression uses": on_table(
        "put_item", Item=ITEM, ConditionExpression="attribute_exists(id)", ExpressionAttributeValues=VALUE
    ),
    "a key attribute in the filter of a query": on_table(
        "query",
        KeyConditionExpression="id = :v",
        FilterExpression="id = :v",
        ExpressionAttributeValues={":v": {"S": "1"}},
    ),
    "two conditions on one key attribute": on_table(
        "query",
        KeyConditionExpression="id = :v AND id = :v",
        ExpressionAttributeValues={":v": {"S": "1"}},
    ),
    "a key of another type in a read": on_table("get_item", Key={"id": {"N": "1"}}),
    "paths that overlap in a projection": on_table(
        "get_item", Key=KEY, ProjectionExpression="more, more.cents"
    ),
    "`<` with a set": on_table(
        "scan", FilterExpression="tags < :v", ExpressionAttributeValues={":v": {"SS": ["b"]}}
    ),
    "`begins_with` with a number": on_table(
        "scan", FilterExpression="begins_with(cents, :v)", ExpressionAttributeValues=VALUE
    ),
    "`BETWEEN` with a lower bound above the upper one": on_table(
        "scan",
        FilterExpression="cents BETWEEN :v AND :w",
        ExpressionAttributeValues={**VALUE, ":w": {"N": "0"}},
    ),
    "`IN` with more than 100 values": on_table(
        "scan",
        FilterExpression=f"cents IN ({', '.join([':v'] * 101)})",
        ExpressionAttributeValues=VALUE,
    ),
    "an expression of more than 4,096 bytes": on_table(
        "scan", FilterExpression="cents = :v" + " OR cents = :v" * 300, ExpressionAttributeValues=VALUE
    ),
    "a set with a value twice": on_table("put_item", Item={**KEY, "tags": {"SS": ["a", "a"]}}),
    "a number of more than 38 digits": on_table("put_item", Item={**KEY, "cents": {"N": "1" * 39}}),
    "an attribute of the wrong type for a key of an index": put_with_text_in_the_index,
    "a batch that puts and deletes one item": on_account(
        "batch_write_item",
        RequestItems={"things": [{"PutRequest": {"Item": ITEM}}, {"DeleteRequest": {"Key": KEY}}]},
    ),
    "a batch of more than 25 writes": on_account(
        "batch_write_item",
        RequestItems={"things": [{"PutRequest": {"Item": {"id": {"S": str(n)}}}} for n in range(26)]},
    ),
    "PartiQL `INSERT` of an item that exists": on_account(
        "execute_statement", times=2, Statement="INSERT INTO things VALUE {'id': '9'}"
    ),
    "enabling time to live twice": on_account(
        "update_time_to_live",
        times=2,
        TableName="things",
        TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires"},
    ),
    "a table name of two characters": new_table(**{**TABLE, "TableName": "ab"}),
    "an index name with `/`": new_table(**with_index("by/cents")),
    "an index projection `INCLUDE` without attributes": new_table(**with_index(ProjectionType="INCLUDE")),
    "a local index without a sort key": new_table(
        **{
            **TABLE,
            "AttributeDefinitions": with_index()["AttributeDefinitions"],
            "KeySchema": [*TABLE["KeySchema"], {"AttributeName": "cents", "KeyType": "RANGE"}],
            "LocalSecondaryIndexes": with_index()["GlobalSecondaryIndexes"],
        }
    ),
    "more than 20 global indexes": new_table(
        **{
            **with_index(),
            "GlobalSecondaryIndexes": [
                with_index(f"by-cents-{n}")["GlobalSecondaryIndexes"][0] for n in range(21)
            ],
        }
    ),
}


def errors_on_the_page() -> dict[str, str]:
    chapter = chapter_of((ROOT / "docs/test/moving.md").read_text(), "What moto accepts and AWS refuses")
    return dict(re.findall(r"^\| (.+?) \| `(.+)` \|$", chapter, re.MULTILINE))


@pytest.mark.parametrize("case", REFUSED_BY_AWS)
def test_requests_that_aws_refuses_and_moto_accepts_are_refused(case: str) -> None:
    with moto.mock_aws():
        REFUSED_BY_AWS[case]()
    with mock_aws(), pytest.raises(ClientError, match=re.escape(errors_on_the_page()[case])):
        REFUSED_BY_AWS[case]()


def test_the_page_lists_every_tested_request() -> None:
    assert [*errors_on_the_page()] == [*REFUSED_BY_AWS]
