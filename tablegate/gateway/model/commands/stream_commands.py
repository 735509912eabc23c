"""Commands for change streams and their followers."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tablegate.gateway.model.authorization.accesses import Access, Path, also, finer, on_table
from tablegate.gateway.model.authorization.permissions import Permission, Purpose
from tablegate.gateway.model.authorization.quotas import READ_UNITS, Cost, read_units
from tablegate.gateway.model.commands.command import AccountRead, Command, ControlCommand
from tablegate.gateway.model.errors import StreamMissing
from tablegate.gateway.model.tables.changes import AtTime, ChangePage, Latest, Oldest, Shard, Stream
from tablegate.gateway.model.tables.tables import Table

_READING_STREAMS = (Permission.DESCRIBE_STREAM, Permission.POSITION_STREAM, Permission.READ_STREAM)


def _on_stream(command: Any, stream: Stream, purpose: Purpose, *possible: Permission) -> Access:
    path = f"{stream.table_name}/stream/{stream.label}"
    return Access(finer(purpose, *possible), purpose.channel, stream.namespace, path, command)


@dataclass(frozen=True, slots=True)
class ListStreams(AccountRead[list[Stream]]):
    """List the streams of a namespace, or of one table, by name and age. Outcome: list of Stream."""

    namespace: str
    table_name: str | None = None

    permission = Permission.LIST_STREAMS


@dataclass(frozen=True, slots=True)
class FindStream(ControlCommand[Stream]):
    """Look a stream up by its table's name and its label. Outcome: Stream. Error: StreamMissing."""

    namespace: str
    table_name: str
    label: str

    is_look_up = True

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        """Return none. The stream is authorized afterwards."""
        return ()

    def found_paths(
        self, outcome: Any, purpose: Purpose, named: Container[tuple[str, str]]
    ) -> Iterable[Path]:
        is_answer = isinstance(outcome, Stream | StreamMissing)
        return [f"{self.table_name}/stream/{self.label}"] if is_answer else []


@dataclass(frozen=True, slots=True)
class ListShards(ControlCommand[list[Shard]]):
    """List the shards of a stream, parents before children. Outcome: list of Shard."""

    stream: Stream

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        yield _on_stream(self, self.stream, purpose, *_READING_STREAMS)


@dataclass(frozen=True, slots=True)
class FindPosition(ControlCommand[int]):
    """Find where to begin reading a shard. Outcome: the sequence to pass to ReadChanges. Error: StreamMissing."""

    stream: Stream
    shard: int
    at: Oldest | Latest | AtTime

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        yield _on_stream(self, self.stream, purpose, *_READING_STREAMS)


@dataclass(frozen=True, slots=True)
class ReadChanges(Command[ChangePage]):
    """Read changes of a shard from a sequence on, at most `limit` of them.

    `size_bytes`: maximum size of the row bodies. The first change may exceed it. Outcome: ChangePage. Without new
    changes it is empty, and `next` is the requested sequence. Errors: StreamMissing, PositionExpired.
    """

    stream: Stream
    shard: int
    sequence: int
    limit: int
    size_bytes: int = 1 << 20

    rate = READ_UNITS

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        yield _on_stream(self, self.stream, purpose, Permission.READ_STREAM)

    def cost(self, outcome: ChangePage) -> Cost:
        images = [image for change in outcome.changes for image in (change.old, change.new)]
        # Changes have no billed sizes.
        return Cost(read_units=read_units([sum(len(image.body) for image in images if image is not None)]))


@dataclass(frozen=True, slots=True)
class Reshard(ControlCommand[Table]):
    """Give a table's stream another number of open shards. Outcome: Table. Errors: StaleTable, StreamMissing."""

    table: Table
    shards: int

    permission = Permission.ADMINISTER


@dataclass(frozen=True, slots=True)
class Follow(ControlCommand[Table]):
    """Add a follower, which receives all later changes of a table, and merge `properties` as AlterTable does.

    `target`: the destination, in terms of its `kind`. Outcome: Table. Error: StaleTable.
    """

    table: Table
    kind: str
    target: str
    properties: Mapping[str, Any] = field(default_factory=dict)

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        yield on_table(self, self.table, Permission.ALTER_DELIVERIES, purpose)
        yield from also(self, self.table, purpose)


@dataclass(frozen=True, slots=True)
class Unfollow(ControlCommand[Table]):
    """End a follower after the changes that are written so far. Outcome: Table. Error: StaleTable."""

    table: Table
    kind: str
    target: str
    properties: Mapping[str, Any] = field(default_factory=dict)

    permission = Permission.ALTER_DELIVERIES


@dataclass(frozen=True, slots=True)
class ListFollowers(ControlCommand[list[str]]):
    """List the targets of a kind that follow a table or have pending changes. Outcome: list of targets."""

    table: Table
    kind: str

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        permission = finer(purpose, Permission.DESCRIBE_FEATURES, Permission.ALTER_DELIVERIES)
        yield on_table(self, self.table, permission, purpose)
