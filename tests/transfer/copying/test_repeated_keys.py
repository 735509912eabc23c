"""Rows that have one key in the target are counted and reported, or the copy fails. They are never merged silently."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.gateway.model.values.keys import KeyColumn, KeySchema, Position
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, Value
from tablegate.transfer.copying.copying import CopyOptions, run
from tablegate.transfer.copying.job import CopyJob, Counts
from tablegate.transfer.endpoints.endpoint import JSON, Definition, Endpoint, ScanPage, Service
from tablegate.transfer.endpoints.files.opening import open_file
from tablegate.transfer.errors import Remedy, RepeatedKeys, ServiceUnavailable, TransferError
from tablegate.transfer.mapping import rules
from tablegate.transfer.mapping.definitions import KeyMapping
from tablegate.transfer.mapping.identities import Duplicates
from tablegate.transfer.mapping.linting import lint
from tablegate.transfer.progress import NoProgress
from tests.support.examples import examples
from tests.transfer.support.memory_endpoint import MemoryEndpoint, MemoryTable
from tests.transfer.support.plain_endpoint import WholeEndpoint

IDS = KeySchema((KeyColumn("id", Kind.DECIMAL),))
LAST = Duplicates.LAST


def file_of(path: Path, *numbers: str) -> Endpoint:
    """A file with an item for each number, whose attribute `at` is its line."""
    lines = [
        json.dumps({"Item": {"id": {"N": number}, "at": {"N": str(at)}}}) for at, number in enumerate(numbers)
    ]
    path.write_text("".join(line + "\n" for line in lines))
    return open_file(str(path), {"keys": "id:N"})


def target() -> MemoryEndpoint:
    return MemoryEndpoint(MemoryTable(None), shown="memory:target")


def copy(tmp_path: Path, source: Endpoint, to: Endpoint, **options: Any) -> Counts:
    """Begin a job, or continue the one that is there."""
    path = tmp_path / "copy.job"
    job = CopyJob.open(path) if path.exists() else CopyJob.create(path, "a", "b", [("a", "b")], {})
    with contextlib.closing(job):
        return run(job, (lambda _: source, lambda _: to), CopyOptions(**options), NoProgress())


def values_of(table: MemoryTable) -> dict[int, int]:
    return {int(row["id"].data): int(row["at"].data) for row in table.values.values()}


def test_repeated_keys_fail_and_can_be_merged_on_request(tmp_path: Path) -> None:
    """`007`, `7.0` and `7` are one number."""
    source, to = file_of(tmp_path / "x.json", "1", "007", "2", "7.0", "7"), target()
    with pytest.raises(
        RepeatedKeys, match=r'several rows have the key \{"id":\{"N":"7"\}\} in the target'
    ) as error:
        copy(tmp_path, source, to)
    assert (error.value.remedy, error.value.resume_options) == (Remedy.RESUME, "--duplicates last")
    with pytest.raises(RepeatedKeys):
        copy(tmp_path, source, to)
    counts = copy(tmp_path, source, to, duplicates=LAST)
    assert (counts.rows, counts.repeated, counts.rejected) == (3, 2, 0)
    assert values_of(to.table) == {1: 0, 2: 2, 7: 4}


def test_lint_counts_repeated_keys(tmp_path: Path) -> None:
    report = lint(file_of(tmp_path / "x.json", "1", "007", "2", "7.0", "7"), Service.TABLEGATE)
    found = report.by_rule[rules.KEY_REPEATED]
    assert (report.rows, found.rows, found.examples) == (5, 2, [("7", ""), ("7", "")])
    assert "2 rows" in report.text() and "key-repeated" in report.text()
    assert [report.status(), report.status(duplicates=LAST)] == [1, 0]
    assert report.status(rules.Fidelity.LOSSY, duplicates=LAST) == 1
    assert report.status(accepted=["key-repeated"]) == 0
    assert lint(file_of(tmp_path / "y.json", "1", "2"), Service.TABLEGATE).status() == 0


@examples(40)
@given(
    st.lists(st.integers(0, 12), max_size=40),
    st.integers(1, 4),
    st.lists(st.integers(0, 6), max_size=3),
    st.integers(0, 3),
)
def test_counts_are_those_of_a_dictionary(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[int], parallel: int, faults: list[int], odd: int
) -> None:
    """Whatever fails in between, and whichever rows are rejected."""
    tmp_path = tmp_path_factory.mktemp("repeated")
    rows = [
        Row(IDS.key(values).position, Contents.of_values(values), 0)
        for at, number in enumerate(numbers)
        for values in [{"id": Value(Kind.DECIMAL, number), "at": Value(Kind.DECIMAL, at)}]
    ]
    to = target()
    to.write_rows = 3  # type: ignore[misc]
    to.reject = lambda row: ("Odd", "it is odd") if odd and int(row.latest["id"].data) % 4 == odd else None
    source = Repeating(Definition("t", Service.TABLEGATE, IDS), rows, page_rows=5)
    for after in faults:
        to.fail("write", ServiceUnavailable("cut"), after)
        with contextlib.suppress(ServiceUnavailable):
            copy(tmp_path, source, to, parallel=parallel, duplicates=LAST)
    counts = copy(tmp_path, source, to, parallel=parallel, duplicates=LAST)
    expected = {number: at for at, number in enumerate(numbers) if not odd or number % 4 != odd}
    assert values_of(to.table) == expected
    assert (counts.rows, counts.rejected) == (len(expected), len({*numbers}) - len(expected))
    assert counts.rows + counts.rejected + counts.repeated == len(numbers)


class Repeating(WholeEndpoint):
    """A source in memory whose rows may have one key."""

    repeats_keys = True

    def scan(self, segment: JSON, resume: JSON | None = None) -> Iterator[ScanPage]:
        for at in range(resume or 0, max(len(self.rows), 1), self.page_rows):
            after = at + self.page_rows
            yield ScanPage(self.rows[at:after], after if after < len(self.rows) else None)


def test_rejected_rows_with_one_key_are_counted(tmp_path: Path) -> None:
    source, to = file_of(tmp_path / "x.json", "1", "1", "2"), target()
    to.reject = lambda row: ("Odd", "it is odd") if int(row.latest["id"].data) == 1 else None
    with pytest.raises(RepeatedKeys, match=r'the key \{"id":\{"N":"1"\}\}'):
        copy(tmp_path, source, to)
    counts = copy(tmp_path, source, to, duplicates=LAST)
    assert (counts.rows, counts.rejected, counts.repeated) == (1, 1, 1)


def test_different_keys_with_one_key_in_the_target_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Conversions give different keys different keys. This test breaks one, as a fault would."""
    schema = KeySchema((KeyColumn("id", Kind.TEXT),))
    values = [{"id": Value(Kind.DECIMAL, number), "at": Value(Kind.DECIMAL, number)} for number in (1, 2, 3)]
    rows = [Row(IDS.key(each).position, Contents.of_values(each), 0) for each in values]
    source = MemoryEndpoint(MemoryTable(Definition("t", Service.TABLEGATE, IDS), rows))
    to = MemoryEndpoint(MemoryTable(Definition("t", Service.TABLEGATE, schema)))
    correct = KeyMapping.of

    def of(self: KeyMapping, values: Any, findings: Any) -> Any:
        same = [Value(Kind.DECIMAL, min(value.data, 2)) for value in values]
        return correct(self, same, findings)

    monkeypatch.setattr(KeyMapping, "of", of)
    with pytest.raises(RepeatedKeys, match=r'the key \{"id":\{"S":"2"\}\}'):
        copy(tmp_path, source, to)
    counts = copy(tmp_path, source, to, duplicates=LAST)
    assert (counts.rows, counts.repeated, len(to.table.rows)) == (2, 1, 2)


def test_a_file_cannot_keep_the_last_row_of_a_key(tmp_path: Path) -> None:
    source = file_of(tmp_path / "x.json", "1", "2", "1")
    to = open_file(str(tmp_path / "t.jsonl"), {})
    with pytest.raises(
        RepeatedKeys, match=r"cannot keep the last one, because a file is written once"
    ) as error:
        copy(tmp_path, source, to)
    assert error.value.remedy is Remedy.NONE
    assert not (tmp_path / "t.jsonl").exists()
    (tmp_path / "copy.job").unlink()
    with pytest.raises(TransferError, match="Omit --duplicates last"):
        copy(tmp_path, source, to, duplicates=LAST)


def test_tables_of_services_need_no_search(tmp_path: Path) -> None:
    """Their keys are different and stay the same, so that the job holds none of them."""
    rows = [
        Row(IDS.key(each).position, Contents.of_values(each), 0)
        for each in [{"id": Value(Kind.DECIMAL, number)} for number in range(5)]
    ]
    source = MemoryEndpoint(MemoryTable(Definition("t", Service.TABLEGATE, IDS), rows))
    copy(tmp_path, source, target())
    job = CopyJob.open(tmp_path / "copy.job")
    with contextlib.closing(job):
        assert job._row("SELECT count(*) FROM keys") == (0,)
    assert len({Position(b"a", b"bc"), Position(b"ab", b"c")}) == 2
