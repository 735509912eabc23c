"""The service's errors for errors of the gateway: one table, by the type of the error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tablegate.adapters.dynamodb.wire import errors
from tablegate.adapters.dynamodb.wire.arns import partition_of
from tablegate.adapters.dynamodb.wire.error_texts import EMPTY_KEY, INVALID, NOT_VALID, bare
from tablegate.gateway.model import errors as model
from tablegate.gateway.model.authorization.accesses import ANYWHERE
from tablegate.gateway.model.authorization.authorizations import Authorization
from tablegate.gateway.model.authorization.grants import Verdict
from tablegate.gateway.model.authorization.permissions import Permission
from tablegate.gateway.model.values.values import Kind

CONTROL_PLANE = frozenset(
    {
        "CreateTable",
        "DeleteTable",
        "DisableKinesisStreamingDestination",
        "EnableKinesisStreamingDestination",
        "ListContributorInsights",
        "UpdateContributorInsights",
        "UpdateKinesisStreamingDestination",
        "UpdateTableReplicaAutoScaling",
        "DescribeContinuousBackups",
        "DescribeContributorInsights",
        "DescribeKinesisStreamingDestination",
        "DescribeTable",
        "DescribeTableReplicaAutoScaling",
        "DescribeTimeToLive",
        "ListTagsOfResource",
        "TagResource",
        "UntagResource",
        "UpdateTable",
        "UpdateTimeToLive",
        "DeleteResourcePolicy",
        "GetResourcePolicy",
        "PutResourcePolicy",
    }
)
"""Operations that name a missing table. Data plane operations do not (docs/protocols/dynamodb.md rule 20)."""

_TAGS = frozenset({"ListTagsOfResource", "TagResource", "UntagResource"})
_TABLE_NOT_FOUND_TYPED = frozenset(
    {"CreateBackup", "DescribeContinuousBackups", "RestoreTableToPointInTime", "UpdateContinuousBackups"}
)
_STATES = {"creating": "created", "updating": "updated", "deleting": "deleted"}

_TABLE_THROTTLED = (
    "The level of configured provisioned throughput for the table was exceeded. "
    "Consider increasing your provisioning level with the UpdateTable API."
)
_INDEX_THROTTLED = (
    "The level of configured provisioned throughput for one or more global secondary indexes of the table was exceeded. "
    "Consider increasing your provisioning level for the under-provisioned global secondary indexes with the UpdateTable API"
)
_MAXIMUM_EXCEEDED = "Throughput exceeds the maximum OnDemandThroughput configured on table or index"
_UPDATE_PATH_INVALID = "The document path provided in the update expression is invalid for update"
_TYPE_NAMES = {"TEXT": "S", "DECIMAL": "N", "INT32": "N", "INT64": "N", "DOUBLE": "N", "BYTES": "B", "BOOL": "BOOL",
               "NULL": "NULL", "LIST": "L", "MAP": "M", "TEXT_SET": "SS", "DECIMAL_SET": "NS", "BYTES_SET": "BS",
               "DATETIME": "S", "GUID": "S"}  # fmt: skip


def type_name(kind: Any) -> str:
    """Return DynamoDB's name of a kind of value, as in error texts."""
    return _TYPE_NAMES[kind.name]


def _table_missing(error: model.TableMissing, operation: str) -> errors.ServiceError:
    if operation in _TABLE_NOT_FOUND_TYPED:
        return errors.ServiceError("TableNotFoundException", f"Table not found: {error.name}")
    text = "Requested resource not found"
    if operation in CONTROL_PLANE:
        text += f": Table: {error.name} not found"
    return errors.ServiceError("ResourceNotFoundException", text)


def index_filling(name: str) -> errors.ServiceError:
    """Return the error for a read of an index under construction. The text is from users' reports."""
    return errors.validation(f"Cannot read from backfilling global secondary index: {name}")


def _table_busy(error: model.TableBusy, operation: str) -> errors.ServiceError:
    if operation not in CONTROL_PLANE:
        return errors.ServiceError("ResourceNotFoundException", "Requested resource not found")
    state = _STATES.get(error.state, error.state)
    text = f"Attempt to change a resource which is still in use: Table is being {state}: {error.name}"
    return errors.ServiceError("ResourceInUseException", text)


def _index_missing(error: model.IndexMissing, operation: str) -> errors.ServiceError:
    if operation == "UpdateTable":
        text = f"Requested resource not found: Index: {error.index} not found"
        return errors.ServiceError("ResourceNotFoundException", text)
    return errors.validation(f"The table does not have the specified index: {error.index}")


def _group_refused(error: model.GroupRefused, operation: str) -> errors.ServiceError:
    return errors.cancelled(
        [None if reason is None else service_error_of(reason, operation) for reason in error.reasons]
    )


_BAD_KEYS = {
    "schema": "The provided key element does not match the schema",
    "missing": INVALID + "Missing the key {name} in the item",
    "kind": INVALID + "Type mismatch for key {name} expected: {expected} actual: {actual}",
    "empty": NOT_VALID + EMPTY_KEY + "Key: {name}",
    "key-empty": NOT_VALID + EMPTY_KEY + "Key: {name}",
    "index-kind": INVALID
    + "Type mismatch for Index Key {name} Expected: {expected} Actual: {actual} IndexName: {index}",
    "index-empty": NOT_VALID
    + "A value specified for a secondary index key is not supported. "
    + EMPTY_KEY
    + "IndexName: {index}, IndexKey: {name}",
    "index-update-kind": "The update expression attempted to update the secondary index key to unsupported type",
    # From the documentation of TransactWriteItems, as the one above.
    "index-update-size": "The update expression attempted to update the secondary index key beyond allowed size limits",
    "index-update-empty": NOT_VALID
    + "The update expression attempted to update a secondary index key to a value that is not supported. "
    + EMPTY_KEY.rstrip(),
}


def _shown_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of an error for its text: a key column and its value by name and types, others unchanged."""
    shown = dict(facts)
    if "column" in facts:
        shown |= {"name": facts["column"].name, "expected": type_name(facts["column"].kind)}
        if "actual" in facts:
            kind = facts["actual"].kind
            shown |= {"actual": type_name(kind), "kind": "binary" if kind is Kind.BYTES else "string"}
    return shown


def _bad_key(error: model.BadKey, operation: str) -> errors.ServiceError:
    """Rules `schema` and `key-empty` are about a Key parameter, the rest about items (docs/protocols/dynamodb.md
    rules 23 and 36).

    BatchWriteItem reports keys of items like Key parameters (paritysuite, captured; dynalite).
    """
    if operation == "BatchWriteItem" and error.rule in ("missing", "kind"):
        return errors.validation(_BAD_KEYS["schema"])
    facts = {"index": "", **_shown_facts(error.facts)}
    return errors.validation(_BAD_KEYS[error.rule].format(**facts))


def _key_too_long(error: model.KeyTooLong, operation: str) -> errors.ServiceError:
    if error.rule == "partition":
        return errors.validation(INVALID + "Size of hashkey has exceeded the maximum size limit of2048 bytes")
    return errors.validation(
        INVALID + "Aggregated size of all range keys has exceeded the size limit of 1024 bytes"
    )


def _bad_path(error: model.BadPath, operation: str) -> errors.ServiceError:
    if error.rule == "operand-missing":
        return errors.validation(
            "The provided expression refers to an attribute that does not exist in the item"
        )
    return errors.validation(_UPDATE_PATH_INVALID)


def _bad_operand(error: model.BadOperand, operation: str) -> errors.ServiceError:
    if error.rule == "legacy":
        return errors.validation("Type mismatch for attribute to update")
    return errors.validation("An operand in the update expression has an incorrect data type")


def _number_out_of_range(error: model.NumberOutOfRange, operation: str) -> errors.ServiceError:
    """The result of arithmetic. Too many digits are reported as an overflow.

    Source: test_number.py test_update_expression_plus_imprecise, which calls it "clearly the wrong error
    message".
    """
    return errors.validation(bare("number-underflow" if error.rule == "underflow" else "number-overflow"))


# By the rules of operations/items.py.
_ROW_RULES = {rule: bare(rule) for rule in ("nesting", "update-size")}
# By the rules of vectors. Sizes and types are those of eu-west-2 (paritysuite). In mid-August 2026
# us-east-1 had two frames around them too (ExtendDB).
_VECTOR = INVALID.removesuffix(": ")
_FRAMED_TWICE = f"{NOT_VALID}{_VECTOR} . "
_ROW_RULES |= {
    "vector-type": _VECTOR
    + ". Invalid type for parameter {name}, Expected: 32-bit floating point number list IndexName: {index}",
    "vector-size": _VECTOR
    + ". Invalid size for parameter {name}, Expected: {expected}, Actual: {actual} IndexName: {index}",
    "vector-element-type": _VECTOR
    + ". Invalid type for parameter {name}[{at}], Expected: 32-bit floating point number, Actual: {actual}. IndexName: {index}",
    "vector-element-range": _FRAMED_TWICE
    + "Invalid value for parameter {name}[{at}], Value: {number} is outside valid range [-3.4028235E38, 3.4028235E38]. "
    "IndexName: {index}",
    "search-schema-kind": _VECTOR
    + ". Attribute '{name}' type mismatch. Expected: {expected}, Actual: {actual}. IndexName: {index}",
    "search-schema-empty": _BAD_KEYS["index-empty"],
    "search-schema-update-empty": _BAD_KEYS[
        "index-update-empty"
    ],  # dynoxide: eu-west-2 and us-east-1, August 2026
    "search-schema-hash-size": _VECTOR
    + ". Aggregate size for HASH key attributes exceeds the maximum of {limit} bytes",
    "search-schema-filter-size": _VECTOR
    + ". Size limit exceeded for SearchSchema attribute '{name}': maximum {limit} bytes",
}


def _row_rule_violated(error: model.RowRuleViolated, operation: str) -> errors.ServiceError:
    return errors.validation(_ROW_RULES[error.rule].format(**_shown_facts(error.facts)))


def _limit_exceeded(error: model.LimitExceeded, operation: str) -> errors.ServiceError:
    if error.what == "rows-together":  # of a transaction's reads; the words: DynamoDB Local 2.6.1
        return errors.validation("Payload in response is too large.")
    text = f"Subscriber limit exceeded: There is a limit of {error.limit} {error.what}"
    return errors.ServiceError("LimitExceededException", text)


def _throttled(error: model.Throttled, operation: str) -> errors.ServiceError:
    """`resource` is an ARN. That of an index contains `/index/`. `kind` is read or write.

    Exceeding the maximum of an on-demand table is another exception, with `throttlingReasons` in lower case
    (botocore 1.44.5 service-2.json; text: developer guide, 'Understanding throttling exceptions').
    """
    if "/index/" in error.resource:
        owner, text = "Index", _INDEX_THROTTLED
    else:
        owner, text = "Table", _TABLE_THROTTLED
    if error.limit == "maximum":
        reason = f"{owner}{error.kind.capitalize()}MaxOnDemandThroughputExceeded"
        reasons = [{"reason": reason, "resource": error.resource}]
        return errors.ServiceError(
            "ThrottlingException", _MAXIMUM_EXCEEDED, extra={"throttlingReasons": reasons}
        )
    reason = f"{owner}{error.kind.capitalize()}ProvisionedThroughputExceeded"
    extra = {"ThrottlingReasons": [{"reason": reason, "resource": error.resource}]}
    return errors.ServiceError("ProvisionedThroughputExceededException", text, extra=extra)


def _not_allowed(error: model.NotAllowed, operation: str) -> errors.ServiceError:
    text = error.facts.get("text") or f"User is not authorized to perform: dynamodb:{operation}"
    return errors.ServiceError("AccessDeniedException", text)


def _not_permitted(error: model.NotPermitted, operation: str) -> errors.ServiceError:
    """Fallback without the caller's name, which `error_for_caller` adds."""
    return errors.ServiceError(
        "AccessDeniedException", f"User is not authorized to perform: dynamodb:{operation}"
    )


def foreign_resource(operation: str, access_id: str, account: str, arn: str) -> errors.ServiceError:
    """Return the error for an ARN of another account or region, no matter if the resource exists.

    Resource policies apply within one account here. Sources of the texts: control plane, ack-api-quirks 011 and
    071 (October 2026). Items: "Troubleshoot access denied error messages" of the IAM guide.
    """
    if arn.split(":", 5)[4:5] == [account]:
        if operation in _TAGS:
            return errors.validation(f"Invalid TableArn: Invalid ResourceArn provided as input {arn}")
        return errors.validation(f"1 validation error detected: Invalid AWS region in '{arn}'")
    if operation in CONTROL_PLANE:
        return errors.ServiceError("AccessDeniedException", "Access is denied")
    text = (
        f"User: arn:aws:iam::{account}:user/{access_id} is not authorized to perform: dynamodb:{operation} on resource: "
        f"{arn} because no resource-based policy allows the dynamodb:{operation} action"
    )
    return errors.ServiceError("AccessDeniedException", text)


def _quota_exceeded(error: model.QuotaExceeded, operation: str) -> errors.ServiceError:
    """Texts: "Error handling with DynamoDB", "Service, account, and table quotas"."""
    if not error.is_temporary:
        subject = "tables" if error.kind == "tables" else "bytes of storage"
        text = f"Subscriber limit exceeded: at most {error.limit:.0f} {subject} are allowed."
        return errors.ServiceError("LimitExceededException", text)
    if operation in CONTROL_PLANE:
        return errors.ServiceError("ThrottlingException", "Rate of requests exceeds the allowed throughput.")
    return errors.ServiceError(
        "RequestLimitExceeded", "Throughput exceeds the current throughput limit for your account."
    )


_Conversion = Callable[[Any, str], errors.ServiceError]
"""The service's error for an error that an operation raised."""


def _always(code: str, text: str, status: int = 400) -> _Conversion:
    """Convert errors of a type to one error. `text` may name attributes of the error."""
    return lambda error, operation: errors.ServiceError(code, text.format(error=error), status)


def _internal(error: Exception, operation: str) -> errors.ServiceError:
    return errors.internal()


# Retryable: every SDK repeats 503 with backoff.
_UNAVAILABLE = _always("ServiceUnavailableException", "Service is unavailable. Please retry.", 503)
_FROM_GATEWAY: dict[type[BaseException], _Conversion] = {
    model.TableMissing: _table_missing,
    model.TableExists: _always("ResourceInUseException", "Table already exists: {error.name}"),
    model.TableBusy: _table_busy,
    model.IndexMissing: _index_missing,
    # Fallback: features/streams reports it with the requested ARN.
    model.StreamMissing: _always(
        "ResourceNotFoundException", "Requested resource not found: Stream not found"
    ),
    model.ConditionFailed: lambda error, operation: errors.condition_failed(),
    model.GroupRefused: _group_refused,
    model.BadKey: _bad_key,
    model.KeyTooLong: _key_too_long,
    model.HeadTooLong: lambda error, operation: errors.validation(error.text),
    model.BadPath: _bad_path,
    model.BadOperand: _bad_operand,
    model.NumberOutOfRange: _number_out_of_range,
    model.RowRuleViolated: _row_rule_violated,
    model.LimitExceeded: _limit_exceeded,
    model.PartitionLocked: _always("TransactionConflictException", "Transaction is ongoing for the item"),
    # Errors of commands that only Table Store has.
    model.TransactionMissing: _internal,
    model.IndexExists: _internal,
    model.TunnelRefused: _internal,
    model.Throttled: _throttled,
    model.QuotaExceeded: _quota_exceeded,
    model.Busy: _UNAVAILABLE,
    model.Contended: _UNAVAILABLE,
    model.NodeAway: _UNAVAILABLE,
    model.OutOfSpace: _UNAVAILABLE,
    model.SchemaTooNew: _UNAVAILABLE,
    model.TooManyAttempts: _UNAVAILABLE,
    model.DatabaseFailed: _internal,
    model.DataCorrupted: _internal,
    model.CommitUnknown: _internal,
    model.PositionExpired: _always(
        "TrimmedDataAccessException",
        "The operation attempted to read past the oldest stream record in a shard.",
    ),
    # Fallback: recovery.py reports it for a requested time.
    model.TimeNotRetained: _always(
        "PointInTimeRecoveryUnavailableException",
        "Point in time recovery is not enabled for table '{error.name}'",
    ),
    model.NotInstalled: _always(
        "ValidationException",
        INVALID
        + "this request needs the package tablegate[{error.extra}], which is not installed on the server",
    ),
    # Fallbacks: features/backups reports the first two with the requested ARN.
    model.BackupMissing: _always("BackupNotFoundException", "Backup not found"),
    model.BackupBusy: _always("BackupInUseException", "Backup is being used"),
    model.TokenReused: _always(
        "IdempotentParameterMismatchException",
        "The request uses the same client token as a previous, but non-identical request. "
        "Do not reuse a client token with different requests, unless the requests are identical",
    ),
    model.StaleTable: _internal,
    model.NotAuthenticated: _always(
        "UnrecognizedClientException", "The security token included in the request is invalid."
    ),
    model.NotAllowed: _not_allowed,
    model.NotPermitted: _not_permitted,
    model.InvalidInput: lambda error, operation: errors.validation(error.rule),
}


def service_error_of(error: Exception, operation: str) -> errors.ServiceError:
    """Return the service's error for a gateway error raised in `operation` (its wire name, such as PutItem).

    A ServiceError is returned unchanged. Unknown errors become an internal server error.
    """
    if isinstance(error, errors.ServiceError):
        return error
    for base in type(error).__mro__:
        convert = _FROM_GATEWAY.get(base)
        if convert is not None:
            return convert(error, operation)
    return errors.internal()


# Callers without permission. Texts: "Troubleshoot access denied error messages" (IAM guide), and answers of the service
# quoted in public issues (rebuy-de/aws-nuke 265, terraform-aws-modules/terraform-aws-appsync 7).

_P = Permission
_PARTS: Mapping[Permission, str] = {
    _P.READ: "GetItem", _P.PUT: "PutItem", _P.UPDATE: "UpdateItem", _P.DELETE: "DeleteItem",
    _P.CHECK: "ConditionCheckItem",
}  # fmt: skip
_PARTS_OF_STATEMENTS: Mapping[Permission, str] = {
    _P.READ: "PartiQLSelect", _P.QUERY: "PartiQLSelect", _P.SCAN: "PartiQLSelect", _P.CHECK: "PartiQLSelect",
    _P.PUT: "PartiQLInsert", _P.UPDATE: "PartiQLUpdate", _P.DELETE: "PartiQLDelete",
}  # fmt: skip
_ADDITIONAL: Mapping[Permission, str] = {
    _P.TAG: "TagResource", _P.WRITE_POLICY: "PutResourcePolicy", _P.READ_STREAM: "GetRecords",
}  # fmt: skip
_COPYING: Mapping[Permission, str] = {**_PARTS, _P.QUERY: "Query", _P.SCAN: "Scan"}
_ACTIONS: Mapping[str, Mapping[Permission, str]] = {
    "TransactGetItems": _PARTS,
    "TransactWriteItems": _PARTS,
    "ExecuteStatement": _PARTS_OF_STATEMENTS,
    "BatchExecuteStatement": _PARTS_OF_STATEMENTS,
    "ExecuteTransaction": _PARTS_OF_STATEMENTS,
    "CreateTable": _ADDITIONAL,
    "EnableKinesisStreamingDestination": _ADDITIONAL,
    "RestoreTableFromBackup": _COPYING,
    "RestoreTableToPointInTime": _COPYING,
    "ExportTableToPointInTime": _COPYING,
    "StartBulkPutItems": _COPYING,
}
"""Operations with parts that are actions of their own. For all others the action has the operation's name."""
_ALL_TABLES = frozenset({"ListTables"})


def error_for_caller(
    error: Exception, operation: str, authorization: Authorization | None
) -> errors.ServiceError:
    """Return the service's error, with the caller's name if it is NotPermitted. Unknown errors are internal."""
    if isinstance(error, model.NotPermitted) and authorization is not None:
        return _not_permitted_caller(error, operation, authorization)
    return service_error_of(error, operation)


def _not_permitted_caller(
    error: model.NotPermitted, operation: str, authorization: Authorization
) -> errors.ServiceError:
    identity, region = authorization.identity, authorization.source.region
    action = "dynamodb:" + _ACTIONS.get(operation, {}).get(error.permission, operation)
    prefix = f"arn:{partition_of(region)}:dynamodb:{region}:{identity.account}:"
    resource = prefix + f"table/{error.path.replace(ANYWHERE, '*')}" if error.path else "*"
    if operation in _ALL_TABLES:
        resource = prefix + "table/*"
    if error.by == Verdict.REFUSED.value:
        reason = "with an explicit deny in an identity-based policy"
    elif error.by == Verdict.REFUSED_BY_RESOURCE.value:
        reason = "with an explicit deny in a resource-based policy"
    else:
        reason = f"because no identity-based policy allows the {action} action"
    text = f"User: {identity.arn} is not authorized to perform: {action} on resource: {resource} {reason}"
    return errors.ServiceError("AccessDeniedException", text)
