"""A client of DynamoDB by boto3, with JSON as on the wire, and its table descriptions as definitions.

boto3 finds credentials and region, signs requests, keeps connections and verifies checksums. Bodies bypass
botocore's serializers, which would cost more than the rest. The adapter converts values (adapters/dynamodb/values).
Errors become those of a transfer. A definition has the keys, indexes, time to live and streams of a table.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import boto3
import orjson
from botocore import exceptions, xform_name
from botocore.config import Config
from botocore.parsers import ResponseParserError

from tablegate.adapters.dynamodb import capabilities  # noqa: F401 (registers the extensions of tables)
from tablegate.adapters.dynamodb.tables import table_definitions, table_extensions
from tablegate.adapters.dynamodb.tables.table_definitions import defined_types, key_schema
from tablegate.adapters.dynamodb.wire import limits
from tablegate.gateway.model.commands.table_commands import NewIndex
from tablegate.gateway.model.tables.indexes import IndexProjection
from tablegate.gateway.model.tables.tables import ExpiryRule, Rules, StreamRule
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.transfer.endpoints.batching import RetryBudget, TransientFailure
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.errors import (
    AccessRefused,
    BadAddress,
    RequestRefused,
    SchemaChanged,
    TableAbsent,
    TransferError,
)


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


VIEWS = ("KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES")
_POLL_S = 0.25


# From the service


def definition_of(name: str, wire: Mapping[str, Any], expiry: ExpiryRule | None) -> Definition:
    """Return the definition for a description of DescribeTable."""
    types = defined_types(wire)
    local = [_index(index, types, True) for index in wire.get("LocalSecondaryIndexes") or ()]
    others = [_index(index, types, False) for index in wire.get("GlobalSecondaryIndexes") or ()]
    return Definition(
        name,
        Service.DYNAMODB,
        key_schema(wire["KeySchema"], types),
        tuple(local + others),
        Rules(expiry=expiry, stream=stream_rule(wire)),
        rows=wire.get("ItemCount"),
        size_bytes=wire.get("TableSizeBytes"),
        other_indexes=table_extensions.described_indexes(wire),
    )


def _index(description: Mapping[str, Any], types: Mapping[str, str], local: bool) -> NewIndex:
    projection = description.get("Projection") or {}
    return NewIndex(
        description["IndexName"],
        key_schema(description["KeySchema"], types),
        table_definitions.PROJECTIONS[projection.get("ProjectionType", "ALL")],
        tuple(projection.get("NonKeyAttributes") or ()),
        local,
    )


def stream_rule(wire: Mapping[str, Any]) -> StreamRule | None:
    """Return the enabled stream in a description of DescribeTable, None if there is none."""
    specification = wire.get("StreamSpecification") or {}
    if not specification.get("StreamEnabled"):
        return None
    view = specification.get("StreamViewType", VIEWS[0])
    return StreamRule(wire.get("LatestStreamLabel", ""), True, view, limits.STREAM_RETENTION_MS, 0)


def expiry_of(client: Client, table: str) -> ExpiryRule | None:
    """Return the time to live of a table. None if there is none or the server does not support it."""
    try:
        description = (
            client.call("DescribeTimeToLive", {"TableName": table}).get("TimeToLiveDescription") or {}
        )
    except RequestRefused:
        return None
    if (
        description.get("TimeToLiveStatus") not in ("ENABLED", "ENABLING")
        or "AttributeName" not in description
    ):
        return None
    return ExpiryRule(attribute=description["AttributeName"])


# To the service


def creation_of(name: str, definition: Definition) -> tuple[dict[str, Any], list[str]]:
    """Return a CreateTable request and sentences about unsupported parts of the definition."""
    schema = definition.key_schema
    if len(schema.partition) != 1 or len(schema.sort) > 1 or any(c.auto_increment for c in schema.columns):
        raise SchemaChanged(
            f"a DynamoDB table must have one partition key and at most one sort key, not {schema.names}"
        )
    notes: list[str] = []
    types = {column.name: table_definitions.KEY_TYPES[column.kind] for column in schema.columns}
    request: dict[str, Any] = {
        "TableName": name,
        "KeySchema": table_definitions.key_elements(table_definitions.shown_index_keys(schema)),
        "BillingMode": "PAY_PER_REQUEST",
    }
    for index in definition.indexes:
        problem = _problem_of(index, schema, types)
        if problem:
            notes.append(f"index {index.name}: {problem}")
            continue
        types |= {
            column.name: table_definitions.KEY_TYPES[column.kind] for column in index.key_schema.columns
        }
        member = "LocalSecondaryIndexes" if index.local else "GlobalSecondaryIndexes"
        request.setdefault(member, []).append(_index_wire(index))
    request["AttributeDefinitions"] = [
        {"AttributeName": name, "AttributeType": kind} for name, kind in types.items()
    ]
    table_extensions.add_definitions(request, definition.other_indexes)
    rules = definition.rules
    if rules.stream is not None and rules.stream.enabled:
        view = rules.stream.view if rules.stream.view in VIEWS else "NEW_AND_OLD_IMAGES"
        request["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": view}
    if rules.expiry is not None and rules.expiry.age_ms is not None:
        notes.append(f"rows do not expire {rules.expiry.age_ms // 1000} seconds after they were written")
    if rules.max_versions > 1:
        notes.append(f"one version of each value is kept, not {rules.max_versions}")
    return request, notes


def _problem_of(index: NewIndex, schema: KeySchema, types: Mapping[str, str]) -> str:
    """Return the reason why DynamoDB cannot have an index, "" if it can."""
    keys = index.key_schema
    if len(keys.partition) != 1 or len(keys.sort) > 1:
        return "its key has more columns than a DynamoDB index allows"
    if index.local and (
        not schema.sort or keys.partition[0].name != schema.partition[0].name or not keys.sort
    ):
        return (
            "a local index needs a table with a sort key, the table's partition key and a sort key of its own"
        )
    for column in keys.columns:
        kind = table_definitions.KEY_TYPES.get(column.kind)
        if kind is None or types.get(column.name, kind) != kind:
            return f"{column.name} has a type that is not allowed for this key"
    return ""


def _index_wire(index: NewIndex) -> dict[str, Any]:
    definition = table_definitions.index_definition(index)
    if index.projection is IndexProjection.INCLUDE and not index.included:
        definition["Projection"] = {"ProjectionType": "KEYS_ONLY"}
    return definition


def create_table(client: Client, name: str, definition: Definition) -> list[str]:
    """Create a table and wait until it can be written. Return sentences about unsupported parts of the definition."""
    request, notes = creation_of(name, definition)
    try:
        client.call("CreateTable", request)
    except RequestRefused as refusal:
        if refusal.code == "ResourceInUseException":
            wait_until_active(client, name)
            return []
        raise TransferError(
            f"{client.patience.shown}: the table cannot be created: {refusal.words}"
        ) from None
    wait_until_active(client, name)
    attribute = definition.rules.expiry.attribute if definition.rules.expiry is not None else None
    if attribute is not None:
        specification = {"Enabled": True, "AttributeName": attribute}
        try:
            client.call("UpdateTimeToLive", {"TableName": name, "TimeToLiveSpecification": specification})
        except RequestRefused as refusal:
            notes.append(f"items do not expire by {attribute}: {refusal.words}")
    return notes


def wait_until_active(client: Client, name: str) -> Mapping[str, Any]:
    """Wait until a table and its indexes are ACTIVE and return its description."""
    until = time.monotonic() + client.patience.seconds
    while True:
        try:
            wire = client.call("DescribeTable", {"TableName": name})["Table"]
        except TableAbsent:  # descriptions are eventually consistent
            wire = {}
            if time.monotonic() > until:
                raise
        members = [
            member
            for value in wire.values()
            if isinstance(value, list)
            for member in value
            if isinstance(member, dict)
        ]
        states = [wire.get("TableStatus", ""), *(member.get("IndexStatus", "ACTIVE") for member in members)]
        if all(state == "ACTIVE" for state in states):
            return dict(wire)
        if time.monotonic() > until:
            raise TransferError(f"{client.patience.shown}: the table is still {'/'.join(states)}")
        time.sleep(_POLL_S)
