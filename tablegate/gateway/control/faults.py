"""Injected faults: their filters for requests, their effects and their frequency.

Each fault has its own random numbers, so that runs with the same order of requests get the same faults. The dialect provides
the description of a request (Dialect.request_info) and the text of an error (Dialect.fault).
"""

from __future__ import annotations

import itertools
import math
import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tablegate.gateway.control.documents import BadRequest, OperationRejected, dialects_of, only
from tablegate.gateway.dialects.dialect import THROTTLING, Dialect
from tablegate.gateway.model.request_info import RequestInfo

_MOST_FAULTS = 1000
_MOST_LATENCY_MS = 60_000
CUTS = ("before", "after")
_KINDS: dict[str, type | tuple[type, ...]] = {
    "dialect": str, "operation": str, "table": str, "caller": str, "error": str, "latency_ms": (int, float), "cut": str,
    "unprocessed": (int, float), "capacity": dict, "rate": (int, float), "count": int, "after": int, "seed": int,
}  # fmt: skip
_EFFECTS = ("error", "latency_ms", "cut", "unprocessed", "capacity")


@dataclass(frozen=True, slots=True)
class FaultEffect:
    """The effect of a fault on one request.

    - `error`: the dialect's name of the error.
    - `cut`: close the connection "before" or "after" the request is handled, or "".
    - `leaves_out`: returns True if the next member of a batch must stay unprocessed.
    - `charge`: takes the units that the request has consumed.
    """

    error: str = ""
    latency_ms: float = 0.0
    cut: str = ""
    leaves_out: Callable[[], bool] | None = None
    charge: Callable[[float], None] | None = None


class _UnitBudget(NamedTuple):
    """A token bucket: its size in units, and the units that it regains per second."""

    units: float
    per_second: float


class Fault:
    """An injected fault. The caller synchronises threads."""

    def __init__(self, number: int, given: dict[str, Any]) -> None:
        self.id = str(number)
        self._given = given
        self._random = random.Random(given.get("seed", 0))
        self._seen = self._met = 0
        self._budget: _UnitBudget | None = None
        if "capacity" in given:
            self._budget = _UnitBudget(given["capacity"]["units"], given["capacity"].get("per_second", 0.0))
            self._left, self._at_ms = float(self._budget.units), 0

    def described(self) -> dict[str, Any]:
        """Return the definition, the number of matching requests, and the number of affected ones."""
        return {"id": self.id, **self._given, "seen": self._seen, "met": self._met}

    def matches(self, dialect: Dialect, info: RequestInfo) -> bool:
        """True if the fault applies to a request."""
        given = self._given
        return (
            given.get("dialect", dialect.name) == dialect.name
            and given.get("operation", info.operation) == info.operation
            and given.get("caller", info.caller) == info.caller
            and ("table" not in given or given["table"] in info.tables)
            and ("error" not in given or given["error"] in dialect.faults)
            and ("unprocessed" not in given or info.operation in dialect.batches)
        )

    def effect(self, dialect: Dialect, now_ms: int) -> FaultEffect | None:
        """Return the effect on the next matching request, or None."""
        given = self._given
        self._seen += 1
        if self._seen <= given.get("after", 0) or self._met >= given.get("count", math.inf):
            return None
        if self._random.random() >= given.get("rate", 1.0):
            return None
        if self._budget is not None:
            return self._throttle(self._budget, dialect, now_ms)
        self._met += 1
        share = given.get("unprocessed", 0.0)
        return FaultEffect(
            dialect.faults[given["error"]] if "error" in given else "",
            given.get("latency_ms", 0.0),
            given.get("cut", ""),
            (lambda: self._random.random() < share) if share else None,
        )

    def _throttle(self, budget: _UnitBudget, dialect: Dialect, now_ms: int) -> FaultEffect:
        """Admit a request while units are left. Its cost is known afterwards, so the bucket can become negative."""
        if self._at_ms:
            self._left += max(0, now_ms - self._at_ms) / 1000 * budget.per_second
        self._left, self._at_ms = min(self._left, budget.units), now_ms
        if self._left <= 0:
            self._met += 1
            return FaultEffect(dialect.faults[THROTTLING])
        return FaultEffect(charge=self._take)

    def _take(self, units: float) -> None:
        self._left -= units


class Faults:
    """All faults of a server process, for several threads. `changed` is called after each change."""

    def __init__(self, dialects: Callable[[], Sequence[Dialect]], changed: Callable[[], None]) -> None:
        self._dialects = dialects
        self._changed = changed
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._faults: tuple[Fault, ...] = ()

    @property
    def are_planted(self) -> bool:
        """True if there are faults."""
        return bool(self._faults)

    def effects(self, dialect: Dialect, info: RequestInfo, now_ms: int) -> list[FaultEffect]:
        """Return the effects on a request, in the order of the faults."""
        with self._lock:
            effects = [
                fault.effect(dialect, now_ms) for fault in self._faults if fault.matches(dialect, info)
            ]
        return [effect for effect in effects if effect is not None]

    def charge(self, effects: Sequence[FaultEffect], units: float) -> None:
        """Take the consumed units of a request from the budgets that admitted it."""
        with self._lock:
            for effect in effects:
                if effect.charge is not None:
                    effect.charge(units)

    # Operations of the control API

    def listed(self) -> dict[str, Any]:
        """Return all faults, oldest first."""
        return {"faults": [fault.described() for fault in self._faults]}

    def add(self, given: dict[str, Any]) -> dict[str, Any]:
        """Add a fault. Raises BadRequest, OperationRejected."""
        members = dict(only(given, **_KINDS))
        _check(members, dialects_of(members, self._dialects()))
        with self._lock:
            if len(self._faults) >= _MOST_FAULTS:
                raise OperationRejected(409, f"there are {_MOST_FAULTS} faults already")
            fault = Fault(next(self._numbers), members)
            self._faults = (*self._faults, fault)
        self._changed()
        return fault.described()

    def clear(self) -> dict[str, Any]:
        """Remove all faults. Returns their number."""
        with self._lock:
            removed, self._faults = self._faults, ()
            self._numbers = itertools.count(1)
        self._changed()
        return {"faults": len(removed)}

    def remove(self, fault_id: str) -> dict[str, Any]:
        """Remove a fault. Raises OperationRejected."""
        with self._lock:
            found = [fault for fault in self._faults if fault.id == fault_id]
            if not found:
                raise OperationRejected(404, f"there is no fault {fault_id[:64]}")
            self._faults = tuple(fault for fault in self._faults if fault.id != fault_id)
        self._changed()
        return found[0].described()


def _check(given: dict[str, Any], affected: Sequence[Dialect]) -> None:
    if not any(effect in given for effect in _EFFECTS):
        raise BadRequest(f"a fault must have one of {', '.join(_EFFECTS)}")
    if "error" in given and not any(given["error"] in dialect.faults for dialect in affected):
        names = sorted({name for dialect in affected for name in dialect.faults})
        raise BadRequest(f"error must be one of {', '.join(names)}")
    if "unprocessed" in given and not any(
        given.get("operation") in (None, *each.batches) for each in affected if each.batches
    ):
        raise BadRequest(
            "unprocessed is for batches only: "
            + ", ".join(sorted({*itertools.chain(*(each.batches for each in affected))}))
        )
    if given.get("cut", CUTS[0]) not in CUTS:
        raise BadRequest(f"cut must be one of {', '.join(CUTS)}")
    for name, least, most in (
        ("rate", 0, 1), ("unprocessed", 0, 1), ("latency_ms", 0, _MOST_LATENCY_MS), ("count", 0, math.inf),
        ("after", 0, math.inf),
    ):  # fmt: skip
        if name in given and not least <= given[name] <= most:
            raise BadRequest(f"{name} must be from {least} to {most}")
    if "capacity" in given:
        budget = only(given["capacity"], units=(int, float), per_second=(int, float))
        if not all(math.isfinite(value) and value >= 0 for value in budget.values()) or "units" not in budget:
            raise BadRequest(
                "capacity must be {units, per_second}: the size of the budget, and the units regained per second"
            )
