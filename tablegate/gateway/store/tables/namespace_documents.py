"""SQL for JSON documents stored under a name in a namespace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from tablegate.gateway.store.sql.databases import Session


def find(session: Session, namespace: str, name: str) -> Any:
    """Return the document of a name, or None."""
    rows = session.query(
        "SELECT document FROM namespace_properties WHERE namespace = ? AND name = ?", (namespace, name)
    )
    return orjson.loads(rows[0][0]) if rows else None


def lock(session: Session, namespace: str, name: str) -> dict[str, Any]:
    """Return the document of a name, or an empty one, locked until the transaction ends."""
    [(document,)] = session.query(
        "INSERT INTO namespace_properties (namespace, name, document) VALUES (?, ?, '{}')"
        " ON CONFLICT (namespace, name) DO UPDATE SET document = namespace_properties.document RETURNING document",
        (namespace, name),
    )
    members: dict[str, Any] = orjson.loads(document)
    return members


def keep(session: Session, namespace: str, name: str, document: Mapping[str, Any]) -> None:
    """Insert or replace the document of a name."""
    session.execute(
        "INSERT INTO namespace_properties (namespace, name, document) VALUES (?, ?, ?)"
        " ON CONFLICT (namespace, name) DO UPDATE SET document = excluded.document",
        (namespace, name, orjson.dumps(document).decode()),
    )
