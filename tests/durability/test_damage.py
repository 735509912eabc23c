"""Damaged data is given to no client: the dialect's internal error, a line of the log, and a server that is not ready."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
import requests
from azure.core.exceptions import HttpResponseError
from tablestore import OTSServiceError

from tablegate.gateway.store.sql.databases import Database
from tests.conftest import Serve
from tests.support.across import Across
from tests.support.raw_client import RawClient, Refused
from tests.support.running import Process
from tests.support.waiting import PATIENCE_S


def readiness(url: str) -> tuple[int, str]:
    reply = requests.get(f"{url}/readyz", timeout=PATIENCE_S)
    return reply.status_code, reply.text


def test_a_damaged_row_is_an_internal_error_of_each_service(
    serve: Serve, database_url: str, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    url = serve(database_url).url
    across = Across(url)
    name = across.table("PartitionKey:STRING", "RowKey:STRING")
    for row in "ab":
        across.put(name, {"PartitionKey": "p", "RowKey": row}, n=1)
    assert across.entities(name).get_entity("p", "a")["n"].value == 1
    with database.write() as session:
        assert session.execute("UPDATE rows SET size_bytes = size_bytes + 1") == 2
    assert readiness(url) == (200, "ready\n")

    with pytest.raises(OTSServiceError) as refused:
        across.get(name, {"PartitionKey": "p", "RowKey": "a"})
    assert (refused.value.get_http_status(), refused.value.get_error_code()) == (
        500,
        "OTSInternalServerError",
    )
    with pytest.raises(HttpResponseError) as failed:
        across.entities(name).get_entity("p", "a")
    assert (failed.value.status_code, failed.value.error_code) == (500, "InternalError")
    # SDKs of DynamoDB try again after this one.
    with RawClient(url) as client, pytest.raises(Refused) as internal:
        client.call("GetItem", TableName=name, Key={"PartitionKey": {"S": "p"}, "RowKey": {"S": "a"}})
    assert (internal.value.status, internal.value.code) == (500, "InternalServerError")

    status, text = readiness(url)
    assert status == 503
    told = [record for record in caplog.records if record.getMessage() == "stored data is damaged"]
    [facts] = [record.facts for record in told]  # type: ignore[attr-defined]
    assert facts["table"] == name
    assert f"row {facts['row']} of table {name}" in text
    across.dynamodb.client.delete_table(TableName=name)


def test_without_checksums_damaged_data_are_returned(
    serve: Serve, database_url: str, database: Database
) -> None:
    url = serve(database_url, verify_checksums=False).url
    with RawClient(url) as client:
        client.create_table("things")
        client.call("PutItem", TableName="things", Item={"p": {"S": "a"}})
        with database.write() as session:
            session.execute("UPDATE rows SET size_bytes = size_bytes + 1")
        assert client.call("GetItem", TableName="things", Key={"p": {"S": "a"}})["Item"] == {"p": {"S": "a"}}
    assert readiness(url)[0] == 200


def test_a_damaged_page_of_sqlite_is_found(tmp_path: Path, serve: Serve, sqlite_template: Path) -> None:
    path = tmp_path / "a.sqlite"
    path.write_bytes(sqlite_template.read_bytes())
    with sqlite3.connect(path) as connection:
        [(root,)] = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'rows'")
        [(page_bytes,)] = connection.execute("PRAGMA page_size")
    connection.close()
    with path.open("r+b") as file:
        file.seek((root - 1) * page_bytes)
        file.write(b"\xee" * 100)
    url = serve(f"sqlite:///{path}").url
    with RawClient(url) as client:
        client.create_table("things")
        with pytest.raises(Refused) as refused:
            client.call("PutItem", TableName="things", Item={"p": {"S": "a"}})
    assert refused.value.status == 500
    assert readiness(url) == (503, "damaged data was read: database disk image is malformed\n")


def test_every_process_of_a_server_reports_damage(tmp_path: Path) -> None:
    """Whichever process has read it: probes come to any of them."""
    process = Process(tmp_path, "--workers", "3")
    process.wait_until_ready()
    try:
        with RawClient(process.url) as client:
            client.create_table("things")
            client.call("PutItem", TableName="things", Item={"p": {"S": "a"}})
            with sqlite3.connect(tmp_path / "tablegate.sqlite") as connection:
                connection.execute("UPDATE rows SET size_bytes = size_bytes + 1")
            connection.close()
            with pytest.raises(Refused):
                client.call("GetItem", TableName="things", Key={"p": {"S": "a"}})
        assert {readiness(process.url)[0] for _ in range(24)} == {503}
    finally:
        code, errors = process.terminate()
    assert (code, errors.count("stored data is damaged")) == (0, 1)
