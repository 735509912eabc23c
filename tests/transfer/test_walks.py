"""The walks of docs/migrate/tutorial.md, run from their text: each shell block in order, in one shell for each chapter.

The services are two live tablegate servers, which the SDKs find by their usual environment. Examples in the text (a
database, a port) are replaced by real values. Steps that only a user can run (pip install) are omitted.
"""

from __future__ import annotations

import shutil
import socket
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from azure.data.tables import EdmType, EntityProperty, TableServiceClient

from tablegate.gateway.security.credential_store import CredentialStore
from tablegate.gateway.security.credentials import Credential, Scheme
from tablegate.gateway.security.grant_store import ALL
from tablegate.gateway.store.opening import open_database
from tablegate.gateway.store.store import Store
from tests.conftest import Serve
from tests.support.databases import PostgresServer
from tests.support.document_blocks import DocumentShell, blocks_of, chapter_of
from tests.support.running import ROOT, Running

pytestmark = pytest.mark.clients

TEXT = (ROOT / "docs/migrate/tutorial.md").read_text()
REGION = "eu-central-1"
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
SECRET_KEY = "c2VjcmV0IGtleSBvZiBhIHRlc3QsIDMyIGJ5dGVzIGxvbmc="
CUSTOMER = {
    "PartitionKey": "a",
    "Large": EntityProperty(2**60, EdmType.INT64),
    "Small": 7,
    "Double": 1.5,
    "Id": uuid.UUID("01234567-89ab-cdef-0123-456789abcdef"),
    "Since": datetime(2020, 1, 2, 3, 4, 5, 678901, UTC),
    "Blob": b"\0\xff",
}


def walk(folder: Path, chapter: str, replaced: dict[str, str], **environment: str) -> DocumentShell:
    """A shell that has run the blocks of a chapter, with these words instead of others."""
    keys = {"AWS_ACCESS_KEY_ID": "somebody", "AWS_SECRET_ACCESS_KEY": "a secret", **environment}
    shell = DocumentShell(folder, replaced, **keys)
    try:
        shell.run(blocks_of(chapter_of(TEXT, chapter)))
    except BaseException:
        shell.close()
        raise
    return shell


@pytest.fixture
def cloud(serve: Serve, sqlite_template: Path, tmp_path: Path) -> Running:
    """Return the replacement of the clouds."""
    path = tmp_path / "cloud.sqlite"
    shutil.copy(sqlite_template, path)
    database = open_database(f"sqlite:///{path}")
    CredentialStore(Store(database), lambda: SECRET_KEY).add(
        Credential(Scheme.AZURE, "myaccount", (AZURE_KEY, AZURE_KEY)), [ALL]
    )
    database.close()
    return serve(f"sqlite:///{path}", secret_key=SECRET_KEY)


@pytest.fixture
def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def dynamodb(url: str) -> Any:
    return boto3.resource(
        "dynamodb",
        region_name=REGION,
        endpoint_url=url,
        aws_access_key_id="somebody",
        aws_secret_access_key="a",
    )


def make_orders(url: str) -> None:
    table = dynamodb(url).create_table(
        TableName="orders",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": "id", "AttributeType": "S"},
            {"AttributeName": "line", "AttributeType": "N"},
        ],
        KeySchema=[
            {"AttributeName": "id", "KeyType": "HASH"},
            {"AttributeName": "line", "KeyType": "RANGE"},
        ],
    )
    with table.batch_writer() as batch:
        for number in range(60):
            batch.put_item(
                Item={
                    "id": f"order#{number // 3}",
                    "line": number % 3,
                    "tags": {"a", "b"},
                    "nested": {"n": [1, None, b"x"]},
                }
            )


def test_the_walk_from_dynamodb_to_postgresql_runs(
    cloud: Running, postgres: PostgresServer, tmp_path: Path, free_port: int
) -> None:
    make_orders(cloud.url)
    with postgres.new_database() as database:
        replaced = {
            "postgresql://tablegate@localhost/tablegate": database.replace(
                "postgresql+psycopg", "postgresql"
            ),
            "8000": str(free_port),
        }
        shell = walk(
            tmp_path,
            "From DynamoDB to your own PostgreSQL",
            replaced,
            AWS_ENDPOINT_URL_DYNAMODB=cloud.url,
            AWS_ENDPOINT_URL_DYNAMODB_STREAMS=cloud.url,
        )
        try:
            moved = dynamodb(f"http://127.0.0.1:{free_port}").Table("orders")
            item = moved.get_item(Key={"id": "order#7", "line": 2})["Item"]
            assert item["tags"] == {"a", "b"}
            assert moved.scan(Select="COUNT")["Count"] == 60
        finally:
            shell.close()


def test_the_walk_from_azure_table_to_dynamodb_runs(cloud: Running, tmp_path: Path) -> None:
    place = f"DefaultEndpointsProtocol=http;AccountName=myaccount;AccountKey={AZURE_KEY};TableEndpoint={cloud.url}/myaccount;"
    with TableServiceClient.from_connection_string(place) as service:
        table = service.create_table("customers")
        for number in range(40):
            table.create_entity({**CUSTOMER, "RowKey": str(number)})
    walk(
        tmp_path,
        "From Azure Table to DynamoDB",
        {"dynamodb://customers": "dynamodb://copies"},  # one server has one table `customers` for both APIs
        AZURE_STORAGE_CONNECTION_STRING=place,
        AWS_ENDPOINT_URL_DYNAMODB=cloud.url,
        AWS_ENDPOINT_URL_DYNAMODB_STREAMS=cloud.url,
    ).close()
    item = dynamodb(cloud.url).Table("copies").get_item(Key={"PartitionKey": "a", "RowKey": "7"})["Item"]
    assert (item["Large"], item["Id"]) == (2**60, "01234567-89ab-cdef-0123-456789abcdef")
