"""What is noted of a request, and planted in it, while it is handled.

Only requests that are recorded, or that a fault may meet, have a Handling (control/interceptor.py). Handlers do not know it: what
they count and what they ask finds it through a context variable, which is set while their code runs and at no other time. While
no server of this process watches its requests, nothing is asked: there is no `is_left_out`, and what is consumed is noted by
`metrics` alone.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar

from tablegate.gateway.observability import metrics


class RequestContext:
    """Units that a request has consumed, by kind, and which members of a batch are to be left unprocessed."""

    __slots__ = ("leaves_out", "units")

    def __init__(self, leaves_out: Callable[[], bool] | None = None) -> None:
        self.leaves_out = leaves_out
        self.units: dict[str, float] = {}


CURRENT: ContextVar[RequestContext | None] = ContextVar("handling", default=None)
"""That of the request whose code runs."""

is_left_out: Callable[[], bool] | None = None
"""Whether the next member of the batch whose code runs is to be left unprocessed, as the service does when it is busy. None:
nothing is."""

_lock = threading.Lock()
_watching = 0
_note = metrics.consumed


def watch(is_on: bool) -> None:
    """Another server of this process watches its requests from now on, or one does no more."""
    global _watching, is_left_out
    with _lock:
        _watching += 1 if is_on else -1
        is_left_out = _is_left_out if _watching else None
        metrics.consumed = _consumed if _watching else _note


@contextlib.contextmanager
def current(handling: RequestContext) -> Iterator[None]:
    """Within it the code of this thread runs for one request."""
    token = CURRENT.set(handling)
    try:
        yield
    finally:
        CURRENT.reset(token)


def _is_left_out() -> bool:
    handling = CURRENT.get()
    return handling is not None and handling.leaves_out is not None and handling.leaves_out()


def _consumed(noted: tuple[str, str, str, str, float]) -> None:
    _note(noted)
    handling = CURRENT.get()
    if handling is not None:
        _, _, _, kind, units = noted
        handling.units[kind] = handling.units.get(kind, 0.0) + units
