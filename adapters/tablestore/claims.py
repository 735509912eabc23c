"""Which requests are Table Store's: no other has headers that begin with x-ots-. Light: known before anything else is loaded."""

from __future__ import annotations

import re

from adapters.tablestore import DIALECT
from adapters.tablestore.values.views import index_view
from gateway.dialect import Claims
from gateway.http import Request

_HEADER = "x-ots-"
_HINT = 'OTSClient("{url}", "tablegate", "tablegate", "instance")'
# "Endpoints" (Tablestore developer guide).
_SERVICE_HOSTS = re.compile(
    r"[a-z0-9-]+\.[a-z0-9-]+\.(?:ots|ots-internal|vpc\.tablestore|tablestore)\.aliyuncs\.com"
)


def _is_ours(request: Request) -> bool:
    return f"\n{_HEADER}" in "\n" + "\n".join(request.header_map)  # no name has a line break


CLAIMS = Claims(DIALECT, _HINT, _SERVICE_HOSTS, _is_ours, index_view)
