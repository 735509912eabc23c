"""What Table Store keeps of a table beyond the gateway's rules: options, throughput, defined columns, encryption, stream.

It lives in `Table.properties["tablestore"]` as plain JSON, by the names of `TableOptions`. A table that another dialect made has
the service's defaults.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
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
    """`throughput`: read and write units; `adjusted_at_s`: when they were last set. `defined`: (name, type) of each defined
    column. `encryption`: an SSESpecification, or empty. `splits`: where the maker asked for splits, as keys in PlainBuffer,
    hexadecimal; reported and otherwise without meaning."""

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
        """A table's options; the defaults where Table Store has never set any."""
        kept = table.properties.get(DIALECT)
        if kept is None:
            return cls(adjusted_at_s=table.created_at_ms // 1000)
        return cls(
            **{
                **kept,
                "throughput": tuple(kept["throughput"]),
                "splits": tuple(kept["splits"]),
                "defined": tuple((name, kind) for name, kind in kept["defined"]),
            }
        )

    def as_properties(self) -> dict[str, Any]:
        """The options as CreateTable and AlterTable of the gateway take them."""
        return {DIALECT: dataclasses.asdict(self)}

    def defined_type(self, name: str) -> int | None:
        """The type of a defined column, or None."""
        return dict(self.defined).get(name)


def was_made_here(table: Table) -> bool:
    """Whether Table Store made a table; if it only altered another dialect's, there are options and no id."""
    kept = table.properties.get(DIALECT)
    return kept is not None and bool(kept["table_id"])


def allows_update(table: Table) -> bool:
    """Whether UpdateRow may be used; asked for every update, so without making an Options."""
    kept = table.properties.get(DIALECT)
    return True if kept is None else kept["allow_update"]


def allows_transactions(table: Table) -> bool:
    """Whether local transactions may be begun: unless the maker of the table said no. (The Python SDK cannot ask for them,
    and its suite has a table made beforehand.)"""
    return TableOptions.of(table).local_transactions


def stamp_deviation_s(table: Table) -> int:
    """How far, in seconds, a cell's stamp may be from now."""
    kept = table.properties.get(DIALECT)
    return limits.DEVIATION_DEFAULT_S if kept is None else kept["deviation_s"]


def defined_types(table: Table) -> Mapping[str, int]:
    """The types of a table's defined columns by name; asked for every write."""
    kept = table.properties.get(DIALECT)
    return dict(kept["defined"]) if kept is not None and kept["defined"] else {}


def kept_for_ms(table: Table) -> float:
    """For how long a cell is shown after its stamp."""
    expiry = table.rules.expiry
    return math.inf if expiry is None or expiry.age_ms is None else expiry.age_ms


# Table options


def with_table_options(options: TableOptions, asked: messages.TableOptions) -> TableOptions:
    """Options after a request's table_options. Raises ServiceError."""
    if asked.HasField("deviation_cell_version_in_sec"):
        if asked.deviation_cell_version_in_sec <= 0:
            raise invalid("The deviation cell version in sec must be greater than 0.")
        options = dataclasses.replace(options, deviation_s=asked.deviation_cell_version_in_sec)
    if asked.HasField("allow_update"):
        options = dataclasses.replace(options, allow_update=asked.allow_update)
    return options


def rules_with(rules: Rules, asked: messages.TableOptions) -> Rules:
    """Rules after a request's table_options: how many versions are kept, and for how long. Raises ServiceError."""
    if asked.HasField("max_versions"):
        if asked.max_versions <= 0:
            raise invalid("The max versions must be greater than 0.")
        rules = dataclasses.replace(rules, max_versions=asked.max_versions)
    if asked.HasField("time_to_live"):
        seconds = asked.time_to_live
        if seconds != -1 and seconds < limits.TIME_TO_LIVE_MIN_S:
            raise invalid(f"The time to live must be -1 or at least {limits.TIME_TO_LIVE_MIN_S} seconds.")
        if seconds != -1:
            rules = dataclasses.replace(rules, expiry=ExpiryRule(age_ms=seconds * 1000))
        elif rules.expiry is not None and rules.expiry.age_ms is not None:
            rules = dataclasses.replace(rules, expiry=None)
    return rules


def table_options_message(table: Table) -> messages.TableOptions:
    """All options, as DescribeTable and UpdateTable always give them."""
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


def with_throughput(options: TableOptions, asked: messages.ReservedThroughput, now_ms: int) -> TableOptions:
    """Options after a request's reserved_throughput; what it does not name stays. Raises ServiceError."""
    read, write = options.throughput
    unit = asked.capacity_unit
    if unit.HasField("read"):
        read = unit.read
    if unit.HasField("write"):
        write = unit.write
    if not (0 <= read <= limits.THROUGHPUT_MAX_UNITS and 0 <= write <= limits.THROUGHPUT_MAX_UNITS):
        raise invalid(f"The reserved throughput must be in range: [0, {limits.THROUGHPUT_MAX_UNITS}].")
    return dataclasses.replace(options, throughput=(read, write), adjusted_at_s=now_ms // 1000)


def throughput_message(options: TableOptions) -> messages.ReservedThroughputDetails:
    """Reserved throughput as it is reported."""
    read, write = options.throughput
    return messages.ReservedThroughputDetails(
        capacity_unit=messages.CapacityUnit(read=read, write=write), last_increase_time=options.adjusted_at_s
    )


# Streams


def stream_rule(
    old: StreamRule | None, asked: messages.StreamSpecification, now_ms: int
) -> StreamRule | None:
    """The stream of a table after a request's stream_spec. Enabling begins a new stream, at now. Raises ServiceError."""
    if not asked.enable_stream:
        return None if old is None else dataclasses.replace(old, enabled=False)
    hours = asked.expiration_time if asked.HasField("expiration_time") else 0
    if not 0 <= hours <= limits.STREAM_HOURS_MAX:
        raise invalid(f"The stream expiration time must be in range: [1, {limits.STREAM_HOURS_MAX}].")
    hours = hours or limits.STREAM_HOURS_DEFAULT
    columns = list(asked.columns_to_get)
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
    """Sixteen digits, microseconds in form; another one than the table's last stream had."""
    label = now_ms * 1000
    if old is not None and old.label.isdigit():
        label = max(label, int(old.label) + 1)
    return f"{label:016d}"


def stream_message(table: Table) -> messages.StreamDetails:
    """A table's stream as DescribeTable and UpdateTable report it."""
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
