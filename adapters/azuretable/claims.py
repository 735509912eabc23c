"""Which requests are Azure's: by the account in their host name or path. Light: known before anything else is loaded.

Knows accounts and hosts. Resources are those of wire/addresses.py.
"""

from __future__ import annotations

import re
from functools import lru_cache

from adapters.azuretable import DIALECT
from gateway.dialect import Claims
from gateway.http import Request
from gateway.security.credentials import DEV_AZURE_ACCOUNT, DEV_AZURE_KEY

_HINT = (
    f'TableServiceClient.from_connection_string("AccountName={DEV_AZURE_ACCOUNT};AccountKey={DEV_AZURE_KEY};'
    f'TableEndpoint={{url}}/{DEV_AZURE_ACCOUNT}")'
)
_SERVICE_HOSTS = re.compile(
    r"[a-z0-9]{3,24}(?:-secondary)?\.table\.(?:core\.(?:windows\.net|chinacloudapi\.cn|usgovcloudapi\.net)|cosmos\.azure\.com)"
)
"""Names that only the service has: public Azure, its sovereign clouds, and Cosmos DB. Not whatever follows `.table.`, which
may be anybody's."""
ACCOUNT_IN_HOST = re.compile(r"([a-z0-9]{3,24})(-secondary)?\.table\.[^/]*", re.IGNORECASE)
# With the secondary of a path-style account, SDKs put its path in front of the primary's: /A-secondary/A/Customers.
ACCOUNT_IN_PATH = re.compile(r"/([a-z0-9]{3,24})(-secondary(?:/\1(?=/|$))?)?(?=/|$)")


@lru_cache(maxsize=256)
def account_in_host(host: str) -> tuple[str, bool] | None:
    """(account, whether it is its secondary) of a Host header, None in path style."""
    found = ACCOUNT_IN_HOST.match(host)
    return None if found is None else (found.group(1).lower(), found.group(2) is not None)


def is_ours(request: Request) -> bool:
    """Whether a request belongs to this dialect, by its raw path and Host header."""
    return (
        account_in_host(request.header_map.get("host", "")) is not None
        or ACCOUNT_IN_PATH.match(request.path) is not None
    )


CLAIMS = Claims(DIALECT, _HINT, _SERVICE_HOSTS, is_ours)
