"""Each way to log in, as its service's own tools have it, against a server that checks every signature (auth = strict)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import AccountSasPermissions, ResourceTypes, generate_account_sas
from click.testing import CliRunner

from tablegate.gateway.__main__ import main
from tablegate.gateway.security.credentials import DEV_AZURE_KEY
from tablegate.transfer.endpoints.addresses import open_endpoint
from tablegate.transfer.endpoints.endpoint import Definition, Endpoint, Service
from tablegate.transfer.errors import AccessRefused
from tests.transfer.endpoints.places import SCHEMAS, key_of, numbered_rows, read_all

AZURE_KEY = "aHVzaDMxNDE1OTI2NTM1ODk3OTMyMzg0NjI2NDMzODM="
SECRET = "hush-3141592653"
SECRET_KEY = "what encrypts the secrets"


@pytest.fixture(scope="module")
def strict_url(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A strict server with one credential of each kind."""
    from tests.support.running import start

    folder = tmp_path_factory.mktemp("strict")
    path = folder / "strict.sqlite"
    path.write_bytes(sqlite_template.read_bytes())
    for scheme, access_id, secret in (
        ("aws", "AKIAMINE", SECRET),
        ("azure", "myaccount", AZURE_KEY),
        ("tablestore", "LTAIMINE", SECRET),
    ):
        flags = ["--scheme", scheme, "--database", f"sqlite:///{path}", "--secret-key", SECRET_KEY]
        for each in [secret] * (2 if scheme == "azure" else 1):
            flags += ["--secret", each]
        done = CliRunner().invoke(main, ["credentials", "add", access_id, "--all", *flags])
        assert done.exit_code == 0, done.output
    running = start(f"sqlite:///{path}", entry="server", auth="strict", secret_key=SECRET_KEY)
    yield running.url
    running.stop()


def works(endpoint: Endpoint, service: Service, name: str) -> None:
    endpoint.create(Definition(name, service, SCHEMAS[service]))
    rows = numbered_rows(service, 40)
    assert endpoint.write(rows) == []
    assert len(read_all(endpoint)) == 40
    endpoint.delete([key_of(row, SCHEMAS[service]) for row in rows])
    assert read_all(endpoint) == []
    endpoint.close()


def test_a_profile_has_the_credentials(
    strict_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    credentials = tmp_path / "credentials"
    credentials.write_text(f"[mine]\naws_access_key_id = AKIAMINE\naws_secret_access_key = {SECRET}\n")
    config = tmp_path / "config"
    config.write_text("[profile mine]\nregion = eu-west-1\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(credentials))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    address = f"dynamodb://byprofile?endpoint={strict_url}&profile=mine"
    works(open_endpoint(address, 5), Service.DYNAMODB, "byprofile")
    with pytest.raises(AccessRefused, match="Unable to locate credentials"):
        open_endpoint(f"dynamodb://byprofile?region=x&endpoint={strict_url}", 5).describe()


@pytest.mark.parametrize("variable", ["KEY", "KEY_MYACCOUNT", "CONNECTION_STRING", "SAS_TOKEN"])
def test_the_ways_into_an_azure_account(
    strict_url: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = f"{strict_url}/myaccount"
    value = AZURE_KEY
    if variable == "CONNECTION_STRING":
        value = f"AccountName=myaccount;AccountKey={AZURE_KEY};TableEndpoint={endpoint};"
    if variable == "SAS_TOKEN":
        value = generate_account_sas(
            AzureNamedKeyCredential("myaccount", AZURE_KEY),
            ResourceTypes(service=True, container=True, object=True),
            AccountSasPermissions(
                read=True, write=True, delete=True, list=True, add=True, update=True, create=True
            ),
            datetime.now(UTC) + timedelta(hours=1),
        )
    monkeypatch.setenv(f"AZURE_STORAGE_{variable}", value)
    name = "by" + variable.replace("_", "").lower()
    # A connection string contains the account, too.
    said = "" if variable == "CONNECTION_STRING" else f"?endpoint={endpoint}"
    works(open_endpoint(f"azure-table://myaccount/{name}{said}", 5), Service.AZURE_TABLE, name)
    monkeypatch.delenv(f"AZURE_STORAGE_{variable}")
    monkeypatch.setenv("AZURE_STORAGE_KEY", DEV_AZURE_KEY)  # of another account
    with pytest.raises(AccessRefused):
        open_endpoint(f"azure-table://myaccount/{name}?endpoint={endpoint}", 5).describe()


@pytest.mark.parametrize("variables", ["TABLESTORE_ACCESS_KEY", "ALIBABA_CLOUD_ACCESS_KEY"])
@pytest.mark.parametrize("region", ["", "&region=cn-hangzhou"])
def test_the_ways_into_a_table_store_instance(
    strict_url: str, variables: str, region: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TABLESTORE_ACCESS_KEY_ID", "TABLESTORE_ACCESS_KEY_SECRET"):
        monkeypatch.delenv(name)
    monkeypatch.setenv(f"{variables}_ID", "LTAIMINE")
    monkeypatch.setenv(f"{variables}_SECRET", SECRET)
    name = "by" + variables.replace("_", "").lower() + str(len(region))
    address = f"tablestore://inst/{name}?endpoint={strict_url}{region}"
    works(open_endpoint(address, 5), Service.TABLE_STORE, name)


def test_an_access_key_that_headers_do_not_allow(strict_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a file whose last line break was kept."""
    monkeypatch.setenv("TABLESTORE_ACCESS_KEY_ID", "LTAIMINE\n")
    monkeypatch.setenv("TABLESTORE_ACCESS_KEY_SECRET", SECRET)
    endpoint = open_endpoint(f"tablestore://myinstance/things?endpoint={strict_url}")
    with pytest.raises(AccessRefused, match="such as a line break"):
        endpoint.describe()
    endpoint.close()
