"""Pools of threads that may wait for a service for minutes. An error or Ctrl-C does not wait that long."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

_NAMES = "transfer"
_PATIENCE_S = 5.0


def new_pool(size: int) -> ThreadPoolExecutor:
    """Return a pool that outlives a call. Its owner ends it without waiting for its threads."""
    return ThreadPoolExecutor(size, _NAMES)


@contextlib.contextmanager
def thread_pool(size: int) -> Iterator[ThreadPoolExecutor]:
    """Yield a pool. At the end wait for its threads, but after an error for some seconds only (see `busy_threads`)."""
    pool = new_pool(size)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        until = time.monotonic() + _PATIENCE_S
        for thread in busy_threads():
            thread.join(max(0.0, until - time.monotonic()))
        raise
    pool.shutdown()


def busy_threads() -> list[threading.Thread]:
    """Return the running threads of pools. Python waits for them when it ends, unless it ends by `os._exit`."""
    return [thread for thread in threading.enumerate() if thread.name.startswith(f"{_NAMES}_")]
