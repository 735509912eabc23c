"""Changes of a stream, the shards in which they stand, and the streams themselves. Dialect-neutral.

A stream belongs to one table and begins when it is enabled; a table that is enabled anew has a new stream. A shard is a
range of hash slots for a time: within a shard, sequence order is commit order, and all changes of a row are in the shard of
its slot, or in the shards that followed it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tablegate.gateway.model.commands.writes import ChangeKind, Edit, Remove, Replace, Write
from tablegate.gateway.model.expressions.updates import Action, DeleteCell, DeleteCells, Increment, PutCell
from tablegate.gateway.model.tables.tables import StreamRule
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Value


@dataclass(frozen=True, slots=True)
class Change:
    """One recorded write.

    `sequence` rises within its shard in commit order. `actions`: an update's cell actions in the order of the request,
    times and sums worked out; none where the update was not made of such. `is_noop`: the row's latest values are what they
    were before.
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
    """A stream of a table. `ended_at_ms`: when it was disabled or its table dropped; its changes can be read until they are
    past `rule.retention_ms`."""

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
        """The part of the stream's address that tells it from the table's other streams."""
        return self.rule.label


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard: its slots (first and last), the shards it came from, and once it is closed the last sequence in it.

    `trimmed`: sequences up to this one are no longer kept, or were its parents'.
    """

    number: int
    slots: tuple[int, int]
    parents: tuple[int, ...]
    opened_at_ms: int
    closed_at_ms: int | None
    last_sequence: int | None
    trimmed: int


@dataclass(frozen=True, slots=True)
class ChangePage:
    """Changes in sequence order. `next`: the sequence at which to go on; None: the shard is closed and read to its end."""

    changes: list[Change]
    next: int | None


def kind_of(write: Write) -> ChangeKind | None:
    """What a stream calls a write; None: it changes nothing."""
    match write.change:
        case Replace():
            return ChangeKind.PUT
        case Edit():
            return ChangeKind.UPDATE
        case Remove():
            return ChangeKind.DELETE
    return None


def is_noop(old: Row | None, new: Row | None) -> bool:
    """Whether a write left the latest values as they were."""
    if old is None or new is None:
        return old is new
    return old.body == new.body or old.latest == new.latest


def resolved_actions(write: Write, new: Row | None, now_ms: int) -> tuple[Action, ...]:
    """The actions of an Edit as a stream's reader can repeat them: every put with its stamp, increments as puts of their
    sums. Empty if they are not all actions on cells. Where there is no row, all of them are deletes."""
    if not isinstance(write.change, Edit):
        return ()
    found: list[Action] = []
    for action in write.change.actions:
        match action:
            case PutCell(name, value, stamp_ms):
                found.append(PutCell(name, value, now_ms if stamp_ms is None else stamp_ms))
            case Increment(name, _, stamp_ms) if new is not None:
                stamp_ms = now_ms if stamp_ms is None else stamp_ms
                sums = [cell.value for cell in new.cells.get(name, ()) if cell.stamp_ms == stamp_ms]
                found.append(PutCell(name, sums[0] if sums else new.latest[name], stamp_ms))
            case DeleteCell() | DeleteCells():
                found.append(action)
            case _:
                return ()
    return tuple(found)


# Where to begin reading a shard


@dataclass(frozen=True, slots=True)
class Oldest:
    """The oldest change that is kept."""


@dataclass(frozen=True, slots=True)
class Latest:
    """The change that will come next."""


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first change made at that time or later."""

    at_ms: int
