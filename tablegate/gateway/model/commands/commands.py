"""All commands: the closed union of the engine's input.

Each type of command is in the module of its capability, beside this one. `engine.run` takes a list of commands and
returns a list of the same length. It has the outcome of each command, or its GatewayError. Commands of one list are
independent of each other.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, get_args

from tablegate.gateway.model.commands.account_commands import AccountCommand
from tablegate.gateway.model.commands.backup_commands import BackupCommand
from tablegate.gateway.model.commands.command import R
from tablegate.gateway.model.commands.job_commands import JobCommand
from tablegate.gateway.model.commands.replica_commands import ReplicaCommand
from tablegate.gateway.model.commands.row_commands import BulkLoad, Get, Read, ReadAll, WriteGroup
from tablegate.gateway.model.commands.search_commands import SearchCommand
from tablegate.gateway.model.commands.snapshot_commands import SnapshotCommand
from tablegate.gateway.model.commands.stream_commands import StreamCommand
from tablegate.gateway.model.commands.table_commands import TableCommand
from tablegate.gateway.model.commands.transaction_commands import TransactionCommand
from tablegate.gateway.model.commands.tunnel_commands import TunnelCommand
from tablegate.gateway.model.commands.vector_commands import SearchVectors

ReadCommand = Get | ReadAll | Read | SearchVectors
READS = frozenset(get_args(ReadCommand))

RowCommand = ReadCommand | WriteGroup
"""Commands that read or write rows. The server's tick joins those of many requests in one list."""

DefinitionCommand = (
    TableCommand
    | SnapshotCommand
    | BackupCommand
    | JobCommand
    | AccountCommand
    | StreamCommand
    | ReplicaCommand
    | TunnelCommand
    | SearchCommand
)
"""Commands about tables, streams, tunnels, backups, jobs, replicas and search indexes."""

SingleCommand = BulkLoad | TransactionCommand | DefinitionCommand
"""Commands that run in separate transactions."""

AnyCommand = RowCommand | SingleCommand

Exchange = Generator[list[AnyCommand], list[Any], R]
"""The steps of a request: yields lists of commands, is sent their outcomes, returns an R.

A whole request returns a Reply (gateway/http.py). `one` and `each` (gateway/exchanges.py) give the outcomes their
types.
"""
