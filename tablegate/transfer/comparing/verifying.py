"""`tablegate verify A B` and `tablegate diff A B`: compare the rows of two tables, as the mapping converts the first.

Both tables are read once in parallel segments and summed by bucket. If sums differ, both are read again, and the
keys of rows in unequal buckets go into a temporary file. Rows that differ there are looked up at both ends. They are
reported only if they still differ, so that concurrent writes are no differences. `diff` shows them by key and attribute, in
kinds that both services support.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tablegate.gateway.model.values.keys import Key
from tablegate.gateway.model.values.rows import Row
from tablegate.transfer.comparing.checksums import CanonicalForm, TableSums, digest
from tablegate.transfer.comparing.differences import (
    EXCEPTED,
    Difference,
    ExitStatus,
    Report,
    RowComparison,
    difference_document,
    difference_lines,
)
from tablegate.transfer.comparing.sides import (
    ComparedRow,
    ComparedSide,
    CompareOptions,
    TablePair,
    table_differences,
)
from tablegate.transfer.comparing.suspects import Suspect, Suspects, batch_rows, looked_up, lookup_batches
from tablegate.transfer.endpoints.endpoint import AnyRow, Endpoint, ScanPage, UnreadableRow
from tablegate.transfer.mapping import rules
from tablegate.transfer.mapping.identities import Identity, identity_bytes
from tablegate.transfer.mapping.reading import Expiry, read_all, sample_rows
from tablegate.transfer.mapping.rules import Fidelity
from tablegate.transfer.progress import NO_PROGRESS, Progress

_KEPT_IMPOSSIBLE = 10_000


@dataclass(frozen=True, slots=True)
class VerificationLevel:
    """The thoroughness of a comparison: count, checksum, full (all rows in canonical form, no sums) or sample."""

    name: str
    rows: int = 0

    @classmethod
    def of(cls, text: str) -> VerificationLevel:
        """Parse `count`, `checksum`, `full` or `sample:N`. Raises ValueError."""
        name, _, number = text.partition(":")
        if name == "sample" and number.isascii() and number.isdigit() and int(number) > 0:
            return cls(name, int(number))
        if text not in ("count", "checksum", "full"):
            raise ValueError(f"{text!r} is none of count, checksum, full, sample:N")
        return cls(text)

    def __str__(self) -> str:
        return f"{self.name}:{self.rows}" if self.rows else self.name


def verify(
    first: Endpoint,
    second: Endpoint,
    level: str = "checksum",
    options: CompareOptions = CompareOptions(),
    limit: int = 1000,
    workers: int = 4,
    progress: Progress = NO_PROGRESS,
) -> Report:
    """Compare two tables and return the report.

    - `level`: `count`, `checksum`, `full` or `sample:N` (N rows from all parts of each end, looked up at the
    other).
    - `limit`: maximum number of differences in the report. All are counted.
    - `workers`: number of segments that are read at once at each end.

    The report's `text()` and `json()` are the output of the command, and its `status` is the exit status. Raises
    ValueError for an unknown level and TransferError if the comparison fails.
    """
    began = time.monotonic()
    verification = Verification(first, second, VerificationLevel.of(level), options, workers, progress)
    report = verification.report
    for difference in verification.differences():
        if difference.what == EXCEPTED:
            report.excepted += 1
            continue
        report.counts[difference.what] += 1
        if len(report.differences) < limit:
            report.differences.append(difference)
    verification.finish()
    report.seconds = time.monotonic() - began
    return report


class Verification:
    """A comparison that yields its differences one by one. Afterwards `report` has the rest."""

    def __init__(
        self,
        first: Endpoint,
        second: Endpoint,
        level: VerificationLevel,
        options: CompareOptions,
        workers: int,
        progress: Progress = NO_PROGRESS,
    ) -> None:
        self._pair = TablePair(first, second, options)
        self._level = level
        self._workers = max(1, workers)
        self._progress = progress
        self.report = Report(
            first.shown,
            second.shown,
            str(level),
            is_lenient=options.strict is False,
            allow_empty=options.allow_empty,
        )
        self.report.tables += table_differences(self._pair, bool(options.strict))
        terms = self._pair.terms
        loose = CanonicalForm(first.service, second.service, False, terms.ignored, False)
        self._comparison = RowComparison(terms, loose, self._pair.schema, options.tolerance)
        self._impossible: list[ComparedRow] = []
        self._refused = 0
        self._expiries = [Expiry(side.definition) for side in self._pair.sides]

    def finish(self) -> None:
        """Complete the report after all differences."""
        if (
            self._level.name == "count"
            and self.report.rows[0] - self.report.impossible != self.report.rows[1]
        ):
            self.report.counts["rows"] = abs(
                self.report.rows[0] - self.report.impossible - self.report.rows[1]
            )

    def differences(self) -> Iterator[Difference]:
        """Yield the rows that differ."""
        if self._level.name == "sample":
            yield from self._sampled_differences()
            return
        buckets: frozenset[int] | None = None
        if self._level.name != "full":
            sums = self._sums()
            if self._level.name == "count":
                return
            buckets = sums[0].unequal(sums[1])
        if buckets is None or buckets:
            suspects = Suspects()
            try:
                self._collect(suspects, buckets)
                yield from self._confirmed_differences(suspects.unequal())
            finally:
                suspects.close()
        yield from self._rejected_rows()

    # Passes over both tables

    def _sums(self) -> list[TableSums]:
        totals, rows = [TableSums(), TableSums()], [0, 0]
        lock = threading.Lock()

        def add(side: ComparedSide, at: int, pages: Iterator[ScanPage]) -> None:
            own, number = TableSums(), 0
            for page in pages:
                impossible = side.sum_page(own, page)
                number += len(page.all_rows)
                if impossible:
                    with lock:
                        self._keep(impossible)
            with lock:
                totals[at].merge(own)
                rows[at] += number

        read_all(self._pair.sides, self._workers, add, self._progress)
        self.report.rows = (rows[0], rows[1])
        return totals

    def _keep(self, impossible: Sequence[ComparedRow]) -> None:
        self.report.impossible += len(impossible)
        counted = [each for each in impossible if not each.is_excepted]
        self.report.excepted += len(impossible) - len(counted)
        self._refused += len(counted)
        free = _KEPT_IMPOSSIBLE - len(self._impossible)
        self._impossible += counted[: max(free, 0)]

    def _collect(self, suspects: Suspects, buckets: frozenset[int] | None) -> None:
        """Add the rows of these buckets to the suspects. If None, add all rows, which have not been read before."""
        rows = [0, 0]
        lock = threading.Lock()

        def add(side: ComparedSide, at: int, pages: Iterator[ScanPage]) -> None:
            for page in pages:
                number, noted, impossible = len(page.all_rows), [], []
                while page.rows:  # pop each row to free its decoded form
                    compared = side.compared_row(page.rows.pop())
                    if compared.row is None:
                        impossible.append(compared)
                    elif buckets is None or side.bucket(compared.identity, compared.key.position) in buckets:
                        row_hash = digest(side.row_bytes(compared))
                        noted.append((identity_bytes(compared.identity), compared.key.position, row_hash))
                for unreadable in page.unreadable:
                    identity = identity_bytes(side.identity(unreadable.key))
                    noted.append((identity, unreadable.position, side.unreadable_hash(unreadable)))
                suspects.add(at == 0, noted)
                with lock:
                    rows[at] += number
                    if buckets is None:
                        self._keep(impossible)

        read_all(self._pair.sides, self._workers, add, self._progress)
        if buckets is None:
            self.report.rows = (rows[0], rows[1])

    # Single rows

    def _confirmed_differences(self, suspects: Iterable[Suspect]) -> Iterator[Difference]:
        """Yield the suspects that still differ when they are looked up."""
        ends = self._pair.sides
        size = batch_rows(*(side.endpoint for side in ends))
        for batch in lookup_batches(suspects, size):
            keys = [self._keys_of(suspect) for suspect in batch]
            rows = [looked_up(side.endpoint, [pair[at] for pair in keys]) for at, side in enumerate(ends)]
            for suspect, pair, mine, other in zip(batch, keys, *rows, strict=True):
                difference = self.compared(mine, other)
                if (
                    difference is None
                    and suspect.numbers[0] != suspect.numbers[1]
                    and min(suspect.numbers) > 0
                ):
                    difference = self._repetition(suspect, pair)
                if difference is None:
                    self.report.settled += 1
                else:
                    yield difference

    def _keys_of(self, suspect: Suspect) -> tuple[Key | None, Key | None]:
        """Return the keys of a row at both ends."""
        first, second = self._pair.sides
        if suspect.first is not None:
            mine = first.definition.key_schema.decode(suspect.first)
            other = self._pair.other_key(mine, is_first=True)
            if suspect.second is not None:
                other = second.definition.key_schema.decode(suspect.second)
            return mine, other
        assert suspect.second is not None
        other = second.definition.key_schema.decode(suspect.second)
        return self._pair.other_key(other, is_first=False), other

    def _repetition(self, suspect: Suspect, keys: tuple[Key | None, Key | None]) -> Difference:
        first, second = suspect.numbers
        key = keys[1]
        assert key is not None
        kind = "missing" if first > second else "extra"
        return Difference(
            kind,
            self._pair.identity(key.values),
            detail=f"{first} times at the first end and {second} times at the second",
        )

    def compared(self, first: AnyRow | None, second: AnyRow | None) -> Difference | None:
        """Return the difference between a row and its copy, None if they are equal."""
        difference = self._difference(first, second)
        if (
            difference is not None
            and first is not None
            and second is None
            and first in self._pair.options.rejected
        ):
            return difference._replace(what=EXCEPTED)
        return difference

    def _difference(self, first: AnyRow | None, second: AnyRow | None) -> Difference | None:
        ends = self._pair.sides
        for side, row in zip(ends, (first, second), strict=True):
            if isinstance(row, UnreadableRow):
                kind = "missing" if second is None else "extra" if first is None else "changed"
                reason = f"{side.endpoint.shown}: {row.reason}"
                return Difference(kind, side.identity(row.key), (), (rules.ROW_UNREADABLE.name,), reason)
        mine = ends[0].compared_row(first) if isinstance(first, Row) else None
        other = ends[1].compared_row(second) if isinstance(second, Row) else None
        if mine is not None and mine.row is None:
            return (
                rejection_of(mine)
                if other is None
                else rejection_of(mine)._replace(detail="another row has this key")
            )
        if mine is None or mine.row is None:
            return None if other is None else self._only(other, "extra", 1)
        if other is None:
            return self._only(mine, "missing", 0)
        assert other.row is not None
        attributes = self._comparison.differences(mine.row, other.row, mine.findings)
        if not attributes:
            return None
        kind = "kind" if all(difference.how == "kind" for difference in attributes) else "changed"
        return Difference(kind, mine.identity, tuple(attributes))

    def _only(self, compared: ComparedRow, kind: str, at: int) -> Difference:
        """Return the difference for a row that is at one end only. It may have expired."""
        assert compared.row is not None
        now_ms = time.time_ns() // 1_000_000
        is_expired = self._expiries[at].is_expired(compared.row, now_ms)
        if at == 1 and not is_expired:  # the first end's rule may have deleted it there
            is_expired = self._expiries[0].is_expired(compared.row, now_ms)
        return Difference(kind, compared.identity, rules=(rules.ROW_EXPIRED.name,) if is_expired else ())

    def _rejected_rows(self) -> Iterator[Difference]:
        """Yield the rows of the first end that the second cannot hold."""
        for compared in self._impossible:
            yield rejection_of(compared)
        hidden = self._refused - len(self._impossible)
        if hidden > 0:
            self.report.counts["missing"] += hidden

    # Samples

    def _sampled_differences(self) -> Iterator[Difference]:
        """Yield differences of sampled rows from all parts of each end, looked up at the other."""
        reported: set[Identity] = set()
        for at, side in enumerate(self._pair.sides):
            number = 0
            other = self._pair.sides[1 - at].endpoint
            for rows in lookup_batches(sample_rows(side, self._level.rows), batch_rows(other)):
                schema = side.definition.key_schema
                keys = [self._pair.other_key(schema.decode(row.position), is_first=at == 0) for row in rows]
                for row, counterpart in zip(rows, looked_up(other, keys), strict=True):
                    number += 1
                    pair = (row, counterpart) if at == 0 else (counterpart, row)
                    difference = self.compared(*pair)
                    if difference is not None:
                        again = looked_up(side.endpoint, [schema.decode(row.position)])[0]
                        difference = self.compared(
                            *((again, counterpart) if at == 0 else (counterpart, again))
                        )
                    if difference is not None and difference.identity not in reported:
                        reported.add(difference.identity)
                        yield difference
            self.report.rows = (number, 0) if at == 0 else (self.report.rows[0], number)


def rejection_of(compared: ComparedRow) -> Difference:
    """Return the difference for a row that the second end cannot hold, with the rules that forbid it."""
    names = [f.rule.name for f in compared.findings if f.rule.fidelity is Fidelity.IMPOSSIBLE]
    return Difference("missing", compared.identity, rules=tuple(dict.fromkeys(names)))


def diff(
    first: Endpoint,
    second: Endpoint,
    write: Callable[[str], object],
    limit: int | None = None,
    form: str = "text",
    options: CompareOptions = CompareOptions(),
    workers: int = 4,
) -> ExitStatus:
    """Write each row that differs as soon as it is found, and return the exit status.

    `write` is called with texts that end in a newline. `limit` is the maximum number of rows. All if None. `form` is
    `text` or `jsonl`, which has a JSON object on each line:
    {"what": "missing" | "extra" | "changed" | "kind", "key": [partition, sort], "attributes": [...], ...}.

    The exit status is 0 if equal and 1 if different. Raises TransferError, for which the command ends with 2.
    """
    verification = Verification(first, second, VerificationLevel("checksum"), options, workers)
    number = 0
    for difference in verification.differences():
        if number == limit:
            break
        number += 1
        if form == "jsonl":
            write(json.dumps(difference_document(difference), ensure_ascii=False) + "\n")
        else:
            write("\n".join(difference_lines(difference)) + "\n")
    return ExitStatus.DIFFERENT if number else ExitStatus.EQUAL
