"""Quotas as SQL, and what each server process was asked for of them lately. What they mean is in gateway/security/quotas.py."""

from __future__ import annotations

from tablegate.gateway.store.sql.databases import Session

StoredQuota = tuple[str, str, int]
"""(owner, document, changed_at_ms)"""


def all_of(session: Session) -> list[StoredQuota]:
    """Every quota, by owner."""
    found = session.query("SELECT owner, document, changed_at_ms FROM quotas ORDER BY owner")
    return [(owner, document, changed_at_ms) for owner, document, changed_at_ms in found]


def save(session: Session, owner: str, document: str, now_ms: int) -> None:
    """Put a quota in place of the one of its owner."""
    remove(session, owner)
    session.execute(
        "INSERT INTO quotas (owner, document, changed_at_ms) VALUES (?, ?, ?)", (owner, document, now_ms)
    )


def remove(session: Session, owner: str) -> bool:
    """Take a quota out; whether there was one."""
    return session.execute("DELETE FROM quotas WHERE owner = ?", (owner,)) > 0


def demands(session: Session, since_ms: int) -> list[tuple[str, str, str]]:
    """(owner, process, document) of what server processes were asked for since."""
    found = session.query("SELECT owner, process, document FROM quota_demands WHERE at_ms >= ?", (since_ms,))
    return [(owner, process, document) for owner, process, document in found]


def save_demand(session: Session, owner: str, process: str, document: str, now_ms: int) -> None:
    """Say what a process was asked for."""
    session.send("DELETE FROM quota_demands WHERE owner = ? AND process = ?", (owner, process))
    session.send(
        "INSERT INTO quota_demands (owner, process, document, at_ms) VALUES (?, ?, ?, ?)",
        (owner, process, document, now_ms),
    )


def forget_demands(session: Session, before_ms: int) -> None:
    """Forget processes that have said nothing since."""
    session.send("DELETE FROM quota_demands WHERE at_ms < ?", (before_ms,))
