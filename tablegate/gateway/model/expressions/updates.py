"""Edits of a row as one closed tree of actions, and its evaluator.

DynamoDB's update expressions and AttributeUpdates, Azure's merge and Table Store's UpdateRow are parsed into these
actions. Operands of document actions read the row as it was before the edit. Cell actions apply in the given order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, assert_never

from tablegate.gateway.model import fast_paths
from tablegate.gateway.model.errors import BadOperand, BadPath, RowRuleViolated
from tablegate.gateway.model.expressions.edits import Documents, add, increment, sum_of
from tablegate.gateway.model.expressions.predicates import Attributes, Path, View, value_at
from tablegate.gateway.model.values.bodies import FOREIGN, tagged, untagged
from tablegate.gateway.model.values.rows import FOREIGN_KINDS, LONG_KINDS, TICKS_PER_MS, Cell, Contents, Row
from tablegate.gateway.model.values.values import Kind, Value, size_bytes

# Operands of SetTo


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant."""

    value: Value


@dataclass(frozen=True, slots=True)
class Current:
    """The value at a path before the edit. If it is missing: BadPath with rule `operand-missing`."""

    path: Path


@dataclass(frozen=True, slots=True)
class CurrentOrDefault:
    """The value at a path before the edit, or the fallback if it is missing (if_not_exists)."""

    path: Path
    fallback: Operand


@dataclass(frozen=True, slots=True)
class Plus:
    """The exact sum of two numbers, in the stored kind of an operand if it fits, else a DECIMAL.

    BadOperand for other kinds, NumberOutOfRange for results beyond DECIMAL.
    """

    left: Operand
    right: Operand


@dataclass(frozen=True, slots=True)
class Minus:
    """The exact difference of two numbers."""

    left: Operand
    right: Operand


@dataclass(frozen=True, slots=True)
class Concatenate:
    """The concatenation of two lists (list_append)."""

    left: Operand
    right: Operand


Operand = Literal | Current | CurrentOrDefault | Plus | Minus | Concatenate


# Actions on documents


@dataclass(frozen=True, slots=True)
class SetTo:
    """Set the value at a path. A list index past the end appends. BadPath (rule `path`) without the parent."""

    path: Path
    operand: Operand


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove the value at a path, if there is one. List indexes are those from before the edit."""

    path: Path


@dataclass(frozen=True, slots=True)
class Add:
    """Add to a number, unite with a set, or append to a list. A missing value is created. BadOperand if the kinds do
    not fit."""

    path: Path
    value: Value


@dataclass(frozen=True, slots=True)
class Subtract:
    """Remove members from a set. An empty set is removed. BadOperand if the kinds do not fit."""

    path: Path
    value: Value


# Actions on cells (top-level attributes with versions)


@dataclass(frozen=True, slots=True)
class PutCell:
    """Add a version. If `stamp_ms` is None, it gets the time of the write."""

    name: str
    value: Value
    stamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class DeleteCell:
    """Delete one version."""

    name: str
    stamp_ms: int


@dataclass(frozen=True, slots=True)
class DeleteCells:
    """Delete all versions."""

    name: str


@dataclass(frozen=True, slots=True)
class Increment:
    """Add to the newest version and store the result as a new one. A missing cell counts as zero.

    BadOperand if it is no integer, NumberOutOfRange if the result does not fit its kind.
    """

    name: str
    delta: Value
    stamp_ms: int | None = None


Action = SetTo | Remove | Add | Subtract | PutCell | DeleteCell | DeleteCells | Increment


class EditContext(NamedTuple):
    """The input of an edit besides the row.

    - `now_ms`: the default stamp of cells.
    - `stamped`: cells keep their stamps, newest first, up to `max_versions`.
    - `view`: the view of the dialect on stored values.
    - `max_bytes`: a larger row is refused.
    """

    key_values: Mapping[str, Value]
    now_ms: int
    stamped: bool
    max_versions: int = 1
    view: View | None = None
    max_bytes: int | None = None


def edit(old: Row | None, actions: tuple[Action, ...], context: EditContext) -> Contents:
    """Return the contents of a row after the actions. A new row starts with its key only.

    Attributes that no action names keep value, kind and stamps. So does an attribute that is set to the value that the
    dialect sees. Raises BadPath (rules `operand-missing`, `path`), BadOperand (`operand`), NumberOutOfRange
    (`overflow`, `underflow`, `precision`).
    """
    draft = _draft_of(old, context)
    before = dict(context.key_values) if old is None else old.contents
    attributes = _whole_attributes(actions, before, context.view)
    if attributes is None:
        _apply_actions(actions, draft, before, context)
    else:
        _put_all(draft, attributes.items(), context.max_bytes)
    return draft.contents()


def _put_all(
    draft: RowDraft | FastDraft, results: Iterable[tuple[str, Value | None]], max_bytes: int | None
) -> None:
    """Set attributes and remove those without a value. Copies of long values are measured before they are encoded."""
    long_bytes = 0
    for name, value in results:
        if value is None:
            draft.drop(name)
            continue
        if max_bytes is not None and value.kind in LONG_KINDS:
            long_bytes += size_bytes(value)
            if long_bytes > max_bytes:
                raise RowRuleViolated("update-size")
        draft.put(name, value, None)


def _whole_attributes(
    actions: tuple[Action, ...], before: Attributes, view: View | None
) -> dict[str, Value] | None:
    """Return the new attributes if the actions write whole ones, as most edits do.

    None if an action removes an attribute or changes a part of one.
    """
    attributes: dict[str, Value] = {}
    for action in actions:
        if type(action) is SetTo and len(action.path) == 1:
            operand = action.operand
            attributes[str(action.path[0])] = (
                operand.value if type(operand) is Literal else _resolve(operand, before, view)
            )
        elif type(action) is Add and len(action.path) == 1 and len(actions) == 1:
            name = str(action.path[0])
            attributes[name] = sum_of(before.get(name), action.value, view)
        else:
            return None
    return attributes


def _apply_actions(
    actions: tuple[Action, ...], draft: RowDraft | FastDraft, before: Attributes, context: EditContext
) -> None:
    view = context.view
    operands = [
        _resolve(action.operand, before, view) if isinstance(action, SetTo) else None for action in actions
    ]
    documents = Documents(before)
    for action, value in zip(actions, operands, strict=True):
        match action:
            case SetTo(path):
                assert value is not None
                documents.put(path, value)
            case Remove(path):
                documents.remove(path)
            case Add(path, value):
                documents.put(path, sum_of(documents.old_at(path), value, view))
            case Subtract(path, value):
                documents.subtract(path, value)
            case PutCell(name, value, stamp_ms):
                draft.put(name, value, stamp_ms)
            case DeleteCell(name, stamp_ms):
                draft.drop_version(name, stamp_ms)
            case DeleteCells(name):
                draft.drop(name)
            case Increment(name, delta, stamp_ms):
                draft.put(name, increment(draft.newest(name), delta, view), stamp_ms)
            case _:
                assert_never(action)
    _put_all(draft, documents.results(), context.max_bytes)


def names_of(actions: tuple[Action, ...]) -> tuple[str, ...]:
    """Return the top-level attributes that actions write, in order, with duplicates."""
    return tuple(
        [
            str(action.path[0]) if isinstance(action, (SetTo, Remove, Add, Subtract)) else action.name
            for action in actions
        ]
    )


def paths_read(operand: Operand) -> Iterator[Path]:
    """Yield the paths that an operand reads, in order."""
    match operand:
        case Current(path):
            yield path
        case CurrentOrDefault(path, fallback):
            yield path
            yield from paths_read(fallback)
        case Plus(left, right) | Minus(left, right) | Concatenate(left, right):
            yield from paths_read(left)
            yield from paths_read(right)


def _fast_draft_of(old: Row | None, context: EditContext) -> RowDraft | FastDraft:
    if old is not None and old.is_native and not context.stamped:
        return FastDraft(dict(old.contents.members), old.size_bytes, context, old.modified_at // TICKS_PER_MS)
    return RowDraft.of(old, context)


@dataclass(slots=True)
class FastDraft:
    """The fast path of `RowDraft`, for rows with attributes of DynamoDB's kinds only and without stamps.

    The attributes stay tagged JSON. Only edited ones are converted to values, and the size is updated by the
    difference.
    """

    members: dict[str, dict[str, Any]]
    size_bytes: int
    context: EditContext
    default_stamp_ms: int
    foreign: set[str] = field(default_factory=set)

    def newest(self, name: str) -> Value | None:
        member = self.members.get(name)
        return None if member is None else untagged(member)

    def put(self, name: str, value: Value, stamp_ms: int | None) -> None:
        """Set the only version of an attribute."""
        member = self.members.get(name)
        if member is None:
            self.size_bytes += len(name.encode()) + size_bytes(value)
        else:
            stored = untagged(member)
            if stored.kind is not value.kind:
                value = _in_stored_kind(value, stored, self.context.view)
            self.size_bytes += size_bytes(value) - size_bytes(stored)
        self.members[name] = {"S": value.data} if value.kind is Kind.TEXT else tagged(value)
        if value.kind in FOREIGN:
            self.foreign.add(name)
        else:
            self.foreign.discard(name)

    def drop(self, name: str) -> None:
        stored = self.newest(name)
        if stored is not None:
            del self.members[name]
            self.foreign.discard(name)
            self.size_bytes -= len(name.encode()) + size_bytes(stored)

    def drop_version(self, name: str, stamp_ms: int) -> None:
        """Remove the only version if it has that stamp, which is the time of the last write."""
        if stamp_ms == self.default_stamp_ms:
            self.drop(name)

    def contents(self) -> Contents:
        for name, value in self.context.key_values.items():
            if name not in self.members:
                self.put(name, value, None)
        return Contents(None, FOREIGN_KINDS if self.foreign else None, self.size_bytes, None, self.members)


@dataclass(slots=True)
class RowDraft:
    """The row being written: latest values by name and, if the row keeps stamps, the versions of each attribute."""

    latest: dict[str, Value]
    cells: dict[str, tuple[Cell, ...]] | None
    default_stamp_ms: int
    context: EditContext

    @classmethod
    def of(cls, old: Row | None, context: EditContext) -> RowDraft:
        """Return a draft of the old row, or of a new one with its key."""
        if old is None:
            latest = dict(context.key_values)
            return cls(latest, {} if context.stamped else None, context.now_ms, context)
        has_stamps = old.contents.kinds is not None and old.contents.kinds != FOREIGN_KINDS
        cells = None
        if context.stamped or has_stamps:
            keys = context.key_values
            cells = {name: versions for name, versions in old.cells.items() if name not in keys}
        return cls(dict(old.latest), cells, old.modified_at // TICKS_PER_MS, context)

    def newest(self, name: str) -> Value | None:
        return self.latest.get(name)

    def put(self, name: str, value: Value, stamp_ms: int | None) -> None:
        """Add a version, replacing one with the same stamp. The oldest beyond `max_versions` are dropped."""
        stored = self.latest.get(name)
        if stored is not None:
            value = _in_stored_kind(value, stored, self.context.view)
        if self.cells is None or name in self.context.key_values:
            self.latest[name] = value
            return
        stamp_ms = self.context.now_ms if stamp_ms is None else stamp_ms
        versions = [cell for cell in self.cells.get(name, ()) if cell.stamp_ms != stamp_ms]
        versions.append(Cell(value, stamp_ms))
        versions.sort(key=lambda cell: -cell.stamp_ms)
        self._set_versions(name, tuple(versions[: max(self.context.max_versions, 1)]))

    def drop(self, name: str) -> None:
        """Remove an attribute with all its versions."""
        self.latest.pop(name, None)
        if self.cells is not None:
            self.cells.pop(name, None)

    def drop_version(self, name: str, stamp_ms: int) -> None:
        """Remove the version with that stamp. A cell without a stamp has the time of the row's last write."""
        if self.cells is not None:
            self._set_versions(
                name, tuple(cell for cell in self.cells.get(name, ()) if cell.stamp_ms != stamp_ms)
            )
        elif stamp_ms == self.default_stamp_ms:
            self.latest.pop(name, None)

    def _set_versions(self, name: str, versions: tuple[Cell, ...]) -> None:
        assert self.cells is not None
        if versions:
            self.cells[name] = versions
            self.latest[name] = versions[0].value
        else:
            self.drop(name)

    def contents(self) -> Contents:
        for name, value in self.context.key_values.items():
            self.latest.setdefault(name, value)
        if self.cells is None:
            return Contents.of_values(self.latest)
        keys = {name: self.latest[name] for name in self.context.key_values}
        return Contents.of_cells(keys, self.cells)


def _in_stored_kind(value: Value, stored: Value, view: View | None) -> Value:
    """Return the stored value if the new one equals the dialect's view of it. Writing back a value that was read
    changes nothing."""
    if view is None or stored.kind is value.kind:
        return value
    visible_value = view(stored)
    return stored if visible_value is not stored and visible_value == value else value


# Operands


def _resolve(operand: Operand, before: Attributes, view: View | None) -> Value:
    match operand:
        case Literal(value):
            return value
        case Current(path):
            current_value = value_at(before, path)
            if current_value is None:
                raise BadPath("operand-missing", path=path)
            return current_value
        case CurrentOrDefault(path, fallback):
            current_value = value_at(before, path)
            return _resolve(fallback, before, view) if current_value is None else current_value
        case Plus(left, right):
            return add(_resolve(left, before, view), _resolve(right, before, view), view)
        case Minus(left, right):
            return add(_resolve(left, before, view), _resolve(right, before, view), view, minus=True)
        case Concatenate(left, right):
            left_list, right_list = _resolve(left, before, view), _resolve(right, before, view)
            if left_list.kind is not Kind.LIST or right_list.kind is not Kind.LIST:
                raise BadOperand("operand", actual=right_list if left_list.kind is Kind.LIST else left_list)
            return Value(Kind.LIST, left_list.data + right_list.data)
    assert_never(operand)


_IS_SAFE = fast_paths.covers(EditContext, "key_values now_ms stamped max_versions view max_bytes")
_draft_of = fast_paths.choose(_fast_draft_of, RowDraft.of, _IS_SAFE)
