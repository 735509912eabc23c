"""Azure Table's API by azure-data-tables, with the JSON of the wire on both sides.

The SDK signs, redirects and keeps connections. Entities pass as JSON, because the SDK's own form cuts a DateTime to microseconds
and loses which integers are Int64; what they mean is said by adapters/azuretable/values. Which errors mean what for a transfer is
said here. No URL of a request is ever shown: it may hold a shared access signature.

Credentials, in this order, where ACCOUNT is the account's name in capitals: AZURE_STORAGE_CONNECTION_STRING_ACCOUNT,
AZURE_STORAGE_KEY_ACCOUNT, AZURE_STORAGE_SAS_TOKEN_ACCOUNT; the same three without an account, which the az command knows too; the
well-known key of the emulators' account devstoreaccount1; and DefaultAzureCredential where azure-identity is installed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import AzureError, ClientAuthenticationError
from azure.core.rest import HttpRequest
from azure.data.tables import TableServiceClient

from gateway.security.credentials import DEV_AZURE_ACCOUNT, DEV_AZURE_KEY
from transfer.endpoints.retrying import Patience, Transient
from transfer.errors import AccessRefused, BadAddress, TableAbsent

_TRANSIENT_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
_ABSENT = frozenset({"TableNotFound"})
_BEING_DELETED = frozenset({"TableBeingDeleted"})  # its name is free again after half a minute or more


class Refused(Exception):
    """The service does not take this request, whenever it is sent: status, code and its own words."""

    def __init__(self, status: int, code: str, reason: str) -> None:
        super().__init__(f"{code}: {reason}")
        self.status = status
        self.code = code
        self.reason = reason


class Answer(NamedTuple):
    """An answer whose status is no error."""

    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)


@dataclass(frozen=True, slots=True)
class Account:
    """An account by name; `endpoint`: its URL where that is not the public service's."""

    name: str
    endpoint: str = ""

    @property
    def url(self) -> str:
        """The account's URL, without an end."""
        if self.endpoint:
            return self.endpoint.rstrip("/")
        suffix = os.environ.get("TABLES_STORAGE_ENDPOINT_SUFFIX", "core.windows.net")
        return f"https://{self.name}.table.{suffix}"


class Client:
    """An account. May be used by several threads."""

    def __init__(self, account: Account, patience: Patience) -> None:
        self.patience = patience
        self.url = account.url
        try:
            # One request for each try: how long to go on is the transfer's patience.
            self._service = TableServiceClient(
                self.url,
                credential=_credential(account, patience.shown),
                retry_total=0,
                connection_timeout=10,
                read_timeout=60,
            )
        except ValueError as error:
            raise BadAddress(f"{patience.shown}: {error}") from None

    def send(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> Answer:
        """The answer to a request for a path behind the account's URL, tried again while the service is busy.

        Raises Refused and the errors of a transfer.
        """
        return self.patience.run(lambda: self.once(method, path, headers or {}, body))

    def once(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> Answer:
        """The answer to one request. Raises Transient too."""
        sent = {
            "Accept": "application/json;odata=minimalmetadata",
            "DataServiceVersion": "3.0",
            "MaxDataServiceVersion": "3.0;NetFx",
            "x-ms-version": "2019-02-02",
            **headers,
        }
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
        request = HttpRequest(method, f"{self.url}/{path}", headers=sent, content=body)
        try:
            with self._service._client.send_request(request, stream=True) as response:
                content = response.read()
                status, received = response.status_code, response.headers
        except ClientAuthenticationError as error:
            raise AccessRefused(
                f"{self.patience.shown}: no credentials: {_first_line(error.message)}"
            ) from None
        except AzureError as error:
            raise Transient(f"no answer from {self.url} ({type(error).__name__})") from None
        if status >= 400:
            code, reason = error_of(content)
            raise meaning(status, code, reason, self.patience.shown)
        return Answer(received, content)

    def close(self) -> None:
        """Give back the connections."""
        self._service.close()


def meaning(status: int, code: str, reason: str, shown: str) -> Exception:
    """What an error's status and code mean for a transfer."""
    if code in _BEING_DELETED or status in _TRANSIENT_STATUSES:
        return Transient(f"{code or status}: {reason}")
    if status in (401, 403):
        return AccessRefused(f"{shown}: the service refuses these credentials ({code or status}: {reason})")
    if code in _ABSENT:
        return TableAbsent(f"{shown}: there is no such table")
    return Refused(status, code or str(status), reason)


def error_of(content: bytes) -> tuple[str, str]:
    """(code, first line of the text) of an error's body."""
    try:
        error = orjson.loads(content)["odata.error"]
        return str(error["code"]), _first_line(error["message"]["value"])
    except (orjson.JSONDecodeError, LookupError, TypeError):
        return "", ""


def _first_line(text: Any) -> str:
    """A text without what the service tells of the request: its id, its time, what it was signed with."""
    return str(text).strip().partition("\n")[0].strip()[:500]


def _credential(account: Account, shown: str) -> Any:
    own = "_" + re.sub(r"[^A-Z0-9]", "_", account.name.upper())
    for suffix in (own, ""):
        text = os.environ.get(f"AZURE_STORAGE_CONNECTION_STRING{suffix}")
        if text and (found := _of_connection_string(text, account, shown)):
            return found
        key = os.environ.get(f"AZURE_STORAGE_KEY{suffix}")
        if key:
            return AzureNamedKeyCredential(account.name, key)
        token = os.environ.get(f"AZURE_STORAGE_SAS_TOKEN{suffix}")
        if token:
            return AzureSasCredential(token.lstrip("?"))
    if account.name == DEV_AZURE_ACCOUNT:
        return AzureNamedKeyCredential(account.name, DEV_AZURE_KEY)
    try:
        from azure.identity import DefaultAzureCredential
    except ImportError:
        raise AccessRefused(
            f"{shown}: no credentials: set AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_KEY or "
            "AZURE_STORAGE_SAS_TOKEN, or install azure-identity to log in with Microsoft Entra ID"
        ) from None
    return DefaultAzureCredential()


def _of_connection_string(text: str, account: Account, shown: str) -> Any:
    """The credential in a connection string; None if it is another account's."""
    if text.strip().lower() == "usedevelopmentstorage=true":
        return None
    parts = dict(part.split("=", 1) for part in text.strip().split(";") if "=" in part)
    named = {name.strip().lower(): value for name, value in parts.items()}
    if named.get("accountname", account.name) != account.name:
        return None
    if named.get("accountkey"):
        return AzureNamedKeyCredential(account.name, named["accountkey"])
    if named.get("sharedaccesssignature"):
        return AzureSasCredential(named["sharedaccesssignature"].lstrip("?"))
    raise AccessRefused(f"{shown}: the connection string has neither AccountKey nor SharedAccessSignature")
