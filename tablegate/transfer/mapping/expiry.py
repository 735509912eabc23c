"""Detection of expired rows. A service may delete an expired row at any time or keep it."""

from __future__ import annotations

from tablegate.gateway.model.tables.tables import State, Table
from tablegate.gateway.model.values.rows import Row
from tablegate.transfer.endpoints.endpoint import Definition


class Expiry:
    """The expiry rule of one table."""

    def __init__(self, definition: Definition) -> None:
        self._has_rule = definition.rules.expiry is not None
        self._table = Table(
            0, "", "", "", definition.key_schema, (), definition.rules, {}, State.ACTIVE, 0, 0, 0
        )

    def is_expired(self, row: Row, now_ms: int) -> bool:
        """True if the row has expired at this time."""
        expires_at_ms = row.expires_at_ms
        if expires_at_ms is None and self._has_rule:
            expires_at_ms = self._table.expires_at_ms(row)
        return expires_at_ms is not None and expires_at_ms <= now_ms
