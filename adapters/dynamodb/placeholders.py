"""ExpressionAttributeNames and ExpressionAttributeValues of one request: what each stands for, and which were used.

Knows the rules on the two maps themselves (protocols/dynamodb.md rule 15). Which expression uses them is expressions.py's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from adapters.dynamodb import limits
from adapters.dynamodb.errors import ServiceError, validation
from adapters.dynamodb.expression_messages import text_of
from adapters.dynamodb.messages import LATEST
from adapters.dynamodb.values import value_of
from gateway.model.values import Value

# In the 2026 style these operations put a frame around everything that is wrong with the request itself; reads,
# transactions and what only the table or the item can show stay bare (dynoxide's captures, eu-west-2).
_FRAMED = frozenset({"PutItem", "UpdateItem", "DeleteItem"})
_FRAME = "1 validation error detected: "

_NAME_KEY = re.compile("#[A-Za-z0-9_]+")
_VALUE_KEY = re.compile(":[A-Za-z0-9_]+")


class Placeholders:
    """The placeholders of one request. `style` and `frame` shape every error that its expressions raise."""

    __slots__ = ("_frame", "_names", "_unused_names", "_unused_values", "_values", "style")

    def __init__(
        self,
        names: Mapping[str, str] | None = None,
        values: Mapping[str, Any] | None = None,
        style: str = LATEST,
        operation: str = "",
    ) -> None:
        """Check and convert both maps (`values`: wire AttributeValues). Raises ServiceError."""
        self.style = style
        self._frame = _FRAME if style == LATEST and operation in _FRAMED else ""
        self._names = self._checked_names(names) if names is not None else {}
        self._values = self._converted(values) if values is not None else {}
        self._unused_names = set(self._names)
        self._unused_values = set(self._values)

    def name(self, placeholder: str) -> str | None:
        """The attribute name that a placeholder stands for; None: it is not defined."""
        self._unused_names.discard(placeholder)
        return self._names.get(placeholder)

    def value(self, placeholder: str) -> Value | None:
        """The value that a placeholder stands for; None: it is not defined."""
        self._unused_values.discard(placeholder)
        return self._values.get(placeholder)

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
        return validation(self._frame + prefix + text_of(rule, self.style, **facts))

    def _checked_names(self, names: Mapping[str, str]) -> Mapping[str, str]:
        if not names:
            raise self.error("names-empty")
        for key, name in names.items():
            self._check_key(key, _NAME_KEY, "names")
            if not name:
                raise self.error("names-value-empty", key=key)
        return names

    def _converted(self, values: Mapping[str, Any]) -> dict[str, Value]:
        if not values:
            raise self.error("values-empty")
        for key in values:
            self._check_key(key, _VALUE_KEY, "values")
        converted = {}
        for key, wire in values.items():
            try:
                converted[key] = value_of(wire)
            except ServiceError as problem:
                if problem.code != "ValidationException":
                    raise
                raise self.error("values-value", problem=problem.message, key=key) from None
        return converted

    def _check_key(self, key: str, form: re.Pattern[str], which: str) -> None:
        if len(key) > limits.PLACEHOLDER_BYTES:
            size = len(key.encode("utf-8", "surrogatepass"))
            raise self.error(f"{which}-key-size", size=size)
        if form.fullmatch(key) is None:
            raise self.error(f"{which}-key", key=key)
