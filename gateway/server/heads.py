"""The head of a request: decoding of its header lines, and the checks that reject it.

httptools checks the grammar of a line. This module checks the headers together (RFC 9112).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from tablegate.gateway.http import Headers

# Headers that must not be repeated. A proxy in front of this server could use the other value.
_SINGLE_HEADERS = ("host", "transfer-encoding")


@lru_cache(maxsize=512)
def lower_name(name: bytes) -> str:
    """Return the name of a header in lower case."""
    return name.decode("latin-1").lower()


def fault(headers: Headers, header_map: Mapping[str, str], is_http_10: bool) -> str | None:
    """Return the reason for a 400 reply to a head, or None. `header_map`: the headers by name."""
    if "host" not in header_map and not is_http_10:
        return "a Host header is required"  # 3.2
    if len(header_map) < len(headers):
        for single in _SINGLE_HEADERS:
            if sum(name == single for name, _ in headers) > 1:
                return f"{single} is given twice"  # 3.2 and 6.1
    coding = header_map.get("transfer-encoding")
    if coding is not None and (is_http_10 or coding.strip().lower() != "chunked"):
        return "the only transfer coding that is known here is chunked"  # 6.1
    return None
