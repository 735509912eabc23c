"""ExpressionAttributeNames and ExpressionAttributeValues of one request: what each stands for, and which were used.

The maps themselves were checked before (item_rules.py). Which expression uses what is request_clauses.py's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tablegate.adapters.dynamodb.values.values import value_of
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.adapters.dynamodb.wire.expression_messages import text_of
from tablegate.adapters.dynamodb.wire.styles import edited
from tablegate.adapters.dynamodb.wire.wording import ANY_OPERATION, Wording
from tablegate.gateway.model.values.values import Value


class Placeholders:
    """The placeholders of one request. `values`: wire AttributeValues. `wording`: of every error that its expressions raise."""

    __slots__ = ("_names", "_unused_names", "_unused_values", "_values", "wording")

    def __init__(
        self,
        names: Mapping[str, str] | None = None,
        values: Mapping[str, Any] | None = None,
        wording: Wording = ANY_OPERATION,
    ) -> None:
        self.wording = wording
        self._names = names or {}
        self._values = values or {}
        self._unused_names = set(self._names)
        self._unused_values = set(self._values)

    def name(self, placeholder: str) -> str | None:
        """The attribute name that a placeholder stands for; None: it is not defined."""
        self._unused_names.discard(placeholder)
        return self._names.get(placeholder)

    def value(self, placeholder: str) -> Value | None:
        """The value that a placeholder stands for; None: it is not defined."""
        self._unused_values.discard(placeholder)
        wire = self._values.get(placeholder)
        return None if wire is None else value_of(wire)

    def check_all_used(self) -> None:
        """Raise ServiceError if a placeholder was used by no expression. Call when all of the request's are parsed."""
        if self._unused_names:
            keys = ", ".join(key for key in self._names if key in self._unused_names)
            raise self.error("names-unused", keys=keys)
        if self._unused_values:
            keys = ", ".join(key for key in self._values if key in self._unused_values)
            raise self.error("values-unused", keys=keys)

    def error(self, rule: str, expression: str = "", **facts: object) -> ServiceError:
        """The error of a rule, framed as the operation frames it; `expression`: which one, as `UpdateExpression`."""
        prefix = f"Invalid {expression}: " if expression else ""
        if rule == "size" and (self.wording.operation, expression) == (
            "TransactWriteItems",
            "UpdateExpression",
        ):
            rule = "size-of-transacted-update"
        text = edited(text_of(rule, **facts), lambda told: prefix + told)
        return validation(self.wording.framed_expression(text))
