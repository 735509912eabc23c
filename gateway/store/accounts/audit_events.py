"""Lines of the audit as SQL. What they say is in gateway/observability/audit.py."""

from __future__ import annotations

from tablegate.gateway.store.sql.databases import Session


def add(session: Session, at_ms: int, event_id: str, line: str) -> None:
    """Keep a line."""
    session.send("INSERT INTO audit_events (at_ms, id, line) VALUES (?, ?, ?)", (at_ms, event_id, line))


def trim(session: Session, before_ms: int, limit: int) -> int:
    """Delete some lines that are older; how many."""
    found = session.query(
        "SELECT at_ms, id FROM audit_events WHERE at_ms < ? ORDER BY at_ms, id LIMIT ?", (before_ms, limit)
    )
    session.execute_many("DELETE FROM audit_events WHERE at_ms = ? AND id = ?", found)
    return len(found)
