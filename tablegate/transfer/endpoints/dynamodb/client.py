"""A client of DynamoDB by boto3, with JSON as on the wire.

boto3 finds credentials and region, signs requests, keeps connections and verifies checksums. Bodies bypass
botocore's serializers, which would cost more than the rest. The adapter converts values (adapters/dynamodb/values).
Errors become those of a transfer.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import boto3
import orjson
from botocore import exceptions, xform_name
from botocore.config import Config
from botocore.parsers import ResponseParserError

from tablegate.transfer.endpoints.batching import RetryBudget, TransientFailure
from tablegate.transfer.errors import AccessRefused, BadAddress, RequestRefused, TableAbsent, TransferError


class TrimmedData(TransferError):
    """The stream records at a position have been deleted."""


# "Error handling with DynamoDB", developer guide. For streams, the API reference of GetRecords.
_TRANSIENT = frozenset(
    {
        "InternalFailure",
        "InternalServerError",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestTimeout",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TransactionInProgressException",
    }
)
_ACCESS = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "IncompleteSignatureException",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
        "NotAuthorized",
        "OptInRequired",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
_ABSENT = frozenset({"ResourceNotFoundException", "TableNotFoundException"})
_TRIMMED = frozenset({"TrimmedDataAccessException"})

# Errors of the connection. Each try is one request. The transfer's own retry limit applies.
_LOST = (
    exceptions.ConnectionError,
    exceptions.HTTPClientError,
    exceptions.ResponseStreamingError,
    exceptions.ReadTimeoutError,
    exceptions.ChecksumError,
    ResponseParserError,
    exceptions.MetadataRetrievalError,
)
_NO_CREDENTIALS = (
    exceptions.NoCredentialsError,
    exceptions.PartialCredentialsError,
    exceptions.CredentialRetrievalError,
    exceptions.UnauthorizedSSOTokenError,
    exceptions.SSOTokenLoadError,
)
_CONNECTIONS = 64
# botocore reads table names from these parameters to find an account's own endpoint. It accepts an empty value.
_PARAMETERS: dict[str, Any] = {
    operation: {"RequestItems": {}} for operation in ("BatchGetItem", "BatchWriteItem")
}
# Members that every reply to an operation has (API reference, "Response Elements").
_MEMBERS = {
    "DescribeStream": "StreamDescription",
    "DescribeTable": "Table",
    "GetShardIterator": "ShardIterator",
    "ListTables": "TableNames",
}


@dataclass(frozen=True, slots=True)
class Account:
    """An account. Empty strings select boto3's defaults (environment, ~/.aws, instance roles)."""

    region: str = ""
    endpoint: str = ""
    profile: str = ""


class Client:
    """A client of `dynamodb` or `dynamodbstreams`. May be used from several threads."""

    def __init__(self, service: str, account: Account, patience: RetryBudget) -> None:
        self.patience = patience
        self._local = threading.local()
        config = Config(
            parameter_validation=False,
            retries={"mode": "standard", "total_max_attempts": 1},
            connect_timeout=10,
            read_timeout=60,
            max_pool_connections=_CONNECTIONS,
        )
        try:
            session = boto3.Session(profile_name=account.profile or None, region_name=account.region or None)
            self._client: Any = session.client(service, endpoint_url=account.endpoint or None, config=config)
        except exceptions.ProfileNotFound as error:
            raise AccessRefused(f"{patience.shown}: {error}") from None
        except exceptions.NoRegionError:
            raise BadAddress(
                f"{patience.shown}: the region is missing: add ?region=REGION, or set AWS_DEFAULT_REGION or the profile's region"
            ) from None
        except (
            ValueError,
            exceptions.BotoCoreError,
        ) as error:  # invalid endpoint URL or region
            raise BadAddress(f"{patience.shown}: {error}") from None
        events = self._client.meta.events
        events.register("before-call", self._put_body)
        events.register("before-parse", self._take_body)

    def call(self, operation: str, body: bytes | Mapping[str, Any]) -> Any:
        """Send a request and return the JSON of the reply, with retries while the service is busy.

        Raises RequestRefused, TrimmedData and the other errors of a transfer.
        """
        content = body if isinstance(body, bytes) else orjson.dumps(body)
        return self.patience.run(lambda: self.once(operation, content))

    def once(self, operation: str, body: bytes) -> Any:
        """Send one request without retries. Raises TransientFailure too."""
        local = self._local
        local.body, local.answer, local.date = body, b"{}", ""
        try:
            getattr(self._client, xform_name(operation))(**_PARAMETERS.get(operation, {}))
        except exceptions.ClientError as error:
            raise _error_for(error, self.patience.shown) from None
        except _NO_CREDENTIALS as error:
            raise AccessRefused(f"{self.patience.shown}: {error}") from None
        except _LOST as error:
            raise TransientFailure(f"no reply: {error}") from None
        except exceptions.BotoCoreError as error:
            raise TransferError(f"{self.patience.shown}: {error}") from None
        except ValueError as error:  # invalid endpoint URL in the environment
            raise BadAddress(f"{self.patience.shown}: {error}") from None
        return _answer_of(operation, local.answer)

    @property
    def date(self) -> str:
        """The Date header of the last reply in this thread: the service's time."""
        return str(getattr(self._local, "date", ""))

    def close(self) -> None:
        self._client.close()

    def _put_body(self, params: dict[str, Any], **_: Any) -> None:
        params["body"] = self._local.body

    def _take_body(self, response_dict: dict[str, Any], **_: Any) -> None:
        self._local.date = response_dict["headers"].get("Date", "")
        if response_dict["status_code"] == 200:
            self._local.answer = response_dict["body"]
            response_dict["body"] = b"{}"  # botocore then parses nothing


def _answer_of(operation: str, body: bytes) -> dict[str, Any]:
    """Parse the JSON of a reply. Raises TransientFailure for other content, such as that of another server."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        answer = None
    member = _MEMBERS.get(operation)
    if not isinstance(answer, dict) or (member is not None and member not in answer):
        raise TransientFailure("the reply is not one of DynamoDB")
    return answer


def _error_for(error: exceptions.ClientError, shown: str) -> Exception:
    code = str(error.response.get("Error", {}).get("Code", ""))
    code = code.rpartition("#")[2]
    # The first line only: later lines of a rejected signature contain the signed request with its session token.
    reason = str(error.response.get("Error", {}).get("Message", "")).partition("\n")[0][:500]
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code in _TRIMMED:
        return TrimmedData(f"{shown}: {reason}")
    if code in _TRANSIENT or status >= 500 or status == 429:
        return TransientFailure(f"{code}: {reason}")
    if code in _ACCESS:
        return AccessRefused(f"{shown}: the service rejects these credentials ({code}: {reason})")
    if code in _ABSENT:
        return TableAbsent(f"{shown}: no such table ({reason})")
    return RequestRefused(shown, code, reason, status)
