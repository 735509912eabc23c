"""SQL for the numbers of rows and billed bytes of tables and indexes.

A write adds its difference in its own transaction, so a count is exact after a kill. Several rows of SQL (stripes) hold
the differences of an owner, so that writers on different connections do not wait for each other. The count is their sum.

The stripe BASE says that the sum is complete. A new table begins with an empty base. An owner without base was filled
by other means: a copy, the backfill of an index. Its rows are counted once, and the base is what the differences do not
contain.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import slot_of
from tablegate.gateway.store.sql.databases import Session

BASE = -1
_COLUMNS = "owner_id, slot, stripe, rows, size_bytes"
_CONFLICT = "ON CONFLICT (owner_id, slot, stripe) DO UPDATE SET"
_BASE_SLOT = 0


class Sized(Protocol):
    """A row or an index entry."""

    @property
    def size_bytes(self) -> int: ...


class Count(NamedTuple):
    """A number of rows or index entries, and their billed bytes."""

    rows: int
    size_bytes: int


EMPTY = Count(0, 0)


class CountChanges:
    """The changes of counts in one transaction. An owner is a table or an index."""

    def __init__(self) -> None:
        self._by_owner: dict[int, list[int]] = {}

    def add(self, owner_id: int, old: Sized | None, new: Sized | None) -> None:
        """Add the change of one row or index entry. None means that it is absent before or after the change."""
        change = self._by_owner.get(owner_id)
        if change is None:
            change = self._by_owner[owner_id] = [0, 0]
        if old is not None:
            change[0] -= 1
            change[1] -= old.size_bytes
        if new is not None:
            change[0] += 1
            change[1] += new.size_bytes

    def save(self, session: Session, near: bytes) -> None:
        """Store the changes. Must be the last lock of the transaction. `near`: a partition to which it writes."""
        slot = slot_of(near) if session.statements.guards_partitions else 0
        for owner_id, (rows, size_bytes) in sorted(self._by_owner.items()):
            if rows or size_bytes:
                session.send(
                    f"INSERT INTO row_counts ({_COLUMNS}) VALUES (?, ?, {session.statements.stripe}, ?, ?) {_CONFLICT}"
                    " rows = row_counts.rows + excluded.rows, size_bytes = row_counts.size_bytes + excluded.size_bytes",
                    (owner_id, slot, rows, size_bytes),
                )


def complete_counts(session: Session, owner_ids: Iterable[int]) -> dict[int, Count]:
    """Return the complete counts of these owners."""
    return {
        owner_id: count for owner_id, (count, is_complete) in _sums(session, owner_ids).items() if is_complete
    }


def begin(session: Session, table: Table) -> None:
    """Store that a new table is empty now, and that every later change is counted."""
    for owner_id in owners(table):
        _keep_base(session, owner_id, EMPTY)


def copy(session: Session, table: Table, copied_table: Table) -> None:
    """Give a copy the counts of its locked source. What is not known of the source is counted later in the copy."""
    counts = complete_counts(session, owners(table))
    for owner_id, copied_id in zip(owners(table), owners(copied_table), strict=True):
        if owner_id in counts:
            _keep_base(session, copied_id, counts[owner_id])
        else:
            forget(session, copied_id)


def owners(table: Table) -> list[int]:
    """Return the ids of a table and its indexes, which have a count each."""
    return [table.id, *(index.id for index in table.all_indexes)]


def keep(session: Session, owner_id: int, count: Count, differences: Count) -> None:
    """Store the count of an owner. `differences`: the sum of its differences, read in the snapshot of the count."""
    base = Count(count.rows - differences.rows, count.size_bytes - differences.size_bytes)
    _keep_base(session, owner_id, base)


def differences(session: Session, owner_ids: Iterable[int]) -> dict[int, Count]:
    """Return the sums of the differences of these owners, without their bases."""
    return {
        owner_id: count for owner_id, (count, _) in _sums(session, owner_ids, f"AND stripe <> {BASE}").items()
    }


def forget(session: Session, owner_id: int) -> None:
    """Delete the counts of a dropped owner."""
    session.execute("DELETE FROM row_counts WHERE owner_id = ?", (owner_id,))


def _sums(session: Session, owner_ids: Iterable[int], condition: str = "") -> dict[int, tuple[Count, bool]]:
    """Return (sum, has a base) of each owner that has a row."""
    of_owners, parameters = session.statements.one_of("owner_id", [*owner_ids])
    sums = session.query(
        f"SELECT owner_id, sum(rows), sum(size_bytes), min(stripe) FROM row_counts WHERE {of_owners} {condition}"
        " GROUP BY owner_id",
        parameters,
    )
    return {
        owner_id: (Count(int(rows), int(size_bytes)), stripe == BASE)
        for owner_id, rows, size_bytes, stripe in sums
    }


def _keep_base(session: Session, owner_id: int, base: Count) -> None:
    session.send(
        f"INSERT INTO row_counts ({_COLUMNS}) VALUES (?, ?, ?, ?, ?)"
        f" {_CONFLICT} rows = excluded.rows, size_bytes = excluded.size_bytes",
        (owner_id, _BASE_SLOT, BASE, *base),
    )
