"""Commands for change streams and their followers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tablegate.gateway.model.commands.command import BaseCommand
from tablegate.gateway.model.tables.changes import AtTime, ChangePage, Latest, Oldest, Shard, Stream
from tablegate.gateway.model.tables.tables import Table


@dataclass(frozen=True, slots=True)
class ListStreams(BaseCommand[list[Stream]]):
    """List the streams of a namespace, or of one table, by name and age. Outcome: list of Stream."""

    namespace: str
    table_name: str | None = None


@dataclass(frozen=True, slots=True)
class FindStream(BaseCommand[Stream]):
    """Look a stream up by its table's name and its label. Outcome: Stream. Error: StreamMissing."""

    namespace: str
    table_name: str
    label: str


@dataclass(frozen=True, slots=True)
class ListShards(BaseCommand[list[Shard]]):
    """List the shards of a stream, parents before children. Outcome: list of Shard."""

    stream: Stream


@dataclass(frozen=True, slots=True)
class FindPosition(BaseCommand[int]):
    """Find where to begin reading a shard. Outcome: the sequence to pass to ReadChanges. Error: StreamMissing."""

    stream: Stream
    shard: int
    at: Oldest | Latest | AtTime


@dataclass(frozen=True, slots=True)
class ReadChanges(BaseCommand[ChangePage]):
    """Read changes of a shard from a sequence on, at most `limit` of them.

    `size_bytes`: maximum size of the row bodies. The first change may exceed it. Outcome: ChangePage. Without new
    changes it is empty, and `next` is the requested sequence. Errors: StreamMissing, PositionExpired.
    """

    stream: Stream
    shard: int
    sequence: int
    limit: int
    size_bytes: int = 1 << 20


@dataclass(frozen=True, slots=True)
class Reshard(BaseCommand[Table]):
    """Give a table's stream another number of open shards. Outcome: Table. Errors: StaleTable, StreamMissing."""

    table: Table
    shards: int


@dataclass(frozen=True, slots=True)
class Follow(BaseCommand[Table]):
    """Add a follower, which receives all later changes of a table, and merge `properties` as AlterTable does.

    `target`: the destination, in terms of its `kind`. Outcome: Table. Error: StaleTable.
    """

    table: Table
    kind: str
    target: str
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unfollow(BaseCommand[Table]):
    """End a follower after the changes that are written so far. Outcome: Table. Error: StaleTable."""

    table: Table
    kind: str
    target: str
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ListFollowers(BaseCommand[list[str]]):
    """List the targets of a kind that follow a table or have pending changes. Outcome: list of targets."""

    table: Table
    kind: str


StreamCommand = (
    ListStreams
    | FindStream
    | ListShards
    | FindPosition
    | ReadChanges
    | Reshard
    | Follow
    | Unfollow
    | ListFollowers
)
