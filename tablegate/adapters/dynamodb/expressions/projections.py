"""Projections of items by document paths, and conflicts between paths.

ProjectionExpression, AttributesToGet, and UPDATED_OLD and UPDATED_NEW of an update become paths here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tablegate.adapters.dynamodb.expressions.static_checks import (
    PROJECTION,
    PlaceholderReader,
    Placeholders,
    projection_tree,
)
from tablegate.adapters.dynamodb.wire import error_texts
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.gateway.model.expressions.predicates import Attributes, Path
from tablegate.gateway.model.expressions.updates import Action, Add, Remove, SetTo, Subtract
from tablegate.gateway.model.values.values import Kind, Value

Branches = dict[str | int, Any]
"""Step -> Branches of the requested parts within it, or None for all of it."""


class ProjectionPaths(NamedTuple):
    """The requested paths, as given and as a tree."""

    paths: tuple[Path, ...]
    tree: Branches

    @property
    def names(self) -> frozenset[str]:
        """The requested top-level attributes."""
        return frozenset(map(str, self.tree))


def parse_projection(text: str, placeholders: Placeholders) -> ProjectionPaths:
    """Return the paths in a ProjectionExpression. Raises ServiceError."""
    reader = PlaceholderReader(PROJECTION, placeholders)
    paths = tuple([reader.path(node) for node in projection_tree(text, placeholders)])
    conflict = find_conflict(paths)
    if conflict is not None:
        reader.refuse(conflict.rule, one=path_text(conflict.one), two=path_text(conflict.two))
    return projection_of(paths)


def projection_of(paths: Iterable[Path]) -> ProjectionPaths:
    """Return the projection for paths that do not overlap."""
    paths = tuple(paths)
    tree: Branches = {}
    for path in paths:
        branches = tree
        for step in path[:-1]:
            branches = branches.setdefault(step, {})
        branches[path[-1]] = None
    return ProjectionPaths(paths, tree)


def project(values: Attributes, projection: ProjectionPaths) -> dict[str, Value]:
    """Return the requested parts of an item. Missing parts are left out.

    Elements of one list are in the order of their indexes, without gaps (dynoxide's captures, eu-west-2).
    """
    parts = {}
    for name, branches in projection.tree.items():
        value = values.get(str(name))
        if value is not None and branches is not None:
            value = _cut(value, branches)
        if value is not None:
            parts[str(name)] = value
    return parts


def filter_beyond(index: str, names: Iterable[str]) -> ServiceError:
    """Return the error for a filter on attributes that the index does not project."""
    names_text = ", ".join(in_their_order(list(dict.fromkeys(names))))
    return validation(error_texts.bare("filter-not-projected", index=index, names=names_text))


def in_their_order(names: Sequence[str]) -> list[str]:
    """Sort names as the service lists them: in the order of Java's HashSet (floci's captures agree)."""
    buckets = 16
    while buckets * 3 < len(names) * 4:
        buckets *= 2

    def bucket(name: str) -> int:
        code = 0
        for unit in memoryview(name.encode("utf-16-le")).cast("H"):
            code = (31 * code + unit) & 0xFFFFFFFF
        return (code ^ code >> 16) & (buckets - 1)

    return sorted(names, key=bucket)


def updated_parts(actions: tuple[Action, ...], values: Attributes) -> dict[str, Value]:
    """Return the parts of an item that an update's actions name: of the old item for UPDATED_OLD, of the new for
    UPDATED_NEW.

    So an element that was appended by an index past the end is not shown, and a removed one is replaced by the
    next (test_returnvalues.py test_update_item_returnvalues_nested).
    """
    paths = [action.path for action in actions if isinstance(action, (SetTo, Remove, Add, Subtract))]
    return project(values, projection_of(paths))


def _cut(value: Value, branches: Branches) -> Value | None:
    kind, data = value
    if kind is Kind.MAP:
        members = {step: (data.get(step), inner) for step, inner in branches.items() if isinstance(step, str)}
        parts = {
            step: part
            for step, (member, inner) in members.items()
            if (part := _part(member, inner)) is not None
        }
        return Value(Kind.MAP, parts) if parts else None
    if kind is Kind.LIST:
        indexes = sorted(step for step in branches if isinstance(step, int) and step < len(data))
        elements = [_part(data[index], branches[index]) for index in indexes]
        present = tuple(element for element in elements if element is not None)
        return Value(Kind.LIST, present) if present else None
    return None


def _part(value: Value | None, branches: Branches | None) -> Value | None:
    return value if value is None or branches is None else _cut(value, branches)


def path_text(path: Path) -> str:
    """Format a path as in the service's errors: [a, b, [1]]."""
    return "[" + ", ".join(f"[{step}]" if isinstance(step, int) else step for step in path) + "]"


class PathConflict(NamedTuple):
    """Two paths that exclude each other.

    `rule`: `overlap` (one is, or is part of, the other) or `conflict` (the same document as a map and as a list).
    """

    rule: str
    one: Path
    two: Path


@dataclass(slots=True)
class _PathBranch:
    """A common prefix of paths, and the first path through it."""

    path: Path
    ends: bool = False
    children: dict[str | int, _PathBranch] = field(default_factory=dict)


class PathConflicts:
    """A set of compatible paths that detects conflicts with the next one. Takes time in proportion to the paths."""

    __slots__ = ("_root",)

    def __init__(self) -> None:
        self._root = _PathBranch(())

    def add(self, path: Path) -> PathConflict | None:
        """Add a path. Return the conflict if there is one."""
        branch = self._root
        for step in path:
            if branch.ends:
                return PathConflict("overlap", path, branch.path)
            other = next(iter(branch.children), None)
            if other is not None and isinstance(other, str) is not isinstance(step, str):
                return PathConflict("conflict", path, branch.children[other].path)
            if step not in branch.children:
                branch.children[step] = _PathBranch(path)
            branch = branch.children[step]
        if branch.ends or branch.children:
            return PathConflict("overlap", path, branch.path)
        branch.ends = True
        return None


def find_conflict(paths: tuple[Path, ...]) -> PathConflict | None:
    """Return the first conflict of paths, from the end of the text, where the service begins.

    DynamoDB Local has this order, and dynalite's records agree. With several paths the service may name an
    unrelated path as the second one: it takes the last of a hash table ("a, b, a" is reported as [a] and [b], see
    dynalite's getItem.js). Here the second path is the conflicting one.
    """
    conflicts = PathConflicts()
    for path in reversed(paths):
        conflict = conflicts.add(path)
        if conflict is not None:
            return conflict
    return None
