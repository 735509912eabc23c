"""The context of an intercepted request: its consumed units, and faults for members of its batch.

Only requests that are recorded, or that a fault can match, have a RequestContext (control/interceptor.py). It is in a context
variable while their handlers run. If no server of this process intercepts requests, `is_left_out` is None, and consumed units go
to `metrics` only.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar

from tablegate.gateway.observability import metrics


class RequestContext:
    """The consumed units of a request by kind, and the function that selects unprocessed members of its batch."""

    __slots__ = ("leaves_out", "units")

    def __init__(self, leaves_out: Callable[[], bool] | None = None) -> None:
        self.leaves_out = leaves_out
        self.units: dict[str, float] = {}


CURRENT: ContextVar[RequestContext | None] = ContextVar("request_context", default=None)
"""The context of the request whose handler runs."""

is_left_out: Callable[[], bool] | None = None
"""Returns True if the next member of the batch must stay unprocessed. None if requests are not intercepted."""

_lock = threading.Lock()
_interceptors = 0
_record = metrics.record_consumption


def count_interceptor(is_on: bool) -> None:
    """Count a server of this process that begins, or ends, to intercept requests."""
    global _interceptors, is_left_out
    with _lock:
        _interceptors += 1 if is_on else -1
        is_left_out = _is_left_out if _interceptors else None
        metrics.record_consumption = _record_consumption if _interceptors else _record


@contextlib.contextmanager
def current(context: RequestContext) -> Iterator[None]:
    """Set the context of the request whose handler runs on this thread."""
    token = CURRENT.set(context)
    try:
        yield
    finally:
        CURRENT.reset(token)


def _is_left_out() -> bool:
    context = CURRENT.get()
    return context is not None and context.leaves_out is not None and context.leaves_out()


def _record_consumption(consumption: tuple[str, str, str, str, float]) -> None:
    _record(consumption)
    context = CURRENT.get()
    if context is not None:
        _, _, _, kind, units = consumption
        context.units[kind] = context.units.get(kind, 0.0) + units
