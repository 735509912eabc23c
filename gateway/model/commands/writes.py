"""One write, and the pure step that applies it to the row as it was.

`apply` is the whole meaning of a conditional write: condition first, then the change, then the dialect's own rule on the
result. It reads no clock and no database, so the engine can replay it, reorder nothing, and test it alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from tablegate.gateway.model.errors import ConditionFailed
from tablegate.gateway.model.expressions import updates
from tablegate.gateway.model.expressions.predicates import ALWAYS, Predicate, View, failing_part
from tablegate.gateway.model.expressions.updates import Action, EditContext
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import AUTO_INCREMENT, Key
from tablegate.gateway.model.values.rows import TICKS_PER_MS, Contents, Row
from tablegate.gateway.model.values.values import Kind, Value


@dataclass(frozen=True, slots=True)
class Replace:
    """Make the row's contents exactly these (key columns included)."""

    contents: Contents


@dataclass(frozen=True, slots=True)
class Edit:
    """Apply actions. Where there is no row: make one from its key if `may_create`, else nothing happens."""

    actions: tuple[Action, ...]
    may_create: bool = True


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete the row, if there is one."""


@dataclass(frozen=True, slots=True)
class CheckOnly:
    """Change nothing; only the condition matters."""


Change = Replace | Edit | Remove | CheckOnly


class ChangeKind(Enum):
    """What the write was. Insert, modify or remove follows from the old and the new row."""

    PUT = "put"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class StreamRecording:
    """What a stream is told of a write that is carried out later than it was made (engine/rows/local_transactions.py), or was
    made elsewhere (engine/replication/replication.py). `kind` None: nothing."""

    kind: ChangeKind | None
    actions: tuple[Action, ...]


class Returns(Enum):
    """What the answer to a write shows of the row."""

    NOTHING = "NONE"
    OLD = "ALL_OLD"
    CHANGED_OLD = "UPDATED_OLD"
    NEW = "ALL_NEW"
    CHANGED_NEW = "UPDATED_NEW"


class ReturnedRows(NamedTuple):
    """What the answer to a write shows of the row: where it was carried out, and where its condition was false."""

    done: Returns = Returns.NOTHING
    failed: Returns = Returns.NOTHING


SHOWN_NOT = ReturnedRows()


RowRule = Callable[[Row | None, Contents], Contents]
"""A dialect's say on what a write leaves behind: (old row, new contents) -> contents. It restores kinds that the dialect
cannot spell, and raises RowRuleViolated or BadKey where the result breaks the dialect's rules. Pure."""


class Write(NamedTuple):
    """One write of one row.

    `actor` is whoever a change stream names: "" for clients, "expiry" for the sweep. `view` is the asking dialect's.
    `recorded`: what change streams are told, where it does not follow from `change`. `shown`: what the answer shows of the row.
    `stamp`: of a Replace or Remove that was made in a replica of the table, when it was (ticks): it is carried out only if
    nothing later has been written here.
    """

    table: Table
    key: Key
    change: Change
    condition: Predicate = ALWAYS
    view: View | None = None
    rule: RowRule | None = None
    actor: str = ""
    recorded: StreamRecording | None = None
    shown: ReturnedRows = SHOWN_NOT
    stamp: int | None = None


def apply(write: Write, old: Row | None, now: int) -> Row | None:
    """The row after the write (None: there is none). `now` is in ticks of 100 ns since 1970.

    Raises ConditionFailed with the first conjunct that is false, BadPath, BadOperand, NumberOutOfRange, and what the
    write's rule raises.
    """
    stored = old
    if write.stamp is not None:
        return _later(write, stored, write.stamp)
    if (
        write.table.rules.expiry is not None and not write.actor
    ):  # the sweep sees what has expired, clients do not
        old = write.table.visible(stored, now // 10_000)
    if write.condition is not ALWAYS:
        failed = failing_part(write.condition, old, write.view)
        if failed is not None:
            raise ConditionFailed(failed, old)
    match write.change:
        case Replace(contents):
            pass
        case Edit(actions, may_create):
            if old is None and not may_create:
                return None
            table = write.table
            rules = table.rules
            key_values = dict(zip(table.key_schema.names, write.key.values, strict=True))
            context = EditContext(key_values, now // 10_000, rules.stamped, rules.max_versions, write.view)
            contents = updates.edit(old, actions, context)
        case Remove():
            return None
        case CheckOnly():
            return stored
    if write.rule is not None:
        contents = write.rule(old, contents)
    modified_at = now if stored is None or now > stored.modified_at else stored.modified_at + 1
    row = Row(write.key.position, contents, modified_at)
    if write.table.rules.expiry is not None:
        row.expires_at_ms = write.table.expires_at_ms(row)
    return row


def _later(write: Write, stored: Row | None, stamp: int) -> Row | None:
    """What is there after a write that was made elsewhere at a time: the later of the two, in an order that is the same in every
    replica. At the same time a row comes after a delete, and of two rows that which has the greater bytes."""
    match write.change:
        case Replace(contents):
            if stored is not None and _rank(stored.modified_at, stored.contents) >= _rank(stamp, contents):
                return stored
            row = Row(write.key.position, contents, stamp)
            if write.table.rules.expiry is not None:
                row.expires_at_ms = write.table.expires_at_ms(row)
            return row
        case Remove():
            return None if stored is None or stored.modified_at < stamp else stored
    raise TypeError(write.change)


def _rank(stamp: int, contents: Contents) -> tuple[int, bytes, bytes]:
    return stamp, contents.body, contents.kinds or b""


def deleted_at(at_ms: int, old: Row) -> int:
    """The time, in ticks, of a delete of which a stream tells: later than the row that went."""
    return max(at_ms * TICKS_PER_MS, old.modified_at + 1)


def numbered(write: Write, number: int) -> Write:
    """A write with a number for the auto-increment column of its key, and of its contents if it has any."""
    table = write.table
    values = tuple(
        Value(Kind.INT64, number) if value is AUTO_INCREMENT else value  # type: ignore[comparison-overlap]
        for value in write.key.values
    )
    change = write.change
    if isinstance(change, Replace):
        names = table.key_schema.names
        change = Replace(change.contents.replacing(dict(zip(names, values, strict=True)), names))
    return write._replace(key=Key(values, table.key_schema.position(values)), change=change)
