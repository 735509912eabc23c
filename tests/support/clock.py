"""A clock that tests turn by hand."""

from __future__ import annotations


class Clock:
    """Nanoseconds since 1970. The clock is fixed until a test moves it, or advances by `step_ns` at each reading."""

    def __init__(self, step_ns: int = 0, start_ns: int = 1_700_000_000_123_000_000) -> None:
        self.ns = start_ns
        self._step_ns = step_ns

    def __call__(self) -> int:
        self.ns += self._step_ns
        return self.ns

    def now_ms(self) -> int:
        return self.ms

    @property
    def ms(self) -> int:
        return self.ns // 1_000_000

    @ms.setter
    def ms(self, value: int) -> None:
        self.ns = value * 1_000_000

    def advance(self, seconds: float) -> None:
        self.ns += int(seconds * 1e9)
