"""What DynamoDB keeps of a table and an index besides schema and rules: billing, throughput, class, encryption, tags.

These are the documents in Table.properties["dynamodb"] and Index.properties. Nothing here changes how rows are stored; it
reads back what was set, and says how it looks while a change is under way.
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
"""In Table.properties: the modes of what has contributor insights, by the name of the index ("": of the table). It stands beside
the other properties because handlers of items look there."""


@dataclass(frozen=True, slots=True)
class Throughput:
    """Provisioned capacity units, and the history of their changes. `former`: what is shown until a change is done.

    `decreases` counts those of `day` (UTC, YYYYMMDD)."""

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

    def changed(self, read: int, write: int, now_ms: int) -> Throughput:
        """The throughput after a change to these units."""
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

    def switched(self, read: int, write: int, now_ms: int) -> Throughput:
        """The throughput after a change of the billing mode, which counts as neither increase nor decrease."""
        return replace(
            self, read=read, write=write, former_read=None, former_write=None, changed_at_ms=now_ms
        )

    def refused_until_ms(self, read: int, write: int, now_ms: int) -> int | None:
        """The moment until which a change to these units has to wait, as one decrease too many; None: it has not to."""
        is_decrease = read < self.read or write < self.write
        if not is_decrease or self.day != _day(now_ms) or self.decreases < limits.DECREASES_PER_DAY:
            return None
        midnight_ms = (now_ms // _DAY_MS + 1) * _DAY_MS
        until_ms = min((self.decreased_at_ms or 0) + limits.DECREASE_WAIT_MS, midnight_ms)
        return until_ms if now_ms < until_ms else None

    def shown(self, now_ms: int, changing: bool) -> dict[str, Any]:
        """The throughput as ProvisionedThroughputDescription. A change under way has the moment at which it began, and then
        one after it, at which it ended (dynalite test/updateTable.js asserts both)."""
        former = changing and self.former_read is not None
        decreases = self.former_decreases if former else self.decreases
        shown: dict[str, Any] = {}
        for name, at_ms in (
            ("LastIncreaseDateTime", self.increased_at_ms),
            ("LastDecreaseDateTime", self.decreased_at_ms),
        ):
            if at_ms is not None:
                shown[name] = seconds(at_ms if former and at_ms == self.changed_at_ms else at_ms + 1)
        shown["NumberOfDecreasesToday"] = decreases if self.day == _day(now_ms) else 0
        shown["ReadCapacityUnits"] = self.former_read if former else self.read
        shown["WriteCapacityUnits"] = self.former_write if former else self.write
        return shown


@dataclass(frozen=True, slots=True)
class WarmThroughput:
    """Units a second that a table or index is ready for. It never decreases."""

    read: int
    write: int

    def at_least(self, read: int, write: int) -> WarmThroughput:
        """The warm throughput, raised to these units where they are higher."""
        return WarmThroughput(max(self.read, read), max(self.write, write))


ON_DEMAND_WARM = WarmThroughput(limits.ON_DEMAND_WARM_READ_UNITS, limits.ON_DEMAND_WARM_WRITE_UNITS)


@dataclass(frozen=True, slots=True)
class TableProperties:
    """DynamoDB's own settings of a table. `on_demand`: the two maxima that were set, by wire name."""

    billing: str = ON_DEMAND
    on_demand_since_ms: int | None = None
    throughput: Throughput = Throughput()
    warm: WarmThroughput = ON_DEMAND_WARM
    on_demand: Mapping[str, int] = field(default_factory=dict)
    table_class: str | None = None
    table_class_at_ms: int | None = None
    former_class: Mapping[str, Any] = field(default_factory=dict)
    """What was told of the class before its latest change."""
    class_changes: Sequence[int] = ()
    """The moments of the latest changes of the class."""
    deletion_protection: bool = False
    encryption_key: str | None = None
    encryption_change: Mapping[str, Any] | None = None
    """The latest change of the key: former_key, at_ms, until_ms, and the window of changes (since_ms, count)."""
    time_to_live_at_ms: int | None = None
    continuous_backups: bool = False
    """True once point-in-time recovery was switched on before continuous backups were ENABLED by themselves."""
    tags: Mapping[str, str] = field(default_factory=dict)
    stream_tags: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Tags of the table's streams, by label."""
    restore: Mapping[str, Any] | None = None
    """Of a table that is restored: the RestoreSummary that is shown meanwhile."""
    change: Mapping[str, Any] | None = None
    """The latest change that took a while: kind, and what running_changes.py keeps of it."""
    replicas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What is set of the replicas of a global table, its own region among them, by region: encryption_key, read_units,
    max_read_units, indexes (the last two by index), table_class and table_class_at_ms, creating_until_ms. Each of them has
    all."""
    replication_mode: str = DEFAULT_REPLICATION_MODE
    disassociation_protection: bool = True
    sourced: Mapping[str, int] = field(default_factory=dict)
    """When replicas were added from here, by region."""
    auto_scaling: Mapping[str, Any] = field(default_factory=dict)
    """Auto scaling of a global table: settings by "/"-joined place: write, write/INDEX, REGION/read, REGION/read/INDEX."""
    kinesis: Sequence[Mapping[str, Any]] = ()
    """Kinesis destinations, one of a stream: arn, on, failure (why it could not be), precision, updating, changed_at_ms."""
    insights: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What is known of contributor insights, by the name of the index ("": of the table): on, mode, since_ms, changed_at_ms."""

    @classmethod
    def of(cls, table: Table) -> TableProperties:
        """The properties of a table. One that another dialect made counts as on demand since its creation."""
        stored = table.properties.get(DIALECT)
        if stored is None:
            return cls(on_demand_since_ms=table.created_at_ms)
        return _load(cls, stored)

    def document(self) -> dict[str, Any]:
        """The properties as commands take them: documents by dialect."""
        on = {name: known["mode"] for name, known in self.insights.items() if known["on"]}
        # AlterTable keeps documents that are not given, so an empty one is given too.
        return {DIALECT: asdict(self), INSIGHTS: on}


def is_being_restored(table: Table, now_ms: int) -> bool:
    """True while a table is filled by a restore."""
    return table.state_at(now_ms) is State.CREATING and TableProperties.of(table).restore is not None


def is_being_filled(table: Table, now_ms: int) -> bool:
    """True while a table gets its items from a restore, or from the other replicas of a global table. Little but DescribeTable
    finds it meanwhile (ack-api-quirks 217, 298)."""
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
        """The properties of an index; the defaults for one that another dialect made."""
        return _load(cls, index.properties)

    def document(self) -> dict[str, Any]:
        """The properties as NewIndex and AlterTable take them."""
        return asdict(self)


def with_limits(known: Mapping[str, int], given: Mapping[str, int]) -> dict[str, int]:
    """On-demand maxima after a request: OnDemandThroughput is merged member by member, and -1 takes a maximum away."""
    return {name: units for name, units in {**known, **given}.items() if units != -1}


def provisioned(owner: Any, read: int, write: int, now_ms: int) -> Any:
    """The properties of a table or index after a change of its capacity; it stays as warm as it ever was."""
    return replace(
        owner, throughput=owner.throughput.changed(read, write, now_ms), warm=owner.warm.at_least(read, write)
    )


def seconds(at_ms: int) -> float:
    """A moment as the service writes it: seconds since 1970, with a fraction."""
    return at_ms / 1000


def _day(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y%m%d")


_NESTED = {"throughput": Throughput, "warm": WarmThroughput}


def _load(kind: Any, stored: Mapping[str, Any]) -> Any:
    """Properties from a stored document; members it lacks (an older server wrote it) have their defaults."""
    known = {item.name for item in fields(kind)}
    return kind(
        **{
            name: _NESTED[name](**value) if name in _NESTED else value
            for name, value in stored.items()
            if name in known
        }
    )
