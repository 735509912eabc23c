"""A table in a database of tablegate: the engine itself, without a server between.

Knows the address `DATABASE-URL#[NAMESPACE/]TABLE`, how a database is opened by a process that is no server, and which commands
of the engine each method of the protocol is. Knows no SQL.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from tablegate.adapters.dynamodb import DIALECT as DYNAMODB
from tablegate.adapters.dynamodb.tables.properties import TableProperties
from tablegate.adapters.dynamodb.values.keys import index_view as dynamodb_view
from tablegate.adapters.tablestore import DIALECT as TABLE_STORE
from tablegate.adapters.tablestore.tables.options import Options
from tablegate.adapters.tablestore.values.views import index_view as tablestore_view
from tablegate.gateway.configuration.database_urls import BadDatabaseURL, normalise, without_password
from tablegate.gateway.configuration.settings import BadSetting, Settings, load
from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.model.commands import table_commands
from tablegate.gateway.model.commands.commands import AnyCommand
from tablegate.gateway.model.commands.row_commands import Get, Load, Read, ReadAll, WriteGroup
from tablegate.gateway.model.commands.stream_commands import FindPosition, FindStream, ListShards, ReadChanges
from tablegate.gateway.model.commands.writes import Remove, Replace, Write
from tablegate.gateway.model.errors import (
    Busy,
    GatewayError,
    OutOfSpace,
    PositionExpired,
    StaleTable,
    StreamMissing,
    TableBusy,
    TableMissing,
    Unknowable,
)
from tablegate.gateway.model.expressions.ranges import EVERYTHING, KeyRange
from tablegate.gateway.model.tables.changes import Latest, Oldest
from tablegate.gateway.model.tables.pages import Page, PageLimits, Segment
from tablegate.gateway.model.tables.tables import Rules, StreamRule, Table
from tablegate.gateway.model.values.keys import Key, Position
from tablegate.gateway.model.values.rows import FOREIGN_KINDS, Contents, Row
from tablegate.gateway.observability import audit
from tablegate.gateway.security import gate
from tablegate.gateway.security.credentials import SHARED_NAMESPACE
from tablegate.gateway.server.file_lock import AlreadyHeld, FileLock
from tablegate.gateway.store.opening.migrating import NewerDatabase, migrate
from tablegate.gateway.store.opening.opening import open_database, prepare_file
from tablegate.gateway.store.sql.databases import Unusable
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.tables.descriptors import stream_rule
from tablegate.transfer.endpoints.definitions import definition_of_table, service_of
from tablegate.transfer.endpoints.endpoint import (
    JSON,
    ChangedKeys,
    Definition,
    Endpoint,
    Reject,
    ScanPage,
    Service,
)
from tablegate.transfer.errors import (
    AccessRefused,
    BadAddress,
    PositionLost,
    SchemaChanged,
    ServiceUnavailable,
    TableAbsent,
    TransferError,
)

_PAGE = PageLimits(scanned=1_000, filled_bytes=1 << 20)
_MOST_SEGMENTS = 256  # a segment finer than a slot is read with its neighbours (gateway/store/rows/scans.py)
# Fewer rows than these are sooner put than loaded.
_FEW_ROWS = 20
# So many changes a shard and look. A page is cut short by its bytes only if these are more than half used, since a change has
# two rows of at most 4 MB each.
_CHANGES, _CHANGES_BYTES = 500, 16 << 20
_STREAM_RETENTION_MS = 7 * 86_400_000
_PATIENCE_S = 180.0
# What is kept under this name in a table's properties waits to be done when the copy is complete.
_PENDING = "transfer"


class _InUse:
    """A database that endpoints of this process have open; the file of SQLite is locked against other processes."""

    def __init__(self, settings: Settings, shown: str) -> None:
        self.users = 0
        path = settings.database_path
        self._lock = None
        if path is not None:
            try:
                prepare_file(path)
                self._lock = FileLock(path)
            except (Unusable, OSError) as error:
                raise TransferError(f"{shown}: {error}") from None
            except AlreadyHeld as held:
                raise TransferError(
                    f"{shown}: another process (pid {held.pid or 'unknown'}) has this database, probably a server. Stop it, or "
                    "copy through it: dynamodb://TABLE?endpoint=http://HOST:PORT"
                ) from None
        try:
            self._store = _opened(settings, shown)
            self.engine = _engine_on(self._store)
        except BaseException:
            self._release()
            raise

    def close(self) -> None:
        """Give the database back."""
        self.engine.close()
        self._release()

    def record(self, operation: str, table: str) -> None:
        """Put an operation on record, if the environment asks for an audit as `tablegate` itself takes it."""
        asked = {name: value for name, value in os.environ.items() if name.startswith("TABLEGATE_AUDIT")}
        if asked:
            from tablegate.gateway.observability.audit_sinks import recording

            try:
                with recording(load({"memory": True}, asked), self._store, sys.stderr):
                    audit.record_operation(operation, [table], "done")
            except OSError as error:
                raise TransferError(f"cannot write the audit: {error}") from None

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()


def _opened(settings: Settings, shown: str) -> Store:
    try:
        # As gateway/app.py opens it; that module would load a web framework.
        database = open_database(
            settings.database, settings.synchronous, pooled=not settings.prepared_statements
        )
        migrate(database)
    except NewerDatabase as newer:
        raise TransferError(
            f"{shown}: the database is of a later release of tablegate (its schema is {newer.revision}): use that one"
        ) from None
    except Unusable as error:
        raise TransferError(f"{shown}: {error}") from None
    except Exception as error:
        raise _unreachable(shown, error) from None
    return Store(database)


def _engine_on(store: Store) -> Engine:
    engine = Engine(store)
    engine.register_view(DYNAMODB, dynamodb_view)
    engine.register_view(TABLE_STORE, tablestore_view)
    return engine


def _unreachable(shown: str, error: Exception) -> TransferError:
    """The driver's error, or what is behind it. It names host and user, and no password."""
    text = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
    refused = "authentication" in text or "role" in text
    return (AccessRefused if refused else ServiceUnavailable)(f"{shown}: the database: {text}")


_in_use: dict[str, _InUse] = {}
_opening = threading.Lock()


class DatabaseEndpoint(Endpoint):
    """A table of a database, as the engine has it."""

    service = Service.TABLEGATE
    write_rows: ClassVar[int] = 2_000

    def __init__(self, address: str) -> None:
        """`address`: DATABASE-URL#[NAMESPACE/]TABLE. Nothing is opened yet. Raises BadAddress."""
        url, hash_sign, place = address.rpartition("#")
        if not hash_sign or not url or not place:
            raise BadAddress(
                f"{_shown_url(address)}: a table of a database is DATABASE-URL#[NAMESPACE/]TABLE"
            )
        self.namespace, _, self.name = place.rpartition("/")
        self.namespace = self.namespace or SHARED_NAMESPACE
        try:
            self._url = normalise(url)
            self._settings = load({"database": self._url}, {})
        except (BadDatabaseURL, BadSetting) as error:
            raise BadAddress(str(error)) from None
        if self._settings.memory:
            raise BadAddress("a database in memory is its process's alone; name a file or a server")
        self.shown = f"tablegate:{without_password(self._url)}#{place}"
        self._known: Table | None = None
        self._count: tuple[int | None, int | None] | None = None
        self._opened: _InUse | None = None
        self._own = threading.Lock()

    # The table

    def describe(self) -> Definition:
        table = self._find(anew=True)
        if self._count is None:
            [statistics] = gate.run(self._engine, [table_commands.CountRows(table)], None)
            # A table may be so large that the database does not count it in the time that a statement has.
            is_counted = isinstance(statistics, table_commands.TableStatistics)
            self._count = (statistics.rows, statistics.size_bytes) if is_counted else (None, None)
        pending = table.properties.get(_PENDING, {})
        rules = table.rules
        if "stream" in pending:
            rules = dataclasses.replace(rules, stream=stream_rule(pending["stream"]))
        properties = {name: kept for name, kept in table.properties.items() if name != _PENDING}
        table = dataclasses.replace(table, rules=rules, properties=properties)
        return definition_of_table(table, *self._count)

    def create(self, definition: Definition) -> list[str]:
        service = definition.service
        rules, properties = definition.rules, dict(definition.properties)
        if service is Service.TABLE_STORE:
            rules = dataclasses.replace(rules, stamped=True)
            properties.setdefault(
                TABLE_STORE, Options(table_id=secrets.token_hex(16)).as_properties()[TABLE_STORE]
            )
        elif service is Service.DYNAMODB:
            properties.setdefault(DYNAMODB, TableProperties().document()[DYNAMODB])
        if rules.stream is not None and rules.stream.enabled:
            # What is copied is no change of this table's: its stream begins when the copy is complete.
            kept = dataclasses.replace(rules.stream, id=0, shards=())
            properties[_PENDING] = {"stream": dataclasses.asdict(kept)}
        rules = dataclasses.replace(rules, stream=None)
        command = table_commands.CreateTable(
            _DIALECTS[service], self.namespace, self.name, definition.key_schema, definition.indexes, rules, properties,
            vector_indexes=definition.vector_indexes,
        )  # fmt: skip
        try:
            found = self._find()
        except TableAbsent:
            [found] = self._run([command])
            self._known = found
        if found.key_schema != definition.key_schema:
            raise SchemaChanged(f"{self.shown}: a table of that name is there, and has another key")
        _in_use[self._url].record("copy", self.name)
        return []

    def finish(self) -> None:
        table = self._find(anew=True)
        if stream := table.properties.get(_PENDING, {}).get("stream"):
            rule = dataclasses.replace(stream_rule(stream), enabled_at_ms=time.time_ns() // 1_000_000)
            self._alter(
                lambda table: table_commands.AlterTable(
                    _DIALECTS[service_of(table)], table, dataclasses.replace(table.rules, stream=rule),
                    {_PENDING: {}}, instant=True,
                )
            )  # fmt: skip

    def list_tables(self) -> list[str]:
        self._require_file()
        return [table.name for table in self._run([table_commands.ListTables(self.namespace)])[0]]

    # Rows

    def segments(self, wanted: int) -> list[JSON]:
        # One file is not read sooner by several readers of one process, each with a cache of its own.
        most = _MOST_SEGMENTS if self._settings.database_path is None else 1
        total = max(1, min(wanted, most))
        return [[number, total] for number in range(total)]

    def scan(self, segment: JSON, resume: JSON | None = None) -> Iterator[ScanPage]:
        part = Segment(*segment)
        after = None if resume is None else Position(*map(base64.b64decode, resume))
        while True:
            page = self._page(part, after)
            if page.last is None:
                yield ScanPage(page.rows, None)
                return
            after = page.last.position
            yield ScanPage(page.rows, [base64.b64encode(bound).decode() for bound in after])

    def _page(self, part: Segment, after: Position | None) -> Page:
        if part.total == 1:  # in the order of keys, in which SQLite keeps them
            rest = EVERYTHING if after is None else KeyRange(after.after, EVERYTHING.upper)
            [page] = self._on_table(lambda table: [Read(table, rest, _PAGE)])
        else:
            [page] = self._on_table(lambda table: [Read(table, EVERYTHING, _PAGE, segment=part, after=after)])
        return page

    def get(self, keys: Sequence[Key]) -> list[Row | None]:
        found: list[Row | None] = self._on_table(
            lambda table: [ReadAll(tuple(Get(table, key.position) for key in keys))]
        )[0]
        return found

    def write(self, rows: Sequence[Row]) -> list[Reject]:
        if len(rows) >= _FEW_ROWS:
            [refusal] = self._on_table(
                lambda table: [_load(table, rows)],
                refusals=True,
            )
            if not isinstance(refusal, GatewayError):
                return []
        answers = self._on_table(lambda table: [_put(table, row) for row in rows], refusals=True)
        return [
            Reject(row, type(answer).__name__, repr(answer))
            for row, answer in zip(rows, answers, strict=True)
            if isinstance(answer, GatewayError)
        ]

    def delete(self, keys: Sequence[Key]) -> None:
        self._on_table(lambda table: [WriteGroup((Write(table, key, Remove()),)) for key in keys])

    # Changes

    def capture(self) -> JSON:
        table = self._find(anew=True)
        if table.rules.stream is None or not table.rules.stream.enabled:
            table = self._alter(_with_stream)
        assert table.rules.stream is not None
        label = table.rules.stream.label
        stream = self._run([FindStream(self.namespace, self.name, label)])[0]
        shards = self._run([ListShards(stream)])[0]
        positions = self._run([FindPosition(stream, shard.number, Latest()) for shard in shards])
        return {
            "stream": label,
            "shards": {
                str(shard.number): None if shard.closed_at_ms is not None else sequence
                for shard, sequence in zip(shards, positions, strict=True)
            },
        }

    def changes(self, position: JSON) -> ChangedKeys:
        try:
            return self._changes(position["stream"], position["shards"])
        except (PositionExpired, StreamMissing):
            raise PositionLost(
                f"{self.shown}: changes after the remembered position are no longer kept"
            ) from None

    def _changes(self, label: str, known: dict[str, int | None]) -> ChangedKeys:
        stream = self._run([FindStream(self.namespace, self.name, label)])[0]
        keys: dict[Position, Key] = {}
        after: dict[str, int | None] = {}
        at_ms, caught_up = None, True
        for shard in self._run([ListShards(stream)])[0]:
            name = str(shard.number)
            sequence = (
                known[name] if name in known else self._run([FindPosition(stream, shard.number, Oldest())])[0]
            )
            if sequence is not None:
                page = self._run([ReadChanges(stream, shard.number, sequence, _CHANGES, _CHANGES_BYTES)])[0]
                for change in page.changes:
                    key = stream.key_schema.key(change.key_values)
                    keys.pop(key.position, None)
                    keys[key.position] = key
                    at_ms = max(at_ms or 0, change.at_ms)
                caught_up = caught_up and not _is_cut(page.changes)
                sequence = page.next
            after[name] = sequence
        if stream.ended_at_ms is not None and not keys:
            raise PositionLost(
                f"{self.shown}: the stream {label} was switched off, changes after that are not recorded"
            )
        return ChangedKeys(list(keys.values()), {"stream": label, "shards": after}, at_ms, caught_up)

    # The engine

    def close(self) -> None:
        with _opening:
            opened, self._opened = self._opened, None
            if opened is not None:
                opened.users -= 1
                if not opened.users:
                    del _in_use[self._url]
                    opened.close()

    @property
    def _engine(self) -> Engine:
        """The engine, opened at the first call. SQLite's file is made by whoever creates a table in it."""
        with _opening:
            if self._opened is None:
                if self._url not in _in_use:
                    _in_use[self._url] = _InUse(self._settings, self.shown)
                self._opened = _in_use[self._url]
                self._opened.users += 1
            return self._opened.engine

    def _find(self, anew: bool = False) -> Table:
        """The table. Raises TableAbsent; SchemaChanged if it is another one than it was."""
        with self._own:
            known = self._known
        if known is not None and not anew:
            return known
        self._require_file()
        try:
            table: Table = self._run([table_commands.FindTable(self.namespace, self.name)])[0]
        except TableMissing:
            raise TableAbsent(f"{self.shown}: there is no such table") from None
        if known is not None and known.id != table.id:
            raise SchemaChanged(f"{self.shown}: the table was dropped and made anew meanwhile")
        with self._own:
            self._known = table
        return table

    def _require_file(self) -> None:
        """A file that is not there is no empty database, but for `create`."""
        path = self._settings.database_path
        if self._opened is None and path is not None and not path.exists():
            raise TableAbsent(f"{self.shown}: there is no such database")

    def _on_table(
        self, commands_on: Callable[[Table], list[AnyCommand]], refusals: bool = False
    ) -> list[Any]:
        """Outcomes of commands that name the table, begun anew while somebody else changes it."""
        until = time.monotonic() + _PATIENCE_S
        anew = False
        while True:
            try:
                return self._run(commands_on(self._find(anew)), refusals)
            except (StaleTable, TableBusy) as error:
                if time.monotonic() > until:
                    raise ServiceUnavailable(f"{self.shown}: the table keeps changing: {error!r}") from None
                anew = True
                time.sleep(0.05)

    def _alter(self, command_on: Callable[[Table], table_commands.AlterTable]) -> Table:
        self._find(anew=True)
        altered: Table = self._on_table(lambda table: [command_on(table)])[0]
        with self._own:
            self._known = altered
        return altered

    def _run(self, commands: Sequence[AnyCommand], refusals: bool = False) -> list[Any]:
        """The outcomes of commands. What may pass is tried again for minutes; other errors are raised, or given back where the
        caller deals with `refusals`. Raises `_EXPECTED`, TransferError."""
        until = time.monotonic() + _PATIENCE_S
        pause = 0.1
        while True:
            outcomes = gate.run(self._engine, list(commands), None)
            passing = [each for each in outcomes if isinstance(each, (Busy, Unknowable))]
            full = [each for each in passing if isinstance(each, OutOfSpace)]
            if full:
                raise ServiceUnavailable(f"{self.shown}: the database has no room for more: {full[0]}")
            if not passing:
                break
            if time.monotonic() > until:
                raise ServiceUnavailable(f"{self.shown}: the database: {passing[0]}")
            time.sleep(pause)
            pause = min(2 * pause, 5.0)
        for outcome in outcomes:
            if isinstance(outcome, _EXPECTED):
                raise outcome
            if isinstance(outcome, GatewayError) and not refusals:
                raise TransferError(f"{self.shown}: the database: {outcome!r}")
        return outcomes


_EXPECTED = (StaleTable, TableBusy, TableMissing, PositionExpired, StreamMissing)
"""What callers of `_run` have an answer to."""
_DIALECTS = {
    Service.DYNAMODB: "dynamodb",
    Service.AZURE_TABLE: "azuretable",
    Service.TABLE_STORE: "tablestore",
    Service.TABLEGATE: "",
}


def _with_stream(table: Table) -> table_commands.AlterTable:
    """Switch a stream on, whose label is one that DynamoDB's clients know to read."""
    now = datetime.datetime.now(datetime.UTC)
    label = now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{now.microsecond // 1000:03}"
    rule = StreamRule(label, True, "KEYS_ONLY", _STREAM_RETENTION_MS, round(now.timestamp() * 1000))
    rules: Rules = dataclasses.replace(table.rules, stream=rule)
    return table_commands.AlterTable(_DIALECTS[service_of(table)], table, rules, instant=True)


def _keeps_times(table: Table) -> bool:
    """Whether ages or versions count in a table: then a value that was stored without a time of its own keeps that of its row."""
    rules = table.rules
    return rules.stamped or (rules.expiry is not None and rules.expiry.age_ms is not None)


def _kept(table: Table, row: Row) -> Contents:
    """A row's contents for a table."""
    contents = row.contents
    if not row.modified_at or contents.kinds not in (None, FOREIGN_KINDS) or not _keeps_times(table):
        return contents
    return Contents.of_cells(table.key_values(row.latest), table.cells_of(row))


def _load(table: Table, rows: Sequence[Row]) -> Load:
    if _keeps_times(table):
        return Load(table, [(row.position, _kept(table, row)) for row in rows])
    return Load(table, [(row.position, row.contents) for row in rows])


def _put(table: Table, row: Row) -> WriteGroup:
    key = table.key_schema.decode(row.position)
    return WriteGroup((Write(table, key, Replace(_kept(table, row)), wants_old=False),))


def _is_cut(changes: Sequence[Any]) -> bool:
    """Whether a page of changes may have ended at its limits."""
    weight = sum(len(row.body) for change in changes for row in (change.old, change.new) if row is not None)
    return len(changes) >= _CHANGES or weight > _CHANGES_BYTES // 2


def _shown_url(address: str) -> str:
    return "tablegate:" + without_password(address)
