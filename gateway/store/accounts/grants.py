"""Grants as SQL: who was granted what, as written. What that means is in gateway/security/grant_store.py."""

from __future__ import annotations

from typing import NamedTuple

from tablegate.gateway.store.sql.databases import Session


class StoredGrant(NamedTuple):
    """A row of `grants`. `grantee`: SCHEME/ACCESS ID, role/NAME, or * for everybody; `form`: how `document` is written."""

    id: str
    grantee: str
    form: str
    document: str
    created_at_ms: int


def all_of(session: Session) -> list[StoredGrant]:
    """Every grant, oldest first."""
    found = session.query(
        "SELECT id, grantee, form, document, created_at_ms FROM grants ORDER BY created_at_ms, id"
    )
    return [StoredGrant(*columns) for columns in found]


def save(session: Session, grant: StoredGrant) -> None:
    """Keep a new grant."""
    session.execute(
        "INSERT INTO grants (id, grantee, form, document, created_at_ms) VALUES (?, ?, ?, ?, ?)", grant
    )


def remove(session: Session, grant_id: str) -> bool:
    """Take a grant out; whether there was one."""
    return session.execute("DELETE FROM grants WHERE id = ?", (grant_id,)) > 0


def remove_of(session: Session, grantee: str) -> None:
    """Take all grants of a grantee out."""
    session.execute("DELETE FROM grants WHERE grantee = ?", (grantee,))
