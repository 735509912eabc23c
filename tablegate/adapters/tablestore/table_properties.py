"""Table Store's own properties of a table: options, throughput, defined columns, encryption, stream.

They are stored in `Table.properties["tablestore"]` as plain JSON, by the names of `TableOptions`. A table of another
dialect has the service's defaults.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tablegate.adapters.tablestore import DIALECT
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.tables.tables import ExpiryRule, Rules, StreamRule, Table

_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class TableOptions:
    """Table Store's own properties of a table.

    - `throughput`: read and write units. `adjusted_at_s`: the time of their last change.
    - `defined`: (name, type) of each defined column.
    - `encryption`: an SSESpecification, or empty.
    - `splits`: requested split points, as keys in PlainBuffer, hexadecimal. They are only reported.
    """

    table_id: str = ""
    deviation_s: int = limits.DEVIATION_DEFAULT_S
    allow_update: bool = True
    update_full_row: bool = False
    throughput: tuple[int, int] = (0, 0)
    adjusted_at_s: int = 0
    defined: tuple[tuple[str, int], ...] = ()
    encryption: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    local_transactions: bool = True
    splits: tuple[str, ...] = ()

    @classmethod
    def of(cls, table: Table) -> TableOptions:
        """Return the options of a table, or the defaults if it has none."""
        stored = table.properties.get(DIALECT)
        if stored is None:
            return cls(adjusted_at_s=table.created_at_ms // 1000)
        return cls(
            **{
                **stored,
                "throughput": tuple(stored["throughput"]),
                "splits": tuple(stored["splits"]),
                "defined": tuple((name, kind) for name, kind in stored["defined"]),
            }
        )

    def as_properties(self) -> dict[str, Any]:
        """Return the options as properties for CreateTable and AlterTable of the gateway."""
        return {DIALECT: dataclasses.asdict(self)}

    def defined_type(self, name: str) -> int | None:
        return dict(self.defined).get(name)


def was_created_by_table_store(table: Table) -> bool:
    """Return True if the table was created through Table Store.

    A table of another dialect that Table Store has altered has options without an id.
    """
    stored = table.properties.get(DIALECT)
    return stored is not None and bool(stored["table_id"])


def allows_update(table: Table) -> bool:
    """Return True if UpdateRow is allowed. It runs for every update, so it does not create TableOptions."""
    stored = table.properties.get(DIALECT)
    return True if stored is None else stored["allow_update"]


def allows_transactions(table: Table) -> bool:
    """Return True unless the creator of the table disabled local transactions.

    They are allowed by default, because the Python SDK cannot enable them when it creates a table, and its test suite
    uses a prepared table.
    """
    return TableOptions.of(table).local_transactions


def stamp_deviation_s(table: Table) -> int:
    """Return the maximum deviation of a cell's stamp from the current time, in seconds."""
    stored = table.properties.get(DIALECT)
    return limits.DEVIATION_DEFAULT_S if stored is None else stored["deviation_s"]


def defined_types(table: Table) -> Mapping[str, int]:
    """Return the types of a table's defined columns by name. It runs for every write."""
    stored = table.properties.get(DIALECT)
    return dict(stored["defined"]) if stored is not None and stored["defined"] else {}


def cell_lifetime_ms(table: Table) -> float:
    """Return the time for which a cell is visible after its stamp, in milliseconds."""
    expiry = table.rules.expiry
    return math.inf if expiry is None or expiry.age_ms is None else expiry.age_ms


# Table options

UPDATE_CHECKS: list[Callable[[Table, Rules, TableOptions], Awaitable[None]]] = []
"""The checks of capabilities before UpdateTable gives a table other rules and options. They raise ServiceError."""


def with_table_options(options: TableOptions, requested: messages.TableOptions) -> TableOptions:
    """Return the options changed by a request's table_options. Raises ServiceError."""
    if requested.HasField("deviation_cell_version_in_sec"):
        if requested.deviation_cell_version_in_sec <= 0:
            raise invalid("The deviation cell version in sec must be greater than 0.")
        options = dataclasses.replace(options, deviation_s=requested.deviation_cell_version_in_sec)
    if requested.HasField("allow_update"):
        options = dataclasses.replace(options, allow_update=requested.allow_update)
    return options


def rules_with(rules: Rules, requested: messages.TableOptions) -> Rules:
    """Return the rules changed by a request's table_options: number and lifetime of versions. Raises ServiceError."""
    if requested.HasField("max_versions"):
        if requested.max_versions <= 0:
            raise invalid("The max versions must be greater than 0.")
        rules = dataclasses.replace(rules, max_versions=requested.max_versions)
    if requested.HasField("time_to_live"):
        seconds = requested.time_to_live
        if seconds == 0 or seconds < -1:  # Source: aliyun-tablestore-go-sdk issue 18. The other text is ours.
            raise invalid("TimeToLive cannot be 0 or less than -1.")
        if seconds != -1 and seconds < limits.TIME_TO_LIVE_MIN_S:
            raise invalid(f"The time to live must be -1 or at least {limits.TIME_TO_LIVE_MIN_S} seconds.")
        if seconds != -1:
            rules = dataclasses.replace(rules, expiry=ExpiryRule(age_ms=seconds * 1000))
        elif rules.expiry is not None and rules.expiry.age_ms is not None:
            rules = dataclasses.replace(rules, expiry=None)
    return rules


def table_options_message(table: Table) -> messages.TableOptions:
    """Return all options for DescribeTable and UpdateTable."""
    options = TableOptions.of(table)
    expiry = table.rules.expiry
    age_ms = None if expiry is None else expiry.age_ms
    return messages.TableOptions(
        time_to_live=-1 if age_ms is None else age_ms // 1000,
        max_versions=table.rules.max_versions,
        deviation_cell_version_in_sec=options.deviation_s,
        allow_update=options.allow_update,
        update_full_row=options.update_full_row,
    )


# Throughput


def with_throughput(
    options: TableOptions, requested: messages.ReservedThroughput, now_ms: int
) -> TableOptions:
    """Return the options changed by a request's reserved_throughput. Omitted units stay. Raises ServiceError."""
    read, write = options.throughput
    unit = requested.capacity_unit
    if unit.HasField("read"):
        read = unit.read
    if unit.HasField("write"):
        write = unit.write
    if not (0 <= read <= limits.THROUGHPUT_MAX_UNITS and 0 <= write <= limits.THROUGHPUT_MAX_UNITS):
        raise invalid(f"The reserved throughput must be in range: [0, {limits.THROUGHPUT_MAX_UNITS}].")
    return dataclasses.replace(options, throughput=(read, write), adjusted_at_s=now_ms // 1000)


def throughput_message(options: TableOptions) -> messages.ReservedThroughputDetails:
    """Return the reserved throughput for a reply."""
    read, write = options.throughput
    return messages.ReservedThroughputDetails(
        capacity_unit=messages.CapacityUnit(read=read, write=write), last_increase_time=options.adjusted_at_s
    )


# Streams


def stream_rule(
    old: StreamRule | None, requested: messages.StreamSpecification, now_ms: int
) -> StreamRule | None:
    """Return the stream of a table changed by a request's stream_spec. Enabling creates a new stream. Raises
    ServiceError."""
    if not requested.enable_stream:
        return None if old is None else dataclasses.replace(old, enabled=False)
    hours = requested.expiration_time if requested.HasField("expiration_time") else 0
    if not 0 <= hours <= limits.STREAM_HOURS_MAX:
        raise invalid(f"The stream expiration time must be in range: [1, {limits.STREAM_HOURS_MAX}].")
    hours = hours or limits.STREAM_HOURS_DEFAULT
    columns = list(requested.columns_to_get)
    if old is not None and old.enabled:
        return dataclasses.replace(
            old, retention_ms=hours * _HOUR_MS, properties={**old.properties, "columns": columns}
        )
    return StreamRule(
        label=_label(old, now_ms),
        enabled=True,
        view="NEW_AND_OLD_IMAGES",
        retention_ms=hours * _HOUR_MS,
        enabled_at_ms=now_ms,
        properties={"columns": columns},
    )


def _label(old: StreamRule | None, now_ms: int) -> str:
    """Return a label in the form of microseconds with 16 digits, greater than that of the last stream."""
    label = now_ms * 1000
    if old is not None and old.label.isdigit():
        label = max(label, int(old.label) + 1)
    return f"{label:016d}"


def stream_message(table: Table) -> messages.StreamDetails:
    """Return the stream of a table for DescribeTable and UpdateTable."""
    rule = table.rules.stream
    if rule is None or not rule.enabled:
        return messages.StreamDetails(enable_stream=False, last_enable_time=0)
    return messages.StreamDetails(
        enable_stream=True,
        stream_id=f"{table.name}_{rule.label}",
        expiration_time=rule.retention_ms // _HOUR_MS,
        last_enable_time=rule.enabled_at_ms * 1000,
        columns_to_get=rule.properties.get("columns", ()),
    )
