"""ExpressionAttributeNames and ExpressionAttributeValues of one request, and their use.

item_rules.py has already checked the maps. request_clauses.py assigns them to expressions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tablegate.adapters.dynamodb.values.values import value_of
from tablegate.adapters.dynamodb.wire.errors import ANY_OPERATION, ServiceError, Wording, validation
from tablegate.adapters.dynamodb.wire.messages import expression_text
from tablegate.gateway.model.values.values import Value

# Placeholders


class Placeholders:
    """The placeholders of one request. `values`: wire AttributeValues. `wording`: of all errors of its expressions."""

    __slots__ = ("_names", "_parsed_values", "_unused_names", "_unused_values", "_values", "wording")

    def __init__(
        self,
        names: Mapping[str, str] | None = None,
        values: Mapping[str, Any] | None = None,
        wording: Wording = ANY_OPERATION,
    ) -> None:
        self.wording = wording
        self._names = names or {}
        self._values = values or {}
        self._parsed_values: dict[str, Value] = {}
        self._unused_names = set(self._names)
        self._unused_values = set(self._values)

    @classmethod
    def of(cls, arguments: Mapping[str, Any], wording: Wording) -> Placeholders:
        """Return the placeholders in a request, or in a member of one."""
        return cls(
            arguments.get("ExpressionAttributeNames"), arguments.get("ExpressionAttributeValues"), wording
        )

    def name(self, placeholder: str) -> str | None:
        """Return the attribute name for a placeholder. None if it is not defined."""
        self._unused_names.discard(placeholder)
        return self._names.get(placeholder)

    def value(self, placeholder: str) -> Value | None:
        """Return the value for a placeholder. None if it is not defined.

        It is one object, however often expressions name the placeholder.
        """
        value = self._parsed_values.get(placeholder)
        if value is None:
            self._unused_values.discard(placeholder)
            wire = self._values.get(placeholder)
            if wire is not None:
                value = self._parsed_values[placeholder] = value_of(wire)
        return value

    def check_all_used(self) -> None:
        """Raise ServiceError if no expression used a placeholder.

        Call after all expressions of the request are parsed.
        """
        if self._unused_names:
            keys = ", ".join(key for key in self._names if key in self._unused_names)
            raise self.error("names-unused", keys=keys)
        if self._unused_values:
            keys = ", ".join(key for key in self._values if key in self._unused_values)
            raise self.error("values-unused", keys=keys)

    def error(self, rule: str, expression: str = "", **facts: object) -> ServiceError:
        """Return the error of a rule with the frame of the operation.

        `expression`: its parameter, such as `UpdateExpression`.
        """
        prefix = f"Invalid {expression}: " if expression else ""
        if rule == "size" and (self.wording.operation, expression) == (
            "TransactWriteItems",
            "UpdateExpression",
        ):
            rule = "size-of-transacted-update"
        text = prefix + expression_text(rule, **facts)
        return validation(self.wording.framed_expression(text))
