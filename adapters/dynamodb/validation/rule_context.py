"""What a rule knows of a call besides its input: in whose words a refusal is told, and what was checked before.

Made once for each operation and style, not for each call.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from adapters.dynamodb.values.scalars import ValueRefused
from adapters.dynamodb.wire import messages
from adapters.dynamodb.wire.errors import ServiceError, validation


class RuleContext(NamedTuple):
    """`style`: of the texts (messages.py). `good`: the attribute values of maps were checked by the fast validator already."""

    operation: str
    style: str
    good: bool

    @property
    def is_classic(self) -> bool:
        """Whether refusals are told as the service of the first decade did."""
        return self.style == messages.CLASSIC

    def refused(self, rule: str, **facts: Any) -> ServiceError:
        """The ValidationException of a rule that a request breaks."""
        return messages.refused(self.operation, rule, self.style, **facts)

    def framed(self, rule: str, text: str) -> ServiceError:
        """A ValidationException of this text as this operation shows it; `rule` names its family."""
        return validation(messages.framed(self.operation, rule, text, self.style))

    def text_of(self, refusal: ValueRefused) -> str:
        """The text of a refused attribute value as this operation tells it, not yet framed."""
        return refusal.text(self.operation, self.style)
