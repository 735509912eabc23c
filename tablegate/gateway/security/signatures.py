"""Signatures of requests and tokens: digests by keys that sign many requests, and public keys of issuers of tokens (RFC 7517)."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jwt


def hmac_digest(key: bytes, message: bytes, algorithm: str) -> bytes:
    """Return what `hmac.digest` returns, in a fifth of the time, because the hashes of each key are cached.

    `algorithm`: "sha1" or "sha256".
    """
    inner, outer = _hashes_of(key, algorithm)
    inner, outer = inner.copy(), outer.copy()
    inner.update(message)
    outer.update(inner.digest())
    return outer.digest()


@lru_cache(maxsize=1024)
def _hashes_of(key: bytes, algorithm: str) -> tuple[hashlib._Hash, hashlib._Hash]:
    """Return the inner and outer hash of RFC 2104, initialized with the key."""
    size = hashlib.new(algorithm).block_size
    block = (key if len(key) <= size else hashlib.new(algorithm, key).digest()).ljust(size, b"\0")
    inner, outer = (hashlib.new(algorithm, bytes(byte ^ pad for byte in block)) for pad in (0x36, 0x5C))
    return inner, outer


_MAX_KEYS = 100
_FAMILIES = frozenset({"RS", "PS", "ES"})


def family_of(key: jwt.PyJWK) -> str:
    """Return the first letters of the algorithms that a key may be used with, "" for symmetric ones.

    The key decides, never the token. So a public key cannot be used as the secret of HS256.
    """
    name = (key.algorithm_name or "")[:2]
    return name if name in _FAMILIES else ""


def keys_of(document: Any) -> tuple[jwt.PyJWK, ...]:
    """Return the usable keys of a JWKS document. Raises jwt.PyJWTError if there are none."""
    # Imported here with its cryptography, since few servers accept tokens (docs/architecture.md section 11).
    import jwt

    if isinstance(document, dict) and isinstance(document.get("keys"), list):
        document = {"keys": document["keys"][:_MAX_KEYS]}
    return tuple(jwt.PyJWKSet.from_dict(document).keys)
