"""`tablegate record`: a proxy that records requests and replies."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from tablegate.gateway.http.messages import Reply, Request
from tablegate.transfer.errors import TransferError
from tablegate.transfer.traffic.dialects.detecting import refusal
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
from tablegate.transfer.traffic.redaction import answer_without_secrets, secrets_of, without_secrets
from tablegate.transfer.traffic.services import Address, NoReply, Service
from tablegate.transfer.traffic.signing import Signer, SigningKey
from tablegate.transfer.traffic.traces import RecordedRequest, TraceWriter

_FLUSH_SECONDS = 0.5
_UPSTREAM_SECONDS = 120.0


class Recorder:
    """A request handler that records each exchange. If the disk is full, recording stops and clients are still served."""

    def __init__(self, service: Service, forwarder: Forwarder, trace: TraceWriter, say: Say) -> None:
        self._service = service
        self._forwarder = forwarder
        self._trace = trace
        self._say = say
        self._next_number = 1
        self._has_warned = False
        self.count = 0
        self.broken = ""
        self.lost = 0

    async def handle(self, request: Request, connection: int) -> Reply:
        """Return the service's reply. If there is none, return status 502 in the dialect's format."""
        number, self._next_number = self._next_number, self._next_number + 1
        metadata = request_metadata(number, connection, time.time(), request)
        forwarded = self._forwarder.forwarded(request)
        self._write(lambda: self._trace.request(metadata, without_secrets(forwarded)))
        try:
            reply = await self._service.send(forwarded)
        except NoReply as error:
            text = str(error)
            self._write(lambda: self._trace.failure(number, text))
            return refusal(request, 502, text)
        self._write(lambda: self._write_answer(metadata, request, forwarded, reply))
        return reply

    def _write_answer(
        self, metadata: RecordedRequest, request: Request, forwarded: Request, reply: Reply
    ) -> None:
        secrets = [*secrets_of(request), *(secrets_of(forwarded) if forwarded is not request else ())]
        self._trace.answer(metadata.number, answer_without_secrets(request, plain(reply), secrets))
        self.count += 1
        if not self._has_warned and is_refused_signature(metadata, forwarded, reply):
            self._has_warned = True
            self._say(REFUSED)

    async def flush_forever(self) -> None:
        """End a frame at intervals, so that little is lost if the process ends."""
        while True:
            await asyncio.sleep(_FLUSH_SECONDS)
            self._write(self._trace.flush)

    def close(self) -> None:
        self._write(self._trace.close)

    def _write(self, write: Callable[[], None]) -> None:
        """Write to the trace. Errors are reported to the operator and never to the client."""
        if self.broken:
            return
        try:
            write()
        except OSError as error:
            self.broken = error.strerror or str(error)
            self._say(
                f"recording stopped: {self.broken}. Requests are still passed on but no longer recorded"
            )
        except Exception as error:  # a defect
            self.lost += 1
            self._say(f"an event was not recorded: {error!r}")


async def record(
    upstream: Address, listen: ListenOptions, path: Path, with_bodies: bool,
    keys: dict[str, SigningKey] | None, hooks: Hooks,
) -> None:  # fmt: skip
    """Serve until a stop signal. Raises TransferError if the start fails or the trace is incomplete at the end."""
    try:
        trace = TraceWriter(path, upstream.origin, with_bodies)
    except FileExistsError:
        raise TransferError(f"{path} exists already. Name another file or remove it") from None
    except OSError as error:
        raise TransferError(f"{path}: {error.strerror}") from None
    service = Service(upstream, _UPSTREAM_SECONDS)
    signer = None if keys is None else Signer(keys, upstream.host)
    recorder = Recorder(service, Forwarder(upstream, signer), trace, hooks.say)
    proxy = Proxy(recorder.handle, refusal, listen)
    flushing = asyncio.create_task(recorder.flush_forever())
    try:
        hooks.announce(await proxy.listen())
        await hooks.until()
    finally:
        flushing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await flushing
        await proxy.close()
        await service.close()
        recorder.close()
    if recorder.broken:
        raise TransferError(f"{path} is incomplete: {recorder.broken}")
    if recorder.lost:
        raise TransferError(f"{path} is incomplete: {recorder.lost} events are missing")
    hooks.say(f"{recorder.count} exchanges in {path}")
