"""`tablegate shadow`: a proxy that serves a primary's replies and compares a secondary with them.

Requests for the secondary wait in a queue that is bounded in length and bytes. A task of its own sends them one at a
time, in the order of the primary's replies. Requests that do not fit are dropped and counted. So a slow or failing
secondary has no effect on clients.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from dataclasses import dataclass

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from tablegate.gateway.http.messages import Reply, Request
from tablegate.transfer.traffic.dialects.detecting import DIALECTS, NONE, refusal
from tablegate.transfer.traffic.dialects.dialect import plain
from tablegate.transfer.traffic.proxies import (
    REFUSED,
    Forwarder,
    Hooks,
    ListenOptions,
    Proxy,
    Say,
    is_refused_signature,
    request_metadata,
)
from tablegate.transfer.traffic.reports import DivergenceReport, ShadowMetrics, SkipReason
from tablegate.transfer.traffic.services import Address, NoReply, Service, Signer, SigningKey
from tablegate.transfer.traffic.sessions import ReplaySession
from tablegate.transfer.traffic.traces import RecordedRequest

QUEUE_MAX = 1_000
QUEUE_MAX_BYTES = 64 << 20
_PRIMARY_SECONDS = 120.0
_SECONDARY_SECONDS = 10.0
_PATIENCE_SECONDS = 2.0
_DRAIN_SECONDS = 5.0
_DROPPED_WRITES = "{} writes were dropped. Later reads may diverge because the secondary lacks them."


@dataclass(frozen=True, slots=True)
class Sampling:
    """The part of the traffic that the secondary receives: `share` of the reads, and all writes if `with_writes`."""

    share: float
    with_writes: bool


@dataclass(slots=True)
class _Exchange:
    about: RecordedRequest
    request: Request
    reply: Reply
    is_write: bool
    is_raced: bool

    @property
    def size_bytes(self) -> int:
        return len(self.request.body) + len(self.reply.body)


class Shadow:
    """A request handler that serves the primary's replies. The task `work` sends requests to the secondary."""

    def __init__(
        self, primary: Service, forwarder: Forwarder, session: ReplaySession, sampling: Sampling, say: Say
    ) -> None:
        self._primary = primary
        self._forwarder = forwarder
        self._session = session
        self._sampling = sampling
        self._say = say
        self._queue: deque[_Exchange] = deque()
        self._queue_bytes = 0
        self._has_work = asyncio.Event()
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        self._due = 0.0
        self._next_number = 1
        self._writes_in_flight = 0
        self._writes_begun = 0
        self._has_warned = False
        self.dropped_writes = 0

    @property
    def report(self) -> DivergenceReport:
        return self._session.report

    async def handle(self, request: Request, connection: int) -> Reply:
        """Return the primary's reply. If there is none, return status 502 in the dialect's format."""
        number, self._next_number = self._next_number, self._next_number + 1
        metadata = request_metadata(number, connection, time.time(), request)
        forwarded = self._forwarder.forwarded(request)
        is_write = metadata.dialect != NONE and DIALECTS[metadata.dialect].is_write(request)
        raced_before = self._writes_in_flight > 0
        self._writes_in_flight += is_write
        self._writes_begun += is_write
        writes_before = self._writes_begun
        try:
            reply = await self._primary.send(forwarded)
        except NoReply as error:
            self.report.skip(SkipReason.UNANSWERED)
            return refusal(request, 502, str(error))
        finally:
            self._writes_in_flight -= is_write
        is_raced = raced_before or self._writes_begun > writes_before
        try:
            self._enqueue(_Exchange(metadata, forwarded, reply, is_write, is_raced))
        except Exception as error:  # a defect in the comparison must not affect the client
            self.report.skip(SkipReason.DROPPED)
            self._say(f"exchange {number} was not sent to the secondary: {error!r}")
        return reply

    def _enqueue(self, exchange: _Exchange) -> None:
        """Add an exchange to the queue if it is sampled and fits."""
        metadata, reply = exchange.about, exchange.reply
        if metadata.dialect == NONE:
            self.report.skip(SkipReason.FOREIGN)
        elif is_refused_signature(metadata, exchange.request, reply):
            self.report.skip(SkipReason.REFUSED_BEFORE)
            if not self._has_warned:
                self._has_warned = True
                self._say(REFUSED)
        elif reply.status >= 500:
            self.report.skip(SkipReason.UNANSWERED)
        elif not self._is_sampled(exchange.is_write):
            self.report.skip(SkipReason.NOT_SAMPLED)
        elif len(self._queue) >= QUEUE_MAX or self._queue_bytes + exchange.size_bytes > QUEUE_MAX_BYTES:
            self.report.skip(SkipReason.DROPPED)
            self.dropped_writes += exchange.is_write
        else:
            self._queue.append(exchange)
            self._queue_bytes += exchange.size_bytes
            self._is_idle.clear()
            self._has_work.set()

    def _is_sampled(self, is_write: bool) -> bool:
        if is_write:
            return self._sampling.with_writes
        self._due += self._sampling.share
        if self._due < 1.0:
            return False
        self._due -= 1.0
        return True

    async def work(self) -> None:
        """Send queued requests to the secondary, one at a time, until cancelled."""
        while True:
            await self._has_work.wait()
            exchange = self._queue.popleft()
            self._queue_bytes -= exchange.size_bytes
            if not self._queue:
                self._has_work.clear()
            try:
                await self._send_and_compare(exchange)
            except Exception as error:  # a defect in one comparison must not end the others
                self.report.skip(SkipReason.NO_LIVE_ANSWER)
                self._say(f"exchange {exchange.about.number} could not be compared: {error!r}")
            if not self._queue:
                self._is_idle.set()

    async def _send_and_compare(self, exchange: _Exchange) -> None:
        is_done = DIALECTS[exchange.about.dialect].succeeded(plain(exchange.reply))
        sent_request = await self._session.send(exchange.about, exchange.request, is_done)
        # Comparing large replies takes long, so it runs on a thread.
        await asyncio.to_thread(
            self._session.compare,
            exchange.about,
            exchange.request,
            exchange.reply,
            sent_request,
            exchange.is_raced,
        )

    async def drain(self) -> None:
        """Wait up to 5 s for the queue. Drop the rest."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._is_idle.wait(), _DRAIN_SECONDS)
        for exchange in self._queue:
            self.report.skip(SkipReason.DROPPED)
            self.dropped_writes += exchange.is_write
        if self.dropped_writes:
            self.report.notes.append(_DROPPED_WRITES.format(self.dropped_writes))


async def shadow(
    primary: Address, secondary: Address, listen: ListenOptions, metrics_port: int, sampling: Sampling,
    keys: tuple[dict[str, SigningKey] | None, dict[str, SigningKey]], hooks: Hooks,
) -> DivergenceReport:  # fmt: skip
    """Serve until a stop signal and return the comparison.

    `keys` are the credentials for the primary and the secondary. If the first is None, requests to the primary are
    not signed again.
    """
    services = (Service(primary, _PRIMARY_SECONDS), Service(secondary, _SECONDARY_SECONDS))
    signer = None if keys[0] is None else Signer(keys[0], primary.host)
    began = time.time()
    session = ReplaySession(
        services[1], Signer(keys[1], secondary.host), (began, float("inf")), _PATIENCE_SECONDS
    )
    running = Shadow(services[0], Forwarder(primary, signer), session, sampling, hooks.say)
    proxy = Proxy(running.handle, refusal, listen)
    metrics = _metrics_server(running.report, metrics_port)
    working = asyncio.create_task(running.work())
    try:
        url = await proxy.listen()
        hooks.announce(url, await metrics.listen())
        await hooks.until()
        await proxy.close()
        await running.drain()
    finally:
        working.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await working
        await proxy.close()
        await metrics.close()
        for service in services:
            await service.close()
    return running.report


def _metrics_server(report: DivergenceReport, port: int) -> Proxy:
    """Return the server of /metrics on 127.0.0.1."""
    registry = CollectorRegistry()
    registry.register(ShadowMetrics(report))

    async def page(request: Request, connection: int) -> Reply:
        if request.path != "/metrics":
            return Reply(404, [("Content-Type", "text/plain")], b"/metrics\n")
        return Reply(200, [("Content-Type", CONTENT_TYPE_LATEST)], generate_latest(registry))

    return Proxy(page, refusal, ListenOptions(port=port))
