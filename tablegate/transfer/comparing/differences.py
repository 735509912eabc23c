"""Differences between two rows by attribute, and the result of a comparison as text and as JSON."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from typing import Any, NamedTuple

from tablegate.gateway.model.values import bodies
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import NUMBERS, SETS, Kind, Value, number_of
from tablegate.transfer.comparing.checksums import CanonicalForm
from tablegate.transfer.mapping.identities import Identity
from tablegate.transfer.mapping.rules import MappingFinding

_ROUNDED = Fraction(1, 10**6)  # relative: rounding to a double or a float is smaller


class AttributeDifference(NamedTuple):
    """One attribute that differs.

    - `how`: "missing" or "extra" (at the second end), "changed", or "kind" if only the kind differs.
    - `detail`: the probable cause, "" if unknown.
    - `rules`: names of the mapping rules that applied to the attribute.
    """

    name: str
    how: str
    first: Value | None
    second: Value | None
    detail: str = ""
    rules: tuple[str, ...] = ()


class RowComparison:
    """A comparison of rows in canonical form. `loose` is the lenient form, without kinds of numbers."""

    def __init__(
        self, terms: CanonicalForm, loose: CanonicalForm, schema: KeySchema, tolerance: float
    ) -> None:
        self._terms = terms
        self._loose = loose
        self._schema = schema
        self._tolerance = Fraction(tolerance)

    def differences(
        self, first: Row, second: Row, findings: Sequence[MappingFinding]
    ) -> list[AttributeDifference]:
        """Return the differences of two rows, both in the form of the second end."""
        first_values = self._terms.attributes(self._schema, first)
        second_values = self._terms.attributes(self._schema, second)
        differences = []
        for name in sorted({*first_values, *second_values}):
            difference = self._difference(name, first_values.get(name), second_values.get(name))
            if difference is None:
                continue
            rule_names = tuple(finding.rule.name for finding in findings if finding.attribute == name)
            differences.append(difference._replace(rules=rule_names))
        differences = _with_cases(differences)
        if self._terms.versions:
            differences += self._versions(
                first,
                second,
                {*first_values, *second_values} - {difference.name for difference in differences},
            )
        return differences

    def _difference(self, name: str, first: Value | None, second: Value | None) -> AttributeDifference | None:
        if first is None:
            return AttributeDifference(name, "extra", None, second)
        if second is None:
            return AttributeDifference(name, "missing", first, None)
        terms, loose = self._terms, self._loose
        if terms.value_bytes(first) == terms.value_bytes(second):
            return None
        if loose.value_bytes(loose.common_view(first)) == loose.value_bytes(loose.common_view(second)):
            return AttributeDifference(
                name, "kind", first, second, f"{first.kind.value} is {second.kind.value}"
            )
        if self._tolerance and self._is_near(first, second):
            if not terms.strict or first.kind is second.kind:
                return None
            return AttributeDifference(
                name, "kind", first, second, f"{first.kind.value} is {second.kind.value}"
            )
        return AttributeDifference(name, "changed", first, second, detail_of(first, second))

    def _is_near(self, first: Value, second: Value) -> bool:
        """True if two values are equal within the tolerance for numbers."""
        if first.kind in NUMBERS and second.kind in NUMBERS:
            mine, other = number_of(first), number_of(second)
            if mine is None or other is None:
                return self._terms.value_bytes(first) == self._terms.value_bytes(second)
            return abs(Fraction(mine) - Fraction(other)) <= self._tolerance
        if first.kind is not second.kind:
            return False
        if first.kind is Kind.LIST:
            return len(first.data) == len(second.data) and all(
                self._is_near(mine, other) for mine, other in zip(first.data, second.data, strict=True)
            )
        if first.kind is Kind.MAP:
            return first.data.keys() == second.data.keys() and all(
                self._is_near(mine, second.data[name]) for name, mine in first.data.items()
            )
        return self._terms.value_bytes(first) == self._terms.value_bytes(second)

    def _versions(self, first: Row, second: Row, names: Collection[str]) -> list[AttributeDifference]:
        """Return attributes with equal newest values and different stamps or older versions."""
        differences = []
        for name in sorted(names):
            versions = [
                [
                    (cell.stamp_ms, self._terms.value_bytes(self._terms.common_view(cell.value)))
                    for cell in row.cells[name]
                ]
                for row in (first, second)
                if name in row.cells
            ]
            if len(versions) == 2 and versions[0] != versions[1]:
                values = first.latest[name], second.latest[name]
                differences.append(AttributeDifference(name, "changed", *values, "stamps or older versions"))
        return differences


def detail_of(first: Value, second: Value) -> str:
    """Return the probable cause of a changed value, "" if unknown."""
    if first.kind in NUMBERS and second.kind in NUMBERS:
        return _number_detail(first, second)
    if first.kind is not second.kind:
        return f"{first.kind.value} is {second.kind.value}"
    if first.kind is Kind.TEXT and first.data.casefold() == second.data.casefold():
        return "case"
    if first.kind in (Kind.TEXT, Kind.BYTES):
        if first.data.startswith(second.data):
            return f"truncated to {len(second.data)} of {len(first.data)}"
        if second.data.startswith(first.data):
            return "lengthened"
    if first.kind in SETS:
        return (
            f"{len(first.data - second.data)} members are missing, {len(second.data - first.data)} are extra"
        )
    return ""


def _number_detail(first: Value, second: Value) -> str:
    mine, other = number_of(first), number_of(second)
    if mine is None or other is None:
        return "not a finite number"
    if not mine and not other:
        return "sign of zero"
    if not mine or not other:
        return ""
    left, right = Fraction(mine), Fraction(other)
    if abs(left - right) <= abs(left) * _ROUNDED and _digits(other) < _digits(mine):
        return f"rounded to {_digits(other)} of {_digits(mine)} digits"
    if left == -right:
        return "sign"
    ratio = (left / right).as_integer_ratio()
    # A power of ten as text, because the quotient of two Doubles can exceed a Double.
    if left * right > 0 and 1 in ratio and str(max(ratio)).strip("0") == "1":
        return "decimal point"
    return ""


def _digits(number: Decimal | int) -> int:
    digits = "".join(map(str, Decimal(number).as_tuple().digits))
    return len(digits.strip("0")) or 1


def _with_cases(differences: list[AttributeDifference]) -> list[AttributeDifference]:
    """Add a detail to pairs of a missing and an extra attribute with names that differ only in case."""
    extra = {
        difference.name.casefold(): difference for difference in differences if difference.how == "extra"
    }
    missing = {
        difference.name.casefold(): difference for difference in differences if difference.how == "missing"
    }
    detailed = []
    for difference in differences:
        counterpart = {"missing": extra, "extra": missing}.get(difference.how, {}).get(
            difference.name.casefold()
        )
        detailed.append(
            difference if counterpart is None else difference._replace(detail=f"case: {counterpart.name}")
        )
    return detailed


_SHOWN_CHARACTERS = 200


class ExitStatus(IntEnum):
    """The exit status of a comparison. A comparison that fails raises TransferError, and the command ends with 2."""

    EQUAL = 0
    DIFFERENT = 1


EXCEPTED = "excepted"
"""A row that is missing at the second end, as `CompareOptions.rejected` allows. It does not make the tables different."""


class Difference(NamedTuple):
    """A row that differs.

    - `what`: "missing" or "extra" (at the second end), "changed", "kind" if only kinds differ, or EXCEPTED.
    - `rules`: names of the mapping rules that explain it.
    - `detail`: further information.
    """

    what: str
    identity: Identity
    attributes: tuple[AttributeDifference, ...] = ()
    rules: tuple[str, ...] = ()
    detail: str = ""


class TableDifference(NamedTuple):
    """A difference between the table definitions. If `counts` is false, it does not make the tables different."""

    what: str
    first: str
    second: str
    counts: bool


@dataclass
class Report:
    """The result of a comparison. `differences` has the first ones, `counts` the number of each kind.

    - `rows`: number of compared rows at each end.
    - `settled`: rows that differed when they were read and were equal when they were looked up.
    - `impossible`: rows of the first end that the second cannot hold. They count as missing.
    - `excepted`: rows of `CompareOptions.rejected` that are missing at the second end. They do not count.
    - `is_lenient`: kinds of numbers were not compared (`--lenient`).
    - `allow_empty`: the tables can be equal if the first has no rows.
    """

    first: str
    second: str
    level: str
    rows: tuple[int, int] = (0, 0)
    counts: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    tables: list[TableDifference] = field(default_factory=list)
    settled: int = 0
    impossible: int = 0
    excepted: int = 0
    seconds: float = 0.0
    is_lenient: bool = False
    allow_empty: bool = True

    @property
    def is_refused_as_empty(self) -> bool:
        return not self.rows[0] and not self.allow_empty

    @property
    def status(self) -> ExitStatus:
        is_different = any(self.counts.values()) or any(table.counts for table in self.tables)
        return ExitStatus.DIFFERENT if is_different or self.is_refused_as_empty else ExitStatus.EQUAL

    def text(self) -> str:
        """Return the report as text."""
        lines = [f"{self.first} and {self.second}, level {self.level}"]
        lines.append(f"rows: {self.rows[0]:,} and {self.rows[1]:,}, in {self.seconds:.1f} s")
        lines += [f"tables: {table.what}: {table.first} and {table.second}" for table in self.tables]
        for difference in self.differences:
            lines += difference_lines(difference)
        hidden = sum(self.counts.values()) - len(self.differences)
        if hidden > 0 and self.level != "count":
            lines.append(f"... and {hidden:,} more")
        if self.settled:
            lines.append(f"{self.settled:,} rows changed during the comparison and are equal now")
        if self.excepted:
            lines.append(f"excepted, because the copy rejected them: {self.excepted:,}")
        if self.is_lenient:
            lines.append("lenient: kinds of numbers were not compared")
        if self.status is ExitStatus.EQUAL:
            lines.append("equal")
        else:
            parts = [f"{number:,} {kind}" for kind, number in sorted(self.counts.items()) if number]
            if self.is_refused_as_empty:
                parts.append(f"no rows in {self.first} (--allow-empty accepts this)")
            lines.append("different: " + (", ".join(parts) if parts else "the table definitions"))
        return "\n".join(lines) + "\n"

    def json(self) -> str:
        """Return the report as JSON."""
        document = {
            "first": self.first,
            "second": self.second,
            "level": self.level,
            "lenient": self.is_lenient,
            "equal": self.status is ExitStatus.EQUAL,
            "rows": list(self.rows),
            "counts": {kind: self.counts[kind] for kind in ("missing", "extra", "changed", "kind", "rows")},
            "impossible": self.impossible,
            "excepted": self.excepted,
            "settled": self.settled,
            "seconds": round(self.seconds, 3),
            "tables": [table._asdict() for table in self.tables],
            "differences": [difference_document(table) for table in self.differences],
        }
        return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def difference_document(difference: Difference) -> dict[str, Any]:
    """Return a difference for JSON. Values are typed JSON."""
    return {
        "what": difference.what,
        "key": list(difference.identity),
        "attributes": [
            {
                "name": attribute.name,
                "how": attribute.how,
                "first": _document(attribute.first),
                "second": _document(attribute.second),
                "detail": attribute.detail,
                "rules": list(attribute.rules),
            }
            for attribute in difference.attributes
        ],
        "rules": list(difference.rules),
        "detail": difference.detail,
    }


def difference_lines(difference: Difference) -> list[str]:
    """Return a difference as lines of text."""
    key = " / ".join(map(_shown_text, difference.identity)).removesuffix(" / ''")
    annotation = _annotation(difference.detail, difference.rules)
    lines = [f"{difference.what} {key}{annotation}"]
    for attribute in difference.attributes:
        values = f"{_value_text(attribute.first)} -> {_value_text(attribute.second)}"
        lines.append(
            f"    {attribute.how} {_shown_text(attribute.name)}: {values}{_annotation(attribute.detail, attribute.rules)}"
        )
    return lines


def _annotation(detail: str, rules: tuple[str, ...]) -> str:
    parts = [part for part in (detail, *rules) if part]
    return f"  ({', '.join(parts)})" if parts else ""


def _document(value: Value | None) -> Any:
    return None if value is None else bodies.tagged(value)


def _value_text(value: Value | None) -> str:
    if value is None:
        return "nothing"
    if isinstance(value.data, bytes):
        return _cut(f"{value.kind.value} {base64.b64encode(value.data).decode()}")
    if isinstance(value.data, str):
        return f"{value.kind.value} {_shown_text(value.data)}"
    return _cut(json.dumps(bodies.tagged(value), ensure_ascii=True))


def _shown_text(text: str) -> str:
    """Escape control characters of a terminal."""
    return _cut(text if text.isprintable() and text else repr(text))


def _cut(text: str) -> str:
    return (
        text
        if len(text) <= _SHOWN_CHARACTERS
        else f"{text[:_SHOWN_CHARACTERS]}... ({len(text):,} characters)"
    )
