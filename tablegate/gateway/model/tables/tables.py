"""Tables: key schema, indexes, rules for writes, expiry of rows, and the internal namespaces.

Properties of one dialect (billing mode, tags) are in `properties` under the name of the dialect. The gateway does not
interpret them.
"""

from __future__ import annotations

import bisect
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from enum import Enum
from typing import Any

from tablegate.gateway.model.tables.indexes import BaseIndex, Index
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.rows import Cell, Contents, Row, VersionWindow
from tablegate.gateway.model.values.values import Kind, Value, number_of

RESOURCE_POLICIES = "resource_policies"
"""Key in Table.properties of the policies of the table and its indexes (""), and of its streams, by label.

Each has the document as text and a revision. It is the only property that applies to all dialects.
"""


class State(Enum):
    """The state of a table or an index. ACTIVE accepts every command."""

    CREATING = "creating"
    ACTIVE = "active"
    UPDATING = "updating"
    DELETING = "deleting"


BUSY_STATES = frozenset({State.CREATING, State.DELETING})
"""The states in which a table refuses reads and writes of rows (TableBusy)."""


@dataclass(frozen=True, slots=True)
class ExpiryRule:
    """The expiry of rows: at the Unix time in a numeric attribute (DynamoDB), or `age_ms` after a cell's stamp (Table
    Store).

    A row of Table Store expires with its newest cell.
    """

    attribute: str | None = None
    age_ms: int | None = None


@dataclass(frozen=True, slots=True)
class StreamRule:
    """A change stream of a table: its label (part of its address), its view type, and the retention of changes.

    The engine sets `id` when a rule with a new label is enabled, and `shards`, the open ones as (number, first shard
    hash), sorted by hash. They are stored here because a writer has already locked the table's row and needs no further
    look-up.
    """

    label: str
    enabled: bool
    view: str
    retention_ms: int
    enabled_at_ms: int
    properties: Mapping[str, Any] = field(default_factory=dict)
    id: int = 0
    shards: tuple[tuple[int, int], ...] = ()

    def shard_of(self, shard_hash: int) -> int:
        """Return the number of the open shard of a shard hash."""
        return self.shards[bisect.bisect_right(self.shards, shard_hash, key=lambda shard: shard[1]) - 1][0]


@dataclass(frozen=True, slots=True)
class HistoryRule:
    """The retention of old rows for point-in-time recovery.

    - `days`: the retention. With None, history is kept only until pending copies are complete.
    - `since_ms`: the start of the history.
    - `id`: set by the engine, new for each rule.
    - `floor`: set by the engine, in ticks. The latest moment that a backup or a restore reads. All later writes have a
      greater time, so the rows of that moment no longer change.
    """

    days: int | None
    since_ms: int = 0
    id: int = 0
    floor: int = 0

    def earliest_ms(self, now_ms: int) -> int:
        """Return the earliest time that can be restored."""
        return self.since_ms if self.days is None else max(self.since_ms, now_ms - self.days * 86_400_000)


@dataclass(frozen=True, slots=True)
class Replica:
    """A table with the same rows as others: its name in the group (DynamoDB: the region), and its id.

    `ready`: all rows from before its creation have been copied.
    """

    name: str
    table_id: int
    ready: bool = True


@dataclass(frozen=True, slots=True)
class ReplicationRule:
    """The replicas of a table, and its own name among them.

    `strong`: writes are atomic over all replicas. Otherwise they follow asynchronously, and the later of two writes of
    a row wins. `witness`: the region of DynamoDB's witness, "" without one. No table is stored for it.
    """

    name: str
    peers: tuple[Replica, ...]
    strong: bool = False
    witness: str = ""

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(peer.name for peer in self.peers)

    @property
    def regions(self) -> tuple[str, ...]:
        """The names of all replicas, its own first."""
        return self.name, *self.others


# DynamoDB ignores a time to live more than five years in the past (docs/protocols/dynamodb.md rule 39).
_EXPIRY_WINDOW_S = 5 * 365 * 86_400


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules for every write of a table, in all dialects.

    `stamped`: cells keep the time of their own write (tables created through Table Store). `has_local_transactions`: it
    has had one, so writers look for locked partitions.

    The engine sets `followed` if the table has followers (engine/streams/following.py). Their changes are recorded in
    `log`, an internal stream, while clients have not enabled a stream.
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
        """The stream that records writes, if there is one."""
        return self.stream if self.stream is not None and self.stream.enabled else self.log

    def independent(self) -> Rules:
        """Return the rules for a copy of the table, without its history, followers, replicas and local transactions."""
        return replace(
            self, history=None, has_local_transactions=False, followed=False, log=None, replication=None
        )


@dataclass(frozen=True, slots=True)
class Table:
    """The descriptor of a table at `version`. `state` lasts until `busy_until_ms`. The table is ACTIVE after that."""

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
    other_indexes: tuple[BaseIndex, ...] = ()
    """The indexes of other kinds, each maintained by a capability."""
    features: frozenset[str] = field(init=False, repr=False, compare=False)
    """See `_features_of`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", _features_of(self))

    def state_at(self, now_ms: int) -> State:
        """Return the state at a time. After DELETING, the catalogue no longer returns the table."""
        return State.ACTIVE if now_ms >= self.busy_until_ms else self.state

    @property
    def all_indexes(self) -> tuple[BaseIndex, ...]:
        """The ordered indexes, then those of other kinds."""
        return (*self.indexes, *self.other_indexes)

    def index(self, name: str) -> Index | None:
        for index in self.indexes:
            if index.name == name:
                return index
        return None

    def expires_at_ms(self, row: Row) -> int | None:
        """Return the expiry time of a row, or None if it never expires."""
        rule = self.rules.expiry
        if rule is None:
            return None
        if rule.attribute is not None:
            value = row.contents.value(rule.attribute)
            number = None if value is None or value.kind is not Kind.DECIMAL else number_of(value)
            if number is None:
                return None
            seconds = int(number)
            written_at_s = row.modified_at // 10_000_000
            return None if seconds < written_at_s - _EXPIRY_WINDOW_S or seconds > 1 << 50 else seconds * 1000
        assert rule.age_ms is not None
        return self.written_at_ms(row) + rule.age_ms

    def written_at_ms(self, row: Row) -> int:
        """Return the stamp of the youngest cell of a row. The row of a key alone has the time of its last write."""
        return max(
            (versions[0].stamp_ms for versions in self.cells_of(row).values()),
            default=row.modified_at // 10_000,
        )

    def cells_of(self, row: Row) -> dict[str, tuple[Cell, ...]]:
        """Return the cells of a row without those of the key columns, which have no versions."""
        names = self.key_schema.names
        return {name: versions for name, versions in row.cells.items() if name not in names}

    def visible(self, row: Row | None, now_ms: int) -> Row | None:
        """Return the part of a row that is visible at a time. None if all its cells are past the table's maximum age.

        If rows expire by an attribute, they stay visible until the expiry job has deleted them.
        """
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
        visible_cells = {
            name: visible_versions
            for name, versions in cells.items()
            if (visible_versions := window.of(versions))
        }
        if not visible_cells:
            return None
        contents = Contents.of_cells(self.key_values(row.latest), visible_cells)
        return Row(row.position, contents, row.modified_at, row.expires_at_ms)

    def key_values(self, values: Mapping[str, Value]) -> dict[str, Value]:
        """Return the key columns among these attributes."""
        return {name: values[name] for name in self.key_schema.names if name in values}


def _features_of(table: Table) -> frozenset[str]:
    """Return the features of a table beyond rows with a key: indexes, an enabled stream, and each non-default rule.

    Non-default properties of key columns are features too. A new field of Rules, ExpiryRule or KeyColumn becomes a
    feature automatically. Each fast path lists the features that it supports, so it never handles a table with a new
    one.
    """
    rules = table.rules
    features = (
        {f"expiry.{name}" for name in _non_default_fields(rules.expiry)}
        if rules.expiry is not None
        else set()
    )
    features |= _non_default_fields(rules) - {"expiry", "stream"}
    if rules.stream is not None and rules.stream.enabled:
        features.add("stream")
    if table.indexes:
        features.add("indexes")
    if table.other_indexes:
        features.add("other_indexes")
    for column in table.key_schema.columns:
        features |= _non_default_fields(column)
    return frozenset(features)


def _non_default_fields(instance: Any) -> set[str]:
    """Return the names of the dataclass fields that differ from their defaults."""
    return {
        each.name
        for each in fields(instance)
        if each.default is not MISSING and getattr(instance, each.name) != each.default
    }


_AZURE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]{2,62}")


def azure_name_for(name: str, is_taken: Callable[[str], bool]) -> str:
    """Return the Azure name of a table: its own if it is legal and unique without case, else a readable stem with a
    digest.

    It is stored at creation and never computed again.
    """
    if _AZURE_NAME.fullmatch(name) and name.lower() != "tables" and not is_taken(name.lower()):
        return name
    stem = re.sub("[^A-Za-z0-9]", "", name)[:40]
    if not stem[:1].isalpha():
        stem = "t" + stem
    for attempt in range(1_000):
        digest = hashlib.sha256(f"{name}/{attempt}".encode()).hexdigest()[:12]
        if not is_taken((stem + digest).lower()):
            return stem + digest
    raise AssertionError("sha256 gave a thousand names that were taken")


SNAPSHOTS = "snapshot/"
"""Prefix of namespaces with the tables of a snapshot."""

RETAINED = "retained/"
"""Prefix of namespaces with the rows of backups, and of dropped tables that are still being copied."""


FOLLOWED = "followed/"
"""Prefix of namespaces of streams that exist only for the followers of a table."""


def namespace_of_job(job_id: int) -> str:
    """Return the namespace of the internal tables of a job. They are dropped when it ends."""
    return f"{RETAINED}job/{job_id}"


def namespace_of_backup(backup_id: int) -> str:
    """Return the namespace of the table with the rows of a backup."""
    return f"{RETAINED}{backup_id}"


def is_reserved_namespace(namespace: str) -> bool:
    """Return True if a namespace contains only copies."""
    return namespace.startswith((SNAPSHOTS, RETAINED))
