"""What is noted of a request, and planted in it, while it is handled.

Only requests that are recorded, or that a fault may meet, have a Handling (control/watching.py). Handlers do not know it: what
they count and what they ask finds it through a context variable, which is set while their code runs and at no other time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar


class Handling:
    """Units that a request has consumed, by kind, and which members of a batch are to be left unprocessed."""

    __slots__ = ("leaves_out", "units")

    def __init__(self, leaves_out: Callable[[], bool] | None = None) -> None:
        self.leaves_out = leaves_out
        self.units: dict[str, float] = {}

    def consumed(self, kind: str, units: float) -> None:
        """Note capacity units."""
        self.units[kind] = self.units.get(kind, 0.0) + units


CURRENT: ContextVar[Handling | None] = ContextVar("handling", default=None)
"""That of the request whose code runs."""


@contextlib.contextmanager
def current(handling: Handling) -> Iterator[None]:
    """Within it the code of this thread runs for one request."""
    token = CURRENT.set(handling)
    try:
        yield
    finally:
        CURRENT.reset(token)


def is_left_out() -> bool:
    """Whether the next member of the batch whose code runs is to be left unprocessed, as the service does when it is busy."""
    handling = CURRENT.get()
    return handling is not None and handling.leaves_out is not None and handling.leaves_out()
