"""Several server processes on the same sockets: forked, watched, replaced when they die, stopped together.

The parent holds the sockets and does nothing else; each child opens the database for itself after the fork. A child whose
parent is gone, even by kill -9, stops as if told to: it would hold on to the port, and nobody would replace it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable

from prometheus_client.multiprocess import mark_process_dead

from gateway import logs

_RESTART_PAUSE_S = 0.5
_number = 0


def is_first() -> bool:
    """Whether this process is the one that speaks for all: the first worker, or the only process."""
    return _number == 0


def supervise(count: int, work: Callable[[], None], stop_seconds: float) -> None:
    """Keep `count` processes doing `work` until SIGTERM or SIGINT; then stop all of them, by force those that are still there
    a second after `stop_seconds`."""
    told: list[int] = []
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signal_number, lambda number, _: told.append(number))
    lifeline = os.pipe()
    children: dict[int, int] = {}
    signal.signal(signal.SIGHUP, lambda number, _: _tell(list(children), number))
    for number in range(count):
        children[_fork(number, work, lifeline)] = number
    while not told:
        # A signal interrupts the pause; a child that dies is found after it.
        time.sleep(_RESTART_PAUSE_S)
        for pid in list(children):
            if os.waitpid(pid, os.WNOHANG)[0]:
                number = children.pop(pid)
                mark_process_dead(pid)  # type: ignore[no-untyped-call]
                if not told:
                    logs.error("a worker died and is replaced", worker=number, pid=pid)
                    children[_fork(number, work, lifeline)] = number
    # The first may have to answer what others have handed on.
    first = {pid for pid, number in children.items() if number == 0}
    for some in (set(children) - first, first):
        _stop_all(some, time.monotonic() + stop_seconds + 1)
    shutil.rmtree(os.environ.get("PROMETHEUS_MULTIPROC_DIR", ""), ignore_errors=True)


def _tell(children: list[int], signal_number: int) -> None:
    for pid in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal_number)


def _stop_all(children: set[int], until: float) -> None:
    for pid in children:
        os.kill(pid, signal.SIGTERM)
    while children and time.monotonic() < until:
        time.sleep(0.02)
        children -= {pid for pid in children if os.waitpid(pid, os.WNOHANG)[0]}
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _fork(number: int, work: Callable[[], None], lifeline: tuple[int, int]) -> int:
    pid = os.fork()
    if pid:
        return pid
    global _number
    _number = number
    code = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        threading.Thread(target=_stop_with_parent, args=lifeline, daemon=True).start()
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _stop_with_parent(reading: int, writing: int) -> None:
    """Tell this process to stop when the parent, who alone keeps this pipe open for writing, is no more."""
    os.close(writing)
    os.read(reading, 1)
    os.kill(os.getpid(), signal.SIGTERM)
