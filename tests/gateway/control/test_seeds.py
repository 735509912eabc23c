"""Seeds: each form of definition and of items makes the table that its own tool would, at the start and by the control API."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import requests

from tablegate.testing import Server, ServerFailed
from tests.conftest import Serve
from tests.support.control import Control
from tests.support.live_dynamodb import Live
from tests.support.waiting import PATIENCE_S

CREATE = {
    "TableName": "people",
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}, {"AttributeName": "at", "KeyType": "RANGE"}],
    "AttributeDefinitions": [
        {"AttributeName": name, "AttributeType": kind}
        for name, kind in (("id", "S"), ("at", "N"), ("city", "S"))
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by-city",
            "KeySchema": [{"AttributeName": "city", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
    "BillingMode": "PAY_PER_REQUEST",
}
# As of `aws cloudformation` and of `terraform show`: numbers as texts, intrinsic functions, members that CreateTable has not.
CLOUDFORMATION = {
    "AWSTemplateFormatVersion": "2010-09-09",
    "Resources": {
        "Queue": {"Type": "AWS::SQS::Queue"},
        "People": {
            "Type": "AWS::DynamoDB::Table",
            "DeletionPolicy": "Retain",
            "Properties": {
                **CREATE,
                "BillingMode": "PROVISIONED",
                "ProvisionedThroughput": {"ReadCapacityUnits": "5", "WriteCapacityUnits": "6"},
                "GlobalSecondaryIndexes": [
                    {
                        **CREATE["GlobalSecondaryIndexes"][0],  # type: ignore[dict-item]
                        "ProvisionedThroughput": {"ReadCapacityUnits": "1", "WriteCapacityUnits": "1"},
                    }
                ],
                "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
                "StreamSpecification": {"StreamViewType": "KEYS_ONLY"},
                "TimeToLiveSpecification": {"AttributeName": "ttl", "Enabled": True},
            },
        },
    },
}
TERRAFORM = {
    "version": 4,
    "terraform_version": "1.9.0",
    "resources": [
        {
            "mode": "managed", "type": "aws_dynamodb_table", "name": "people", "provider": "x",
            "instances": [{"schema_version": 1, "attributes": {
                "name": "people", "billing_mode": "PAY_PER_REQUEST", "hash_key": "id", "range_key": "at",
                "attribute": [{"name": "id", "type": "S"}, {"name": "at", "type": "N"}, {"name": "city", "type": "S"}],
                "global_secondary_index": [{
                    "name": "by-city", "hash_key": "city", "range_key": "", "projection_type": "ALL",
                    "non_key_attributes": [], "read_capacity": 0, "write_capacity": 0,
                }],
                "local_secondary_index": [], "read_capacity": 0, "write_capacity": 0, "stream_enabled": True,
                "stream_view_type": "KEYS_ONLY", "ttl": [{"attribute_name": "ttl", "enabled": True}],
                "tags": {"team": "a"}, "point_in_time_recovery": [{"enabled": False}],
            }}],
        },
        {"mode": "managed", "type": "aws_sqs_queue", "name": "q", "instances": []},
    ],
}  # fmt: skip


def described(live: Live) -> dict[str, Any]:
    table = live.client.describe_table(TableName="people")["Table"]
    return {name: table[name] for name in ("KeySchema", "AttributeDefinitions")} | {
        "indexes": [(index["IndexName"], index["KeySchema"]) for index in table["GlobalSecondaryIndexes"]]
    }


@pytest.mark.parametrize("document", [CREATE, [CREATE], {"Table": CREATE}, CLOUDFORMATION, TERRAFORM])
def test_definitions(live: Live, control: Control, document: Any) -> None:
    files = [{"name": "tables.json", "text": json.dumps(document)}]
    assert control("POST", "/seed", files=files) == {"tables": {"people": 0}}
    found = described(live)
    control("POST", "/reset")
    live.client.create_table(**CREATE)
    assert found == described(live)


@pytest.mark.parametrize("document", [CLOUDFORMATION, TERRAFORM])
def test_streams_expiry_and_throughput_of_a_definition(live: Live, control: Control, document: Any) -> None:
    control("POST", "/seed", files=[{"name": "t.json", "text": json.dumps(document)}])
    table = live.client.describe_table(TableName="people")["Table"]
    assert table["StreamSpecification"]["StreamViewType"] == "KEYS_ONLY"
    expiry = live.client.describe_time_to_live(TableName="people")["TimeToLiveDescription"]
    assert expiry == {"TimeToLiveStatus": "ENABLED", "AttributeName": "ttl"}
    units = {"PROVISIONED": (5, 6), "PAY_PER_REQUEST": (0, 0)}
    mode = table.get("BillingModeSummary", {}).get("BillingMode", "PROVISIONED")
    provisioned = table["ProvisionedThroughput"]
    assert (provisioned["ReadCapacityUnits"], provisioned["WriteCapacityUnits"]) == units[mode]


LINES = (
    '{"Item":{"id":{"S":"a"},"at":{"N":"1"},"city":{"S":"x"}}}\n\n{"Item":{"id":{"S":"b"},"at":{"N":"2"}}}\n'
)
CSV = 'id:S,at:N,b:B,tags:SS,on:BOOL,"m:M"\na,1,AAE=,"[""x"",""y""]",true,"{""n"":{""N"":""1""}}"\nb,2,,,,\n'


def test_items(live: Live, control: Control) -> None:
    tables = {"name": "tables.json", "text": json.dumps(CREATE)}
    packed = base64.b64encode(gzip.compress(LINES.encode())).decode()
    for file in (
        {"name": "people.jsonl", "text": LINES},
        {
            "name": "people.ndjson",
            "text": LINES.replace('{"Item":', "").replace("}}}", "}}").replace("}}\n", "}}\n"),
        },
        {"name": "sub/people.jsonl.gz", "base64": packed},
        {"name": "people.csv", "text": CSV},
    ):
        control("POST", "/reset")
        assert control("POST", "/seed", files=[file, tables]) == {"tables": {"people": 2}}
        found = {item["id"]["S"]: item for item in live.client.scan(TableName="people")["Items"]}
        assert found["b"] == {"id": {"S": "b"}, "at": {"N": "2"}}
        if file["name"] == "people.csv":
            assert found["a"]["b"] == {"B": b"\0\1"}
            assert (found["a"]["tags"], found["a"]["m"]) == ({"SS": ["x", "y"]}, {"M": {"n": {"N": "1"}}})
        else:
            page = live.client.query(
                TableName="people", IndexName="by-city", KeyConditionExpression="city = :c",
                ExpressionAttributeValues={":c": {"S": "x"}},
            )  # fmt: skip
            assert page["Count"] == 1
    # An existing table stays and gets the items.
    assert control("POST", "/seed", files=[tables]) == {"tables": {"people": 0}}
    assert live.client.scan(TableName="people")["Count"] == 2


def export(folder: Path) -> None:
    """A full export, laid out as the service does (docs/migrate/file-formats.md)."""
    data = folder / "AWSDynamoDB" / "01-abc" / "data"
    data.mkdir(parents=True)
    (data / "x.json.gz").write_bytes(gzip.compress(LINES.replace("\n\n", "\n").encode()))
    arn = "arn:aws:dynamodb:us-east-1:1:table/people"
    (data.parent / "manifest-summary.json").write_text(
        json.dumps({"version": "2020-06-30", "tableArn": arn, "itemCount": 2})
    )
    line = {"itemCount": 2, "dataFileS3Key": "p/AWSDynamoDB/01-abc/data/x.json.gz"}
    (data.parent / "manifest-files.json").write_text(json.dumps(line) + "\n")


def test_two_items_of_a_file_with_one_key_are_refused(live: Live, control: Control) -> None:
    """`1.0` and `1` are one number. The items of another file replace stored ones."""
    create = {
        "TableName": "numbers",
        "KeySchema": [{"AttributeName": "n", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "n", "AttributeType": "N"}],
        "BillingMode": "PAY_PER_REQUEST",
    }
    items = [*range(600), "1.0"]
    lines = "".join(json.dumps({"n": {"N": str(number)}}) + "\n" for number in items)
    control("POST", "/reset")
    files = [{"name": "t.json", "text": json.dumps(create)}, {"name": "numbers.jsonl", "text": lines}]
    told = control("POST", "/seed", status=400, files=files)
    assert "numbers.jsonl: item 601 has the key of an earlier item" in str(told)
    for _ in range(2):
        assert control("POST", "/seed", files=[{"name": "numbers.csv", "text": "n:N\n1\n2\n"}]) == {
            "tables": {"numbers": 2}
        }


def test_a_server_can_start_from_a_folder_with_an_export(tmp_path: Path) -> None:
    (tmp_path / "tables.json").write_text(json.dumps(CREATE))
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.json").write_text("nothing")
    export(tmp_path)
    with Server(seed=tmp_path) as server:
        assert server.dynamodb_client().scan(TableName="people")["Count"] == 2


@pytest.mark.extended
def test_a_failed_seed_is_reported_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "people.jsonl").write_text(LINES)
    with pytest.raises(
        ServerFailed, match=r"seed: people\.jsonl: there is no table people\. Add a \.json file"
    ):
        Server(seed=tmp_path).start()
    with pytest.raises(ServerFailed, match="is not a folder"):
        Server(seed=tmp_path / "nothing").start()


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ([{"name": "a.json", "text": "{"}], "a.json: not JSON"),
        ([{"name": "a.json", "text": "{}"}], "a.json: a table needs a TableName"),
        ([{"name": "a.json", "text": '{"TableName": "x", "KeySchema": 5}'}], "a.json: "),
        ([{"name": "a.json", "text": '{"resources": [{"type": "aws_dynamodb_table"}]}'}], "a.json: "),
        ([{"name": "a.jsonl", "text": "{}\n"}], "a.jsonl: "),
        ([{"name": "a.jsonl", "text": '{"Item": {"id": 5}}\n'}], "a.jsonl: line 1"),
        (
            [{"name": "a.csv", "text": "id,n\n1,2\n"}],
            "a.csv: the first line must name attributes with their types",
        ),
        ([{"name": "a.csv", "text": "id:S,n:N\n1\n"}], "a.csv: row 2 has 1 cells"),
        ([{"name": "a.csv", "text": "id:S,n:N\n1,x\n"}], "a.csv: row 2"),
        ([{"name": "a.csv", "text": ""}], "a.csv: "),
        ([{"name": "a.csv", "text": 'id:S,n:N\n1,"2\n3,4\n'}], "a.csv: row 2: unexpected end of data"),
        ([{"name": "a.csv", "text": "id:S,id:N\n1,2\n"}], "a.csv: the first line names an attribute twice"),
        (
            [
                {"name": "a.json", "text": json.dumps(CREATE)},
                {
                    "name": "x/manifest-summary.json",
                    "text": '{"tableArn": "arn:aws:dynamodb:a:1:table/people"}',
                },
                {
                    "name": "x/manifest-files.json",
                    "text": '{"itemCount": 3, "dataFileS3Key": "x/data/y.json"}',
                },
                {"name": "x/data/y.json", "text": LINES},
            ],
            "x/manifest-summary.json: x/data/y.json has 2 items, but manifest-files.json has 3",
        ),
        ([{"name": "a.jsonl.gz", "base64": base64.b64encode(b"\x1f\x8b\x08junk").decode()}], "a.jsonl.gz: "),
        ([{"name": "x/manifest-summary.json", "text": "{}"}], "manifest-files.json is missing"),
        ([{"name": "a.json"}], "each file must have a relative name"),
        ([{"name": "/a.json", "text": "{}"}], "each file must have a relative name"),
        ([{"name": "a.json", "base64": "?"}], "a.json: "),
        ([1], "files must be a list of objects"),
    ],
)
def test_a_bad_seed_by_the_control_api(shared_server: str, files: Any, says: str) -> None:
    answer = requests.post(f"{shared_server}/_tablegate/seed", json={"files": files}, timeout=PATIENCE_S)
    assert (answer.status_code, answer.json()["error"]) == (400, "BadRequest"), answer.text
    assert says in answer.json()["message"]


def test_a_seed_can_name_another_account_and_region(serve: Serve, sqlite_url: str) -> None:
    server = serve(sqlite_url, namespaces="separate")
    control = Control(server.url)
    files = [{"name": "tables.json", "text": json.dumps(CREATE)}]
    control("POST", "/seed", files=files, account="123456789012", region="eu-west-1")
    live = Live(server.url)
    other = live.session.client("dynamodb", region_name="eu-west-1", endpoint_url=server.url, aws_access_key_id="123456789012",
                                aws_secret_access_key="x")  # fmt: skip
    assert (other.list_tables()["TableNames"], live.client.list_tables()["TableNames"]) == (["people"], [])
    control("POST", "/seed", status=400, files=files, region="eu-west-1")
