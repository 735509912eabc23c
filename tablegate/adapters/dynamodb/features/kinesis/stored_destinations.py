"""Kinesis streaming destinations in the properties of their table, and the ARNs of streams."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tablegate.adapters.dynamodb.tables.properties import TableProperties
from tablegate.gateway.model.tables.tables import Table

MILLISECOND, MICROSECOND = "MILLISECOND", "MICROSECOND"
NO_PERMISSION = "User does not have a permission to use kinesis stream"
"""The failure of a destination that Kinesis does not offer, also if the stream does not exist."""
STREAM = re.compile(
    r"arn:aws[a-z-]*:kinesis:(?P<region>[a-z0-9-]+):(?P<account>[0-9]{12}):stream/(?P<name>[a-zA-Z0-9_.-]{1,128})"
)


def region_of(stream_arn: str) -> str:
    """Return the region of a stream, or an empty text for an invalid ARN."""
    match = STREAM.fullmatch(stream_arn)
    return match["region"] if match else ""


def find_destination(table: Table, arn: str) -> Mapping[str, Any] | None:
    """Return the stored destination of a stream, or None."""
    return next(
        (destination for destination in TableProperties.of(table).kinesis if destination["arn"] == arn), None
    )


def precision_of(table: Table, arn: str) -> str:
    """Return the precision of times for a stream."""
    destination = find_destination(table, arn)
    return MILLISECOND if destination is None else destination["precision"] or MILLISECOND
