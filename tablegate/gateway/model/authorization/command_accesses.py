"""The accesses of commands: for each type of command, a function that returns permissions and resources.

The permission follows from the command. Some permissions are finer than the commands (ALTER or TAG of a table). Then
the purpose of the request selects one of those that the command can need (`_finer`), and never another one. So a wrong
purpose cannot permit forbidden commands.

A test checks that the table has every type of command. Only unrestricted callers may run a command that is not in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tablegate.gateway.model.authorization.accesses import ANYWHERE, Access, Path, partition_of
from tablegate.gateway.model.authorization.permissions import Channel, Permission, Purpose
from tablegate.gateway.model.commands import (
    account_commands,
    backup_commands,
    commands,
    job_commands,
    replica_commands,
    row_commands,
    search_commands,
    snapshot_commands,
    stream_commands,
    table_commands,
    transaction_commands,
    tunnel_commands,
    vector_commands,
)
from tablegate.gateway.model.commands.writes import CheckOnly, Edit, Remove, Replace
from tablegate.gateway.model.tables.backups import Backup, BackupKind
from tablegate.gateway.model.tables.tables import RESOURCE_POLICIES, Table

_ALTERING = (
    Permission.ALTER, Permission.TAG, Permission.UNTAG, Permission.ALTER_EXPIRY, Permission.WRITE_POLICY,
    Permission.REMOVE_POLICY, Permission.CREATE_INDEX, Permission.DROP_INDEX, Permission.ALTER_FEATURES,
    Permission.ADD_COLUMNS, Permission.DROP_COLUMNS,
    Permission.ALTER_INSIGHTS, Permission.ALTER_DELIVERIES, Permission.ALTER_RECOVERY,
)  # fmt: skip
_READING_STREAMS = (Permission.DESCRIBE_STREAM, Permission.POSITION_STREAM, Permission.READ_STREAM)


def _finer(purpose: Purpose, *possible: Permission) -> Permission:
    """Return the permission of the purpose that is among the possible ones, else the first possible one."""
    for permission in purpose.permissions:
        if permission in possible:
            return permission
    return possible[0]


def _of_table(command: Any, table: Table, permission: Permission, purpose: Purpose) -> Access:
    return Access(permission, purpose.channel, table.namespace, table.name, command, table)


def _on_table(permission: Permission) -> Callable[[Any, Purpose], Iterator[Access]]:
    """Return the function of a command that accesses its whole table, with one permission."""

    def accesses(command: Any, purpose: Purpose) -> Iterator[Access]:
        yield _of_table(command, command.table, permission, purpose)

    return accesses


def _of_get(command: row_commands.Get, purpose: Purpose) -> Iterable[Access]:
    table = command.table
    return (Access(Permission.READ, purpose.channel, table.namespace, table.name, command, table),)


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
    yield Access(permission, purpose.channel, table.namespace, path, command, table)


def _of_search(command: vector_commands.SearchVectors, purpose: Purpose) -> Iterator[Access]:
    """Return the accesses to the table and its index. The resulting rows are not known before the search."""
    table = command.table
    for path in (table.name, f"{table.name}/index/{command.index.name}"):
        yield Access(Permission.SEARCH, purpose.channel, table.namespace, path, command, table)


_CHANGES: Mapping[type, Permission] = {
    Replace: Permission.PUT,
    Edit: Permission.UPDATE,
    Remove: Permission.DELETE,
    CheckOnly: Permission.CHECK,
}


def _of_group(command: row_commands.WriteGroup, purpose: Purpose) -> Iterator[Access]:
    for write in command.writes:
        table = write.table
        yield Access(_CHANGES[type(write.change)], purpose.channel, table.namespace, table.name, write, table)


def _of_stage(command: transaction_commands.StageWrites, purpose: Purpose) -> Iterator[Access]:
    for group in command.groups:
        yield from _of_group(group, purpose)


def _of_create(command: table_commands.CreateTable, purpose: Purpose) -> Iterator[Access]:
    for permission in (Permission.CREATE, *purpose.also):
        yield Access(permission, purpose.channel, command.namespace, command.name, command)


def _of_alter(command: table_commands.AlterTable, purpose: Purpose) -> Iterator[Access]:
    table = command.table
    permission = _finer(purpose, *_ALTERING)
    paths = _paths_of_policies(command) if permission in _OF_POLICIES else [table.name]
    for path in paths:
        yield Access(permission, purpose.channel, table.namespace, path, command, table)
    yield from _also(command, table, purpose)


def _of_alterations(
    command: table_commands.AlterTables | replica_commands.ReplicaCommand, purpose: Purpose
) -> Iterator[Access]:
    for alteration in command.alterations:
        yield from _of_alter(alteration, purpose)


def _also(
    command: table_commands.AlterTable | stream_commands.Follow, table: Table, purpose: Purpose
) -> Iterator[Access]:
    """Return the accesses of `Purpose.also`. READ_STREAM covers all streams, because followers receive all changes of a
    table."""
    for permission in purpose.also:
        path = f"{table.name}/stream/{ANYWHERE}" if permission is Permission.READ_STREAM else table.name
        yield Access(permission, purpose.channel, table.namespace, path, command, table)


_OF_POLICIES = frozenset({Permission.WRITE_POLICY, Permission.REMOVE_POLICY})


def _paths_of_policies(command: table_commands.AlterTable) -> Iterator[Path]:
    """Return the resources with changed policies: the table, or streams of it."""
    table, new = command.table, (command.properties or {}).get(RESOURCE_POLICIES, {})
    old = table.properties.get(RESOURCE_POLICIES, {})
    labels = [label for label in dict.fromkeys((*old, *new)) if old.get(label) != new.get(label)]
    for label in labels or [""]:
        yield f"{table.name}/stream/{label}" if label else table.name


def _of_followers(command: stream_commands.ListFollowers, purpose: Purpose) -> Iterator[Access]:
    permission = _finer(purpose, Permission.DESCRIBE_FEATURES, Permission.ALTER_DELIVERIES)
    yield _of_table(command, command.table, permission, purpose)


def _of_follower(command: stream_commands.Follow, purpose: Purpose) -> Iterator[Access]:
    yield _of_table(command, command.table, Permission.ALTER_DELIVERIES, purpose)
    yield from _also(command, command.table, purpose)


def _of_started_job(command: job_commands.StartJob, purpose: Purpose) -> Iterator[Access]:
    """Return the accesses of a job, which reads or writes the whole table.

    An export also needs the permission to scan its table, a bulk put the permission to put rows. So denials of these
    apply to jobs.
    """
    job_permission = _finer(purpose, Permission.EXPORT, Permission.IMPORT, Permission.LOAD)
    for permission in (job_permission, *_ALSO_OF_JOBS.get(job_permission, ())):
        yield Access(
            permission, purpose.channel, command.namespace, command.table_name, command, command.source
        )


_ALSO_OF_JOBS = {Permission.EXPORT: (Permission.SCAN,), Permission.LOAD: (Permission.PUT,)}


def _of_job_list(command: job_commands.ListJobs, purpose: Purpose) -> Iterator[Access]:
    """Return the access of a list of jobs, or of the look-up of one job to describe, cancel or deduplicate it."""
    permission = _finer(
        purpose,
        Permission.LIST_JOBS,
        Permission.DESCRIBE_JOB,
        Permission.CANCEL_JOB,
        Permission.IMPORT,
        Permission.LOAD,
    )
    path = command.path or command.table_name or ""
    yield Access(permission, purpose.channel, command.namespace, path, command)


def _of_cancelled_job(command: job_commands.CancelJob, purpose: Purpose) -> Iterator[Access]:
    job = command.job
    path = command.path or job.table_name
    yield Access(Permission.CANCEL_JOB, purpose.channel, job.namespace, path, command)


def _of_new_replicas(command: replica_commands.AddReplicas, purpose: Purpose) -> Iterator[Access]:
    yield _of_table(command, command.table, Permission.ALTER, purpose)
    yield from _of_alterations(command, purpose)
    for replica in command.replicas:
        yield from _of_create(replica.definition, purpose)


def _of_removed_replicas(command: replica_commands.RemoveReplicas, purpose: Purpose) -> Iterator[Access]:
    """Return the accesses to the remaining table and, under the same name, to the dropped ones.

    All replicas have the same table name, and their namespaces belong to one account.
    """
    yield _of_table(command, command.table, Permission.ALTER, purpose)
    yield from _of_alterations(command, purpose)
    if not command.keeps:
        yield _of_table(command, command.table, Permission.DROP, purpose)


def backup_path(backup: Backup) -> Path:
    """Return the path of a backup below its table, as in its ARN: creation time and id (0 for a system backup)."""
    number = 0 if backup.kind is BackupKind.SYSTEM else backup.id & 0xFFFF_FFFF
    return f"{backup.table_name}/backup/{backup.created_at_ms:014}-{number:08x}"


def _of_deleted_backup(command: backup_commands.DeleteBackup, purpose: Purpose) -> Iterator[Access]:
    backup = command.backup
    yield Access(Permission.DELETE_BACKUP, purpose.channel, backup.namespace, backup_path(backup), command)


_COPIED = (
    (Permission.READ, Channel.SINGLE), (Permission.QUERY, Channel.SINGLE), (Permission.SCAN, Channel.SINGLE),
    (Permission.PUT, Channel.SINGLE), (Permission.UPDATE, Channel.SINGLE), (Permission.DELETE, Channel.SINGLE),
    (Permission.PUT, Channel.BATCH),
)  # fmt: skip


def _of_restore(command: backup_commands.RestoreTable, purpose: Purpose) -> Iterator[Access]:
    """Return the accesses to the source, the new table, and all row operations on it (service authorization reference).

    The new table exposes the rows of the source, so the permission to scan the original table is needed too.
    """
    definition, source = command.definition, command.source
    if isinstance(source, Table):
        name, restore_permission = source.name, Permission.RESTORE_MOMENT
        yield _of_table(command, source, restore_permission, purpose)
    else:
        name, restore_permission = source.table_name, Permission.RESTORE_BACKUP
        yield Access(restore_permission, purpose.channel, source.namespace, backup_path(source), command)
    yield Access(Permission.SCAN, Channel.SINGLE, source.namespace, name, command)
    for permission, channel in ((restore_permission, purpose.channel), *_COPIED):
        yield Access(permission, channel, definition.namespace, definition.name, command)


def _of_count(command: table_commands.CountRows, purpose: Purpose) -> Iterator[Access]:
    """Return the access of the request's own permission, because counts are part of its answer."""
    yield _of_table(command, command.table, purpose.permissions[0], purpose)


def _of_stream(
    command: stream_commands.ListShards | stream_commands.FindPosition | stream_commands.ReadChanges,
    purpose: Purpose,
) -> Iterator[Access]:
    is_read = isinstance(command, stream_commands.ReadChanges)
    possible = (Permission.READ_STREAM,) if is_read else _READING_STREAMS
    stream = command.stream
    path = f"{stream.table_name}/stream/{stream.label}"
    yield Access(_finer(purpose, *possible), purpose.channel, stream.namespace, path, command)


def _of_end(
    command: transaction_commands.CommitTransaction | transaction_commands.AbortTransaction, purpose: Purpose
) -> Iterator[Access]:
    """Return the access of a commit or an abort.

    Writes are authorized when they are staged. Ending needs its own permission, because a known transaction id must not
    be enough to end a transaction on a foreign table or partition.
    """
    is_commit = isinstance(command, transaction_commands.CommitTransaction)
    permission = Permission.COMMIT if is_commit else Permission.ABORT
    if command.locked_partition is None:
        yield Access(permission, purpose.channel, "", ANYWHERE, command)
    else:
        yield _of_table(command, command.locked_partition.table, permission, purpose)


def _of_account(permission: Permission) -> Callable[[Any, Purpose], Iterator[Access]]:
    def accesses(command: Any, purpose: Purpose) -> Iterator[Access]:
        yield Access(permission, purpose.channel, getattr(command, "namespace", None) or "", "", command)

    return accesses


_LOOK_UPS: Mapping[type, Permission] = {
    table_commands.ListTables: Permission.LIST,
    stream_commands.ListStreams: Permission.LIST_STREAMS,
    account_commands.GetProperties: Permission.READ_ACCOUNT,
    backup_commands.ListBackups: Permission.LIST_BACKUPS,
    search_commands.ListSearchIndexes: Permission.LIST_FEATURES,
}


def _of_listing(
    command: table_commands.ListTables
    | stream_commands.ListStreams
    | backup_commands.ListBackups
    | search_commands.ListSearchIndexes
    | account_commands.GetProperties,
    purpose: Purpose,
) -> Iterator[Access]:
    """Return an access if the list is the answer. A list that only finds a resource needs none: the next command is
    checked."""
    permission = _LOOK_UPS[type(command)]
    if permission in purpose.permissions:
        yield Access(permission, purpose.channel, command.namespace, "", command)


def _of_listed_tunnels(command: tunnel_commands.ListTunnels, purpose: Purpose) -> Iterator[Access]:
    table = command.table
    path = f"{table.name}/stream/{ANYWHERE}"
    yield Access(Permission.DESCRIBE_STREAM, purpose.channel, table.namespace, path, command, table)


def _of_tunnel(command: tunnel_commands.ClientCommand, purpose: Purpose) -> Iterator[Access]:
    """Return the accesses of a tunnel's client: to all rows, all changes, or both."""
    tunnel = command.tunnel
    if tunnel.type.has_rows:
        yield Access(Permission.SCAN, purpose.channel, tunnel.namespace, tunnel.table_name, command)
    if tunnel.type.has_changes:
        path = f"{tunnel.table_name}/stream/{ANYWHERE}"
        yield Access(Permission.READ_STREAM, purpose.channel, tunnel.namespace, path, command)


def _of_look_up(
    command: table_commands.FindTable
    | stream_commands.FindStream
    | transaction_commands.FindTransaction
    | tunnel_commands.FindTunnel,
    purpose: Purpose,
) -> Iterator[Access]:
    """Return no access. The result is authorized under its own name (security/gate.py), a transaction when it ends, a
    tunnel when it is used."""
    yield from ()


ACCESSES: Mapping[type, Callable[[Any, Purpose], Iterable[Access]]] = {
    row_commands.Get: _of_get,
    row_commands.ReadAll: _of_read_all,
    row_commands.Read: _of_read,
    vector_commands.SearchVectors: _of_search,
    search_commands.CreateSearchIndex: _on_table(Permission.CREATE_INDEX),
    search_commands.AlterSearchIndex: _on_table(Permission.CREATE_INDEX),
    search_commands.SwapSearchIndexes: _on_table(Permission.CREATE_INDEX),
    search_commands.DropSearchIndex: _on_table(Permission.DROP_INDEX),
    search_commands.ListSearchIndexes: _of_listing,
    search_commands.DescribeSearchIndex: _on_table(Permission.DESCRIBE),
    search_commands.SearchRows: _on_table(Permission.SCAN),  # the results can be any rows
    row_commands.WriteGroup: _of_group,
    row_commands.BulkLoad: _on_table(Permission.PUT),
    table_commands.FindTable: _of_look_up,
    table_commands.ListTables: _of_listing,
    table_commands.CreateTable: _of_create,
    table_commands.AlterTable: _of_alter,
    table_commands.AlterTables: _of_alterations,
    table_commands.DropTable: _on_table(Permission.DROP),
    job_commands.StartJob: _of_started_job,
    job_commands.ListJobs: _of_job_list,
    job_commands.ListUnfinishedJobs: _of_account(Permission.ADMINISTER),
    job_commands.CancelJob: _of_cancelled_job,
    job_commands.AdvanceJob: _of_account(Permission.ADMINISTER),
    stream_commands.Follow: _of_follower,
    stream_commands.Unfollow: _on_table(Permission.ALTER_DELIVERIES),
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
    backup_commands.KeepHistory: _on_table(Permission.ALTER_RECOVERY),
    backup_commands.CreateBackup: _on_table(Permission.CREATE_BACKUP),
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
    transaction_commands.BeginTransaction: _on_table(Permission.BEGIN),
    transaction_commands.StageWrites: _of_stage,
    transaction_commands.FindTransaction: _of_look_up,
    transaction_commands.CommitTransaction: _of_end,
    transaction_commands.AbortTransaction: _of_end,
    tunnel_commands.CreateTunnel: _on_table(Permission.ALTER_DELIVERIES),
    tunnel_commands.DeleteTunnel: _on_table(Permission.ALTER_DELIVERIES),
    tunnel_commands.ListTunnels: _of_listed_tunnels,
    tunnel_commands.FindTunnel: _of_look_up,
    tunnel_commands.ConnectTunnel: _of_tunnel,
    tunnel_commands.HeartbeatTunnel: _of_tunnel,
    tunnel_commands.LeaveTunnel: _of_tunnel,
    tunnel_commands.FindChannel: _of_tunnel,
    tunnel_commands.SaveCheckpoint: _of_tunnel,
}
"""The function for each type of command. It returns the accesses of a command for a purpose."""

_OF_UNKNOWN = _of_account(Permission.ADMINISTER)


def accesses_of(command: commands.AnyCommand, purpose: Purpose) -> Iterable[Access]:
    """Return all accesses of a command."""
    return ACCESSES.get(type(command), _OF_UNKNOWN)(command, purpose)
