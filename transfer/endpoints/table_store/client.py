"""Table Store's API by the tablestore SDK, with our own messages.

The SDK signs, checks answers and keeps connections. Messages and rows are the adapter's own, because the SDK knows neither
streams nor split points, and its rows are made cell by cell in Python. Which errors mean what for a transfer is said here.

Credentials, in this order, where INSTANCE is the instance's name in capitals: TABLESTORE_ACCESS_KEY_ID_INSTANCE with
TABLESTORE_ACCESS_KEY_SECRET_INSTANCE (and TABLESTORE_SECURITY_TOKEN_INSTANCE, of temporary ones); the same without an instance,
which the SDK's samples use; ALIBABA_CLOUD_ACCESS_KEY_ID, ALIBABA_CLOUD_ACCESS_KEY_SECRET and ALIBABA_CLOUD_SECURITY_TOKEN, which
all of Alibaba Cloud's tools know.
"""

from __future__ import annotations

import logging
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import urllib3
from google.protobuf.message import DecodeError, Message

from tablegate.transfer.endpoints.retrying import RetryBudget, TransientFailure
from tablegate.transfer.errors import AccessRefused, BadAddress, RequestRefused, TableAbsent

# Which of its codecs the SDK has found is no news to anybody, and is told as it is imported.
logging.getLogger("tablestore").addHandler(logging.NullHandler())
import tablestore  # noqa: E402
from tablestore.auth import RequestContext  # noqa: E402

M = TypeVar("M", bound=Message)


# "Error codes" of the API reference; the SDKs try the same again. Puts of whole rows and deletes may be sent twice, so that what
# is only good for reads elsewhere is good for them too.
_TRANSIENT = frozenset(
    {
        "OTSInternalServerError",
        "OTSNotEnoughCapacityUnit",
        "OTSOperationConflict",
        "OTSOperationThrottled",
        "OTSPartitionUnavailable",
        "OTSRowOperationConflict",
        "OTSServerBusy",
        "OTSServerUnavailable",
        "OTSTableNotReady",
        "OTSTimeout",
    }
)
_TOO_FREQUENT = "Too frequent table operations."
_ACCESS = frozenset({"OTSAuthFailed", "OTSNoPermissionAccess"})
_OPERATIONS = (
    "ComputeSplitPointsBySize",
    "DescribeStream",
    "GetShardIterator",
    "GetStreamRecord",
    "ListStream",
)
# The SDK logs every refusal as an error. What one means is said here, and told once.
_SDK_LOGGER = "transfer.table_store_sdk"
logging.getLogger(_SDK_LOGGER).setLevel(logging.CRITICAL)
_CONNECTIONS = 64
_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class Account:
    """An instance by name and URL; `region`: to sign by version 4 of the signature."""

    instance: str
    endpoint: str
    region: str = ""


class Client:
    """An instance. May be used by several threads."""

    def __init__(self, account: Account, patience: RetryBudget) -> None:
        self.patience = patience
        key_id, secret, token = _credentials(account, patience.shown)
        try:
            self._client: Any = tablestore.OTSClient(
                account.endpoint,
                key_id,
                secret,
                account.instance,
                sts_token=token or None,
                region=account.region or None,
                socket_timeout=_TIMEOUT_S,
                max_connection=_CONNECTIONS,
                enable_native=False,
                logger_name=_SDK_LOGGER,
            )
        except tablestore.OTSClientError as error:
            raise BadAddress(f"{patience.shown}: {error}") from None
        self._client.protocol.api_list = [*self._client.protocol.api_list, *_OPERATIONS]
        self.date = ""
        """The date of the last answer: what the service takes for now."""

    def call(self, operation: str, request: Message, answer: type[M]) -> M:
        """The answer to a request, tried again while the service is busy. Raises RequestRefused and the
        other errors of a transfer."""
        body = request.SerializeToString()
        return self.patience.run(lambda: self._once(operation, body, answer))

    def _once(self, operation: str, body: bytes, answer: type[M]) -> M:
        client = self._client
        path = f"/{operation}"
        context = RequestContext(client.credentials_provider.get_credentials())
        try:
            headers = client.protocol._make_request_headers(body, path, client._signer, context)
            status, reason, received, content = client.connection.send_receive(path, headers, body)
            client.protocol.handle_error(
                operation, path, status, reason, received, content, client._signer, context
            )
        except tablestore.OTSServiceError as error:
            raise meaning(error.code, error.message, error.http_status, self.patience.shown) from None
        except tablestore.OTSClientError as error:
            if error.http_status in (401, 403):
                raise AccessRefused(f"{self.patience.shown}: {error}") from None
            raise TransientFailure(f"an answer that is none of Table Store's: {str(error)[:300]}") from None
        except urllib3.exceptions.HTTPError as error:
            raise TransientFailure(f"no answer from {client.host} ({type(error).__name__})") from None
        self.date = next((text for name, text in received.items() if name.lower() == "x-ots-date"), "")
        message = answer()
        try:
            message.ParseFromString(content)
        except DecodeError:
            raise TransientFailure("an answer that is none of Table Store's") from None
        return message

    def close(self) -> None:
        """Give back the connections."""
        self._client.connection.pool.clear()


def meaning(code: str, reason: str, status: int, shown: str) -> Exception:
    """What an error of a request or of a row means for a transfer."""
    reason = str(reason)[:500]
    if code in _TRANSIENT or status >= 500 or (code == "OTSQuotaExhausted" and reason == _TOO_FREQUENT):
        return TransientFailure(f"{code}: {reason}")
    if code in _ACCESS or status in (401, 403):
        return AccessRefused(f"{shown}: the service refuses these credentials ({code}: {reason})")
    if code == "OTSObjectNotExist":
        return TableAbsent(f"{shown}: there is no such table ({reason})")
    return RequestRefused(shown, code, reason, status)


def is_transient(code: str, reason: str) -> bool:
    """Whether a row of a batch is to be sent again."""
    return isinstance(meaning(code, reason, 0, ""), TransientFailure)


def milliseconds(date: str) -> int | None:
    """Milliseconds since 1970 of a date in an answer; None if there is none."""
    try:
        return int(datetime.strptime(date, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC).timestamp() * 1000)
    except ValueError:
        pass
    try:
        return int(parsedate_to_datetime(date).timestamp() * 1000)
    except (TypeError, ValueError):
        return None


def _credentials(account: Account, shown: str) -> tuple[str, str, str]:
    own = "_" + re.sub(r"[^A-Z0-9]", "_", account.instance.upper())
    names = [
        (
            f"TABLESTORE_ACCESS_KEY_ID{end}",
            f"TABLESTORE_ACCESS_KEY_SECRET{end}",
            f"TABLESTORE_SECURITY_TOKEN{end}",
        )
        for end in (own, "")
    ]
    names.append(
        ("ALIBABA_CLOUD_ACCESS_KEY_ID", "ALIBABA_CLOUD_ACCESS_KEY_SECRET", "ALIBABA_CLOUD_SECURITY_TOKEN")
    )
    for key_id, secret, token in names:
        if os.environ.get(key_id) and os.environ.get(secret):
            return os.environ[key_id], os.environ[secret], os.environ.get(token, "")
    raise AccessRefused(
        f"{shown}: no credentials: set TABLESTORE_ACCESS_KEY_ID and TABLESTORE_ACCESS_KEY_SECRET, or "
        "ALIBABA_CLOUD_ACCESS_KEY_ID and ALIBABA_CLOUD_ACCESS_KEY_SECRET"
    )
