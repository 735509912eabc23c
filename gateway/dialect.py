"""What an adapter gives the application, a Dialect, and what it is given: a Gateway.

All adapters are built alike: `adapters/NAME/blueprint.py` has a class that derives from Dialect, `create(gateway)`, which
makes one, and `listed(table)`, by which `tablegate tables` shows a table as the dialect's clients address it. One that also has a
`claims.py` with CLAIMS is loaded when its first request comes (late_dialect.py).

Knows how Flask comes to a dialect. Knows no dialect itself.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, NamedTuple

from gateway import metrics
from gateway.engine.engine import Engine, drive, run_with_retries
from gateway.http import Reply, Request
from gateway.model.authorizations import Authorization
from gateway.model.commands import AnyCommand, Exchange
from gateway.model.fast_dataclasses import dataclass
from gateway.model.tables import IndexView
from gateway.quotas import Quotas
from gateway.security.authorizing import authorize, conclude, settle
from gateway.security.credentials import Credentials
from gateway.settings import Settings

if TYPE_CHECKING:
    import flask

    from gateway.audit import Deed, Kind


class Round(NamedTuple):
    """An exchange that has but one round, without a generator: what the engine is asked for, and what makes the reply of the
    outcomes, or of what the engine raised."""

    commands: list[AnyCommand]
    finish: Callable[[list[Any] | Exception], Reply]


Handler = Callable[[Request], Round | Reply | Exchange[Reply]]
"""Begins to handle a request: gives the one round that it takes, the reply that takes none, or an exchange. Called again with
the same request when a table turned out to be stale."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """What the application gives to every adapter. `now_ms` is the clock, in milliseconds since 1970, that tables, streams and
    grants live by; `real_now_ms` the one that callers have too, for signatures and the Date of replies (gateway/clock.py)."""

    engine: Engine
    credentials: Credentials
    settings: Settings
    now_ms: Callable[[], int]
    real_now_ms: Callable[[], int]
    quotas: Quotas = field(default_factory=Quotas)


@dataclass(frozen=True, slots=True)
class Summary:
    """What a request asks for, in short. `caller`: the access id that it has proven, if any; `tables` as the client names them;
    `keys`: (table, key as JSON) of rows that it names."""

    operation: str
    caller: str = ""
    tables: Sequence[str] = ()
    keys: Sequence[tuple[str, Mapping[str, Any]]] = ()


@dataclass(frozen=True, slots=True)
class Seed:
    """Files with which tables begin: name, with folders -> what opens it. `place`: whose tables they become, (account, region);
    None: those of whoever names neither."""

    files: Mapping[str, Callable[[], BinaryIO]]
    place: tuple[str, str] | None = None


class BadSeed(ValueError):
    """A seed that cannot be planted. The text names the file; what was read before it is planted."""


THROTTLING, INTERNAL, CONFLICT, LIMIT = "throttling", "internal", "conflict", "limit"
"""Errors that every dialect has under some name."""


@dataclass(frozen=True, slots=True)
class Claims:
    """What is known of a dialect before its first request, when its other modules may be loaded: what Dialect's members of
    these names are, and how it reads the keys of its indexes (`Engine.register_view`)."""

    name: str
    hint: str
    service_hosts: re.Pattern[str]
    claims: Callable[[Request], bool]
    index_view: IndexView | None = None


class Dialect(ABC):
    """One of the wire APIs, answering requests on a gateway.

    Several dialects may share a port: `claims` says whether a request is this one's. The server's tick drives what `enter`
    gives, many exchanges at once; everything else comes through Flask, which drives `handle` to its end.
    """

    name: ClassVar[str]
    """What the settings call it: the name of its folder in adapters/."""
    hint: ClassVar[str] = ""
    """How to point an SDK at `{url}`, printed at the start."""
    service_hosts: ClassVar[re.Pattern[str]] = re.compile("(?!)")
    """The names (in lower case) of the service itself, to which nobody but its operator can give an address
    (security/browsers.py)."""
    faults: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """The errors that can be planted (control/faults.py): names of the dialect's own list, and the general ones with the
    own names that they mean."""
    batches: ClassVar[frozenset[str]] = frozenset()
    """Operations of several members, each of which may be left unprocessed (handling.is_left_out)."""
    methods: ClassVar[frozenset[str]] = frozenset(
        {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
    )
    """The HTTP methods that Flask lets through to `handle`."""

    refusal_statuses: ClassVar[frozenset[int]] = frozenset({401, 403})
    """The HTTP statuses among which are those of requests whose caller may not do this, or has not shown who it is."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway

    @abstractmethod
    def claims(self, request: Request) -> bool:
        """Whether a request is this dialect's. Asked in the order of settings.dialects, before the body has come."""

    @abstractmethod
    def handle(self, request: Request) -> Exchange[Reply]:
        """Answer a request that is this dialect's: an exchange with the engine that returns a Reply."""

    def enter(self, request: Request) -> Handler | None:
        """The handler of a request for the server's tick; None: it goes through Flask, on a thread of its own. Asked only of
        what the dialect claims."""
        return self.handle

    @cached_property
    def audited_operations(self) -> Mapping[str, Kind]:
        """What operations are for the audit; those that are not here only read. Asked only where there is an audit."""
        return {}

    @cached_property
    def refused_part_marks(self) -> Mapping[str, bytes]:
        """The operations that may be answered as a whole while parts of them are refused, and what stands in the body of such
        an answer and, but for such a part, of none. Asked only where there is an audit."""
        return {}

    def operation(self, request: Request) -> str:
        """The name of a request's operation for metrics and the access log, from a closed set."""
        return ""

    def deed(self, request: Request, reply: Reply, operation: str) -> Deed:
        """What a request did that has been answered, for the audit: called on its thread, and only if it is to be told.
        May raise anything where the request is one that was refused for its form."""
        from gateway.audit import Deed, Kind

        return Deed(self.audited_operations.get(operation, Kind.READ))

    def only_reads(self, request: Request) -> bool:
        """Whether a request, as far as its head shows, wants nothing but to read rows: then any process of a server may answer
        it. Whoever is not sure says no."""
        return False

    def refuse(self, request: Request, error: Exception) -> Reply | None:
        """What the server itself has to say to a request, in this dialect's words: LimitExceeded (the body is too long),
        NotAllowed (a page in a browser that may not come in), Busy, or any other exception, which is a bug and becomes the
        dialect's internal error. None leaves the words to the server."""
        return None

    def summary(self, request: Request) -> Summary:
        """What a request asks for. Asked only while requests are recorded or faults are planted. What it raises counts as a
        request of which nothing but its operation is known."""
        return Summary(self.operation(request))

    def plant(self, seed: Seed) -> dict[str, int]:
        """Make tables and rows of those files of a seed that are this dialect's; table -> how many rows. Raises BadSeed."""
        return {}

    def fault(self, request: Request, name: str) -> Reply:
        """An error reply that was planted; `name` is one of `faults` that is the dialect's own."""
        raise NotImplementedError(f"{self.name} has no faults")

    def serve(self, request: Request) -> Reply:
        """Handle one request from beginning to end. Raises Busy if its tables never stop changing, and what `handle` raises."""
        reply: Reply = drive(self.gateway.engine, partial(self.handle, request), partial(self._run, request))
        if metrics.is_due():
            metrics.count_noted()
        authorization = request.authorization
        return reply if authorization is None or authorization.is_checked else self.judged(request, reply)

    def _run(self, request: Request, commands: list[AnyCommand]) -> list[Any]:
        """The outcomes of commands that the request may give. Raises NotPermitted."""
        authorization = request.authorization
        if authorization is None:
            return run_with_retries(self.gateway.engine, commands)
        refusal = authorize(authorization, commands)
        if refusal is not None:
            raise refusal
        outcomes = run_with_retries(self.gateway.engine, commands)
        return settle(authorization, commands, outcomes) if authorization.looks_up else outcomes

    def judged(self, request: Request, reply: Reply) -> Reply:
        """The reply to a request that may not do everything and of which nothing was judged."""
        authorization = request.authorization
        assert authorization is not None
        return conclude(
            authorization, reply, partial(self.names, request, authorization), partial(self.refuse, request)
        )

    def names(self, request: Request, authorization: Authorization) -> Iterable[tuple[str, str]]:
        """The tables that a request names, as (namespace, own name), as far as they are known without asking the engine. Asked
        of requests that failed before anything was asked of the engine, whose callers may not do everything."""
        return ()

    def blueprint(self) -> flask.Blueprint:
        """The routes of this dialect under Flask."""
        # Loaded here: a server that is asked through its tick alone needs no Flask (docs/architecture.md, "A quick start").
        from gateway.server.flask_bridge import routes

        return routes(self.name, self.methods, self.serve)
