"""A request in hand, from its last byte to its reply: one object for the connection that read it, the server, and the tick.

Holds what each of the three must know of a request, and does nothing with it.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any, Protocol

from tablegate.gateway.control.interceptor import InterceptedRequest
from tablegate.gateway.dialect import Dialect, Handler
from tablegate.gateway.engine.engine import contended, longest_wait_s, pauses_between_attempts
from tablegate.gateway.http import Reply, Request
from tablegate.gateway.model.commands.commands import AnyCommand, Exchange

HELD_BACK_S = 0.1
"""Least delay of the answers to requests that exceed a quota or are not authenticated, in seconds. Clients that try again at once
would otherwise take all of the server's time."""


class ReplyChannel(Protocol):
    """What a request came on: a connection. `written_up_to`: how far the database's log was after the last write on it, if
    there are replicas that readers wait for."""

    written_up_to: int

    def answer(self, reply: Reply) -> None:
        """Send the reply to the request in hand."""


class PendingRequest(Request):
    """A request on its way. What most requests do not need has its default in the class."""

    # Of the connection: how the reply is framed; what the server itself refuses the request with.
    connection: ReplyChannel
    keep_alive = True
    http_10 = False
    refusal: Reply | None = None

    # Of the server: when it began (monotonic seconds), its dialect and its operation, and the faults that it meets.
    began = 0.0
    dialect: Dialect | None = None
    operation = ""
    met: InterceptedRequest | None = None
    is_held_back = False
    span: Any = None  # with OpenTelemetry alone

    # Of the tick: the handler; what the engine is asked for; who is told the outcomes, an exchange or a function.
    handler: Handler
    commands: list[AnyCommand]
    exchange: Exchange[Reply] | None = None
    finish: Callable[[Any], Reply] | None = None
    restarts = 0
    lock_retry: LockRetry | None = None


Answered = tuple[PendingRequest, list[Any] | Exception]
"""A pending request and its own outcomes, or what the engine raised for it alone."""


class LockRetry:
    """The outcomes of a request of which some are Contended: those at the places `waiting`."""

    __slots__ = ("began", "outcomes", "pauses", "waiting")

    def __init__(self, outcomes: list[Any], waiting: list[int]) -> None:
        self.outcomes = outcomes
        self.waiting = waiting
        self.began = monotonic()
        self.pauses = pauses_between_attempts()

    def merge(self, again: list[Any]) -> None:
        """Take the outcomes of another attempt at what waits."""
        for at, outcome in zip(self.waiting, again, strict=True):
            self.outcomes[at] = outcome
        self.waiting = contended(self.outcomes)

    @property
    def is_over(self) -> bool:
        """Whether no command waits any more, or its time is up."""
        return not self.waiting or monotonic() >= self.began + longest_wait_s(self.outcomes)
