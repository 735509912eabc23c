"""DynamoDB's own properties of tables and indexes: billing, throughput, class, encryption, tags and others.

They are the documents in Table.properties["dynamodb"] and Index.properties. They change nothing about how rows are
stored. They hold what was set, and the values to show while a change is running.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any

from tablegate.adapters.dynamodb import DIALECT
from tablegate.adapters.dynamodb.wire import limits
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.tables import State, Table

_DAY_MS = 24 * 60 * 60 * 1000
ON_DEMAND = "PAY_PER_REQUEST"
PROVISIONED = "PROVISIONED"
DEFAULT_REPLICATION_MODE = "ENABLED_WITH_OVERRIDES"
INSIGHTS = "dynamodb/contributor_insights"
"""The key in Table.properties of the modes of contributor insights by index name ("" for the table).

It is separate from the other properties because handlers of items read it."""


@dataclass(frozen=True, slots=True)
class Throughput:
    """Provisioned capacity units and the history of their changes.

    `former` units are shown until a change is done. `decreases` counts those of `day` (UTC, YYYYMMDD).
    """

    read: int = 0
    write: int = 0
    former_read: int | None = None
    former_write: int | None = None
    changed_at_ms: int | None = None
    increased_at_ms: int | None = None
    decreased_at_ms: int | None = None
    decreases: int = 0
    former_decreases: int = 0
    day: str = ""

    def with_units(self, read: int, write: int, now_ms: int) -> Throughput:
        """Return the throughput after a change to these units."""
        up = read > self.read or write > self.write
        down = read < self.read or write < self.write
        today = _day(now_ms)
        decreases = self.decreases if self.day == today else 0
        return Throughput(
            read,
            write,
            self.read,
            self.write,
            now_ms,
            now_ms if up else self.increased_at_ms,
            now_ms if down else self.decreased_at_ms,
            decreases + down,
            decreases,
            today,
        )

    def with_mode_change(self, read: int, write: int, now_ms: int) -> Throughput:
        """Return the throughput after a change of the billing mode, which counts as neither increase nor decrease."""
        return replace(
            self, read=read, write=write, former_read=None, former_write=None, changed_at_ms=now_ms
        )

    def refused_until_ms(self, read: int, write: int, now_ms: int) -> int | None:
        """Return the time before which a change to these units exceeds the limit on decreases.

        None if it is allowed now.
        """
        is_decrease = read < self.read or write < self.write
        if not is_decrease or self.day != _day(now_ms) or self.decreases < limits.DECREASES_PER_DAY:
            return None
        midnight_ms = (now_ms // _DAY_MS + 1) * _DAY_MS
        until_ms = min((self.decreased_at_ms or 0) + limits.DECREASE_WAIT_MS, midnight_ms)
        return until_ms if now_ms < until_ms else None

    def describe(self, now_ms: int, changing: bool) -> dict[str, Any]:
        """Return ProvisionedThroughputDescription.

        A running change shows the time at which it began, and afterwards the time at which it ended (dynalite
        test/updateTable.js asserts both).
        """
        former = changing and self.former_read is not None
        decreases = self.former_decreases if former else self.decreases
        description: dict[str, Any] = {}
        for name, at_ms in (
            ("LastIncreaseDateTime", self.increased_at_ms),
            ("LastDecreaseDateTime", self.decreased_at_ms),
        ):
            if at_ms is not None:
                description[name] = seconds(at_ms if former and at_ms == self.changed_at_ms else at_ms + 1)
        description["NumberOfDecreasesToday"] = decreases if self.day == _day(now_ms) else 0
        description["ReadCapacityUnits"] = self.former_read if former else self.read
        description["WriteCapacityUnits"] = self.former_write if former else self.write
        return description


@dataclass(frozen=True, slots=True)
class WarmThroughput:
    """Units per second that a table or index is ready for. They never decrease."""

    read: int
    write: int

    def at_least(self, read: int, write: int) -> WarmThroughput:
        """Return the warm throughput, raised to these units if they are higher."""
        return WarmThroughput(max(self.read, read), max(self.write, write))


ON_DEMAND_WARM = WarmThroughput(limits.ON_DEMAND_WARM_READ_UNITS, limits.ON_DEMAND_WARM_WRITE_UNITS)


@dataclass(frozen=True, slots=True)
class TableProperties:
    """DynamoDB's own settings of a table. `on_demand`: the two on-demand maxima by wire name, if set."""

    billing: str = ON_DEMAND
    on_demand_since_ms: int | None = None
    throughput: Throughput = Throughput()
    warm: WarmThroughput = ON_DEMAND_WARM
    on_demand: Mapping[str, int] = field(default_factory=dict)
    table_class: str | None = None
    table_class_at_ms: int | None = None
    former_class: Mapping[str, Any] = field(default_factory=dict)
    """The description of the class before its latest change."""
    class_changes: Sequence[int] = ()
    """The times of the latest changes of the class."""
    deletion_protection: bool = False
    encryption_key: str | None = None
    encryption_change: Mapping[str, Any] | None = None
    """The latest change of the key: former_key, at_ms, until_ms, and the window of changes (since_ms, count)."""
    time_to_live_at_ms: int | None = None
    continuous_backups: bool = False
    """True if point-in-time recovery was switched on before continuous backups were ENABLED automatically."""
    tags: Mapping[str, str] = field(default_factory=dict)
    stream_tags: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Tags of the table's streams, by label."""
    restore: Mapping[str, Any] | None = None
    """The RestoreSummary of a table while it is being restored."""
    change: Mapping[str, Any] | None = None
    """The latest change that takes time: its kind and the facts that running_changes.py stores."""
    replicas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Settings of all replicas of a global table, by region, including this one. Each replica stores all of them.

    Members: encryption_key, read_units, max_read_units, indexes (the last two by index), table_class and table_class_at_ms,
    creating_until_ms."""
    replication_mode: str = DEFAULT_REPLICATION_MODE
    disassociation_protection: bool = True
    sourced: Mapping[str, int] = field(default_factory=dict)
    """The times at which replicas were added from this region, by region."""
    auto_scaling: Mapping[str, Any] = field(default_factory=dict)
    """Auto scaling of a global table: settings by key (write, write/INDEX, REGION/read or REGION/read/INDEX)."""
    kinesis: Sequence[Mapping[str, Any]] = ()
    """Kinesis destinations, one for each stream: arn, on, failure (a reason or None), precision, updating, changed_at_ms."""
    insights: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Contributor insights by index name ("" for the table): on, mode, since_ms, changed_at_ms."""

    @classmethod
    def of(cls, table: Table) -> TableProperties:
        """Return the properties of a table. A table of another dialect counts as on-demand since its creation."""
        stored = table.properties.get(DIALECT)
        if stored is None:
            return cls(on_demand_since_ms=table.created_at_ms)
        return _load(cls, stored)

    def document(self) -> dict[str, Any]:
        """Return the properties in the form of commands: documents by dialect."""
        on = {name: insights["mode"] for name, insights in self.insights.items() if insights["on"]}
        # AlterTable keeps documents that are absent, so an empty document is passed too.
        return {DIALECT: asdict(self), INSIGHTS: on}


def is_being_restored(table: Table, now_ms: int) -> bool:
    """Return True while a restore fills a table."""
    return table.state_at(now_ms) is State.CREATING and TableProperties.of(table).restore is not None


def is_being_filled(table: Table, now_ms: int) -> bool:
    """Return True while a table gets its items from a restore or from other replicas.

    Meanwhile, DescribeTable and few other operations find it (ack-api-quirks 217, 298).
    """
    is_replica = table.rules.replication is not None
    return is_being_restored(table, now_ms) or (is_replica and table.state_at(now_ms) is State.CREATING)


@dataclass(frozen=True, slots=True)
class IndexProperties:
    """DynamoDB's own settings of a global index."""

    throughput: Throughput = Throughput()
    warm: WarmThroughput = ON_DEMAND_WARM
    on_demand: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, index: Index) -> IndexProperties:
        """Return the properties of an index. An index of another dialect has the defaults."""
        return _load(cls, index.properties)

    def document(self) -> dict[str, Any]:
        """Return the properties in the form of NewIndex and AlterTable."""
        return asdict(self)


def with_limits(current: Mapping[str, int], changes: Mapping[str, int]) -> dict[str, int]:
    """Return on-demand maxima after a request. OnDemandThroughput is merged by member, and -1 removes a maximum."""
    return {name: units for name, units in {**current, **changes}.items() if units != -1}


def provisioned(owner: Any, read: int, write: int, now_ms: int) -> Any:
    """Return the properties of a table or index after a change of its capacity. Warm throughput never decreases."""
    return replace(
        owner,
        throughput=owner.throughput.with_units(read, write, now_ms),
        warm=owner.warm.at_least(read, write),
    )


def seconds(at_ms: int) -> float:
    """Return a time in the service's unit: seconds since 1970, with a fraction."""
    return at_ms / 1000


def _day(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y%m%d")


_NESTED = {"throughput": Throughput, "warm": WarmThroughput}


def _load(kind: Any, stored: Mapping[str, Any]) -> Any:
    """Return properties from a stored document.

    Members absent from it, as an older server wrote it, have their defaults.
    """
    names = {item.name for item in fields(kind)}
    return kind(
        **{
            name: _NESTED[name](**value) if name in _NESTED else value
            for name, value in stored.items()
            if name in names
        }
    )
