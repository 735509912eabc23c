"""The quotas in force: limits for credentials, identities, groups and namespaces, in all dialects and the console.

`Quotas.enter` counts a request and adds a RequestUsage to its authorization. The gate (security/gate.py) calls
`RequestUsage.refusal` before commands run and `RequestUsage.charge` afterwards (`Command.cost`). The cost of a command is known
only after it. So a command is admitted while any units are left, and the excess is a debt. Rates hold over time. Without
quotas `is_on` is False, and `Quotas.enter` is not called.

Bytes and tables are counted for a scope. The scope of a namespace's quota is the namespaces that it names. The scope of a
credential's quota is all namespaces of the caller's own tables, so a new region or instance adds no allowance. Bytes, with
backups, are counted every ten seconds and updated in between. Tables are counted in the transaction that creates one.

All server processes of one database share the rates. Each takes a share by its demand (`share_of`). QuotaSync writes the demand
to a small table twice a second while a quota is in use, loads the quotas, and counts stored bytes.
"""

from __future__ import annotations

import math
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import orjson

from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.http.messages import Request
from tablegate.gateway.model.authorization.authorizations import Authorization, CallerIdentity, RequestSource
from tablegate.gateway.model.authorization.grants import EVERYTHING
from tablegate.gateway.model.authorization.quotas import (
    BYTES,
    READ_UNITS,
    REQUESTS,
    WRITE_UNITS,
    Allowance,
    Quota,
    TableLimit,
    account_of,
    covers,
    credential_owner,
    namespace_owner,
)
from tablegate.gateway.model.commands import table_commands
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.errors import GatewayError, QuotaExceeded
from tablegate.gateway.model.tables.tables import Table, is_reserved_namespace
from tablegate.gateway.observability import metrics
from tablegate.gateway.store import accounts
from tablegate.gateway.store.store import Store

# Minimum share of a rate, so that a process without recent demand can admit requests.
_LEAST_SHARE = 0.02


class ScopedAllowance(NamedTuple):
    """An allowance that a request draws on, and the scope of its bytes and tables."""

    allowance: Allowance
    scope: str


class RequestUsage:
    """The use of quotas by one request. `exceeded` is the quota that refused the request or a part of it.

    A rate that has admitted a request does not refuse it later, so that its results so far are not lost.
    """

    __slots__ = ("_admitted", "_bounds", "_quotas", "_scoped_allowances", "exceeded")

    def __init__(self, quotas: Quotas, allowances: list[ScopedAllowance]) -> None:
        self._quotas = quotas
        self._scoped_allowances = allowances
        self._bounds = tuple(
            TableLimit(allowance.owner, scope, allowance.quota.tables)
            for allowance, scope in allowances
            if allowance.quota.tables is not None
        )
        self._admitted: set[str] = set()
        self.exceeded: QuotaExceeded | None = None

    def begin(self) -> None:
        """Count the request. Raises QuotaExceeded."""
        now = self._quotas.now()
        try:
            for scoped in self._scoped_allowances:
                scoped.allowance.check(REQUESTS, now)
        except QuotaExceeded as error:
            self._note(error)
            raise
        for scoped in self._scoped_allowances:
            scoped.allowance.take(REQUESTS, 1.0)

    def refusal(self, commands: list[Command[Any]]) -> QuotaExceeded | None:
        """Return the reason why commands are refused, or None.

        Commands that create tables are replaced in the list by equal ones with the bounds to check.
        """
        try:
            for at, command in enumerate(commands):
                self._check(command)
                if self._bounds:
                    commands[at] = command.with_bounds(self._bounds)
        except QuotaExceeded as error:
            self._note(error)
            return error
        return None

    def charge(self, commands: list[Command[Any]], outcomes: list[Any]) -> None:
        """Charge the cost of commands, by their outcomes."""
        for command, outcome in zip(commands, outcomes, strict=True):
            if isinstance(outcome, GatewayError):
                if isinstance(outcome, QuotaExceeded):  # of tables, which the engine counts
                    self._note(outcome)
                continue
            read_units, write_units, added_bytes = command.cost(outcome)
            for scoped in self._scoped_allowances:
                if read_units:
                    scoped.allowance.take(READ_UNITS, read_units)
                if write_units:
                    scoped.allowance.take(WRITE_UNITS, write_units)
            if added_bytes:
                self._quotas.add_stored({scoped.scope for scoped in self._scoped_allowances}, added_bytes)

    def _note(self, error: QuotaExceeded) -> None:
        self.exceeded = error
        metrics.record_quota_refusal(error.owner, error.kind)

    def _check(self, command: Command[Any]) -> None:
        """Raises QuotaExceeded."""
        rate = command.rate
        if rate is not None and rate not in self._admitted:
            now = self._quotas.now()
            for scoped in self._scoped_allowances:
                scoped.allowance.check(rate, now)
            self._admitted.add(rate)
        added_bytes = command.min_added_bytes()
        for allowance, scope in self._scoped_allowances:
            limit = allowance.quota.bytes
            if limit is not None and added_bytes and self._quotas.stored_bytes(scope) + added_bytes > limit:
                raise allowance.error(BYTES)


class Quotas:
    """The quotas in force, for the event loops and threads of the server. Any thread can call `replace` and `share`."""

    def __init__(self, now: Callable[[], float] = time.monotonic, processes: int = 1) -> None:
        """`processes`: the number of processes that share a rate equally until the first call of `share`."""
        self.is_on = False
        self.allowances: Mapping[str, Allowance] = {}
        self.now = now
        self._processes = processes
        self._sizes: Mapping[str, int] = {}
        self._stored: dict[str, int] = {}

    def replace(self, quotas: Mapping[str, Quota]) -> None:
        """Put these quotas in force. An unchanged quota keeps its remaining units."""
        now = self.now()
        old = self.allowances
        self.allowances = {
            owner: old[owner]
            if owner in old and old[owner].quota == quota
            else Allowance(owner, quota, 1 / self._processes, now)
            for owner, quota in quotas.items()
        }
        self.is_on = bool(self.allowances)

    def enter(
        self, request: Request, scheme: str, access_id: str, namespace: str, scope: str | None = None
    ) -> None:
        """Count a request of an authenticated caller. Raises QuotaExceeded.

        The gate then checks its commands against the quotas of the caller, of its principals and of the namespace. `scope` has
        the namespaces of the caller's own tables. None is the account of the namespace.
        """
        principals = () if request.authorization is None else request.authorization.identity.principals
        usage = self._usage(scheme, access_id, namespace, scope, principals)
        if usage is None:
            return
        if request.authorization is None:
            source = RequestSource(request.client, request.secure)
            request.authorization = _unrestricted(scheme, access_id, source)
        request.authorization.usage = usage
        usage.begin()

    def of_background_work(
        self, scheme: str, access_id: str, namespace: str, principals: Iterable[str]
    ) -> Authorization | None:
        """Return the authorization of a caller's background work, or None if the caller has no quota.

        `principals`: the principals of the caller at the request that began the work.
        """
        usage = self._usage(scheme, access_id, namespace, None, principals) if self.is_on else None
        if usage is None:
            return None
        authorization = _unrestricted(scheme, access_id, RequestSource("", False))
        authorization.usage = usage
        return authorization

    def _usage(
        self,
        scheme: str,
        access_id: str,
        namespace: str,
        scope: str | None,
        principals: Iterable[str],
    ) -> RequestUsage | None:
        account = account_of(namespace)
        own = account if scope is None else scope
        owners = {
            credential_owner(scheme, access_id): own,
            namespace_owner(namespace): namespace,
            namespace_owner(account): account,
        }
        owners.update(dict.fromkeys(principals, own))
        scoped_allowances = [
            ScopedAllowance(allowance, of)
            for owner, of in owners.items()
            if (allowance := self.allowances.get(owner)) is not None
        ]
        return RequestUsage(self, scoped_allowances) if scoped_allowances else None

    # Stored bytes

    def stored_bytes(self, scope: str) -> int:
        """Return the stored bytes of a scope: the last count plus later additions."""
        if scope not in self._stored:
            sizes = self._sizes.items()
            self._stored[scope] = sum(size for namespace, size in sizes if covers(scope, namespace))
        return self._stored[scope]

    def add_stored(self, scopes: Iterable[str], size_bytes: int) -> None:
        """Count added bytes. A negative number counts deleted ones."""
        for scope in scopes:
            self._stored[scope] = self.stored_bytes(scope) + size_bytes

    def keep_sizes(self, sizes: Mapping[str, int]) -> None:
        """Set the counted bytes of namespaces."""
        self._sizes, self._stored = sizes, {}

    # Shares of processes

    def demand(self, period_s: float) -> dict[str, dict[str, float]]:
        """Return the demand per second since the last call: owner -> name of the rate -> demand.

        Owners without demand are omitted. The call begins a new period.
        """
        demands: dict[str, dict[str, float]] = {}
        for owner, allowance in self.allowances.items():
            demand_of_owner = {}
            for name, bucket in allowance.buckets.items():
                demand_of_owner[name], bucket.requested = bucket.requested / period_s, 0.0
            if any(demand_of_owner.values()):
                demands[owner] = demand_of_owner
        return demands

    def share(
        self,
        demands: Mapping[str, Mapping[str, float]],
        other_demands: Mapping[str, list[Mapping[str, float]]],
    ) -> None:
        """Set the share of each rate by the demand of this process and of the others."""
        for owner, allowance in self.allowances.items():
            for name, bucket in allowance.buckets.items():
                demand_here = demands.get(owner, {}).get(name, 0.0)
                elsewhere = [demand.get(name, 0.0) for demand in other_demands.get(owner, ())]
                bucket.share = share_of(bucket.rate, demand_here, elsewhere)

    @property
    def limits_bytes(self) -> bool:
        """True if a quota limits bytes."""
        return any(allowance.quota.bytes is not None for allowance in self.allowances.values())

    def limits_bytes_of(self, namespace: str) -> bool:
        """True if a quota can limit the bytes of a namespace. One of a credential always can, since it can write anywhere."""
        prefix = namespace_owner("")
        return any(
            not owner.startswith(prefix) or covers(owner.removeprefix(prefix), namespace)
            for owner, allowance in self.allowances.items()
            if allowance.quota.bytes is not None
        )


def share_of(rate: float, demand: float, elsewhere: list[float]) -> float:
    """Return the share (0 to 1) of a rate for a process, by its demand and the demands of the others.

    If the total demand exceeds the rate, shares are proportional to demand. Otherwise each process gets its demand and an equal
    part of the rest.
    """
    if not elsewhere or rate <= 0:
        return 1.0
    total = demand + sum(elsewhere)
    if total > rate:
        return max(_LEAST_SHARE, demand / total)
    return max(_LEAST_SHARE, (demand + (rate - total) / (1 + len(elsewhere))) / rate)


def _unrestricted(scheme: str, access_id: str, source: RequestSource) -> Authorization:
    """Return the authorization of a caller that is limited by quotas only."""
    return Authorization(EVERYTHING, CallerIdentity(scheme, access_id, "", ""), source, 0)


_SHARING_S = 0.5
_LIVE_MS = 3_000
_DEMAND_LIFETIME_MS = 60_000
_COUNTING_S = 10.0


class QuotaSync:
    """The synchronisation of `Quotas` with the database, called by the background thread."""

    def __init__(self, store: Store, engine: Engine, quotas: Quotas) -> None:
        self._store = store
        self._engine = engine
        self._quotas = quotas
        self._seen: list[accounts.StoredQuota] = []
        self._process = secrets.token_hex(8)
        self._shared_at = self._counted_at = -math.inf

    def reload(self) -> None:
        """Load the stored quotas if they have changed."""
        with self._store.read() as session:
            stored_quotas = accounts.all_quotas(session)
        if stored_quotas != self._seen:
            self._seen = stored_quotas
            self._quotas.replace({owner: Quota.of(document) for owner, document, _ in stored_quotas})

    def run(self) -> None:
        """Save the demand of this process, take its share of each rate, and count stored bytes every ten seconds."""
        if not self._quotas.is_on:
            return
        now = time.monotonic()
        if now - self._counted_at >= _COUNTING_S:
            self.count()
        if self._store.database.shared and now - self._shared_at >= _SHARING_S:
            period_s, self._shared_at = min(now - self._shared_at, 10.0), now
            self._share(period_s)

    def _share(self, period_s: float) -> None:
        demands = self._quotas.demand(period_s)
        now_ms = time.time_ns() // 1_000_000
        with self._store.write() as session:
            for owner, demand in demands.items():
                accounts.save_demand(session, owner, self._process, orjson.dumps(demand).decode(), now_ms)
            accounts.forget_demands(session, now_ms - _DEMAND_LIFETIME_MS)
        other_demands: dict[str, list[Mapping[str, float]]] = {}
        with self._store.read() as session:
            for owner, process, document in accounts.demands(session, now_ms - _LIVE_MS):
                if process != self._process:
                    other_demands.setdefault(owner, []).append(orjson.loads(document))
        self._quotas.share(demands, other_demands)

    def count(self) -> None:
        """Count the bytes of namespaces with a quota.

        Counts of large tables are cached (engine/tables/table_definitions.py).
        """
        self._counted_at = time.monotonic()
        if not self._quotas.limits_bytes:
            return
        with self._store.read() as session:
            tables = self._store.catalog.all(session)
            sizes: Counter[str] = Counter()
            filled_from: dict[int, int] = {}
            for hook in self._store.catalog.hooks:
                sizes.update(hook.bytes_by_namespace(session))
                filled_from.update(hook.copy_sources(session))
        by_namespace = {
            namespace: size for namespace, size in sizes.items() if self._quotas.limits_bytes_of(namespace)
        }
        sizes_by_id: dict[int, int] = {}
        for table in tables:
            if self._quotas.limits_bytes_of(table.namespace) and not is_reserved_namespace(table.namespace):
                size = self._size_of(table, sizes_by_id)
                if table.id in filled_from:  # the copy will be about as large as its source
                    sources = [source for source in tables if source.id == filled_from[table.id]]
                    size = max(size, *(self._size_of(source, sizes_by_id) for source in sources), 0)
                by_namespace[table.namespace] = by_namespace.get(table.namespace, 0) + size
        self._quotas.keep_sizes(by_namespace)

    def _size_of(self, table: Table, sizes_by_id: dict[int, int]) -> int:
        if table.id not in sizes_by_id:
            [statistics] = self._engine.run([table_commands.CountRows(table)])
            sizes_by_id[table.id] = 0 if isinstance(statistics, GatewayError) else statistics.size_bytes
        return sizes_by_id[table.id]
