"""A request between its arrival and its reply: one object for the connection, the server and the tick.

It holds the state that each of the three needs, without behaviour.
"""

from __future__ import annotations

from collections.abc import Coroutine
from time import monotonic
from typing import Any, Protocol

from tablegate.gateway.control.interceptor import InterceptedRequest
from tablegate.gateway.dialects.dialect import Dialect, Handler
from tablegate.gateway.engine.engine import contended, longest_wait_s, pauses_between_attempts
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.errors import Busy

REFUSAL_DELAY_S = 0.1
"""Minimum delay, in seconds, of replies to requests that are unauthenticated or exceed a quota. Otherwise clients that
retry at once could use up the server."""


ABANDONED = Reply(499, ())
"""The reply to a request that was dropped because its client has closed the connection. It is only
recorded. The status is nginx's."""


class ReplyChannel(Protocol):
    """The connection of a request.

    - `written_up_to`: position of the database's log after its last write, if there are standbys.
    - `is_lost`: the client has closed the connection, so no reply can be sent.
    """

    written_up_to: int
    is_lost: bool

    def answer(self, reply: Reply) -> None:
        """Send the reply to the current request."""


class PendingRequest(Request):
    """A request in progress. Rarely used fields have their defaults in the class."""

    # Set by the connection: the framing of the reply, and the server's own refusal.
    connection: ReplyChannel
    keep_alive = True
    http_10 = False
    refusal: Reply | None = None

    # Set by the server: the start (monotonic seconds), the dialect, the operation and injected faults. The steps of a
    # request that takes long run on a thread.
    began = 0.0
    dialect: Dialect | None = None
    operation = ""
    interception: InterceptedRequest | None = None
    is_delayed = False
    takes_long = False
    span: Any = None  # with OpenTelemetry only

    # Set by the tick: the handler, its coroutine, and the commands that the coroutine awaits.
    handler: Handler
    commands: list[Command[Any]]
    coroutine: Coroutine[Any, Any, Reply]
    has_run = False  # some of its commands
    restarts = 0
    lock_retry: LockRetry | None = None

    def check_client(self) -> None:
        if self.is_abandoned_read:
            raise Busy("the client has closed the connection")

    @property
    def is_abandoned_read(self) -> bool:
        """True if the client has closed the connection and the request only reads."""
        return self.connection.is_lost and self.dialect is not None and self.dialect.only_reads(self)

    @property
    def may_be_dropped(self) -> bool:
        """True if the client has closed the connection, and the request only reads or has run nothing."""
        return self.connection.is_lost and (not self.has_run or self.is_abandoned_read)


RequestOutcomes = tuple[PendingRequest, list[Any] | Exception]
"""A pending request and its outcomes, or the error of the engine for it."""


class LockRetry:
    """The outcomes of a request with Contended ones at the indexes in `waiting`."""

    __slots__ = ("began", "outcomes", "pauses", "waiting")

    def __init__(self, outcomes: list[Any], waiting: list[int]) -> None:
        self.outcomes = outcomes
        self.waiting = waiting
        self.began = monotonic()
        self.pauses = pauses_between_attempts()

    def merge(self, again: list[Any]) -> None:
        """Store the outcomes of another attempt at the waiting commands."""
        for at, outcome in zip(self.waiting, again, strict=True):
            self.outcomes[at] = outcome
        self.waiting = contended(self.outcomes)

    @property
    def is_over(self) -> bool:
        return not self.waiting or monotonic() >= self.began + longest_wait_s(self.outcomes)
