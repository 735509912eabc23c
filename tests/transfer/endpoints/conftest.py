"""Places for tests of the clouds' endpoints: see places.py."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import moto
import pytest

from tablegate.transfer.endpoints.azure_table import AzureTableEndpoint
from tablegate.transfer.endpoints.azure_table_client import Account as AzureAccount
from tablegate.transfer.endpoints.dynamodb import DynamoDBEndpoint
from tablegate.transfer.endpoints.dynamodb_client import Account as AwsAccount
from tablegate.transfer.endpoints.endpoint import Endpoint, Service
from tablegate.transfer.endpoints.table_store import TableStoreEndpoint
from tablegate.transfer.endpoints.table_store_client import Account as OtsAccount
from tests.support.foreign_servers import foreign_server
from tests.support.running import Running, start
from tests.transfer.endpoints.places import Place

REGION = "eu-central-1"
# A Table Store SDK checks the signature of answers, so that the secret must be the one that a server in dev has.
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "anybody",
    "AWS_SECRET_ACCESS_KEY": "a secret of AWS",
    "TABLESTORE_ACCESS_KEY_ID": "tablegate",
    "TABLESTORE_ACCESS_KEY_SECRET": "tablegate",
}
OURS = ("dynamodb", "azure", "tablestore")
# moto is a library. The others are programs, and take part where they can be installed.
FOREIGN = (
    "moto",
    *(pytest.param(name, marks=pytest.mark.clients) for name in ("dynamodb-local", "dynalite", "azurite")),
)


@pytest.fixture(autouse=True, scope="session")
def environment() -> Iterator[None]:
    """Credentials as a user has them: in the environment."""
    with pytest.MonkeyPatch.context() as patch:
        for name in (
            "AWS_PROFILE",
            "AWS_SESSION_TOKEN",
            "AZURE_STORAGE_CONNECTION_STRING",
            "AZURE_STORAGE_KEY",
        ):
            patch.delenv(name, raising=False)
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def ours(
    sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory, environment: None
) -> Iterator[Running]:
    """One server of ours for all tests of endpoints, which have tables of their own."""
    path = tmp_path_factory.mktemp("endpoints") / "ours.sqlite"
    shutil.copy(sqlite_template, path)
    running = start(f"sqlite:///{path}", entry="server")
    yield running
    running.stop()


def open_dynamodb(url: str, table: str, patience_s: float = 20) -> DynamoDBEndpoint:
    return DynamoDBEndpoint(table, AwsAccount(REGION, url), f"dynamodb://{table}?region={REGION}", patience_s)


def open_azure(url: str, table: str, patience_s: float = 20) -> AzureTableEndpoint:
    account = AzureAccount("devstoreaccount1", f"{url}/devstoreaccount1")
    return AzureTableEndpoint(table, account, f"azure-table://devstoreaccount1/{table}", patience_s)


def open_table_store(url: str, table: str, patience_s: float = 20) -> TableStoreEndpoint:
    return TableStoreEndpoint(table, OtsAccount("inst", url), f"tablestore://inst/{table}", patience_s)


OPENERS = {
    Service.DYNAMODB: open_dynamodb,
    Service.AZURE_TABLE: open_azure,
    Service.TABLE_STORE: open_table_store,
}
_SERVICES = {"azure": Service.AZURE_TABLE, "azurite": Service.AZURE_TABLE, "tablestore": Service.TABLE_STORE}


@pytest.fixture(scope="session")
def dynamodb_local(tmp_path_factory: pytest.TempPathFactory, environment: None) -> Iterator[str]:
    """The URL of one DynamoDB Local for all tests."""
    with foreign_server("dynamodb-local", tmp_path_factory.mktemp("dynamodb-local")) as url:
        yield url


@pytest.fixture(scope="session", params=[*OURS, *FOREIGN])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Each place, one after the other."""
    with contextlib.ExitStack() as stack:
        yield _place(request.param, request, stack, tmp_path_factory)


@pytest.fixture(scope="session", params=OURS)
def our_place(request: pytest.FixtureRequest, ours: Running) -> Place:
    """Each service of a tablegate server, one after the other."""
    service = _SERVICES.get(request.param, Service.DYNAMODB)
    return Place(f"our{request.param}", service, partial(OPENERS[service], ours.url))


def _place(
    name: str,
    request: pytest.FixtureRequest,
    stack: contextlib.ExitStack,
    tmp_path_factory: pytest.TempPathFactory,
) -> Place:
    service = _SERVICES.get(name, Service.DYNAMODB)
    if name in OURS:
        url = request.getfixturevalue("ours").url
    elif name == "dynamodb-local":
        url = request.getfixturevalue("dynamodb_local")
    elif name == "moto":
        request.getfixturevalue("environment")
        stack.enter_context(moto.mock_aws())
        url = ""
    else:
        request.getfixturevalue("environment")
        url = stack.enter_context(foreign_server(name, tmp_path_factory.mktemp(name)))

    def open_table(table: str, patience_s: float) -> Endpoint:
        return OPENERS[service](url, table, patience_s)

    return Place(name, service, open_table, LACKS.get(name, frozenset()))


# Known differences between stand-ins and the service.
LACKS: dict[str, frozenset[str]] = {
    "azurite": frozenset({"NegativeZero"}),  # JavaScript writes -0 as 0
}
