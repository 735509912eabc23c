"""SQL for audit lines. gateway/observability/audit.py defines their contents."""

from __future__ import annotations

from tablegate.gateway.store.sql.databases import Session


def add(session: Session, at_ms: int, event_id: str, line: str) -> None:
    """Insert a line."""
    session.send("INSERT INTO audit_events (at_ms, id, line) VALUES (?, ?, ?)", (at_ms, event_id, line))


def trim(session: Session, before_ms: int, limit: int) -> int:
    """Delete up to `limit` lines older than `before_ms`, oldest first, and return their number."""
    keys = session.query(
        "SELECT at_ms, id FROM audit_events WHERE at_ms < ? ORDER BY at_ms, id LIMIT ?", (before_ms, limit)
    )
    session.execute_many("DELETE FROM audit_events WHERE at_ms = ? AND id = ?", keys)
    return len(keys)


def before(
    session: Session, until: tuple[int, str], earliest_ms: int, limit: int
) -> list[tuple[int, str, str]]:
    """Return up to `limit` lines before a position (at_ms, id), newest first, as (at_ms, id, line)."""
    at_ms, event_id = until
    return session.query(
        "SELECT at_ms, id, line FROM audit_events WHERE at_ms >= ? AND (at_ms < ? OR (at_ms = ? AND id < ?))"
        " ORDER BY at_ms DESC, id DESC LIMIT ?",
        (earliest_ms, at_ms, at_ms, event_id, limit),
    )
