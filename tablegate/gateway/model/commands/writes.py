"""One write, and the pure function that applies it to the old row.

`apply` evaluates the condition, makes the change, and applies the dialect's rule to the result. A write of another
replica (`Write.stamp`) has neither condition nor rule: the later of it and the row wins. `apply` reads no clock and no
database, so attempts can be repeated and tests need no server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from tablegate.gateway.model.authorization.accesses import key_text
from tablegate.gateway.model.authorization.conditions import EVERYTHING, ConditionKey, FactValues
from tablegate.gateway.model.authorization.permissions import Permission
from tablegate.gateway.model.errors import ConditionFailed
from tablegate.gateway.model.expressions import updates
from tablegate.gateway.model.expressions.evaluation import failing_part
from tablegate.gateway.model.expressions.predicates import ALWAYS, Predicate, View, paths_of
from tablegate.gateway.model.expressions.updates import Action, EditContext, SetTo, names_of, paths_read
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import AUTO_INCREMENT, Key
from tablegate.gateway.model.values.rows import TICKS_PER_MS, Contents, Row
from tablegate.gateway.model.values.values import Kind, Value


@dataclass(frozen=True, slots=True)
class Replace:
    """Replace the contents of the row, including its key columns."""

    contents: Contents


@dataclass(frozen=True, slots=True)
class Edit:
    """Apply actions. If there is no row, create one from its key if `may_create`, else do nothing.

    `max_bytes`: the size from which the write's rule refuses the row. Actions on documents stop there with
    RowRuleViolated (rule `update-size`).
    """

    actions: tuple[Action, ...]
    may_create: bool = True
    max_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete the row if it exists."""


@dataclass(frozen=True, slots=True)
class CheckOnly:
    """Evaluate the condition only."""


Change = Replace | Edit | Remove | CheckOnly
PERMISSION_OF_CHANGE: Mapping[type, Permission] = {
    Replace: Permission.PUT,
    Edit: Permission.UPDATE,
    Remove: Permission.DELETE,
    CheckOnly: Permission.CHECK,
}


class ChangeKind(Enum):
    """The kind of a write. Insert, modify or remove follows from the old and the new row."""

    PUT = "put"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class StreamRecording:
    """The stream record of a deferred or replicated write. If `kind` is None, there is no record.

    Deferred writes come from features/local_transactions, replicated ones from features/global_tables.
    """

    kind: ChangeKind | None
    actions: tuple[Action, ...]


class Returns(Enum):
    """The part of the row that the reply to a write returns. The values are those of DynamoDB's ReturnValues."""

    NOTHING = "NONE"
    OLD = "ALL_OLD"
    CHANGED_OLD = "UPDATED_OLD"
    NEW = "ALL_NEW"
    CHANGED_NEW = "UPDATED_NEW"


class ReturnedRows(NamedTuple):
    """The returned part of the row for a successful write and for a failed condition."""

    on_success: Returns = Returns.NOTHING
    on_failure: Returns = Returns.NOTHING


RETURNS_NOTHING = ReturnedRows()
_WHOLE_ROWS = frozenset({Returns.OLD, Returns.NEW})


RowRule = Callable[[Row | None, Contents], Contents]
"""A rule of a dialect for the result of a write: (old row, new contents) -> contents. Pure.

It restores kinds that the dialect cannot represent. It raises RowRuleViolated or BadKey if the result breaks a rule.
"""


class Write(NamedTuple):
    """One write of one row.

    - `view`: how the dialect of the request sees stored values.
    - `actor`: the author of the change in streams: "" for clients, "expiry" for the expiry job.
    - `recording`: the stream record, if it does not follow from `change`.
    - `returned_rows`: the part of the row in the reply.
    - `stamp`: for a Replace or Remove from another replica, its original time (ticks). It is ignored if the row is
      newer.
    """

    table: Table
    key: Key
    change: Change
    condition: Predicate = ALWAYS
    view: View | None = None
    rule: RowRule | None = None
    actor: str = ""
    recording: StreamRecording | None = None
    returned_rows: ReturnedRows = RETURNS_NOTHING
    stamp: int | None = None

    @property
    def adds_bytes(self) -> bool:
        """True if the write can add bytes. Quotas always admit deletes and checks."""
        return isinstance(self.change, Replace | Edit)

    def fact(self, key: ConditionKey) -> FactValues:
        """Return a fact about the row that it writes (Command.fact)."""
        match key:
            case ConditionKey.LEADING_KEYS:
                value = self.key.values[0]
                return (key_text(value),) if isinstance(value, Value) else EVERYTHING
            case ConditionKey.ATTRIBUTES:
                return self._attributes()
            case ConditionKey.RETURN_VALUES:
                return frozenset(mode.value for mode in self.returned_rows)
        return None

    def _attributes(self) -> FactValues:
        """Return the top-level attributes of its key, its condition, its change and its reply."""
        if not _WHOLE_ROWS.isdisjoint(self.returned_rows):
            return EVERYTHING
        names = {*self.table.key_schema.names, *names_in(self.condition)}
        match self.change:
            case Replace(contents):
                names.update(contents.latest)
            case Edit(actions):
                names.update(_names_of_edit(actions))
            case _:
                pass
        return frozenset(names)


def names_in(predicate: Predicate) -> set[str]:
    """Return the top-level attributes that a condition or filter tests."""
    return set() if predicate is ALWAYS else {str(path[0]) for path in paths_of(predicate)}


def _names_of_edit(actions: tuple[Action, ...]) -> Iterator[str]:
    yield from names_of(actions)
    for action in actions:
        if isinstance(action, SetTo):
            yield from (str(path[0]) for path in paths_read(action.operand))


def apply(write: Write, old: Row | None, now: int) -> Row | None:
    """Return the row after the write, None if there is none. `now` is in ticks of 100 ns since 1970.

    Raises ConditionFailed with the first conjunct that is false, BadPath, BadOperand, NumberOutOfRange, and the errors
    of the write's rule.
    """
    stored = old
    if write.stamp is not None:
        return _later(write, stored, write.stamp)
    # Expired rows are visible to the expiry job only.
    if write.table.rules.expiry is not None and not write.actor:
        old = write.table.visible(stored, now // 10_000)
    if write.condition is not ALWAYS:
        failed_part = failing_part(write.condition, old, write.view)
        if failed_part is not None:
            raise ConditionFailed(failed_part, old)
    match write.change:
        case Replace(contents):
            pass
        case Edit(actions, may_create, max_bytes):
            if old is None and not may_create:
                return None
            table = write.table
            rules = table.rules
            key_values = dict(zip(table.key_schema.names, write.key.values, strict=True))
            context = EditContext(
                key_values, now // 10_000, rules.stamped, rules.max_versions, write.view, max_bytes
            )
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
    """Return the later of a row and a replicated write, in an order that is the same in every replica.

    At equal times a row comes after a delete, and of two rows the one with the greater bytes is later.
    """
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
    """Return the time of a replicated delete in ticks, later than the deleted row."""
    return max(at_ms * TICKS_PER_MS, old.modified_at + 1)


def with_number(write: Write, number: int) -> Write:
    """Return a write with a number for the auto-increment column in its key and contents."""
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
