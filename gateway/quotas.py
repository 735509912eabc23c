"""Quotas: how much a credential, or a namespace, may take. One decision for all dialects, between a handler and the engine.

`Quotas.limited` stands around an exchange whose caller is known: it refuses with QuotaExceeded before a command is sent, and
counts what commands took by their outcomes. Requests, units and bytes are the gateway's own, whatever dialect asks: a read unit
is 4 KiB begun, a write unit 1 KiB begun of each row. What a request costs is known when it is done, so it is let in while
anything is left, and the rest is a debt; so rates hold over time. Bytes and tables are those of the namespace that is written to.

Rates are shared by all server processes of one database: each takes a share by what it is asked for (`share_of`), which every
process tells the others in a small table, twice a second while a quota is in use (QuotaKeeper). Without quotas `is_on` is False,
and nobody calls anything here.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, fields
from typing import Any

import orjson

from gateway import metrics
from gateway.engine.engine import Engine, Returned, next_commands, one
from gateway.http import Request
from gateway.model.commands import (
    AnyCommand,
    CountRows,
    CreateTable,
    Exchange,
    Get,
    ListTables,
    Load,
    R,
    Read,
    ReadAll,
    Stage,
    WriteGroup,
)
from gateway.model.errors import GatewayError, QuotaExceeded
from gateway.model.fast_dataclasses import dataclass
from gateway.model.pages import Page
from gateway.model.writes import Edit, Replace
from gateway.store import quotas as rows
from gateway.store.store import Store

REQUESTS, READ_UNITS, WRITE_UNITS, BYTES, TABLES = "requests", "read_units", "write_units", "bytes", "tables"
RATES = (REQUESTS, READ_UNITS, WRITE_UNITS)
READ_UNIT_BYTES, WRITE_UNIT_BYTES = 4096, 1024
# What has not been used for so long is kept; more would let a rate be exceeded for longer.
BURST_S = 0.25
_SHARING_S = 0.5
_LIVE_MS = 3_000
_FORGOTTEN_MS = 60_000
_COUNTING_S = 10.0
# Of a rate, so that a process which was not asked lately can begin.
_LEAST_SHARE = 0.02


@dataclass(frozen=True, slots=True)
class Quota:
    """What its owner may take at most: of the rates a second, of the others altogether. None: any number."""

    requests: float | None = None
    read_units: float | None = None
    write_units: float | None = None
    bytes: int | None = None
    tables: int | None = None

    @classmethod
    def of(cls, document: str) -> Quota:
        """From its JSON. Members of a later release are not known here."""
        given = orjson.loads(document)
        return cls(**{item.name: given.get(item.name) for item in fields(cls)})

    def document(self) -> str:
        """As JSON, with what is limited."""
        return orjson.dumps(
            {name: value for name, value in asdict(self).items() if value is not None}
        ).decode()


def credential_owner(scheme: str, access_id: str) -> str:
    """The owner of a credential's quota, as it is stored."""
    return f"{scheme}/{access_id}"


def namespace_owner(namespace: str) -> str:
    """The owner of a namespace's quota, as it is stored."""
    return f"namespace/{namespace}"


class Bucket:
    """What is left of a rate, as of a moment; below zero it is a debt. `share`: of the rate, this process's."""

    __slots__ = ("_at", "asked", "left", "rate", "share")

    def __init__(self, rate: float, share: float, now: float) -> None:
        self.rate = rate
        self.share = share
        self.asked = 0.0
        self.left = self._most()
        self._at = now

    def _most(self) -> float:
        return max(1.0, self.rate * self.share * BURST_S)

    def may_take(self, now: float) -> bool:
        """Whether there is a whole one left."""
        self.left = min(self._most(), self.left + (now - self._at) * self.rate * self.share)
        self._at = now
        return self.left >= 1.0

    def take(self, amount: float) -> None:
        """Take it, whether or not there is so much."""
        self.left -= amount
        self.asked += amount


class Allowance:
    """A quota in force: its owner, its buckets."""

    def __init__(self, owner: str, quota: Quota, share: float, now: float) -> None:
        self.owner = owner
        self.quota = quota
        self.buckets = {
            name: Bucket(rate, share, now) for name in RATES if (rate := getattr(quota, name)) is not None
        }

    def check(self, kind: str, now: float) -> None:
        """Raises QuotaExceeded if a rate is used up."""
        bucket = self.buckets.get(kind)
        if bucket is not None and not bucket.may_take(now):
            bucket.asked += 1
            raise self.refusal(kind)

    def take(self, kind: str, amount: float) -> None:
        """Count what was taken of a rate."""
        bucket = self.buckets.get(kind)
        if bucket is not None:
            bucket.take(amount)

    def refusal(self, kind: str) -> QuotaExceeded:
        """What is said of a limit that is reached."""
        metrics.refused_by_quota(self.owner, kind)
        return QuotaExceeded(kind, getattr(self.quota, kind), self.owner)


@dataclass(slots=True)
class _Stored:
    """Bytes of a namespace, as counted at a moment, and what was added since."""

    size_bytes: int = 0


class Quotas:
    """The quotas in force. Asked by event loops and threads of the server; `replace` and `share` may be called from any other."""

    def __init__(self, now: Callable[[], float] = time.monotonic, processes: int = 1) -> None:
        """`processes`: how many of this server share a rate until more is known."""
        self.is_on = False
        self.allowances: Mapping[str, Allowance] = {}
        self.stored: dict[str, _Stored] = {}
        self._now = now
        self._processes = processes

    def replace(self, quotas: Mapping[str, Quota]) -> None:
        """Take these from now on. What is left of one that has not changed stays."""
        now = self._now()
        kept = self.allowances
        self.allowances = {
            owner: kept[owner]
            if owner in kept and kept[owner].quota == quota
            else Allowance(owner, quota, 1 / self._processes, now)
            for owner, quota in quotas.items()
        }
        self.is_on = bool(self.allowances)

    def limited(
        self, request: Request, scheme: str, access_id: str, namespace: str, exchange: Exchange[R]
    ) -> Exchange[R]:
        """The exchange of a request, as far as the quotas of its caller and of its namespace let it. Raises QuotaExceeded, and
        has the request answered somewhat later then."""
        owners = credential_owner(scheme, access_id), namespace_owner(namespace)
        held = [found for owner in owners if (found := self.allowances.get(owner)) is not None]
        if not held:
            return (yield from exchange)
        try:
            return (yield from self._limited(held, namespace, exchange))
        except QuotaExceeded:
            exchange.close()
            request.hold_back()
            raise

    def _limited(self, held: list[Allowance], namespace: str, exchange: Exchange[R]) -> Exchange[R]:
        now = self._now()
        for allowance in held:
            allowance.check(REQUESTS, now)
        for allowance in held:
            allowance.take(REQUESTS, 1.0)
        commands = next_commands(exchange, None)
        while not isinstance(commands, Returned):
            for command in commands:
                yield from self._admit(held, namespace, command)
            outcomes = yield commands
            for command, outcome in zip(commands, outcomes, strict=True):
                self._count(held, namespace, command, outcome)
            commands = next_commands(exchange, outcomes)
        return commands.value

    def _admit(self, held: list[Allowance], namespace: str, command: AnyCommand) -> Exchange[None]:
        """Raises QuotaExceeded if a command may not be sent."""
        now = self._now()
        match command:
            case Get() | ReadAll() | Read():
                for allowance in held:
                    allowance.check(READ_UNITS, now)
            case WriteGroup() | Load() | Stage():
                for allowance in held:
                    allowance.check(WRITE_UNITS, now)
                    self._check_bytes(allowance, namespace, command)
            case CreateTable():
                for allowance in held:
                    most = allowance.quota.tables
                    if most is not None:
                        found = yield from one(ListTables(namespace, limit=most))
                        if len(found) >= most:
                            raise allowance.refusal(TABLES)

    def _check_bytes(self, allowance: Allowance, namespace: str, command: WriteGroup | Load | Stage) -> None:
        """What only deletes is always let through."""
        most = allowance.quota.bytes
        stored = self.stored.get(namespace)
        if most is None or stored is None or stored.size_bytes < most:
            return
        groups = (
            command.groups
            if isinstance(command, Stage)
            else (command,)
            if isinstance(command, WriteGroup)
            else ()
        )
        if isinstance(command, Load) or any(
            isinstance(write.change, (Replace, Edit)) for group in groups for write in group.writes
        ):
            raise allowance.refusal(BYTES)

    def _count(self, held: list[Allowance], namespace: str, command: AnyCommand, outcome: Any) -> None:
        if isinstance(outcome, GatewayError):
            return
        read, written, added = _taken(command, outcome)
        for allowance in held:
            if read:
                allowance.take(READ_UNITS, read)
            if written:
                allowance.take(WRITE_UNITS, written)
        if added and namespace in self.stored:
            self.stored[namespace].size_bytes += added

    # Shares of processes, and sizes

    def demand(self, period_s: float) -> dict[str, dict[str, float]]:
        """What was asked for a second since this was last called, by owner and rate; of owners that somebody asked for."""
        found: dict[str, dict[str, float]] = {}
        for owner, allowance in self.allowances.items():
            asked = {}
            for name, bucket in allowance.buckets.items():
                asked[name], bucket.asked = bucket.asked / period_s, 0.0
            if any(asked.values()):
                found[owner] = asked
        return found

    def share(
        self, own: Mapping[str, Mapping[str, float]], others: Mapping[str, list[Mapping[str, float]]]
    ) -> None:
        """Take the share of each rate that follows from what this process and the others were asked for."""
        for owner, allowance in self.allowances.items():
            for name, bucket in allowance.buckets.items():
                asked = own.get(owner, {}).get(name, 0.0)
                elsewhere = [demand.get(name, 0.0) for demand in others.get(owner, ())]
                bucket.share = share_of(bucket.rate, asked, elsewhere)

    def namespaces_of_bytes(self, of: Iterable[str]) -> list[str]:
        """Those among these namespaces whose bytes some quota may limit."""
        limited = {owner for owner, allowance in self.allowances.items() if allowance.quota.bytes is not None}
        if any(not owner.startswith("namespace/") for owner in limited):
            return list(of)  # a credential may write to any
        return [namespace for namespace in of if namespace_owner(namespace) in limited]


def share_of(rate: float, asked: float, elsewhere: list[float]) -> float:
    """Which part of a rate a process takes that is asked for so much while others are asked for that. All together take all of
    it: by what they are asked for where that is more than there is, else what they want and an equal part of the rest."""
    if not elsewhere or rate <= 0:
        return 1.0
    total = asked + sum(elsewhere)
    if total > rate:
        return max(_LEAST_SHARE, asked / total)
    return max(_LEAST_SHARE, (asked + (rate - total) / (1 + len(elsewhere))) / rate)


def _taken(command: AnyCommand, outcome: Any) -> tuple[float, float, int]:
    """(read units, write units, bytes added) of a command that was done."""
    match command, outcome:
        case Get(), _:
            return _units(0 if outcome is None else outcome.size_bytes, READ_UNIT_BYTES), 0.0, 0
        case ReadAll(), list():
            sizes = [0 if row is None else row.size_bytes for row in outcome]
            return sum(_units(size, READ_UNIT_BYTES) for size in sizes), 0.0, 0
        case Read(), Page():
            return _units(outcome.scanned_bytes, READ_UNIT_BYTES), 0.0, 0
        case WriteGroup(), list():
            return _written(outcome)
        case Stage(), list():
            parts = [_written(answer) for answer in outcome if isinstance(answer, list)]
            return 0.0, sum(part[1] for part in parts), sum(part[2] for part in parts)
        case Load(), _:
            sizes = [contents.size_bytes for _, contents in command.rows]
            return 0.0, sum(_units(size, WRITE_UNIT_BYTES) for size in sizes), sum(sizes)
    return 0.0, 0.0, 0


def _written(outcomes: list[Any]) -> tuple[float, float, int]:
    units, added = 0.0, 0
    for old, new in outcomes:
        old_bytes = 0 if old is None else old.size_bytes
        new_bytes = 0 if new is None else new.size_bytes
        units += _units(max(old_bytes, new_bytes), WRITE_UNIT_BYTES)
        added += new_bytes - old_bytes
    return 0.0, units, added


def _units(size_bytes: int, unit_bytes: int) -> float:
    return float(max(1, math.ceil(size_bytes / unit_bytes)))


class QuotaKeeper:
    """Quotas as they are stored, for a server process: taken up when they change, shared with the other processes, and the sizes
    that they are compared with. Called by the thread of background work."""

    def __init__(self, store: Store, engine: Engine, quotas: Quotas) -> None:
        self._store = store
        self._engine = engine
        self._quotas = quotas
        self._seen: list[rows.StoredQuota] = []
        self._process = secrets.token_hex(8)
        self._shared_at = self._counted_at = -math.inf

    @property
    def period_s(self) -> float:
        """Seconds until `turn` has something to do."""
        return _SHARING_S if self._quotas.is_on else math.inf

    def look(self) -> None:
        """Take up what was stored. A document that cannot be read is left out, and told by whoever wrote it."""
        with self._store.read() as session:
            found = rows.all_of(session)
        if found != self._seen:
            self._seen = found
            self._quotas.replace({owner: Quota.of(document) for owner, document, _ in found})

    def turn(self) -> None:
        """Tell the other processes what this one was asked for, and take a share; now and then count what is stored."""
        if not self._quotas.is_on:
            return
        now = time.monotonic()
        if now - self._counted_at >= _COUNTING_S:
            self._counted_at = now
            self._count()
        if self._store.shared and now - self._shared_at >= _SHARING_S:
            period_s, self._shared_at = min(now - self._shared_at, 10.0), now
            self._share(period_s)

    def _share(self, period_s: float) -> None:
        own = self._quotas.demand(period_s)
        now_ms = time.time_ns() // 1_000_000
        with self._store.write() as session:
            for owner, asked in own.items():
                rows.save_demand(session, owner, self._process, orjson.dumps(asked).decode(), now_ms)
            rows.forget_demands(session, now_ms - _FORGOTTEN_MS)
        others: dict[str, list[Mapping[str, float]]] = {}
        with self._store.read() as session:
            for owner, process, document in rows.demands(session, now_ms - _LIVE_MS):
                if process != self._process:
                    others.setdefault(owner, []).append(orjson.loads(document))
        self._quotas.share(own, others)

    def _count(self) -> None:
        """Sizes of namespaces, of counts that are kept for a while where they take long (engine/defining.py)."""
        if all(allowance.quota.bytes is None for allowance in self._quotas.allowances.values()):
            return
        with self._store.read() as session:
            tables = self._store.catalog.all(session)
        by_namespace: dict[str, int] = {}
        wanted = set(self._quotas.namespaces_of_bytes({table.namespace for table in tables}))
        for table in tables:
            if table.namespace in wanted:
                [statistics] = self._engine.run([CountRows(table)])
                if not isinstance(statistics, GatewayError):
                    size = by_namespace.get(table.namespace, 0) + statistics.size_bytes
                    by_namespace[table.namespace] = size
        self._quotas.stored = {namespace: _Stored(size) for namespace, size in by_namespace.items()}
