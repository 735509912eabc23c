"""SQL for quotas and for the recent demand on each server process. gateway/security/quotas.py gives them their meaning."""

from __future__ import annotations

from tablegate.gateway.store.sql.databases import Session

StoredQuota = tuple[str, str, int]
"""(owner, document, changed_at_ms)"""


def all_of(session: Session) -> list[StoredQuota]:
    """Return all quotas, ordered by owner."""
    rows = session.query("SELECT owner, document, changed_at_ms FROM quotas ORDER BY owner")
    return [(owner, document, changed_at_ms) for owner, document, changed_at_ms in rows]


def save(session: Session, owner: str, document: str, now_ms: int) -> None:
    """Insert a quota, or replace the one of the same owner."""
    remove(session, owner)
    session.execute(
        "INSERT INTO quotas (owner, document, changed_at_ms) VALUES (?, ?, ?)", (owner, document, now_ms)
    )


def remove(session: Session, owner: str) -> bool:
    """Delete a quota. Return True if it existed."""
    return session.execute("DELETE FROM quotas WHERE owner = ?", (owner,)) > 0


def demands(session: Session, since_ms: int) -> list[tuple[str, str, str]]:
    """Return the demands recorded since a time, as (owner, process, document)."""
    rows = session.query("SELECT owner, process, document FROM quota_demands WHERE at_ms >= ?", (since_ms,))
    return [(owner, process, document) for owner, process, document in rows]


def save_demand(session: Session, owner: str, process: str, document: str, now_ms: int) -> None:
    """Replace the recorded demand of an owner on a process."""
    session.send("DELETE FROM quota_demands WHERE owner = ? AND process = ?", (owner, process))
    session.send(
        "INSERT INTO quota_demands (owner, process, document, at_ms) VALUES (?, ?, ?, ?)",
        (owner, process, document, now_ms),
    )


def forget_demands(session: Session, before_ms: int) -> None:
    """Delete demands recorded before a time."""
    session.send("DELETE FROM quota_demands WHERE at_ms < ?", (before_ms,))
