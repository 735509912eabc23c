"""A client of Azure Table by azure-data-tables, with JSON as on the wire.

The SDK signs requests, follows redirects and keeps connections. Entities stay JSON, because the SDK's own form
truncates DateTime to microseconds and does not keep which integers are Int64. adapters/azuretable/values converts
them. Errors become those of a transfer. URLs of requests are never shown, because they may contain a shared access
signature.

Credentials are taken from the first of these sources. ACCOUNT is the account's name in capitals.

1. AZURE_STORAGE_CONNECTION_STRING_ACCOUNT, AZURE_STORAGE_KEY_ACCOUNT, AZURE_STORAGE_SAS_TOKEN_ACCOUNT
2. The same names without an account, which the az command uses too
3. The well-known key of the emulators' account devstoreaccount1
4. DefaultAzureCredential, if azure-identity is installed

An entity group transaction is a changeset of upserts or deletes of one partition, as bytes. The SDK's parser of multipart
replies costs more than the rest of a write, so it is not used. Source: "Performing entity group transactions"
(learn.microsoft.com/rest/api/storageservices).
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, wait
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import orjson
import requests
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import AzureError, ClientAuthenticationError
from azure.core.pipeline.transport import RequestsTransport
from azure.core.rest import HttpRequest
from azure.data.tables import TableServiceClient
from requests.adapters import HTTPAdapter

from tablegate.gateway.security.credentials import DEV_AZURE_ACCOUNT, DEV_AZURE_KEY
from tablegate.transfer.endpoints.batching import RetryBudget, TransientFailure
from tablegate.transfer.errors import AccessRefused, BadAddress, RequestRefused, TableAbsent
from tablegate.transfer.threads import new_pool

_REQUESTS_AT_ONCE = 16
_CONNECTIONS = 32
_TRANSIENT_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
_ABSENT = frozenset({"TableNotFound"})
_BEING_DELETED = frozenset({"TableBeingDeleted"})  # the name is available again after 30 s or more


T = TypeVar("T")
R = TypeVar("R")


class ServiceReply(NamedTuple):
    """A reply without an error status."""

    headers: Mapping[str, str]
    body: bytes
    json: Any = None
    """The reply to a GET: an entity or a page of entities."""


@dataclass(frozen=True, slots=True)
class Account:
    """An account. `endpoint` is its URL if the address has one."""

    name: str
    endpoint: str = ""

    @property
    def url(self) -> str:
        """The account's URL without a trailing slash: from the address, the connection string, or the public service."""
        connection = self.connection_string
        if self.endpoint or connection.get("tableendpoint"):
            return (self.endpoint or connection["tableendpoint"]).rstrip("/")
        suffix = os.environ.get("TABLES_STORAGE_ENDPOINT_SUFFIX", "core.windows.net")
        protocol = connection.get("defaultendpointsprotocol", "https")
        return f"{protocol}://{self.name}.table.{connection.get('endpointsuffix', suffix)}"

    @property
    def connection_string(self) -> dict[str, str]:
        """The parts of the account's connection string in the environment, by lower-case name.

        Empty if there is none or it belongs to another account.
        """
        for suffix in (self.suffix, ""):
            text = os.environ.get(f"AZURE_STORAGE_CONNECTION_STRING{suffix}", "")
            parts = dict(part.split("=", 1) for part in text.strip().split(";") if "=" in part)
            settings = {name.strip().lower(): value for name, value in parts.items()}
            if (
                settings
                and "usedevelopmentstorage" not in settings
                and settings.get("accountname", self.name) == self.name
            ):
                return settings
        return {}

    @property
    def suffix(self) -> str:
        """The suffix of the account's own environment variables."""
        return "_" + re.sub(r"[^A-Z0-9]", "_", self.name.upper())


class Client:
    """A client of an account. May be used from several threads."""

    def __init__(self, account: Account, patience: RetryBudget) -> None:
        self.patience = patience
        self.url = account.url
        self._threads = new_pool(_REQUESTS_AT_ONCE)
        try:
            # One request for each try. The transfer's own retry limit applies.
            self._service = TableServiceClient(
                self.url,
                credential=_credential(account, patience.shown),
                retry_total=0,
                transport=RequestsTransport(session=_session(), connection_timeout=10, read_timeout=60),
            )
        except ValueError as error:
            raise BadAddress(f"{patience.shown}: {error}") from None

    def send(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> ServiceReply:
        """Send a request for a path below the account's URL and return the reply, with retries while the service is
        busy.

        Raises RequestRefused and the other errors of a transfer.
        """
        return self.patience.run(lambda: self.once(method, path, headers or {}, body))

    def once(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> ServiceReply:
        """Send one request without retries. Raises TransientFailure too."""
        all_headers = {
            "Accept": "application/json;odata=minimalmetadata",
            "DataServiceVersion": "3.0",
            "MaxDataServiceVersion": "3.0;NetFx",
            "x-ms-version": "2019-02-02",
            **headers,
        }
        if body is not None:
            all_headers.setdefault("Content-Type", "application/json")
        request = HttpRequest(method, f"{self.url}/{path}", headers=all_headers, content=body)
        try:
            with self._service._client.send_request(request, stream=True) as response:
                content = response.read()
                status, received = response.status_code, response.headers
        except ClientAuthenticationError as error:
            raise AccessRefused(
                f"{self.patience.shown}: the credentials cannot be used: {_first_line(error.message)}"
            ) from None
        except AzureError as error:
            raise TransientFailure(f"no reply from {self.url} ({type(error).__name__})") from None
        if status >= 400:
            code, reason = error_of(content)
            raise error_for(status, code, reason, self.patience.shown)
        return ServiceReply(received, content, _document(content) if method == "GET" else None)

    def each(self, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Return the results of `work` for each item, with several calls at once.

        Most requests concern one entity. If a call fails, those not started are cancelled and the others are waited
        for.
        """
        if len(items) < 2:
            return [work(item) for item in items]
        futures = [self._threads.submit(work, item) for item in items]
        finished, unfinished = wait(futures, return_when=FIRST_EXCEPTION)
        for future in unfinished:
            future.cancel()
        wait(futures)
        for future in finished:
            future.result()
        return [future.result() for future in futures]

    def close(self) -> None:
        self._threads.shutdown(wait=False)
        self._service.close()


def _session() -> requests.Session:
    """Return a session like the SDK's, with a connection for each thread."""
    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(pool_maxsize=_CONNECTIONS))
    return session


def error_for(status: int, code: str, reason: str, shown: str) -> Exception:
    """Return the transfer's error for a status and code."""
    if code in _BEING_DELETED or status in _TRANSIENT_STATUSES:
        return TransientFailure(f"{code or status}: {reason}")
    if status in (401, 403):
        return AccessRefused(f"{shown}: the service rejects these credentials ({code or status}: {reason})")
    if code in _ABSENT:
        return TableAbsent(f"{shown}: no such table")
    return RequestRefused(shown, code or str(status), reason, status)


def _document(content: bytes) -> dict[str, Any]:
    """Parse the JSON of an entity or a page. Raises TransientFailure for other content, such as that of another
    server."""
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError:
        document = None
    if not isinstance(document, dict) or not {"value", "PartitionKey"} & document.keys():
        raise TransientFailure("the reply is not one of Azure Table")
    return document


def error_of(content: bytes) -> tuple[str, str]:
    """Return (code, first line of the text) of an error's body."""
    try:
        error = orjson.loads(content)["odata.error"]
        return str(error["code"]), _first_line(error["message"]["value"])
    except (orjson.JSONDecodeError, LookupError, TypeError):
        return "", ""


def _first_line(text: Any) -> str:
    """Return the first line of a text. The others have the request's id and time and the string to sign."""
    return str(text).strip().partition("\n")[0].strip()[:500]


def _credential(account: Account, shown: str) -> Any:
    connection = account.connection_string
    for suffix in (account.suffix, ""):
        if connection and os.environ.get(f"AZURE_STORAGE_CONNECTION_STRING{suffix}"):
            return _of_connection_string(connection, account, shown)
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
            f"{shown}: credentials are missing. Set AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_KEY or "
            "AZURE_STORAGE_SAS_TOKEN, or install azure-identity to log in with Microsoft Entra ID"
        ) from None
    return DefaultAzureCredential()


def _of_connection_string(connection: Mapping[str, str], account: Account, shown: str) -> Any:
    """Return the credential in the parts of a connection string."""
    if connection.get("accountkey"):
        return AzureNamedKeyCredential(account.name, connection["accountkey"])
    if connection.get("sharedaccesssignature"):
        return AzureSasCredential(connection["sharedaccesssignature"].lstrip("?"))
    raise AccessRefused(f"{shown}: the connection string has neither AccountKey nor SharedAccessSignature")


_STATUS = re.compile(rb"HTTP/1\.1 (\d{3})")


class EntityChange(NamedTuple):
    """One operation on the entity at `url`. It is a delete if `body` is None."""

    url: str
    body: bytes | None

    @property
    def size_bytes(self) -> int:
        """Upper bound of the bytes that it adds to a batch."""
        return len(self.url) + len(self.body or b"") + 400


def encode_changeset(changes: Sequence[EntityChange]) -> tuple[str, bytes]:
    """Return (Content-Type, body) of a batch."""
    batch, changeset = f"batch_{uuid.uuid4()}", f"changeset_{uuid.uuid4()}"
    parts = [
        f"--{batch}\r\nContent-Type: multipart/mixed; boundary={changeset}\r\n\r\n".encode(),
    ]
    for number, change in enumerate(changes):
        parts.append(
            f"--{changeset}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n"
            f"Content-ID: {number}\r\n\r\n".encode()
        )
        parts.append(_request(change))
    parts.append(f"--{changeset}--\r\n--{batch}--\r\n".encode())
    return f"multipart/mixed; boundary={batch}", b"".join(parts)


def _request(change: EntityChange) -> bytes:
    if change.body is None:
        head = "Accept: application/json\r\nIf-Match: *\r\nDataServiceVersion: 3.0\r\n"
        return f"DELETE {change.url} HTTP/1.1\r\n{head}\r\n\r\n".encode()
    head = (
        "Content-Type: application/json\r\nAccept: application/json;odata=minimalmetadata\r\n"
        f"DataServiceVersion: 3.0\r\nContent-Length: {len(change.body)}\r\n"
    )
    return f"PUT {change.url} HTTP/1.1\r\n{head}\r\n".encode() + change.body + b"\r\n"


def changeset_failure(answer: bytes) -> tuple[int, str, str] | None:
    """Return (status, code, text) of the operation that made a batch fail, None if the batch succeeded."""
    for match in _STATUS.finditer(answer):
        status = int(match[1])
        if status >= 400:
            start, end = answer.find(b"{", match.end()), answer.rfind(b"}")
            return (status, *error_of(answer[start : end + 1]))
    return None
