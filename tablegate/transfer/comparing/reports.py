"""The result of a comparison as text and as JSON."""

from __future__ import annotations

import base64
import json
from collections import Counter
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

from tablegate.gateway.model.values import bodies
from tablegate.gateway.model.values.values import Value
from tablegate.transfer.comparing.attributes import AttributeDifference
from tablegate.transfer.mapping.identities import Identity

_SHOWN_CHARACTERS = 200


class ExitStatus(IntEnum):
    """The exit status of a comparison. A comparison that fails raises TransferError, and the command ends with 2."""

    EQUAL = 0
    DIFFERENT = 1


class Difference(NamedTuple):
    """A row that differs.

    - `what`: "missing" or "extra" (at the second end), "changed", or "kind" if only kinds differ.
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
