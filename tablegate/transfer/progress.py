"""Progress of reading or copying tables: a bar on a terminal, a line every ten seconds elsewhere."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TextIO

import click

_LINE_PERIOD_S = 10.0
# The sequence that makes a terminal erase a line from the cursor on.
_ERASED = "\x1b[K"


class Progress(ABC):
    """A display of progress. Methods may be called from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._name = ""
        self._rows = self._size_bytes = self._rejected = 0
        self._expected: int | None = None

    def begin(
        self, name: str, expected_rows: int | None, rows: int = 0, size_bytes: int = 0, rejected: int = 0
    ) -> None:
        """Start a table, or resume it with rows that are already copied.

        `expected_rows` is an estimate of the table's rows, None if unknown.
        """
        with self._lock:
            self._name, self._expected = name, expected_rows
            self._rows, self._size_bytes, self._rejected = rows, size_bytes, rejected
            self._on_begin()

    def advance(self, rows: int, size_bytes: int, rejected: int) -> None:
        """Add rows that are done and rejected ones. A comparison gives no sizes."""
        with self._lock:
            self._rows += rows
            self._size_bytes += size_bytes
            self._rejected += rejected
            self._on_advance(rows)

    @abstractmethod
    def say(self, text: str) -> None:
        """Print a sentence."""

    @abstractmethod
    def following(self, lag_s: float, applied: int, left: int) -> None:
        """Show the lag in seconds, the number of applied changes and the number of known changes that are left."""

    def close(self) -> None:  # noqa: B027
        ...

    def _on_begin(self) -> None:  # noqa: B027
        ...

    @abstractmethod
    def _on_advance(self, rows: int) -> None: ...

    def _counts(self, rate: ThroughputMeter) -> str:
        size = f", {size_of(self._size_bytes)}" if self._size_bytes else ""
        rejected = f", {self._rejected:,} rejected" if self._rejected else ""
        return f"{self._rows:,} rows{size}, {rate.per_second:,.0f} rows/s{rejected}"


class LineProgress(Progress):
    """A plain line every ten seconds, for logs."""

    def __init__(self, stream: TextIO, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._stream = stream
        self._now = now
        self._printed_at = 0.0
        self._rate = ThroughputMeter(now)

    def say(self, text: str) -> None:
        print(text, file=self._stream, flush=True)

    def following(self, lag_s: float, applied: int, left: int) -> None:
        if self._is_due():
            self.say(f"following: {lag_s:.1f} s behind, {applied:,} changes applied, {left:,} waiting")

    def _on_begin(self) -> None:
        self._printed_at = self._now()
        self._rate = ThroughputMeter(self._now)
        self.say(f"{self._name}: {_expected(self._expected)}")

    def _on_advance(self, rows: int) -> None:
        self._rate.add(rows)
        if self._is_due():
            self.say(f"{self._name}: {self._summary()}")

    def close(self) -> None:
        if self._rows or self._rejected:
            self.say(f"{self._name}: {self._summary()}")

    def _is_due(self) -> bool:
        now = self._now()
        if now - self._printed_at < _LINE_PERIOD_S:
            return False
        self._printed_at = now
        return True

    def _summary(self) -> str:
        summary = self._counts(self._rate)
        if self._expected and self._rate.per_second:
            left_s = max(0, self._expected - self._rows) / self._rate.per_second
            summary += f", about {duration_of(left_s)} left"
        return summary


class BarProgress(Progress):
    """A bar on a terminal for each table, drawn by click. Without a known number of rows it shows only the counts."""

    def __init__(self) -> None:
        super().__init__()
        self._bar: Any = None
        self._rate = ThroughputMeter(time.monotonic)

    def say(self, text: str) -> None:
        click.echo(f"\r{_ERASED}{text}", err=True)

    def following(self, lag_s: float, applied: int, left: int) -> None:
        if self._bar is None:
            self._start("following", None)
        self._show(1, f"{lag_s:.1f} s behind, {applied:,} changes applied, {left:,} waiting")

    def _on_begin(self) -> None:
        self.close()
        self._rate = ThroughputMeter(time.monotonic)
        self._start(self._name, self._expected)
        self._show(self._rows, "")

    def _on_advance(self, rows: int) -> None:
        self._rate.add(rows)
        self._show(rows, self._counts(self._rate))

    def close(self) -> None:
        if self._bar is not None:
            self._bar.render_finish()
            self._bar = None

    def _start(self, label: str, length: int | None) -> None:
        endless = None if length else itertools.repeat(None)
        self._bar = click.progressbar(
            endless,
            length,
            label,
            item_show_func=lambda summary: summary,
            show_percent=False,
            file=sys.stderr,
        )
        self._bar.render_progress()

    def _show(self, rows: int, summary: str) -> None:
        if self._bar is not None:
            self._bar.update(rows, summary)


class NoProgress(Progress):
    """A display that shows nothing."""

    def say(self, text: str) -> None:
        pass

    def following(self, lag_s: float, applied: int, left: int) -> None:
        pass

    def _on_advance(self, rows: int) -> None:
        pass


NO_PROGRESS = NoProgress()


class ThroughputMeter:
    """Rows per second over the last half minute."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._since = now()
        self._rows = 0.0

    def add(self, rows: int) -> None:
        """Add rows. After 30 s the weight of older rows is halved."""
        elapsed = self._now() - self._since
        if elapsed > 30:
            self._rows /= 2
            self._since += elapsed / 2
        self._rows += rows

    @property
    def per_second(self) -> float:
        return self._rows / max(0.5, self._now() - self._since)


def for_stderr(is_quiet: bool = False) -> Progress:
    """Return the display for standard error: a bar if it is a terminal."""
    if is_quiet:
        return NoProgress()
    return BarProgress() if sys.stderr.isatty() else LineProgress(sys.stderr)


def size_of(size_bytes: float) -> str:
    """Format a number of bytes."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size_bytes < 1000:
            return f"{size_bytes:.0f} {unit}" if unit == "bytes" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:.1f} TB"


def duration_of(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_400 else f"{seconds / 3600:.1f} h"


def _expected(rows: int | None) -> str:
    return "number of rows unknown" if rows is None else f"about {rows:,} rows"
