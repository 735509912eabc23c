"""`verify --except-rejects`: rows that a copy rejected are no differences while they are as they were rejected."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import text
from tablegate.transfer.comparing import verifying
from tablegate.transfer.comparing.differences import Report
from tablegate.transfer.comparing.rejected_rows import read_rejected_rows
from tablegate.transfer.comparing.sides import CompareOptions
from tablegate.transfer.endpoints.endpoint import Service
from tablegate.transfer.errors import TransferError
from tests.transfer.support.memory_endpoint import (
    PAIR,
    MemoryEndpoint,
    MemoryTable,
    definition_of,
    row_of,
    rows_of,
)
from tests.transfer.test_unreadable_rows import Ends, copy

FORBIDDEN = [row_of(PAIR, pk=text(f"a/{at}"), sk=text("s"), n=text("1")) for at in range(5)]
UNREADABLE, REFUSED = rows_of(2)
REJECTED = len(FORBIDDEN) + 2


@pytest.fixture
def ends() -> Ends:
    """A table with rows that Azure's mapping rejects, that cannot be read, and that the service itself refuses."""
    source = MemoryEndpoint(MemoryTable(definition_of(), [*rows_of(50), *FORBIDDEN]), shown="memory:source")
    source.table.unreadable = {UNREADABLE.position}
    target = MemoryEndpoint(MemoryTable(None), service=Service.AZURE_TABLE, shown="memory:target")
    target.reject = lambda row: (
        ("Refused", "no") if row.latest.get("number") == REFUSED.latest["number"] else None
    )
    return source, target


def verified(ends: Ends, folder: Path, level: str = "checksum") -> Report:
    rejected = read_rejected_rows(folder / "rejects.jsonl", "memory:source")
    return verifying.verify(*ends, level, CompareOptions(rejected=rejected))


@pytest.mark.parametrize("level", ["checksum", "full", "sample:100"])
@pytest.mark.parametrize("kept", [10_000, 2])
def test_rejected_rows_are_excepted_at_each_level(
    ends: Ends, tmp_path: Path, level: str, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifying, "_KEPT_IMPOSSIBLE", kept)
    assert copy(tmp_path, ends).rejected == REJECTED
    assert verifying.verify(*ends, level).counts == {"missing": REJECTED}
    report = verified(ends, tmp_path, level)
    assert (report.counts, report.excepted, report.status) == ({}, REJECTED, 0)
    assert f"excepted, because the copy rejected them: {REJECTED}\n" in report.text()


@pytest.mark.parametrize("row", [FORBIDDEN[0], UNREADABLE, REFUSED])
def test_a_row_that_changed_after_its_rejection_is_a_difference(ends: Ends, tmp_path: Path, row: Row) -> None:
    copy(tmp_path, ends)
    values = {**row.latest, "more": text("new")}
    ends[0].table.put(row_of(PAIR, **values))
    report = verified(ends, tmp_path)
    assert (report.counts, report.excepted) == ({"missing": 1}, REJECTED - 1)


def test_other_differences_count(ends: Ends, tmp_path: Path) -> None:
    copy(tmp_path, ends)
    [*_, last] = ends[1].table.rows
    ends[1].table.remove(last)
    report = verified(ends, tmp_path)
    assert (report.counts, report.excepted) == ({"missing": 1}, REJECTED)


def test_the_file_must_be_of_this_table(ends: Ends, tmp_path: Path) -> None:
    path = tmp_path / "rejects.jsonl"
    assert not read_rejected_rows(path, "memory:source")
    copy(tmp_path, ends)
    assert len(read_rejected_rows(path, "memory:source")) == REJECTED
    with pytest.raises(TransferError, match="has no rejected rows of memory:other, but of memory:source"):
        read_rejected_rows(path, "memory:other")
    path.write_text('{"key": 1}\n')
    with pytest.raises(TransferError, match="line 1 is no rejected row of `tablegate copy`"):
        read_rejected_rows(path, "memory:source")
