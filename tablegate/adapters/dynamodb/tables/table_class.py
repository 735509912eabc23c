"""The storage class of a table, and changes of it.

It changes nothing about how rows are stored. Rules and texts: ack-api-quirks (live service, October 2026: findings 026,
177, 180, 283, 284, 365).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tablegate.adapters.dynamodb.tables.properties import TableProperties, seconds
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.errors import ServiceError

# Storage class


_STANDARD = "STANDARD"


def with_class(properties: TableProperties, new_class: str, now_ms: int, delay_ms: int) -> TableProperties:
    """Return the properties of a table after an UpdateTable with this TableClass.

    `delay_ms`: the duration of the change.

    Raises ServiceError.
    """
    recent = [
        at_ms for at_ms in properties.class_changes if now_ms < at_ms + limits.CLASS_CHANGES_DAYS * 86_400_000
    ]
    if len(recent) >= limits.CLASS_CHANGES:
        text = f"Updates to TableClass are limited to {limits.CLASS_CHANGES} times in {limits.CLASS_CHANGES_DAYS} day(s)."
        raise ServiceError("LimitExceededException", f"Subscriber limit exceeded: {text}")
    if new_class == (properties.table_class or _STANDARD):
        return properties
    return replace(
        properties,
        table_class=new_class,
        table_class_at_ms=now_ms + delay_ms,
        former_class=summary(properties, is_changing=False),
        class_changes=(*recent, now_ms),
    )


def summary(properties: TableProperties, is_changing: bool) -> dict[str, Any]:
    """Return the member TableClassSummary, absent if no class was ever set. A running change shows the former class."""
    if is_changing:
        return dict(properties.former_class)
    if properties.table_class is None:
        return {}
    members: dict[str, Any] = {"TableClass": properties.table_class}
    if properties.table_class_at_ms is not None:
        members["LastUpdateDateTime"] = seconds(properties.table_class_at_ms)
    return {"TableClassSummary": members}
