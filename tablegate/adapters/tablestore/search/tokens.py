"""Tokens of search requests: parts of any kind as text, checked when they come back."""

from __future__ import annotations

import base64
from typing import Any

import orjson

from tablegate.gateway.features.search.search_commands import SearchPosition


def encode(*parts: Any) -> bytes:
    """Return a token of numbers, texts and bytes."""
    members = [part.hex() if isinstance(part, bytes) else part for part in parts]
    return base64.urlsafe_b64encode(orjson.dumps(members))


def decode(token: bytes) -> list[Any]:
    """Return the parts of a token, bytes as hexadecimal text. Raises ValueError."""
    parts = orjson.loads(base64.b64decode(token, altchars=b"-_", validate=True))
    if not isinstance(parts, list):
        raise ValueError(parts)
    return parts


def index_id_of(token: bytes) -> int | None:
    """Return the id of the index of a token, its first part. None for another text."""
    try:
        first = decode(token)[0]
    except (ValueError, IndexError):
        return None
    return first if isinstance(first, int) else None


def position_of(parts: list[Any]) -> SearchPosition:
    """Return the position in the last parts of a token. Raises ValueError."""
    if len(parts) != len(SearchPosition._fields) or not all(isinstance(part, str) for part in parts):
        raise ValueError(parts)
    return SearchPosition(*map(bytes.fromhex, parts))
