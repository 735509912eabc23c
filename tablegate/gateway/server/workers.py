"""Several server processes on the same sockets.

The parent holds the sockets, restarts a worker that has died, replaces all workers at SIGHUP, and stops them together.
Each child opens the database after the fork. A child stops if its parent has exited, even by kill -9. Otherwise it
would keep the port without being restarted.

At SIGHUP the children reload their credentials and certificates. Then each is replaced by a process of the installed
program with the current settings. The new process starts on the same sockets. Once it serves, the old one is stopped.
If it does not serve, the old ones stay.
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

from tablegate.gateway.application import Application
from tablegate.gateway.observability import logs
from tablegate.gateway.server import listening
from tablegate.gateway.server.startup_errors import StartupError

_RESTART_PAUSE_S = 0.5
# Seconds for a new process to start serving.
_START_S = 60.0
_INHERITED = "TABLEGATE_INHERITED"
Work = Callable[[Callable[[Application], None]], None]
"""Serves as a worker, and calls its argument once it does."""
_number: int | None = None  # of this worker, None if there are no workers


class WorkerHandover(NamedTuple):
    """The number and descriptors that the parent passes to the replacement of a worker.

    The process writes to `ready` when it serves. `lifeline` is a pipe with its writing end held by the parent only.
    """

    number: int
    sockets: Sequence[int]
    metrics_descriptor: int | None
    lifeline: tuple[int, int]
    ready: int


def is_first() -> bool:
    """Return True in the first worker, or in the only process. It does what is needed once for each server."""
    return not _number


def is_worker() -> bool:
    """True if this process is one of several that accept connections from the same sockets."""
    return _number is not None


def take_handover() -> WorkerHandover | None:
    """Return what the parent passed to this replacement of a worker, or None. From now on it stops with the parent.

    Later calls return None.
    """
    text = os.environ.pop(_INHERITED, "")
    if not text:
        return None
    handover = WorkerHandover(*json.loads(text))
    global _number
    _number = handover.number
    threading.Thread(target=_stop_with_parent, args=handover.lifeline, daemon=True).start()
    return handover


def supervise(
    count: int,
    work: Work,
    announce: Callable[[], None],
    sockets: Sequence[socket.socket],
    metrics_descriptor: int | None,
    stop_seconds: float,
    can_replace: bool = True,
    are_sockets_inherited: bool = False,
) -> None:
    """Run `count` processes of `work` until SIGTERM or SIGINT, and then stop them.

    `announce` is called once all of them serve. Raises StartupError if one exits before that.

    Processes that still run a second after `stop_seconds` are killed. `sockets` and `metrics_descriptor` are passed to
    replacements at SIGHUP, if `can_replace`. The sockets are closed at the end. If they are inherited, a service manager
    keeps them open for the next server.
    """
    try:
        _Supervisor(work, sockets, metrics_descriptor, stop_seconds, can_replace, are_sockets_inherited).run(
            count, announce
        )
    finally:
        shutil.rmtree(os.environ.get("PROMETHEUS_MULTIPROC_DIR", ""), ignore_errors=True)


class _Supervisor:
    """The parent process."""

    def __init__(
        self,
        work: Work,
        sockets: Sequence[socket.socket],
        metrics_descriptor: int | None,
        stop_seconds: float,
        can_replace: bool,
        are_sockets_inherited: bool,
    ) -> None:
        self._work = work
        self._sockets = sockets
        self._metrics_descriptor = metrics_descriptor
        self._stop_seconds = stop_seconds
        self._lifeline = os.pipe()
        self._children: dict[int, int] = {}
        self._stop_signals: list[int] = []
        self._can_replace = can_replace
        self._are_sockets_inherited = are_sockets_inherited
        self._replacement_requested = False
        # After a replacement, the installed program also replaces workers that die.
        self._is_replaced = False

    def run(self, count: int, announce: Callable[[], None]) -> None:
        for signal_number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signal_number, lambda number, _: self._stop_signals.append(number))
        signal.signal(signal.SIGHUP, self._hang_up)
        self._fork_all(count)
        if not self._stop_signals:
            announce()
        while not self._stop_signals:
            # A signal interrupts the pause. Dead children are found after it.
            time.sleep(_RESTART_PAUSE_S)
            self._restart_dead()
            if self._replacement_requested:
                self._replacement_requested = False
                self._replace_all()
        # The first worker answers what others have forwarded (relay.py). It accepts connections until it is stopped,
        # too.
        first_pids = {pid for pid, number in self._children.items() if number == 0}
        _stop_all(set(self._children) - first_pids, time.monotonic() + self._stop_seconds + 1)
        for listener in self._sockets:
            if not self._are_sockets_inherited:
                listening.hold_handshakes(listener)
            listener.close()  # no client waits in a socket without an accepting process
        _stop_all(first_pids, time.monotonic() + self._stop_seconds + 1)

    def _hang_up(self, number: int, _: object) -> None:
        for pid in list(self._children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        self._replacement_requested = self._can_replace

    def _restart_dead(self) -> None:
        for pid in list(self._children):
            if os.waitpid(pid, os.WNOHANG)[0]:
                number = self._remove_child(pid)
                if not self._stop_signals:
                    logs.error("a worker died and is being restarted", worker=number, pid=pid)
                    if not self._is_replaced or self._start(number) is None:
                        self._fork(number)

    def _replace_all(self) -> None:
        """Replace the workers one by one. Stop at the first replacement that does not serve."""
        for old, number in list(self._children.items()):
            new = None if self._stop_signals else self._start(number)
            if new is None:
                return
            self._is_replaced = True
            _stop_all({old}, time.monotonic() + self._stop_seconds + 1)
            self._remove_child(old)
            logs.info("a worker is replaced", worker=number, pid=old, by=new)

    def _remove_child(self, pid: int) -> int:
        from prometheus_client.multiprocess import mark_process_dead

        mark_process_dead(pid)  # type: ignore[no-untyped-call]
        return self._children.pop(pid)

    def _start(self, number: int) -> int | None:
        """Start the program as a replacement of a worker, and wait until it serves. None if it does not."""
        ready_pipe, writing = os.pipe()
        pid = os.fork()
        if not pid:
            self._exec_program(number, writing)
        os.close(writing)
        try:
            if not _is_ready(ready_pipe, self._stop_signals):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                logs.error("a new worker did not start serving, so the old ones stay", worker=number)
                return None
        finally:
            os.close(ready_pipe)
        self._children[pid] = number
        return pid

    def _exec_program(self, number: int, ready: int) -> None:
        """Execute the installed program in the child, with the arguments of this process. Does not return."""
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            handover = WorkerHandover(
                number, [listener.fileno() for listener in self._sockets], self._metrics_descriptor, self._lifeline, ready
            )  # fmt: skip
            for descriptor in (
                *handover.sockets,
                *handover.lifeline,
                ready,
                *(() if handover.metrics_descriptor is None else (handover.metrics_descriptor,)),
            ):
                os.set_inheritable(descriptor, True)
            os.environ[_INHERITED] = json.dumps(handover)
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
        finally:
            os._exit(1)

    def _fork_all(self, count: int) -> None:
        """Start the workers and wait until all serve. Raises StartupError if one exits instead."""
        pipes = []
        for number in range(count):
            ready_pipe, writing = os.pipe()
            self._fork(number, writing)
            os.close(writing)
            pipes.append(ready_pipe)
        for ready_pipe in pipes:
            # A start takes as long as its database does, so there is no limit.
            while not self._stop_signals and not select.select([ready_pipe], [], [], _RESTART_PAUSE_S)[0]:
                pass
            if not self._stop_signals and not os.read(ready_pipe, 1):
                raise StartupError("a worker did not start: its error is in the lines above")
            os.close(ready_pipe)

    def _fork(self, number: int, ready: int | None = None) -> None:
        """Start a worker as a copy of this process. It writes to `ready` when it serves."""
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
            self._work(lambda _: None if ready is None else tell_ready(ready))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)


def tell_ready(ready: int) -> None:
    """Report to the parent that this worker serves."""
    os.write(ready, b".")
    os.close(ready)


def _is_ready(ready_pipe: int, stop_signals: list[int]) -> bool:
    """Wait until a new process serves. False if it has exited, takes too long, or this server is stopping."""
    deadline = time.monotonic() + _START_S
    while not stop_signals and time.monotonic() < deadline:
        if select.select([ready_pipe], [], [], 0.2)[0]:
            return bool(os.read(ready_pipe, 1))
    return False


def _stop_all(children: set[int], deadline: float) -> None:
    for pid in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    while children and time.monotonic() < deadline:
        time.sleep(0.02)
        children -= {pid for pid in children if os.waitpid(pid, os.WNOHANG)[0]}
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _stop_with_parent(reading: int, writing: int) -> None:
    """Stop this process when the parent, the only writer of this pipe, has exited."""
    os.close(writing)
    os.read(reading, 1)
    os.kill(os.getpid(), signal.SIGTERM)
