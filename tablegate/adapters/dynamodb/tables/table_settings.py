"""Settings of CreateTable and UpdateTable that change nothing about how rows are stored: the storage class, the stream, and
encryption at rest.

The database and its disk do the encryption. There is no KMS, so keys are not looked up. Rules and texts: ack-api-quirks
(live service, October 2026: findings 026, 177, 180, 283, 284, 365 for the class, 020, 037, 065, 069, 081, 082, 140, 141,
328, 361, 371, 461 for encryption).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from tablegate.adapters.dynamodb.call import CallContext
from tablegate.adapters.dynamodb.tables import running_changes
from tablegate.adapters.dynamodb.tables.properties import TableProperties, seconds
from tablegate.adapters.dynamodb.wire import error_texts, limits
from tablegate.adapters.dynamodb.wire.arns import key_arn
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.gateway.model.tables.tables import Rules, StreamRule, Table
from tablegate.gateway.security.credentials import Scheme

# Storage class


_STANDARD = "STANDARD"


def with_table_class(
    properties: TableProperties, new_class: str, now_ms: int, delay_ms: int
) -> TableProperties:
    """Return the properties of a table after an UpdateTable with this TableClass.

    `delay_ms`: the duration of the change.

    Raises ServiceError.
    """
    recent = [
        at_ms for at_ms in properties.class_changes if now_ms < at_ms + limits.CLASS_CHANGES_DAYS * 86_400_000
    ]
    if len(recent) >= limits.CLASS_CHANGES:
        text = f"Updates to TableClass are limited to {limits.CLASS_CHANGES} times in {limits.CLASS_CHANGES_DAYS} day(s)."
        raise ServiceError("LimitExceededException", f"Subscriber limit exceeded: {text}")
    if new_class == (properties.table_class or _STANDARD):
        return properties
    return replace(
        properties,
        table_class=new_class,
        table_class_at_ms=now_ms + delay_ms,
        former_class=table_class_summary(properties, is_changing=False),
        class_changes=(*recent, now_ms),
    )


def table_class_summary(properties: TableProperties, is_changing: bool) -> dict[str, Any]:
    """Return the member TableClassSummary, absent if no class was ever set. A running change shows the former class."""
    if is_changing:
        return dict(properties.former_class)
    if properties.table_class is None:
        return {}
    members: dict[str, Any] = {"TableClass": properties.table_class}
    if properties.table_class_at_ms is not None:
        members["LastUpdateDateTime"] = seconds(properties.table_class_at_ms)
    return {"TableClassSummary": members}


# Stream


def stream_of_new_table(specification: Mapping[str, Any] | None, now_ms: int) -> StreamRule | None:
    """Return the rule of a new table's stream, or None."""
    if specification is None or not specification["StreamEnabled"]:
        return None
    return new_stream_rule(specification["StreamViewType"], now_ms)


def with_stream(table: Table, specification: Mapping[str, Any] | None, now_ms: int) -> Rules | None:
    """Return the rules with the stream switched on or off. Another view type needs a new stream.

    None if the request does not mention the stream. Raises ServiceError.
    """
    if specification is None:
        return None
    stream = table.rules.stream
    running = stream is not None and stream.enabled
    if specification["StreamEnabled"]:
        if "StreamViewType" not in specification:
            raise validation(
                f"{error_texts.INVALID}If stream is being enabled then UpdateViewType is required"
            )
        if running:
            raise validation(f"Table already has an enabled stream: TableName: {table.name}")
        return replace(table.rules, stream=new_stream_rule(specification["StreamViewType"], now_ms))
    if table.rules.replication is not None and running:
        raise validation(f"{error_texts.INVALID}Disabling Stream is not allowed for a Global Table replica.")
    if "StreamViewType" in specification:
        text = "If stream is being disabled, then UpdateViewType must not be specified"
        raise validation(error_texts.INVALID + text)
    if stream is None or not stream.enabled:
        raise validation(f"Table has no stream to disable: TableName: {table.name}")
    return replace(table.rules, stream=replace(stream, enabled=False))


def new_stream_rule(view: str, now_ms: int) -> StreamRule:
    """Return the rule of a new stream."""
    label = datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
    return StreamRule(label, True, view, limits.STREAM_RETENTION_MS, now_ms)


# Encryption at rest


_SERVICE_KEY = "alias/aws/dynamodb"
_KMS = "com.amazonaws.services.kms.model."


def encryption_key_of(call: CallContext, specification: Mapping[str, Any]) -> str | None:
    """Return the ARN of the key that an SSESpecification names.

    None stands for the service's own key, which is not shown.

    Raises ServiceError for a key of another account, region or service.
    """
    if not _wants_key(specification):
        return None
    name: str = specification.get("KMSMasterKeyId", _SERVICE_KEY)
    key = key_arn(call.caller, name)
    user = (
        f"User: arn:aws:iam::{call.caller.account}:user/{call.caller.access_id} is not authorized to perform:"
    )
    if name.startswith("alias/aws/") and name != _SERVICE_KEY:
        text = f"{user} kms:CreateGrant on resource: {key} because no resource-based policy allows the kms:CreateGrant action"
        raise _access_denied(text)
    region, account = [*key.split(":"), "", "", "", "", ""][3:5]
    if call.gateway.credentials.namespace(Scheme.AWS, account, region) != call.caller.namespace:
        if region != call.caller.region:
            text = _of_kms("NotFoundException", f"Invalid arn {region}", "NotFoundException")
            raise validation(f"KMS validation error: {text}")
        raise _access_denied(
            f"{user} kms:DescribeKey on this resource because the resource does not exist in this Region, no resource-based "
            "policies allow access, or a resource-based policy explicitly denies access"
        )
    return key


def _wants_key(specification: Mapping[str, Any]) -> bool:
    """Return True if an SSESpecification selects another key than the service's own."""
    return bool(specification.get("Enabled", "SSEType" in specification or "KMSMasterKeyId" in specification))


def _access_denied(text: str) -> ServiceError:
    error_text = _of_kms("AWSKMSException", text, "AccessDeniedException")
    return ServiceError("AccessDeniedException", f"KMS key access denied error: {error_text}")


def _of_kms(kind: str, text: str, code: str) -> str:
    where = f"Service: AWSKMS; Status Code: 400; Error Code: {code}; Request ID: {uuid4()}; Proxy: null"
    return f"{_KMS}{kind}: {text} ({where})"


def with_encryption(call: CallContext, properties: TableProperties) -> TableProperties:
    """Return the properties of a table after an UpdateTable with SSESpecification. Raises ServiceError."""
    specification, now_ms = call.input["SSESpecification"], call.gateway.now_ms()
    if not _wants_key(specification) and not properties.encryption_key:
        raise validation(f"{error_texts.INVALID}Table is already encrypted by default")
    if properties.encryption_key and specification.get("KMSMasterKeyId") == key_arn(
        call.caller, properties.encryption_key
    ):
        text = "Table is already encrypted with given KMSMasterKeyId"
        raise validation(
            f"{error_texts.INVALID}{text}. Use KMSMasterKeyId parameter if you want to change Master Key"
        )
    if is_encryption_changing(properties, now_ms):
        if encryption_key_of(call, specification) == properties.encryption_key:
            return properties
        raise running_changes.in_use("Server-Side Encryption is still being updated")
    window = _counted_change(properties, now_ms)
    key = encryption_key_of(call, specification)
    delay_ms = round(call.gateway.settings.table_creation_delay * 1000)
    change = {
        **window,
        "former_key": properties.encryption_key,
        "at_ms": now_ms,
        "until_ms": now_ms + delay_ms,
    }
    return replace(properties, encryption_key=key, encryption_change=change)


def is_encryption_changing(properties: TableProperties, now_ms: int) -> bool:
    """Return True until a change of the key is done."""
    change = properties.encryption_change
    return change is not None and now_ms < change["until_ms"]


def _counted_change(properties: TableProperties, now_ms: int) -> dict[str, int]:
    """Return the window of changes with one more. Raises ServiceError for one too many."""
    change = properties.encryption_change or {}
    since_ms, count = change.get("since_ms", now_ms), change.get("count", 0)
    if now_ms >= since_ms + limits.ENCRYPTION_CHANGES_WINDOW_MS:
        return {"since_ms": now_ms, "count": 1}
    next_ms = change.get("at_ms", now_ms) + limits.ENCRYPTION_CHANGE_WAIT_MS
    if count >= limits.ENCRYPTION_CHANGES and now_ms < next_ms:
        raise ServiceError(
            "LimitExceededException",
            "Subscriber limit exceeded: Encryption mode changes are limited in the 24h window ending at "
            f"{_iso(since_ms + limits.ENCRYPTION_CHANGES_WINDOW_MS)}. After the first {limits.ENCRYPTION_CHANGES} change, each "
            "subsequent change in the same window can be performed at most once every "
            f"{limits.ENCRYPTION_CHANGE_WAIT_MS // 1000} seconds. Number of updates today: {count}. Last change at "
            f"{_iso(change['at_ms'])}. Next changes can be made at {_iso(next_ms)}.",
        )
    return {"since_ms": since_ms, "count": count + 1}


def _iso(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def encryption_description(properties: TableProperties, now_ms: int) -> dict[str, Any]:
    """Return the member SSEDescription. A change shows the former key for two fifths of its time, then the new one."""
    key, change = properties.encryption_key, properties.encryption_change
    if change is None or not is_encryption_changing(properties, now_ms):
        return {} if key is None else {"SSEDescription": _description_of("ENABLED", key)}
    is_early = now_ms < change["at_ms"] + (change["until_ms"] - change["at_ms"]) * 2 // 5
    return {"SSEDescription": _description_of("UPDATING", change["former_key"] if is_early else key)}


def _description_of(status: str, key: str | None) -> dict[str, Any]:
    of_key = {} if key is None else {"SSEType": "KMS", "KMSMasterKeyArn": key}
    return {"Status": status, **of_key}
