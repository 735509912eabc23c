"""SQL for credentials, with encrypted secrets. gateway/security/credential_store.py gives them their meaning."""

from __future__ import annotations

from typing import NamedTuple

from tablegate.gateway.store.sql.databases import Session


class StoredCredential(NamedTuple):
    """A row of `credentials`. `changed_at_ms` grows whenever the row changes."""

    scheme: str
    access_id: str
    place: str
    encrypted_secrets: bytes
    changed_at_ms: int


def all_of(session: Session) -> list[StoredCredential]:
    """Return all credentials, ordered by scheme and access id."""
    rows = session.query(
        "SELECT scheme, access_id, place, encrypted_secrets, changed_at_ms FROM credentials ORDER BY scheme, access_id"
    )
    return [StoredCredential(*columns) for columns in rows]


def save(session: Session, credential: StoredCredential) -> None:
    """Insert a credential, or replace the one with the same scheme and access id."""
    remove(session, credential.scheme, credential.access_id)
    session.execute(
        "INSERT INTO credentials (scheme, access_id, place, encrypted_secrets, changed_at_ms) VALUES (?, ?, ?, ?, ?)",
        credential,
    )


def remove(session: Session, scheme: str, access_id: str) -> bool:
    """Delete a credential. Return True if it existed."""
    return (
        session.execute("DELETE FROM credentials WHERE scheme = ? AND access_id = ?", (scheme, access_id)) > 0
    )
