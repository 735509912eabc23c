"""What a rule knows of a call besides its input: in whose words a refusal is told, and what was checked before.

Made once for each operation and style, not for each call.
"""

from __future__ import annotations

from dataclasses import dataclass

from tablegate.adapters.dynamodb.wire.wording import Wording


@dataclass(frozen=True, slots=True)
class RuleContext(Wording):
    """The words of an operation. `good`: the attribute values of maps were checked by the fast validator already."""

    good: bool = False
