"""`tablegate lint SOURCE TARGET-KIND`: what a copy would change, lose or reject, told beforehand. Nothing is written.

Every row is given to the mapping that copy and verify use, so that what is told is what will be.
"""

from __future__ import annotations

import html
import json
import shutil
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO

from tablegate.gateway.model.values.values import Value
from tablegate.transfer.endpoints.endpoint import Definition, Endpoint, ScanPage, Service
from tablegate.transfer.mapping import rules
from tablegate.transfer.mapping.expiry import Expiry
from tablegate.transfer.mapping.identities import Identity, identifier
from tablegate.transfer.mapping.mapping import Mapping, MappingOptions
from tablegate.transfer.mapping.reading import TableEnd, read_all, sampled
from tablegate.transfer.mapping.rules import Fidelity, MappingFinding, MappingRule

EXAMPLES = 5
"""How many keys are told of each rule."""
ATTRIBUTES = 10
"""How many attributes are told of each rule: those that it applied to most."""
_COUNTED_ATTRIBUTES = 1000
_SHOWN_CHARACTERS = 60


@dataclass
class RuleReport:
    """What one rule did: to how many rows, the keys of some of them, and how often to which attributes. `definition`: names (of
    key columns, indexes, ...) to which it applied in the table's own definition."""

    rule: MappingRule
    rows: int = 0
    examples: list[Identity] = field(default_factory=list)
    attributes: Counter[str] = field(default_factory=Counter)
    definition: list[str] = field(default_factory=list)

    @property
    def named(self) -> list[str]:
        """The attributes to be told."""
        return [name for name, _ in self.attributes.most_common(ATTRIBUTES)] or self.definition[:ATTRIBUTES]

    @property
    def counted(self) -> str:
        """To how many rows it applied, in words."""
        return "the table" if not self.rows and self.definition else f"{self.rows:,} rows"


@dataclass
class LintReport:
    """What a copy of a source into a service would do. `rows`: how many were looked at; `rejected`: how many of them the service
    cannot have; `sample`: not all were to be looked at."""

    source: str
    target: Service
    rows: int = 0
    rejected: int = 0
    sample: int | None = None
    seconds: float = 0.0
    by_rule: dict[MappingRule, RuleReport] = field(default_factory=dict)

    @property
    def rules(self) -> list[RuleReport]:
        """The rules that applied, worst first, of each class those of most rows first."""
        return sorted(
            self.by_rule.values(), key=lambda each: (-each.rule.fidelity.severity, -each.rows, each.rule.name)
        )

    def status(self, fail_on: Fidelity | None = None, accepted: Collection[str] = ()) -> int:
        """The exit status: 1 if a rule of this class or a worse one applied that is not accepted by its name, else 0.

        Raises ValueError for a name that no rule has.
        """
        check_rules(accepted)
        if fail_on is None:
            return 0
        return int(
            any(
                rule.fidelity.severity >= fail_on.severity and rule.name not in accepted
                for rule in self.by_rule
            )
        )

    def json(self) -> str:
        """For programs."""
        document = {
            "source": self.source,
            "target": self.target.value,
            "rows": self.rows,
            "rejected": self.rejected,
            "sample": self.sample,
            "seconds": round(self.seconds, 3),
            "rules": [
                {
                    "rule": each.rule.name,
                    "class": each.rule.fidelity.value,
                    "meaning": each.rule.meaning,
                    "rows": each.rows,
                    "examples": [list(identity) for identity in each.examples],
                    "attributes": dict(each.attributes.most_common(ATTRIBUTES)),
                    "definition": each.definition,
                }
                for each in self.rules
            ],
        }
        return json.dumps(document, ensure_ascii=False, indent=2) + "\n"

    def html(self) -> str:
        """A page of its own, without scripts. Everything that comes from the table is escaped."""
        rows = "".join(
            "<tr class='{}'><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n".format(
                each.rule.fidelity.value,
                html.escape(each.rule.name),
                each.rule.fidelity.value,
                each.counted,
                html.escape(", ".join(map(_shown, each.named))),
                "<br>".join(html.escape(_key_text(identity)) for identity in each.examples),
                html.escape(each.rule.meaning),
            )
            for each in self.rules
        )
        return _PAGE.format(title=html.escape(self._title), summary=html.escape(self._summary), rows=rows)

    def text(self) -> str:
        """Plain lines, where there is no terminal."""
        lines = [self._title, self._summary]
        for each in self.rules:
            lines.append(f"{each.rule.fidelity.value:10} {each.rule.name:24} {each.counted:>12}")
            if each.named:
                lines.append(f"    {', '.join(map(_shown, each.named))}")
            lines += [f"    e.g. {_key_text(identity)}" for identity in each.examples]
            lines.append(f"    {each.rule.meaning}")
        return "\n".join(lines) + "\n"

    def print(self, file: IO[str]) -> None:
        """A table on a terminal, plain lines elsewhere."""
        if not file.isatty():
            file.write(self.text())
            return
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(
            title=Text(self._title), caption=Text(self._summary), width=shutil.get_terminal_size().columns
        )
        for heading in ("rule", "class", "applies to", "attributes", "example keys"):
            table.add_column(heading, justify="right" if heading == "applies to" else "left", overflow="fold")
        for each in self.rules:
            colour = _COLOURS[each.rule.fidelity]
            table.add_row(
                Text(each.rule.name),
                Text(each.rule.fidelity.value, style=colour),
                each.counted,
                Text(", ".join(map(_shown, each.named))),
                Text("\n".join(map(_key_text, each.examples))),
            )
        Console(file=file).print(table)

    @property
    def _title(self) -> str:
        return f"{self.source} into {self.target.value}"

    @property
    def _summary(self) -> str:
        looked_at = f"{self.rows:,} rows looked at" + (" (a sample)" if self.sample is not None else "")
        if not self.by_rule:
            return f"{looked_at}; nothing would change"
        return f"{looked_at}; {self.rejected:,} would be rejected"


_COLOURS = {
    Fidelity.LOSSLESS: "green",
    Fidelity.RENDERED: "cyan",
    Fidelity.LOSSY: "yellow",
    Fidelity.IMPOSSIBLE: "red",
}

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 14px/1.4 system-ui, sans-serif; margin: 2em }} table {{ border-collapse: collapse }}
td, th {{ border: 1px solid #ccc; padding: 4px 8px; text-align: left; vertical-align: top }}
.impossible td:nth-child(2) {{ background: #fbb }} .lossy td:nth-child(2) {{ background: #fe9 }}
</style></head><body><h1>{title}</h1><p>{summary}</p>
<table><tr><th>rule</th><th>class</th><th>applies to</th><th>attributes</th><th>example keys</th><th>meaning</th></tr>
{rows}</table></body></html>
"""


def lint(
    source: Endpoint,
    target: Service,
    sample: int | None = None,
    options: MappingOptions = MappingOptions(),
    existing: Definition | None = None,
    workers: int = 4,
) -> LintReport:
    """Look at a source's rows as a copy into a service would.

    `sample`: look at so many rows from all over the table; None: at all. `existing`: the target's table, if there is one already.
    `workers`: how many segments are read at once.

    The result's `print(sys.stdout)`, `text()`, `json()` and `html()` are the formats of the command, `status(fail_on, accepted)`
    its exit status: 0, or 1 where a rule of that class or a worse one applied. Raises TransferError (exit status 2).
    """
    began = time.monotonic()
    definition = source.describe()
    mapping = Mapping(definition, target, existing, options)
    report = LintReport(source.shown, target, sample=sample)
    for note in mapping.notes:
        _report_of(report, note.rule).definition.append(note.attribute)
    linter = _Linter(report, definition, mapping)
    end = TableEnd(source, definition)
    if sample is not None:
        for row in sampled(end, sample):
            linter.take(ScanPage.of([row], None))
    else:
        read_all([end], workers, lambda end, at, pages: linter.take_all(pages))
    report.seconds = time.monotonic() - began
    return report


def check_rules(names: Collection[str]) -> None:
    """Raise ValueError for a name that no rule has."""
    unknown = sorted({*names} - rules.BY_NAME.keys())
    if unknown:
        raise ValueError(f"no rule is called {unknown[0]!r}; see docs/migrate/mapping.md")


def _report_of(report: LintReport, rule: MappingRule) -> RuleReport:
    return report.by_rule.setdefault(rule, RuleReport(rule))


class _Linter:
    """Takes in rows, also from several threads."""

    def __init__(self, report: LintReport, definition: Definition, mapping: Mapping) -> None:
        self._report = report
        self._mapping = mapping
        self._names = definition.key_schema.names
        self._identity = identifier(definition.service, definition.key_schema, MappingOptions())
        self._expiry = Expiry(definition)
        self._now_ms = time.time_ns() // 1_000_000
        self._lock = threading.Lock()

    def take_all(self, pages: Iterator[ScanPage]) -> None:
        """The pages of a segment."""
        for page in pages:
            self.take(page)

    def take(self, page: ScanPage) -> None:
        """One page."""
        rows = page.rows
        mapped = [self._mapping.map(row) for row in rows]
        with self._lock:
            self._report.rows += len(rows) + len(page.unreadable)
            self._report.rejected += len(page.unreadable)
            for unreadable in page.unreadable:
                self._add(unreadable.key.values, (MappingFinding(rules.ROW_UNREADABLE, ""),))
            for row, made in zip(rows, mapped, strict=True):
                findings = made.findings
                if self._expiry.is_over(row, self._now_ms):
                    findings = (*findings, MappingFinding(rules.ROW_EXPIRED, ""))
                if made.row is None:
                    self._report.rejected += 1
                if findings:
                    latest = row.latest
                    self._add([latest[name] for name in self._names], findings)

    def _add(self, key: Sequence[Value], findings: tuple[MappingFinding, ...]) -> None:
        for rule in dict.fromkeys(finding.rule for finding in findings):
            told = _report_of(self._report, rule)
            told.rows += 1
            if len(told.examples) < EXAMPLES:
                told.examples.append(self._identity(key))
        for rule, attribute in dict.fromkeys(findings):
            counted = self._report.by_rule[rule].attributes
            if attribute and (attribute in counted or len(counted) < _COUNTED_ATTRIBUTES):
                counted[attribute] += 1


def _key_text(identity: Identity) -> str:
    partition, sort = identity
    return f"{_shown(partition)} / {_shown(sort)}" if sort else _shown(partition)


def _shown(text: str) -> str:
    """A text on a terminal: what a terminal would obey is escaped, and what is long is cut."""
    shown = text if text.isprintable() and text else repr(text)
    return shown if len(shown) <= _SHOWN_CHARACTERS else f"{shown[:_SHOWN_CHARACTERS]}..."
