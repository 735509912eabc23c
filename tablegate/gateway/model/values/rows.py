"""Rows: contents, versions of cells, and the time of the last modification.

Independent of SQL and of readers.

Contents are stored in two columns. `body` is the canonical JSON of the latest values (bodies.py). `kinds` is None if
the body has only DynamoDB's own kinds and no cell has its own stamp. Then the body can be copied into a DynamoDB reply.
Otherwise `kinds` is a JSON object. `{}` means that there are foreign kinds. `{"cells": {name: [stamp_ms, [older
stamp_ms, tagged value], ...]}}` has stamps and older versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import orjson

from tablegate.gateway.model.values import bodies
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.values import SETS, Kind, Value, size_bytes

TICKS_PER_MS = 10_000
FOREIGN_KINDS = b"{}"
LONG_KINDS = SETS | {Kind.LIST, Kind.MAP, Kind.BYTES}
"""Kinds whose values take long to decode and to compare if they are large."""


class Cell(NamedTuple):
    """One version of an attribute. `stamp_ms`: its version, in milliseconds since 1970."""

    value: Value
    stamp_ms: int


_new = tuple.__new__  # creates a named tuple in half the time of its own constructor


class VersionWindow(NamedTuple):
    """The versions of a cell that a reader sees.

    They have start_ms <= stamp < end_ms, and are the newest `versions` of these. None means no limit.
    """

    start_ms: int | None = None
    end_ms: int | None = None
    versions: int | None = None

    def of(self, cells: tuple[Cell, ...]) -> tuple[Cell, ...]:
        """Return the visible versions of an attribute, newest first."""
        start_ms, end_ms, versions = self
        if start_ms is not None or end_ms is not None:
            cells = tuple(
                cell
                for cell in cells
                if (start_ms is None or cell.stamp_ms >= start_ms)
                and (end_ms is None or cell.stamp_ms < end_ms)
            )
        return cells if versions is None or len(cells) <= versions else cells[:versions]


class Contents:
    """The contents of a row, decoded on demand. Immutable.

    `size_bytes`: billed size of names and latest values. For rows that keep older versions, these are included.
    """

    __slots__ = ("_body", "_cells", "_decoded", "_latest", "_members", "kinds", "size_bytes")

    def __init__(
        self,
        body: bytes | None,
        kinds: bytes | None,
        size: int,
        latest: dict[str, Value] | None = None,
        members: dict[str, dict[str, Any]] | None = None,
    ) -> None:
        """Store the parts unchecked. `members`: the latest values as tagged JSON. `kinds` and `size` must match."""
        self._body = body
        self.kinds = kinds
        self.size_bytes = size
        self._latest = latest
        self._members = members
        self._cells: dict[str, tuple[Cell, ...]] | None = None
        self._decoded: dict[str, Value] | None = None

    @classmethod
    def of_stored(cls, body: bytes, kinds: bytes | None) -> Contents:
        """Return contents of stored bytes, and compute their size."""
        contents = cls(body, kinds, 0)
        for name, versions in contents.cells(0).items():
            contents.size_bytes += sum(len(name.encode()) + size_bytes(cell.value) for cell in versions)
        return contents

    @classmethod
    def of_values(cls, values: dict[str, Value]) -> Contents:
        """Return contents with one version, stamped with the time of the write."""
        size = sum(len(name.encode()) + size_bytes(value) for name, value in values.items())
        return cls(None, None if bodies.is_native(values) else FOREIGN_KINDS, size, values)

    @classmethod
    def of_cells(cls, key_values: Mapping[str, Value], cells: Mapping[str, tuple[Cell, ...]]) -> Contents:
        """Return contents with stamped attributes, newest version first. Key columns have no stamps."""
        latest = dict(key_values)
        stamps: dict[str, Any] = {}
        size = sum(len(name.encode()) + size_bytes(value) for name, value in key_values.items())
        for name, versions in cells.items():
            latest[name] = versions[0].value
            stamps[name] = [
                versions[0].stamp_ms,
                *([cell.stamp_ms, bodies.tagged(cell.value)] for cell in versions[1:]),
            ]
            size += sum(len(name.encode()) + size_bytes(cell.value) for cell in versions)
        contents = cls(None, orjson.dumps({"cells": stamps}), size, latest)
        contents._cells = dict(cells)
        return contents

    @classmethod
    def visible(cls, key_values: Mapping[str, Value], cells: dict[str, tuple[Cell, ...]]) -> Contents:
        """Return the visible contents of a row: these key columns and cells. For filters, sizes and replies, never
        stored."""
        latest = dict(key_values)
        size = 0
        for name, value in key_values.items():
            size += (len(name) if name.isascii() else len(name.encode())) + size_bytes(value)
        for name, versions in cells.items():
            newest = versions[0].value
            latest[name] = newest
            name_size = len(name) if name.isascii() else len(name.encode())
            if len(versions) == 1:
                size += name_size + (8 if newest.kind is Kind.INT64 else size_bytes(newest))
                continue
            for version in versions:
                size += name_size + size_bytes(version.value)
        contents = cls(None, FOREIGN_KINDS, size, latest)
        contents._cells = cells
        return contents

    def replacing(self, values: Mapping[str, Value], key_names: tuple[str, ...]) -> Contents:
        """Return contents with new latest values of some attributes. Stamps stay."""
        cells = self._cells
        if cells is None and (self.kinds is None or self.kinds == FOREIGN_KINDS):
            return Contents.of_values({**self.latest, **values})
        if cells is None:
            cells = self.cells(0)
        key_values = {name: values[name] if name in values else self.latest[name] for name in key_names}
        cells = {
            name: (versions[0]._replace(value=values[name]), *versions[1:]) if name in values else versions
            for name, versions in cells.items()
            if name not in key_values
        }
        return Contents.of_cells(key_values, cells)

    def only(self, names: frozenset[str]) -> Contents:
        """Return contents with only the named attributes."""
        cut = {name: value for name, value in self.latest.items() if name in names}
        if len(cut) == len(self.latest):
            return self
        contents = Contents.of_values(cut)
        if self.kinds is not None:
            stamps = orjson.loads(self.kinds).get("cells", {})
            kept_stamps = {name: versions for name, versions in stamps.items() if name in names}
            contents.kinds = orjson.dumps({"cells": kept_stamps}) if kept_stamps else contents.kinds
        return contents

    @property
    def body(self) -> bytes:
        """Canonical JSON of the latest values."""
        if self._body is None:
            if self._members is not None:
                self._body = orjson.dumps(self._members)
            else:
                assert self._latest is not None
                self._body = bodies.encode(self._latest)
        return self._body

    @property
    def latest(self) -> dict[str, Value]:
        """Attribute name -> latest value, key columns included. Must not be modified."""
        if self._latest is None:
            self._latest = bodies.untagged_all(self.members)
        return self._latest

    @property
    def members(self) -> dict[str, dict[str, Any]]:
        """Attribute name -> latest value as tagged JSON. Must not be modified."""
        if self._members is None:
            self._members = orjson.loads(self._body or self.body)
        return self._members

    def value(self, name: str) -> Value | None:
        """Return the latest value of one attribute without decoding the others.

        Long values are decoded once (LONG_KINDS). An expression may name an attribute hundreds of times.
        """
        if self._latest is not None:
            return self._latest.get(name)
        if self._decoded is not None and name in self._decoded:
            return self._decoded[name]
        members = self._members
        if members is None:
            members = self._members = orjson.loads(self._body or self.body)
        member = members.get(name)
        if member is None:
            return None
        value = bodies.untagged(member)
        if value.kind in LONG_KINDS:
            if self._decoded is None:
                self._decoded = {}
            self._decoded[name] = value
        return value

    get = value  # the interface of Attributes

    def some(self, names: Iterable[str]) -> dict[str, Value]:
        """Return the latest values of attributes that all exist, in the order of the names."""
        if self._latest is not None:
            latest = self._latest
            return {name: latest[name] for name in names}
        members = self.members
        return {name: bodies.untagged(members[name]) for name in names}

    @property
    def is_native(self) -> bool:
        """True if the body equals DynamoDB's representation byte for byte."""
        return self.kinds is None

    def cells(self, default_stamp_ms: int) -> dict[str, tuple[Cell, ...]]:
        """Return attribute name -> versions, newest first. Key columns are omitted only in contents of `of_cells`.

        A cell that was stored without a stamp has the default: the time at which its row was written.
        """
        if self._cells is None:
            stamps = orjson.loads(self.kinds).get("cells", {}) if self.kinds else {}
            versions_by_name: dict[str, tuple[Cell, ...]] = {}
            default_stamps = (default_stamp_ms,)
            for name, value in self.latest.items():
                stamps_of_name = stamps.get(name, default_stamps)
                newest = _new(Cell, (value, stamps_of_name[0]))
                if len(stamps_of_name) == 1:
                    versions_by_name[name] = (newest,)
                else:
                    older = (Cell(bodies.untagged(member), stamp) for stamp, member in stamps_of_name[1:])
                    versions_by_name[name] = (newest, *older)
            self._cells = versions_by_name
        return self._cells


class Row:
    """A stored row: position, contents, time of modification and of expiry.

    `modified_at`: ticks of 100 ns since 1970, strictly increasing for each row, and the ETag of every dialect that has
    one. `expires_at_ms`: None means never.
    """

    __slots__ = ("contents", "expires_at_ms", "modified_at", "position")

    def __init__(
        self, position: Position, contents: Contents, modified_at: int, expires_at_ms: int | None = None
    ) -> None:
        self.position = position
        self.contents = contents
        self.modified_at = modified_at
        self.expires_at_ms = expires_at_ms

    @property
    def body(self) -> bytes:
        return self.contents.body

    @property
    def kinds(self) -> bytes | None:
        """The complement of the body: see the module's docstring."""
        return self.contents.kinds

    @property
    def is_native(self) -> bool:
        """True if the body equals DynamoDB's representation byte for byte."""
        return self.contents.is_native

    @property
    def latest(self) -> dict[str, Value]:
        """Attribute name -> latest value, key columns included. Must not be modified."""
        return self.contents.latest

    @property
    def size_bytes(self) -> int:
        """Billed size of the contents, in bytes."""
        return self.contents.size_bytes

    @property
    def cells(self) -> dict[str, tuple[Cell, ...]]:
        """Attribute name -> versions, newest first. A cell without a stamp has the time of the row's last write."""
        return self.contents.cells(self.modified_at // TICKS_PER_MS)

    def __repr__(self) -> str:
        return f"Row({self.position!r}, {self.latest!r}, modified_at={self.modified_at})"
