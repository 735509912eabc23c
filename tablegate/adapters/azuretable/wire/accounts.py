"""The account that a request addresses, in its host name or at the beginning of its path."""

from __future__ import annotations

import re
from functools import lru_cache

ACCOUNT_IN_HOST = re.compile(r"([a-z0-9]{3,24})(-secondary)?\.table\.[^/]*", re.IGNORECASE)
# For the secondary of a path-style account, SDKs prepend its path to that of the primary: /A-secondary/A/Customers.
ACCOUNT_IN_PATH = re.compile(r"/([a-z0-9]{3,24})(-secondary(?:/\1(?=/|$))?)?(?=/|$)")


@lru_cache(maxsize=256)
def account_in_host(host: str) -> tuple[str, bool] | None:
    """Return (account, True for its secondary) of a Host header, None in path style."""
    match = ACCOUNT_IN_HOST.match(host)
    return None if match is None else (match.group(1).lower(), match.group(2) is not None)


def has_account(path: str, host: str) -> bool:
    """Return True if a raw path or a Host header names an account."""
    return account_in_host(host) is not None or ACCOUNT_IN_PATH.match(path) is not None
