"""Enforced provisioned throughput (`throughput = enforce`): token buckets of tables and their global indexes.

A throttle runs between a handler and the engine. It estimates the cost of a command before it runs. A command beyond
the remaining units is not sent: its outcome is Throttled. Handlers need no code for this, and batches return the member
as unprocessed. Afterwards, the outcome gives the actual cost (capacity.py).

A bucket gains the provisioned units each second and holds at most five minutes' worth ("burst capacity"; developer
guide, 'Burst and adaptive capacity'). The cost of a request is known only afterwards. So a request is admitted while
any units remain, and the excess becomes a debt. A local index uses the units of its table. An on-demand table has a
bucket if a maximum was set for it. Each server process has its own buckets, which start anew with the process.
"""

from __future__ import annotations

import types
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tablegate.adapters.dynamodb import capacity
from tablegate.adapters.dynamodb.call import CallContext
from tablegate.adapters.dynamodb.capacity import READ, WRITE
from tablegate.adapters.dynamodb.tables.properties import PROVISIONED, TableProperties
from tablegate.adapters.dynamodb.tables.table_extensions import (
    KEY_COUNTERS,
    index_properties,
    table_properties,
)
from tablegate.adapters.dynamodb.wire.arns import bare_name, index_arn, table_arn
from tablegate.adapters.dynamodb.wire.limits import BURST_SECONDS, TRANSACTION_FACTOR
from tablegate.adapters.dynamodb.wire.signature_claims import Caller
from tablegate.gateway.model.commands.command import Command, R
from tablegate.gateway.model.commands.row_commands import Get, Read, ReadAll, WriteGroup, WriteOutcome
from tablegate.gateway.model.commands.writes import CheckOnly, Edit, Replace, Write
from tablegate.gateway.model.errors import ConditionFailed, GatewayError, GroupRefused, Throttled
from tablegate.gateway.model.expressions.updates import names_of
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.pages import Page
from tablegate.gateway.model.tables.tables import Table

_LEAST = {READ: 0.5, WRITE: 1.0}  # units that the smallest request costs
_MAXIMA = {READ: "MaxReadRequestUnits", WRITE: "MaxWriteRequestUnits"}
_BUCKETS_MAX = 100_000


@dataclass(slots=True)
class CapacityBucket:
    """The units left at a time. A negative number is a debt."""

    units: float
    at_ms: int

    def fill(self, units_per_second: int, now_ms: int) -> None:
        """Add the units gained since `at_ms`."""
        gained = (now_ms - self.at_ms) / 1000 * units_per_second
        self.units = min(self.units + gained, units_per_second * BURST_SECONDS)
        self.at_ms = now_ms


@dataclass(frozen=True, slots=True)
class CapacityCost:
    """Units that a command takes from one bucket, of a table or of a global index."""

    table: Table
    index: Index | None
    kind: str
    units: float

    @property
    def key(self) -> tuple[int, str, str]:
        """The key of the bucket."""
        return self.table.id, "" if self.index is None else self.index.name, self.kind

    @property
    def units_per_second(self) -> int | None:
        """The provisioned units, or the maximum set for an on-demand table. None means no limit."""
        properties = table_properties(self.table)
        owner = properties if self.index is None else index_properties(self.table, self.index)
        if properties.billing == PROVISIONED:
            return owner.throughput.read if self.kind == READ else owner.throughput.write
        return owner.on_demand.get(_MAXIMA[self.kind])

    @property
    def _is_provisioned(self) -> bool:
        return TableProperties.of(self.table).billing == PROVISIONED

    def throttled(self, caller: Caller) -> Throttled:
        """Return the error for a command beyond this limit."""
        arn = table_arn(caller, self.table.name)
        if self.index is not None:
            arn = index_arn(caller, self.table.name, self.index.name)
        return Throttled(arn, self.kind, "provisioned" if self._is_provisioned else "maximum")


class Throttle:
    """The buckets of a server process."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._buckets: OrderedDict[tuple[int, str, str], CapacityBucket] = OrderedDict()

    @types.coroutine
    def limited(self, call: CallContext, operation: Coroutine[Any, Any, R]) -> Generator[Any, Any, R]:
        """Run an operation so that it runs only commands that have throughput. The others get a Throttled outcome."""
        outcomes: list[Any] | None = None
        while True:
            try:
                commands = operation.send(outcomes)
            except StopIteration as end:
                value: R = end.value
                return value
            refusals = self._refusals(call, commands)
            admitted = [command for command, refusal in zip(commands, refusals, strict=True) if not refusal]
            answers = iter((yield admitted) if admitted else ())
            outcomes = [refusal or next(answers) for refusal in refusals]
            for command, outcome, refusal in zip(commands, outcomes, refusals, strict=True):
                if refusal is None:
                    self._take(call, command, outcome)

    def _refusals(self, call: CallContext, commands: list[Command[Any]]) -> list[GatewayError | None]:
        """Return the error of each command that is not sent, None for the others.

        Commands of one list are counted together.
        """
        promised: dict[tuple[int, str, str], float] = {}
        refusals: list[GatewayError | None] = []
        for command in commands:
            costs = list(_minimum_costs(call, command))
            short = [
                cost
                for cost in costs
                if self._units_left(cost) - promised.get(cost.key, 0.0) < _LEAST[cost.kind]
            ]
            refusals.append(_refusal(call, command, short) if short else None)
            if short:
                for counter in KEY_COUNTERS:
                    counter.count_throttled(command)
            else:
                for cost in costs:
                    promised[cost.key] = promised.get(cost.key, 0.0) + cost.units
        return refusals

    def _units_left(self, cost: CapacityCost) -> float:
        rate = cost.units_per_second
        if rate is None:
            return float("inf")
        now_ms = self._now_ms()
        bucket = self._buckets.get(cost.key)
        if bucket is None:
            bucket = self._buckets[cost.key] = CapacityBucket(rate, now_ms)
            if len(self._buckets) > _BUCKETS_MAX:
                self._buckets.popitem(last=False)
        bucket.fill(rate, now_ms)
        return bucket.units

    def _take(self, call: CallContext, command: Command[Any], outcome: Any) -> None:
        for cost in _actual_costs(call, command, outcome):
            bucket = self._buckets.get(cost.key)
            if bucket is not None:
                bucket.units -= cost.units


# Costs of commands

_TRANSACTIONS = frozenset({"TransactWriteItems", "ExecuteTransaction"})


def _minimum_costs(call: CallContext, command: Command[Any]) -> Iterator[CapacityCost]:
    """Yield the minimum cost of a command in each bucket."""
    match command:
        case Get(table):
            yield CapacityCost(table, None, READ, 1.0 if _is_consistent(call, table) else 0.5)
        case ReadAll(gets):
            yield from (CapacityCost(get.table, None, READ, float(TRANSACTION_FACTOR)) for get in gets)
        case Read():
            yield CapacityCost(command.table, _charged_index(command.index), READ, 0.5)
        case WriteGroup(writes):
            factor = _factor(call)
            for write in writes:
                new = write.change.contents.size_bytes if isinstance(write.change, Replace) else None
                yield CapacityCost(write.table, None, WRITE, factor * capacity.write_units(None, new))
                yield from (
                    CapacityCost(write.table, index, WRITE, 1.0)
                    for index in write.table.indexes
                    if _can_affect(write, index)
                )


def _actual_costs(call: CallContext, command: Command[Any], outcome: Any) -> Iterator[CapacityCost]:
    """Yield the cost of a command by its outcome. Errors cost nothing, except failed conditions."""
    match command, outcome:
        case Get(table), _ if not isinstance(outcome, GatewayError):
            size = 0 if outcome is None else outcome.size_bytes
            yield CapacityCost(table, None, READ, capacity.read_units(size, _is_consistent(call, table)))
        case ReadAll(gets), list():
            for get, row in zip(gets, outcome, strict=True):
                yield CapacityCost(
                    get.table,
                    None,
                    READ,
                    capacity.transactional_read_units(0 if row is None else row.size_bytes),
                )
        case Read(), Page():
            consistent = bool(call.input.get("ConsistentRead"))
            units = capacity.read_units(outcome.scanned_bytes, consistent)
            if command.whole_rows:
                units += sum(capacity.read_units(row.size_bytes, consistent) for row in outcome.rows)
            yield CapacityCost(command.table, _charged_index(command.index), READ, units)
        case WriteGroup(writes), list():
            for write, write_outcome in zip(writes, outcome, strict=True):
                yield from _write_costs(write, write_outcome, _factor(call))
        case WriteGroup(writes), ConditionFailed():
            yield _failed_write_cost(writes[0], outcome)
        case WriteGroup(writes), GroupRefused():
            reasons = zip(writes, outcome.reasons, strict=True)
            yield from (
                _failed_write_cost(write, reason)
                for write, reason in reasons
                if isinstance(reason, ConditionFailed)
            )


def _write_costs(write: Write, outcome: WriteOutcome, factor: int) -> Iterator[CapacityCost]:
    charge = capacity.TableConsumption(write.table.name, WRITE)
    if isinstance(write.change, CheckOnly):
        charge.add_check(outcome.old)
    else:
        charge.add_write(write.table, outcome, factor)
    yield CapacityCost(write.table, None, WRITE, charge.table_units + sum(charge.local_units.values()))
    for index in write.table.indexes:
        if index.name in charge.global_units and not index.local:
            yield CapacityCost(write.table, index, WRITE, charge.global_units[index.name])


def _failed_write_cost(write: Write, error: ConditionFailed) -> CapacityCost:
    size = None if error.row is None else error.row.size_bytes
    return CapacityCost(write.table, None, WRITE, capacity.write_units(size, None))


def _refusal(call: CallContext, command: Command[Any], short: Iterable[CapacityCost]) -> GatewayError:
    """Return the error of a command that is short of units. For a transaction it identifies the throttled members."""
    tables = {cost.table.id: cost.throttled(call.caller) for cost in short}
    match command:
        case ReadAll(gets):
            return GroupRefused([tables.get(get.table.id) for get in gets])
        case WriteGroup(writes) if call.operation in _TRANSACTIONS:
            return GroupRefused([tables.get(write.table.id) for write in writes])
    return next(iter(tables.values()))


def _can_affect(write: Write, index: Index) -> bool:
    """Return True if a write may change a global index, judged without the row."""
    if index.local:
        return False
    match write.change:
        case Replace(contents):
            return all(name in contents.latest for name in index.key_schema.names)
        case Edit(actions):
            projected = index.projected_names
            return projected is None or not projected.isdisjoint(names_of(actions))
        case CheckOnly():
            return False
    return True


def _charged_index(index: Index | None) -> Index | None:
    return None if index is None or index.local else index


def _factor(call: CallContext) -> int:
    return TRANSACTION_FACTOR if call.operation in _TRANSACTIONS else 1


def _is_consistent(call: CallContext, table: Table) -> bool:
    requests = call.input.get("RequestItems")
    if requests is None:
        return bool(call.input.get("ConsistentRead"))
    return any(
        request.get("ConsistentRead") for name, request in requests.items() if bare_name(name) == table.name
    )
