"""Identities of an issuer in front of a live server with TLS and `--auth strict`: the SDKs of Azure and AWS, and the audit."""

from __future__ import annotations

import base64
import contextlib
import datetime
import ipaddress
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import boto3
import certifi
import pytest
import requests
import tablestore as ots
import urllib3
from azure.core.credentials import AccessToken
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableServiceClient
from botocore.exceptions import ClientError
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tablegate.gateway.configuration.loading import load
from tablegate.gateway.security.credential_store import CredentialStore
from tablegate.gateway.security.credentials import Credential, Scheme
from tablegate.gateway.security.grant_store import ALL, WrittenGrant
from tablegate.gateway.store.migrating import migrate
from tablegate.gateway.wiring import connect, open_store
from tests.support.oidc import Issuer, running_issuer
from tests.support.running import processes
from tests.support.waiting import PATIENCE_S, wait_until

ACCOUNT = "teamdata"
KEY = base64.b64encode(b"the key of the team").decode()
ROLE = "arn:aws:iam::000000000000:role/people"
AWS_AUDIENCE = "sts.amazonaws.com"
GRANTS = {
    "entra/reader": {"read": ["people"], "query": ["people"], "scan": ["people"]},
    "entra/writer": {"write": ["people"]},
    "group/ops": {"read": ["people"], "write": ["people"], "delete": ["people"]},
}


class Place(NamedTuple):
    """A running server, its issuer, its certificate, and the file of its audit log."""

    url: str
    issuer: Issuer
    certificate: Path
    audit: Path

    def audited(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.audit.read_text().splitlines()]

    def refusals(self) -> Counter[tuple[str, Any]]:
        """Numbers of refusals by caller and result."""
        return Counter((line["who"], line["result"]) for line in self.audited() if line["event"] == "refusal")

    def wait_for(self, *wanted: tuple[str, str, Any]) -> None:
        """Wait until the audit log has lines with these events, callers and results."""

        def missing() -> set[tuple[str, str, Any]]:
            return {*wanted} - {(line["event"], line["who"], line["result"]) for line in self.audited()}

        wait_until(lambda: not missing(), missing)


def certificate_in(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "tests")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(address, critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    files = folder / "cert.pem", folder / "key.pem"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(private)
    return files


@contextlib.contextmanager
def serving(folder: Path, prepare: Callable[[CredentialStore], None], *more: str) -> Iterator[Place]:
    """A server in a folder with an issuer. `prepare` stores its credentials and grants."""
    url = f"sqlite:///{folder}/tablegate.sqlite"
    settings = load({"database": url, "auth": "strict"}, {})
    database = connect(settings)
    migrate(database)
    opened = open_store(settings, database)
    prepare(opened.credential_store)
    opened.close()
    certificate, key = certificate_in(folder)
    flags = [
        "--auth",
        "strict",
        "--tls-cert",
        str(certificate),
        "--tls-key",
        str(key),
        "--audit",
        "audit.jsonl",
        *more,
    ]
    with running_issuer() as issuer, processes(folder, *flags, "--oidc-issuer", issuer.url) as begin:
        yield Place(begin(url).url, issuer, certificate, folder / "audit.jsonl")


def prepare(store: CredentialStore) -> None:
    store.add(Credential(Scheme.AZURE, ACCOUNT, (KEY, KEY)), [ALL])
    store.add(
        Credential(Scheme.AWS, "STORED", ("a secret",)), [WrittenGrant("short", '{"read": ["people"]}')]
    )
    for grantee, document in GRANTS.items():
        store.grant(grantee, WrittenGrant("short", json.dumps(document)))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("identities")
    with serving(folder, prepare, "--console-oidc-client-id", "console") as place:
        shared = TableServiceClient.from_connection_string(
            f"AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint={place.url}/{ACCOUNT}",
            connection_verify=str(place.certificate),
        )
        for table in ("people", "orders"):
            shared.create_table(table).create_entity({"PartitionKey": "p", "RowKey": "r"})
        yield place


class Token:
    """A credential of the Azure SDK with a fixed token."""

    def __init__(self, token: str) -> None:
        self._token = token

    def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        return AccessToken(self._token, int(time.time()) + 3600)


def azure(place: Place, token: str) -> TableServiceClient:
    return TableServiceClient(
        f"{place.url}/{ACCOUNT}",
        credential=Token(token),  # type: ignore[arg-type]
        connection_verify=str(place.certificate),
        retry_total=0,
    )


def test_the_azure_sdk_signs_in_with_a_token(place: Place) -> None:
    people = azure(place, place.issuer.token(oid="reader")).get_table_client("people")
    assert [dict(each) for each in people.list_entities()] == [{"PartitionKey": "p", "RowKey": "r"}]
    with pytest.raises(HttpResponseError) as raised:
        people.upsert_entity({"PartitionKey": "p", "RowKey": "r", "A": 1})
    assert raised.value.status_code == 403
    with pytest.raises(HttpResponseError) as raised:
        list(azure(place, place.issuer.token(oid="reader", exp=1)).list_tables())
    assert raised.value.status_code == 403  # the SDK asks for a version of 2019 without challenges


AwsClient = Callable[..., Any]


@pytest.fixture
def aws(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AwsClient:
    """Return a function that makes a client of DynamoDB by the web-identity provider of boto3."""
    return client_maker(place, tmp_path, monkeypatch)


def client_maker(place: Place, folder: Path, monkeypatch: pytest.MonkeyPatch) -> AwsClient:
    def client(token: str, role: str = ROLE) -> Any:
        file = folder / "token"
        file.write_text(token)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        monkeypatch.setenv("AWS_ENDPOINT_URL", place.url)
        monkeypatch.setenv("AWS_CA_BUNDLE", str(place.certificate))
        monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(file))
        monkeypatch.setenv("AWS_ROLE_ARN", role)
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
        return boto3.Session(region_name="us-east-1").client("dynamodb")

    return client


def test_boto3_signs_in_with_a_web_identity(place: Place, aws: Any) -> None:
    """Only the endpoint is changed."""
    client = aws(place.issuer.token(oid="reader", aud=AWS_AUDIENCE))
    key = {"PartitionKey": {"S": "p"}, "RowKey": {"S": "r"}}
    assert client.get_item(TableName="people", Key=key)["Item"] == key
    for refused in (
        lambda: client.put_item(TableName="people", Item=key),
        lambda: client.get_item(TableName="orders", Key=key),
        lambda: client.delete_table(TableName="people"),
        lambda: client.list_tables(),
    ):
        with pytest.raises(ClientError, match="AccessDeniedException"):
            refused()
    member = aws(place.issuer.token(oid="anyone", groups=["ops"], aud=AWS_AUDIENCE))
    member.put_item(TableName="people", Item=key)


def temporary_keys(place: Place) -> dict[str, str]:
    """The members of a client with temporary keys of a stored key."""
    options: dict[str, Any] = {"endpoint_url": place.url, "verify": str(place.certificate)}
    sts = boto3.client(
        "sts", "us-east-1", aws_access_key_id="STORED", aws_secret_access_key="a secret", **options
    )
    keys = sts.get_session_token()["Credentials"]
    names = {
        "aws_access_key_id": "AccessKeyId",
        "aws_secret_access_key": "SecretAccessKey",
        "aws_session_token": "SessionToken",
    }
    return {**options, **{name: keys[member] for name, member in names.items()}}


def test_boto3_with_temporary_keys_of_a_stored_key(place: Place) -> None:
    options = temporary_keys(place)
    client = boto3.client("dynamodb", "us-east-1", **options)
    key = {"PartitionKey": {"S": "p"}, "RowKey": {"S": "r"}}
    assert client.get_item(TableName="people", Key=key)["Item"] == key
    with pytest.raises(ClientError, match="user/STORED is not authorized"):
        client.put_item(TableName="people", Item=key)
    for name, value in (("aws_session_token", "AAAA"), ("aws_access_key_id", "ASIA" + "A" * 16)):
        with pytest.raises(ClientError, match="UnrecognizedClientException"):
            boto3.client("dynamodb", "us-east-1", **{**options, name: value}).get_item(
                TableName="people", Key=key
            )


def test_table_store_with_temporary_keys_of_an_identity(
    place: Place, aws: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys of AssumeRoleWithWebIdentity are valid for both kinds of access keys. Those of a stored AWS key are not."""
    found = aws(place.issuer.token(oid="reader", aud=AWS_AUDIENCE))._request_signer._credentials
    monkeypatch.setattr(certifi, "where", lambda: str(place.certificate))

    def client(access_id: str, secret: str, token: str) -> ots.OTSClient:
        options = {
            "sts_token": token,
            "ca_certs": str(place.certificate),
            "retry_policy": ots.NoRetryPolicy(),
        }
        return ots.OTSClient(place.url, access_id, secret, "inst", **options)

    key = [("PartitionKey", "p"), ("RowKey", "r")]
    reader = client(found.access_key, found.secret_key, found.token)
    _, row, _ = reader.get_row("people", key, max_version=1)
    assert row.primary_key[0][:2] == ("PartitionKey", "p")
    with pytest.raises(ots.OTSServiceError, match="OTSNoPermissionAccess"):
        reader.put_row("people", ots.Row(key, [("A", 1)]))
    place.wait_for(("refusal", "entra/reader", "OTSNoPermissionAccess"))
    of_key = temporary_keys(place)
    for keys in (
        (found.access_key, found.secret_key, found.token[:-8] + "AAAAAAA="),
        (found.access_key, "wrong", found.token),
        (of_key["aws_access_key_id"], of_key["aws_secret_access_key"], of_key["aws_session_token"]),
    ):
        with pytest.raises(ots.OTSServiceError, match="OTSAuthFailed"):
            client(*keys).get_row("people", key, max_version=1)


def test_a_session_token_of_aws_is_no_cookie_of_the_console(place: Place, aws: Any) -> None:
    """Clients send it in each request and in presigned URLs. Only a signature proves a session."""
    of_identity = aws(place.issuer.token(oid="reader", aud=AWS_AUDIENCE))._request_signer._credentials
    of_key = temporary_keys(place)
    for access_id, token in (
        (of_identity.access_key, of_identity.token),
        (of_key["aws_access_key_id"], of_key["aws_session_token"]),
    ):
        answer = requests.get(
            f"{place.url}/_tablegate/console/",
            cookies={"tablegate-console": f"entra|{access_id}|{token}"},
            verify=str(place.certificate),
            allow_redirects=False,
            timeout=PATIENCE_S,
        )
        assert (answer.status_code, "sign-in" in answer.headers["Location"]) == (303, True)


def assumed(place: Place, token: str) -> int:
    """The status of AssumeRoleWithWebIdentity."""
    given = {
        "Action": "AssumeRoleWithWebIdentity", "RoleArn": ROLE, "RoleSessionName": "tests", "WebIdentityToken": token,
    }  # fmt: skip
    with urllib3.PoolManager(ca_certs=str(place.certificate)) as pool:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return pool.request("POST", place.url + "/", body=urlencode(given), headers=headers).status


def test_the_audit_has_sign_ins_and_refusals(place: Place, aws: Any) -> None:
    reader = aws(place.issuer.token(oid="reader", aud=AWS_AUDIENCE))
    with pytest.raises(ClientError):
        reader.list_tables()
    with pytest.raises(ClientError):
        boto3.client("dynamodb", "us-east-1", **temporary_keys(place)).list_tables()
    assert assumed(place, "a.b.c") == 400
    with requests.Session() as browser:
        options: dict[str, Any] = {"verify": str(place.certificate), "timeout": 60}
        console = f"{place.url}/_tablegate/console/sign-in/issuer"
        address = browser.get(console, allow_redirects=False, **options).headers["Location"]
        query = place.issuer.approve(address, oid="person")
        statuses = [browser.get(f"{console}/return", params=query, **options).status_code for _ in range(2)]
        assert statuses == [200, 403]  # the second is a replay
    with pytest.raises(HttpResponseError):
        list(azure(place, place.issuer.token(aud="https://graph.microsoft.com")).list_tables())
    place.wait_for(
        ("sign-in", "entra/reader", 200),
        ("sign-in", "STORED", 200),
        ("refusal", "STORED", "AccessDeniedException"),
        ("sign-in", "entra/person", 200),
        ("refusal", "", 403),
        ("refusal", "entra/reader", "AccessDeniedException"),
        ("refusal", "", "InvalidIdentityToken"),
        ("refusal", ACCOUNT, "AuthenticationFailed"),
    )


def test_each_attack_is_refused_and_is_in_the_audit(place: Place) -> None:
    issuer = place.issuer
    options: dict[str, Any] = {"verify": str(place.certificate), "timeout": 60}
    tokens = {
        "expired": issuer.token(oid="reader", exp=1),
        "for another service": issuer.token(oid="reader", aud="https://graph.microsoft.com"),
        "without an algorithm": issuer.unsigned(),
        "key confusion": issuer.signed_with_the_public_key(),
        "a retired key": issuer.signed_with_a_retired_key(),
        "of another issuer": issuer.token(oid="reader", iss="https://login.example.com"),
    }
    requests.get(f"{place.url}/absentaccount/people()", **options)
    place.wait_for(
        ("refusal", "absentaccount", "AuthenticationFailed")
    )  # earlier requests are in the log as well
    before = place.refusals()
    for attack, token in tokens.items():
        headers = {"Authorization": f"Bearer {token}", "x-ms-version": "2020-12-06"}
        answer = requests.get(f"{place.url}/{ACCOUNT}/people()", headers=headers, **options)
        assert answer.status_code == 401, attack
        assert "authorization_uri=" in answer.headers["WWW-Authenticate"]
        assert assumed(place, token) == 400, attack
    console = f"{place.url}/_tablegate/console/sign-in/issuer"
    with requests.Session() as victim, requests.Session() as thief:
        address = victim.get(console, allow_redirects=False, **options).headers["Location"]
        query = issuer.approve(address, oid="person")
        statuses = [
            browser.get(f"{console}/return", params=query, **options).status_code
            for browser in (thief, victim, victim)
        ]
        assert statuses == [403, 200, 403]  # a stolen state, the sign-in, a replayed code
    expected = {(ACCOUNT, "InvalidAuthenticationInfo"): 6, ("", "InvalidIdentityToken"): 6, ("", 403): 2}
    wait_until(
        lambda: place.refusals() - before == Counter(expected),
        lambda: place.refusals() - before,
    )
