"""The context of a rule: the wording of errors, and which checks are already done.

Made once for each operation, not for each call.
"""

from __future__ import annotations

from dataclasses import dataclass

from tablegate.adapters.dynamodb.wire.errors import Wording


@dataclass(frozen=True, slots=True)
class RuleContext(Wording):
    """The wording of an operation.

    `good`: True if the fast validator has already checked the attribute values of maps.
    """

    good: bool = False
