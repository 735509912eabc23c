"""Detection of requests of DynamoDB."""

from __future__ import annotations

import re

from tablegate.adapters.dynamodb import DIALECT
from tablegate.adapters.dynamodb.values import keys
from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.dialects.dialect import Detection
from tablegate.gateway.http.messages import Request

_HINT = (
    'boto3.client("dynamodb", endpoint_url="{url}", region_name="us-east-1", '
    'aws_access_key_id="any", aws_secret_access_key="any")'
)
# "Amazon DynamoDB endpoints and quotas" (AWS General Reference).
_SERVICE_HOSTS = re.compile(
    r"(?:(?:streams\.)?dynamodb(?:-fips)?|streams-dynamodb(?:-fips)?|\d{12}\.ddb)\.[a-z0-9-]+\.(?:amazonaws\.com(?:\.cn)?|api\.aws)"
)


class DynamoDBDetection(Detection):
    """The part of DynamoDB that a server needs before its first request."""

    name = DIALECT
    hint = _HINT
    service_hosts = _SERVICE_HOSTS
    index_view = staticmethod(keys.index_view)

    @staticmethod
    def matches(request: Request) -> bool:
        """Return True for a request of DynamoDB (Detection.matches).

        It has the target or signature of AWS, or is at the root without marks of Azure. Azure accounts may be in the
        host name.
        """
        headers = request.header_map
        if headers.get("x-amz-target") or headers.get("authorization", "").startswith("AWS4"):
            return True
        if request.path not in ("/", ""):
            return False
        if "\nx-ms-" in "\n" + "\n".join(headers):  # header names contain no line break
            return False
        return not any(mark in f"&{request.query}" for mark in ("&comp=", "&restype=", "&sig="))

    @staticmethod
    def loads_at_start(settings: Settings) -> bool:
        """Return True if the settings ask for background work."""
        return settings.has_object_store or bool(settings.kinesis_endpoint_url)


DETECTION = DynamoDBDetection
