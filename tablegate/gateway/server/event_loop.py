"""The event loop of a server process: the addresses to serve on, signals, and settings of the interpreter and the allocator.

Memory freed by a request is kept for the next one. A page of rows takes several megabytes, and a tick holds those of many
requests. By default, glibc returns such memory to the system at once. Each further tick then pays for page faults, a third of
the cost of sixteen readers of pages.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from tablegate.gateway.server.relay import RelaySocket
from tablegate.gateway.server.server import Server, ServerContext

# glibc's numbers for mallopt (malloc.h).
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT_BYTES = 64 << 20
_LARGEST_BYTES = 32 << 20  # glibc's maximum, larger blocks are mapped separately


def keep_freed_memory() -> bool:
    """Keep up to 64 MiB of freed memory instead of returning it. Return True if the C library supports it (glibc
    does)."""
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    # Set both, because setting either disables the automatic growth of the other.
    return bool(mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)) and bool(mallopt(_MMAP_THRESHOLD, _LARGEST_BYTES))


# A collection stops all threads. The second number bounds one of the middle generation: 40,000 objects take 4 ms.
_GC_THRESHOLDS = (10_000, 4, 100)
# The longest time, for each thread that computes, until the event loop's thread has the interpreter again. A request
# needs it several times. Python's default is 5 ms.
_SWITCH_INTERVAL_S = 0.0005


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """The address and mode of a server.

    - `lane`: the ticker's (tick.py)
    - `relay`: the writer's socket, if several processes use a database that only one of them writes
    - `is_writer`: this process writes
    - `is_shared`: other processes accept connections from the same sockets
    """

    sockets: list[socket.socket]
    lane: str
    tls: ssl.SSLContext | None = None
    relay: RelaySocket | None = None
    is_writer: bool = True
    is_shared: bool = False


async def serve(
    context: ServerContext,
    listen_address: ListenAddress,
    ready: Callable[[], None],
    stop_requested: asyncio.Event,
) -> bool:
    """Serve until `stop_requested` is set. Call `ready` once requests are being answered.

    Return False if requests were left unanswered. Threads may still run them.
    """
    relay = listen_address.relay
    server = Server(
        context, listen_address.lane, relay.path if relay and not listen_address.is_writer else ""
    )
    if relay is not None and listen_address.is_writer:
        await server.listen_to_readers(relay.listening)
    await server.listen(listen_address.sockets, listen_address.tls)
    ready()
    await stop_requested.wait()
    return await server.stop(listen_address.is_shared)


def run(
    context: ServerContext,
    listen_address: ListenAddress,
    ready: Callable[[], None],
    reload: Callable[[], None],
) -> bool:
    """Serve until SIGTERM or SIGINT. Return what `serve` returns. SIGHUP calls `reload`, starting just before
    `ready`."""

    async def main() -> bool:
        stop_requested = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop_requested.set)
        # Objects made so far are permanent, so further collections need not scan them. A last collection would take 10
        # ms and find a dozen objects.
        gc.freeze()
        # Requests make few reference cycles, while a batch of 25 items makes thousands of objects.
        gc.set_threshold(*_GC_THRESHOLDS)
        sys.setswitchinterval(_SWITCH_INTERVAL_S)
        keep_freed_memory()

        def begin() -> None:
            loop.add_signal_handler(signal.SIGHUP, reload)
            ready()

        return await serve(context, listen_address, begin, stop_requested)

    return run_in_loop(main())


def run_in_loop(main: Coroutine[None, None, bool]) -> bool:
    """Run a coroutine as asyncio.run does, on uvloop if it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)
