"""Identities of an issuer where accounts have tables of their own: the SDKs of AWS and Azure against a live server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableServiceClient
from botocore.exceptions import ClientError
from click.testing import CliRunner

from tablegate.gateway.__main__ import main
from tablegate.gateway.security.credential_store import CredentialStore
from tablegate.gateway.security.credentials import Credential, Scheme
from tablegate.gateway.security.grant_store import ALL, WrittenGrant
from tests.across_dialects.test_identities import (
    ACCOUNT,
    AWS_AUDIENCE,
    KEY,
    Place,
    Token,
    client_maker,
    serving,
)
from tests.support.waiting import wait_until

MINE, OTHER = (f"arn:aws:iam::{account}:role/people" for account in ("111122223333", "444455556666"))
OTHER_ACCOUNT = "otherteam"
KEYS = {"PartitionKey": "p", "RowKey": "r"}
MUSIC = {
    "TableName": "music",
    "AttributeDefinitions": [{"AttributeName": "k", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}


def prepare(store: CredentialStore) -> None:
    for account in (ACCOUNT, OTHER_ACCOUNT):
        store.add(Credential(Scheme.AZURE, account, (KEY, KEY)), [ALL])
    for grantee in ("entra/alice@aws/111122223333", "group/ops@aws/*", "group/limited@aws/*"):
        store.grant(grantee, ALL)
    store.grant(f"entra/alice@azure/{ACCOUNT}", WrittenGrant("short", '{"read": ["people"]}'))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with serving(tmp_path_factory.mktemp("accounts"), prepare, "--namespaces", "separate") as place:
        yield place


def test_boto3_in_two_accounts(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each account has tables of its own. An identity gets keys for the account that a grant names."""
    client = client_maker(place, tmp_path, monkeypatch)
    alice = place.issuer.token(aud=AWS_AUDIENCE)
    mine = client(alice, MINE)
    arn = mine.create_table(**MUSIC)["TableDescription"]["TableArn"]
    assert arn == "arn:aws:dynamodb:us-east-1:111122223333:table/music"
    with pytest.raises(ClientError, match="AccessDenied"):
        client(alice, OTHER).list_tables()
    member = place.issuer.token(oid="bob", groups=["ops"], aud=AWS_AUDIENCE)
    assert client(member, MINE).list_tables()["TableNames"] == ["music"]
    assert client(member, OTHER).list_tables()["TableNames"] == []


def test_the_azure_sdk_in_two_accounts(place: Place) -> None:
    statuses = []
    for account in (ACCOUNT, OTHER_ACCOUNT):
        url, verify = f"{place.url}/{account}", str(place.certificate)
        shared = TableServiceClient.from_connection_string(
            f"AccountName={account};AccountKey={KEY};TableEndpoint={url}", connection_verify=verify
        )
        shared.create_table("people").create_entity(KEYS)
        token = Token(place.issuer.token(aud=f"https://{account}.table.core.windows.net"))
        people = TableServiceClient(
            url,
            credential=token,
            connection_verify=verify,
            retry_total=0,  # type: ignore[arg-type]
        ).get_table_client("people")
        try:
            assert dict(people.get_entity("p", "r")) == KEYS
            statuses.append(200)
        except HttpResponseError as error:
            statuses.append(error.status_code)
    assert statuses == [200, 403]


def test_a_running_server_applies_a_quota_of_a_group(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = place.issuer.token(oid="carol", groups=["limited"], aud=AWS_AUDIENCE)
    client = client_maker(place, tmp_path, monkeypatch)(member, OTHER)
    client.list_tables()
    database = f"sqlite:///{place.audit.parent}/tablegate.sqlite"
    limit = ["quotas", "set", "group/limited", "--requests", "0.001", "--database", database]
    done = CliRunner().invoke(main, limit)
    assert done.stdout == 'group/limited\t{"requests":0.001}\n'

    def is_refused() -> bool:
        try:
            client.list_tables()
        except ClientError as error:
            return error.response["Error"]["Code"] == "RequestLimitExceeded"
        return False

    wait_until(is_refused)
