"""Error replies of the service: codes, statuses and bodies (docs/protocols/dynamodb.md rules 3, 4, 19, 35), and the form
that an operation gives the texts of messages.py.

Operations differ in which rules have a frame, and in whether the list ends at the first violation. validation/,
values.py and the parsers find the violated rules. gateway_errors.py converts errors of the gateway.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from heapq import nsmallest
from typing import Any, Literal

import orjson

from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.error_texts import INVALID, bare


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


# The error texts of an operation

# Prefix of today's framework. The rules that have it depend on the operation (rule 11).
_FRAME = "1 validation error detected: "
# Rules about values with other texts in today's framework (paritysuite, four regions, 2026-10-09).
NUMBERS_AND_DUPLICATES = frozenset(
    {
        "empty-number",
        "not-a-number",
        "number-overflow",
        "number-underflow",
        "number-precision",
        "duplicate-strings",
        "duplicate-numbers",
        "duplicate-binaries",
    }
)
_FRAMED_VALUES = NUMBERS_AND_DUPLICATES | {
    "empty-string-set",
    "empty-number-set",
    "empty-binary-set",
    "null-false",
    "nesting",
}
_FRAMED_PARAMETERS = frozenset(
    {"mixed-parameters", "values-without-expression", "values-alone", "return-values"}
)
# paritysuite putItem.test.ts and deleteItem.test.ts, eu-west-2 and us-east-1, 2026-10-09
_FRAMED_OF_WRITES = frozenset(
    {
        "values-empty",
        "names-empty",
        "names-without-expression",
        "value-and-list",
        "exists-and-operator",
        "operator-without-value",
        "argument-count",
        "argument-types",
        "argument-type",
        "between-order",
        "list-without-operator",
        "exists-without-value",
        "value-when-absent",
    }
)
ITEM_WRITES = frozenset({"PutItem", "UpdateItem", "DeleteItem"})
# Operations that check values with today's framework. Transactions, Scan and BatchWriteItem do not yet in most
# regions.
_TODAYS_VALUES = ITEM_WRITES | {"GetItem", "BatchGetItem", "Query"}
_FRAMED: dict[str, frozenset[str]] = {
    **dict.fromkeys(ITEM_WRITES, _FRAMED_VALUES | _FRAMED_PARAMETERS | _FRAMED_OF_WRITES),
    # A report of the live service (floci-io/floci#2894, September 2026) has no frame around mixed parameters.
    "Query": _FRAMED_PARAMETERS - {"mixed-parameters"}
    | {"select-attributes", "select-projection", "select-nothing", "select-projected"},
}


@dataclass(frozen=True, slots=True)
class ErrorTexts:
    """The error texts of an operation ("": no particular one).

    `is_deep`: True for a write with values nested so deep that the service uses its older validation, whose texts
    have no frame (paritysuite deepRequests.test.ts, two regions, 2026-10-09).
    """

    operation: str = ""
    is_deep: bool = False

    @property
    def uses_new_framework(self) -> bool:
        """True if the operation checks values with today's framework."""
        return not self.is_deep and self.operation in _TODAYS_VALUES

    def framed_expression(self, text: str) -> str:
        """Return a text about an expression as this operation shows it.

        Today such errors of writes have a frame. Reads, transactions and errors that depend on the table or item
        have none (paritysuite, eu-west-2 and us-east-1, October 2026).
        """
        return _FRAME + text if self.operation in ITEM_WRITES else text

    def framed(self, rule: str, text: str) -> ServiceError:
        """Return a ValidationException with this text as this operation shows it. `rule`: the family of the text."""
        is_framed = not self.is_deep and rule in _FRAMED.get(self.operation, ())
        return validation(_FRAME + text if is_framed else text)

    def refused(self, rule: str, **facts: Any) -> ServiceError:
        return self.framed(rule, bare(rule, **facts))

    def value_text(self, rule: str, **facts: Any) -> str:
        """Return the text for an invalid attribute value, without a frame."""
        if self.uses_new_framework:
            if rule == "duplicate-strings":
                quoted = ", ".join(f'"{member}"' for member in _up_to_duplicate(facts["members"]))
                return bare(rule, members=_cut(f"[{quoted}]"))
            if rule == "duplicate-binaries":
                quoted = ",".join(f'"{member}"' for member in _up_to_duplicate(facts["members"], b64decode))
                return bare(rule, members=_cut(f"[{quoted}]"))
            if rule == "duplicate-numbers":
                return f"{INVALID}{bare(rule)}."
            if rule == "empty-number":
                return bare(rule) + ": "
        elif rule == "number-overflow" and facts.get("wraps"):
            # BatchWriteItem and TransactWriteItems, live service, October 2026: the position of the first digit
            # overflows 32 bits and counts as negative.
            rule = "number-underflow"
        return bare(rule, **facts)


ANY_OPERATION = ErrorTexts()


@cache
def error_texts_of(operation: str) -> ErrorTexts:
    """Return the error texts of an operation, one of a closed set. Cached."""
    return ErrorTexts(operation)


def _cut(text: str) -> str:
    return text[: limits.ECHO_CHARACTERS]


def _up_to_duplicate(members: list[str], order: Callable[[str], Any] = str.encode) -> list[str]:
    """List members as today's framework does: sorted by bytes up to the first duplicate, then as sent."""
    earlier: set[str] = set()
    for place, member in enumerate(members):
        if member in earlier:
            # Bounded by the length of an echo.
            limit = limits.ECHO_CHARACTERS
            return [*nsmallest(limit, earlier, key=order), *members[place : place + limit]]
        earlier.add(member)
    return members


# Members that violate constraints of their shapes (docs/protocols/dynamodb.md rule 10)


@dataclass(frozen=True, slots=True)
class ConstraintViolation:
    """A member that violates a constraint of its shape.

    `path`: with member names as on the wire. `camel_path`: in lower camel case. Keys of maps are unchanged in
    both. `value`: as the text repeats it, with null for None. `rule`: the kind of constraint. `constraint`: its text.
    """

    path: str
    camel_path: str
    value: str | None
    rule: Literal["null", "enum", "pattern", "minimum", "maximum", "keys", "values", "sentence"]
    constraint: str


MOST_VIOLATIONS = 10

# Members that the new framework checks, by operation. It repeats no value and spells the path as the wire does.
# All other members have the old texts (paritysuite's captures of 2026-09-20, equal in eu-west-2 and us-east-1).
_NEW_MEMBERS: dict[str, frozenset[str]] = {
    **dict.fromkeys(ITEM_WRITES, frozenset({"TableName", "ReturnValues"})),
    "Query": frozenset({"TableName", "Limit"}),
    "BatchGetItem": frozenset({"RequestItems", "Keys"}),
}
# The new framework lists the only enum of these members in another order and with a typing error.
_NEW_RETURN_VALUES = "Member must satisfy enum value set: [ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]"


def constraint_error(error_texts: ErrorTexts, violations: list[ConstraintViolation]) -> ServiceError:
    """Return the ValidationException for violations in the service's order. It lists at most ten."""
    operation = error_texts.operation
    for violation in violations:
        if violation.rule == "sentence":
            return validation(violation.constraint)
    # paritysuite updateItem.test.ts, "member errors beside a missing Key" (eu-west-2, us-east-1, 2026-10-09)
    lacks_key = operation == "UpdateItem" and any(
        violated.path == "Key" and violated.value is None for violated in violations
    )
    if error_texts.is_deep or lacks_key:
        new_members, reported = frozenset[str](), violations
    else:
        new_members, reported = (
            _NEW_MEMBERS.get(operation, frozenset()),
            _reported_first(operation, violations),
        )
        if _is_query_operator(operation, reported[0]):
            return validation(_NEW_OPERATORS)
    texts = [_text_of(violation, new_members) for violation in reported[:MOST_VIOLATIONS]]
    count = "1 validation error" if len(texts) == 1 else f"{len(texts)} validation errors"
    return validation(f"{count} detected: " + "; ".join(texts))


def _reported_first(operation: str, violations: list[ConstraintViolation]) -> list[ConstraintViolation]:
    """Return the violations to report: those that are checked before the others, if any."""
    if operation == "BatchWriteItem":
        # paritysuite batchOperations.test.ts, 2026-10-09: a bad enum is reported alone, without a bad table name.
        return [one for one in violations if not one.path.startswith("RequestItems")] or violations
    alone = [violation for violation in violations if _is_reported_alone(operation, violation)]
    return alone[:1] or violations


def _is_reported_alone(operation: str, violation: ConstraintViolation) -> bool:
    """True if the new framework checks this first and stops at it."""
    if violation.path == "TableName":
        return operation in _NEW_MEMBERS and violation.rule == "minimum"
    if _is_query_operator(operation, violation):
        return True
    return operation == "UpdateItem" and violation.path == "ReturnValues"


def _is_query_operator(operation: str, violation: ConstraintViolation) -> bool:
    """Reported alone and without a frame (paritysuite query.test.ts, "ConditionalOperator beside Select", two
    regions, 2026-10-09).
    """
    return operation == "Query" and violation.path == "ConditionalOperator"


_NEW_OPERATORS = "Failed to satisfy constraint: Member must satisfy enum value set: [ALL, OR]"


def _text_of(violation: ConstraintViolation, new_members: frozenset[str]) -> str:
    member = violation.path.rpartition(".")[2]
    if violation.value is None or member not in new_members:
        return _old_text(violation)
    if violation.rule == "enum":
        return f"Failed to satisfy constraint: {_NEW_RETURN_VALUES}"
    if member in ("TableName", "RequestItems") and violation.rule != "minimum":
        return _old_text(violation)
    return f"Value at '{violation.path}' failed to satisfy constraint: {violation.constraint}"


def _old_text(violation: ConstraintViolation) -> str:
    value = "null" if violation.value is None else f"'{violation.value}'"
    return f"Value {value} at '{violation.camel_path}' failed to satisfy constraint: {violation.constraint}"


@dataclass(frozen=True, slots=True)
class RuleContext(ErrorTexts):
    """The error texts of an operation.

    `good`: True if the fast validator has already checked the attribute values of maps.
    """

    good: bool = False
