"""azure-cosmosdb-table 1.0.6, the Python SDK before azure-data-tables, in front of a live server: its whole surface.

Its endpoint is path style, and its batches name their entities from the table on (tableservice.py, commit_batch).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.common import AzureConflictHttpError, AzureHttpError, AzureMissingResourceHttpError
from azure.cosmosdb.table import (
    EdmType,
    EntityProperty,
    TableBatch,
    TablePayloadFormat,
    TablePermissions,
    TableService,
)
from azure.cosmosdb.table.common.models import (
    AccessPolicy,
    AccountPermissions,
    CorsRule,
    Logging,
    Metrics,
    ResourceTypes,
    RetentionPolicy,
)
from azure.cosmosdb.table.common.retry import no_retry
from azure.cosmosdb.table.models import AzureBatchOperationError

from tests.adapters.azuretable.client import ACCOUNT, DEV_KEY
from tests.support.running import Running

ROW = {"PartitionKey": "p", "RowKey": "r"}


def client_of(server: Running, **changed: str) -> TableService:
    parts = {
        "DefaultEndpointsProtocol": "http",
        "AccountName": ACCOUNT,
        "AccountKey": DEV_KEY,
        "TableEndpoint": f"{server.url}/{ACCOUNT}",
        **changed,
    }
    text = ";".join(f"{name}={value}" for name, value in parts.items() if value)
    made = TableService(connection_string=text)
    made.retry = no_retry
    return made


@pytest.fixture
def client(server: Running) -> TableService:
    return client_of(server)


@pytest.fixture
def people(client: TableService) -> Iterator[TableService]:
    assert client.create_table("old2")
    return client


def in_an_hour() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None) + timedelta(hours=1)


def names(client: TableService, **options: Any) -> list[str]:
    return [each.RowKey for each in client.query_entities("old2", **options)]


def test_tables(client: TableService) -> None:
    assert client.create_table("old1")
    assert not client.create_table("old1")
    with pytest.raises(AzureConflictHttpError):
        client.create_table("old1", fail_on_exist=True)
    assert client.exists("old1")
    assert not client.exists("old3")
    client.create_table("old2")
    first = client.list_tables(num_results=1)
    assert [table.name for table in first] == ["old1"]
    assert [table.name for table in client.list_tables(num_results=1, marker=first.next_marker)] == ["old2"]
    assert client.delete_table("old1")
    assert not client.delete_table("old1")
    with pytest.raises(AzureMissingResourceHttpError):
        client.delete_table("old1", fail_not_exist=True)


def test_entities_from_insert_to_delete(people: TableService) -> None:
    etag = people.insert_entity("old2", {**ROW, "a": 1, "b": "x"})
    with pytest.raises(AzureConflictHttpError):
        people.insert_entity("old2", ROW)
    assert people.get_entity("old2", "p", "r").etag == etag
    merged = people.merge_entity("old2", {**ROW, "a": 2}, if_match=etag)
    found = people.get_entity("old2", "p", "r")
    assert (found.a, found.b, found.etag) == (2, "x", merged)
    with pytest.raises(AzureHttpError) as caught:
        people.update_entity("old2", {**ROW, "a": 3}, if_match=etag)
    assert caught.value.status_code == 412
    people.update_entity("old2", {**ROW, "a": 3})
    assert "b" not in people.get_entity("old2", "p", "r")
    people.insert_or_merge_entity("old2", {**ROW, "c": True})
    people.insert_or_replace_entity("old2", {"PartitionKey": "p", "RowKey": "s", "d": 1.5})
    assert people.get_entity("old2", "p", "s").d == 1.5
    assert people.get_entity("old2", "p", "r").c is True
    people.delete_entity("old2", "p", "s", if_match=people.get_entity("old2", "p", "s").etag)
    people.delete_entity("old2", "p", "r")
    with pytest.raises(AzureMissingResourceHttpError):
        people.get_entity("old2", "p", "r")


@pytest.mark.parametrize(
    "accept",
    [
        TablePayloadFormat.JSON_NO_METADATA,
        TablePayloadFormat.JSON_MINIMAL_METADATA,
        TablePayloadFormat.JSON_FULL_METADATA,
    ],
)
def test_every_type_is_read_at_every_level_of_metadata(people: TableService, accept: str) -> None:
    when, identity = datetime(2020, 2, 3, 4, 5, 6, tzinfo=UTC), uuid.UUID(int=7)
    people.insert_entity(
        "old2",
        {
            **ROW,
            "text": "é'",
            "number": EntityProperty(EdmType.INT32, 5),
            "big": EntityProperty(EdmType.INT64, 2**40),
            "double": 1.25,
            "infinite": EntityProperty(EdmType.DOUBLE, float("inf")),
            "flag": False,
            "when": when,
            "guid": EntityProperty(EdmType.GUID, str(identity)),
            "bytes": EntityProperty(EdmType.BINARY, b"\x00\xff"),
        },
    )
    known = {
        "big": EdmType.INT64,
        "when": EdmType.DATETIME,
        "guid": EdmType.GUID,
        "bytes": EdmType.BINARY,
    }

    def told(pk: str, rk: str, name: str, value: Any, kind: str | None) -> str | None:
        return known.get(name)

    resolver = told if accept == TablePayloadFormat.JSON_NO_METADATA else None
    for found in (
        people.get_entity("old2", "p", "r", accept=accept, property_resolver=resolver),
        *people.query_entities("old2", accept=accept, property_resolver=resolver),
    ):
        assert (found.text, found.double, found.flag, found.when) == ("é'", 1.25, False, when)
        plain = {name: getattr(each, "value", each) for name, each in found.items()}
        assert (plain["number"], plain["big"], plain["bytes"]) == (5, 2**40, b"\x00\xff")
        assert str(plain["guid"]) == str(identity)
        assert found.etag or accept == TablePayloadFormat.JSON_NO_METADATA
    selected = people.get_entity("old2", "p", "r", select="text", accept=accept)
    assert "text" in selected
    assert "double" not in selected


def test_queries_and_their_pages(people: TableService) -> None:
    for number in range(7):
        people.insert_entity("old2", {"PartitionKey": "p", "RowKey": f"r{number}", "n": number})
    assert names(people, filter="n ge 5") == ["r5", "r6"]
    assert names(people, filter="PartitionKey eq 'p' and RowKey lt 'r2'") == ["r0", "r1"]
    page = people.query_entities("old2", num_results=3)
    assert [each.RowKey for each in page] == ["r0", "r1", "r2"]
    rest = people.query_entities("old2", num_results=3, marker=page.next_marker)
    assert [each.RowKey for each in rest] == ["r3", "r4", "r5"]
    assert [set(each) & {"n"} for each in people.query_entities("old2", select="RowKey", num_results=1)] == [
        set()
    ]


def test_a_batch_can_have_every_operation(people: TableService) -> None:
    for row in ("update", "merge", "delete"):
        people.insert_entity("old2", {"PartitionKey": "p", "RowKey": row, "a": 1, "b": 1})
    batch = TableBatch()
    batch.insert_entity({"PartitionKey": "p", "RowKey": "insert", "a": 2})
    batch.update_entity({"PartitionKey": "p", "RowKey": "update", "a": 2})
    batch.merge_entity({"PartitionKey": "p", "RowKey": "merge", "a": 2})
    batch.delete_entity("p", "delete")
    batch.insert_or_replace_entity({"PartitionKey": "p", "RowKey": "replaced", "a": 2})
    batch.insert_or_merge_entity({"PartitionKey": "p", "RowKey": "merged", "a": 2})
    etags = people.commit_batch("old2", batch)
    assert len(etags) == 6
    found = {each.RowKey: each for each in people.query_entities("old2")}
    assert sorted(found) == ["insert", "merge", "merged", "replaced", "update"]
    assert all(each.a == 2 for each in found.values())
    assert "b" not in found["update"]
    assert found["merge"].b == 1
    assert found["insert"].etag == etags[0]


def test_a_batch_as_a_context(people: TableService) -> None:
    with people.batch("old2") as batch:
        for number in range(100):
            batch.insert_entity({"PartitionKey": "p", "RowKey": f"{number:03}"})
    assert len(names(people)) == 100


def test_a_failed_batch_has_no_effect_and_names_the_operation(people: TableService) -> None:
    people.insert_entity("old2", ROW)
    batch = TableBatch()
    batch.insert_entity({"PartitionKey": "p", "RowKey": "new"})
    batch.insert_entity(ROW)
    with pytest.raises(AzureBatchOperationError) as caught:
        people.commit_batch("old2", batch)
    assert (caught.value.status_code, caught.value.code) == (409, "EntityAlreadyExists")
    assert str(caught.value).startswith("1:")
    assert names(people) == ["r"]


def test_a_table_that_is_named_as_its_account(client: TableService) -> None:
    client.create_table(ACCOUNT)
    with client.batch(ACCOUNT) as batch:
        batch.insert_entity(ROW)
        batch.insert_or_replace_entity({"PartitionKey": "p", "RowKey": "s"})
    assert [each.RowKey for each in client.query_entities(ACCOUNT)] == ["r", "s"]


def test_access_policies(people: TableService) -> None:
    assert people.get_table_acl("old2") == {}
    policy = AccessPolicy(TablePermissions.QUERY, in_an_hour())
    people.set_table_acl("old2", {"readers": policy})
    kept = people.get_table_acl("old2")
    assert list(kept) == ["readers"]
    assert kept["readers"].permission == "r"


def with_token(server: Running, token: str) -> TableService:
    return client_of(server, AccountName="", AccountKey="", SharedAccessSignature=token)


def test_a_signature_for_a_table_is_accepted(people: TableService, server: Running) -> None:
    people.insert_entity("old2", ROW)
    token = people.generate_table_shared_access_signature(
        "old2",
        TablePermissions.QUERY,
        expiry=in_an_hour(),
        start_pk="p",
        start_rk="r",
        end_pk="p",
        end_rk="r",
    )
    reader = with_token(server, token)
    assert reader.get_entity("old2", "p", "r").RowKey == "r"
    with pytest.raises(AzureHttpError) as caught:
        reader.insert_entity("old2", {"PartitionKey": "p", "RowKey": "s"})
    assert caught.value.status_code == 403


def test_a_signature_that_leans_on_a_policy_and_batches(people: TableService, server: Running) -> None:
    people.set_table_acl("old2", {"adders": AccessPolicy(TablePermissions.ADD, in_an_hour())})
    adder = with_token(server, people.generate_table_shared_access_signature("old2", id="adders"))
    with adder.batch("old2") as batch:
        batch.insert_entity(ROW)
    assert names(people) == ["r"]
    with pytest.raises(AzureHttpError):
        adder.get_entity("old2", "p", "r")


def test_a_signature_for_the_account_is_accepted(people: TableService, server: Running) -> None:
    token = people.generate_account_shared_access_signature(
        ResourceTypes(container=True, object=True), AccountPermissions(read=True, list=True), in_an_hour()
    )
    reader = with_token(server, token)
    assert [table.name for table in reader.list_tables()] == ["old2"]
    with pytest.raises(AzureHttpError):
        reader.create_table("old3", fail_on_exist=True)


def test_service_properties(client: TableService) -> None:
    retention = RetentionPolicy(True, 5)
    client.set_table_service_properties(
        logging=Logging(True, True, True, retention),
        hour_metrics=Metrics(True, True, retention),
        minute_metrics=Metrics(True, False, retention),
        cors=[CorsRule(["https://example.org"], ["GET"], 10, ["x-ms-meta-a"], ["x-ms-meta-b"])],
    )
    kept = client.get_table_service_properties()
    assert (kept.logging.delete, kept.logging.retention_policy.days) == (True, 5)
    assert (kept.hour_metrics.include_apis, kept.minute_metrics.include_apis) == (True, False)
    assert (kept.cors[0].allowed_origins, kept.cors[0].max_age_in_seconds) == (["https://example.org"], 10)


def test_statistics_come_from_the_secondary(server: Running) -> None:
    stats = client_of(
        server, TableSecondaryEndpoint=f"{server.url}/{ACCOUNT}-secondary"
    ).get_table_service_stats()
    assert stats.geo_replication.status == "live"


def test_a_wrong_key_is_refused(server: Running) -> None:
    stranger = client_of(server, AccountKey="d3Jvbmc=")
    with pytest.raises(AzureHttpError) as caught:
        list(stranger.list_tables())
    assert caught.value.status_code == 403
