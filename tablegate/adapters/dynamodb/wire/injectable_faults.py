"""Errors that fault injection can produce (control/faults.py): codes that the SDKs handle, with the service's texts.

Texts: developer guide, "Error handling with DynamoDB". Those for gateway errors are from gateway_errors.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from tablegate.adapters.dynamodb.wire.errors import ServiceError, cancelled, condition_failed, internal
from tablegate.adapters.dynamodb.wire.gateway_errors import service_error_of
from tablegate.gateway.dialect import CONFLICT, INTERNAL, LIMIT, THROTTLING
from tablegate.gateway.model import errors

# Injected faults


_CONFLICT_ERROR = service_error_of(errors.PartitionLocked(), "")
_ERRORS = (
    service_error_of(errors.Throttled("", "write"), ""),
    internal(),
    _CONFLICT_ERROR,
    service_error_of(errors.Busy(), ""),
    service_error_of(errors.NotAuthenticated(""), ""),
    service_error_of(errors.PositionExpired(), ""),
    service_error_of(errors.TokenReused(), ""),
    condition_failed(),
    cancelled([_CONFLICT_ERROR]),
    ServiceError("AccessDeniedException", "Access denied."),
    ServiceError(
        "ExpiredIteratorException", "Iterator expired. The iterator was created at time too long ago."
    ),
    ServiceError("ItemCollectionSizeLimitExceededException", "Collection size exceeded."),
    ServiceError("LimitExceededException", "Too many operations for a given subscriber."),
    ServiceError(
        "RequestLimitExceeded",
        "Throughput exceeds the current throughput limit for your account. Please contact AWS Support to request a limit "
        "increase",
    ),
    ServiceError("ResourceInUseException", "The resource which you are attempting to change is in use."),
    ServiceError("ResourceNotFoundException", "Requested resource not found"),
    ServiceError("ThrottlingException", "Rate of requests exceeds the allowed throughput."),
    ServiceError(
        "TransactionInProgressException",
        "The transaction with the given request token is already in progress.",
    ),
    ServiceError("ValidationException", "The provided request is not valid."),
)
ERRORS: Mapping[str, ServiceError] = {error.code: error for error in _ERRORS}
INJECTABLE_FAULTS: Mapping[str, str] = {
    **{code: code for code in ERRORS},
    THROTTLING: "ProvisionedThroughputExceededException",
    INTERNAL: "InternalServerError",
    CONFLICT: "TransactionConflictException",
    LIMIT: "RequestLimitExceeded",
}
