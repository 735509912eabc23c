"""`tablegate record`: a proxy that writes down what passes through it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from tablegate.gateway.http import Reply, Request
from tablegate.transfer.errors import TransferError
from tablegate.transfer.traffic.dialects.detecting import refusal
from tablegate.transfer.traffic.dialects.dialect import plain
from tablegate.transfer.traffic.forwarding import REFUSED, Forwarder, described, is_refused_signature
from tablegate.transfer.traffic.proxies import Hooks, ListenOptions, Proxy, Say
from tablegate.transfer.traffic.redaction import answer_without_secrets, secrets_of, without_secrets
from tablegate.transfer.traffic.services import Address, NoReply, Service
from tablegate.transfer.traffic.signing import Signer, SigningKey
from tablegate.transfer.traffic.traces import RecordedRequest, TraceWriter

_FLUSH_SECONDS = 0.5
_UPSTREAM_SECONDS = 120.0


class Recorder:
    """Answers requests with the service's answers, and writes both down. A disk that is full stops the writing, not the
    answers."""

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
        """The service's answer; 502 in the dialect's words, if there is none."""
        number, self._next_number = self._next_number, self._next_number + 1
        about = described(number, connection, time.time(), request)
        sent = self._forwarder.forwarded(request)
        self._write(lambda: self._trace.request(about, without_secrets(sent)))
        try:
            reply = await self._service.send(sent)
        except NoReply as error:
            text = str(error)
            self._write(lambda: self._trace.failure(number, text))
            return refusal(request, 502, text)
        self._write(lambda: self._write_answer(about, request, sent, reply))
        return reply

    def _write_answer(self, about: RecordedRequest, request: Request, sent: Request, reply: Reply) -> None:
        secrets = [*secrets_of(request), *(secrets_of(sent) if sent is not request else ())]
        self._trace.answer(about.number, answer_without_secrets(plain(reply), secrets))
        self.count += 1
        if not self._has_warned and is_refused_signature(about, sent, reply):
            self._has_warned = True
            self._say(REFUSED)

    async def flush_for_ever(self) -> None:
        """End a frame now and then, so that little is lost with the process."""
        while True:
            await asyncio.sleep(_FLUSH_SECONDS)
            self._write(self._trace.flush)

    def close(self) -> None:
        """End the trace."""
        self._write(self._trace.close)

    def _write(self, what: Callable[[], None]) -> None:
        """Nothing that goes wrong here is the client's concern."""
        if self.broken:
            return
        try:
            what()
        except OSError as error:
            self.broken = error.strerror or str(error)
            self._say(
                f"the trace ends here: {self.broken}. Requests are still passed on, and no longer written down"
            )
        except Exception as error:  # a defect
            self.lost += 1
            self._say(f"an event is not in the trace: {error!r}")


async def record(
    upstream: Address, listen: ListenOptions, path: Path, with_bodies: bool,
    keys: dict[str, SigningKey] | None, hooks: Hooks,
) -> None:  # fmt: skip
    """Serve until told to stop. Raises TransferError for what cannot begin, and at the end for a trace that is not whole."""
    try:
        trace = TraceWriter(path, upstream.origin, with_bodies)
    except FileExistsError:
        raise TransferError(f"{path} is there already: name another file, or remove it") from None
    except OSError as error:
        raise TransferError(f"{path}: {error.strerror}") from None
    service = Service(upstream, _UPSTREAM_SECONDS)
    signer = None if keys is None else Signer(keys, upstream.host)
    recorder = Recorder(service, Forwarder(upstream, signer), trace, hooks.say)
    proxy = Proxy(recorder.handle, refusal, listen)
    flushing = asyncio.create_task(recorder.flush_for_ever())
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
        raise TransferError(f"{path} does not hold everything: {recorder.broken}")
    if recorder.lost:
        raise TransferError(f"{path} does not hold everything: {recorder.lost} events are missing")
    hooks.say(f"{recorder.count} exchanges in {path}")
