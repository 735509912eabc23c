"""Targets that have rows before a copy: their number is reported, and they are refused, deleted or kept."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from tablegate.transfer.copying import existing_rows
from tablegate.transfer.copying.copying import CopyOptions, plan, run
from tablegate.transfer.copying.existing_rows import IfExists
from tablegate.transfer.copying.job import CopyJob, Counts
from tablegate.transfer.endpoints.endpoint import Endpoint
from tablegate.transfer.endpoints.files.opening import open_file
from tablegate.transfer.endpoints.files.staging import partial_path
from tablegate.transfer.errors import RequestRefused, ServiceUnavailable, TransferError
from tablegate.transfer.progress import NoProgress
from tests.transfer.support.memory_endpoint import MemoryEndpoint, MemoryTable, definition_of, rows_of
from tests.transfer.support.small_table import scanned


class Saying(NoProgress):
    """A progress display that keeps its sentences, with the number of writes before each."""

    def __init__(self, target: Endpoint) -> None:
        super().__init__()
        self.said: list[tuple[str, int]] = []
        self._target = target

    def say(self, text: str) -> None:
        writes = self._target.calls["write"] if isinstance(self._target, MemoryEndpoint) else 0
        self.said.append((text, writes))


def copy(tmp_path: Path, source: Endpoint, target: Endpoint, **options: Any) -> tuple[Counts, list[Any]]:
    """Begin a job, or continue the one that is there."""
    path = tmp_path / "copy.job"
    addresses = "memory:source", "memory:target"
    job = CopyJob.open(path) if path.exists() else CopyJob.create(path, *addresses, [addresses], {})
    progress = Saying(target)
    with contextlib.closing(job):
        return run(job, (lambda _: source, lambda _: target), CopyOptions(**options), progress), progress.said


def ends(existing: int) -> tuple[MemoryEndpoint, MemoryEndpoint]:
    """A source with the rows 0 to 49, and a target with rows from 40 on."""
    source = MemoryEndpoint(MemoryTable(definition_of(), rows_of(50)), shown="memory:source")
    rows = rows_of(existing, size=3, start=40)
    return source, MemoryEndpoint(MemoryTable(definition_of(), rows), shown="memory:target")


CASES: list[tuple[IfExists | None, bool, int, str | None, int | None]] = [
    # choice, --follow, rows before, sentence before the first write, rows afterwards (None if refused)
    (None, False, 0, None, 50),
    (None, False, 1, "exists already with 1 row. Use --if-exists append", None),
    (None, False, 30, "exists already with 30 rows. Use --if-exists append", None),
    (IfExists.FAIL, True, 30, "exists already with 30 rows", None),
    (None, True, 30, "exists already with 30 rows, which stay. Rows with the same key are replaced", 70),
    (IfExists.APPEND, False, 30, "exists already with 30 rows, which stay", 70),
    (IfExists.REPLACE, False, 30, "exists already with 30 rows, which are deleted first", 50),
    (IfExists.REPLACE, True, 30, "exists already with 30 rows, which are deleted first", 50),
    (IfExists.REPLACE, False, 0, None, 50),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_a_target_with_rows(tmp_path: Path, case: int) -> None:
    choice, follow, existing, sentence, expected = CASES[case]
    source, target = ends(existing)
    options = {"if_exists": choice, "follow": follow, "until_lag_s": 5.0 if follow else None}
    before = target.table.values
    if expected is None:
        with pytest.raises(TransferError) as refusal:
            copy(tmp_path, source, target, **options)
        assert sentence is not None and sentence in str(refusal.value)
        assert target.table.values == before and not target.calls["create"]
        return
    _, said = copy(tmp_path, source, target, **options)
    assert len(target.table.rows) == expected
    assert target.table.values.items() >= source.table.values.items()
    about = [each for each in said if "exists already" in each[0]]
    assert about == [] if sentence is None else sentence in about[0][0] and about[0][1] == 0


def test_a_resumed_copy_continues_into_its_own_rows(tmp_path: Path) -> None:
    for choice in (None, IfExists.REPLACE):
        source, target = ends(30 if choice else 0)
        target.write_rows = 10  # type: ignore[misc]
        target.fail("write", ServiceUnavailable("cut"), after=2)
        with pytest.raises(ServiceUnavailable):
            copy(tmp_path, source, target, if_exists=choice)
        assert 0 < len(target.table.rows) < 50
        copy(tmp_path, source, target, if_exists=choice)
        assert target.table.values == source.table.values
        (tmp_path / "copy.job").unlink()


def test_rows_that_may_not_be_read_are_not_counted(tmp_path: Path) -> None:
    """A key may be allowed to write only."""
    refusal = RequestRefused("memory:target", "AccessDeniedException", "not authorized to perform Scan", 400)
    for choice in (None, IfExists.REPLACE):
        source, target = ends(3)
        target.fail("scan", refusal)
        with pytest.raises(TransferError, match="Allow a scan, or use --if-exists append"):
            copy(tmp_path, source, target, if_exists=choice)
        (tmp_path / "copy.job").unlink()
    source, target = ends(3)
    target.fail("scan", refusal)
    _, [(sentence, writes)] = copy(tmp_path, source, target, if_exists=IfExists.APPEND)
    assert "The rows of the target cannot be counted, and stay" in sentence and writes == 0


def test_a_table_under_two_addresses_is_not_emptied(tmp_path: Path) -> None:
    """A server is reachable by several names, and tablegate serves one table by several APIs."""
    source, _ = ends(0)
    target = MemoryEndpoint(source.table, shown="memory:target")
    before = target.table.values
    with pytest.raises(TransferError, match="memory:source and memory:target are the same table"):
        copy(tmp_path, source, target, if_exists=IfExists.REPLACE)
    assert target.table.values == before


@pytest.mark.parametrize("failing", ["get", "write"])
def test_no_row_is_missing_while_the_addresses_are_compared(tmp_path: Path, failing: str) -> None:
    """A kill or a lost connection at that moment loses nothing."""
    source, _ = ends(0)
    target = MemoryEndpoint(source.table, shown="memory:target")
    before = target.table.values
    seen: list[bool] = []
    for endpoint in (source, target):
        for operation in ("get", "write", "delete"):
            endpoint.when(operation, lambda: seen.append(before.items() <= target.table.values.items()))
    {"get": source, "write": target}[failing].fail(failing, ServiceUnavailable("cut"))
    with pytest.raises(ServiceUnavailable):
        copy(tmp_path, source, target, if_exists=IfExists.REPLACE)
    assert target.table.values == before
    assert seen and all(seen)


def test_no_table_is_written_if_one_of_several_has_rows(tmp_path: Path) -> None:
    source, target = ends(0)
    other, full = ends(3)
    pairs = [("a", "b"), ("c", "d")]
    endpoints = {"a": source, "b": target, "c": other, "d": full}
    job = CopyJob.create(tmp_path / "copy.job", "x", "y", pairs, {})
    with contextlib.closing(job), pytest.raises(TransferError, match="exists already with 3 rows"):
        run(job, (endpoints.__getitem__, endpoints.__getitem__), CopyOptions(), NoProgress())
    assert not target.table.rows and not target.calls["create"]


def test_many_rows_are_counted_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(existing_rows, "COUNTED_ROWS", 20)
    for number, words in ((20, "with 20 rows"), (21, "with more than 20 rows")):
        source, target = ends(number)
        pages = len(target.pages)
        with pytest.raises(TransferError, match=words):
            plan(source, target, CopyOptions())
        assert len(target.pages) - pages <= 3


@pytest.mark.parametrize("name", ["t.jsonl.zst", "t.parquet", "t.typed.csv"])
def test_an_existing_file_is_replaced_when_the_copy_is_complete(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    source, _ = ends(0)
    copy(tmp_path, source, open_file(str(path), {}))
    (tmp_path / "copy.job").unlink()
    before = path.read_bytes()
    other = MemoryEndpoint(MemoryTable(definition_of(), rows_of(7, start=100)))
    for choice, words in (
        (None, "exists already with 50 rows. Name another file, remove it, or replace it with --if-exists"),
        (IfExists.APPEND, "exists already with 50 rows. Rows cannot be appended to a file"),
    ):
        with pytest.raises(TransferError, match=words):
            copy(tmp_path, other, open_file(str(path), {}), if_exists=choice)
        (tmp_path / "copy.job").unlink()
    other.fail("scan", ServiceUnavailable("cut"), after=3)
    with pytest.raises(ServiceUnavailable):
        copy(tmp_path, other, open_file(str(path), {}), if_exists=IfExists.REPLACE)
    assert path.read_bytes() == before, "an incomplete copy does not replace it"
    copy(tmp_path, other, open_file(str(path), {}), if_exists=IfExists.REPLACE)
    assert len(scanned(open_file(str(path), {}))) == 7


def test_a_file_that_is_no_table_is_not_replaced(tmp_path: Path) -> None:
    source, _ = ends(0)
    (tmp_path / "t.jsonl").write_text("notes\n")
    (tmp_path / "folder").mkdir()
    for name, words in (("t.jsonl", "cannot be read as a table"), ("folder", "Remove the folder")):
        options = {"format": "dynamodb-export"} if name == "folder" else {"format": "jsonl"}
        with pytest.raises(TransferError, match=f"{name} exists already.*{words}"):
            copy(tmp_path, source, open_file(str(tmp_path / name), options), if_exists=IfExists.REPLACE)
        (tmp_path / "copy.job").unlink()
    assert (tmp_path / "t.jsonl").read_text() == "notes\n"


def test_an_incomplete_file_of_another_copy_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    source, _ = ends(0)
    incomplete = open_file(str(path), {})
    incomplete.create(definition_of())
    incomplete.write(rows_of(3))
    with pytest.raises(TransferError, match="another process is writing this file"):
        copy(tmp_path, source, open_file(str(path), {}), if_exists=IfExists.REPLACE)
    incomplete.close()
    (tmp_path / "copy.job").unlink()
    with pytest.raises(TransferError, match="was started and not finished"):
        copy(tmp_path, source, open_file(str(path), {}))
    (tmp_path / "copy.job").unlink()
    copy(tmp_path, source, open_file(str(path), {}), if_exists=IfExists.REPLACE)
    assert len(scanned(open_file(str(path), {}))) == 50
    assert not partial_path(path).exists()
