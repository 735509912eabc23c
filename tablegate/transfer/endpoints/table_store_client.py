"""A client of Table Store by the tablestore SDK, with the adapter's own messages.

The SDK signs requests, verifies replies and keeps connections. It has neither streams nor split points, and it
converts rows cell by cell in Python. So messages and rows are the adapter's. Errors become those of a transfer.

Credentials are taken from the first of these sources. INSTANCE is the instance's name in capitals.

1. TABLESTORE_ACCESS_KEY_ID_INSTANCE and TABLESTORE_ACCESS_KEY_SECRET_INSTANCE, with TABLESTORE_SECURITY_TOKEN_INSTANCE
   for temporary credentials
2. The same names without an instance, as in the SDK's samples
3. ALIBABA_CLOUD_ACCESS_KEY_ID, ALIBABA_CLOUD_ACCESS_KEY_SECRET and ALIBABA_CLOUD_SECURITY_TOKEN, as in all tools of
   Alibaba Cloud
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

from tablegate.transfer.endpoints.batching import RetryBudget, TransientFailure
from tablegate.transfer.errors import AccessRefused, BadAddress, RequestRefused, TableAbsent

# The SDK logs its choice of codec on import, which is of no use to users.
logging.getLogger("tablestore").addHandler(logging.NullHandler())
import tablestore  # noqa: E402
from tablestore.auth import RequestContext  # noqa: E402

M = TypeVar("M", bound=Message)


# "Error codes" of the API reference. The SDKs retry the same codes. Puts of whole rows and deletes are idempotent, so
# that the codes for reads apply to them too.
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
# The SDK logs each rejected request as an error. Errors are reported once, by this module.
_SDK_LOGGER = "transfer.table_store_sdk"
logging.getLogger(_SDK_LOGGER).setLevel(logging.CRITICAL)
_CONNECTIONS = 64
_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class Account:
    """An instance. `region` selects version 4 of the signature."""

    instance: str
    endpoint: str
    region: str = ""


class Client:
    """A client of an instance. May be used from several threads."""

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
        """The date of the last reply: the service's time."""

    def call(self, operation: str, request: Message, answer: type[M]) -> M:
        """Send a request and return the reply, with retries while the service is busy.

        Raises RequestRefused and the other errors of a transfer.
        """
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
            raise error_for(error.code, error.message, error.http_status, self.patience.shown) from None
        except tablestore.OTSClientError as error:
            if error.http_status in (401, 403):
                raise AccessRefused(f"{self.patience.shown}: {error}") from None
            raise TransientFailure(f"the reply is not one of Table Store: {str(error)[:300]}") from None
        except ValueError:
            raise AccessRefused(
                f"{self.patience.shown}: an access key or token has a character that is not allowed in HTTP, "
                "such as a line break"
            ) from None
        except urllib3.exceptions.HTTPError as error:
            raise TransientFailure(f"no reply from {client.host} ({type(error).__name__})") from None
        self.date = next((text for name, text in received.items() if name.lower() == "x-ots-date"), "")
        message = answer()
        try:
            message.ParseFromString(content)
        except DecodeError:
            raise TransientFailure("the reply is not one of Table Store") from None
        return message

    def close(self) -> None:
        self._client.connection.pool.clear()


def error_for(code: str, reason: str, status: int, shown: str) -> Exception:
    """Return the transfer's error for an error of a request or a row."""
    reason = str(reason)[:500]
    if code in _TRANSIENT or status >= 500 or (code == "OTSQuotaExhausted" and reason == _TOO_FREQUENT):
        return TransientFailure(f"{code}: {reason}")
    if code in _ACCESS or status in (401, 403):
        return AccessRefused(f"{shown}: the service rejects these credentials ({code}: {reason})")
    if code == "OTSObjectNotExist":
        return TableAbsent(f"{shown}: no such table ({reason})")
    return RequestRefused(shown, code, reason, status)


def is_transient(code: str, reason: str) -> bool:
    return isinstance(error_for(code, reason, 0, ""), TransientFailure)


def milliseconds(date: str) -> int | None:
    """Return a reply's date in milliseconds since 1970, None if it is not a date."""
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
        f"{shown}: credentials are missing. Set TABLESTORE_ACCESS_KEY_ID and TABLESTORE_ACCESS_KEY_SECRET, or "
        "ALIBABA_CLOUD_ACCESS_KEY_ID and ALIBABA_CLOUD_ACCESS_KEY_SECRET"
    )
