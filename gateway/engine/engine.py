"""The one entry point for adapters: commands in, outcomes out. Transaction boundaries, retries, the clock and background work."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple
from uuid import uuid4

from gateway.engine import (
    defining,
    duplicating,
    expiring,
    following,
    indexing,
    loading,
    local_transactions,
    pacing,
    reading,
    reading_replicas,
    replicating,
    restoring,
    retaining,
    streaming,
    working,
)
from gateway.engine.defining import Definer
from gateway.engine.following import Deliver
from gateway.engine.pacing import BatchDone
from gateway.engine.reading import Reading
from gateway.engine.writing import Batch
from gateway.model.commands import (
    AbortTransaction,
    AddReplicas,
    AdvanceJob,
    AnyCommand,
    BeginTransaction,
    Command,
    CommitTransaction,
    CopyTables,
    DescribeTables,
    Exchange,
    FindPosition,
    FindStream,
    FindTransaction,
    Follow,
    Get,
    ImportDefinition,
    ImportRows,
    ListNamespaces,
    ListShards,
    ListStreams,
    Load,
    Outcome,
    R,
    Read,
    ReadAll,
    ReadChanges,
    RemoveReplicas,
    ResetTables,
    Reshard,
    SearchVectors,
    Stage,
    Unfollow,
    WriteGroup,
)
from gateway.model.errors import (
    Busy,
    Contended,
    DatabaseFailed,
    GatewayError,
    OutOfSpace,
    StaleTable,
    Unknowable,
)
from gateway.model.fast_dataclasses import dataclass
from gateway.model.tables import IndexView
from gateway.model.writes import Write
from gateway.store import progress, purges, tokens
from gateway.store.databases import CommitLost, LockHeld, Retry, Unreachable
from gateway.store.replicas import Replicas
from gateway.store.store import Store

log = logging.getLogger(__name__)

# Attempts that follow each other at once; past them it is for the caller to wait, who knows whom that holds up.
_ATTEMPTS = 4
_FIRST_PAUSE_S = 0.002
_LONG_ATTEMPT_S = 1.0
# Between two looks at all streams, and at all tokens.
_TENDING_PERIOD_S = 60.0
# Rows that are caught up with together, by somebody who waits for it.
_BATCH_AT_ONCE = 1_000
# A search waits no longer for a graph.
_GRAPH_BATCH_S = 0.005
_READS = {Get, Read, ReadAll, SearchVectors}
_STREAM_READS = (FindPosition, FindStream, ListShards, ListStreams, ReadChanges)


class EngineOptions(NamedTuple):
    """`control_plane_delay_ms`: how long tables stay creating, updating, deleting. `sweep_period_s`: between looks for
    expired rows. `stream_shards`: how many shards a new stream has. `stream_roll_ms`: the age at which an open shard
    is closed and has a child (0: never). `failover_s`: how long a database that cannot be reached is waited for.
    `vector_memory_bytes`: how much memory vector searches may keep. `vector_approximate_from`: of how many vectors on they may be
    approximate (0: never). `replication_lag_ms`: how long a write stays in its own replica at least."""

    control_plane_delay_ms: int = 0
    sweep_period_s: float = 60.0
    stream_shards: int = 1
    stream_roll_ms: int = 0
    failover_s: float = 5.0
    vector_memory_bytes: int = 512 << 20
    vector_approximate_from: int = 0
    replication_lag_ms: int = 0


class Engine:
    """Runs commands against one store. Safe to call from several threads. `now` gives nanoseconds since 1970."""

    def __init__(
        self,
        store: Store,
        options: EngineOptions = EngineOptions(),
        now: Callable[[], int] = time.time_ns,
        replicas: Replicas | None = None,
    ) -> None:
        self._store = store
        self.replicas = replicas
        """Who answers reads that may be old; None: the primary."""
        self.cached_table = store.catalog.cache.get
        """A table's descriptor without any I/O, by namespace and name, or None: then ask with FindTable."""
        self.cached_azure_table = store.catalog.cache.get_azure
        """The same by namespace and Azure name, in whatever case."""
        store.vector_memory_bytes = options.vector_memory_bytes
        store.vector_approximate_from = options.vector_approximate_from
        self._options = options
        self._now = now
        self._definer = Definer(store, options.control_plane_delay_ms, options.stream_shards)
        self._next_sweep = self._next_tending = self._next_forgetting = self._next_history = 0.0
        self._tended_up_to = self._brought_up_to = 0
        self._owner = uuid4().hex
        self.deliveries: dict[str, Deliver] = {}
        """Kind of followers -> who delivers to them (`deliver`)."""
        works: dict[str, pacing.Batch] = {
            progress.INDEX_BACKFILL: lambda limit: indexing.backfill(store, limit),
            progress.EXPIRY_BACKFILL: lambda limit: expiring.backfill(store, limit),
            progress.PURGE: self._purge,
            progress.COPY: lambda limit: restoring.advance(store, limit),
            "replication": self._replicate,
            "history_trim": self._tend_histories,
            "expiry_sweep": self._sweep,
            "stream_trim": self._tend_streams,
            "dropped_names": lambda limit: defining.remove_gone(store, self._now_ms(), limit),
            "tokens": self._forget,
        }
        self._workers: dict[str, working.Worker] = {}
        self._runner = working.Runner(store, self._workers)
        self._filer = None
        if store.backup_files is not None:
            from gateway.engine import filing  # a quick start needs no compression

            self._filer = filing.Filer(store, store.backup_files)
            self._workers |= dict.fromkeys(filing.KINDS, self._filer)
        self._round_robin = pacing.RoundRobin(works, progress.WORKS, self._count_left)

    def register_view(self, dialect: str, view: IndexView) -> None:
        """Say how a dialect reads the key columns of the indexes that it makes. To be called before the first command."""
        self._store.catalog.views[dialect] = view

    def register_worker(self, kind: str, worker: working.Worker) -> None:
        """Say who carries jobs of a kind on."""
        self._workers[kind] = worker

    def run(self, commands: list[AnyCommand], nowait: bool = False, written: int = 0) -> list[Any]:
        """For each command its outcome, or the GatewayError it met. All writes of the list are one transaction, all its
        reads one snapshot, taken after the writes.

        A command that is answered Contended did nothing and may be run again after a pause; then `nowait`, so that it
        waits for locks as little as can be. Only a defect of ours raises anything. `written`: what `written_up_to` was after
        the last write of whoever reads now; a replica that has not come so far does not answer.
        """
        outcomes: list[Any] = [None] * len(commands)
        writes, reads = [], []
        for at, command in enumerate(commands):
            kind = type(command)
            if kind is WriteGroup:
                writes.append(at)
            elif kind in _READS:
                reads.append(at)
            else:
                outcomes[at] = self._define(command)
        if writes:
            for at, answer in zip(writes, self._write([commands[at] for at in writes], nowait), strict=True):  # type: ignore[misc]
                outcomes[at] = answer
        if reads:
            answers = self._read([commands[at] for at in reads], nowait, written)  # type: ignore[misc]
            for at, answer in zip(reads, answers, strict=True):
                outcomes[at] = answer
        return outcomes

    @property
    def written_up_to(self) -> int:
        """How far the database's log was after the last write, if there are replicas that readers wait for; else 0."""
        return self._store.database.written_up_to

    @property
    def has_nodes(self) -> bool:
        """Whether requests that write are better given to `run` node by node (`node_of`): each list is then a transaction at one
        node. All of one request belongs into one list."""
        return self._store.database.has_nodes

    def node_of(self, groups: Sequence[AnyCommand]) -> Hashable:
        """The node that has all that some groups of writes are about; None: there is no such node."""
        partitions = {
            write.key.position.partition
            for group in groups
            if isinstance(group, WriteGroup)
            for write in group.writes
        }
        nodes = {self._store.database.node_of(partition) for partition in partitions}
        return nodes.pop() if len(nodes) == 1 else None

    def run_in_slices(
        self, commands: list[Reading], outcomes: dict[int, Any], reader: int, written: int = 0
    ) -> Iterator[None]:
        """Run reads, all of one snapshot, and stop after each slice of a page, so that the caller may do something else in
        between, in the same thread. `outcomes` is filled as outcomes become known, each under the index of its command; at the
        end all are there. `reader` (from 1): calls that are under way at the same time have different ones."""
        now_ms = self._now() // 1_000_000
        try:
            if self.replicas is not None and reading_replicas.may_be_old(commands):
                yield from reading_replicas.read_in_slices(
                    self.replicas, commands, now_ms, outcomes, reader, written
                )
            else:
                yield from reading.read_in_slices(self._store, commands, now_ms, outcomes, reader)
        except Exception as error:
            log.info("pages will be read without a stop: %r", error)
        left = [at for at in range(len(commands)) if at not in outcomes]
        if left:
            outcomes.update(zip(left, self._read_current([commands[at] for at in left]), strict=True))

    @property
    def searches_vectors(self) -> bool:
        """Whether what vector searches need is installed."""
        return reading.can_search()

    @property
    def approximates_vectors(self) -> bool:
        """Whether vector searches may be approximate here."""
        return self._store.vector_approximate_from > 0

    def vector_graph_batch(self) -> BatchDone | None:
        """Add some vectors to what approximate searches of this process go by, for some milliseconds. None: it has all that the
        searches have read."""
        rows, until = 0, time.monotonic() + _GRAPH_BATCH_S
        images = self._store.vector_images
        while images is not None and (added := images.grow_a_graph()):
            rows += added
            if time.monotonic() >= until:
                break
        return BatchDone("vector_graphs", rows) if rows else None

    def background_batch(self) -> BatchDone | None:
        """Do one batch of background work, of a bounded time: fill an index, delete what expired or was dropped, tend streams.
        None: nothing waits to be done; look again after `idle_s`."""
        return self._round_robin.next_batch()

    @property
    def has_workers(self) -> bool:
        """Whether jobs are carried on here."""
        return bool(self._workers)

    def job_batch(self) -> BatchDone | None:
        """Carry one job on by a batch. None: there is none that could be; look again after `idle_s`."""
        batch = self._runner.next_batch()
        if batch is None and self._filer is not None and self._filer.begin_waiting():
            batch = self._runner.next_batch()
        return batch

    def renew_claims(self) -> None:
        """Hold on to the jobs that this server carries on; to be called every second or two, from another thread."""
        self._runner.renew()

    @property
    def idle_s(self) -> float:
        """Seconds between two looks for background work when there is none."""
        return min(0.25, max(0.01, self._options.sweep_period_s))

    @property
    def rows_left(self) -> Mapping[str, int]:
        """About how many rows background work has still to go over, by the work; of what is not named, none or an unknown
        number."""
        return self._round_robin.left

    def _count_left(self) -> dict[str, int]:
        left: dict[str, int] = {}
        with self._store.read() as session:
            for piece in progress.listed(session):
                left[piece.work] = left.get(piece.work, 0) + piece.left
        return left

    def _purge(self, limit: int) -> int | None:
        with self._store.read() as session:
            if not purges.waits(session):
                return None
        with self._store.write() as session:
            return purges.purge(session, limit)

    def _sweep(self, limit: int) -> int | None:
        if time.monotonic() < self._next_sweep:
            return None
        groups = expiring.sweep(self._store, self._now_ms(), limit)
        if not groups:
            self._next_sweep = time.monotonic() + self._options.sweep_period_s
            return None
        self._write(groups)
        return len(groups)

    def _tend_streams(self, limit: int) -> int | None:
        if time.monotonic() < self._next_tending:
            return None
        tending = streaming.Tending(self._now_ms(), self._options.stream_roll_ms, limit)
        gone, after = streaming.tend(self._store, tending, self._tended_up_to)
        self._tended_up_to = after or 0
        if after is None:
            self._next_tending = time.monotonic() + _TENDING_PERIOD_S
        return gone

    def _replicate(self, limit: int) -> int | None:
        """Bring the next replica that lacks something some of what others have. How much; None: they lack nothing."""
        until_ms = self._now_ms() - self._options.replication_lag_ms
        rounds = 0 if self._brought_up_to else 1
        while rounds < 2:
            found = replicating.next_brought(self._store, until_ms, limit, self._brought_up_to)
            if found is None:  # that was the last of them: once more from the first
                self._brought_up_to = 0
                rounds += 1
            elif isinstance(found, int):
                self._brought_up_to = found
            else:
                self._brought_up_to = found.follower.id
                if self.bring(found):
                    return max(1, found.length)
        return None

    def bring(self, brought: replicating.Brought) -> bool:
        """Bring a replica what another has. False: it could not be taken now."""
        answers = self._write(brought.groups) if brought.groups else []
        if any(isinstance(answer, GatewayError) for answer in answers):
            return False
        replicating.note(self._store, brought)
        return True

    def deliver(self, kind: str, limit: int, after: int = 0) -> tuple[int, int]:
        """Deliver some changes to the next follower of a kind behind an id. (How many; its id, 0: there was none.) Raises
        NotDelivered."""
        return following.deliver_next(
            self._store, kind, self.deliveries[kind], self._owner, self._now_ms(), limit, after
        )

    def lag_s(self, kind: str) -> float:
        """The age of the oldest change that has still to go to followers of a kind, in seconds; 0: they have all."""
        try:
            with self._store.read() as session:
                oldest_ms = following.oldest_of_kind(session, kind)
        except Exception:
            return 0.0
        return 0.0 if oldest_ms is None else max(0.0, (self._now_ms() - oldest_ms) / 1000)

    def _tend_histories(self, limit: int) -> int | None:
        if time.monotonic() < self._next_history:
            return None
        gone = retaining.tend(self._store, self._now_ms(), limit)
        gone += replicating.tend(self._store, self._now_ms(), limit)
        if not gone:
            self._next_history = time.monotonic() + _TENDING_PERIOD_S
            return None
        return gone

    def _forget(self, limit: int) -> int | None:
        """Forget some idempotency tokens and local transactions that are past their time. How many; None: not now."""
        if time.monotonic() < self._next_forgetting:
            return None
        ended = local_transactions.sweep(self._store, self._now_ms(), limit)
        with self._store.write() as session:
            gone = tokens.forget_expired(session, self._now_ms(), limit)
        if not ended and not gone:
            self._next_forgetting = time.monotonic() + _TENDING_PERIOD_S
        return gone + (ended or 0)

    def _now_ms(self) -> int:
        return self._now() // 1_000_000

    def catch_up(self) -> None:
        """Do now what has become due: after the clock has gone ahead nobody should wait for the next look at it."""
        self._next_sweep = self._next_tending = self._next_forgetting = self._next_history = 0.0
        self._tended_up_to = 0
        for work in (self._sweep, self._tend_streams, self._forget, self._tend_histories, self._replicate):
            while work(_BATCH_AT_ONCE) is not None:
                pass
        while defining.remove_gone(self._store, self._now_ms(), _BATCH_AT_ONCE):
            pass

    def ping(self) -> None:
        """Read from the database. Raises what the database did if it does not answer, and OutOfSpace while it refuses writes."""
        with self._store.read() as session:
            session.query("SELECT 1")
        if self._store.database.refuses_writes:
            raise OutOfSpace(self._store.database.refuses_writes)

    def retry_writes(self) -> None:
        """Try a write if the database has refused some for want of room. Raises OutOfSpace if there still is none."""
        if self._store.database.refuses_writes:
            tokens.probe(self._store.write)
            self._store.database.refuses_writes = ""

    def table_names(self) -> frozenset[str]:
        """The names of all tables, in any dialect and any namespace, for figures that name them."""
        with self._store.read() as session:
            return self._store.catalog.names(session)

    def close(self) -> None:
        """Give back the connections to the database and its replicas."""
        self._store.close()
        if self.replicas is not None:
            self.replicas.close()

    def _define(self, command: Any) -> Any:
        now_ms = self._now() // 1_000_000
        if isinstance(
            command, (BeginTransaction, Stage, FindTransaction, CommitTransaction, AbortTransaction)
        ):
            return self._transact(command)
        if isinstance(command, Load):
            return self._load(command)
        if isinstance(command, Reshard):
            return self._with_retries(lambda: streaming.reshard(self._store, command, now_ms))
        if isinstance(command, Follow | Unfollow | AddReplicas | RemoveReplicas):
            return self._with_retries(lambda: self._depend(command, now_ms))
        if isinstance(command, _STREAM_READS):
            return self._with_retries(lambda: streaming.read(self._store, command))
        if isinstance(command, ResetTables):
            return self._with_retries(lambda: duplicating.reset(self._store, self._definer, command, now_ms))
        if isinstance(command, ListNamespaces):
            return self._with_retries(lambda: duplicating.namespaces(self._store, command.prefix))
        if isinstance(command, DescribeTables):
            return self._with_retries(lambda: duplicating.described(self._store, command.namespace))
        if isinstance(command, ImportDefinition):
            return self._with_retries(
                lambda: duplicating.import_definition(self._store, self._definer, command, now_ms)
            )
        if isinstance(command, ImportRows):
            return self._with_retries(lambda: duplicating.import_rows(self._store, command))
        if isinstance(command, CopyTables):
            return self._with_retries(lambda: duplicating.copy(self._store, self._definer, command, now_ms))
        if isinstance(command, restoring.COMMANDS):
            return self._with_retries(
                lambda: restoring.run(self._store, self._definer, command, self._now() // 100)
            )
        if isinstance(command, working.COMMANDS):
            return self._with_retries(
                lambda: working.run(self._store, self._definer, command, self._now() // 100)
            )
        if isinstance(command, AdvanceJob):
            return self._with_retries(lambda: self._advance(command))
        return self._with_retries(lambda: self._definer.run(command, now_ms))

    def _depend(self, command: Follow | Unfollow | AddReplicas | RemoveReplicas, now_ms: int) -> Any:
        """The outcome of a command about followers and replicas."""
        match command:
            case Follow():
                return following.follow(self._store, self._definer, command, now_ms)
            case Unfollow():
                return following.unfollow(self._store, command, now_ms)
            case AddReplicas():
                return replicating.add(self._store, self._definer, command, now_ms)
            case RemoveReplicas():
                return replicating.remove(self._store, self._definer, command, now_ms)

    def _advance(self, command: AdvanceJob) -> Any:
        step = working.Step(self._store, self._definer, command, self._now() // 100)
        self._carry_out(step.run)
        return step.outcome

    def _transact(
        self, command: BeginTransaction | Stage | FindTransaction | CommitTransaction | AbortTransaction
    ) -> Any:
        """The outcome of a command of local transactions."""
        now_ms = self._now() // 1_000_000
        match command:
            case BeginTransaction():
                return self._with_retries(lambda: local_transactions.begin(self._store, command, now_ms))
            case Stage():
                return self._with_retries(
                    lambda: local_transactions.stage(self._store, command, self._now() // 100)
                )
            case FindTransaction(transaction):
                return self._with_retries(
                    lambda: local_transactions.held_by(self._store, transaction, now_ms)
                )
            case AbortTransaction():
                return self._with_retries(lambda: local_transactions.end(self._store, command, now_ms))
            case CommitTransaction(transaction):
                answer = self._with_retries(lambda: self._commit(transaction, now_ms))
        return answer if isinstance(answer, GatewayError) else None

    def _commit(self, transaction: str, now_ms: int) -> Any:
        """One attempt to commit a local transaction: its outcomes or its error. Raises Retry, TransactionMissing; each attempt
        reads anew what is staged, which may have grown."""
        [answer] = self._write_once([local_transactions.commit_group(self._store, transaction, now_ms)])
        if isinstance(answer, StaleTable):
            raise Retry("the table changed under a transaction that is being committed")
        return answer

    def _read(self, commands: list[reading.Reading], nowait: bool, written: int) -> list[Any]:
        if self.replicas is None or nowait or not reading_replicas.may_be_old(commands):
            return self._read_current(commands)
        answers: list[Any] = [
            *reading_replicas.read(self.replicas, commands, self._now() // 1_000_000, written)
        ]
        left = [at for at, answer in enumerate(answers) if isinstance(answer, StaleTable)]
        if left:
            for at, answer in zip(left, self._read_current([commands[at] for at in left]), strict=True):
                answers[at] = answer
        return answers

    def _read_current(self, commands: list[reading.Reading]) -> list[Any]:
        answer = self._with_retries(self._read_once, commands)
        if isinstance(answer, DatabaseFailed) and len(commands) > 1:
            half = len(commands) // 2
            return self._read_current(commands[:half]) + self._read_current(commands[half:])
        return [answer] * len(commands) if isinstance(answer, GatewayError) else answer

    def _read_once(self, commands: list[reading.Reading]) -> list[Any]:
        try:
            return reading.read(self._store, commands, self._now() // 1_000_000)
        except (GatewayError, Retry):
            raise
        except Exception as error:
            log.exception("a list of reads failed")
            raise DatabaseFailed(repr(error)) from error

    def _write(self, groups: list[WriteGroup], nowait: bool = False) -> list[Any]:
        answer = self._with_retries(self._write_once, groups, nowait)
        if isinstance(answer, DatabaseFailed) and len(groups) > 1:
            # Only the culprit may fail, so look for it by halves.
            half = len(groups) // 2
            return self._write(groups[:half], nowait) + self._write(groups[half:], nowait)
        return [answer] * len(groups) if isinstance(answer, GatewayError) else answer

    def _write_once(self, groups: list[WriteGroup], nowait: bool = False) -> list[Any]:
        batch = Batch(self._store, groups, self._now() // 100, nowait)
        self._carry_out(batch.run)
        return batch.answers

    def _load(self, command: Load) -> GatewayError | None:
        loaded = self._with_retries(lambda: self._load_once(command))
        if loaded is not False:
            return loaded if isinstance(loaded, GatewayError) else None
        [answer] = self._write([loading.puts_of(command)])
        return answer if isinstance(answer, GatewayError) else None

    def _load_once(self, command: Load) -> bool:
        is_loaded = True

        def load() -> None:
            nonlocal is_loaded
            is_loaded = loading.load(self._store, command, self._now() // 100)

        self._carry_out(load)
        return is_loaded

    def _carry_out(self, transaction: Callable[[], None]) -> None:
        """Run a write transaction to its end. Raises Retry, Unknowable, and other GatewayErrors."""
        try:
            transaction()
        except CommitLost as lost:
            # Never guess: ask what became of the transaction. Applied: the answers in hand are true. Not: once more.
            self._require_commit(lost)
        except (GatewayError, Retry):
            raise
        except Exception as error:
            # A value that the driver cannot take, or a defect of ours: the neighbours must not suffer from it.
            log.exception("a list of writes failed")
            raise DatabaseFailed(repr(error)) from error

    def _require_commit(self, lost: CommitLost) -> None:
        """Return if the transaction was committed after all. Raises Retry if not, Unknowable if nobody can say."""
        committed = self._ask(lost.transaction_id)
        if committed is None:
            raise Unknowable("the connection was lost at COMMIT") from lost
        if not committed:
            raise Retry("the connection was lost at COMMIT, which did not happen") from lost

    def _error_of_lost_commit(self, lost: CommitLost) -> GatewayError:
        try:
            self._require_commit(lost)
        except Retry as reason:
            return Contended(str(reason))
        except Unknowable as error:
            return error
        return Unknowable("the connection was lost at COMMIT, which did happen")

    def _ask(self, transaction_id: str | None) -> bool | None:
        until = time.monotonic() + self._options.failover_s
        pause = 0.05
        while True:
            committed = self._store.database.committed(transaction_id)
            if committed is not None or time.monotonic() >= until:
                return committed
            time.sleep(pause)
            pause = min(2 * pause, 0.5)

    def _with_retries(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Do something that may fail for a passing reason, up to _ATTEMPTS times with short pauses; what it gave, or the
        GatewayError it met. A lock that the database did not get in time is not waited for here: others wait behind this call."""
        pause = _FIRST_PAUSE_S
        began = time.monotonic()
        for attempt in range(_ATTEMPTS):
            try:
                return work(*arguments)
            except LockHeld as reason:
                return Contended(str(reason))
            except Unreachable as reason:
                return Contended(str(reason), self._options.failover_s)
            except Retry as reason:
                log.info("attempt %d will be repeated: %s", attempt + 1, reason)
                if time.monotonic() - began > _LONG_ATTEMPT_S:
                    break
                time.sleep(pause * random.uniform(0.5, 1.5))
                pause *= 2
            except CommitLost as lost:
                # Of the control plane: what it would have answered is lost, even if it happened.
                return self._error_of_lost_commit(lost)
            except GatewayError as error:
                if isinstance(error, (DatabaseFailed, Unknowable)):
                    log.error("the database failed: %r", error)
                return error
        return Contended("the database did not yield")


@dataclass(frozen=True, slots=True)
class Returned(Generic[R]):
    """What an exchange returned at its end."""

    value: R


Run = Callable[[list[AnyCommand]], list[Any]]
"""What carries out commands, or raises."""


def drive(engine: Engine, begin: Callable[[], Exchange[R]], run: Run | None = None) -> R:
    """Run an exchange to its end, alone: how Flask handles a request. The server drives many at once (server/tick.py). `run`:
    carries out its commands in place of `run_with_retries`."""
    for _ in range(8):
        exchange = begin()
        commands = next_commands(exchange, None)
        while not isinstance(commands, Returned):
            try:
                outcomes = run_with_retries(engine, commands) if run is None else run(commands)
            except Exception as error:
                commands = next_commands(exchange, error)
                continue
            if any(isinstance(outcome, StaleTable) for outcome in outcomes):
                exchange.close()
                break
            commands = next_commands(exchange, outcomes)
        else:
            return commands.value
    raise Busy("tables keep changing")


def run_with_retries(engine: Engine, commands: list[AnyCommand]) -> list[Any]:
    """The outcomes that `Engine.run` gives, once what was Contended has been run again, after pauses, as the tick does."""
    outcomes = engine.run(commands)
    began = time.monotonic()
    pauses = pauses_between_attempts()
    while (waiting := contended(outcomes)) and time.monotonic() < began + longest_wait_s(outcomes):
        time.sleep(next(pauses))
        again = engine.run([commands[at] for at in waiting], nowait=True)
        for at, outcome in zip(waiting, again, strict=True):
            outcomes[at] = outcome
    return outcomes


def contended(outcomes: list[Any]) -> list[int]:
    """The indexes of those outcomes that are Contended: their commands are to be run again."""
    return [at for at, outcome in enumerate(outcomes) if type(outcome) is Contended]


def longest_wait_s(outcomes: list[Any]) -> float:
    """How long what is Contended is tried again, in seconds since the first attempt."""
    return max((outcome.wait_s for outcome in outcomes if type(outcome) is Contended), default=0.0)


def pauses_between_attempts() -> Iterator[float]:
    """Seconds to wait before each further attempt at something Contended; they grow, with jitter."""
    pause = 0.01
    while True:
        yield pause * random.uniform(0.5, 1.5)
        pause = min(pause * 2, 0.25)


def next_commands(
    exchange: Exchange[R], outcomes: list[Any] | Exception | None
) -> list[AnyCommand] | Returned[R]:
    """The exchange's next list of commands, or what it returned. What the engine raised is raised in it, as in the server's
    tick."""
    try:
        if isinstance(outcomes, Exception):
            return exchange.throw(outcomes)
        return exchange.send(outcomes) if outcomes is not None else next(exchange)
    except StopIteration as end:
        return Returned(end.value)


# For use with `yield from`: commands with the types of their outcomes. What is not typed, the engine's list, is known here only.


def one(command: Command[R]) -> Exchange[R]:
    """The outcome of a single command; its GatewayError is raised."""
    [outcome] = yield [command]  # type: ignore[list-item]  # every Command is one of AnyCommand
    if isinstance(outcome, GatewayError):
        raise outcome
    return outcome


def each(commands: Sequence[Command[R]]) -> Exchange[list[R | GatewayError]]:
    """The outcome of every command, in order, or the GatewayError that it met. Without commands the engine is not asked."""
    if not commands:
        return []
    return (yield list(commands))  # type: ignore[arg-type]  # every Command is one of AnyCommand


def write_rows(*writes: Write) -> Exchange[list[Outcome]]:
    """The outcomes of writes that happen all or not at all, in order; the group's GatewayError is raised."""
    [outcomes] = yield [WriteGroup(writes)]
    if isinstance(outcomes, GatewayError):
        raise outcomes
    return outcomes
