"""DynamoDB's API by boto3, with the JSON of the wire on both sides.

boto3 finds credentials and the region, signs, keeps connections and checks checksums. Bodies pass as they are: the values of
the wire are what the adapter's own functions read and write (adapters/dynamodb/values), and botocore's serializers would cost
more than everything else. Which errors mean what for a transfer is said here.
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

from tablegate.transfer.endpoints.retrying import RetryBudget, TransientFailure
from tablegate.transfer.errors import AccessRefused, BadAddress, RequestRefused, TableAbsent, TransferError


class TrimmedData(TransferError):
    """What a position in a stream names is no longer there."""


# "Error handling with DynamoDB", developer guide; the streams' own from the API reference of GetRecords.
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

# Of the connection, not of the request. Each try is one request: how long to go on is the transfer's patience.
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
# botocore looks for names of tables in these parameters, to find an account's own endpoint; it does not mind that none is there.
_PARAMETERS: dict[str, Any] = {
    operation: {"RequestItems": {}} for operation in ("BatchGetItem", "BatchWriteItem")
}
# What every answer to an operation has (API reference, "Response Elements").
_MEMBERS = {
    "DescribeStream": "StreamDescription",
    "DescribeTable": "Table",
    "GetShardIterator": "ShardIterator",
    "ListTables": "TableNames",
}


@dataclass(frozen=True, slots=True)
class Account:
    """Whose tables: empty texts leave it to boto3's own chain (environment, ~/.aws, instance roles)."""

    region: str = ""
    endpoint: str = ""
    profile: str = ""


class Client:
    """One service of an account: `dynamodb` or `dynamodbstreams`. May be used by several threads."""

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
                f"{patience.shown}: no region: add ?region=REGION, or set AWS_DEFAULT_REGION or the profile's region"
            ) from None
        except (
            ValueError,
            exceptions.BotoCoreError,
        ) as error:  # an endpoint that is no URL, a region that is none
            raise BadAddress(f"{patience.shown}: {error}") from None
        events = self._client.meta.events
        events.register("before-call", self._put_body)
        events.register("before-parse", self._take_body)

    def call(self, operation: str, body: bytes | Mapping[str, Any]) -> Any:
        """The JSON of the answer, tried again while the service is busy. Raises RequestRefused, TrimmedData and the
        other errors of a transfer."""
        content = body if isinstance(body, bytes) else orjson.dumps(body)
        return self.patience.run(lambda: self.once(operation, content))

    def once(self, operation: str, body: bytes) -> Any:
        """The JSON of the answer to one request. Raises Transient too."""
        local = self._local
        local.body, local.answer, local.date = body, b"{}", ""
        try:
            getattr(self._client, xform_name(operation))(**_PARAMETERS.get(operation, {}))
        except exceptions.ClientError as error:
            raise _meaning(error, self.patience.shown) from None
        except _NO_CREDENTIALS as error:
            raise AccessRefused(f"{self.patience.shown}: {error}") from None
        except _LOST as error:
            raise TransientFailure(f"no answer: {error}") from None
        except exceptions.BotoCoreError as error:
            raise TransferError(f"{self.patience.shown}: {error}") from None
        except ValueError as error:  # an endpoint of the environment that is no URL
            raise BadAddress(f"{self.patience.shown}: {error}") from None
        return _answer_of(operation, local.answer)

    @property
    def date(self) -> str:
        """The Date header of this thread's last answer: what the service takes for now."""
        return str(getattr(self._local, "date", ""))

    def close(self) -> None:
        """Give back the connections."""
        self._client.close()

    def _put_body(self, params: dict[str, Any], **_: Any) -> None:
        params["body"] = self._local.body

    def _take_body(self, response_dict: dict[str, Any], **_: Any) -> None:
        self._local.date = response_dict["headers"].get("Date", "")
        if response_dict["status_code"] == 200:
            self._local.answer = response_dict["body"]
            response_dict["body"] = b"{}"  # so that botocore need not parse it


def _answer_of(operation: str, body: bytes) -> dict[str, Any]:
    """The JSON of an answer. Raises Transient where it is not one of DynamoDB, as that of another server at its address."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        answer = None
    member = _MEMBERS.get(operation)
    if not isinstance(answer, dict) or (member is not None and member not in answer):
        raise TransientFailure("an answer that is none of DynamoDB's")
    return answer


def _meaning(error: exceptions.ClientError, shown: str) -> Exception:
    code = str(error.response.get("Error", {}).get("Code", ""))
    code = code.rpartition("#")[2]
    # A refused signature is told with the request as it was signed, session token and all, on further lines.
    reason = str(error.response.get("Error", {}).get("Message", "")).partition("\n")[0][:500]
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code in _TRIMMED:
        return TrimmedData(f"{shown}: {reason}")
    if code in _TRANSIENT or status >= 500 or status == 429:
        return TransientFailure(f"{code}: {reason}")
    if code in _ACCESS:
        return AccessRefused(f"{shown}: the service refuses these credentials ({code}: {reason})")
    if code in _ABSENT:
        return TableAbsent(f"{shown}: there is no such table ({reason})")
    return RequestRefused(shown, code, reason, status)
