"""The entry point for adapters: it runs commands and returns their outcomes.

Reads and writes go to transactions.py, all other commands to command_runner.py. Capabilities register their background
work with `Engine.background` (gateway/capabilities.py).
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from tablegate.gateway.engine import housekeeping
from tablegate.gateway.engine.command_runner import CommandRunner
from tablegate.gateway.engine.installation import Installation
from tablegate.gateway.engine.rows import reading, reading_replicas
from tablegate.gateway.engine.rows.writing import WriteHook
from tablegate.gateway.engine.scheduler import Scheduler
from tablegate.gateway.engine.streams import following, streaming
from tablegate.gateway.engine.tables import expiring, indexing, table_definitions
from tablegate.gateway.engine.tables.table_definitions import TableDefiner
from tablegate.gateway.engine.transactions import Transactions
from tablegate.gateway.model import errors
from tablegate.gateway.model.commands import row_commands, table_commands
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.tables.indexes import IndexView
from tablegate.gateway.store.replicas import Standbys
from tablegate.gateway.store.rows import idempotency_tokens
from tablegate.gateway.store.sql.databases import NodeState
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.tables.catalog import TableHook

log = logging.getLogger(__name__)


class EngineOptions(NamedTuple):
    """Options of the engine.

    - `table_creation_delay_ms`: time for which tables stay creating, updating and deleting
    - `sweep_period_s`: interval between checks for expired rows
    - `stream_shards`: number of shards of a new stream
    - `stream_roll_ms`: age at which an open shard is closed and gets a child (0 to disable)
    - `failover_s`: time to wait for a database that cannot be reached
    - `vector_memory_bytes`: maximum memory for vector searches
    - `vector_approximate_from`: number of vectors from which searches may be approximate (0 to disable)
    - `replication_lag_ms`: minimum delay before a write is sent to other replicas
    """

    table_creation_delay_ms: int = 0
    sweep_period_s: float = 60.0
    stream_shards: int = 1
    stream_roll_ms: int = 0
    failover_s: float = 5.0
    vector_memory_bytes: int = 512 << 20
    vector_approximate_from: int = 0
    replication_lag_ms: int = 0


class Engine:
    """Runs commands against one store. Safe to call from several threads.

    `now` returns nanoseconds since 1970. `install` registers the capabilities (gateway/capabilities.py).
    """

    def __init__(
        self,
        store: Store,
        options: EngineOptions = EngineOptions(),
        now: Callable[[], int] = time.time_ns,
        replicas: Standbys | None = None,
        install: Callable[[Engine], None] = lambda engine: None,
    ) -> None:
        self._store = store
        self._installation = Installation(lambda: install(self))
        self.install_capabilities = self._installation.complete
        """Installs the capabilities now. Otherwise the first use of one of them does it."""
        self.replicas = replicas
        """Standbys for reads that may be stale. None to read from the primary."""
        self.cached_table = store.catalog.cache.get
        """Returns a cached descriptor, or None if the command FindTable must find it. That command also gives the answer for a
        forbidden table."""
        self._now = now
        store.catalog.renew_hooks(self._installation.complete)
        definer = TableDefiner(store, options.table_creation_delay_ms, options.stream_shards)
        self._transactions = Transactions(store, options.failover_s, now, self._installation)
        self._command_runner = CommandRunner(store, self._transactions, definer, now, self._installation)
        self.background = Scheduler(
            store,
            self._transactions.write,
            self._transactions.with_retries,
            lambda: now() // 1_000_000,
            idle_s=min(0.25, max(0.01, options.sweep_period_s)),
            complete=self._installation.complete,
        )
        # Expired rows are deleted first (Scheduler.catch_up), because capabilities then replicate and index these changes.
        expiring.add_works(self.background, options.sweep_period_s)
        streaming.add_works(self.background, options.stream_roll_ms)
        housekeeping.add_works(self.background)
        table_definitions.add_works(self.background)
        indexing.add_works(self.background)
        self.run_count = 0
        """Number of lists of commands that were run. Background work notices clients by it."""

    def register(self, commands: Mapping[type[Command[Any]], Callable[..., Any]]) -> None:
        """Register the functions that run the commands of a capability.

        A command that only reads has a Reader (engine/rows/reading.py), any other one a Runner (engine/attempts.py).
        """
        for kind, function in commands.items():
            if kind.only_reads:
                self._transactions.readers[kind] = function
            else:
                self._command_runner.runners[kind] = function

    def add_write_hook(self, hook: type[WriteHook]) -> None:
        """Register what a capability does in the transaction of writes."""
        self._transactions.write_hooks.add(hook)

    def add_table_hook(self, hook: TableHook) -> None:
        """Register what a capability does in the transaction of changes of tables."""
        self._store.catalog.add_hook(hook)

    def register_view(self, dialect: str, view: IndexView) -> None:
        """Register a dialect's reader of index key columns. To be called before the first command."""
        self._store.catalog.views[dialect] = view

    def add_delivery(self, kind: str, deliver: following.Deliver) -> None:
        """Register the delivery of changes to the followers of a kind."""
        following.add_delivery(self.background, kind, deliver)

    def run(self, commands: list[Command[Any]], nowait: bool = False, log_position: int = 0) -> list[Any]:
        """Return for each command its outcome or its GatewayError. All writes form one transaction, and all reads use
        one later snapshot.

        A command with the outcome Contended did nothing and can be run again after a pause. With `nowait`, waits for
        locks are as short as possible. Other exceptions are defects. `log_position` is the value of `written_up_to` after
        the reader's last write. A standby that has not reached it is not used.
        """
        self.run_count += 1
        if {*map(type, commands)} == {table_commands.FindTable}:
            return self._command_runner.find_tables(cast("list[table_commands.FindTable]", commands))
        outcomes: list[Any] = [None] * len(commands)
        writes: dict[int, row_commands.WriteGroup] = {}
        reads: dict[int, Command[Any]] = {}
        for at, command in enumerate(commands):
            if type(command) is row_commands.WriteGroup:
                writes[at] = command
            elif command.only_reads:
                reads[at] = command
            else:
                outcomes[at] = self._command_runner.run(command)
        if writes:
            for at, answer in zip(writes, self._transactions.write([*writes.values()], nowait), strict=True):
                outcomes[at] = answer
        if reads:
            for at, answer in zip(reads, self._read([*reads.values()], nowait, log_position), strict=True):
                outcomes[at] = answer
        return outcomes

    @property
    def written_up_to(self) -> int:
        """Position of the database's log after the last write, if there are standbys. Otherwise 0."""
        return self._store.database.written_up_to

    def node_states(self) -> list[NodeState]:
        """Return the nodes of a distributed database. Others have none."""
        return self._store.database.node_states()

    @property
    def is_distributed(self) -> bool:
        """True if the database is distributed. Lists of commands should then be split by node (`node_of`). All commands
        of a request belong into one list."""
        return self._store.database.is_distributed

    def node_of(self, commands: Sequence[Command[Any]]) -> Hashable:
        """Return the node that holds all rows of these commands and what follows from them. None if there is no single
        one."""
        partitions: set[bytes | None] = set()
        for command in commands:
            if isinstance(command, row_commands.WriteGroup):
                # Tokens, entries and changes have partitions of their own.
                if command.token is not None or any(
                    write.table.indexes or write.table.features for write in command.writes
                ):
                    return None
                partitions.update(write.key.position.partition for write in command.writes)
            elif isinstance(command, row_commands.ReadAll):
                partitions.update(get.position.partition for get in command.gets)
            elif isinstance(command, row_commands.Get):
                partitions.add(command.position.partition)
            elif isinstance(command, row_commands.Read) and command.index is None:
                partitions.add(command.partition)
            else:
                return None
        if None in partitions:
            return None
        nodes = {self._store.database.node_of(partition) for partition in partitions if partition}
        return nodes.pop() if len(nodes) == 1 else None

    def run_in_slices(
        self, commands: list[Command[Any]], outcomes: dict[int, Any], reader: int, log_position: int = 0
    ) -> Generator[None, None, None]:
        """Run reads of one snapshot, and yield after each slice of a page, so that the thread can do other work.

        `outcomes` is filled under the index of each command, and complete at the end. Concurrent calls need different
        values of `reader` (from 1).
        """
        self.run_count += 1
        now_ms = self._now() // 1_000_000
        try:
            if self.replicas is not None and reading_replicas.may_be_old(commands):
                yield from reading_replicas.read_in_slices(
                    self.replicas,
                    commands,
                    self._transactions.readers,
                    now_ms,
                    outcomes,
                    reader,
                    log_position,
                )
            else:
                yield from reading.read_in_slices(
                    self._store, commands, self._transactions.readers, now_ms, outcomes, reader
                )
        except Exception as error:
            log.info("reading pages without slices, after an error: %r", error)
        if len(outcomes) < len(commands):
            missing = [at for at in range(len(commands)) if at not in outcomes]
            outcomes.update(
                zip(missing, self._transactions.read([commands[at] for at in missing]), strict=True)
            )

    def ping(self) -> None:
        """Read from the database. Raises its error if it does not answer, SchemaTooNew, OutOfSpace while it refuses
        writes, and DataCorrupted after damaged data was read."""
        self._store.database.check_place()
        self._store.check_schema()
        if self._store.database.refuses_writes:
            raise errors.OutOfSpace(self._store.database.refuses_writes)
        if self._store.damage.first_damage:
            raise errors.DataCorrupted(self._store.damage.first_damage)

    def check_schema(self) -> None:
        """Raise SchemaTooNew if a later release has migrated the database to a schema that this release cannot
        serve."""
        self._store.check_schema()

    def retry_writes(self) -> None:
        """Check the database's files. If writes were refused for lack of space, try one. Raises OutOfSpace if it is
        refused again."""
        self._store.database.check_files()
        if self._store.database.refuses_writes:
            idempotency_tokens.probe(self._store.write)
            self._store.database.refuses_writes = ""

    def table_names(self) -> frozenset[str]:
        """Return the names of all tables in all namespaces, for metrics."""
        with self._store.read() as session:
            return self._store.catalog.names(session)

    def close(self) -> None:
        """Close the connections to the database and its standbys."""
        self._store.close()
        if self.replicas is not None:
            self.replicas.close()

    def _read(self, commands: list[Command[Any]], nowait: bool, log_position: int) -> list[Any]:
        if self.replicas is None or nowait or not reading_replicas.may_be_old(commands):
            return self._transactions.read(commands)
        answers: list[Any] = [
            *reading_replicas.read(
                self.replicas, commands, self._transactions.readers, self._now() // 1_000_000, log_position
            )
        ]
        stale = [at for at, answer in enumerate(answers) if isinstance(answer, errors.StaleTable)]
        if stale:
            for at, answer in zip(
                stale, self._transactions.read([commands[at] for at in stale]), strict=True
            ):
                answers[at] = answer
        return answers


def run_with_retries(engine: Engine, commands: list[Command[Any]]) -> list[Any]:
    """Return the outcomes of `Engine.run`, with Contended commands repeated after pauses, as the tick does."""
    outcomes = engine.run(commands)
    began = time.monotonic()
    pauses = pauses_between_attempts()
    while (indexes := contended(outcomes)) and time.monotonic() < began + longest_wait_s(outcomes):
        time.sleep(next(pauses))
        new_outcomes = engine.run([commands[at] for at in indexes], nowait=True)
        for at, outcome in zip(indexes, new_outcomes, strict=True):
            outcomes[at] = outcome
    return outcomes


def contended(outcomes: list[Any]) -> list[int]:
    """Return the indexes of the outcomes that are Contended. Their commands can be run again."""
    return [at for at, outcome in enumerate(outcomes) if type(outcome) is errors.Contended]


def longest_wait_s(outcomes: list[Any]) -> float:
    """Return the longest retry time of Contended outcomes, in seconds after the first attempt."""
    return max((outcome.wait_s for outcome in outcomes if type(outcome) is errors.Contended), default=0.0)


def pauses_between_attempts() -> Iterator[float]:
    """Yield the seconds to wait before each further attempt. They grow, with jitter."""
    pause = 0.01
    while True:
        yield pause * random.uniform(0.5, 1.5)
        pause = min(pause * 2, 0.25)
