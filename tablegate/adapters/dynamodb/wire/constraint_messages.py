"""The service's texts about members that violate constraints of their shapes (docs/protocols/dynamodb.md rule 10).

validation/constraints.py finds the violations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.adapters.dynamodb.wire.wording import ITEM_WRITES, Wording


@dataclass(frozen=True, slots=True)
class ConstraintViolation:
    """A member that violates a constraint of its shape.

    `path`: with member names as on the wire. `camel_path`: in lower camel case. Keys of maps are unchanged in
    both. `value`: as the text repeats it (None: null). `rule`: the kind of constraint. `constraint`: its text.
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


def constraint_error(wording: Wording, violations: list[ConstraintViolation]) -> ServiceError:
    """Return the ValidationException for violations in the service's order. It lists at most ten."""
    operation = wording.operation
    for violation in violations:
        if violation.rule == "sentence":
            return validation(violation.constraint)
    # paritysuite updateItem.test.ts, "member errors beside a missing Key" (eu-west-2, us-east-1, 2026-10-09)
    lacks_key = operation == "UpdateItem" and any(
        violated.path == "Key" and violated.value is None for violated in violations
    )
    if wording.is_deep or lacks_key:
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
