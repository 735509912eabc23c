"""The wheel with the locked dependencies on arm64, under QEMU: each compiled module loads, and the SDKs of the three
dialects write and read rows.

    sudo apt-get install qemu-user-static mmdebstrap
    make soak ARGS=tests/command_line/test_arm64.py
"""

from __future__ import annotations

from collections.abc import Iterator

import boto3
import pytest
import tablestore as ots
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableServiceClient
from botocore.config import Config

from tests.adapters.azuretable.client import ACCOUNT, DEV_KEY
from tests.support import arm64, packages
from tests.support.running import Process
from tests.support.soak import minutes_long

pytestmark = [
    pytest.mark.soak,
    minutes_long,
    pytest.mark.skipif(bool(arm64.MISSING), reason=f"not on this machine: {', '.join(arm64.MISSING)}"),
]


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> arm64.Installation:
    folder = tmp_path_factory.mktemp("arm64")
    wheel, _ = packages.build(folder / "dist")
    return arm64.install(wheel, folder)


def test_the_installation_has_the_machine_and_python_of_the_image(installation: arm64.Installation) -> None:
    shown = installation.run("-c", "import platform; print(platform.machine(), platform.python_version())")
    assert shown.startswith(f"aarch64 {arm64.python_of_image()}.")


def test_each_compiled_module_loads(installation: arm64.Installation) -> None:
    names = installation.compiled_modules()
    assert {
        "cryptography.hazmat.bindings._rust",
        "orjson.orjson",
        "psycopg_binary._psycopg",
        "uvloop.loop",
    } <= {*names}
    # Those of psycopg_binary want psycopg to be imported first.
    installation.run("-c", f"import importlib, psycopg; [*map(importlib.import_module, {names})]")


@pytest.fixture(params=["memory", "postgresql"])
def url(
    installation: arm64.Installation, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The URL of a server on arm64."""
    flags = ["--memory"]
    if request.param == "postgresql":
        flags = ["--database", request.getfixturevalue("postgres").empty_database()]
    folder, command = tmp_path_factory.mktemp("served"), (*installation.python, "-m", "tablegate")
    server = Process(folder, *flags, environment=installation.environment, command=command)
    assert server.url, server.end()
    yield server.url
    assert server.terminate()[0] == 0


def test_three_sdks_write_and_read(url: str) -> None:
    once = Config(retries={"total_max_attempts": 1}, read_timeout=arm64.BOUND_S)
    key = {"aws_access_key_id": "any", "aws_secret_access_key": "any", "region_name": "us-east-1"}
    songs = boto3.resource("dynamodb", endpoint_url=url, config=once, **key).create_table(
        TableName="songs",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "song", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "song", "AttributeType": "S"}],
    )
    songs.put_item(
        Item={"song": "Feeling Good", "year": 1965}, ConditionExpression="attribute_not_exists(song)"
    )
    assert songs.get_item(Key={"song": "Feeling Good"})["Item"]["year"] == 1965

    service = TableServiceClient(
        f"{url}/{ACCOUNT}",
        credential=AzureNamedKeyCredential(ACCOUNT, DEV_KEY),
        retry_total=0,
        read_timeout=arm64.BOUND_S,
    )
    people = service.create_table("people")
    people.create_entity({"PartitionKey": "jazz", "RowKey": "nina", "Born": 1933})
    assert [entity["Born"] for entity in people.query_entities("Born lt 1934")] == [1933]

    client = ots.OTSClient(
        url, "tablegate", "tablegate", "arm64", retry_policy=ots.NoRetryPolicy(), socket_timeout=arm64.BOUND_S
    )
    nothing = ots.ReservedThroughput(ots.CapacityUnit(0, 0))
    client.create_table(ots.TableMeta("plays", [("k", "STRING")]), ots.TableOptions(), nothing)
    row = ots.Row([("k", "a")], [("n", 7), ("title", "Feeling Good")])
    client.put_row("plays", row)
    assert [
        each[:2] for each in client.get_row("plays", row.primary_key)[1].attribute_columns
    ] == row.attribute_columns
