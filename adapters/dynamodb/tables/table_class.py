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

_STANDARD = "STANDARD"


def changed(known: TableProperties, wanted: str, now_ms: int, delay_ms: int) -> TableProperties:
    """Return the properties of a table after an UpdateTable with this TableClass.

    `delay_ms`: the duration of the change.

    Raises ServiceError.
    """
    recent = [
        at_ms for at_ms in known.class_changes if now_ms < at_ms + limits.CLASS_CHANGES_DAYS * 86_400_000
    ]
    if len(recent) >= limits.CLASS_CHANGES:
        text = f"Updates to TableClass are limited to {limits.CLASS_CHANGES} times in {limits.CLASS_CHANGES_DAYS} day(s)."
        raise ServiceError("LimitExceededException", f"Subscriber limit exceeded: {text}")
    if wanted == (known.table_class or _STANDARD):
        return known
    return replace(
        known,
        table_class=wanted,
        table_class_at_ms=now_ms + delay_ms,
        former_class=summary(known, is_changing=False),
        class_changes=(*recent, now_ms),
    )


def summary(properties: TableProperties, is_changing: bool) -> dict[str, Any]:
    """Return the member TableClassSummary, absent if no class was ever set. A running change shows the former class."""
    if is_changing:
        return dict(properties.former_class)
    if properties.table_class is None:
        return {}
    shown: dict[str, Any] = {"TableClass": properties.table_class}
    if properties.table_class_at_ms is not None:
        shown["LastUpdateDateTime"] = seconds(properties.table_class_at_ms)
    return {"TableClassSummary": shown}
