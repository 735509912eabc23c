"""Rows that are invalid for their service, as emulators accept them.

The copy continues without them, and each command names them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tablegate.gateway.model.values.keys import Key
from tablegate.transfer.comparing.checksums import signature
from tablegate.transfer.comparing.differences import Difference, ExitStatus
from tablegate.transfer.comparing.verifying import diff, verify
from tablegate.transfer.copying.copying import CopyOptions, run, write_rejects
from tablegate.transfer.copying.job import CopyJob, Counts
from tablegate.transfer.endpoints.endpoint import Service
from tablegate.transfer.errors import ServiceUnavailable, TransferError
from tablegate.transfer.mapping import rules
from tablegate.transfer.mapping.linting import lint
from tablegate.transfer.mapping.rules import Fidelity
from tablegate.transfer.progress import NoProgress
from tests.transfer.support.memory_endpoint import (
    MemoryEndpoint,
    MemoryTable,
    PollingMemoryEndpoint,
    definition_of,
    rows_of,
)

ROWS = 300
UNREAD = (7, 31, 159)
KEYS = [(f"partition {at // 3}", f"row {at}") for at in UNREAD]
REASON = "an attribute has no name"
Ends = tuple[MemoryEndpoint, MemoryEndpoint]


@pytest.fixture
def ends() -> Ends:
    """A source with some unreadable rows, and a target without a table."""
    source = MemoryEndpoint(MemoryTable(definition_of(), rows_of(ROWS)), shown="memory:source")
    source.table.unreadable = {rows_of(1, start=at)[0].position for at in UNREAD}
    return source, MemoryEndpoint(MemoryTable(None), shown="memory:target")


def copy(tmp_path: Path, ends: Ends, **options: object) -> Counts:
    path = tmp_path / "copy.job"
    if path.exists():
        job = CopyJob.open(path)
    else:
        addresses = "memory:source", "memory:target"
        job = CopyJob.create(path, *addresses, [addresses], {})
    source, target = ends
    try:
        counts = run(job, (lambda _: source, lambda _: target), CopyOptions(**options), NoProgress())  # type: ignore[arg-type]
        write_rejects(job, tmp_path / "rejects.jsonl")
        return counts
    finally:
        job.close()


def readable(ends: Ends) -> dict[object, object]:
    source = ends[0].table
    return {at: row for at, row in source.values.items() if at not in source.unreadable}


def test_a_resumed_copy_rejects_unreadable_rows(ends: Ends, tmp_path: Path) -> None:
    ends[0].fail("scan", ServiceUnavailable("cut"), after=9)
    with pytest.raises(ServiceUnavailable):
        copy(tmp_path, ends, parallel=1)
    counts = copy(tmp_path, ends, parallel=1)
    assert (counts.rows, counts.rejected) == (ROWS - len(UNREAD), len(UNREAD))
    assert ends[1].table.values == readable(ends)
    lines = [json.loads(line) for line in (tmp_path / "rejects.jsonl").read_text().splitlines()]
    lines.sort(key=lambda line: UNREAD.index(int(line["row"]["number"]["I64"])))
    assert lines[0] == {
        "table": "memory:source",
        "key": {"pk": {"S": KEYS[0][0]}, "sk": {"S": KEYS[0][1]}},
        "code": "row-unreadable",
        "reason": REASON,
        "row": json.loads(rows_of(1, start=UNREAD[0])[0].body),
    }
    assert [(line["key"]["pk"]["S"], line["key"]["sk"]["S"]) for line in lines] == KEYS


def test_a_page_can_have_only_unreadable_rows(ends: Ends, tmp_path: Path) -> None:
    source = ends[0].table
    source.unreadable = set(source.rows)
    counts = copy(tmp_path, ends)
    assert (counts.rows, counts.rejected, ends[1].table.rows) == (0, ROWS, {})


def test_rows_that_change_while_a_copy_follows(ends: Ends, tmp_path: Path) -> None:
    source = ends[0].table
    becomes_good, becomes_bad = rows_of(1, start=UNREAD[0])[0], rows_of(1, start=0)[0]

    def change() -> None:
        source.unreadable ^= {becomes_good.position, becomes_bad.position}
        for row in (becomes_good, becomes_bad):
            source.put(row)

    ends[0].when("scan", change, after=20)
    counts = copy(tmp_path, ends, follow=True, until_lag_s=3600)
    assert counts.rejected == len(UNREAD)
    keys = [json.loads(line)["key"]["sk"]["S"] for line in (tmp_path / "rejects.jsonl").open()]
    assert sorted(keys) == sorted(["row 0", *(key[1] for key in KEYS[1:])])
    assert ends[1].table.values[becomes_good.position] == source.values[becomes_good.position]


def test_a_sweep_takes_them_for_neither_gone_nor_new(ends: Ends, tmp_path: Path) -> None:
    source = PollingMemoryEndpoint(ends[0].table, shown="memory:source")
    counts = copy(tmp_path, (source, ends[1]), follow=True, until_lag_s=3600, sweep_s=0.0)
    assert (counts.applied, counts.rejected, counts.changes_left) == (0, len(UNREAD), 0)


@pytest.mark.parametrize("sample", [None, 1000])
def test_lint_names_unreadable_rows(ends: Ends, sample: int | None) -> None:
    report = lint(ends[0], Service.TABLEGATE, sample)
    assert (report.rows, report.rejected) == (ROWS, len(UNREAD))
    assert sorted(report.by_rule[rules.ROW_UNREADABLE].examples) == sorted(KEYS)
    assert report.status(Fidelity.IMPOSSIBLE) == 1
    assert report.status(Fidelity.IMPOSSIBLE, ["row-unreadable"]) == 0
    assert "row-unreadable" in report.text()
    assert "row 31" in report.text()


def found(differences: list[Difference]) -> list[tuple[str, Key | object, tuple[str, ...], str]]:
    return sorted((each.what, each.identity, each.rules, each.detail) for each in differences)


@pytest.mark.parametrize("level", ["checksum", "full", "sample:1000"])
def test_verify_names_those_of_either_end(ends: Ends, tmp_path: Path, level: str) -> None:
    copy(tmp_path, ends)
    source, target = ends
    told = (("row-unreadable",), f"memory:source: {REASON}")
    report = verify(source, target, level)
    assert found(report.differences) == [("missing", key, *told) for key in sorted(KEYS)]
    report = verify(target, source, level)
    assert found(report.differences) == [("extra", key, *told) for key in sorted(KEYS)]
    for row in list(source.table.rows.values()):  # what somebody else has written there
        target.table.put(row)
    for pair in ((source, target), (target, source)):
        report = verify(*pair, level)
        assert found(report.differences) == [("changed", key, *told) for key in sorted(KEYS)]
    target.table.unreadable = set(source.table.unreadable)
    report = verify(source, target, level)
    assert [each[:3] for each in found(report.differences)] == [
        ("changed", key, ("row-unreadable",)) for key in sorted(KEYS)
    ]
    assert report.status is ExitStatus.DIFFERENT


def test_verify_counts_unreadable_rows(ends: Ends, tmp_path: Path) -> None:
    copy(tmp_path, ends)
    report = verify(*ends, "count")
    assert (report.rows, report.status) == ((ROWS, ROWS - len(UNREAD)), ExitStatus.DIFFERENT)


def test_diff_names_unreadable_rows(ends: Ends, tmp_path: Path) -> None:
    copy(tmp_path, ends)
    written: list[str] = []
    assert diff(*ends, written.append) is ExitStatus.DIFFERENT
    assert sorted(written) == sorted(
        f"missing {partition!s} / {sort!s}  (memory:source: {REASON}, row-unreadable)\n"
        for partition, sort in KEYS
    )


def test_a_table_with_unreadable_rows_has_no_signature(ends: Ends) -> None:
    with pytest.raises(TransferError, match=r"memory:source: the row .* cannot be read: an attribute has no"):
        signature(ends[0])
    ends[0].table.unreadable.clear()
    assert signature(ends[0]).rows == ROWS
