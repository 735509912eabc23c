"""Operations on the account and the service: DescribeLimits and DescribeEndpoints."""

from __future__ import annotations

from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.call_context import Answer, CallContext

# Account and service


_ENDPOINT_MINUTES = 1440


async def describe_limits(call: CallContext) -> Answer:
    """DescribeLimits: the service's default quotas."""
    return {
        "AccountMaxReadCapacityUnits": limits.ACCOUNT_READ_UNITS,
        "AccountMaxWriteCapacityUnits": limits.ACCOUNT_WRITE_UNITS,
        "TableMaxReadCapacityUnits": limits.TABLE_READ_UNITS,
        "TableMaxWriteCapacityUnits": limits.TABLE_WRITE_UNITS,
    }


async def describe_endpoints(call: CallContext) -> Answer:
    """DescribeEndpoints: the only endpoint, by the host name in the request."""
    return {
        "Endpoints": [{"Address": call.headers.get("host", ""), "CachePeriodInMinutes": _ENDPOINT_MINUTES}]
    }
