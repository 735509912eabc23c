"""The canonical form of a request, which an AWS signature covers.

Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html. The payload
hash is that of the received body.
"""

from __future__ import annotations

import hashlib
from urllib.parse import quote, unquote_to_bytes

from tablegate.gateway.http import Request

# Canonical requests


_EMPTY_HASH = hashlib.sha256(b"").hexdigest()


def canonical_request(request: Request, signed_headers: tuple[str, ...]) -> bytes:
    """Return the canonical form of a request."""
    values = dict.fromkeys(signed_headers, "")
    earlier: set[str] = set()
    for name, value in request.headers:
        if name in values:
            folded = " ".join(value.split())
            values[name] = f"{values[name]},{folded}" if name in earlier else folded
            earlier.add(name)
    headers = "".join(f"{name}:{value}\n" for name, value in values.items())
    payload = hashlib.sha256(request.body).hexdigest() if request.body else _EMPTY_HASH
    text = (
        f"{request.method}\n{_canonical_path(request.path)}\n{_canonical_query(request.query) if request.query else ''}\n"
        f"{headers}\n{';'.join(signed_headers)}\n{payload}"
    )
    return text.encode("latin-1", "replace")


def _canonical_path(path: str) -> str:
    """Remove dot segments and empty ones, and percent-encode once more (all services but S3)."""
    if path == "/":
        return path
    segments: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del segments[-1:]
        elif segment not in ("", "."):
            segments.append(segment)
    trailing = "/" if segments and path.endswith("/") else ""
    return quote("/" + "/".join(segments) + trailing, safe="/-_.~", encoding="latin-1", errors="replace")


def _canonical_query(query: str) -> str:
    """Sort pairs by encoded name, then value, without the signature."""
    pairs = []
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        encoded = _encode(name)
        if pair and encoded != "X-Amz-Signature":
            pairs.append((encoded, _encode(value)))
    return "&".join(f"{name}={value}" for name, value in sorted(pairs))


def _encode(text: str) -> str:
    return quote(unquote_to_bytes(text.encode("latin-1", "replace")), safe="-_.~")
