"""`tablegate lint SOURCE TARGET-KIND`: reports what a copy would change, lose or reject. Nothing is written.

Each row goes through the mapping that copy and verify use, so that the report matches the copy.
"""

from __future__ import annotations

import html
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO

import click

from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Value
from tablegate.transfer.endpoints.endpoint import Definition, Endpoint, ScanPage, Service
from tablegate.transfer.mapping import rules
from tablegate.transfer.mapping.identities import Duplicates, Identity, SeenKeys, identifier, may_repeat_keys
from tablegate.transfer.mapping.mapping import Mapping, MappingOptions
from tablegate.transfer.mapping.reading import Expiry, TableEnd, read_all, sample_rows
from tablegate.transfer.mapping.rules import Fidelity, MappingFinding, MappingRule
from tablegate.transfer.progress import NO_PROGRESS, Progress

EXAMPLES = 5
"""Maximum number of example keys for each rule."""
ATTRIBUTES = 10
"""Maximum number of attributes for each rule, most frequent first."""
_COUNTED_ATTRIBUTES = 1000
_RULES_PAGE = "https://github.com/tablegate/tablegate/blob/main/docs/migrate/mapping.md"
_SHOWN_CHARACTERS = 60


@dataclass
class RuleReport:
    """The effect of one rule: number of rows, example keys, and counts by attribute.

    `definition` has the names (of key columns, indexes, ...) in the table's definition to which the rule applied.
    """

    rule: MappingRule
    rows: int = 0
    examples: list[Identity] = field(default_factory=list)
    attributes: Counter[str] = field(default_factory=Counter)
    definition: list[str] = field(default_factory=list)

    @property
    def named(self) -> list[str]:
        """The attributes to report."""
        return [name for name, _ in self.attributes.most_common(ATTRIBUTES)] or self.definition[:ATTRIBUTES]

    @property
    def counted(self) -> str:
        """The number of rows as text."""
        return "the table" if not self.rows and self.definition else f"{self.rows:,} rows"


@dataclass
class LintReport:
    """The effect of a copy to a service.

    `rows` is the number of checked rows, and `rejected` those that the service cannot hold. `sample` is the
    requested number of rows, None for all.
    """

    source: str
    target: Service
    rows: int = 0
    rejected: int = 0
    sample: int | None = None
    seconds: float = 0.0
    by_rule: dict[MappingRule, RuleReport] = field(default_factory=dict)

    @property
    def rules(self) -> list[RuleReport]:
        """The rules that applied, by class from worst to best, then by number of rows."""
        return sorted(
            self.by_rule.values(),
            key=lambda rule_report: (
                -rule_report.rule.fidelity.severity,
                -rule_report.rows,
                rule_report.rule.name,
            ),
        )

    def status(
        self,
        fail_on: Fidelity | None = Fidelity.IMPOSSIBLE,
        accepted: Collection[str] = (),
        duplicates: Duplicates = Duplicates.FAIL,
    ) -> int:
        """Return the exit status: 1 if a rule of this class or a worse one applied and is not in `accepted`, else 0.

        It is also 1 if keys are repeated and `duplicates` is FAIL. Without a class it is 0. Raises ValueError for an unknown
        rule name.
        """
        check_rules(accepted)
        if fail_on is None:
            return 0
        repeated = rules.KEY_REPEATED
        if duplicates is Duplicates.FAIL and repeated in self.by_rule and repeated.name not in accepted:
            return 1
        return int(
            any(
                rule.fidelity.severity >= fail_on.severity and rule.name not in accepted
                for rule in self.by_rule
            )
        )

    def json(self) -> str:
        """Return the report as JSON."""
        document = {
            "source": self.source,
            "target": self.target.value,
            "rows": self.rows,
            "rejected": self.rejected,
            "sample": self.sample,
            "seconds": round(self.seconds, 3),
            "rules": [
                {
                    "rule": rule_report.rule.name,
                    "class": rule_report.rule.fidelity.value,
                    "meaning": rule_report.rule.meaning,
                    "rows": rule_report.rows,
                    "examples": [list(identity) for identity in rule_report.examples],
                    "attributes": dict(rule_report.attributes.most_common(ATTRIBUTES)),
                    "definition": rule_report.definition,
                }
                for rule_report in self.rules
            ],
        }
        return json.dumps(document, ensure_ascii=False, indent=2) + "\n"

    def html(self) -> str:
        """Return the report as an HTML page without scripts. Names and keys are escaped."""
        rows = "".join(
            "<tr class='{}'><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n".format(
                rule_report.rule.fidelity.value,
                html.escape(rule_report.rule.name),
                rule_report.rule.fidelity.value,
                rule_report.counted,
                html.escape(", ".join(map(_shortened, rule_report.named))),
                "<br>".join(html.escape(_key_text(identity)) for identity in rule_report.examples),
                html.escape(rule_report.rule.meaning),
            )
            for rule_report in self.rules
        )
        return _PAGE.format(title=html.escape(self._title), summary=html.escape(self._summary), rows=rows)

    def text(self) -> str:
        """Return the report as plain lines."""
        return self._lines(lambda fidelity: fidelity.value)

    def print(self, file: IO[str]) -> None:
        """Print the report as lines, with coloured classes on a terminal."""
        file.write(self._lines(_coloured) if file.isatty() else self.text())

    def _lines(self, shown: Callable[[Fidelity], str]) -> str:
        """Return the lines. `shown`: returns the text of a class."""
        lines = [self._title, self._summary]
        for rule_report in self.rules:
            rule = rule_report.rule
            space = " " * (10 - len(rule.fidelity.value))
            lines.append(f"{shown(rule.fidelity)}{space} {rule.name:24} {rule_report.counted:>12}")
            if rule_report.named:
                lines.append(f"    {', '.join(map(_shortened, rule_report.named))}")
            lines += [f"    e.g. {_key_text(identity)}" for identity in rule_report.examples]
            lines.append(f"    {rule.meaning}")
        if self.by_rule:
            lines.append(f"All rules: {_RULES_PAGE}")
        return "\n".join(lines) + "\n"

    @property
    def _title(self) -> str:
        return f"{self.source} into {self.target.value}"

    @property
    def _summary(self) -> str:
        checked = f"{self.rows:,} rows checked" + (" (a sample)" if self.sample is not None else "")
        if not self.rows:
            return f"{checked}: the source has no rows"
        if not self.by_rule:
            return f"{checked}, nothing would change"
        return f"{checked}, {self.rejected:,} would be rejected"


_COLOURS = {
    Fidelity.LOSSLESS: "green",
    Fidelity.RENDERED: "cyan",
    Fidelity.LOSSY: "yellow",
    Fidelity.IMPOSSIBLE: "red",
}


def _coloured(fidelity: Fidelity) -> str:
    return click.style(fidelity.value, _COLOURS[fidelity])


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
    progress: Progress = NO_PROGRESS,
) -> LintReport:
    """Check a source's rows for a copy to a service, and return the report.

    - `sample`: number of rows to check, from all parts of the table. All if None.
    - `existing`: the definition of the target table if it exists.
    - `workers`: number of segments that are read at once.

    The report's `print(sys.stdout)`, `text()`, `json()` and `html()` are the output of the command. `status(fail_on,
    accepted)` is its exit status. Raises TransferError, for which the command ends with 2.
    """
    began = time.monotonic()
    definition = source.describe()
    mapping = Mapping(definition, target, existing, options)
    report = LintReport(source.shown, target, sample=sample)
    for note in mapping.notes:
        _report_of(report, note.rule).definition.append(note.attribute)
    linter = _Linter(report, definition, mapping, may_repeat_keys(source, mapping))
    end = TableEnd(source, definition)
    try:
        if sample is not None:
            for row in sample_rows(end, sample):
                linter.add_page(ScanPage.of([row], None))
        else:
            read_all([end], workers, lambda end, at, pages: linter.add_pages(pages), progress)
    finally:
        linter.close()
    report.seconds = time.monotonic() - began
    return report


def check_rules(names: Collection[str]) -> None:
    """Raise ValueError for an unknown rule name."""
    unknown = sorted({*names} - rules.BY_NAME.keys())
    if unknown:
        raise ValueError(f"there is no rule {unknown[0]!r}. See {_RULES_PAGE}")


def _report_of(report: LintReport, rule: MappingRule) -> RuleReport:
    return report.by_rule.setdefault(rule, RuleReport(rule))


class _Linter:
    """A collector of findings. Methods may be called from several threads."""

    def __init__(
        self, report: LintReport, definition: Definition, mapping: Mapping, checks_keys: bool
    ) -> None:
        self._seen = SeenKeys() if checks_keys else None
        self._report = report
        self._mapping = mapping
        self._names = definition.key_schema.names
        self._identity = identifier(definition.service, definition.key_schema, MappingOptions())
        self._expiry = Expiry(definition)
        self._now_ms = time.time_ns() // 1_000_000
        self._lock = threading.Lock()

    def add_pages(self, pages: Iterator[ScanPage]) -> None:
        for page in pages:
            self.add_page(page)

    def close(self) -> None:
        if self._seen is not None:
            self._seen.close()

    def add_page(self, page: ScanPage) -> None:
        rows = page.rows
        mapped = [self._mapping.map(row) for row in rows]
        with self._lock:
            repeated = self._repeated([row.row for row in mapped])
            self._report.rows += len(rows) + len(page.unreadable)
            self._report.rejected += len(page.unreadable)
            for unreadable in page.unreadable:
                self._add(unreadable.key.values, (MappingFinding(rules.ROW_UNREADABLE, ""),))
            for row, mapped_row, is_repeated in zip(rows, mapped, repeated, strict=True):
                findings = mapped_row.findings
                if is_repeated:
                    findings = (*findings, MappingFinding(rules.KEY_REPEATED, ""))
                if self._expiry.is_expired(row, self._now_ms):
                    findings = (*findings, MappingFinding(rules.ROW_EXPIRED, ""))
                if mapped_row.row is None:
                    self._report.rejected += 1
                if findings:
                    latest = row.latest
                    self._add([latest[name] for name in self._names], findings)

    def _repeated(self, copies: list[Row | None]) -> list[bool]:
        """Return for each row True if an earlier one has its key in the target."""
        if self._seen is None:
            return [False] * len(copies)
        seen = iter(self._seen.repeated([copy.position for copy in copies if copy is not None]))
        return [copy is not None and next(seen) for copy in copies]

    def _add(self, key: Sequence[Value], findings: tuple[MappingFinding, ...]) -> None:
        for rule in dict.fromkeys(finding.rule for finding in findings):
            entry = _report_of(self._report, rule)
            entry.rows += 1
            if len(entry.examples) < EXAMPLES:
                entry.examples.append(self._identity(key))
        for rule, attribute in dict.fromkeys(findings):
            attributes = self._report.by_rule[rule].attributes
            if attribute and (attribute in attributes or len(attributes) < _COUNTED_ATTRIBUTES):
                attributes[attribute] += 1


def _key_text(identity: Identity) -> str:
    partition, sort = identity
    return f"{_shortened(partition)} / {_shortened(sort)}" if sort else _shortened(partition)


def _shortened(text: str) -> str:
    escaped = text if text.isprintable() and text else repr(text)
    return escaped if len(escaped) <= _SHOWN_CHARACTERS else f"{escaped[:_SHOWN_CHARACTERS]}..."
