"""Errors of Table Store: the status of each code, and code and text for each error of the gateway.

    ServiceError            an error for the client: code and message. The status follows from the code
    invalid(message)        OTSParameterInvalid, the most frequent error

Codes matter more than texts. The SDKs retry a request up to 20 times for the codes in RETRIED. So such a code is
returned only if a retry can help. Source: docs/protocols/table-store.md section 1.4 and 4.10.
"""

from __future__ import annotations

from collections.abc import Mapping

from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.dialects.dialect import CONFLICT, LIMIT, THROTTLING
from tablegate.gateway.dialects.dialect import INTERNAL as INTERNAL_FAULT
from tablegate.gateway.model import errors as facts
from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.model.expressions.predicates import Not, RowExists

STATUS = {
    "OTSAuthFailed": 403,
    "OTSNoPermissionAccess": 403,
    "OTSParameterInvalid": 400,
    "OTSInvalidPK": 400,
    "OTSOutOfRowSizeLimit": 400,
    "OTSOutOfColumnCountLimit": 400,
    "OTSDataOutOfRange": 400,
    "OTSUnsupportOperation": 400,
    "OTSMethodNotAllowed": 405,
    "OTSRequestTimeout": 408,
    "OTSRequestBodyTooLarge": 413,
    "OTSObjectNotExist": 404,
    "OTSMetaNotMatch": 400,
    "OTSSessionExpired": 400,
    "OTSObjectAlreadyExist": 409,
    "OTSTableNotReady": 404,
    "OTSConditionCheckFail": 403,
    "OTSRowOperationConflict": 409,
    "OTSQuotaExhausted": 403,
    "OTSNotEnoughCapacityUnit": 403,
    "OTSSessionNotExist": 404,
    "OTSTrimmedDataAccess": 404,
    "OTSTunnelExist": 409,
    "OTSTunnelExpired": 400,
    "OTSSequenceNumberNotMatch": 400,
    "OTSResourceGone": 410,
    "OTSServerBusy": 503,
    "OTSTimeout": 503,
    "OTSInternalServerError": 500,
}

RETRIED = frozenset(
    {"OTSRowOperationConflict", "OTSNotEnoughCapacityUnit", "OTSTableNotReady", "OTSServerBusy"}
)
"""Codes for which SDKs retry every request. They retry reads after 5xx errors too."""


REFUSALS = frozenset({"OTSAuthFailed", "OTSNoPermissionAccess"})
"""Codes for callers who are not permitted or not authenticated."""


class ServiceError(Exception):
    """An error reply. `code` is one of STATUS."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    @property
    def status(self) -> int:
        return STATUS[self.code]

    def as_message(self) -> messages.Error:
        """Return the protobuf message, for a body or for a row of a batch."""
        return messages.Error(code=self.code, message=self.message)


class RowError(ServiceError):
    """An error of one row in its table. In a batch it is the result of that row, whatever its code."""


def is_of_row(error: ServiceError) -> bool:
    """Return True if an error found while a batch is parsed is the result of one row."""
    return error.code in _ROW_CODES or isinstance(error, RowError)


_ROW_CODES = frozenset({"OTSInvalidPK", "OTSConditionCheckFail", "OTSRowOperationConflict"})


def invalid(message: str) -> ServiceError:
    """Return the error for a request that breaks a rule of the service. A retry cannot help."""
    return ServiceError("OTSParameterInvalid", message)


INTERNAL = ServiceError("OTSInternalServerError", "Internal server error.")

CONDITION_FAILED = "Condition check failed."


def service_error_of(error: GatewayError | ServiceError) -> ServiceError:
    """Return the service's error for an error of the gateway."""
    match error:
        case ServiceError():
            return error
        case facts.ConditionFailed():
            return ServiceError("OTSConditionCheckFail", _condition_text(error))
        case facts.TableBusy(index=index) if index:
            # A retry helps, so the code is one of RETRIED.
            return ServiceError("OTSTableNotReady", "Disallow read index table in building base state")
        case facts.NotAuthenticated(rule=rule):
            return ServiceError(*_AUTHENTICATION.get(rule, ("OTSAuthFailed", rule.format(**error.facts))))
        case facts.LimitExceeded(what=subject, limit=limit, actual=actual):
            return (
                _LIMITS[subject](limit, actual)
                if subject in _LIMITS
                else invalid(f"{subject}: {actual} > {limit}.")
            )
        case facts.QuotaExceeded():
            code, text = _QUOTAS.get(error.kind, ("OTSServerBusy", "Server is busy."))
            return ServiceError(code, text.format(limit=error.limit))
        case facts.TunnelRefused():
            code, text = _TUNNELS[error.rule]
            return ServiceError(code, text.format(name=error.facts["name"][:_NAME_CHARACTERS]))
        case facts.InvalidInput(rule="other-partition"):
            return ServiceError("OTSDataOutOfRange", "Data out of scope of transaction.")
        case facts.InvalidInput(rule=rule):
            return invalid(
                _INVALID.get((type(error), rule)) or _INVALID.get((type(error), ""), "Invalid parameter.")
            )
        case facts.NotInstalled(extra=extra):
            return invalid(f"The request needs the package tablegate[{extra}] on the server.")
        case facts.NotAllowed(rule="host" | "origin"):
            return ServiceError("OTSNoPermissionAccess", error.facts["text"])
    for kind, (code, message) in _PLAIN.items():
        if isinstance(error, kind):
            return ServiceError(code, message)
    return INTERNAL


def _condition_text(error: facts.ConditionFailed) -> str:
    """Return the text for a failed condition (recordings of salesforce/multicloudj 9fb0aaa85, 31 July 2026)."""
    match error.condition:
        case RowExists():
            return "Row does not exist which is expected existent"
        case Not(RowExists()):
            return "Row exists which is expected nonexistent"
    return CONDITION_FAILED


_PLAIN: dict[type[GatewayError], tuple[str, str]] = {
    facts.TableMissing: ("OTSObjectNotExist", "Requested table does not exist."),
    facts.IndexMissing: ("OTSObjectNotExist", "Requested index does not exist."),
    facts.IndexExists: ("OTSObjectAlreadyExist", "Requested search index already exists."),
    facts.TableExists: ("OTSObjectAlreadyExist", "Requested table already exists."),
    facts.TableBusy: ("OTSTableNotReady", "The table is not ready."),
    facts.PartitionLocked: ("OTSRowOperationConflict", "Data is being modified by the other request."),
    facts.TransactionMissing: ("OTSSessionNotExist", "Session not exist or may be timeout."),
    facts.Throttled: ("OTSNotEnoughCapacityUnit", "Remaining capacity unit is not enough."),
    facts.Busy: ("OTSServerBusy", "Server is busy."),
    # Not one of RETRIED for writes: the outcome of the write is unknown.
    facts.CommitUnknown: ("OTSTimeout", "Operation timeout."),
    facts.PositionExpired: (
        "OTSTrimmedDataAccess",
        "Requested stream data is already trimmed or does not exist.",
    ),
    facts.NotPermitted: (
        "OTSNoPermissionAccess",
        "You have no permission to access the requested resource, please contact the resource owner",
    ),
    facts.NotAllowed: ("OTSNoPermissionAccess", "You have no permission to access the requested resource."),
}

INJECTABLE_FAULTS: Mapping[str, str] = {
    **{code: code for code in STATUS},
    THROTTLING: "OTSNotEnoughCapacityUnit",
    INTERNAL_FAULT: "OTSInternalServerError",
    CONFLICT: "OTSRowOperationConflict",
    LIMIT: "OTSQuotaExhausted",
}
"""The errors that tests can inject (control/faults.py)."""

_INJECTED_TEXTS = {
    "OTSConditionCheckFail": CONDITION_FAILED,
    # The SDKs retry after this code only with this text.
    "OTSQuotaExhausted": "Too frequent table operations.",
}


def injected_error(code: str) -> ServiceError:
    """Return an injected error with a code of STATUS."""
    texts = {**dict(_PLAIN.values()), INTERNAL.code: INTERNAL.message, **_INJECTED_TEXTS}
    return ServiceError(code, texts.get(code, "The request was refused."))


UNPROCESSED = RowError("OTSServerBusy", injected_error("OTSServerBusy").message)
"""The result of a row that a test declared unprocessed (gateway/http/request_context.py)."""

_AUTHENTICATION = {
    "unknown-key": ("OTSAuthFailed", "The AccessKeyID does not exist."),
    "instance": ("OTSAuthFailed", "The instance is not found."),
    "signature": ("OTSAuthFailed", "Signature mismatch."),
    "token": ("OTSAuthFailed", "The security token is invalid."),
    "digest": (
        "OTSAuthFailed",
        "Mismatch between MD5 value of request body and x-ots-contentmd5 in header.",
    ),
}

# Characters of a name from a request in an error text.
_NAME_CHARACTERS = 255
_TUNNELS = {
    "missing": ("OTSParameterInvalid", "The tunnel does not exist: '{name}'."),
    "exists": ("OTSTunnelExist", "The tunnel already exists: '{name}'."),
    "expired": ("OTSTunnelExpired", "The tunnel has expired: '{name}'."),
    "client": ("OTSResourceGone", "The client is not connected: '{name}'."),
    "channel": ("OTSParameterInvalid", "The client does not hold the channel: '{name}'."),
    "checkpoint": ("OTSSequenceNumberNotMatch", "The sequence number of the checkpoint is not the next one."),
    "position": ("OTSParameterInvalid", "The channel has not ended: '{name}'."),
}

_INVALID: dict[tuple[type[GatewayError], str], str] = {
    (facts.InvalidInput, "auto-increment"): "Auto increment primary key is not supported in transaction.",
    (facts.BadOperand, ""): "The type of the column does not support increment.",
    (facts.NumberOutOfRange, ""): "The result of increment is out of range.",
}

_NO_UNITS = ("OTSNotEnoughCapacityUnit", "Remaining capacity unit is not enough.")
_QUOTAS = {
    "tables": ("OTSQuotaExhausted", "Number of tables exceeds the quota: {limit:.0f}."),
    "bytes": ("OTSQuotaExhausted", "Size of data exceeds the quota: {limit:.0f} bytes."),
    "read_units": _NO_UNITS,
    "write_units": _NO_UNITS,
}

_LIMITS = {
    "tunnels": lambda limit, actual: ServiceError(
        "OTSQuotaExhausted", f"Number of tunnels exceeds the limit: {limit}."
    ),
    "tunnel-clients": lambda limit, actual: ServiceError(
        "OTSQuotaExhausted", f"Number of clients of the tunnel exceeds the limit: {limit}."
    ),
    "search-documents": lambda limit, actual: invalid(
        f"The search evaluates too many rows, limit: {limit}. Add a term or range query that excludes more rows."
    ),
    "search-time": lambda limit, actual: ServiceError("OTSTimeout", "The search timed out."),
    "search-inner-hits": lambda limit, actual: invalid(
        f"The search returns too many inner hits, limit: {limit}."
    ),
    "search-groups": lambda limit, actual: invalid(f"The search makes too many groups, limit: {limit}."),
    "search-memory": lambda limit, actual: invalid(
        f"The results and aggregations of the search are too large, limit size: {limit}."
    ),
    "search-phrase": lambda limit, actual: invalid(
        f"The phrase and a text have too many tokens to be compared, limit: {limit}."
    ),
    "search-indexes": lambda limit, actual: ServiceError(
        "OTSQuotaExhausted", f"Number of search indexes per table exceeds the quota: {limit}."
    ),
    "transaction-bytes": lambda limit, actual: invalid(
        f"The total data size of transaction exceeds the limit, limit size: {limit}, data size: {actual}."
    ),
}
