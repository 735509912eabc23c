"""`tablegate replay`: sends the requests of a trace to another service in the recorded order.

A request is sent once all requests that had been answered before it are answered again. So each client finds the
same state, and the concurrency of the recording is kept. The trace is read twice: the first pass finds out how each
request ended.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path

from tablegate.gateway.http.messages import Request
from tablegate.transfer.errors import ServiceUnavailable
from tablegate.transfer.traffic import traces
from tablegate.transfer.traffic.dialects.detecting import DIALECTS, NONE
from tablegate.transfer.traffic.reports import DivergenceReport, SkipReason
from tablegate.transfer.traffic.services import UNSIGNED, Address, Service, Signer, SigningKey
from tablegate.transfer.traffic.sessions import AUTHENTICATION_CODES, ReplaySession, SentRequest

_LIVE_SECONDS = 120.0
_PATIENCE_SECONDS = 20.0
_FAILURES_MAX = 10
_CUT = "The trace ends in an incomplete frame. The events of that frame are missing."


@dataclass(slots=True)
class _Survey:
    """The result of the first pass: the numbers of requests that succeeded and of those with a rejected signature."""

    succeeded: set[int]
    refused: set[int]
    ended: float


@dataclass(slots=True)
class _InFlight:
    about: traces.RecordedRequest
    request: Request
    sending: asyncio.Task[SentRequest]
    is_write: bool
    is_raced: bool


async def replay(
    path: Path, against: Address, keys: dict[str, SigningKey], speed: float | None
) -> DivergenceReport:
    """Send the requests of a trace and return the comparison.

    `speed` is relative to the recording. If None, only the order of requests limits it. Raises BadTrace,
    ServiceUnavailable.
    """
    survey = _read_survey(path)
    reader = traces.TraceReader(path)
    if not reader.has_bodies:
        raise traces.BadTrace(
            f"{path} was recorded without bodies and cannot be replayed. Record it again with --bodies"
        )
    service = Service(against, _LIVE_SECONDS)
    try:
        session = ReplaySession(
            service, Signer(keys, against.host), (reader.began, survey.ended), _PATIENCE_SECONDS
        )
        await _Replay(session, survey, speed).run(reader)
    finally:
        await service.close()
    if reader.is_cut:
        session.report.notes.append(_CUT)
    return session.report


def _read_survey(path: Path) -> _Survey:
    survey = _Survey(set(), set(), 0.0)
    open_requests: dict[int, traces.RecordedRequest] = {}
    for event in traces.TraceReader(path):
        if isinstance(event, traces.RequestEvent):
            if event.about.dialect not in (NONE, *DIALECTS):
                raise traces.BadTrace(
                    f"{path}: this release does not support the dialect {event.about.dialect!r}"
                )
            open_requests[event.about.number] = event.about
            survey.ended = max(survey.ended, event.about.at)
            continue
        survey.ended = max(survey.ended, event.at)
        metadata = open_requests.pop(event.number, None)
        if metadata is None:
            raise traces.BadTrace(f"{path}: the request of reply {event.number} is missing")
        if event.reply is None or metadata.dialect == NONE:
            continue
        dialect = DIALECTS[metadata.dialect]
        if dialect.succeeded(event.reply):
            survey.succeeded.add(event.number)
        elif metadata.signed != UNSIGNED and event.reply.status >= 400:
            answer = dialect.answer(Request("POST", "/", (), b""), event.reply)
            if answer.code in AUTHENTICATION_CODES:
                survey.refused.add(event.number)
    return survey


class _Replay:
    def __init__(self, session: ReplaySession, survey: _Survey, speed: float | None) -> None:
        self._session = session
        self._survey = survey
        self._speed = speed
        self._in_flight: dict[int, _InFlight] = {}
        self._answers = 0
        self._failures = 0
        self._first_at: float | None = None
        self._began = time.monotonic()

    async def run(self, reader: traces.TraceReader) -> None:
        try:
            for event in reader:
                if isinstance(event, traces.RequestEvent):
                    await self._begin(event)
                else:
                    await self._end(event)
            for unanswered in self._in_flight.values():
                await unanswered.sending
                self._session.report.skip(SkipReason.UNANSWERED)
        finally:
            for unanswered in self._in_flight.values():
                unanswered.sending.cancel()

    async def _begin(self, event: traces.RequestEvent) -> None:
        metadata, request = event.about, event.request
        if metadata.dialect == NONE:
            self._session.report.skip(SkipReason.FOREIGN)
            return
        if metadata.number in self._survey.refused:
            self._session.report.skip(SkipReason.REFUSED_BEFORE)
            return
        await self._wait_until(metadata.at)
        is_write = DIALECTS[metadata.dialect].is_write(request)
        others = self._in_flight.values()
        is_raced = any(other.is_write for other in others)
        for other in others if is_write else ():
            other.is_raced = True
        is_done = metadata.number in self._survey.succeeded
        sending = asyncio.create_task(self._session.send(metadata, request, is_done))
        self._in_flight[metadata.number] = _InFlight(metadata, request, sending, is_write, is_raced)
        await asyncio.sleep(0)  # start requests in the recorded order

    async def _end(self, event: traces.AnswerEvent) -> None:
        in_flight = self._in_flight.pop(event.number, None)
        if in_flight is None:
            return
        sent_request = await in_flight.sending
        self._check_availability(sent_request)
        if event.reply is None:
            self._session.report.skip(SkipReason.UNANSWERED)
        else:
            self._session.compare(
                in_flight.about, in_flight.request, event.reply, sent_request, in_flight.is_raced
            )

    def _check_availability(self, sent_request: SentRequest) -> None:
        """Raise ServiceUnavailable if the service gives no replies."""
        if sent_request.why is not SkipReason.NO_LIVE_ANSWER:
            self._answers += 1
            self._failures = 0
            return
        self._failures += 1
        if not self._answers or self._failures >= _FAILURES_MAX:
            raise ServiceUnavailable(sent_request.failure)

    async def _wait_until(self, at: float) -> None:
        if self._speed is None:
            return
        if self._first_at is None:
            self._first_at = at
        due = self._began + (at - self._first_at) / self._speed
        await asyncio.sleep(max(0.0, due - time.monotonic()))
