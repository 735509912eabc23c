"""Intervals of numbers and dates, by which searches group values. Each interval has its start as key."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from tablegate.gateway.model.values.values import INT64_MAX, INT64_MIN

_DAY_MS = 86_400_000
# The calendar repeats after 400 years.
_CYCLE_DAYS, _CYCLE_MONTHS = 146_097, 4_800
_EPOCH_DAY = date(1970, 1, 1).toordinal() - 1
_FIRST_MONDAY_MS = 4 * _DAY_MS
_MONTH_MIN_MS = 28 * _DAY_MS


@dataclass(frozen=True, slots=True)
class NumberIntervals:
    """Intervals of equal length, one of which begins at `offset`."""

    length: float
    offset: float = 0

    @property
    def length_min(self) -> float:
        """The length of each interval."""
        return self.length

    def start_of(self, value: float) -> float:
        """Return the start of the interval of a value."""
        return _within_int64((value - self.offset) // self.length * self.length + self.offset)

    def next_start(self, start: float) -> float:
        """Return the start of the next interval."""
        return start + self.length


@dataclass(frozen=True, slots=True)
class DateIntervals:
    """Intervals of `months`, or of `length_ms` if that is 0. Values are milliseconds since 1970.

    `shift_ms`: added to a value before its interval is determined.
    """

    months: int
    length_ms: int
    shift_ms: int = 0

    @property
    def length_min(self) -> float:
        """The length of the shortest interval in milliseconds."""
        return self.months * _MONTH_MIN_MS or self.length_ms

    @classmethod
    def of_weeks(cls, weeks: int, shift_ms: int) -> DateIntervals:
        """Return intervals of weeks, which begin on Mondays."""
        return cls(0, weeks * 7 * _DAY_MS, shift_ms - _FIRST_MONDAY_MS)

    def start_of(self, value: int) -> float:
        """Return the start of the interval of a value."""
        shifted = value + self.shift_ms
        if self.months:
            start = _start_of_month(_month_of(shifted // _DAY_MS) // self.months * self.months) * _DAY_MS
        else:
            start = shifted // self.length_ms * self.length_ms
        return _within_int64(start - self.shift_ms)

    def next_start(self, start: float) -> float:
        """Return the start of the next interval."""
        if not self.months:
            return start + self.length_ms
        month = _month_of((int(start) + self.shift_ms) // _DAY_MS)
        return _start_of_month(month + self.months) * _DAY_MS - self.shift_ms


def _within_int64(value: float) -> float:
    return max(INT64_MIN, min(value, INT64_MAX)) if isinstance(value, int) else value


def _month_of(day: int) -> int:
    """Return the number of the month of a day, counted from January of the year 1. `day`: days since 1970."""
    cycle, day_of_cycle = divmod(day + _EPOCH_DAY, _CYCLE_DAYS)
    found = date.fromordinal(day_of_cycle + 1)
    return cycle * _CYCLE_MONTHS + (found.year - 1) * 12 + found.month - 1


def _start_of_month(month: int) -> int:
    """Return the first day of a month, in days since 1970."""
    cycle, month_of_cycle = divmod(month, _CYCLE_MONTHS)
    first = date(month_of_cycle // 12 + 1, month_of_cycle % 12 + 1, 1)
    return cycle * _CYCLE_DAYS + first.toordinal() - 1 - _EPOCH_DAY
