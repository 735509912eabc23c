"""SQL for idempotency tokens: the digest of a request, and the answer to repeat."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager

from tablegate.gateway.model.values.keys import slot_of
from tablegate.gateway.store.sql.databases import Session

_PROBE_BYTES = 256 << 10
_PROBE = ("probe", "")


def take(session: Session, scope: str, name: str, now_ms: int) -> tuple[bytes, str] | None:
    """Lock a token until the transaction ends. Return its (digest, answer), or None if it is unknown or expired."""
    key = _key(scope, name)
    session.statements.claim_token(session, key)
    rows = session.query(
        "SELECT digest, answer, expires_at_ms FROM tokens WHERE scope = ? AND name = ? AND slot = ?", key
    )
    if not rows or rows[0][2] <= now_ms:
        return None
    return bytes(rows[0][0]), rows[0][1]


def remember(session: Session, key: tuple[str, str], digest: bytes, answer: str, expires_at_ms: int) -> None:
    """Insert or replace the answer of a token."""
    session.execute(
        "INSERT INTO tokens (scope, name, slot, digest, answer, expires_at_ms) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (scope, name, slot) DO UPDATE SET digest = excluded.digest, answer = excluded.answer,"
        " expires_at_ms = excluded.expires_at_ms",
        (*_key(*key), digest, answer, expires_at_ms),
    )


def forget_expired(session: Session, now_ms: int, limit: int) -> int:
    """Delete up to `limit` expired tokens and unused claims. Return their number."""
    return session.execute(
        "DELETE FROM tokens WHERE (scope, name, slot) IN"
        " (SELECT scope, name, slot FROM tokens WHERE expires_at_ms <= ? ORDER BY expires_at_ms LIMIT ?)",
        (now_ms, limit),
    )


def probe(write: Callable[[], AbstractContextManager[Session]]) -> None:
    """Write and delete as much as many requests do, each in its own transaction. Raises OutOfSpace if the disk is full."""
    with write() as session:
        remember(session, _PROBE, b"", secrets.token_hex(_PROBE_BYTES // 2), 0)
    with write() as session:
        session.execute("DELETE FROM tokens WHERE scope = ? AND name = ? AND slot = ?", _key(*_PROBE))


def _key(scope: str, name: str) -> tuple[str, str, int]:
    escaped_name = _escape(name)
    return scope, escaped_name, slot_of(f"{scope}/{escaped_name}".encode())


def _escape(name: str) -> str:
    """Escape a client's text for PostgreSQL, which accepts no NUL."""
    return name.replace("\\", "\\\\").replace("\0", "\\0") if "\0" in name or "\\" in name else name
