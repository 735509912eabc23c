"""Intervals of dates."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from tablegate.gateway.features.search.aggregations import DateIntervals

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR_MS = 3_600_000


def ms(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


@given(
    st.datetimes(datetime(1, 2, 1), datetime(9990, 1, 1), timezones=st.just(UTC)),
    st.sampled_from([1, 3, 12]),
    st.integers(-12, 12),
)
def test_intervals_of_months_are_those_of_the_calendar(moment: datetime, months: int, hours: int) -> None:
    intervals = DateIntervals(months, 0, hours * _HOUR_MS)
    local = moment.astimezone(timezone(timedelta(hours=hours)))
    month = (local.month - 1) // months * months + 1
    start = local.replace(month=month, day=1, hour=0, minute=0, second=0, microsecond=0)
    month += months
    end = start.replace(year=start.year + (month - 1) // 12, month=(month - 1) % 12 + 1)
    assert intervals.start_of(ms(moment)) == ms(start)
    assert intervals.next_start(ms(start)) == ms(end)


@given(st.datetimes(datetime(2, 1, 1), datetime(9990, 1, 1), timezones=st.just(UTC)))
def test_weeks_begin_on_mondays(moment: datetime) -> None:
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    monday = day - timedelta(days=day.weekday())
    weeks = DateIntervals.of_weeks(1, 0)
    assert weeks.start_of(ms(moment)) == ms(monday)
    assert weeks.next_start(ms(monday)) == ms(monday + timedelta(days=7))


@given(st.integers(-(1 << 63), (1 << 63) - 1), st.sampled_from([0, 1, 12]), st.integers(-(1 << 62), 1 << 62))
def test_all_stored_times_have_an_interval(value: int, months: int, shift_ms: int) -> None:
    start = DateIntervals(months, 7, shift_ms).start_of(value)
    assert -(1 << 63) <= start <= value
