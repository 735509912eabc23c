"""The cost of each type of command: the limits of a quota that apply to it, and the units and bytes that it takes.

In all dialects, a read unit is 4 KiB and a write unit is 1 KiB of a row, rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, get_args

from tablegate.gateway.model.authorization import quotas
from tablegate.gateway.model.commands import (
    account_commands,
    backup_commands,
    job_commands,
    replica_commands,
    row_commands,
    search_commands,
    stream_commands,
    table_commands,
    transaction_commands,
    tunnel_commands,
    vector_commands,
)
from tablegate.gateway.model.commands.commands import AnyCommand
from tablegate.gateway.model.commands.snapshot_commands import SnapshotCommand
from tablegate.gateway.model.commands.tunnel_commands import ClientCommand
from tablegate.gateway.model.commands.writes import Edit, Replace
from tablegate.gateway.model.tables.changes import ChangePage
from tablegate.gateway.model.tables.jobs import Job
from tablegate.gateway.model.tables.namespaces import is_reserved
from tablegate.gateway.model.tables.pages import Page


class CommandCost(Enum):
    """The limits that apply to a command, besides the rate of requests."""

    NOTHING = "nothing"
    READS = "reads"  # read units
    WRITES = "writes"  # write units and bytes
    STORES = "stores"  # bytes, written in the background
    MAKES_TABLES = "makes tables"
    MAKES_AND_STORES = "makes tables and stores"


COSTS: Mapping[type, CommandCost] = {
    **dict.fromkeys(
        (
            row_commands.Get,
            row_commands.ReadAll,
            row_commands.Read,
            vector_commands.SearchVectors,
            search_commands.SearchRows,
            stream_commands.ReadChanges,
        ),
        CommandCost.READS,
    ),
    **dict.fromkeys(
        (row_commands.WriteGroup, row_commands.BulkLoad, transaction_commands.StageWrites), CommandCost.WRITES
    ),
    backup_commands.CreateBackup: CommandCost.STORES,
    **dict.fromkeys((table_commands.CreateTable, replica_commands.AddReplicas), CommandCost.MAKES_TABLES),
    **dict.fromkeys(
        (backup_commands.RestoreTable, job_commands.StartJob, job_commands.AdvanceJob),
        CommandCost.MAKES_AND_STORES,
    ),
    **dict.fromkeys(
        (
            table_commands.FindTable,
            table_commands.ListTables,
            table_commands.AlterTable,
            table_commands.AlterTables,
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
            search_commands.CreateSearchIndex,
            search_commands.AlterSearchIndex,
            search_commands.SwapSearchIndexes,
            search_commands.DropSearchIndex,
            search_commands.ListSearchIndexes,
            search_commands.DescribeSearchIndex,
            transaction_commands.BeginTransaction,
            transaction_commands.FindTransaction,
            transaction_commands.CommitTransaction,
            transaction_commands.AbortTransaction,
            *get_args(ClientCommand),
            tunnel_commands.CreateTunnel,
            tunnel_commands.DeleteTunnel,
            tunnel_commands.ListTunnels,
            tunnel_commands.FindTunnel,
            # Commands of administrators, which have no quotas.
            *get_args(SnapshotCommand),
            stream_commands.Reshard,
            job_commands.ListUnfinishedJobs,
        ),
        CommandCost.NOTHING,
    ),
}
"""The cost of each type of command. A test checks that none is missing."""
OF_TABLES = frozenset({CommandCost.MAKES_TABLES, CommandCost.MAKES_AND_STORES})
RATE_OF = {CommandCost.READS: quotas.READ_UNITS, CommandCost.WRITES: quotas.WRITE_UNITS}


def min_added_bytes(command: AnyCommand) -> int:
    """Return the minimum number of bytes that a command adds, as far as known before it runs. 0 if it adds none."""
    match command:
        case row_commands.WriteGroup():
            return int(_puts_anything((command,)))
        case transaction_commands.StageWrites():
            return int(_puts_anything(command.groups))
        case row_commands.BulkLoad():
            return 1
        case backup_commands.RestoreTable() | backup_commands.CreateBackup():
            return max(1, command.size_bytes)
        case job_commands.StartJob():
            return int(command.stores_rows)
        case job_commands.AdvanceJob():
            return _bytes_put_by(command)
    return 0


def _puts_anything(groups: Iterable[row_commands.WriteGroup]) -> bool:
    """False if groups only delete and check, which is always admitted."""
    return any(isinstance(write.change, (Replace, Edit)) for group in groups for write in group.writes)


def _bytes_put_by(command: job_commands.AdvanceJob) -> int:
    """Return the bytes of the rows that a step of a job puts into tables of its caller."""
    return sum(
        write.change.contents.size_bytes
        for group in command.groups
        for write in group.writes
        if isinstance(write.change, Replace) and not is_reserved(write.table.namespace)
    )


def cost_of(command: AnyCommand, outcome: Any) -> tuple[float, float, int]:
    """Return (read units, write units, added bytes) of a finished command."""
    match command, outcome:
        case row_commands.Get(), _:
            return _units(0 if outcome is None else outcome.size_bytes, quotas.READ_UNIT_BYTES), 0.0, 0
        case row_commands.ReadAll(), list():
            return _read_units([0 if row is None else row.size_bytes for row in outcome]), 0.0, 0
        case row_commands.Read(), Page():
            return _units(outcome.scanned_bytes, quotas.READ_UNIT_BYTES), 0.0, 0
        case vector_commands.SearchVectors(), list():
            return max(1.0, _read_units([nearest.row.size_bytes for nearest in outcome])), 0.0, 0
        case search_commands.SearchRows(), search_commands.SearchPage(rows=rows):
            evaluated = outcome.evaluated_bytes / quotas.READ_UNIT_BYTES
            return max(1.0, _read_units([row.size_bytes for row in rows]) + evaluated), 0.0, 0
        case stream_commands.ReadChanges(), ChangePage():
            images = [image for change in outcome.changes for image in (change.old, change.new)]
            # Changes have no billed sizes.
            read_bytes = sum(len(image.body) for image in images if image is not None)
            return _units(read_bytes, quotas.READ_UNIT_BYTES), 0.0, 0
        case row_commands.WriteGroup(), list():
            return _cost_of_writes(outcome)
        case transaction_commands.StageWrites(), list():
            parts = [_cost_of_writes(answer) for answer in outcome if isinstance(answer, list)]
            return 0.0, sum(part[1] for part in parts), sum(part[2] for part in parts)
        case row_commands.BulkLoad(), _:
            sizes = [contents.size_bytes for _, contents in command.rows]
            return 0.0, sum(_units(size, quotas.WRITE_UNIT_BYTES) for size in sizes), sum(sizes)
        case ((backup_commands.RestoreTable() | backup_commands.CreateBackup()), _):
            return 0.0, 0.0, command.size_bytes
        case job_commands.AdvanceJob(), Job():
            return 0.0, 0.0, _bytes_put_by(command)
    return 0.0, 0.0, 0


def _read_units(sizes: Iterable[int]) -> float:
    return sum(_units(size, quotas.READ_UNIT_BYTES) for size in sizes)


def _cost_of_writes(outcomes: list[Any]) -> tuple[float, float, int]:
    units, added_bytes = 0.0, 0
    for old, new in outcomes:
        old_bytes = 0 if old is None else old.size_bytes
        new_bytes = 0 if new is None else new.size_bytes
        units += _units(max(old_bytes, new_bytes), quotas.WRITE_UNIT_BYTES)
        added_bytes += new_bytes - old_bytes
    return 0.0, units, added_bytes


def _units(size_bytes: int, unit_bytes: int) -> float:
    return float(max(1, math.ceil(size_bytes / unit_bytes)))
