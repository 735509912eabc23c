"""The values of one row, as a predicate reads them.

A predicate of 4 KB can name one list of 60,000 elements a hundred times. So the results that take time proportional to
the size of a value are kept while the predicate is evaluated on the row. Evaluation then takes a number of steps
proportional to the size of the row plus the size of the predicate, and not to their product.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

from tablegate.gateway.model.expressions.predicates import Path, View, size_of, walk
from tablegate.gateway.model.values.rows import LONG_KINDS, Row
from tablegate.gateway.model.values.values import (
    NUMBERS,
    Kind,
    Value,
    contains,
    decimal_text,
    equal,
    number_of,
)


class RowValues(NamedTuple):
    """The values of a row under a dialect's view, with the results that took long to compute. `row` None: no row.

    Each result is kept together with its values, because another value could get the id of one that is gone.
    """

    row: Row | None
    view: View | None
    kept: dict[Hashable, Any]

    def at(self, path: Path) -> Value | None:
        """Return the value at a path as the dialect sees it. Values inside documents have kinds that all dialects
        have."""
        row, view, _ = self
        if row is None:
            return None
        value = row.contents.value(path[0])  # type: ignore[arg-type]
        if value is not None and view is not None:
            value = self._viewed(value, path[0]) if value.kind in LONG_KINDS else view(value)
        return value if len(path) == 1 else walk(value, path)

    def _viewed(self, value: Value, name: str | int) -> Value:
        assert self.view is not None
        if name not in self.kept:
            self.kept[name] = self.view(value)
        viewed: Value = self.kept[name]
        return viewed

    def size_at(self, path: Path) -> int | None:
        """Return the size of the value at a path, or None if it has none."""
        key = ("size", path)
        if key not in self.kept:
            value = self.at(path)
            self.kept[key] = None if value is None else size_of(value)
        size: int | None = self.kept[key]
        return size

    def equals(self, left: Value, right: Value) -> bool:
        """Return True if two values are equal. Long ones are compared once, however often a predicate does so."""
        if left.kind not in LONG_KINDS or right.kind not in LONG_KINDS:
            return equal(left, right)
        key = ("equal", id(left), id(right))
        if key not in self.kept:
            self.kept[key] = (equal(left, right), left, right)
        return bool(self.kept[key][0])

    def contains(self, container: Value, member: Value) -> bool:
        """Return True if a container contains a value. The elements of a list are hashed at the second search in it."""
        if container.kind is not Kind.LIST:
            return contains(container, member)
        key: Hashable = ("elements", id(container))
        if key not in self.kept:
            self.kept[key] = (None, container)
            return contains(container, member)
        elements, _ = self.kept[key]
        if elements is None:
            elements = frozenset(map(_key_of, container.data))
            self.kept[key] = (elements, container)
        if member.kind not in LONG_KINDS:
            return _key_of(member) in elements
        key = ("member", id(container), id(member))
        if key not in self.kept:
            self.kept[key] = (_key_of(member) in elements, member)
        return bool(self.kept[key][0])


def _key_of(value: Value) -> Hashable:
    """Return a key that two values share if and only if they are equal (`values.equal`).

    Numbers become texts. Texts are hashed with a secret, while a client can choose many numbers of the same hash.
    """
    kind, data = value
    if kind is Kind.TEXT:
        return value
    if kind in NUMBERS:
        number = number_of(value)
        if number is None:  # NaN equals nothing, not even itself
            return data if data == data else object()
        return decimal_text(number)
    if kind is Kind.LIST:
        return kind, tuple(map(_inner_key_of, data))
    if kind is Kind.MAP:
        return kind, frozenset((name, _inner_key_of(member)) for name, member in data.items())
    return value


def _inner_key_of(value: Value) -> Hashable:
    """Return the key of a value in a document, where numbers of two kinds are not equal."""
    return value.kind, _key_of(value)
