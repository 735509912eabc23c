"""The flavours Storage and Cosmos DB, each rule in both, by azure-data-tables in front of a live server."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.data.tables import (
    AccountSasPermissions,
    ResourceTypes,
    TableServiceClient,
    TableTransactionError,
    generate_account_sas,
)

from tablegate.adapters.azuretable.flavours import COSMOS, STORAGE, Flavours
from tablegate.gateway.configuration.settings import BadSetting
from tablegate.gateway.http.messages import Reply
from tests.adapters.azuretable.client import ACCOUNT, DEV_KEY, AzureTableService, code_of
from tests.conftest import Serve

STORAGE_HOST = f"{ACCOUNT}.table.core.windows.net"
COSMOS_HOST = f"{ACCOUNT}.table.cosmos.azure.com"
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
KEYS = {"PartitionKey": "p", "RowKey": "r"}

Connect = Callable[[str], TableServiceClient]


@pytest.fixture
def connect(serve: Serve, database_url: str) -> Connect:
    """Return a function that makes a client of a server with a flavour."""

    def made(flavour: str) -> TableServiceClient:
        url = f"{serve(database_url, azure_flavour=(flavour,)).url}/{ACCOUNT}"
        text = f"AccountName={ACCOUNT};AccountKey={DEV_KEY};TableEndpoint={url}"
        return TableServiceClient.from_connection_string(text, retry_total=0)

    return made


@pytest.fixture
def storage(connect: Connect) -> TableServiceClient:
    return connect("storage")


@pytest.fixture
def cosmos(connect: Connect) -> TableServiceClient:
    return connect(f"{ACCOUNT}=cosmos")


def code(action: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[int | None, str]:
    with pytest.raises(HttpResponseError) as raised:
        action(*arguments, **options)
    error_code = getattr(raised.value, "error_code", "")
    return raised.value.status_code, getattr(error_code, "value", error_code)


@ON_SQLITE
@pytest.mark.parametrize("name", ["my_table", "name with blanks", "表 1", "a", "x" * 254])
def test_cosmos_takes_names_that_storage_refuses(
    storage: TableServiceClient, cosmos: TableServiceClient, name: str
) -> None:
    with pytest.raises((ValueError, HttpResponseError)):
        storage.create_table(name)
    table = cosmos.create_table(name)
    table.create_entity(KEYS)
    assert [each.name for each in cosmos.list_tables()] == [name]
    assert [dict(each) for each in table.list_entities()] == [KEYS]
    table.submit_transaction([("upsert", {**KEYS, "A": 1})])
    cosmos.delete_table(name)
    with pytest.raises(ResourceNotFoundError):
        table.get_entity("p", "r")


def test_case_of_table_names(storage: TableServiceClient, cosmos: TableServiceClient) -> None:
    storage.create_table("People")
    with pytest.raises(ResourceExistsError):
        storage.create_table("people")
    storage.get_table_client("PEOPLE").create_entity(KEYS)
    assert [each.name for each in storage.list_tables()] == ["People"]
    cosmos.create_table("people").create_entity({**KEYS, "A": 1})
    with pytest.raises(ResourceExistsError):
        cosmos.create_table("people")
    assert [each.name for each in cosmos.list_tables()] == ["People", "people"]
    assert "A" not in cosmos.get_table_client("People").get_entity("p", "r")
    with pytest.raises(ResourceNotFoundError):
        cosmos.get_table_client("PEOPLE").get_entity("p", "r")


@ON_SQLITE
@pytest.mark.parametrize("name", ["a/b", "a\\b", "a#b", "a?b", "a "])
def test_names_that_cosmos_refuses(cosmos: TableServiceClient, name: str) -> None:
    client = cosmos.get_table_client(name)
    for action in (client.create_table, client.delete_table, lambda: client.create_entity(KEYS)):
        with pytest.raises(ValueError, match="Cosmos table names"):  # by code and text of the refusal
            action()


@ON_SQLITE
def test_a_name_that_is_too_long_for_cosmos(cosmos: TableServiceClient) -> None:
    client = cosmos.get_table_client("x" * 255)
    with pytest.raises(ValueError, match="Cosmos table names"):
        client.create_table()
    with pytest.raises(ResourceNotFoundError):
        client.create_entity(KEYS)
    with pytest.raises(TableTransactionError) as raised:
        client.submit_transaction([("upsert", KEYS)])
    assert raised.value.error_code == "ResourceNotFound"


@ON_SQLITE
def test_empty_and_long_keys(storage: TableServiceClient, cosmos: TableServiceClient) -> None:
    for service in (storage, cosmos):
        service.create_table_if_not_exists("People")
    empty, long = {"PartitionKey": "", "RowKey": ""}, {"PartitionKey": "p", "RowKey": "é" * 128}
    storage.get_table_client("People").create_entity(empty)
    storage.get_table_client("People").create_entity(long)
    people = cosmos.get_table_client("People")
    with pytest.raises(HttpResponseError, match="PartitionKey/RowKey cannot be empty"):
        people.create_entity(empty)
    with pytest.raises(HttpResponseError, match="PartitionKey/RowKey cannot be empty"):
        people.upsert_entity({"PartitionKey": "p", "RowKey": ""})
    assert code(people.upsert_entity, {**long, "PartitionKey": "q"}) == (400, "PropertyValueTooLarge")
    people.create_entity({"PartitionKey": "p", "RowKey": "é" * 127 + "x"})


@ON_SQLITE
def test_keys_with_types(storage: TableServiceClient, cosmos: TableServiceClient) -> None:
    typed = {"PartitionKey": b"p", "RowKey": "r"}  # the client sends PartitionKey@odata.type
    storage.create_table("People").upsert_entity(typed)
    assert code(cosmos.get_table_client("People").upsert_entity, typed) == (400, "InvalidInput")


@ON_SQLITE
def test_spellings_of_etag(storage: TableServiceClient, cosmos: TableServiceClient) -> None:
    entity = {**KEYS, "etag": "a", "Etag": "b", "Name": "c", "name": "d"}
    people = storage.create_table("People")
    people.upsert_entity(entity)
    assert dict(people.get_entity("p", "r")) == entity
    people = cosmos.get_table_client("People")
    people.upsert_entity(entity, mode="replace")
    assert dict(people.get_entity("p", "r")) == {**KEYS, "etag": "a", "Name": "c", "name": "d"}


@ON_SQLITE
def test_cosmos_refuses_a_batch_that_storage_accepts(
    storage: TableServiceClient, cosmos: TableServiceClient
) -> None:
    batch = [("upsert", {**KEYS, "RowKey": str(n), "A": b"x" * 60_000}) for n in range(30)]
    storage.create_table("People").submit_transaction(batch)
    assert code(cosmos.get_table_client("People").submit_transaction, batch)[0] == 413


@ON_SQLITE
def test_service_documents_and_pages(storage: TableServiceClient, cosmos: TableServiceClient) -> None:
    storage.create_table("People")
    storage.get_service_properties()
    storage.get_table_client("People").get_table_access_policy()
    assert code(cosmos.get_service_properties) == (501, "NotImplemented")
    assert code(cosmos.get_table_client("People").get_table_access_policy) == (501, "NotImplemented")
    page = {"results_per_page": 1001}
    assert code(list, storage.get_table_client("People").list_entities(**page)) == (400, "InvalidInput")
    assert list(cosmos.get_table_client("People").list_entities(**page)) == []


@ON_SQLITE
def test_a_signature_without_the_permission_has_a_code_in_each_flavour(
    storage: TableServiceClient, cosmos: TableServiceClient
) -> None:
    """aztables 1.4.1 for Go, TestSASCosmosClientReadOnly."""
    storage.create_table("People")
    signature = generate_account_sas(
        AzureNamedKeyCredential(ACCOUNT, DEV_KEY),
        ResourceTypes.from_string("sco"),
        AccountSasPermissions(read=True, list=True),
        datetime.now(UTC) + timedelta(hours=1),
    )
    for service, wanted in ((storage, "AuthorizationPermissionMismatch"), (cosmos, "Forbidden")):
        limited = TableServiceClient(service.url, credential=AzureSasCredential(signature), retry_total=0)
        assert code(limited.get_table_client("People").upsert_entity, KEYS) == (403, wanted)


def at(service: AzureTableService, host: str, path: str) -> Reply:
    """The reply to a GET of a path at a host that names the account."""
    return service.handle(service.request("GET", path, headers={"Host": host}, base=""))


def test_a_host_name_decides_the_flavour(service: AzureTableService) -> None:
    service.create("People")
    assert at(service, STORAGE_HOST, "/Tables('people')").status == 200
    assert at(service, COSMOS_HOST, "/Tables('People')").status == 200
    assert code_of(at(service, COSMOS_HOST, "/Tables('people')")) == (404, "ResourceNotFound")
    assert code_of(at(service, COSMOS_HOST, "/People/Tables")) == (400, "InvalidInput")
    assert b"Request url is invalid." in service.last.body


def test_hosts_decide() -> None:
    flavours = Flavours(["cosmos", "team=storage"])
    assert flavours.find("127.0.0.1:8000", "any") is COSMOS
    assert flavours.find("127.0.0.1:8000", "team") is STORAGE
    assert flavours.find(STORAGE_HOST, ACCOUNT) is STORAGE
    assert flavours.find(COSMOS_HOST, ACCOUNT) is COSMOS
    assert flavours.find(COSMOS_HOST.replace(".azure.com", "db.azure.com"), ACCOUNT) is COSMOS
    assert flavours.find("team.table.cosmos.azure.com", "team") is None
    assert flavours.find("127.0.0.1", "cosmos") is COSMOS


@pytest.mark.parametrize("entry", ["blob", "=cosmos", "team=", "team=blob", ""])
def test_flavours_that_do_not_exist(entry: str) -> None:
    with pytest.raises(BadSetting):
        Flavours([entry])


def test_an_account_of_cosmos_is_absent_at_storage(service: AzureTableService) -> None:
    service = service.with_settings(azure_flavour=(f"{ACCOUNT}=cosmos",))
    assert code_of(at(service, STORAGE_HOST, "/Tables")) == (403, "AuthenticationFailed")
    assert at(service, COSMOS_HOST, "/Tables").status == 200


@pytest.fixture
def in_cosmos(service: AzureTableService) -> AzureTableService:
    """The Cosmos flavour of the account, with a table `people` that both flavours show."""
    service.create()
    return service.with_settings(azure_flavour=("cosmos",))


@pytest.mark.parametrize(
    "comparison",
    [
        "Timestamp ge datetime'2020-01-01T00:00:00Z'",
        "datetime'2020-01-01T00:00:00Z' le Timestamp",
        "Timestamp lt datetime'2999-01-01T00:00:00Z'",
        "Timestamp ne datetime'2020-01-01T00:00:00Z'",
        "Timestamp ne n",
        "Timestamp eq Timestamp",
        "PartitionKey eq 'p' and Timestamp gt datetime'2020-01-01T00:00:00Z'",
    ],
)
def test_no_comparison_with_timestamp_is_true_in_cosmos(
    service: AzureTableService, in_cosmos: AzureTableService, comparison: str
) -> None:
    """Source: "Query by using an OData filter" of Cosmos DB for Table, Azure/azure-sdk-for-net issues 32468 and 40549,
    AzureCosmosDB/data-migration-desktop-tool issues 239 and 240."""
    service.insert("people", "p", "r", n=1)
    assert len(service.query("people", filter=comparison)) == 1
    assert in_cosmos.query("people", filter=comparison) == []
    [entity] = in_cosmos.query("people", filter=f"({comparison}) or n eq 1")
    assert entity["Timestamp"]


def test_values_in_cosmos_have_no_limit_but_the_entity_has(
    service: AzureTableService, in_cosmos: AzureTableService
) -> None:
    """Source: Azure/azure-sdk-for-net issue 20533."""
    path = "/people(PartitionKey='p',RowKey='r')"
    text, data = "x" * 65_537, base64.b64encode(b"x" * 65_537).decode()
    binary = {"b": data, "b@odata.type": "Edm.Binary"}
    for properties in ({"a": text}, binary):
        assert code_of(service.insert("people", "p", "r", **properties)) == (400, "PropertyValueTooLarge")
    assert in_cosmos.insert("people", "p", "r", a=text, **binary).status == 201
    assert in_cosmos.get("people", "p", "r")["b"] == data
    million = "x" * 1_000_000
    assert in_cosmos.send("PUT", path, {"a": million, "b": million}).status == 204
    assert code_of(in_cosmos.send("MERGE", path, {"c": "x" * 100_000})) == (413, "RequestEntityTooLarge")
    assert in_cosmos.send("MERGE", path, {"b": None, "a": "short", "c": million}).status == 204


@pytest.mark.parametrize("name", ["id", "Id", "ID", "rid", "ResourceId", "ttl"])
def test_names_that_cosmos_reserves_are_refused(
    service: AzureTableService, in_cosmos: AzureTableService, name: str
) -> None:
    """Source: the FAQ of Cosmos DB for Table, MicrosoftDocs/azure-docs issue 67880 (ttl)."""
    assert service.insert("people", "p", "r", **{name: "a"}).status == 201
    refused = in_cosmos.insert("people", "p", "s", **{name: "a"})
    assert code_of(refused) == (400, "InvalidInput")
    assert f"'{name}' is reserved" in refused.body.decode()
    path = "/people(PartitionKey='p',RowKey='r')"
    assert code_of(in_cosmos.send("PUT", path, {name: 1})) == (400, "InvalidInput")
    assert in_cosmos.get("people", "p", "r")[name] == "a"
