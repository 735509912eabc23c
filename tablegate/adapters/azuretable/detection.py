"""Detection of requests of Azure Table, and of the account that a request addresses.

An account is in the host name or at the beginning of the path.
"""

from __future__ import annotations

import re
from functools import lru_cache

from tablegate.adapters.azuretable import DIALECT
from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.dialects.dialect import Detection
from tablegate.gateway.http.messages import Request
from tablegate.gateway.security.credentials import DEV_AZURE_ACCOUNT, DEV_AZURE_KEY

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


_HINT = (
    f'TableServiceClient.from_connection_string("AccountName={DEV_AZURE_ACCOUNT};AccountKey={DEV_AZURE_KEY};'
    f'TableEndpoint={{url}}/{DEV_AZURE_ACCOUNT}")'
)
# Host names of the service: public Azure, its sovereign clouds, and Cosmos DB. Other names with `.table.` may be
# unrelated.
_SERVICE_HOSTS = re.compile(
    r"[a-z0-9]{3,24}(?:-secondary)?\.table\.(?:core\.(?:windows\.net|chinacloudapi\.cn|usgovcloudapi\.net)|cosmos\.azure\.com)"
)


class AzureTableDetection(Detection):
    """The part of Azure Table that a server needs before its first request."""

    name = DIALECT
    hint = _HINT
    service_hosts = _SERVICE_HOSTS

    @staticmethod
    def matches(request: Request) -> bool:
        """Return True for a request with an Azure account in its host name or path."""
        return has_account(request.path, request.header_map.get("host", ""))

    @staticmethod
    def loads_at_start(settings: Settings) -> bool:
        """Return True if there are flavours, which may be invalid."""
        return settings.azure_flavour != ("storage",)


DETECTION = AzureTableDetection
