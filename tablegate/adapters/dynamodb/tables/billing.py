"""Billing mode and throughput in CreateTable and UpdateTable, compared with those of the table. Pure.

Rules that need no table are in table_rules.py. Sources: dynalite actions/updateTable.js; dynoxide (captures in
eu-west-2, July 2026); ack-api-quirks (live service, October 2026: findings 049, 056, 059, 128, 134, 152, 153, 164,
178).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from tablegate.adapters.dynamodb.tables import properties
from tablegate.adapters.dynamodb.wire import error_texts, limits
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.gateway.model.errors import IndexMissing
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.tables import State, Table

_INITIAL = (
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html"
    "#on-demand-capacity-mode-initial"
)
_PROVISIONED_UNITS = "{} of ProvisionedThroughput"
_WARM_NAMES = ("ReadUnitsPerSecond", "WriteUnitsPerSecond")

Units = Mapping[str, Any]


# At creation


def of_new_table(arguments: Units, now_ms: int) -> properties.TableProperties:
    """Return the properties of a new table with its billing and throughput."""
    mode = arguments.get("BillingMode", properties.PROVISIONED)
    throughput, warm, on_demand = _of_new(arguments, mode, "table")
    since = now_ms if mode == properties.ON_DEMAND else None
    return properties.TableProperties(mode, since, throughput, warm, on_demand)


def of_new_index(definition: Units, mode: str, updating: bool = False) -> properties.IndexProperties:
    """Return the properties of a new global index.

    `updating`: UpdateTable adds it, so that its throughput can contradict the mode of the table.
    """
    name = definition["IndexName"]
    units = definition.get("ProvisionedThroughput")
    if updating and bool(units) is (mode == properties.ON_DEMAND):
        head = "Both ReadCapacityUnits and WriteCapacityUnits must be specified"
        tail = ""
        if units:
            head = "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified"
            tail = f" when BillingMode is {properties.ON_DEMAND}"
        raise validation(f"{error_texts.INVALID}{head} for index: {name}{tail}")
    return properties.IndexProperties(*_of_new(definition, mode, f"index {name}"))


def _of_new(
    definition: Units, mode: str, owner: str
) -> tuple[properties.Throughput, properties.WarmThroughput, dict[str, int]]:
    """Return (throughput, warm throughput, on-demand maxima) of a new table or index. `owner`: its name in texts."""
    on_demand = definition.get("OnDemandThroughput", {})
    floor = properties.ON_DEMAND_WARM
    throughput = properties.Throughput()
    if mode == properties.PROVISIONED:
        units = definition["ProvisionedThroughput"]
        throughput = properties.Throughput(units["ReadCapacityUnits"], units["WriteCapacityUnits"])
        floor = properties.WarmThroughput(throughput.read, throughput.write)
        rest = f"cannot be specified when table BillingMode is {properties.PROVISIONED}."
        _refuse_on_demand(on_demand, rest, owner.replace("index ", "index: "))
    _check_on_demand(on_demand, owner, lowest=1)
    below = (
        f"initial throughput for OnDemand. See: {_INITIAL}"
        if mode == properties.ON_DEMAND
        else _PROVISIONED_UNITS
    )
    warm = _new_warm_throughput(definition.get("WarmThroughput", {}), floor, owner, below)
    return throughput, warm, dict(on_demand)


# Later


def of_table(table: Table, arguments: Units, now_ms: int) -> properties.TableProperties:
    """Return the table's properties after an UpdateTable.

    Raises ServiceError for a conflict with its present properties.
    """
    current = properties.TableProperties.of(table)
    mode = arguments.get("BillingMode", current.billing)
    units = arguments.get("ProvisionedThroughput")
    if units and mode == properties.ON_DEMAND:
        text = f"Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is {properties.ON_DEMAND}"
        raise validation(error_texts.INVALID + text)
    new = current
    if mode != current.billing:
        new = replace(new, billing=mode, on_demand={})
        if mode == properties.ON_DEMAND:
            warm = current.warm.at_least(properties.ON_DEMAND_WARM.read, properties.ON_DEMAND_WARM.write)
            new = replace(new, on_demand_since_ms=now_ms, warm=warm)
            new = replace(new, throughput=new.throughput.with_mode_change(0, 0, now_ms))
    if units:
        read, write = units["ReadCapacityUnits"], units["WriteCapacityUnits"]
        if mode == current.billing:
            _refuse_unchanged(current.throughput, units, "the table")
            _refuse_decrease(current.throughput, read, write, now_ms)
            new = properties.provisioned(new, read, write, now_ms)
        else:
            throughput = new.throughput.with_mode_change(read, write, now_ms)
            new = replace(new, throughput=throughput, warm=new.warm.at_least(read, write))
    on_demand = arguments.get("OnDemandThroughput")
    if on_demand is not None:
        if arguments.get("BillingMode", _mode_before(table, current, now_ms)) == properties.PROVISIONED:
            _refuse_on_demand(
                on_demand,
                f"cannot be specified when the table BillingMode is {properties.PROVISIONED}",
                "table",
            )
        _check_on_demand(on_demand, "table", lowest=-1)
        new = replace(new, on_demand=properties.with_limits(new.on_demand, on_demand))
    if "WarmThroughput" in arguments:
        new = replace(new, warm=_raised_warm_throughput(arguments["WarmThroughput"], new.warm, "table"))
    return new


def _mode_before(table: Table, current: properties.TableProperties, now_ms: int) -> str:
    change = current.change if table.state_at(now_ms) is State.UPDATING else None
    mode: str = (change or {}).get("former_billing", current.billing)
    return mode


def of_indexes(
    table: Table, mode: str, updates: Iterable[Units], now_ms: int
) -> dict[str, properties.IndexProperties]:
    """Return the properties of global indexes after an UpdateTable: of the named ones, or of all if the mode changes.

    `updates`: the Update members of GlobalSecondaryIndexUpdates.
    """
    updates_by_name = {update["IndexName"]: update for update in updates}
    switching = mode != properties.TableProperties.of(table).billing
    for update in updates_by_name.values():
        units = update.get("ProvisionedThroughput", {})
        if any(value > limits.THROUGHPUT_UNITS for value in units.values()):
            text = "This operation cannot be performed with given input values. Please contact DynamoDB service team"
            raise validation(f"{text} for more info: Action Blocked: IndexUpdate")
    new_properties: dict[str, properties.IndexProperties] = {}
    for name, update in updates_by_name.items():
        index = global_index(table, name, "update")
        new_properties[name] = _of_index(index, update, mode, switching, now_ms)
    if switching:
        others = [index for index in table.indexes if not index.local and index.name not in updates_by_name]
        if mode == properties.PROVISIONED and others:
            names = ",".join(index.name for index in others)
            raise validation(
                f"{error_texts.INVALID}ProvisionedThroughput must be specified for index: {names}"
            )
        for index in others:
            on_demand = properties.provisioned(properties.IndexProperties.of(index), 0, 0, now_ms)
            warm = on_demand.warm.at_least(properties.ON_DEMAND_WARM.read, properties.ON_DEMAND_WARM.write)
            new_properties[index.name] = replace(on_demand, on_demand={}, warm=warm)
    return new_properties


def global_index(table: Table, name: str, verb: str) -> Index:
    """Return a global index to be updated or deleted. Raises ServiceError if it is missing or local."""
    index = table.index(name)
    if index is None:
        text = f"Requested resource not found: Index {name} for table {table.name}"
        raise ServiceError("ResourceNotFoundException", text) from IndexMissing(table.name, name)
    if index.local:
        raise validation(f"Cannot {verb} an index that is not a GlobalSecondaryIndex: {name}")
    return index


def _of_index(
    index: Index, update: Units, mode: str, switching: bool, now_ms: int
) -> properties.IndexProperties:
    current = properties.IndexProperties.of(index)
    units = update.get("ProvisionedThroughput")
    on_demand = update.get("OnDemandThroughput")
    new = replace(current, on_demand={}) if switching else current
    if mode == properties.ON_DEMAND and (units or not (on_demand or "WarmThroughput" in update)):
        text = f"The only Updates for index: {index.name} when TableThroughputMode is {properties.ON_DEMAND}"
        raise validation(f"{error_texts.INVALID}{text} can be to OnDemandThroughput, WarmThroughput")
    if units:
        read, write = units["ReadCapacityUnits"], units["WriteCapacityUnits"]
        if not switching:
            _refuse_unchanged(current.throughput, units, f"index {index.name}")
            _refuse_decrease(current.throughput, read, write, now_ms)
        new = properties.provisioned(new, read, write, now_ms)
    elif switching and mode == properties.PROVISIONED:
        raise validation(
            f"{error_texts.INVALID}ProvisionedThroughput must be specified for index: {index.name}"
        )
    owner = f"index {index.name}"
    if on_demand is not None:
        if mode == properties.PROVISIONED:
            # The service writes a space before this colon, unlike in CreateTable (ack-api-quirks 128, 153).
            rest = f"cannot be specified when the table BillingMode is {properties.PROVISIONED}"
            _refuse_on_demand(on_demand, rest, f"index : {index.name}")
        _check_on_demand(on_demand, owner, lowest=-1)
        new = replace(new, on_demand=properties.with_limits(new.on_demand, on_demand))
    if "WarmThroughput" in update:
        new = replace(new, warm=_raised_warm_throughput(update["WarmThroughput"], new.warm, owner))
    return new


def _refuse_unchanged(current: properties.Throughput, units: Units, owner: str) -> None:
    read, write = units["ReadCapacityUnits"], units["WriteCapacityUnits"]
    if (read, write) == (current.read, current.write):
        subject = owner if owner == "the table" else f"the {owner}"
        raise validation(
            f"The provisioned throughput for {subject} will not change. The requested value equals the current value. "
            f"Current ReadCapacityUnits provisioned for {owner}: {current.read}. Requested ReadCapacityUnits: {read}. "
            f"Current WriteCapacityUnits provisioned for {owner}: {current.write}. Requested WriteCapacityUnits: {write}. "
            "Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits."
        )


def _refuse_decrease(current: properties.Throughput, read: int, write: int, now_ms: int) -> None:
    """Check the limit on decreases in a day. Raises ServiceError (ack-api-quirks 157, 184, 185, 326)."""
    until_ms = current.refused_until_ms(read, write, now_ms)
    if until_ms is None:
        return
    raise ServiceError(
        "LimitExceededException",
        "Subscriber limit exceeded: Provisioned throughput decreases are limited within a given UTC day. After the first "
        f"{limits.DECREASES_PER_DAY} decreases, each subsequent decrease in the same UTC day can be performed at most once "
        f"every {limits.DECREASE_WAIT_MS // 1000} seconds. Number of decreases today: {current.decreases}. Last decrease at "
        f"{_in_words(current.decreased_at_ms or 0)}. Next decrease can be made at {_in_words(until_ms)}",
    )


def _in_words(at_ms: int) -> str:
    """Return a time in the form "Friday, October 9, 2026 at 1:21:34 AM Coordinated Universal Time"."""
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return f"{at:%A, %B} {at.day}, {at.year} at {at.hour % 12 or 12}:{at:%M:%S %p} Coordinated Universal Time"


def _refuse_on_demand(maxima: Units, rest: str, owner: str) -> None:
    for name in ("MaxReadRequestUnits", "MaxWriteRequestUnits"):
        if name in maxima:
            of_index = "" if owner == "table" else f" for {owner}"
            raise validation(f"{error_texts.INVALID}{name} for OnDemandThroughput{of_index} {rest}")


def _check_on_demand(maxima: Units, owner: str, lowest: int) -> None:
    """Check that maxima are at least 1. If `lowest` permits it, -1 removes a maximum."""
    for name in ("MaxReadRequestUnits", "MaxWriteRequestUnits"):
        value = maxima.get(name, 1)
        if value == 0 or value < lowest:
            owner_text = owner if owner == "table" else owner.replace("index ", "index : ")
            raise validation(
                f"{error_texts.INVALID}Requested {name} for OnDemandThroughput for {owner_text} is outside of valid range"
            )


def _new_warm_throughput(
    request: Units, floor: properties.WarmThroughput, owner: str, below: str
) -> properties.WarmThroughput:
    """Return the warm throughput of a new table or index.

    Raises ServiceError if the request is below the minimum `floor`.
    """
    read, write = request.get(_WARM_NAMES[0], floor.read), request.get(_WARM_NAMES[1], floor.write)
    pairs = ((read, floor.read, "ReadCapacityUnits"), (write, floor.write, "WriteCapacityUnits"))
    for name, (requested, minimum, units) in zip(_WARM_NAMES, pairs, strict=True):
        if requested < minimum:
            text = f"Requested {name} for WarmThroughput for {owner} is lower than {below.format(units)}"
            raise validation(error_texts.INVALID + text)
    return properties.WarmThroughput(read, write)


def _raised_warm_throughput(
    request: Units, current: properties.WarmThroughput, owner: str
) -> properties.WarmThroughput:
    """Return the warm throughput after a change. Raises ServiceError for a decrease."""
    read, write = request.get(_WARM_NAMES[0], current.read), request.get(_WARM_NAMES[1], current.write)
    for name, requested, minimum in (
        (_WARM_NAMES[0], read, current.read),
        (_WARM_NAMES[1], write, current.write),
    ):
        if requested < minimum:
            text = f"Requested {name} for WarmThroughput for {owner} is lower than current WarmThroughput"
            raise validation(f"{error_texts.INVALID}{text}, decreasing WarmThroughput is not supported")
    return properties.WarmThroughput(read, write)
