"""SQL for credentials, grants, quotas, audit lines, and the documents that a dialect stores for an account.

Credentials have encrypted secrets. The packages gateway/security and gateway/observability give these rows their meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from tablegate.gateway.store.sql.databases import Session


class StoredCredential(NamedTuple):
    """A row of `credentials`. `changed_at_ms` grows whenever the row changes."""

    scheme: str
    access_id: str
    place: str
    encrypted_secrets: bytes
    changed_at_ms: int


def all_credentials(session: Session) -> list[StoredCredential]:
    """Return all credentials, ordered by scheme and access id."""
    rows = session.query(
        "SELECT scheme, access_id, place, encrypted_secrets, changed_at_ms FROM credentials ORDER BY scheme, access_id"
    )
    return [StoredCredential(*columns) for columns in rows]


def save_credential(session: Session, credential: StoredCredential) -> None:
    """Insert a credential, or replace the one with the same scheme and access id."""
    remove_credential(session, credential.scheme, credential.access_id)
    session.execute(
        "INSERT INTO credentials (scheme, access_id, place, encrypted_secrets, changed_at_ms) VALUES (?, ?, ?, ?, ?)",
        credential,
    )


def remove_credential(session: Session, scheme: str, access_id: str) -> bool:
    """Delete a credential. Return True if it existed."""
    return (
        session.execute("DELETE FROM credentials WHERE scheme = ? AND access_id = ?", (scheme, access_id)) > 0
    )


class StoredGrant(NamedTuple):
    """A row of `grants`.

    `grantee`: SCHEME/ACCESS ID, role/NAME, or * for all callers. `form`: the format of `document`.
    """

    id: str
    grantee: str
    form: str
    document: str
    created_at_ms: int


def all_grants(session: Session) -> list[StoredGrant]:
    """Return all grants, oldest first."""
    rows = session.query(
        "SELECT id, grantee, form, document, created_at_ms FROM grants ORDER BY created_at_ms, id"
    )
    return [StoredGrant(*columns) for columns in rows]


def save_grant(session: Session, grant: StoredGrant) -> None:
    """Insert a grant."""
    session.execute(
        "INSERT INTO grants (id, grantee, form, document, created_at_ms) VALUES (?, ?, ?, ?, ?)", grant
    )


def remove_grant(session: Session, grant_id: str) -> bool:
    """Delete a grant. Return True if it existed."""
    return session.execute("DELETE FROM grants WHERE id = ?", (grant_id,)) > 0


def remove_grants_of(session: Session, grantee: str) -> None:
    """Delete all grants of a grantee."""
    session.execute("DELETE FROM grants WHERE grantee = ?", (grantee,))


StoredQuota = tuple[str, str, int]
"""(owner, document, changed_at_ms)"""


def all_quotas(session: Session) -> list[StoredQuota]:
    """Return all quotas, ordered by owner."""
    rows = session.query("SELECT owner, document, changed_at_ms FROM quotas ORDER BY owner")
    return [(owner, document, changed_at_ms) for owner, document, changed_at_ms in rows]


def save_quota(session: Session, owner: str, document: str, now_ms: int) -> None:
    """Insert a quota, or replace the one of the same owner."""
    remove_quota(session, owner)
    session.execute(
        "INSERT INTO quotas (owner, document, changed_at_ms) VALUES (?, ?, ?)", (owner, document, now_ms)
    )


def remove_quota(session: Session, owner: str) -> bool:
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


def add_audit_line(session: Session, at_ms: int, event_id: str, line: str) -> None:
    """Insert a line."""
    session.send("INSERT INTO audit_events (at_ms, id, line) VALUES (?, ?, ?)", (at_ms, event_id, line))


def trim_audit_lines(session: Session, before_ms: int, limit: int) -> int:
    """Delete up to `limit` lines older than `before_ms`, oldest first, and return their number."""
    keys = session.query(
        "SELECT at_ms, id FROM audit_events WHERE at_ms < ? ORDER BY at_ms, id LIMIT ?", (before_ms, limit)
    )
    session.execute_many("DELETE FROM audit_events WHERE at_ms = ? AND id = ?", keys)
    return len(keys)


def audit_lines_before(
    session: Session, until: tuple[int, str], earliest_ms: int, limit: int
) -> list[tuple[int, str, str]]:
    """Return up to `limit` lines before a position (at_ms, id), newest first, as (at_ms, id, line)."""
    at_ms, event_id = until
    return session.query(
        "SELECT at_ms, id, line FROM audit_events WHERE at_ms >= ? AND (at_ms < ? OR (at_ms = ? AND id < ?))"
        " ORDER BY at_ms DESC, id DESC LIMIT ?",
        (earliest_ms, at_ms, at_ms, event_id, limit),
    )


def find_document(session: Session, namespace: str, name: str) -> Any:
    """Return the document of a name, or None."""
    rows = session.query(
        "SELECT document FROM namespace_properties WHERE namespace = ? AND name = ?", (namespace, name)
    )
    return orjson.loads(rows[0][0]) if rows else None


def lock_document(session: Session, namespace: str, name: str) -> dict[str, Any]:
    """Return the document of a name, or an empty one, locked until the transaction ends."""
    [(document,)] = session.query(
        "INSERT INTO namespace_properties (namespace, name, document) VALUES (?, ?, '{}')"
        " ON CONFLICT (namespace, name) DO UPDATE SET document = namespace_properties.document RETURNING document",
        (namespace, name),
    )
    members: dict[str, Any] = orjson.loads(document)
    return members


def keep_document(session: Session, namespace: str, name: str, document: Mapping[str, Any]) -> None:
    """Insert or replace the document of a name."""
    session.execute(
        "INSERT INTO namespace_properties (namespace, name, document) VALUES (?, ?, ?)"
        " ON CONFLICT (namespace, name) DO UPDATE SET document = excluded.document",
        (namespace, name, orjson.dumps(document).decode()),
    )
