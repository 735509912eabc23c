"""Operations on the account and the service: DescribeLimits and DescribeEndpoints."""

from __future__ import annotations

from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.call_context import Answer, CallContext
from tablegate.gateway.model.commands.commands import Exchange

_ENDPOINT_MINUTES = 1440


def describe_limits(call: CallContext) -> Exchange[Answer]:
    """DescribeLimits: the service's default quotas."""
    yield from ()
    return {
        "AccountMaxReadCapacityUnits": limits.ACCOUNT_READ_UNITS,
        "AccountMaxWriteCapacityUnits": limits.ACCOUNT_WRITE_UNITS,
        "TableMaxReadCapacityUnits": limits.TABLE_READ_UNITS,
        "TableMaxWriteCapacityUnits": limits.TABLE_WRITE_UNITS,
    }


def describe_endpoints(call: CallContext) -> Exchange[Answer]:
    """DescribeEndpoints: the only endpoint, by the host name in the request."""
    yield from ()
    return {
        "Endpoints": [{"Address": call.headers.get("host", ""), "CachePeriodInMinutes": _ENDPOINT_MINUTES}]
    }
