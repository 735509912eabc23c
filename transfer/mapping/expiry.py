"""Which rows' time is over, by the rules of their table. A service may delete such a row at any time, and need not have."""

from __future__ import annotations

from tablegate.gateway.model.tables.tables import State, Table
from tablegate.gateway.model.values.rows import Row
from tablegate.transfer.endpoints.endpoint import Definition


class Expiry:
    """Says of rows of one table whether their time is over."""

    def __init__(self, definition: Definition) -> None:
        self._has_rule = definition.rules.expiry is not None
        self._table = Table(
            0, "", "", "", definition.key_schema, (), definition.rules, {}, State.ACTIVE, 0, 0, 0
        )

    def is_over(self, row: Row, now_ms: int) -> bool:
        """Whether the row's time is over at a moment."""
        expires_at_ms = row.expires_at_ms
        if expires_at_ms is None and self._has_rule:
            expires_at_ms = self._table.expires_at_ms(row)
        return expires_at_ms is not None and expires_at_ms <= now_ms
