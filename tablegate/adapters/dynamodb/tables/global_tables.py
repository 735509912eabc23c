"""Global tables of version 2017.11.29, which the service no longer creates.

Texts: ack-api-quirks (live service, October 2026). Missing names, Regional tables and tables of version 2019.11.21 get
the same error. Global tables of version 2019.11.21 are created by UpdateTable (replicas.py).
"""

from __future__ import annotations

from tablegate.adapters.dynamodb.wire import messages
from tablegate.adapters.dynamodb.wire.call_context import Answer, CallContext
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation

# Version 2017.11.29


# The regions that had global tables before version 2019.11.21.
_REGIONS = (
    "eu-west-2",
    "eu-west-1",
    "ap-southeast-1",
    "ap-southeast-2",
    "ap-northeast-2",
    "eu-central-1",
    "ap-northeast-1",
    "us-east-1",
    "us-east-2",
    "us-west-1",
    "us-west-2",
)


async def list_global_tables(call: CallContext) -> Answer:
    """ListGlobalTables: always empty."""
    return {"GlobalTables": []}


async def describe_global_table(call: CallContext) -> Answer:
    """DescribeGlobalTable: always missing. Raises ServiceError."""
    raise _table_missing(call, "Global table not found: ")


async def refuse_settings(call: CallContext) -> Answer:
    """DescribeGlobalTableSettings and UpdateGlobalTableSettings: always missing. Raises ServiceError."""
    raise _table_missing(call)


async def create_global_table(call: CallContext) -> Answer:
    """CreateGlobalTable: no longer supported. Raises ServiceError."""
    raise _unsupported(call)


async def update_global_table(call: CallContext) -> Answer:
    """UpdateGlobalTable: always missing, or no longer supported if it adds a replica. Raises ServiceError."""
    updates = call.input["ReplicaUpdates"]
    if not all(updates) or not updates:
        raise validation(messages.INVALID.removesuffix(": "))
    raise _unsupported(call) if any("Create" in update for update in updates) else _table_missing(call)


def _table_missing(call: CallContext, head: str = "") -> ServiceError:
    name = call.input["GlobalTableName"]
    return ServiceError(
        "GlobalTableNotFoundException", f"{head}Global table with name: '{name}' does not exist."
    )


def _unsupported(call: CallContext) -> ServiceError:
    region = call.caller.region
    if region in _REGIONS:
        text = (
            "DynamoDB global tables version 2017.11.29 is not supported. We recommend using DynamoDB global tables version "
            "2019.11.21, instead of version 2017.11.29 (Legacy)."
        )
    else:
        text = (
            "DynamoDB global tables version 2017.11.29 is not supported in this region "
            f"'{region}', supported regions are : [{', '.join(_REGIONS)}]"
        )
    return validation(f"{messages.INVALID}{text}")
