"""The one entry point for adapters: commands in, outcomes out.

It sends each command to the part that carries it out: transactions.py for reads and writes, single_commands.py for all others.
Background work and jobs are called here too, by the threads of gateway/background.py.
"""

from __future__ import annotations

import contextlib
import logging
import random
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple, cast
from uuid import uuid4

from tablegate.gateway.engine.background import job_runner
from tablegate.gateway.engine.background.background import Background, BackgroundOptions
from tablegate.gateway.engine.background.pacing import BatchDone
from tablegate.gateway.engine.rows import reading, reading_replicas
from tablegate.gateway.engine.rows.reading import Reading
from tablegate.gateway.engine.single_commands import SingleCommands
from tablegate.gateway.engine.streams import follower_reads, following
from tablegate.gateway.engine.streams.following import Deliver
from tablegate.gateway.engine.tables.table_definitions import TableDefiner
from tablegate.gateway.engine.transactions import Transactions
from tablegate.gateway.engine.vectors import vector_support
from tablegate.gateway.model import errors
from tablegate.gateway.model.commands import row_commands, vector_commands
from tablegate.gateway.model.commands.commands import AnyCommand, SingleCommand
from tablegate.gateway.model.tables.indexes import IndexView
from tablegate.gateway.store.opening.replicas import Standbys
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.transactions import tokens

log = logging.getLogger(__name__)

_READS = {row_commands.Get, row_commands.Read, row_commands.ReadAll, vector_commands.SearchVectors}


class EngineOptions(NamedTuple):
    """`table_creation_delay_ms`: how long tables stay creating, updating, deleting. `sweep_period_s`: between looks for
    expired rows. `stream_shards`: how many shards a new stream has. `stream_roll_ms`: the age at which an open shard
    is closed and has a child (0: never). `failover_s`: how long a database that cannot be reached is waited for.
    `vector_memory_bytes`: how much memory vector searches may keep. `vector_approximate_from`: of how many vectors on they may be
    approximate (0: never). `replication_lag_ms`: how long a write stays in its own replica at least."""

    table_creation_delay_ms: int = 0
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
        replicas: Standbys | None = None,
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
        definer = TableDefiner(store, options.table_creation_delay_ms, options.stream_shards)
        self._transactions = Transactions(store, options.failover_s, now)
        self._single_commands = SingleCommands(store, self._transactions, definer, now)
        pauses = BackgroundOptions(options.sweep_period_s, options.stream_roll_ms, options.replication_lag_ms)
        self.background = Background(store, self._transactions, pauses, now)
        self._owner = uuid4().hex
        self.deliveries: dict[str, Deliver] = {}
        """Kind of followers -> the function that delivers to them (`deliver`)."""
        self._workers: dict[str, job_runner.JobWorker] = {}
        self._runner = job_runner.JobRunner(store, self._workers)
        self._filer = None
        if store.backup_files is not None:
            from tablegate.gateway.engine.backups import backup_file_worker

            self._filer = backup_file_worker.BackupFileWorker(store, store.backup_files)
            self._workers |= dict.fromkeys(backup_file_worker.KINDS, self._filer)

    def register_view(self, dialect: str, view: IndexView) -> None:
        """Say how a dialect reads the key columns of the indexes that it makes. To be called before the first command."""
        self._store.catalog.views[dialect] = view

    def register_worker(self, kind: str, worker: job_runner.JobWorker) -> None:
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
        writes: dict[int, row_commands.WriteGroup] = {}
        reads: dict[int, Reading] = {}
        for at, command in enumerate(commands):
            kind = type(command)
            if kind is row_commands.WriteGroup:
                writes[at] = cast(row_commands.WriteGroup, command)
            elif kind in _READS:
                reads[at] = cast(Reading, command)
            else:
                outcomes[at] = self._single_commands.run(cast(SingleCommand, command))
        if writes:
            for at, answer in zip(writes, self._transactions.write([*writes.values()], nowait), strict=True):
                outcomes[at] = answer
        if reads:
            for at, answer in zip(reads, self._read([*reads.values()], nowait, written), strict=True):
                outcomes[at] = answer
        return outcomes

    @property
    def written_up_to(self) -> int:
        """How far the database's log was after the last write, if there are replicas that readers wait for; else 0."""
        return self._store.database.written_up_to

    @property
    def is_distributed(self) -> bool:
        """Whether requests that write are better given to `run` node by node (`node_of`): each list is then a transaction at one
        node. All of one request belongs into one list."""
        return self._store.database.is_distributed

    def node_of(self, groups: Sequence[AnyCommand]) -> Hashable:
        """The node that has all that some groups of writes are about; None: there is no such node."""
        partitions = {
            write.key.position.partition
            for group in groups
            if isinstance(group, row_commands.WriteGroup)
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
        if len(outcomes) < len(commands):
            left = [at for at in range(len(commands)) if at not in outcomes]
            outcomes.update(zip(left, self._transactions.read([commands[at] for at in left]), strict=True))

    @property
    def searches_vectors(self) -> bool:
        """Whether what vector searches need is installed."""
        return vector_support.can_search()

    @property
    def approximates_vectors(self) -> bool:
        """Whether vector searches may be approximate here."""
        return self._store.vector_approximate_from > 0

    def background_batch(self) -> BatchDone | None:
        """Do one batch of background work, of a bounded time: fill an index, delete what expired or was dropped, tend streams.
        None: nothing waits to be done; look again after `idle_s`."""
        with self._noting_damage():
            return self.background.next_batch()

    @property
    def has_workers(self) -> bool:
        """Whether jobs are carried on here."""
        return bool(self._workers)

    def job_batch(self) -> BatchDone | None:
        """Carry one job on by a batch. None: there is none that could be; look again after `idle_s`."""
        with self._noting_damage():
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

    def deliver(self, kind: str, limit: int, after: int = 0) -> tuple[int, int]:
        """Deliver some changes to the next follower of a kind behind an id. (How many; its id, 0: there was none.) Raises
        DeliveryFailed."""
        with self._noting_damage():
            return following.deliver_next(
                self._store, kind, self.deliveries[kind], self._owner, self._now() // 1_000_000, limit, after
            )

    def lag_s(self, kind: str) -> float:
        """The age of the oldest change that has still to go to followers of a kind, in seconds; 0: they have all."""
        try:
            with self._store.read() as session:
                oldest_ms = follower_reads.oldest_of_kind(session, kind)
        except Exception:
            return 0.0
        return 0.0 if oldest_ms is None else max(0.0, (self._now() // 1_000_000 - oldest_ms) / 1000)

    def ping(self) -> None:
        """Read from the database. Raises what the database did if it does not answer, SchemaTooNew, OutOfSpace while it refuses
        writes, and DataCorrupted once damaged data was read."""
        self._store.check_schema()
        if self._store.database.refuses_writes:
            raise errors.OutOfSpace(self._store.database.refuses_writes)
        if self._store.damage.found:
            raise errors.DataCorrupted(self._store.damage.found)

    def check_schema(self) -> None:
        """Raise SchemaTooNew if a later release has migrated the database to a schema that this one cannot serve."""
        self._store.check_schema()

    @contextlib.contextmanager
    def _noting_damage(self) -> Iterator[None]:
        try:
            yield
        except errors.DataCorrupted as error:
            self._store.note_damage(error)
            raise

    def retry_writes(self) -> None:
        """Check the database's files, and try a write if it has refused some for want of room. Raises OutOfSpace if writes are
        still refused."""
        self._store.database.check_files()
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

    def _read(self, commands: list[reading.Reading], nowait: bool, written: int) -> list[Any]:
        if self.replicas is None or nowait or not reading_replicas.may_be_old(commands):
            return self._transactions.read(commands)
        answers: list[Any] = [
            *reading_replicas.read(self.replicas, commands, self._now() // 1_000_000, written)
        ]
        left = [at for at, answer in enumerate(answers) if isinstance(answer, errors.StaleTable)]
        if left:
            for at, answer in zip(left, self._transactions.read([commands[at] for at in left]), strict=True):
                answers[at] = answer
        return answers


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
    return [at for at, outcome in enumerate(outcomes) if type(outcome) is errors.Contended]


def longest_wait_s(outcomes: list[Any]) -> float:
    """How long what is Contended is tried again, in seconds since the first attempt."""
    return max((outcome.wait_s for outcome in outcomes if type(outcome) is errors.Contended), default=0.0)


def pauses_between_attempts() -> Iterator[float]:
    """Seconds to wait before each further attempt at something Contended; they grow, with jitter."""
    pause = 0.01
    while True:
        yield pause * random.uniform(0.5, 1.5)
        pause = min(pause * 2, 0.25)
