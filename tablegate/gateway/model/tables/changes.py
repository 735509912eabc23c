"""Streams of changes, their shards, and the changes. Independent of the dialects.

A stream belongs to one table and begins when it is enabled. Enabling it again creates a new stream. A shard is a range
of shard hashes for a time. Within a shard, sequence order is commit order. All changes of a row are in the shard of its
partition's shard hash, or in the successors of that shard.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tablegate.gateway.model.commands.writes import ChangeKind, Edit, Remove, Replace, Write
from tablegate.gateway.model.expressions.updates import Action, DeleteCell, DeleteCells, Increment, PutCell
from tablegate.gateway.model.tables.tables import StreamRule
from tablegate.gateway.model.values.keys import KeySchema, partition_hash
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Value

SHARD_HASHES = 256
"""Number of shard hashes, and maximum number of open shards."""


def shard_hash(partition: bytes) -> int:
    """Return the shard hash of a partition: the top byte of its partition_hash. Stored shards depend on it."""
    return partition_hash(partition) >> 24


@dataclass(frozen=True, slots=True)
class Change:
    """One recorded write.

    - `sequence`: increases within its shard in commit order.
    - `actions`: the actions of an update of cells in the order of the request, with resolved times and sums (see
      resolved_actions). Empty for all other writes, updates of documents included.
    - `is_noop`: the latest values of the row did not change.
    """

    shard: int
    sequence: int
    kind: ChangeKind
    key_values: Mapping[str, Value]
    old: Row | None
    new: Row | None
    actions: tuple[Action, ...]
    actor: str
    at_ms: int
    is_noop: bool


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream of a table.

    `ended_at_ms`: the time when it was disabled or its table dropped. Its changes can be read until `rule.retention_ms`
    has passed.
    """

    id: int
    table_id: int
    namespace: str
    table_name: str
    key_schema: KeySchema
    rule: StreamRule
    opened_at_ms: int
    ended_at_ms: int | None

    @property
    def label(self) -> str:
        """The part of the stream's address that distinguishes the streams of a table."""
        return self.rule.label


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard: its first and last shard hash, its parent shards, and once it is closed its last sequence.

    `trimmed_sequence`: sequences up to this one are no longer retained, or belong to the parents.
    """

    number: int
    hashes: tuple[int, int]
    parents: tuple[int, ...]
    opened_at_ms: int
    closed_at_ms: int | None
    last_sequence: int | None
    trimmed_sequence: int


@dataclass(frozen=True, slots=True)
class ChangePage:
    """Changes in sequence order.

    `next`: the sequence to continue at. None if the shard is closed and was read to its end.
    """

    changes: list[Change]
    next: int | None


def kind_of(write: Write) -> ChangeKind | None:
    """Return the kind of change that a stream records for a write, None if it changes nothing."""
    match write.change:
        case Replace():
            return ChangeKind.PUT
        case Edit():
            return ChangeKind.UPDATE
        case Remove():
            return ChangeKind.DELETE
    return None


def is_noop(old: Row | None, new: Row | None) -> bool:
    """Return True if a write did not change the latest values."""
    if old is None or new is None:
        return old is new
    return old.body == new.body or old.latest == new.latest


def resolved_actions(write: Write, new: Row | None, now_ms: int) -> tuple[Action, ...]:
    """Return the actions of an Edit with explicit stamps, and increments as puts of their sums.

    Empty if some action is not on cells. Without a new row, increments are not on cells either.
    """
    if not isinstance(write.change, Edit):
        return ()
    actions: list[Action] = []
    for action in write.change.actions:
        match action:
            case PutCell(name, value, stamp_ms):
                actions.append(PutCell(name, value, now_ms if stamp_ms is None else stamp_ms))
            case Increment(name, _, stamp_ms) if new is not None:
                stamp_ms = now_ms if stamp_ms is None else stamp_ms
                sums = [cell.value for cell in new.cells.get(name, ()) if cell.stamp_ms == stamp_ms]
                actions.append(PutCell(name, sums[0] if sums else new.latest[name], stamp_ms))
            case DeleteCell() | DeleteCells():
                actions.append(action)
            case _:
                return ()
    return tuple(actions)


# Positions to begin reading a shard at


@dataclass(frozen=True, slots=True)
class Oldest:
    """The oldest retained change."""


@dataclass(frozen=True, slots=True)
class Latest:
    """The next change to come."""


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first change at this time or later."""

    at_ms: int
