"""Lengths of time in search requests: a number of units."""

from __future__ import annotations

import re
from typing import Any

from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.features.search.aggregations import DateIntervals

_DAY_MS = 86_400_000
_MILLISECONDS = {
    messages.WEEK: 7 * _DAY_MS,
    messages.DAY: _DAY_MS,
    messages.HOUR: 3_600_000,
    messages.MINUTE: 60_000,
    messages.SECOND: 1000,
    messages.MILLISECOND: 1,
}
_MONTHS = {messages.YEAR: 12, messages.QUARTER_YEAR: 3, messages.MONTH: 1}
_ZONE = re.compile(r"([+-])([01]\d):([0-5]\d)", re.ASCII)


def milliseconds_of(value: messages.DateTimeValue) -> int:
    """Return the milliseconds of a number of weeks or smaller units. Raises ServiceError."""
    if not value.HasField("unit") or value.unit not in _MILLISECONDS:
        raise invalid("The unit of the time must be WEEK, DAY, HOUR, MINUTE, SECOND or MILLISECOND.")
    return value.value * _MILLISECONDS[value.unit]


def date_intervals(body: messages.GroupByDateHistogram) -> DateIntervals:
    """Return the intervals of a request. Raises ServiceError."""
    value = body.interval
    if not value.HasField("unit") or value.value <= 0:
        raise invalid("[group_by_date_histogram] interval must be greater than 0.")
    shift_ms = _zone_ms(body.time_zone) - (milliseconds_of(body.offset) if body.HasField("offset") else 0)
    if value.unit in _MONTHS:
        return DateIntervals(value.value * _MONTHS[value.unit], 0, shift_ms)
    if value.unit == messages.WEEK:
        return DateIntervals.of_weeks(value.value, shift_ms)
    return DateIntervals(0, milliseconds_of(value), shift_ms)


def _zone_ms(zone: str) -> int:
    if not zone:
        return 0
    match: Any = _ZONE.fullmatch(zone)
    if match is None:
        raise invalid("[group_by_date_histogram] time_zone must have the form +hh:mm or -hh:mm.")
    sign, hours, minutes = match.groups()
    return (int(hours) * 60 + int(minutes)) * (-60_000 if sign == "-" else 60_000)
