"""An Azure account and a Table Store instance of one name are two tenants, and so is whatever DynamoDB has."""

from __future__ import annotations

import importlib

import pytest
from alembic.migration import MigrationContext
from alembic.operations import Operations
from azure.core.exceptions import ResourceNotFoundError

from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.store.opening.opening import open_database
from tests.adapters.azuretable.client import ACCOUNT
from tests.adapters.tablestore.client import plain
from tests.conftest import Serve
from tests.support.live_azure import LiveAzure
from tests.support.live_dynamodb import REGION, Live
from tests.tenants.conftest import MUSIC, Instance, Tenants

STREAM = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}


def test_the_namesake_in_another_dialect_sees_nothing(tenants: Tenants) -> None:
    """Each makes a table that the others neither see nor reach, nor are kept from making."""
    names = {}
    tenants.victim.azure.create_table("ofAzure")
    tenants.victim.tablestore().create("ofTableStore")
    try:
        names["azure"] = sorted(each.name for each in tenants.victim.azure.list_tables())
        names["tablestore"] = sorted(tenants.victim.tablestore().call("ListTable").table_names)
        names["dynamodb"] = tenants.victim.dynamodb().list_tables()["TableNames"]
        with pytest.raises(ResourceNotFoundError):
            list(tenants.victim.azure.get_table_client("ofTableStore").list_entities())
        tenants.victim.azure.create_table("ofTableStore")
        tenants.victim.azure.delete_table("ofTableStore")
        assert "ofTableStore" in tenants.victim.tablestore().call("ListTable").table_names
    finally:
        tenants.victim.azure.delete_table("ofAzure")
        tenants.victim.tablestore().call("DeleteTable", table_name="ofTableStore")
    assert names == {"azure": ["ofAzure", MUSIC], "tablestore": ["ofTableStore", MUSIC], "dynamodb": [MUSIC]}


def test_every_table_is_found_again_after_the_migration(serve: Serve, database_url: str) -> None:
    """Tables as the release before revision 0002 left them: an Azure account and a Table Store instance of one name were one
    namespace. (tests/gateway/store/test_migrations.py has the cases one by one.)"""
    server = serve(database_url, namespaces="separate")
    dynamodb, azure = Live(server.url), LiveAzure(server.url)
    tablestore = Instance(server.url, "tablegate", ACCOUNT, "tablegate")
    dynamodb.create("pk:S", name="ofDynamoDB", StreamSpecification=STREAM)
    azure.service.create_table("ofAzure").create_entity({"PartitionKey": "p", "RowKey": "r"})
    azure.service.set_service_properties(cors=[])
    tablestore.create(
        "ofTableStore", stream_spec=messages.StreamSpecification(enable_stream=True, expiration_time=24)
    )
    tablestore.put({"pk": 1}, {"a": 1}, table="ofTableStore")

    def seen() -> list[list[str]]:
        return [
            dynamodb.client.list_tables()["TableNames"],
            [each.name for each in azure.service.list_tables()],
            [row["RowKey"] for row in azure.service.get_table_client("ofAzure").list_entities()],
            list(tablestore.call("ListTable").table_names),
            [each.table_name for each in tablestore.call("ListStream").streams],
            [str(plain(tablestore.get({"pk": 1}, table="ofTableStore")))],
        ]

    before = seen()
    assert before[0] == ["ofDynamoDB"] and before[1] == ["ofAzure"] and before[3] == ["ofTableStore"]
    server.stop()
    kept = ("tables", "streams", "namespace_properties")
    bare = "replace(replace(replace(namespace, 'aws/', ''), 'azure/', ''), 'tablestore/', '')"
    database = open_database(database_url)
    with database.write() as session:
        for table in kept:
            session.execute(f"UPDATE {table} SET namespace = {bare}")
        then = [sorted(session.query(f"SELECT DISTINCT namespace FROM {table}")) for table in kept]
    assert [[place for [place] in each] for each in then] == [
        [f"000000000000/{REGION}", ACCOUNT],
        [f"000000000000/{REGION}", ACCOUNT],
        [ACCOUNT],
    ]
    # This step alone: what later steps have made is there already.
    step = importlib.import_module("tablegate.migrations.versions.0002_dialects_in_namespaces")
    with database.engine.connect() as connection:
        connection.exec_driver_sql("BEGIN")
        with Operations.context(MigrationContext.configure(connection)):
            step.upgrade()
        connection.commit()
    database.close()
    again = serve(database_url, namespaces="separate")
    dynamodb, azure = Live(again.url), LiveAzure(again.url)
    tablestore = Instance(again.url, "tablegate", ACCOUNT, "tablegate")
    assert seen() == before
