"""StreamSpecification of CreateTable and UpdateTable: the stream of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from tablegate.adapters.dynamodb.wire import limits, messages
from tablegate.adapters.dynamodb.wire.errors import validation
from tablegate.gateway.model.tables.tables import Rules, StreamRule, Table

# Stream


def of_new_table(specification: Mapping[str, Any] | None, now_ms: int) -> StreamRule | None:
    """Return the rule of a new table's stream, or None."""
    if specification is None or not specification["StreamEnabled"]:
        return None
    return new_rule(specification["StreamViewType"], now_ms)


def altered_rules(table: Table, specification: Mapping[str, Any] | None, now_ms: int) -> Rules | None:
    """Return the rules with the stream switched on or off. Another view type needs a new stream.

    None if the request does not mention the stream. Raises ServiceError.
    """
    if specification is None:
        return None
    stream = table.rules.stream
    running = stream is not None and stream.enabled
    if specification["StreamEnabled"]:
        if "StreamViewType" not in specification:
            raise validation(f"{messages.INVALID}If stream is being enabled then UpdateViewType is required")
        if running:
            raise validation(f"Table already has an enabled stream: TableName: {table.name}")
        return replace(table.rules, stream=new_rule(specification["StreamViewType"], now_ms))
    if table.rules.replication is not None and running:
        raise validation(f"{messages.INVALID}Disabling Stream is not allowed for a Global Table replica.")
    if "StreamViewType" in specification:
        text = "If stream is being disabled, then UpdateViewType must not be specified"
        raise validation(messages.INVALID + text)
    if stream is None or not stream.enabled:
        raise validation(f"Table has no stream to disable: TableName: {table.name}")
    return replace(table.rules, stream=replace(stream, enabled=False))


def new_rule(view: str, now_ms: int) -> StreamRule:
    """Return the rule of a new stream."""
    label = datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
    return StreamRule(label, True, view, limits.STREAM_RETENTION_MS, now_ms)
