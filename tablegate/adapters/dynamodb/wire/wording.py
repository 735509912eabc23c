"""Error wording by operation: frames around texts, and texts about bad values.

Operations differ in which rules have a frame, and in whether the list ends at the first violation. The texts
themselves are in messages.py.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from heapq import nsmallest
from typing import Any

from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.adapters.dynamodb.wire.messages import INVALID, bare

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
class Wording:
    """The wording of an operation ("": no particular one).

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


ANY_OPERATION = Wording()


@cache
def wording_of(operation: str) -> Wording:
    """Return the wording of an operation, one of a closed set. Cached."""
    return Wording(operation)


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
