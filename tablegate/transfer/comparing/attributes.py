"""Differences between two rows by attribute, with the mapping rules that explain them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import NUMBERS, SETS, Kind, Value, number_of
from tablegate.transfer.comparing.checksums import CanonicalForm
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
