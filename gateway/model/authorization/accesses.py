"""What commands access: for each type of command, one function that says which permissions it needs, on which resources.

The permission follows from the command itself. Where the model has finer words than the command (to alter a table, or its tags),
the purpose of the request chooses among those that the command can be (`_finer`), never beyond them. So what a handler
says of its purpose cannot open a door that its commands do not go through.

The facts that conditions ask for are worked out when a condition asks: `Access.known`. A test holds the table of types to be
exhaustive; a command that is not in it is for those only who may do everything.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tablegate.gateway.model.authorization.conditions import EVERYTHING, Fact, Known
from tablegate.gateway.model.authorization.permissions import Permission, Purpose, Way
from tablegate.gateway.model.commands import (
    account_commands,
    backup_commands,
    commands,
    job_commands,
    replica_commands,
    row_commands,
    snapshot_commands,
    stream_commands,
    table_commands,
    transaction_commands,
    vector_commands,
)
from tablegate.gateway.model.commands.writes import Edit, Keep, Remove, Replace, Returns, Write
from tablegate.gateway.model.expressions.predicates import ALWAYS, Predicate, paths_of
from tablegate.gateway.model.expressions.updates import Action, SetTo, names_of, paths_read
from tablegate.gateway.model.tables.backups import Backup, BackupKind
from tablegate.gateway.model.tables.namespaces import served_by_job
from tablegate.gateway.model.tables.tables import RESOURCE_POLICIES, Table
from tablegate.gateway.model.values.keys import HIGHEST, LOWEST, KeySchema
from tablegate.gateway.model.values.values import Kind, Value

Path = str
"""A resource within a namespace: "TABLE", "TABLE/index/INDEX", "TABLE/stream/LABEL", or "" for what is no table's."""


ANYWHERE: Path = "\x00"
"""A path that nothing has: of an access to something that the command does not name. Only a pattern that takes every name takes
it."""


class Access(NamedTuple):
    """One thing that a command does to one resource. `source`: the command, or the part of it that does it; `table`: the table's
    descriptor where it is at hand."""

    # By these it is decided, and decisions are kept by them.
    permission: Permission
    way: Way
    namespace: str
    path: Path
    # By these what depends on conditions.
    source: Any
    table: Table | None = None

    @property
    def table_name(self) -> str:
        """The name of the table that the resource is, or belongs to."""
        return self.path.partition("/")[0]

    def known(self, fact: Fact) -> Known:
        """The values of a fact, in the spelling that conditions have (that of IAM's documents); None: it has none; EVERYTHING.
        Worked out only when a condition asks."""
        return _FACTS[fact](self)


# Which permission a command needs

_ALTERING = (
    Permission.ALTER, Permission.TAG, Permission.UNTAG, Permission.ALTER_EXPIRY, Permission.WRITE_POLICY,
    Permission.REMOVE_POLICY, Permission.CREATE_INDEX, Permission.DROP_INDEX, Permission.ALTER_FEATURES,
    Permission.ADD_COLUMNS, Permission.DROP_COLUMNS,
    Permission.ALTER_INSIGHTS, Permission.ALTER_DELIVERIES, Permission.ALTER_RECOVERY,
)  # fmt: skip
_READING_STREAMS = (Permission.DESCRIBE_STREAM, Permission.POSITION_STREAM, Permission.READ_STREAM)


def _finer(purpose: Purpose, *possible: Permission) -> Permission:
    """Which of the permissions that a command can be is meant; the first if nothing is said."""
    for permission in purpose.permissions:
        if permission in possible:
            return permission
    return possible[0]


def _of_get(command: row_commands.Get, purpose: Purpose) -> Iterable[Access]:
    table = command.table
    return (Access(Permission.READ, purpose.way, table.namespace, table.name, command, table),)


def _of_read_all(command: row_commands.ReadAll, purpose: Purpose) -> Iterator[Access]:
    for get in command.gets:
        yield from _of_get(get, purpose)


def _of_read(command: row_commands.Read, purpose: Purpose) -> Iterator[Access]:
    table, index = command.table, command.index
    if Permission.DESCRIBE in purpose.permissions:  # counted, not shown
        permission = Permission.DESCRIBE
    elif Permission.SPLIT in purpose.permissions:
        permission = Permission.SPLIT
    elif partition_of(command) is None:
        permission = Permission.SCAN
    else:
        permission = _finer(purpose, Permission.QUERY, Permission.READ)
    path = table.name if index is None else f"{table.name}/index/{index.name}"
    yield Access(permission, purpose.way, table.namespace, path, command, table)


def _of_search(command: vector_commands.SearchVectors, purpose: Purpose) -> Iterator[Access]:
    """A search is one of the table and of its index; whose rows it may show cannot be said beforehand."""
    table = command.table
    for path in (table.name, f"{table.name}/index/{command.index.name}"):
        yield Access(Permission.SEARCH, purpose.way, table.namespace, path, command, table)


_CHANGES: Mapping[type, Permission] = {
    Replace: Permission.PUT,
    Edit: Permission.UPDATE,
    Remove: Permission.DELETE,
    Keep: Permission.CHECK,
}


def _of_group(command: row_commands.WriteGroup, purpose: Purpose) -> Iterator[Access]:
    for write in command.writes:
        table = write.table
        yield Access(_CHANGES[type(write.change)], purpose.way, table.namespace, table.name, write, table)


def _of_stage(command: transaction_commands.Stage, purpose: Purpose) -> Iterator[Access]:
    for group in command.groups:
        yield from _of_group(group, purpose)


def _of_load(command: row_commands.Load, purpose: Purpose) -> Iterator[Access]:
    yield _of_table(command, command.table, Permission.PUT, purpose)


def _of_create(command: table_commands.CreateTable, purpose: Purpose) -> Iterator[Access]:
    for permission in (Permission.CREATE, *purpose.also):
        yield Access(permission, purpose.way, command.namespace, command.name, command)


def _of_alter(command: table_commands.AlterTable, purpose: Purpose) -> Iterator[Access]:
    table = command.table
    permission = _finer(purpose, *_ALTERING)
    paths = _paths_of_policies(command) if permission in _OF_POLICIES else [table.name]
    for path in paths:
        yield Access(permission, purpose.way, table.namespace, path, command, table)
    yield from _also(command, table, purpose)


def _also(
    command: table_commands.AlterTable | stream_commands.Follow, table: Table, purpose: Purpose
) -> Iterator[Access]:
    """The accesses of `Purpose.also`. Whatever tells others of all changes of a table needs the right to all of its streams."""
    for permission in purpose.also:
        path = f"{table.name}/stream/{ANYWHERE}" if permission is Permission.READ_STREAM else table.name
        yield Access(permission, purpose.way, table.namespace, path, command, table)


_OF_POLICIES = frozenset({Permission.WRITE_POLICY, Permission.REMOVE_POLICY})


def _paths_of_policies(command: table_commands.AlterTable) -> Iterator[Path]:
    """The resources whose policies a command changes: the table, or streams of it."""
    table, new = command.table, (command.properties or {}).get(RESOURCE_POLICIES, {})
    old = table.properties.get(RESOURCE_POLICIES, {})
    changed = [label for label in dict.fromkeys((*old, *new)) if old.get(label) != new.get(label)]
    for label in changed or [""]:
        yield f"{table.name}/stream/{label}" if label else table.name


def _of_followers(command: stream_commands.ListFollowers, purpose: Purpose) -> Iterator[Access]:
    permission = _finer(purpose, Permission.DESCRIBE_FEATURES, Permission.ALTER_DELIVERIES)
    yield _of_table(command, command.table, permission, purpose)


def _of_follower(command: stream_commands.Follow, purpose: Purpose) -> Iterator[Access]:
    yield _of_table(command, command.table, Permission.ALTER_DELIVERIES, purpose)
    yield from _also(command, command.table, purpose)


def _of_ended_follower(command: stream_commands.Unfollow, purpose: Purpose) -> Iterator[Access]:
    yield _of_table(command, command.table, Permission.ALTER_DELIVERIES, purpose)


def _of_started_job(command: job_commands.StartJob, purpose: Purpose) -> Iterator[Access]:
    """A job reads or writes all of a table, whatever conditions say of rows. An export needs the right to read its table, and a
    bulk put the right to put a row, so that a refusal of these holds."""
    permission = _finer(purpose, Permission.EXPORT, Permission.IMPORT, Permission.LOAD)
    for each in (permission, *_ALSO_OF_JOBS.get(permission, ())):
        yield Access(each, purpose.way, command.namespace, command.table_name, command, command.source)


_ALSO_OF_JOBS = {Permission.EXPORT: (Permission.SCAN,), Permission.LOAD: (Permission.PUT,)}


def _of_job_list(command: job_commands.ListJobs, purpose: Purpose) -> Iterator[Access]:
    """A list, or a look for one job: to tell of it, to cancel it, or to find an import that was asked for before."""
    permission = _finer(
        purpose,
        Permission.LIST_JOBS,
        Permission.DESCRIBE_JOB,
        Permission.CANCEL_JOB,
        Permission.IMPORT,
        Permission.LOAD,
    )
    path = command.path or command.table_name or ""
    yield Access(permission, purpose.way, command.namespace, path, command)


def _of_cancelled_job(command: job_commands.CancelJob, purpose: Purpose) -> Iterator[Access]:
    job = command.job
    namespace, path = served_by_job(job.namespace), command.path or job.table_name
    yield Access(Permission.CANCEL_JOB, purpose.way, namespace, path, command)


def _of_new_replicas(command: replica_commands.AddReplicas, purpose: Purpose) -> Iterator[Access]:
    yield _of_table(command, command.table, Permission.ALTER, purpose)
    for replica in command.replicas:
        yield from _of_create(replica.made, purpose)


def _of_removed_replicas(command: replica_commands.RemoveReplicas, purpose: Purpose) -> Iterator[Access]:
    """The tables that go are called as the one that stays, and their keys' namespaces are of one account."""
    yield _of_table(command, command.table, Permission.ALTER, purpose)
    if not command.keeps:
        yield _of_table(command, command.table, Permission.DROP, purpose)


def _of_drop(command: table_commands.DropTable, purpose: Purpose) -> Iterator[Access]:
    yield _of_table(command, command.table, Permission.DROP, purpose)


def _of_history(command: backup_commands.KeepHistory, purpose: Purpose) -> Iterator[Access]:
    yield _of_table(command, command.table, Permission.ALTER_RECOVERY, purpose)


def backup_path(backup: Backup) -> Path:
    """The path of a backup below its table's, as its ARN has it: when it was made, and its id (0 for a system backup)."""
    number = 0 if backup.kind is BackupKind.SYSTEM else backup.id & 0xFFFF_FFFF
    return f"{backup.table_name}/backup/{backup.created_at_ms:014}-{number:08x}"


def _of_backup(command: backup_commands.CreateBackup, purpose: Purpose) -> Iterator[Access]:
    yield _of_table(command, command.table, Permission.CREATE_BACKUP, purpose)


def _of_deleted_backup(command: backup_commands.DeleteBackup, purpose: Purpose) -> Iterator[Access]:
    backup = command.backup
    yield Access(Permission.DELETE_BACKUP, purpose.way, backup.namespace, backup_path(backup), command)


_COPIED = (
    (Permission.READ, Way.SINGLE), (Permission.QUERY, Way.SINGLE), (Permission.SCAN, Way.SINGLE),
    (Permission.PUT, Way.SINGLE), (Permission.UPDATE, Way.SINGLE), (Permission.DELETE, Way.SINGLE),
    (Permission.PUT, Way.BATCH),
)  # fmt: skip


def _of_restore(command: backup_commands.RestoreTable, purpose: Purpose) -> Iterator[Access]:
    """What is restored from, what is made, and all that can be done to rows there (service authorization reference). The new
    table shows the rows of the source, so the right to read the table that they come from is needed too."""
    made, source = command.made, command.source
    if isinstance(source, Table):
        permission = Permission.RESTORE_MOMENT
        yield _of_table(command, source, permission, purpose)
    else:
        permission = Permission.RESTORE_BACKUP
        yield Access(permission, purpose.way, source.namespace, backup_path(source), command)
    name = source.name if isinstance(source, Table) else source.table_name
    yield Access(Permission.SCAN, Way.SINGLE, source.namespace, name, command)
    for each, way in ((permission, purpose.way), *_COPIED):
        yield Access(each, way, made.namespace, made.name, command)


def _of_begin(command: transaction_commands.BeginTransaction, purpose: Purpose) -> Iterator[Access]:
    yield _of_table(command, command.table, Permission.BEGIN, purpose)


def _of_count(command: table_commands.CountRows, purpose: Purpose) -> Iterator[Access]:
    """Counts are told with whatever else is told of a table."""
    yield _of_table(command, command.table, purpose.permissions[0], purpose)


def _of_table(command: Any, table: Table, permission: Permission, purpose: Purpose) -> Access:
    return Access(permission, purpose.way, table.namespace, table.name, command, table)


def _of_stream(
    command: stream_commands.ListShards | stream_commands.FindPosition | stream_commands.ReadChanges,
    purpose: Purpose,
) -> Iterator[Access]:
    possible = (
        (Permission.READ_STREAM,) if isinstance(command, stream_commands.ReadChanges) else _READING_STREAMS
    )
    stream = command.stream
    path = f"{stream.table_name}/stream/{stream.label}"
    yield Access(_finer(purpose, *possible), purpose.way, stream.namespace, path, command)


def _of_ended(
    command: transaction_commands.CommitTransaction | transaction_commands.AbortTransaction, purpose: Purpose
) -> Iterator[Access]:
    """What it carries out was judged when it was staged; but an id that somebody has come to know ends nothing of a table or a
    partition that is not theirs."""
    permission = (
        Permission.COMMIT if isinstance(command, transaction_commands.CommitTransaction) else Permission.ABORT
    )
    if command.held is None:
        yield Access(permission, purpose.way, "", ANYWHERE, command)
    else:
        yield _of_table(command, command.held.table, permission, purpose)


def _of_account(permission: Permission) -> Callable[[Any, Purpose], Iterator[Access]]:
    def accesses(command: Any, purpose: Purpose) -> Iterator[Access]:
        yield Access(permission, purpose.way, getattr(command, "namespace", None) or "", "", command)

    return accesses


_LOOK_UPS: Mapping[type, Permission] = {
    table_commands.ListTables: Permission.LIST,
    stream_commands.ListStreams: Permission.LIST_STREAMS,
    account_commands.GetProperties: Permission.READ_ACCOUNT,
    backup_commands.ListBackups: Permission.LIST_BACKUPS,
}


def _of_listing(
    command: table_commands.ListTables
    | stream_commands.ListStreams
    | backup_commands.ListBackups
    | account_commands.GetProperties,
    purpose: Purpose,
) -> Iterator[Access]:
    """A list that is the answer is an access. One that only leads to something is none: what is then done to it will be."""
    permission = _LOOK_UPS[type(command)]
    if permission in purpose.permissions:
        yield Access(permission, purpose.way, command.namespace, "", command)


def _of_look_up(
    command: table_commands.FindTable | stream_commands.FindStream | transaction_commands.FindTransaction,
    purpose: Purpose,
) -> Iterator[Access]:
    """What was found is judged when it is there, under its own name (security/gate.py); of a transaction, what it is
    ended by."""
    yield from ()


ACCESSES: Mapping[type, Callable[[Any, Purpose], Iterable[Access]]] = {
    row_commands.Get: _of_get,
    row_commands.ReadAll: _of_read_all,
    row_commands.Read: _of_read,
    vector_commands.SearchVectors: _of_search,
    row_commands.WriteGroup: _of_group,
    row_commands.Load: _of_load,
    table_commands.FindTable: _of_look_up,
    table_commands.ListTables: _of_listing,
    table_commands.CreateTable: _of_create,
    table_commands.AlterTable: _of_alter,
    table_commands.DropTable: _of_drop,
    job_commands.StartJob: _of_started_job,
    job_commands.ListJobs: _of_job_list,
    job_commands.ListUnfinishedJobs: _of_account(Permission.ADMINISTER),
    job_commands.CancelJob: _of_cancelled_job,
    job_commands.AdvanceJob: _of_account(Permission.ADMINISTER),
    stream_commands.Follow: _of_follower,
    stream_commands.Unfollow: _of_ended_follower,
    stream_commands.ListFollowers: _of_followers,
    replica_commands.AddReplicas: _of_new_replicas,
    replica_commands.RemoveReplicas: _of_removed_replicas,
    snapshot_commands.ResetTables: _of_account(Permission.ADMINISTER),
    snapshot_commands.CopyTables: _of_account(Permission.ADMINISTER),
    snapshot_commands.ListNamespaces: _of_account(Permission.ADMINISTER),
    snapshot_commands.DescribeTables: _of_account(Permission.ADMINISTER),
    snapshot_commands.ImportRows: _of_account(Permission.ADMINISTER),
    snapshot_commands.ImportDefinition: _of_account(Permission.ADMINISTER),
    table_commands.CountRows: _of_count,
    backup_commands.KeepHistory: _of_history,
    backup_commands.CreateBackup: _of_backup,
    backup_commands.DeleteBackup: _of_deleted_backup,
    backup_commands.ListBackups: _of_listing,
    backup_commands.RestoreTable: _of_restore,
    account_commands.GetProperties: _of_listing,
    account_commands.PutProperties: _of_account(Permission.WRITE_ACCOUNT),
    stream_commands.ListStreams: _of_listing,
    stream_commands.FindStream: _of_look_up,
    stream_commands.ListShards: _of_stream,
    stream_commands.FindPosition: _of_stream,
    stream_commands.ReadChanges: _of_stream,
    stream_commands.Reshard: _of_account(Permission.ADMINISTER),
    transaction_commands.BeginTransaction: _of_begin,
    transaction_commands.Stage: _of_stage,
    transaction_commands.FindTransaction: _of_look_up,
    transaction_commands.CommitTransaction: _of_ended,
    transaction_commands.AbortTransaction: _of_ended,
}
"""Each type of command, and what one of it accesses when it is for a purpose."""

_OF_UNKNOWN = _of_account(Permission.ADMINISTER)


def accesses_of(command: commands.AnyCommand, purpose: Purpose) -> Iterable[Access]:
    """All that a command accesses."""
    return ACCESSES.get(type(command), _OF_UNKNOWN)(command, purpose)


# What conditions ask of an access

_TABLE_WIDE = frozenset(
    {
        Permission.ALTER, Permission.DROP, Permission.CREATE_INDEX, Permission.DROP_INDEX, Permission.ALTER_EXPIRY,
        Permission.ADD_COLUMNS, Permission.DROP_COLUMNS,
        Permission.WRITE_POLICY, Permission.REMOVE_POLICY, Permission.READ_STREAM, Permission.ADMINISTER,
        Permission.ALTER_FEATURES, Permission.ALTER_INSIGHTS, Permission.ALTER_DELIVERIES,
        Permission.SPLIT, Permission.EXPORT, Permission.IMPORT, Permission.LOAD, Permission.CANCEL_JOB,
        Permission.ALTER_RECOVERY, Permission.CREATE_BACKUP, Permission.DELETE_BACKUP, Permission.RESTORE_BACKUP,
        Permission.RESTORE_MOMENT,
    }
)  # fmt: skip
_IN_TRANSACTIONS = {
    Way.TRANSACTION: {True: "TransactGetItems", False: "TransactWriteItems"},
    Way.STATEMENT_TRANSACTION: {True: "ExecuteTransaction", False: "ExecuteTransaction"},
}
_SELECTING = (Permission.READ, Permission.QUERY, Permission.SCAN)


def _leading_keys(access: Access) -> Known:
    return EVERYTHING if access.permission in _TABLE_WIDE else leading_keys(access.source)


def _attributes(access: Access) -> Known:
    return EVERYTHING if access.permission in _TABLE_WIDE else attributes(access.source)


def _selected(access: Access) -> Known:
    found = selected(access.source)
    return None if found is None else (found,)


def _returned(access: Access) -> Known:
    source = access.source
    if not isinstance(source, Write) or access.way is Way.BATCH:
        return None
    return frozenset(each.value for each in source.shown)


def _enclosing(access: Access) -> Known:
    enclosing = _IN_TRANSACTIONS.get(access.way)
    return None if enclosing is None else (enclosing[access.permission in _SELECTING],)


def _full_scan(access: Access) -> Known:
    if access.permission not in _SELECTING or access.way not in (Way.STATEMENT, Way.STATEMENT_TRANSACTION):
        return None
    return ("true" if access.permission is Permission.SCAN else "false",)


_FACTS: Mapping[Fact, Callable[[Access], Known]] = {
    Fact.LEADING_KEYS: _leading_keys,
    Fact.ATTRIBUTES: _attributes,
    Fact.SELECT: _selected,
    Fact.RETURN_VALUES: _returned,
    Fact.ENCLOSING: _enclosing,
    Fact.FULL_SCAN: _full_scan,
}


def leading_keys(source: Any) -> Known:
    """The values of the first partition column that a part of a command is about, as text."""
    kind = type(source)
    if kind is row_commands.Get:
        return _leading(source.table.key_schema, source.position.partition)
    if kind is Write:
        first = source.key.values[0]
        return (key_text(first),) if isinstance(first, Value) else EVERYTHING
    if kind is row_commands.Read:
        partition = partition_of(source)
        if partition is None:
            return EVERYTHING
        return _leading((source.index or source.table).key_schema, partition)
    if kind is transaction_commands.BeginTransaction:
        return _leading(source.table.key_schema, source.partition)
    if kind in (transaction_commands.CommitTransaction, transaction_commands.AbortTransaction):
        held = source.held
        known = held is not None and held.partition is not None
        return _leading(held.table.key_schema, held.partition) if known else EVERYTHING
    return (
        EVERYTHING
        if kind
        in (
            row_commands.Load,
            backup_commands.RestoreTable,
            vector_commands.SearchVectors,
            job_commands.AdvanceJob,
        )
        else None
    )


def partition_of(read: row_commands.Read) -> bytes | None:
    """The one partition that a page is read of; None: it is not kept to one."""
    lower, upper = read.range
    if read.segment is not None or lower.partition != upper.partition or lower.partition in (LOWEST, HIGHEST):
        return None
    return lower.partition


def _leading(schema: KeySchema, partition: bytes) -> Known:
    if schema.is_text_pair and partition[-1:] == b"\x00" and partition.find(b"\x00") == len(partition) - 1:
        return (partition[1:-1].decode(),)  # as decode_column has it, of a text without a zero
    try:
        values = schema.decode_partition(partition)
    except (ValueError, IndexError):
        return EVERYTHING  # not a whole partition: it may be any that begins so
    return (key_text(values[0]),)


def key_text(value: Value) -> str:
    """A key's value as conditions spell it: text as it is, numbers in canonical digits, bytes in base64."""
    if value.kind is Kind.TEXT:
        return str(value.data)
    if value.kind is Kind.BYTES:
        return base64.b64encode(value.data).decode()
    return format(value.data.normalize(), "f") if value.kind is Kind.DECIMAL else str(value.data)


def attributes(source: Any) -> Known:
    """The top-level attributes that a part of a command reads or writes: its keys, whatever its condition, filter or edits name,
    and what its answer shows."""
    match source:
        case row_commands.Get(table):
            return _with_shown(set(table.key_schema.names), source.shown, None)
        case row_commands.Read():
            schema = source.table.key_schema if source.index is None else source.index.key_schema
            names = _names_of_range(source, schema)
            names.update(_names_in(source.filter))
            shows = None if source.whole_rows or source.index is None else source.index.shown
            return _with_shown(names, source.shown, shows)
        case Write():
            return _attributes_of_write(source)
        case (
            row_commands.Load()
            | backup_commands.RestoreTable()
            | vector_commands.SearchVectors()
            | job_commands.AdvanceJob()
        ):
            return EVERYTHING
    return None


_WHOLE_ROWS = frozenset({Returns.OLD, Returns.NEW})


def _attributes_of_write(write: Write) -> Known:
    if not _WHOLE_ROWS.isdisjoint(write.shown):
        return EVERYTHING  # the whole row is shown
    names = {*write.table.key_schema.names, *_names_in(write.condition)}
    match write.change:
        case Replace(contents):
            names.update(contents.latest)
        case Edit(actions):
            names.update(_names_of_edit(actions))
        case _:
            pass
    return frozenset(names)


def _names_of_edit(actions: tuple[Action, ...]) -> Iterator[str]:
    yield from names_of(actions)
    for action in actions:
        if isinstance(action, SetTo):
            yield from (str(path[0]) for path in paths_read(action.operand))


def _names_of_range(read: row_commands.Read, schema: KeySchema) -> set[str]:
    """The key columns that a range is about."""
    if partition_of(read) is None:
        return set()
    lower, upper = read.range
    bounds_sort = lower.sort != LOWEST or upper.sort != HIGHEST
    return set(schema.names if bounds_sort else [column.name for column in schema.partition])


def _names_in(predicate: Predicate) -> set[str]:
    return set() if predicate is ALWAYS else {str(path[0]) for path in paths_of(predicate)}


def _with_shown(names: set[str], shown: row_commands.Shown | None, limit: frozenset[str] | None) -> Known:
    """`names` with those that are shown: the reader's choice, or else whatever the index has (None: everything)."""
    if shown is not None:
        return frozenset(names | shown.names)
    return EVERYTHING if limit is None else frozenset(names | limit)


def selected(source: Any) -> str | None:
    """What a read shows of its rows: ALL_ATTRIBUTES, ALL_PROJECTED_ATTRIBUTES, SPECIFIC_ATTRIBUTES or COUNT; None: it is no
    read."""
    match source:
        case row_commands.Get() | row_commands.Read():
            if source.shown is not None:
                return "SPECIFIC_ATTRIBUTES" if source.shown.names else "COUNT"
            is_projected = (
                isinstance(source, row_commands.Read) and source.index is not None and not source.whole_rows
            )
            return "ALL_PROJECTED_ATTRIBUTES" if is_projected else "ALL_ATTRIBUTES"
    return None
