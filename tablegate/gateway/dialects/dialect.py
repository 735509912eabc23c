"""The protocol of dialects: the steps in which each of them answers a request, and the one loop that runs them.

`adapters/NAME/dialect.py` has a class that derives from Dialect, and `detection.py` beside it what is needed earlier.

The steps of a request: `matches`, `authenticate`, `parse`, `execute`, `render` or `render_error`. `Dialect.handle` is the
coroutine of these steps. The server's tick, or `Dialect.serve` under WSGI, runs the commands that it awaits.
"""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.dialects.coroutines import drive
from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.http.request_bodies import RequestMemory
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.errors import NotAllowed
from tablegate.gateway.model.request_info import RequestInfo, RequestKind
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.values import Value
from tablegate.gateway.observability import metrics
from tablegate.gateway.security import gate
from tablegate.gateway.security.attempts import AttemptLimiter
from tablegate.gateway.security.browsers import OriginPolicy, foreign_origin
from tablegate.gateway.security.credentials import Credentials, Sessions
from tablegate.gateway.security.grant_store import GrantStore
from tablegate.gateway.security.identities import Identities
from tablegate.gateway.security.quotas import Quotas

if TYPE_CHECKING:
    import flask


Handler = Callable[[Request], Coroutine[Any, Any, Reply]]
"""`Dialect.handle`, or a wrapper. It is called again with the same request when a table was stale."""
DescribeTable = Callable[[Table], tuple[str, str, str]]
"""Returns the name, key and address of a table as the clients of a dialect know them."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """The services of the application for adapters (gateway/control/clocks.py for the clocks, in milliseconds since 1970).

    - `now_ms`: the clock of tables, streams and grants.
    - `real_now_ms`: the real time, for signatures and the Date of replies.
    """

    engine: Engine
    credentials: Credentials
    settings: Settings
    now_ms: Callable[[], int]
    real_now_ms: Callable[[], int]
    quotas: Quotas = field(default_factory=Quotas)
    attempts: AttemptLimiter = field(default_factory=AttemptLimiter)
    """The counts of wrong secrets of the console, the control API and /metrics."""
    grants: GrantStore | None = None
    """The stored grants, for display."""
    memory: RequestMemory = field(init=False)
    """The budget of all requests in flight."""
    identities: Identities = field(init=False)
    """The trusted issuers of tokens."""
    sessions: Sessions = field(init=False)
    """The temporary AWS credentials of identities and stored keys."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "identities", Identities(self.settings))
        object.__setattr__(self, "sessions", Sessions(self.identities, self.credentials))
        self.credentials.find_session = self.sessions.find
        object.__setattr__(self, "memory", RequestMemory(self.settings.max_buffered_bytes))


@dataclass(frozen=True, slots=True)
class Seed:
    """Files of initial tables: path -> function that opens the file.

    `place` is the (account, region) of the tables. None is the default of requests that name neither.
    """

    files: Mapping[str, Callable[[], BinaryIO]]
    place: tuple[str, str] | None = None


class BadSeed(ValueError):
    """A seed that cannot be loaded. The text names the file. The files before it are loaded."""


# Bodies of up to QUICK_BYTES are quick. Longer ones are quick with few values, up to LONG_BYTES.
QUICK_BYTES = 4 << 10
_QUICK_VALUES = 1_000
LONG_BYTES = 256 << 10
THROTTLING, INTERNAL, CONFLICT, LIMIT = "throttling", "internal", "conflict", "limit"
"""Errors that every dialect has under some name."""


class Detection(ABC):
    """The part of a dialect that a server needs before its first request: its detection, and its start."""

    name: ClassVar[str]
    """The name in the settings and of the folder in adapters/."""
    hint: ClassVar[str] = ""
    """A hint that points an SDK at `{url}`, printed at the start."""
    service_hosts: ClassVar[re.Pattern[str]] = re.compile("(?!)")
    """The host names of the service, in lower case. Only its operator controls their addresses (security/browsers.py)."""

    @staticmethod
    @abstractmethod
    def matches(request: Request) -> bool:
        """True if a request belongs to this dialect. Called in the order of settings.dialects, before the body has come."""

    @staticmethod
    def index_view(value: Value, is_partition: bool) -> Value | None:
        """Return the value of a key column for an index that this dialect created (model.tables.indexes.IndexView)."""
        return value

    @staticmethod
    def loads_at_start(settings: Settings) -> bool:
        """Return True if the dialect must not wait for its first request, as the settings give it work or may be invalid."""
        return False


class Dialect(Detection):
    """One of the wire APIs, answering requests on a gateway. Several dialects may share a port."""

    has_origin_rules: ClassVar[bool] = False
    """True if accounts have CORS rules. Then the dialect refuses pages, by the settings of the server (security/browsers.py)
    and the rules of the account."""
    faults: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """The errors of injected faults (control/faults.py): name -> the dialect's error. It has the dialect's own names and the
    general ones (THROTTLING and others)."""
    operations: ClassVar[frozenset[str]] = frozenset()
    """The names that `operation` returns for requests of this dialect that it knows."""
    batches: ClassVar[frozenset[str]] = frozenset()
    """Operations of several members. Each member may stay unprocessed (request_context.is_left_out)."""
    blocking_operations: ClassVar[Set[str]] = frozenset()
    """Operations that can wait for other systems than the database, or with modules that are not imported yet
    (operation_table.py). The server runs them on a thread."""
    methods: ClassVar[frozenset[str]] = frozenset(
        {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
    )
    """The HTTP methods of the dialect's routes under Flask."""
    refusal_statuses: ClassVar[frozenset[int]] = frozenset({401, 403})
    """The HTTP statuses of replies to callers without authentication or permission. Other errors may have them too."""
    refused_part_marks: ClassVar[Mapping[str, bytes]] = MappingProxyType({})
    """Operations that can succeed with refused parts -> bytes that are in the reply's body only in that case."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        gateway.engine.register_view(self.name, self.index_view)

    # The steps of a request

    @abstractmethod
    def authenticate(self, request: Request) -> Any:
        """Return the authenticated caller, in the dialect's own type, or None if the body must be read first. Raises if the head
        proves no caller."""

    @abstractmethod
    def parse(self, request: Request, caller: Any) -> Any:
        """Return the call that a request is: its operation and its decoded body, in the dialect's own type. Raises what
        `render_error` can render.

        Sets the purpose of the request's authorization, and admits the request to quotas and to the memory budget."""

    @abstractmethod
    def execute(self, call: Any) -> Awaitable[Any]:
        """Authorize the resources that a call names, carry out its operation, and return the answer."""

    @abstractmethod
    def render(self, request: Request, caller: Any, answer: Any) -> Reply:
        """Return the reply with the answer of an operation."""

    @abstractmethod
    def render_error(self, request: Request, caller: Any, error: Exception) -> Reply:
        """Return the error reply for any exception. Unforeseen ones become the dialect's internal error and are logged."""

    async def handle(self, request: Request) -> Reply:
        """Answer a request. Raises nothing: errors are replies."""
        caller = None
        try:
            caller = self.authenticate(request)
            answer = await self.execute(self.parse(request, caller))
            return self.render(request, caller, answer)
        except Exception as error:
            request.is_unauthenticated = caller is None and not self.gateway.credentials.is_dev
            return self.render_error(request, caller, error)

    @cached_property
    def _browsers(self) -> OriginPolicy:
        settings = self.gateway.settings
        return OriginPolicy(settings, settings.auth == "dev")

    def refusal_of_origin(self, request: Request) -> NotAllowed | None:
        """Return the refusal of a page whose origin the server's settings do not allow, or None. For dialects with
        `has_origin_rules`."""
        origin = request.header_map.get("origin", "")
        return foreign_origin(origin) if origin and not self._browsers.is_allowed_page(origin) else None

    def operation(self, request: Request) -> str:
        """Return the name of a request's operation for metrics and the access log, from a closed set."""
        return ""

    def request_info(self, request: Request, reply: Reply | None = None) -> RequestInfo:
        """Return the description of a request. Can raise any exception if the request is malformed.

        With a reply they include the result and the claimed caller. Without a reply the caller is authenticated first. If that
        fails, only the operation and its kind are returned. Called for audited and recorded requests, and while faults exist.
        """
        operation = self.operation(request)
        return RequestInfo(operation, self.kind_of(operation))

    @classmethod
    def kind_of(cls, operation: str) -> RequestKind:
        """Return the kind of an operation, for the audit log. Unknown ones only read."""
        return RequestKind.READ

    def long_from_bytes(self, operation: str) -> int:
        """Return the length of the body in bytes, from which `takes_long` is true."""
        return LONG_BYTES

    def refusal_of_head(self, request: Request) -> Reply | None:
        """Return the refusal of a request whose head does not authenticate its sender, or None. The server calls this before it
        receives a long body, so `request` has no body yet."""
        return None

    def only_reads(self, request: Request) -> bool:
        """Return True if the head shows that a request only reads rows. Any process of a server may then answer it. In doubt,
        return False."""
        return False

    def takes_long(self, request: Request, operation: str) -> bool:
        """Return True if the steps of a request can take more than some milliseconds, by an estimate from its body.

        JSON takes about 4 us for each value.
        """
        body = request.body
        if len(body) <= QUICK_BYTES:
            return False
        if len(body) >= self.long_from_bytes(operation):
            return True
        # Splitting finds the marks twice as fast as counting, and ends early.
        return len(body.split(b"{", _QUICK_VALUES + 1)) > _QUICK_VALUES + 1

    def refuse(self, request: Request, error: Exception) -> Reply | None:
        """Return the dialect's reply for an error of the server, or None for the server's own text.

        Errors are LimitExceeded (the body is too long), HeadTooLong, NotAllowed (a foreign web page) and Busy. Any other
        exception is a bug and becomes the dialect's internal error.
        """
        return None

    def load_seed(self, seed: Seed) -> dict[str, int]:
        """Load the files of a seed that belong to this dialect. Return table -> number of rows. Raises BadSeed."""
        return {}

    def fault(self, request: Request, name: str) -> Reply:
        """Return the error reply of an injected fault. `name` is a value of `faults`."""
        raise NotImplementedError(f"{self.name} has no faults")

    def serve(self, request: Request) -> Reply:
        """Handle one request from beginning to end. Raises Busy if its tables never stop changing, and what `handle` raises."""
        try:
            reply = drive(partial(self.handle, request), partial(self._run, request))
        finally:
            self.gateway.memory.release(request)
        if metrics.is_due():
            metrics.count_noted()
        authorization = request.authorization
        return (
            reply
            if authorization is None or authorization.is_checked
            else self.finalize_authorization(request, reply)
        )

    def _run(self, request: Request, commands: list[Command[Any]]) -> list[Any]:
        request.check_client()
        # The authorization is known once the handler has begun.
        return gate.run(self.gateway.engine, commands, request.authorization)

    def finalize_authorization(self, request: Request, reply: Reply) -> Reply:
        """Return the reply to a restricted request without an authorized command: a refusal if no grant matches it."""
        authorization = request.authorization
        assert authorization is not None
        return gate.finalize(authorization, reply, partial(self.refuse, request))

    def blueprint(self) -> flask.Blueprint:
        """The routes of this dialect under Flask."""
        # Imported here: a server that uses its tick alone needs no Flask (docs/architecture.md section 11).
        from tablegate.gateway.http.flask_bridge import routes

        return routes(self.name, self.methods, self.serve)


class UnloadedDialect:
    """A dialect that nothing has used yet. `load` imports its modules, which takes tens of milliseconds."""

    def __init__(self, detection: type[Detection], new: Callable[[], Dialect]) -> None:
        self.name = detection.name
        self.hint = detection.hint
        self.service_hosts = detection.service_hosts
        self.matches = detection.matches
        self._new = new
        self._lock = threading.Lock()
        self._dialect: Dialect | None = None

    def load(self) -> Dialect:
        """Return the dialect, the same one to all threads."""
        with self._lock:
            if self._dialect is None:
                self._dialect = self._new()
            return self._dialect
