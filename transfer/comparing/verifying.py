"""`tablegate verify A B`: whether the second table holds what the first does, by what the mapping promises.

Both tables are read once, in parallel segments, into sums by bucket. If sums differ, both are read again, and the keys of rows in
unequal buckets go into a temporary file; rows that are not the same are looked up at both ends, and are different if they still
are: what was written between two looks is no difference.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tablegate.gateway.model.values.keys import Key
from tablegate.gateway.model.values.rows import Row
from tablegate.transfer.comparing.attributes import RowComparison
from tablegate.transfer.comparing.canonical import CanonicalForm, digest
from tablegate.transfer.comparing.definitions import table_differences
from tablegate.transfer.comparing.lookups import batch_rows, batches, looked_up
from tablegate.transfer.comparing.reports import Difference, Report
from tablegate.transfer.comparing.sides import ComparedRow, ComparedSide, CompareOptions, TablePair
from tablegate.transfer.comparing.sums import TableSums
from tablegate.transfer.comparing.suspects import Suspect, Suspects
from tablegate.transfer.endpoints.endpoint import AnyRow, Endpoint, ScanPage, UnreadableRow
from tablegate.transfer.mapping import rules
from tablegate.transfer.mapping.expiry import Expiry
from tablegate.transfer.mapping.identities import Identity, identity_bytes
from tablegate.transfer.mapping.reading import read_all, sampled
from tablegate.transfer.mapping.rules import Fidelity

_KEPT_IMPOSSIBLE = 10_000


@dataclass(frozen=True, slots=True)
class VerificationLevel:
    """How thoroughly tables are compared: count, checksum, full (every row in its canonical form, no sums), or a sample."""

    name: str
    rows: int = 0

    @classmethod
    def of(cls, text: str) -> VerificationLevel:
        """Of `count`, `checksum`, `full` or `sample:N`. Raises ValueError."""
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
) -> Report:
    """Compare two tables.

    `level`: `count`, `checksum`, `full` or `sample:N` (N rows of each end, from all over it, looked up at the other).
    `limit`: how many differences the report lists; it counts all. `workers`: how many segments are read at once at each end.

    The result's `text()` and `json()` are the formats of the command, its `status` the exit status: 0 equal, 1 different. Raises
    TransferError (exit status 2: it could not be told) and ValueError for a level that is none.
    """
    began = time.monotonic()
    verification = Verification(first, second, VerificationLevel.of(level), options, workers)
    report = verification.report
    for difference in verification.differences():
        report.counts[difference.what] += 1
        if len(report.differences) < limit:
            report.differences.append(difference)
    verification.finish()
    report.seconds = time.monotonic() - began
    return report


class Verification:
    """One comparison. `differences` finds them one after the other; the report has everything else after that."""

    def __init__(
        self,
        first: Endpoint,
        second: Endpoint,
        level: VerificationLevel,
        options: CompareOptions,
        workers: int,
    ) -> None:
        self._pair = TablePair(first, second, options)
        self._level = level
        self._workers = max(1, workers)
        self.report = Report(first.shown, second.shown, str(level))
        self.report.tables += table_differences(self._pair, options.strict)
        terms = self._pair.terms
        loose = CanonicalForm(first.service, second.service, False, terms.ignored, False)
        self._comparison = RowComparison(terms, loose, self._pair.schema, options.tolerance)
        self._impossible: list[ComparedRow] = []
        self._expiries = [Expiry(side.definition) for side in self._pair.sides]

    def finish(self) -> None:
        """What the report says when all differences are found."""
        if (
            self._level.name == "count"
            and self.report.rows[0] - self.report.impossible != self.report.rows[1]
        ):
            self.report.counts["rows"] = abs(
                self.report.rows[0] - self.report.impossible - self.report.rows[1]
            )

    def differences(self) -> Iterator[Difference]:
        """The rows that are not the same."""
        if self._level.name == "sample":
            yield from self._sampled()
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
                yield from self._confirmed(suspects.unequal())
            finally:
                suspects.close()
        yield from self._rejected()

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

        read_all(self._pair.sides, self._workers, add)
        self.report.rows = (rows[0], rows[1])
        return totals

    def _keep(self, impossible: Sequence[ComparedRow]) -> None:
        self.report.impossible += len(impossible)
        room = _KEPT_IMPOSSIBLE - len(self._impossible)
        self._impossible += impossible[: max(room, 0)]

    def _collect(self, suspects: Suspects, buckets: frozenset[int] | None) -> None:
        """Note the rows of these buckets; None: of all, which have not been read before."""
        rows = [0, 0]
        lock = threading.Lock()

        def add(side: ComparedSide, at: int, pages: Iterator[ScanPage]) -> None:
            for page in pages:
                number, noted, impossible = len(page.all_rows), [], []
                while page.rows:  # which is emptied, so that decoded rows do not pile up
                    seen = side.seen(page.rows.pop())
                    if seen.row is None:
                        impossible.append(seen)
                    elif buckets is None or side.bucket(seen.identity, seen.key.position) in buckets:
                        row_hash = digest(side.row_bytes(seen))
                        noted.append((identity_bytes(seen.identity), seen.key.position, row_hash))
                for unreadable in page.unreadable:
                    identity = identity_bytes(side.identity(unreadable.key))
                    noted.append((identity, unreadable.position, side.unread_hash(unreadable)))
                suspects.add(at == 0, noted)
                with lock:
                    rows[at] += number
                    if buckets is None:
                        self._keep(impossible)

        read_all(self._pair.sides, self._workers, add)
        if buckets is None:
            self.report.rows = (rows[0], rows[1])

    # Single rows

    def _confirmed(self, suspects: Iterable[Suspect]) -> Iterator[Difference]:
        """Of keys that differed when they were read those that still do."""
        ends = self._pair.sides
        size = batch_rows(*(side.endpoint for side in ends))
        for batch in batches(suspects, size):
            keys = [self._keys_of(suspect) for suspect in batch]
            rows = [looked_up(side.endpoint, [pair[at] for pair in keys]) for at, side in enumerate(ends)]
            for suspect, pair, mine, other in zip(batch, keys, *rows, strict=True):
                found = self.compared(mine, other)
                if found is None and suspect.numbers[0] != suspect.numbers[1] and min(suspect.numbers) > 0:
                    found = self._repeated(suspect, pair)
                if found is None:
                    self.report.settled += 1
                else:
                    yield found

    def _keys_of(self, suspect: Suspect) -> tuple[Key | None, Key | None]:
        """The keys of a row at both ends."""
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

    def _repeated(self, suspect: Suspect, keys: tuple[Key | None, Key | None]) -> Difference:
        first, second = suspect.numbers
        key = keys[1]
        assert key is not None
        what = "missing" if first > second else "extra"
        return Difference(
            what, self._pair.identity(key.values), detail=f"there {first} times and {second} times"
        )

    def compared(self, first: AnyRow | None, second: AnyRow | None) -> Difference | None:
        """What differs between a row and its copy; None: nothing."""
        ends = self._pair.sides
        for side, row in zip(ends, (first, second), strict=True):
            if isinstance(row, UnreadableRow):
                what = "missing" if second is None else "extra" if first is None else "changed"
                told = f"{side.endpoint.shown}: {row.reason}"
                return Difference(what, side.identity(row.key), (), (rules.ROW_UNREADABLE.name,), told)
        mine = ends[0].seen(first) if isinstance(first, Row) else None
        other = ends[1].seen(second) if isinstance(second, Row) else None
        if mine is not None and mine.row is None:
            return rejected(mine) if other is None else rejected(mine)._replace(detail="another row is there")
        if mine is None or mine.row is None:
            return None if other is None else self._only(other, "extra", 1)
        if other is None:
            return self._only(mine, "missing", 0)
        assert other.row is not None
        found = self._comparison.differences(mine.row, other.row, mine.findings)
        if not found:
            return None
        what = "kind" if all(each.how == "kind" for each in found) else "changed"
        return Difference(what, mine.identity, tuple(found))

    def _only(self, seen: ComparedRow, what: str, at: int) -> Difference:
        """A row that is at one end only. Its time may be over."""
        assert seen.row is not None
        now_ms = time.time_ns() // 1_000_000
        is_over = self._expiries[at].is_over(seen.row, now_ms)
        if at == 1 and not is_over:  # the first end's rule may have deleted it there
            is_over = self._expiries[0].is_over(seen.row, now_ms)
        return Difference(what, seen.identity, rules=(rules.ROW_EXPIRED.name,) if is_over else ())

    def _rejected(self) -> Iterator[Difference]:
        """The rows of the first end that the second cannot have."""
        for seen in self._impossible:
            yield rejected(seen)
        hidden = self.report.impossible - len(self._impossible)
        if hidden > 0:
            self.report.counts["missing"] += hidden

    # Samples

    def _sampled(self) -> Iterator[Difference]:
        """Rows from all over each end, looked up at the other."""
        told: set[Identity] = set()
        for at, side in enumerate(self._pair.sides):
            number = 0
            other = self._pair.sides[1 - at].endpoint
            for rows in batches(sampled(side, self._level.rows), batch_rows(other)):
                schema = side.definition.key_schema
                keys = [self._pair.other_key(schema.decode(row.position), is_first=at == 0) for row in rows]
                for row, counterpart in zip(rows, looked_up(other, keys), strict=True):
                    number += 1
                    pair = (row, counterpart) if at == 0 else (counterpart, row)
                    found = self.compared(*pair)
                    if found is not None:
                        again = looked_up(side.endpoint, [schema.decode(row.position)])[0]
                        found = self.compared(*((again, counterpart) if at == 0 else (counterpart, again)))
                    if found is not None and found.identity not in told:
                        told.add(found.identity)
                        yield found
            self.report.rows = (number, 0) if at == 0 else (self.report.rows[0], number)


def rejected(seen: ComparedRow) -> Difference:
    """A row that the second end cannot have, and by which rules."""
    names = [f.rule.name for f in seen.findings if f.rule.fidelity is Fidelity.IMPOSSIBLE]
    return Difference("missing", seen.identity, rules=tuple(dict.fromkeys(names)))
