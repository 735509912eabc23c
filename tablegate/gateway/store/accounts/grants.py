"""SQL for grants, stored as they were written. gateway/security/grant_store.py gives them their meaning."""

from __future__ import annotations

from typing import NamedTuple

from tablegate.gateway.store.sql.databases import Session


class StoredGrant(NamedTuple):
    """A row of `grants`.

    `grantee`: SCHEME/ACCESS ID, role/NAME, or * for all callers. `form`: the format of `document`.
    """

    id: str
    grantee: str
    form: str
    document: str
    created_at_ms: int


def all_of(session: Session) -> list[StoredGrant]:
    """Return all grants, oldest first."""
    rows = session.query(
        "SELECT id, grantee, form, document, created_at_ms FROM grants ORDER BY created_at_ms, id"
    )
    return [StoredGrant(*columns) for columns in rows]


def save(session: Session, grant: StoredGrant) -> None:
    """Insert a grant."""
    session.execute(
        "INSERT INTO grants (id, grantee, form, document, created_at_ms) VALUES (?, ?, ?, ?, ?)", grant
    )


def remove(session: Session, grant_id: str) -> bool:
    """Delete a grant. Return True if it existed."""
    return session.execute("DELETE FROM grants WHERE id = ?", (grant_id,)) > 0


def remove_of(session: Session, grantee: str) -> None:
    """Delete all grants of a grantee."""
    session.execute("DELETE FROM grants WHERE grantee = ?", (grantee,))
