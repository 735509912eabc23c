"""Public keys of issuers of tokens (RFC 7517)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jwt

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
