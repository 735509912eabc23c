"""The application: routing of requests to dialects, and replies to requests of no dialect.

The server (gateway/server) and the WSGI application (app.py) use it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tablegate.gateway.configuration.secrets import masked_target
from tablegate.gateway.control import access, health
from tablegate.gateway.control.access import CONSOLE, PREFIX
from tablegate.gateway.control.clocks import Clock
from tablegate.gateway.control.interceptor import RequestInterceptor
from tablegate.gateway.dialects.dialect import Dialect, Gateway, UnloadedDialect
from tablegate.gateway.http.messages import Reply, Request, text_reply
from tablegate.gateway.model.errors import Busy, GatewayError, HeadTooLong, LimitExceeded, NotAllowed
from tablegate.gateway.observability import logs
from tablegate.gateway.security.browsers import OriginPolicy
from tablegate.gateway.security.quotas import QuotaSync

if TYPE_CHECKING:
    from tablegate.gateway.control.administration import Administration
    from tablegate.gateway.control.routes import Routes


@dataclass(frozen=True, slots=True)
class Application:
    """The dialects of a server, in the order of their detection, and the routing of requests to them."""

    gateway: Gateway
    dialects: list[Dialect | UnloadedDialect]
    """All dialects. The first request of one loads it."""
    clock: Clock = field(default_factory=Clock)
    """The clock of the tables."""
    quota_keeper: QuotaSync | None = None
    """The synchronisation of `gateway.quotas` with the database while the server runs."""
    administration: Callable[[], Administration] | None = None
    """The administration of the database, for the control API. None if the database is not open."""
    interceptor: RequestInterceptor = field(init=False)
    _browsers: OriginPolicy = field(init=False)

    def __post_init__(self) -> None:
        hosts = [dialect.service_hosts for dialect in self.dialects]
        settings = self.gateway.settings
        object.__setattr__(self, "_browsers", OriginPolicy(settings, settings.auth == "dev", hosts))
        object.__setattr__(
            self,
            "interceptor",
            RequestInterceptor(self.loaded_dialects, self.clock.now_ns, settings.recorded_requests),
        )

    def loaded_dialects(self) -> list[Dialect]:
        """Return all dialects, after loading those that are not."""
        return [self.load(each) if isinstance(each, UnloadedDialect) else each for each in self.dialects]

    def load(self, unloaded: UnloadedDialect) -> Dialect:
        """Return a dialect after importing its modules. Any thread may call this."""
        dialect = unloaded.load()
        self.dialects[[each.name for each in self.dialects].index(dialect.name)] = dialect
        return dialect

    def dialect_of(self, request: Request) -> Dialect | None:
        """Return the dialect that a request belongs to, or None for the gateway's own paths and unknown requests."""
        found = self.find_dialect(request)
        return self.load(found) if isinstance(found, UnloadedDialect) else found

    def find_dialect(self, request: Request) -> Dialect | UnloadedDialect | None:
        """Return the dialect that a request belongs to, without loading it."""
        if request.path.startswith(PREFIX) or (request.path in health.PATHS and health.is_for(request)):
            return None
        for dialect in self.dialects:
            if dialect.matches(request):
                return dialect
        return None

    def own_reply(self, request: Request) -> Reply | None:
        """Return the reply to a request for health, metrics or the control API, or None for another request."""
        if request.path.startswith(CONSOLE):
            return None
        if request.path.startswith(PREFIX) and self.gateway.settings.control:
            return self.control_routes().reply(request)
        return health.reply(self.gateway, request)

    def control_routes(self) -> Routes:
        """Return the control API."""
        from tablegate.gateway.control.routes import Routes  # a server without such requests does not load it

        administration = None if self.administration is None else self.administration()
        return Routes(self.gateway, self.clock, self.interceptor, administration)

    def reject_cross_origin(self, request: Request) -> Reply | None:
        """Return the refusal of a request that a page of a foreign origin can have sent, or None.

        The page cannot read the refusal. Both entries call this first.
        """
        headers = request.header_map
        host, origin = headers.get("host", ""), headers.get("origin", "")
        if self._browsers.is_allowed(host, origin, headers.get("sec-fetch-site", "")):
            return None
        try:
            self._browsers.check(request)
        except NotAllowed as error:
            dialect = self.dialect_of(request) if origin and error.rule == "origin" else None
            if dialect is not None and dialect.has_origin_rules:
                return None
            reply = self.refuse(request, error)
            other_headers = [
                header for header in reply.headers if not header[0].lower().startswith("access-control-")
            ]
            return reply._replace(headers=other_headers)
        return None

    def refusal_of_head(self, request: Request) -> Reply | None:
        """Return the refusal of a request whose body is longer than HEAD_FIRST_BYTES, or None.

        Both entries call this before they receive the body, so that requests without a credential cannot fill the memory.
        """
        reply = self.reject_cross_origin(request)
        if reply is not None:
            return reply
        try:
            dialect = self.dialect_of(request)
            if dialect is not None:
                return dialect.refusal_of_head(request)
            return access.refusal_of_form(request)
        except Exception as error:
            return self.refuse_and_log(request, error)

    def refuse(self, request: Request, error: Exception) -> Reply:
        """Return the reply to a request that the gateway itself refuses, rendered by its dialect if it has one."""
        try:
            dialect = self.dialect_of(request)
            reply = dialect.refuse(request, error) if dialect is not None else None
        except Exception as second:
            logs.error("a dialect failed to render a refusal", second, request_id=request.id)
            reply = None
        return reply or plain_refusal(error)

    def refuse_and_log(self, request: Request, error: Exception) -> Reply:
        """Return the reply to a request whose handling raised. Server errors are logged."""
        reply = self.refuse(request, error)
        if reply.status >= 500:
            logs.error(
                "a request failed", None if isinstance(error, Busy) else error, reason=repr(error),
                request_id=request.id, method=request.method, path=masked_target(request.path),
            )  # fmt: skip
        return reply


def plain_refusal(error: Exception) -> Reply:
    """Return the refusal of a request that belongs to no dialect."""
    match error:
        case LimitExceeded():
            return text_reply(413, f"the {error.what} is longer than {error.limit} bytes")
        case HeadTooLong():
            return text_reply(400, error.text)
        case Busy():
            return text_reply(503, "try again")
        case NotAllowed():
            return text_reply(403, error.facts.get("text", "this is not allowed"))
        case GatewayError() | _:
            return text_reply(500, "internal error")
