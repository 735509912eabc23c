"""Quotas in force: the limits on what a credential or a namespace takes, for all dialects and all entries.

`Quotas.enter` counts a request and gives its authorization a Usage. The gate (security/gate.py) asks it before commands run
(`Usage.refusal`) and afterwards (`Usage.charge`). Units are the gateway's own, whatever the dialect: a read unit is 4 KiB begun,
a write unit 1 KiB begun of each row. The cost of a command is known when it is done, so it is admitted while anything is left,
and the rest is a debt. So rates hold over time. Without quotas `is_on` is False, and nothing is called here.

Bytes and tables are those of a scope: of a namespace's quota, the namespaces that it names; of a credential's quota, all that the
caller's own tables may live in, so a region or an instance that a caller makes up has no allowance of its own. Bytes are counted
every ten seconds, backups included, and followed in between. Tables are counted in the transaction that makes one.

Rates are shared by all server processes of one database. Each takes a share by its demand (`share_of`), which it writes to a
small table twice a second while a quota is in use (QuotaKeeper).
"""

from __future__ import annotations

import dataclasses
import math
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, NamedTuple

import orjson

from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.http import Request
from tablegate.gateway.model.authorization.authorizations import Authorization, Identity, Source
from tablegate.gateway.model.authorization.grants import EVERYTHING
from tablegate.gateway.model.authorization.quotas import (
    BYTES,
    READ_UNIT_BYTES,
    READ_UNITS,
    REQUESTS,
    WRITE_UNIT_BYTES,
    WRITE_UNITS,
    Allowance,
    Quota,
    TableBound,
    account_of,
    covers,
    credential_owner,
    namespace_owner,
)
from tablegate.gateway.model.commands import (
    account_commands,
    backup_commands,
    job_commands,
    replica_commands,
    row_commands,
    snapshot_commands,
    stream_commands,
    table_commands,
    transaction_commands,
    vector_commands,
)
from tablegate.gateway.model.commands.commands import AnyCommand
from tablegate.gateway.model.commands.writes import Edit, Replace
from tablegate.gateway.model.errors import GatewayError, QuotaExceeded
from tablegate.gateway.model.tables.changes import ChangePage
from tablegate.gateway.model.tables.jobs import Job
from tablegate.gateway.model.tables.namespaces import is_reserved
from tablegate.gateway.model.tables.pages import Page
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.observability import metrics
from tablegate.gateway.store.accounts import quotas as rows
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.tables import backups, copies

_SHARING_S = 0.5
_LIVE_MS = 3_000
_FORGOTTEN_MS = 60_000
_COUNTING_S = 10.0
# Of a rate, so that a process which was not asked lately can begin.
_LEAST_SHARE = 0.02


class Cost(Enum):
    """The limits that a command is held to, besides the rate of requests."""

    NOTHING = "nothing"
    READS = "reads"  # read units
    WRITES = "writes"  # write units and bytes
    STORES = "stores"  # bytes, written in the background
    MAKES_TABLES = "makes tables"
    MAKES_AND_STORES = "makes tables and stores"


COSTS: Mapping[type, Cost] = {
    **dict.fromkeys(
        (
            row_commands.Get,
            row_commands.ReadAll,
            row_commands.Read,
            vector_commands.SearchVectors,
            stream_commands.ReadChanges,
        ),
        Cost.READS,
    ),
    **dict.fromkeys((row_commands.WriteGroup, row_commands.Load, transaction_commands.Stage), Cost.WRITES),
    backup_commands.CreateBackup: Cost.STORES,
    **dict.fromkeys((table_commands.CreateTable, replica_commands.AddReplicas), Cost.MAKES_TABLES),
    **dict.fromkeys(
        (backup_commands.RestoreTable, job_commands.StartJob, job_commands.AdvanceJob), Cost.MAKES_AND_STORES
    ),
    **dict.fromkeys(
        (
            table_commands.FindTable,
            table_commands.ListTables,
            table_commands.AlterTable,
            table_commands.DropTable,
            backup_commands.KeepHistory,
            backup_commands.ListBackups,
            backup_commands.DeleteBackup,
            job_commands.ListJobs,
            job_commands.CancelJob,
            table_commands.CountRows,
            account_commands.GetProperties,
            account_commands.PutProperties,
            stream_commands.ListStreams,
            stream_commands.FindStream,
            stream_commands.ListShards,
            stream_commands.FindPosition,
            stream_commands.ListFollowers,
            stream_commands.Follow,
            stream_commands.Unfollow,
            replica_commands.RemoveReplicas,
            transaction_commands.BeginTransaction,
            transaction_commands.FindTransaction,
            transaction_commands.CommitTransaction,
            transaction_commands.AbortTransaction,
            # Of administrators, who have no quotas.
            snapshot_commands.ResetTables,
            snapshot_commands.CopyTables,
            snapshot_commands.DescribeTables,
            snapshot_commands.ImportDefinition,
            snapshot_commands.ImportRows,
            snapshot_commands.ListNamespaces,
            stream_commands.Reshard,
            job_commands.ListUnfinishedJobs,
        ),
        Cost.NOTHING,
    ),
}
"""The cost of each type of command. A test checks that none is missing."""
_OF_TABLES = frozenset({Cost.MAKES_TABLES, Cost.MAKES_AND_STORES})
_RATE_OF = {Cost.READS: READ_UNITS, Cost.WRITES: WRITE_UNITS}


class Held(NamedTuple):
    """An allowance that a request draws on, and the scope of its bytes and tables."""

    allowance: Allowance
    scope: str


class Usage:
    """What one request takes of its quotas. `exceeded`: the quota because of which something of the request was refused.

    A request that was admitted to a rate once is not refused by it later: what it has read so far would be lost.
    """

    __slots__ = ("_admitted", "_held", "_quotas", "exceeded")

    def __init__(self, quotas: Quotas, held: list[Held]) -> None:
        self._quotas = quotas
        self._held = held
        self._admitted: set[Cost] = set()
        self.exceeded: QuotaExceeded | None = None

    def begin(self) -> None:
        """Count the request. Raises QuotaExceeded."""
        now = self._quotas.now()
        try:
            for held in self._held:
                held.allowance.check(REQUESTS, now)
        except QuotaExceeded as error:
            self._note(error)
            raise
        for held in self._held:
            held.allowance.take(REQUESTS, 1.0)

    def refusal(self, commands: list[AnyCommand]) -> QuotaExceeded | None:
        """Return the reason why commands are refused, or None. Commands that make tables are replaced in the list by equal ones
        that carry the bounds to check."""
        try:
            for at, command in enumerate(commands):
                cost = COSTS.get(type(command), Cost.NOTHING)
                if cost is not Cost.NOTHING:
                    self._check(command, cost)
                    if cost in _OF_TABLES:
                        commands[at] = self._bounded(command)
        except QuotaExceeded as error:
            self._note(error)
            return error
        return None

    def charge(self, commands: list[AnyCommand], outcomes: list[Any]) -> None:
        """Take what commands cost, by their outcomes."""
        for command, outcome in zip(commands, outcomes, strict=True):
            if isinstance(outcome, GatewayError):
                if isinstance(outcome, QuotaExceeded):  # of tables: the engine has found out
                    self._note(outcome)
                continue
            read, written, added = _taken(command, outcome)
            for held in self._held:
                if read:
                    held.allowance.take(READ_UNITS, read)
                if written:
                    held.allowance.take(WRITE_UNITS, written)
            if added:
                self._quotas.add_stored({held.scope for held in self._held}, added)

    def _note(self, error: QuotaExceeded) -> None:
        self.exceeded = error
        metrics.refused_by_quota(error.owner, error.kind)

    def _check(self, command: AnyCommand, cost: Cost) -> None:
        """Raises QuotaExceeded if a command may not run."""
        rate = None if cost in self._admitted else _RATE_OF.get(cost)
        if rate is not None:
            now = self._quotas.now()
            for held in self._held:
                held.allowance.check(rate, now)
            self._admitted.add(cost)
        added = _added_at_least(command)
        for allowance, scope in self._held:
            most = allowance.quota.bytes
            if most is not None and added and self._quotas.stored(scope) + added > most:
                raise allowance.exceeded(BYTES)

    def _bounded(self, command: Any) -> Any:
        bounds = tuple(
            TableBound(allowance.owner, scope, allowance.quota.tables)
            for allowance, scope in self._held
            if allowance.quota.tables is not None
        )
        if not bounds:
            return command
        match command:
            case table_commands.CreateTable() | job_commands.StartJob(makes_table=True):
                return dataclasses.replace(command, bounds=bounds)
            case backup_commands.RestoreTable(made=made):
                return dataclasses.replace(command, made=dataclasses.replace(made, bounds=bounds))
            case job_commands.AdvanceJob(makes=table_commands.CreateTable() as made):
                return dataclasses.replace(command, makes=dataclasses.replace(made, bounds=bounds))
            case replica_commands.AddReplicas(replicas=replicas):
                bounded = tuple(
                    dataclasses.replace(each, made=dataclasses.replace(each.made, bounds=bounds))
                    for each in replicas
                )
                return dataclasses.replace(command, replicas=bounded)
        return command


class Quotas:
    """The quotas in force. Used by event loops and threads of the server; `replace` and `share` may be called from any other."""

    def __init__(self, now: Callable[[], float] = time.monotonic, processes: int = 1) -> None:
        """`processes`: the number of those that share a rate until more is known."""
        self.is_on = False
        self.allowances: Mapping[str, Allowance] = {}
        self.now = now
        self._processes = processes
        self._sizes: Mapping[str, int] = {}
        self._stored: dict[str, int] = {}

    def replace(self, quotas: Mapping[str, Quota]) -> None:
        """Put these quotas in force. What is left of an unchanged one stays."""
        now = self.now()
        kept = self.allowances
        self.allowances = {
            owner: kept[owner]
            if owner in kept and kept[owner].quota == quota
            else Allowance(owner, quota, 1 / self._processes, now)
            for owner, quota in quotas.items()
        }
        self.is_on = bool(self.allowances)

    def enter(
        self, request: Request, scheme: str, access_id: str, namespace: str, scope: str | None = None
    ) -> None:
        """Count a request whose caller is authenticated. The gate then checks its commands against the quotas of the caller and
        of the namespace. `scope`: the namespaces of the caller's own tables. None: the account of the namespace. Raises
        QuotaExceeded."""
        usage = self._usage(scheme, access_id, namespace, scope)
        if usage is None:
            return
        if request.authorization is None:
            source = Source(request.client, request.secure)
            request.authorization = _unrestricted(scheme, access_id, source)
        request.authorization.usage = usage
        usage.begin()

    def of_background_work(self, scheme: str, access_id: str, namespace: str) -> Authorization | None:
        """The authorization for work on behalf of a caller whose request was admitted before. None: nothing limits it."""
        usage = self._usage(scheme, access_id, namespace, None) if self.is_on else None
        if usage is None:
            return None
        authorization = _unrestricted(scheme, access_id, Source("", False))
        authorization.usage = usage
        return authorization

    def _usage(self, scheme: str, access_id: str, namespace: str, scope: str | None) -> Usage | None:
        account = account_of(namespace)
        owners = {
            credential_owner(scheme, access_id): account if scope is None else scope,
            namespace_owner(namespace): namespace,
            namespace_owner(account): account,
        }
        held = [
            Held(found, of)
            for owner, of in owners.items()
            if (found := self.allowances.get(owner)) is not None
        ]
        return Usage(self, held) if held else None

    # Bytes that are stored

    def stored(self, scope: str) -> int:
        """The bytes of a scope: those that were counted lately, and those that were added since."""
        known = self._stored.get(scope)
        if known is None:
            sizes = self._sizes.items()
            known = self._stored[scope] = sum(size for namespace, size in sizes if covers(scope, namespace))
        return known

    def add_stored(self, scopes: Iterable[str], size_bytes: int) -> None:
        """Count bytes that were added, or taken away."""
        for scope in scopes:
            self._stored[scope] = self.stored(scope) + size_bytes

    def keep_sizes(self, sizes: Mapping[str, int]) -> None:
        """Take the bytes of namespaces as they were counted."""
        self._sizes, self._stored = sizes, {}

    # Shares of processes, and sizes

    def demand(self, period_s: float) -> dict[str, dict[str, float]]:
        """Return the demand per second since the last call: owner -> name of the rate -> demand. Owners without any demand are
        left out. The call begins a new period."""
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

    @property
    def limits_bytes(self) -> bool:
        """True if a quota limits bytes."""
        return any(allowance.quota.bytes is not None for allowance in self.allowances.values())

    def limits_bytes_of(self, namespace: str) -> bool:
        """True if a quota may limit the bytes of a namespace. A credential's may: it is not known here where it writes."""
        prefix = namespace_owner("")
        return any(
            not owner.startswith(prefix) or covers(owner.removeprefix(prefix), namespace)
            for owner, allowance in self.allowances.items()
            if allowance.quota.bytes is not None
        )


def share_of(rate: float, asked: float, elsewhere: list[float]) -> float:
    """Which part of a rate a process takes that is asked for so much while others are asked for that. All together take all of
    it: by what they are asked for where that is more than there is, else what they want and an equal part of the rest."""
    if not elsewhere or rate <= 0:
        return 1.0
    total = asked + sum(elsewhere)
    if total > rate:
        return max(_LEAST_SHARE, asked / total)
    return max(_LEAST_SHARE, (asked + (rate - total) / (1 + len(elsewhere))) / rate)


def _unrestricted(scheme: str, access_id: str, source: Source) -> Authorization:
    """The authorization of a caller that only quotas limit."""
    return Authorization(EVERYTHING, Identity(scheme, access_id, "", ""), source, 0)


def _added_at_least(command: AnyCommand) -> int:
    """The bytes that a command is known to add before it runs; 1 if it adds some; 0 if it adds none."""
    match command:
        case row_commands.WriteGroup():
            return int(_puts_anything((command,)))
        case transaction_commands.Stage():
            return int(_puts_anything(command.groups))
        case row_commands.Load():
            return 1
        case backup_commands.RestoreTable() | backup_commands.CreateBackup():
            return max(1, command.size_bytes)
        case job_commands.StartJob():
            return int(command.stores_rows)
        case job_commands.AdvanceJob():
            return _put_by(command)
    return 0


def _puts_anything(groups: Iterable[row_commands.WriteGroup]) -> bool:
    """False if groups only delete and check: that is always admitted."""
    return any(isinstance(write.change, (Replace, Edit)) for group in groups for write in group.writes)


def _put_by(command: job_commands.AdvanceJob) -> int:
    """The bytes of the rows that a step of a job puts into tables of its caller."""
    return sum(
        write.change.contents.size_bytes
        for group in command.groups
        for write in group.writes
        if isinstance(write.change, Replace) and not is_reserved(write.table.namespace)
    )


def _taken(command: AnyCommand, outcome: Any) -> tuple[float, float, int]:
    """(read units, write units, bytes added) of a command that was done."""
    match command, outcome:
        case row_commands.Get(), _:
            return _units(0 if outcome is None else outcome.size_bytes, READ_UNIT_BYTES), 0.0, 0
        case row_commands.ReadAll(), list():
            return _read([0 if row is None else row.size_bytes for row in outcome]), 0.0, 0
        case row_commands.Read(), Page():
            return _units(outcome.scanned_bytes, READ_UNIT_BYTES), 0.0, 0
        case vector_commands.SearchVectors(), list():
            return max(1.0, _read([nearest.row.size_bytes for nearest in outcome])), 0.0, 0
        case stream_commands.ReadChanges(), ChangePage():
            images = [image for change in outcome.changes for image in (change.old, change.new)]
            # Billed sizes are not kept with changes.
            read_bytes = sum(len(image.body) for image in images if image is not None)
            return _units(read_bytes, READ_UNIT_BYTES), 0.0, 0
        case row_commands.WriteGroup(), list():
            return _written(outcome)
        case transaction_commands.Stage(), list():
            parts = [_written(answer) for answer in outcome if isinstance(answer, list)]
            return 0.0, sum(part[1] for part in parts), sum(part[2] for part in parts)
        case row_commands.Load(), _:
            sizes = [contents.size_bytes for _, contents in command.rows]
            return 0.0, sum(_units(size, WRITE_UNIT_BYTES) for size in sizes), sum(sizes)
        case ((backup_commands.RestoreTable() | backup_commands.CreateBackup()), _):
            return 0.0, 0.0, command.size_bytes
        case job_commands.AdvanceJob(), Job():
            return 0.0, 0.0, _put_by(command)
    return 0.0, 0.0, 0


def _read(sizes: Iterable[int]) -> float:
    return sum(_units(size, READ_UNIT_BYTES) for size in sizes)


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
        """Load the stored quotas if they have changed."""
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
            self.count()
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

    def count(self) -> None:
        """Count the bytes of namespaces that a quota limits. Counts of large tables may be a little old
        (engine/tables/defining.py)."""
        self._counted_at = time.monotonic()
        if not self._quotas.limits_bytes:
            return
        with self._store.read() as session:
            tables = self._store.catalog.all(session)
            sizes = backups.bytes_by_namespace(session)
            filled_from = copies.sources(session)
        by_namespace = {
            namespace: size for namespace, size in sizes.items() if self._quotas.limits_bytes_of(namespace)
        }
        counted: dict[int, int] = {}
        for table in tables:
            if self._quotas.limits_bytes_of(table.namespace) and not is_reserved(table.namespace):
                size = self._size_of(table, counted)
                if table.id in filled_from:  # it will be about as large as what it is made of
                    sources = [each for each in tables if each.id == filled_from[table.id]]
                    size = max(size, *(self._size_of(each, counted) for each in sources), 0)
                by_namespace[table.namespace] = by_namespace.get(table.namespace, 0) + size
        self._quotas.keep_sizes(by_namespace)

    def _size_of(self, table: Table, counted: dict[int, int]) -> int:
        if table.id not in counted:
            [statistics] = self._engine.run([table_commands.CountRows(table)])
            counted[table.id] = 0 if isinstance(statistics, GatewayError) else statistics.size_bytes
        return counted[table.id]
