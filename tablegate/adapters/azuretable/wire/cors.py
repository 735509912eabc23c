"""CORS: matching rules and their response headers. Pure. The form of rules is in documents.py.

Source: "Cross-Origin Resource Sharing (CORS) support for Azure Storage".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Rule = Mapping[str, Any]
Headers = list[tuple[str, str]]


def preflight(rules: Sequence[Rule], origin: str, method: str, headers: str) -> Headers | None:
    """Return the response headers of a preflight request. None if no rule matches."""
    requested = [header.strip().lower() for header in headers.split(",") if header.strip()]
    for rule in rules:
        if _allows(rule, origin, method) and all(
            _is_listed(header, rule["AllowedHeaders"]) for header in requested
        ):
            response_headers = [*_origin_headers(rule, origin), ("Access-Control-Allow-Methods", method)]
            if requested:
                response_headers.append(("Access-Control-Allow-Headers", headers))
            return [*response_headers, ("Access-Control-Max-Age", str(rule["MaxAgeInSeconds"]))]
    return None


def actual(rules: Sequence[Rule], origin: str, method: str) -> Headers:
    """Return the response headers of an actual request from that origin."""
    headers: Headers = []
    for rule in rules:
        if _allows(rule, origin, method):
            headers = _origin_headers(rule, origin)
            if rule["ExposedHeaders"]:
                headers.append(("Access-Control-Expose-Headers", ",".join(rule["ExposedHeaders"])))
            break
    if any(rule["AllowedOrigins"] != ["*"] for rule in rules):
        headers.append(("Vary", "Origin"))
    return headers


def _allows(rule: Rule, origin: str, method: str) -> bool:
    origins = rule["AllowedOrigins"]
    return ("*" in origins or origin in origins) and method in rule["AllowedMethods"]


def allows(rules: Sequence[Rule], origin: str, method: str) -> bool:
    """Return True if one of the rules allows a request of this method to a page of this origin."""
    return any(_allows(rule, origin, method) for rule in rules)


def _is_listed(header: str, entries: Sequence[str]) -> bool:
    for entry in entries:
        lowered = entry.lower()
        if lowered == header or (lowered.endswith("*") and header.startswith(lowered[:-1])):
            return True
    return False


def _origin_headers(rule: Rule, origin: str) -> Headers:
    if rule["AllowedOrigins"] == ["*"]:
        return [("Access-Control-Allow-Origin", "*")]
    return [("Access-Control-Allow-Origin", origin), ("Access-Control-Allow-Credentials", "true")]
