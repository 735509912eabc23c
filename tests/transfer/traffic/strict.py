"""A server with auth `strict`, and clients of three SDKs with secrets that it accepts."""

from __future__ import annotations

import base64
import contextlib
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import tablestore as ots
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.data.tables import TableServiceClient, generate_table_sas

from tablegate.gateway.configuration.loading import load
from tablegate.gateway.security.credentials import Credential, Scheme
from tablegate.gateway.security.grant_store import ALL
from tablegate.gateway.wiring import connect, open_store
from tablegate.transfer.traffic.services import SigningKey
from tests.support.live_dynamodb import ONCE
from tests.support.running import Running, start

SETTINGS = {"auth": "strict", "secret_key": "what encrypts the secrets of this test"}
REGION = "eu-central-1"


class Owner:
    """An owner with an invented key of each kind."""

    def __init__(self) -> None:
        self.secrets = {scheme: secrets.token_urlsafe(24) for scheme in ("aws", "tablestore")}
        self.token = secrets.token_urlsafe(24)
        self.azure_key = base64.b64encode(secrets.token_bytes(32)).decode()

    def credentials(self) -> list[Credential]:
        return [
            Credential(Scheme.AWS, "aws-owner", (self.secrets["aws"],), "", self.token),
            Credential(Scheme.AZURE, "owner", (self.azure_key, self.azure_key)),
            Credential(Scheme.TABLESTORE, "ots-owner", (self.secrets["tablestore"],)),
        ]

    def keys(self) -> dict[str, SigningKey]:
        return {
            "aws": SigningKey("aws-owner", self.secrets["aws"], self.token),
            "azure": SigningKey("owner", self.azure_key),
            "tablestore": SigningKey("ots-owner", self.secrets["tablestore"]),
        }

    def dynamodb(self, url: str, secret: str = "") -> Any:
        return boto3.client(
            "dynamodb", REGION, endpoint_url=url, config=ONCE, aws_access_key_id="aws-owner",
            aws_secret_access_key=secret or self.secrets["aws"], aws_session_token=self.token,
        )  # fmt: skip

    def azure(self, url: str) -> TableServiceClient:
        credential = AzureNamedKeyCredential("owner", self.azure_key)
        return TableServiceClient(f"{url}/owner", credential=credential, retry_total=0)

    def shared_access(self, table: str) -> str:
        credential = AzureNamedKeyCredential("owner", self.azure_key)
        expiry = datetime.now(UTC) + timedelta(hours=1)
        return generate_table_sas(credential, table, permission="raud", expiry=expiry)

    def with_shared_access(self, url: str, token: str) -> TableServiceClient:
        return TableServiceClient(f"{url}/owner", credential=AzureSasCredential(token), retry_total=0)

    def tablestore(self, url: str) -> ots.OTSClient:
        return ots.OTSClient(
            url, "ots-owner", self.secrets["tablestore"], "here", retry_policy=ots.NoRetryPolicy()
        )


@contextlib.contextmanager
def strict_server(folder: Path, template: Path, owner: Owner) -> Iterator[Running]:
    """A server on SQLite that accepts only the owner's keys."""
    path = folder / "strict.sqlite"
    path.write_bytes(template.read_bytes())
    url = f"sqlite:///{path}"
    settings = load({"database": url, **SETTINGS}, {})
    opened = open_store(settings, connect(settings))
    for credential in owner.credentials():
        opened.credential_store.add(credential, [ALL])
    opened.close()
    server = start(url, **SETTINGS)
    try:
        yield server
    finally:
        server.stop()
