"""The head of a request: its header lines as Headers, and what makes it no request that can be taken.

The grammar of a line is httptools'; here is what lines mean together (RFC 9112). Knows no connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from tablegate.gateway.http import Headers

# Of two of these, whoever stands in front of us may go by the other one.
_SAID_ONCE = ("host", "transfer-encoding")


def decoded(lines: list[tuple[bytes, bytes]]) -> Headers:
    """Header lines as adapters see them."""
    return tuple([(_name(name), value.decode("latin-1")) for name, value in lines])


@lru_cache(maxsize=512)
def _name(name: bytes) -> str:
    return name.decode("latin-1").lower()


def fault(headers: Headers, known: Mapping[str, str], is_http_10: bool) -> str | None:
    """Why a request is refused with 400 for its head, None if it is not. `known`: a header by its name."""
    if "host" not in known and not is_http_10:
        return "a Host header is required"  # 3.2
    if len(known) < len(headers):
        for said in _SAID_ONCE:
            if sum(name == said for name, _ in headers) > 1:
                return f"{said} is given twice"  # 3.2 and 6.1
    coding = known.get("transfer-encoding")
    if coding is not None and (is_http_10 or coding.strip().lower() != "chunked"):
        return "the only transfer coding that is known here is chunked"  # 6.1
    return None
