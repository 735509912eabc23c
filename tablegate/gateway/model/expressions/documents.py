"""Edits of maps, lists and sets along document paths.

Every edit sees the documents as they were before all edits, list indexes included. Independent of rows, numbers and
dialects.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tablegate.gateway.model.errors import BadOperand, BadPath
from tablegate.gateway.model.expressions.predicates import Attributes, Path, value_at
from tablegate.gateway.model.values.values import SETS, Kind, Value


@dataclass(slots=True)
class _Branch:
    """A document that is being edited. Edited children are branches themselves.

    List indexes stay those from before the edit until it is done, so that several elements can be removed at once.
    """

    kind: Kind
    members: dict[
        Any, Any
    ]  # name or index -> Value or _Branch. Removed list elements are missing, so indexes may have gaps.
    length: int = 0  # of a list, before the edit
    added: dict[int, Value] = field(default_factory=dict)  # appended elements by the index in the path

    @classmethod
    def of(cls, value: Value | None, step: str | int) -> _Branch:
        """Open a document for an edit at this step. Raises BadPath if the value is not such a document."""
        expected = Kind.MAP if isinstance(step, str) else Kind.LIST
        if value is None or value.kind is not expected:
            raise BadPath("path")
        if expected is Kind.MAP:
            return cls(expected, dict(value.data))
        return cls(expected, dict(enumerate(value.data)), len(value.data))

    def put(self, step: str | int, value: Value) -> None:
        """Set a member or an element. An index past the end of the list appends."""
        if isinstance(step, int) and step >= self.length:
            self.added[step] = value
        else:
            self.members[step] = value

    def as_value(self) -> Value:
        """Return the edited document as a value."""
        members = {
            step: member.as_value() if isinstance(member, _Branch) else member
            for step, member in self.members.items()
        }
        if self.kind is Kind.MAP:
            return Value(Kind.MAP, members)
        added = tuple(self.added[index] for index in sorted(self.added))
        return Value(Kind.LIST, tuple(members[index] for index in sorted(members)) + added)


class Documents:
    """The edits of documents in a set of attributes. Edits do not see each other's results."""

    def __init__(self, before: Attributes) -> None:
        self._before = before
        self._changed: dict[str, Value | _Branch | None] = {}

    def old_at(self, path: Path) -> Value | None:
        """Return the stored value at a path before the edit."""
        return value_at(self._before, path)

    def put(self, path: Path, value: Value) -> None:
        """Set the value at a path. List indexes past the end append, in the order of the indexes. Raises BadPath."""
        if len(path) == 1:
            self._changed[str(path[0])] = value
        else:
            self._branch(path).put(path[-1], value)

    def remove(self, path: Path) -> None:
        """Remove the value at a path, if there is one. Raises BadPath."""
        if len(path) == 1:
            self._changed[str(path[0])] = None
        else:
            self._branch(path).members.pop(path[-1], None)

    def subtract(self, path: Path, value: Value) -> None:
        """Remove members from the set at a path. An empty set is removed. Raises BadPath, BadOperand."""
        current = self.old_at(path)
        if current is None:
            if len(path) > 1:
                self._branch(path)
            return
        if current.kind is not value.kind or value.kind not in SETS:
            raise BadOperand("operand", actual=current)
        members = current.data - value.data
        if members:
            self.put(path, Value(value.kind, members))
        else:
            self.remove(path)

    def results(self) -> list[tuple[str, Value | None]]:
        """Return the edited attributes with their new values, None for removed ones."""
        return [
            (name, result.as_value() if isinstance(result, _Branch) else result)
            for name, result in self._changed.items()
        ]

    def _branch(self, path: Path) -> _Branch:
        """Return the branch that contains the last step of a path. Raises BadPath if it does not exist."""
        name = str(path[0])
        branch = self._changed.get(name)
        if not isinstance(branch, _Branch):
            branch = _Branch.of(self._before.get(name), path[1])
            self._changed[name] = branch
        for step, next_step in pairwise(path[1:]):
            self._require(branch, step)
            child = branch.members.get(step)
            if not isinstance(child, _Branch):
                child = _Branch.of(child, next_step)
                branch.members[step] = child
            branch = child
        self._require(branch, path[-1])
        return branch

    @staticmethod
    def _require(branch: _Branch, step: str | int) -> None:
        if isinstance(step, str) is not (branch.kind is Kind.MAP):
            raise BadPath("path")
