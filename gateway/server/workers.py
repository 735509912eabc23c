"""Several server processes on the same sockets: forked, watched, replaced when they die or at SIGHUP, stopped together.

The parent holds the sockets and does nothing else; each child opens the database for itself after the fork. A child whose
parent is gone, even by kill -9, stops as if told to: it would hold on to the port, and nobody would replace it.

At SIGHUP the children read again what they can, and are then replaced one by one by the program as it is installed now, with
the settings as they are now: a new one is started on the same sockets, and when it serves, an old one is told to stop. If it
does not get so far, the old ones stay.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tablegate.gateway.observability import logs
from tablegate.gateway.server import listening

_RESTART_PAUSE_S = 0.5
# So long a new program may take until it serves.
_START_S = 60.0
_INHERITED = "TABLEGATE_INHERITED"
_number: int | None = None  # of this worker; None where there are none


class WorkerHandover(NamedTuple):
    """What a program that is started in a worker's place gets from the parent: its number, and descriptors. `ready`: to which it
    writes when it serves; `lifeline`: of which the parent holds the end for writing."""

    number: int
    sockets: Sequence[int]
    figures: int | None
    lifeline: tuple[int, int]
    ready: int


def is_first() -> bool:
    """Whether this process is the one that speaks for all: the first worker, or the only process."""
    return not _number


def is_worker() -> bool:
    """True if this process is one of several that accept connections from the same sockets."""
    return _number is not None


def inherited() -> WorkerHandover | None:
    """What this program got, if it was started in a worker's place; it stops with its parent from now on. For the first call."""
    text = os.environ.pop(_INHERITED, "")
    if not text:
        return None
    given = WorkerHandover(*json.loads(text))
    global _number
    _number = given.number
    threading.Thread(target=_stop_with_parent, args=given.lifeline, daemon=True).start()
    return given


def supervise(
    count: int,
    work: Callable[[], None],
    sockets: Sequence[socket.socket],
    figures: int | None,
    stop_seconds: float,
    may_replace: bool = True,
) -> None:
    """Keep `count` processes doing `work` until SIGTERM or SIGINT; then stop all of them, by force those that are still there
    a second after `stop_seconds`. `sockets`, `figures` (a descriptor): for programs that take their place at SIGHUP, if they
    `may_replace` them. The sockets are closed at the end."""
    _Supervisor(work, sockets, figures, stop_seconds, may_replace).run(count)


class _Supervisor:
    """The parent."""

    def __init__(
        self,
        work: Callable[[], None],
        sockets: Sequence[socket.socket],
        figures: int | None,
        stop_seconds: float,
        may_replace: bool,
    ) -> None:
        self._work = work
        self._sockets = sockets
        self._figures = figures
        self._stop_seconds = stop_seconds
        self._lifeline = os.pipe()
        self._children: dict[int, int] = {}
        self._told: list[int] = []
        self._may_replace = may_replace
        self._is_to_replace = False
        # Once a new program has taken a worker's place, whoever dies has that one for a successor too.
        self._is_replaced = False

    def run(self, count: int) -> None:
        """Start, watch and stop them."""
        for signal_number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signal_number, lambda number, _: self._told.append(number))
        signal.signal(signal.SIGHUP, self._hang_up)
        for number in range(count):
            self._fork(number)
        while not self._told:
            # A signal interrupts the pause; a child that dies is found after it.
            time.sleep(_RESTART_PAUSE_S)
            self._replace_the_dead()
            if self._is_to_replace:
                self._is_to_replace = False
                self._replace_all()
        # The first may have to answer what others have forwarded (relay.py). It accepts connections until it is told, too.
        first = {pid for pid, number in self._children.items() if number == 0}
        _stop_all(set(self._children) - first, time.monotonic() + self._stop_seconds + 1)
        for each in self._sockets:
            listening.hold_handshakes(each)
            each.close()  # so that nothing waits in it that no process accepts
        _stop_all(first, time.monotonic() + self._stop_seconds + 1)
        shutil.rmtree(os.environ.get("PROMETHEUS_MULTIPROC_DIR", ""), ignore_errors=True)

    def _hang_up(self, number: int, _: object) -> None:
        for pid in list(self._children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        self._is_to_replace = self._may_replace

    def _replace_the_dead(self) -> None:
        for pid in list(self._children):
            if os.waitpid(pid, os.WNOHANG)[0]:
                number = self._gone(pid)
                if not self._told:
                    logs.error("a worker died and is replaced", worker=number, pid=pid)
                    if not self._is_replaced or self._start(number) is None:
                        self._fork(number)

    def _replace_all(self) -> None:
        """One by one; if a new one does not serve, the others stay."""
        for old, number in list(self._children.items()):
            new = None if self._told else self._start(number)
            if new is None:
                return
            self._is_replaced = True
            _stop_all({old}, time.monotonic() + self._stop_seconds + 1)
            self._gone(old)
            logs.info("a worker is replaced", worker=number, pid=old, by=new)

    def _gone(self, pid: int) -> int:
        from prometheus_client.multiprocess import mark_process_dead

        mark_process_dead(pid)  # type: ignore[no-untyped-call]
        return self._children.pop(pid)

    def _start(self, number: int) -> int | None:
        """Start the program anew in a worker's place, and wait until it serves; None if it does not."""
        reading, writing = os.pipe()
        pid = os.fork()
        if not pid:
            self._become_program(number, writing)
        os.close(writing)
        try:
            if not _is_ready(reading, self._told):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                logs.error("a new worker does not serve, the old ones stay", worker=number)
                return None
        finally:
            os.close(reading)
        self._children[pid] = number
        return pid

    def _become_program(self, number: int, ready: int) -> None:
        """In the child: run what is installed now, with the words of this command line. Does not return."""
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            given = WorkerHandover(
                number, [each.fileno() for each in self._sockets], self._figures, self._lifeline, ready
            )  # fmt: skip
            for descriptor in (
                *given.sockets,
                *given.lifeline,
                ready,
                *(() if given.figures is None else (given.figures,)),
            ):
                os.set_inheritable(descriptor, True)
            os.environ[_INHERITED] = json.dumps(given)
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
        finally:
            os._exit(1)

    def _fork(self, number: int) -> None:
        pid = os.fork()
        if pid:
            self._children[pid] = number
            return
        global _number
        _number = number
        code = 1
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            threading.Thread(target=_stop_with_parent, args=self._lifeline, daemon=True).start()
            self._work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)


def _is_ready(reading: int, told: list[int]) -> bool:
    """Wait until a new program says that it serves. False: it has ended, takes too long, or this server is to stop."""
    until = time.monotonic() + _START_S
    while not told and time.monotonic() < until:
        if select.select([reading], [], [], 0.2)[0]:
            return bool(os.read(reading, 1))
    return False


def _stop_all(children: set[int], until: float) -> None:
    for pid in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    while children and time.monotonic() < until:
        time.sleep(0.02)
        children -= {pid for pid in children if os.waitpid(pid, os.WNOHANG)[0]}
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _stop_with_parent(reading: int, writing: int) -> None:
    """Tell this process to stop when the parent, who alone keeps this pipe open for writing, is no more."""
    os.close(writing)
    os.read(reading, 1)
    os.kill(os.getpid(), signal.SIGTERM)
