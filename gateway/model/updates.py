"""Edits of a row as one closed tree of actions, and its one evaluator.

DynamoDB's update expressions and AttributeUpdates, Azure's merge and Table Store's UpdateRow are all parsed into these
actions. Operands of document actions read the row as it was before the edit; cell actions apply in the order given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.model.predicates import Path, View
from gateway.model.rows import Contents, Row
from gateway.model.values import Value

# Operands of SetTo


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant."""

    value: Value


@dataclass(frozen=True, slots=True)
class Current:
    """The value at a path before the edit. Absent: BadPath with rule `operand-missing`."""

    path: Path


@dataclass(frozen=True, slots=True)
class CurrentOr:
    """The value at a path before the edit, or else the fallback (if_not_exists)."""

    path: Path
    fallback: Operand


@dataclass(frozen=True, slots=True)
class Plus:
    """Exact sum of two numbers; BadOperand for other kinds, NumberOutOfRange beyond 38 digits or the kind's range."""

    left: Operand
    right: Operand


@dataclass(frozen=True, slots=True)
class Minus:
    """Exact difference of two numbers."""

    left: Operand
    right: Operand


@dataclass(frozen=True, slots=True)
class Concatenate:
    """Two lists one after the other (list_append)."""

    left: Operand
    right: Operand


Operand = Literal | Current | CurrentOr | Plus | Minus | Concatenate


# Actions on documents


@dataclass(frozen=True, slots=True)
class SetTo:
    """Put a value at a path. A list index past the end appends. BadPath (rule `path`) if the parent is not there."""

    path: Path
    operand: Operand


@dataclass(frozen=True, slots=True)
class Remove:
    """Take away what is at a path, if anything is. List indexes are those from before the edit."""

    path: Path


@dataclass(frozen=True, slots=True)
class Add:
    """Add to a number, or unite with a set; creates either. BadOperand if the kinds do not fit."""

    path: Path
    value: Value


@dataclass(frozen=True, slots=True)
class Subtract:
    """Take members out of a set; an emptied set goes away. BadOperand if the kinds do not fit."""

    path: Path
    value: Value


# Actions on cells (top-level attributes with versions)


@dataclass(frozen=True, slots=True)
class PutCell:
    """Add a version. `stamp_ms` None: the time of the write."""

    name: str
    value: Value
    stamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class DeleteCell:
    """Take away one version."""

    name: str
    stamp_ms: int


@dataclass(frozen=True, slots=True)
class DeleteCells:
    """Take away all versions."""

    name: str


@dataclass(frozen=True, slots=True)
class Increment:
    """Add to the newest version and keep the result as a new one; a missing cell counts as zero."""

    name: str
    delta: Value
    stamp_ms: int | None = None


Action = SetTo | Remove | Add | Subtract | PutCell | DeleteCell | DeleteCells | Increment


@dataclass(frozen=True, slots=True)
class Situation:
    """What an edit needs to know besides the row."""

    key_values: Mapping[str, Value]
    now_ms: int
    stamped: bool
    max_versions: int = 1
    view: View | None = None


def edit(old: Row | None, actions: tuple[Action, ...], situation: Situation) -> Contents:
    """The contents of a row after the actions. With no row there is only its key before them.

    Attributes that no action names keep value, kind and stamps. Raises BadPath, BadOperand, NumberOutOfRange.
    """
    raise NotImplementedError  # next commit: expressions
