"""Error replies of the service: codes, statuses and bodies (docs/protocols/dynamodb.md rules 3, 4, 19, 35).

Texts of request validation are in messages.py. validation/, values.py and the parsers find the violated rules.
gateway_errors.py converts errors of the gateway.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson


class ServiceError(Exception):
    """An error reply. `code`: the short name that SDKs show. `extra`: further members of the body, by wire name.

    A value in `extra` may be an `orjson.Fragment` of encoded JSON, such as an Item. If `message` is None the body
    has no text, as with UnknownOperationException.
    """

    def __init__(
        self, code: str, message: str | None, status: int = 400, extra: dict[str, Any] | None = None
    ) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.status = status
        self.extra = extra or {}


def validation(text: str) -> ServiceError:
    """Return a ValidationException with this text."""
    return ServiceError("ValidationException", text)


def serialization(text: str | None = None) -> ServiceError:
    """Return a SerializationException.

    Without text: the body is not JSON. With text: a member has the wrong JSON type.
    """
    return ServiceError("SerializationException", text)


def condition_failed(item: bytes | None = None) -> ServiceError:
    """Return the error for a failed condition, with the old item (its JSON) if the request asked for it."""
    extra = {} if item is None else {"Item": orjson.Fragment(item)}
    return ServiceError("ConditionalCheckFailedException", "The conditional request failed", extra=extra)


def cancelled(reasons: Sequence[ServiceError | None]) -> ServiceError:
    """Return the error of a cancelled transaction. `reasons`: one for each action, None for an action without an
    error.

    Codes of reasons are short (`ConditionalCheckFailed`, `ValidationError`). Actions without an error have Code
    "None" and no Message.
    """
    members: list[dict[str, Any]] = []
    for reason in reasons:
        if reason is None:
            members.append({"Code": "None"})
        else:
            members.append({"Code": short_code(reason), "Message": reason.message, **reason.extra})
    codes = ", ".join(member["Code"] for member in members)
    text = f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]"
    return ServiceError("TransactionCanceledException", text, extra={"CancellationReasons": members})


def short_code(error: ServiceError) -> str:
    """Return the code of an error as shown in a cancelled transaction or for a statement of a batch."""
    return _SHORT_CODES.get(error.code) or error.code.removesuffix("Exception")


_SHORT_CODES = {"ValidationException": "ValidationError", "ThrottlingException": "ThrottlingError"}


def internal() -> ServiceError:
    """Return the service's internal error. It has no details."""
    return ServiceError("InternalServerError", "Internal server error", 500)


# On the wire

_CORAL_SERVICE = frozenset(
    {
        "AccessDeniedException",
        "IncompleteSignatureException",
        "InternalFailure",
        "InvalidSignatureException",
        "MissingAuthenticationTokenException",
        "SerializationException",
        "UnknownOperationException",
        "UnrecognizedClientException",
    }
)
REFUSALS = frozenset(
    {
        "AccessDeniedException",
        "IncompleteSignatureException",
        "InvalidSignatureException",
        "MissingAuthenticationTokenException",
        "UnrecognizedClientException",
    }
)
"""Codes of failed authentication or authorization."""

_CORAL_AVAILABILITY = frozenset({"ServiceUnavailableException", "ThrottlingException"})
# The models of these have a member `Message`; all others `message` (botocore 1.44.5 service-2.json, dynalite index.js).
_CAPITAL_MESSAGE = frozenset(
    {
        "AccessDeniedException",
        "IdempotentParameterMismatchException",
        "SerializationException",
        "TransactionCanceledException",
        "TransactionInProgressException",
    }
)


def full_type(code: str) -> str:
    """Return the `__type` of a code. SDKs split it at `#`, some tools compare the whole."""
    if code == "ValidationException":
        return "com.amazon.coral.validate#ValidationException"
    if code in _CORAL_SERVICE:
        return "com.amazon.coral.service#" + code
    if code in _CORAL_AVAILABILITY:
        return "com.amazon.coral.availability#" + code
    return "com.amazonaws.dynamodb.v20120810#" + code


def render(error: ServiceError) -> bytes:
    """Return the body of an error reply. Lone surrogates, which JSON input may contain, are shown as question marks."""
    body: dict[str, Any] = {"__type": full_type(error.code)}
    if error.message is not None:
        body["Message" if error.code in _CAPITAL_MESSAGE else "message"] = error.message
    body.update(error.extra)
    try:
        return orjson.dumps(body)
    except TypeError:
        return orjson.dumps(_printable(body))


def _printable(value: Any) -> Any:
    """Replace lone surrogates in all texts of a member."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_printable(name): _printable(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_printable(member) for member in value]
    return value
