"""What a capability does in the transaction of a change of a table.

`Catalog.hooks` has one object of each capability that needs it (gateway/capabilities.py).
"""

from __future__ import annotations

from collections.abc import Mapping

from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.store.sql.databases import Session


class TableHook:
    """What one capability does. It overrides the methods that it needs."""

    def copied(self, session: Session, source: Table, copy: Table, now_ms: int) -> Table:
        """Return the new empty copy of a table with the capability's own rules. The caller stores it."""
        return copy

    def detach(self, session: Session, table: Table, now_ms: int) -> None:
        """Remove the links of other tables and clients to a locked table that is being dropped."""

    def retain(self, session: Session, table: Table, now_ms: int) -> bool:
        """Keep a dropped table in a reserved namespace. Return False if the capability does not need it."""
        return False

    def remove_indexes(self, session: Session, table: Table) -> None:
        """Delete the capability's indexes of a table that is being removed or moved."""

    def remove(self, session: Session, table: Table) -> None:
        """Delete what the capability stores of a table that is being removed."""

    def bytes_by_namespace(self, session: Session) -> Mapping[str, int]:
        """Return the bytes that the capability stores besides tables, for quotas."""
        return {}

    def copy_sources(self, session: Session) -> Mapping[int, int]:
        """Return the source of each table that is being filled, for quotas. The table will be about as large."""
        return {}
