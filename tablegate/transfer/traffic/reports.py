"""Results of a comparison: counts by operation, divergences and used rules, as text, JSON or Prometheus metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import orjson
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from tablegate.transfer.traffic.comparing import Divergence
from tablegate.transfer.traffic.rules import RULES

_KEPT_MAX = 10_000
EQUAL_STATUS, DIVERGED_STATUS, UNKNOWN_STATUS = 0, 1, 2
"""Exit codes."""


class SkipReason(Enum):
    """A reason why an exchange was not compared. If not harmless, the comparison counts as incomplete."""

    FOREIGN = ("of an unknown dialect", True)
    UNANSWERED = ("the recorded service sent no reply", True)
    REFUSED_BEFORE = ("the recorded service rejected the signature", True)
    NOT_SAMPLED = ("not in the sample", True)
    NO_LIVE_ANSWER = ("the other service sent no reply", False)
    NOT_READY = ("the other service was not ready in time", False)
    REFUSED_NOW = ("the other service rejects the signature", False)
    UNKNOWN_TOKEN = ("the other service's token is not known", False)
    DROPPED = ("dropped because the other service was too slow", False)

    def __init__(self, text: str, is_harmless: bool) -> None:
        self.text = text
        self.is_harmless = is_harmless


@dataclass(frozen=True, slots=True)
class DivergentExchange:
    """A divergence and its exchange.

    If `is_raced`, a write of another client was in flight at the same time and either order is correct.
    """

    number: int
    dialect: str
    operation: str
    divergence: Divergence
    is_raced: bool

    def as_tree(self) -> dict[str, Any]:
        """Return the divergence as a member of the JSON report."""
        return {
            "exchange": self.number,
            "dialect": self.dialect,
            "operation": self.operation,
            "what": self.divergence.what,
            "place": self.divergence.place,
            "recorded": self.divergence.recorded,
            "live": self.divergence.live,
            "raced": self.is_raced,
        }


@dataclass(slots=True)
class DivergenceReport:
    """The counts of a comparison, which only grow. Operations are pairs (dialect, name)."""

    equal: Counter[tuple[str, str]] = field(default_factory=Counter)
    diverged: Counter[tuple[str, str]] = field(default_factory=Counter)
    skipped: Counter[SkipReason] = field(default_factory=Counter)
    kinds: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    rules: Counter[tuple[str, str]] = field(default_factory=Counter)
    found: list[DivergentExchange] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    repeated: int = 0

    def add(
        self, number: int, operation: tuple[str, str], divergences: Iterable[Divergence], is_raced: bool
    ) -> None:
        """Count one compared exchange."""
        divergences = list(divergences)
        (self.diverged if divergences else self.equal)[operation] += 1
        for divergence in divergences:
            self.kinds[(*operation, divergence.what)] += 1
            if len(self.found) < _KEPT_MAX:
                self.found.append(DivergentExchange(number, *operation, divergence, is_raced))

    def skip(self, reason: SkipReason) -> None:
        """Count one exchange that was not compared."""
        self.skipped[reason] += 1

    @property
    def exit_status(self) -> int:
        """Exit code: 0 equal, 1 diverged, 2 incomplete."""
        if self.diverged:
            return DIVERGED_STATUS
        incomplete = sum(count for reason, count in self.skipped.items() if not reason.is_harmless)
        return UNKNOWN_STATUS if incomplete or not self.equal else EQUAL_STATUS

    def as_json(self) -> str:
        """Return the report as one JSON document."""
        operations = [
            {
                "dialect": item[0],
                "operation": item[1],
                "equal": self.equal[item],
                "diverged": self.diverged[item],
            }
            for item in self._operations()
        ]
        tree = {
            "result": _RESULTS[self.exit_status],
            "equal": self.equal.total(),
            "diverged": self.diverged.total(),
            "skipped": {reason.name.lower(): count for reason, count in self.skipped.items()},
            "operations": operations,
            "divergences": [item.as_tree() for item in self.found],
            "rules": [
                {"rule": name, "dialect": dialect, "used": count, "reason": _REASONS[dialect, name]}
                for (dialect, name), count in sorted(self.rules.items())
            ],
            "repeated": self.repeated,
            "notes": self.notes,
        }
        return orjson.dumps(tree, option=orjson.OPT_INDENT_2).decode()

    def as_text(self, limit: int) -> str:
        """Return the report as text with at most `limit` divergences."""
        return "\n".join(self._lines(limit))

    def _lines(self, limit: int) -> Iterator[str]:
        yield f"{self.equal.total() + self.diverged.total()} exchanges compared, {self.diverged.total()} diverged"
        for reason, count in self.skipped.items():
            yield f"{count} not compared: {reason.text}"
        if self.repeated:
            yield f"{self.repeated} requests were retried because the other service was not ready"
        for dialect, name in self._operations():
            equal, diverged = self.equal[dialect, name], self.diverged[dialect, name]
            yield f"  {dialect:<10} {name:<28} {equal:>8} equal {diverged:>6} diverged"
        for exchange in self.found[:limit]:
            raced = ", during a concurrent write" if exchange.is_raced else ""
            yield f"exchange {exchange.number}: {exchange.dialect} {exchange.operation}: {exchange.divergence.what}{raced}"
            yield f"  {exchange.divergence.place}"
            yield f"    recorded  {exchange.divergence.recorded}"
            yield f"    live      {exchange.divergence.live}"
        if self.kinds.total() > limit:
            yield f"... and {self.kinds.total() - limit} more divergences (--limit, or --format json)"
        if self.rules:
            yield "differences explained by rules:"
        for (dialect, name), count in sorted(self.rules.items()):
            yield f"  {count:>8} {dialect} {name}: {_REASONS[dialect, name]}"
        yield from self.notes
        yield _RESULTS[self.exit_status]

    def _operations(self) -> list[tuple[str, str]]:
        return sorted({*self.equal, *self.diverged})


_RESULTS = {
    EQUAL_STATUS: "equal",
    DIVERGED_STATUS: "diverged",
    UNKNOWN_STATUS: "could not tell: not everything was compared",
}
_REASONS = {(rule.dialect, rule.name): rule.reason for rule in RULES}


class ShadowMetrics(Collector):
    """A Prometheus collector of a report's current counts."""

    def __init__(self, report: DivergenceReport) -> None:
        self._report = report

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        report = self._report
        labels = ("dialect", "operation")
        compared = CounterMetricFamily(
            "tablegate_shadow_compared", "Exchanges compared.", labels=(*labels, "result")
        )
        for result, counts in (("equal", report.equal), ("diverged", report.diverged)):
            for operation, count in counts.copy().items():
                compared.add_metric((*operation, result), count)
        yield compared
        kinds = CounterMetricFamily("tablegate_shadow_divergences", "Divergences.", labels=(*labels, "what"))
        for kind, count in report.kinds.copy().items():
            kinds.add_metric(kind, count)
        yield kinds
        skipped = CounterMetricFamily(
            "tablegate_shadow_skipped", "Exchanges not compared.", labels=("reason",)
        )
        for reason in SkipReason:
            skipped.add_metric((reason.name.lower(),), report.skipped[reason])
        yield skipped
