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
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
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
from tablegate.transfer.endpoints.retrying import RetryBudget, TransientFailure
from tablegate.transfer.errors import AccessRefused, BadAddress, RequestRefused, TableAbsent

_REQUESTS_AT_ONCE = 16
_CONNECTIONS = 32
_TRANSIENT_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
_ABSENT = frozenset({"TableNotFound"})
_BEING_DELETED = frozenset({"TableBeingDeleted"})  # its name is free again after half a minute or more


T = TypeVar("T")
R = TypeVar("R")


class ServiceReply(NamedTuple):
    """An answer whose status is no error."""

    headers: Mapping[str, str]
    body: bytes
    json: Any = None
    """Of a GET: an entity, or a page of them."""


@dataclass(frozen=True, slots=True)
class Account:
    """An account by name; `endpoint`: its URL, where the address names one."""

    name: str
    endpoint: str = ""

    @property
    def url(self) -> str:
        """The account's URL, without a slash at its end: the address's, that of the account's connection string, or the public
        service's."""
        said = self.connection_string
        if self.endpoint or said.get("tableendpoint"):
            return (self.endpoint or said["tableendpoint"]).rstrip("/")
        suffix = os.environ.get("TABLES_STORAGE_ENDPOINT_SUFFIX", "core.windows.net")
        protocol = said.get("defaultendpointsprotocol", "https")
        return f"{protocol}://{self.name}.table.{said.get('endpointsuffix', suffix)}"

    @property
    def connection_string(self) -> dict[str, str]:
        """The parts of the account's connection string in the environment, by name in lower case; none if there is none, or it
        is another account's."""
        for suffix in (self.suffix, ""):
            text = os.environ.get(f"AZURE_STORAGE_CONNECTION_STRING{suffix}", "")
            parts = dict(part.split("=", 1) for part in text.strip().split(";") if "=" in part)
            named = {name.strip().lower(): value for name, value in parts.items()}
            if (
                named
                and "usedevelopmentstorage" not in named
                and named.get("accountname", self.name) == self.name
            ):
                return named
        return {}

    @property
    def suffix(self) -> str:
        """What the names of the account's own variables of the environment end in."""
        return "_" + re.sub(r"[^A-Z0-9]", "_", self.name.upper())


class Client:
    """An account. May be used by several threads."""

    def __init__(self, account: Account, patience: RetryBudget) -> None:
        self.patience = patience
        self.url = account.url
        self._threads = ThreadPoolExecutor(_REQUESTS_AT_ONCE, thread_name_prefix="azure-table")
        try:
            # One request for each try: how long to go on is the transfer's patience.
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
        """The answer to a request for a path behind the account's URL, tried again while the service is busy.

        Raises RequestRefused and the other errors of a transfer.
        """
        return self.patience.run(lambda: self.once(method, path, headers or {}, body))

    def once(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> ServiceReply:
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
            raise TransientFailure(f"no answer from {self.url} ({type(error).__name__})") from None
        if status >= 400:
            code, reason = error_of(content)
            raise meaning(status, code, reason, self.patience.shown)
        return ServiceReply(received, content, _document(content) if method == "GET" else None)

    def each(self, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """What a piece of work gives for each item, several at once: most requests are about one entity. If one fails, those that
        have not begun are left out, and the others waited for."""
        if len(items) < 2:
            return [work(item) for item in items]
        futures = [self._threads.submit(work, item) for item in items]
        done, waiting = wait(futures, return_when=FIRST_EXCEPTION)
        for future in waiting:
            future.cancel()
        wait(futures)
        for future in done:
            future.result()
        return [future.result() for future in futures]

    def close(self) -> None:
        """Give back threads and connections."""
        self._threads.shutdown()
        self._service.close()


def _session() -> requests.Session:
    """As the SDK makes it, with room for a connection of each thread."""
    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(pool_maxsize=_CONNECTIONS))
    return session


def meaning(status: int, code: str, reason: str, shown: str) -> Exception:
    """What an error's status and code mean for a transfer."""
    if code in _BEING_DELETED or status in _TRANSIENT_STATUSES:
        return TransientFailure(f"{code or status}: {reason}")
    if status in (401, 403):
        return AccessRefused(f"{shown}: the service refuses these credentials ({code or status}: {reason})")
    if code in _ABSENT:
        return TableAbsent(f"{shown}: there is no such table")
    return RequestRefused(shown, code or str(status), reason, status)


def _document(content: bytes) -> dict[str, Any]:
    """The JSON of an entity or of a page. Raises Transient where it is neither, as that of another server at its address."""
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError:
        document = None
    if not isinstance(document, dict) or not {"value", "PartitionKey"} & document.keys():
        raise TransientFailure("an answer that is none of Azure Table's")
    return document


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
    said = account.connection_string
    for suffix in (account.suffix, ""):
        if said and os.environ.get(f"AZURE_STORAGE_CONNECTION_STRING{suffix}"):
            return _of_connection_string(said, account, shown)
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


def _of_connection_string(said: Mapping[str, str], account: Account, shown: str) -> Any:
    """The credential in the parts of a connection string."""
    if said.get("accountkey"):
        return AzureNamedKeyCredential(account.name, said["accountkey"])
    if said.get("sharedaccesssignature"):
        return AzureSasCredential(said["sharedaccesssignature"].lstrip("?"))
    raise AccessRefused(f"{shown}: the connection string has neither AccountKey nor SharedAccessSignature")
