"""Detection of requests of Azure Table."""

from __future__ import annotations

import re

from tablegate.adapters.azuretable import DIALECT
from tablegate.adapters.azuretable.wire import accounts
from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.dialect import Detection
from tablegate.gateway.http import Request
from tablegate.gateway.security.credentials import DEV_AZURE_ACCOUNT, DEV_AZURE_KEY

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
    """What a server needs of Azure Table before its first request."""

    name = DIALECT
    hint = _HINT
    service_hosts = _SERVICE_HOSTS

    @staticmethod
    def matches(request: Request) -> bool:
        """Return True for a request with an Azure account in its host name or path."""
        return accounts.has_account(request.path, request.header_map.get("host", ""))

    @staticmethod
    def loads_at_start(settings: Settings) -> bool:
        """Return True if there are flavours, which may be invalid."""
        return settings.azure_flavour != ("storage",)


DETECTION = AzureTableDetection
