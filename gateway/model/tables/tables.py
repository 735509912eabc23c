"""Tables: key schema, indexes, the rules that every write obeys, and when a row expires.

What only a dialect uses (billing mode, tags, access policies) is in `properties` under the name of the dialect. The gateway does
not interpret it.
"""

from __future__ import annotations

import bisect
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import Enum
from typing import Any

from tablegate.gateway.model.tables.indexes import Index, VectorIndex
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.rows import Cell, Contents, Row, VersionWindow
from tablegate.gateway.model.values.values import Kind, Value, number_of

RESOURCE_POLICIES = "resource_policies"
"""In Table.properties: who else may do what to the table and its indexes (""), and to streams of it, by label; of each the
document as text, and its revision. Of all properties the only one that is not a dialect's: it holds in all of them."""


class State(Enum):
    """Where a table or an index is in its life. `active` accepts everything."""

    CREATING = "creating"
    ACTIVE = "active"
    UPDATING = "updating"
    DELETING = "deleting"


@dataclass(frozen=True, slots=True)
class ExpiryRule:
    """When rows expire: at the second named by a numeric attribute (DynamoDB), or `age_ms` after a cell's stamp
    (Table Store; a row goes when its youngest cell does)."""

    attribute: str | None = None
    age_ms: int | None = None


@dataclass(frozen=True, slots=True)
class StreamRule:
    """A change stream of a table: its label (part of its address), what its reader shows, how long changes are kept.

    The engine's own: `id`, given when a rule with a new label is enabled, and `shards`, the open ones in the order of their
    slots as (number, first slot). They stand here so that a writer, who has the table's row locked, need not look further.
    """

    label: str
    enabled: bool
    view: str
    retention_ms: int
    enabled_at_ms: int
    properties: Mapping[str, Any] = field(default_factory=dict)
    id: int = 0
    shards: tuple[tuple[int, int], ...] = ()

    def shard_of(self, slot: int) -> int:
        """The number of the open shard that a slot belongs to."""
        return self.shards[bisect.bisect_right(self.shards, slot, key=lambda shard: shard[1]) - 1][0]


@dataclass(frozen=True, slots=True)
class HistoryRule:
    """What rows were is kept, so that the table can be copied as it was. `days`: for how long (None: only until the copies that
    are being made are done); `since_ms`: nothing can be told of earlier times.

    The engine's own: `id`, new with each rule; `floor`: every change from now on happens later than that (in ticks), so that
    nothing can be added to a moment that is being copied.
    """

    days: int | None
    since_ms: int = 0
    id: int = 0
    floor: int = 0

    def earliest_ms(self, now_ms: int) -> int:
        """The first moment that can be gone back to."""
        return self.since_ms if self.days is None else max(self.since_ms, now_ms - self.days * 86_400_000)


@dataclass(frozen=True, slots=True)
class Replica:
    """A table that has the same rows as others: what its group calls it (DynamoDB: the region), and its id. `ready`: whether all
    rows that were there when it came have been brought."""

    name: str
    table_id: int
    ready: bool = True


@dataclass(frozen=True, slots=True)
class ReplicationRule:
    """A table is one of several that have the same rows: what it is called among them, and the others. `strong`: a write is
    in all of them or in none; else it follows later, and of two writes of a row the later one stays. `witness`: what stands
    in for a third one, without rows."""

    name: str
    peers: tuple[Replica, ...]
    strong: bool = False
    witness: str = ""

    @property
    def others(self) -> tuple[str, ...]:
        """The names of the others."""
        return tuple(peer.name for peer in self.peers)

    @property
    def regions(self) -> tuple[str, ...]:
        """The names of all, its own first."""
        return self.name, *self.others


# DynamoDB: a time to live more than five years in the past does not count (docs/protocols/dynamodb.md rule 39).
_EXPIRY_WINDOW_S = 5 * 365 * 86_400


@dataclass(frozen=True, slots=True)
class Rules:
    """What every write of a table obeys, whatever its dialect.

    `stamped`: cells keep the time of their own write (tables made through Table Store). `has_local_transactions`:
    it has had one, so writers look for locked partitions.

    The engine's own: `followed`: somebody follows its changes (engine/streams/following.py), for whom they are recorded in `log`,
    a stream that no client sees, while clients have no stream of their own.
    """

    expiry: ExpiryRule | None = None
    stream: StreamRule | None = None
    max_versions: int = 1
    stamped: bool = False
    has_local_transactions: bool = False
    history: HistoryRule | None = None
    followed: bool = False
    log: StreamRule | None = None
    replication: ReplicationRule | None = None

    @property
    def recorder(self) -> StreamRule | None:
        """The stream in which writes are recorded, if there is one."""
        return self.stream if self.stream is not None and self.stream.enabled else self.log


@dataclass(frozen=True, slots=True)
class Table:
    """A table's descriptor, as it was at `version`. `state` lasts until `busy_until_ms`, and is ACTIVE from then on."""

    id: int
    namespace: str
    name: str
    azure_name: str
    key_schema: KeySchema
    indexes: tuple[Index, ...]
    rules: Rules
    properties: Mapping[str, Any]
    state: State
    busy_until_ms: int
    version: int
    created_at_ms: int
    vector_indexes: tuple[VectorIndex, ...] = ()
    features: frozenset[str] = field(init=False, repr=False, compare=False)
    """See `_features_of`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", _features_of(self))

    def state_at(self, now_ms: int) -> State:
        """The state at a moment. A table whose DELETING is over is gone: the catalogue no longer gives it."""
        return State.ACTIVE if now_ms >= self.busy_until_ms else self.state

    @property
    def all_indexes(self) -> tuple[Index | VectorIndex, ...]:
        """The indexes of both sorts."""
        return (*self.indexes, *self.vector_indexes)

    def index(self, name: str) -> Index | None:
        """The index of that name."""
        for index in self.indexes:
            if index.name == name:
                return index
        return None

    def vector_index(self, name: str) -> VectorIndex | None:
        """The vector index of that name."""
        for index in self.vector_indexes:
            if index.name == name:
                return index
        return None

    def expires_at_ms(self, row: Row) -> int | None:
        """When a row expires, or None: never."""
        rule = self.rules.expiry
        if rule is None:
            return None
        if rule.attribute is not None:
            value = row.latest.get(rule.attribute)
            number = None if value is None or value.kind is not Kind.DECIMAL else number_of(value)
            if number is None:
                return None
            seconds = int(number)
            written_at_s = row.modified_at // 10_000_000
            return None if seconds < written_at_s - _EXPIRY_WINDOW_S or seconds > 1 << 50 else seconds * 1000
        assert rule.age_ms is not None
        youngest = max(
            (versions[0].stamp_ms for versions in self.cells_of(row).values()),
            default=row.modified_at // 10_000,
        )
        return youngest + rule.age_ms

    def cells_of(self, row: Row) -> dict[str, tuple[Cell, ...]]:
        """A row's cells without those of the key columns, which have no versions."""
        names = self.key_schema.names
        return {name: versions for name, versions in row.cells.items() if name not in names}

    def visible(self, row: Row | None, now_ms: int) -> Row | None:
        """What is left of a row at a moment: cells past the table's age are gone, and with the last of them the row. Where
        the table's rule is no age, rows stay until the sweep has deleted them."""
        age_ms = None if self.rules.expiry is None else self.rules.expiry.age_ms
        if row is None or age_ms is None:
            return row
        since_ms = now_ms - age_ms
        cells = self.cells_of(row)
        if not cells:
            return row if row.modified_at // 10_000 >= since_ms else None
        if all(versions[-1].stamp_ms >= since_ms for versions in cells.values()):
            return row
        window = VersionWindow(start_ms=since_ms)
        left = {name: kept for name, versions in cells.items() if (kept := window.of(versions))}
        if not left:
            return None
        contents = Contents.of_cells(self.key_values(row.latest), left)
        return Row(row.position, contents, row.modified_at, row.expires_at_ms)

    def key_values(self, values: Mapping[str, Value]) -> dict[str, Value]:
        """The key columns among these attributes."""
        return {name: values[name] for name in self.key_schema.names if name in values}


def _features_of(table: Table) -> frozenset[str]:
    """What a table has beyond rows with a key: indexes, an enabled stream, each rule and each property of a key column that is
    not the usual one. A new field of Rules, ExpiryRule or KeyColumn is a feature as soon as it is there: a fast path has a list
    of the features that it can do with, and so leaves alone what it has not been thought through for."""
    rules = table.rules
    found = {f"expiry.{name}" for name in _unusual(rules.expiry)} if rules.expiry is not None else set()
    found |= _unusual(rules) - {"expiry", "stream"}
    if rules.stream is not None and rules.stream.enabled:
        found.add("stream")
    if table.indexes:
        found.add("indexes")
    if table.vector_indexes:
        found.add("vector_indexes")
    for column in table.key_schema.columns:
        found |= _unusual(column)
    return frozenset(found)


def _unusual(described: Any) -> set[str]:
    """The names of the fields of a dataclass that have another value than their default."""
    return {
        each.name
        for each in fields(described)
        if each.default is not MISSING and getattr(described, each.name) != each.default
    }


_AZURE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]{2,62}")


def azure_name_for(name: str, taken: Callable[[str], bool]) -> str:
    """The name under which Azure knows a table: its own if legal there and free without case, else a readable stem with a
    digest. Stored at creation and looked up, never computed back."""
    if _AZURE_NAME.fullmatch(name) and name.lower() != "tables" and not taken(name.lower()):
        return name
    stem = re.sub("[^A-Za-z0-9]", "", name)[:40]
    if not stem[:1].isalpha():
        stem = "t" + stem
    for attempt in range(1_000):
        digest = hashlib.sha256(f"{name}/{attempt}".encode()).hexdigest()[:12]
        if not taken((stem + digest).lower()):
            return stem + digest
    raise AssertionError("sha256 gave a thousand names that were taken")
