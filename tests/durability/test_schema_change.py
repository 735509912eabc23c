"""A server runs while a later release migrates its database. It continues, or answers 503 and is not ready."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests
from azure.core.exceptions import HttpResponseError
from tablestore import OTSServiceError

from tablegate.gateway.app import application_of
from tablegate.gateway.store.migrating import migrate, steps
from tablegate.gateway.store.opening import open_database
from tablegate.gateway.store.sql.databases import Database
from tests.conftest import KINDS, Serve
from tests.support.across import Across
from tests.support.raw_client import RawClient, Refused
from tests.support.running import Running
from tests.support.waiting import PATIENCE_S, wait_until

CHANGE, BACK = (
    "ALTER TABLE rows RENAME COLUMN body TO contents",
    "ALTER TABLE rows RENAME COLUMN contents TO body",
)


def migrate_to(database: Database, revision: str, oldest: str, *changes: str) -> None:
    """Run `tablegate migrate` of another release. `oldest` is the oldest release that can serve the new schema."""
    with database.engine.connect() as connection:
        connection.exec_driver_sql("BEGIN")
        for statement in (
            *changes,
            f"UPDATE alembic_version SET version_num = '{revision}'",
            f"UPDATE schema_compatibility SET oldest = '{oldest}'",
        ):
            connection.exec_driver_sql(statement)
        connection.commit()


def readiness(server: Running) -> tuple[int, str]:
    reply = requests.get(f"{server.url}/readyz", timeout=PATIENCE_S)
    return reply.status_code, reply.text


NOT_READY = (503, f"the database has schema 9999 of a later release, this server has {steps()[-1]}\n")


@pytest.fixture(params=KINDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of this test alone, since its schema is changed."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'test.sqlite'}"
    else:
        url = request.getfixturevalue("postgres").empty_database()
    database = open_database(url)
    migrate(database)
    database.close()
    return url


@pytest.fixture
def server(serve: Serve, database_url: str) -> Running:
    """A server that checks the schema only when a test triggers it."""
    return serve(database_url, credentials_period=3600.0)


def test_statements_that_fail_are_503_of_each_service(server: Running, database: Database) -> None:
    across = Across(server.url)
    name = across.table("PartitionKey:STRING", "RowKey:STRING")
    key = {"PartitionKey": "p", "RowKey": "a"}
    across.put(name, key, n=1)
    migrate_to(database, "9999", "9999", CHANGE)
    with pytest.raises(OTSServiceError) as refused:
        across.put(name, key, n=2)
    assert (refused.value.get_http_status(), refused.value.get_error_code()) == (503, "OTSServerBusy")
    with pytest.raises(HttpResponseError) as failed:
        across.entities(name).upsert_entity({**key, "n": 3})
    assert (failed.value.status_code, failed.value.error_code) == (503, "ServerBusy")
    item = {attribute: {"S": value} for attribute, value in key.items()}
    with RawClient(server.url) as client:
        for operation, members in (("PutItem", {"Item": item}), ("GetItem", {"Key": item}), ("Scan", {})):
            with pytest.raises(Refused) as unavailable:
                client.call(operation, TableName=name, **members)
            assert (unavailable.value.status, unavailable.value.code) == (503, "ServiceUnavailableException")
        assert readiness(server) == NOT_READY

        migrate_to(database, steps()[-1], steps()[0], BACK)
        assert readiness(server) == (200, "ready\n")
        assert client.call("GetItem", TableName=name, Key=item)["Item"]["n"] == {"N": "1"}
        client.call("PutItem", TableName=name, Item=item)


def test_no_request_writes_to_a_schema_that_is_too_new(server: Running, database: Database) -> None:
    """Even if the statements of this release still work: what they leave may not be what the later release needs."""
    with RawClient(server.url) as client:
        client.create_table("things")
        migrate_to(database, "9999", "9999")
        assert readiness(server) == NOT_READY
        for operation, members in (
            ("PutItem", {"Item": {"p": {"S": "a"}}}),
            ("DeleteTable", {}),
        ):
            with pytest.raises(Refused) as refused:
                client.call(operation, TableName="things", **members)
            assert refused.value.status == 503


def test_background_work_notices_a_schema_that_is_too_new(
    serve: Serve, database_url: str, database: Database
) -> None:
    server = serve(database_url, credentials_period=0.01)
    store = application_of(server.app).gateway.engine._store
    migrate_to(database, "9999", "9999")
    wait_until(lambda: store._is_schema_too_new)
    migrate_to(database, steps()[-1], steps()[0])
    wait_until(lambda: not store._is_schema_too_new)


def test_a_schema_that_has_only_grown_is_served(server: Running, database: Database) -> None:
    keys = [{"p": {"S": name}} for name in "abc"]
    with RawClient(server.url) as client:

        def use() -> None:
            for key in keys:
                client.call("PutItem", TableName="things", Item=key)
            wanted = {"things": {"Keys": keys, "ConsistentRead": True}}
            assert len(client.call("BatchGetItem", RequestItems=wanted)["Responses"]["things"]) == 3
            assert client.call("GetItem", TableName="things", Key=keys[0])["Item"] == keys[0]
            assert len(client.scan("things")) == 3

        client.create_table("things")
        for _ in range(3):  # statements are prepared by then
            use()
        migrate_to(database, "9999", steps()[-1], "ALTER TABLE rows ADD COLUMN later BIGINT")
        assert readiness(server) == (200, "ready\n")
        use()
