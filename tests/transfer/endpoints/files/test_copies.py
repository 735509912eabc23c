"""Files as both ends of real copies."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tablegate.adapters.dynamodb.export_files.compression import compressed
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, Value
from tablegate.transfer.copying.copying import CopyOptions, run
from tablegate.transfer.copying.job import CopyJob, Counts
from tablegate.transfer.copying.job_setup import pairs_of
from tablegate.transfer.endpoints.addresses import is_pattern, open_endpoint, tables_of, with_table
from tablegate.transfer.endpoints.files import csv_files, dynamodb_export, dynamodb_lines, parquet, staging
from tablegate.transfer.errors import BadAddress, MissingSoftware, TransferError
from tablegate.transfer.progress import NoProgress
from tests.transfer.support.small_table import DEFINITION, of_values, scanned, simple_row, written

KEYS = "?keys=pk:S,sk:N"


def copy(tmp_path: Path, source: str, target: str, **options: bool) -> Counts:
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.job"
    job = CopyJob.create(path, source, target, [(source, target)], {})
    try:
        return run(job, (open_endpoint, open_endpoint), CopyOptions(**options), NoProgress())  # type: ignore[arg-type]
    finally:
        job.close()


@pytest.mark.parametrize(
    "name", ["t.jsonl.zst", "t.json.gz", "t.ion", "t.parquet", "export?format=dynamodb-export"]
)
def test_a_table_goes_from_file_to_file_and_back(tmp_path, name):
    rows = [simple_row(number) for number in range(1200)]
    written(open_endpoint(f"file:{tmp_path}/source.jsonl"), DEFINITION, rows)
    there = f"file:{tmp_path}/{name}"
    assert copy(tmp_path, f"file:{tmp_path}/source.jsonl", there).rows == 1200
    keys = KEYS if name in ("t.json.gz", "t.ion") else ""
    assert copy(tmp_path, there + keys, f"file:{tmp_path}/back.jsonl").rows == 1200
    back = scanned(open_endpoint(f"file:{tmp_path}/back.jsonl"))
    assert sorted(map(of_values, back)) == sorted(map(of_values, rows))


def test_a_table_of_dynamodb_becomes_typed_csv(tmp_path):
    written(open_endpoint(f"file:{tmp_path}/source.jsonl"), DEFINITION, [simple_row(7)])
    copy(tmp_path, f"file:{tmp_path}/source.jsonl", f"file:{tmp_path}/t.typed.csv")
    [row] = scanned(open_endpoint(f"file:{tmp_path}/t.typed.csv"))
    assert {name: value.data for name, value in row.latest.items()} == {
        "PartitionKey": "p0", "RowKey": "7", "text": "row 7"
    }  # fmt: skip
    assert row.latest["RowKey"].kind is Kind.TEXT


def test_names_that_azure_cannot_have_are_spelled_once(tmp_path):
    values = {**simple_row(7).latest, "my-attr": Value(Kind.TEXT, "x")}
    row = Row(simple_row(7).position, Contents.of_values(values), 7)
    written(open_endpoint(f"file:{tmp_path}/source.jsonl"), DEFINITION, [row])
    copy(tmp_path, f"file:{tmp_path}/source.jsonl", f"file:{tmp_path}/t.csv")
    assert b"my_x002D_attr," in (tmp_path / "t.csv").read_bytes()
    copy(tmp_path, f"file:{tmp_path}/t.csv", f"file:{tmp_path}/back.jsonl")
    [back] = scanned(open_endpoint(f"file:{tmp_path}/back.jsonl"))
    assert back.latest["my-attr"] == Value(Kind.TEXT, "x")


def test_a_copy_to_a_file_cannot_follow(tmp_path):
    written(open_endpoint(f"file:{tmp_path}/source.jsonl"), DEFINITION, [simple_row(7)])
    with pytest.raises(TransferError, match=r"t\.jsonl: a copy to this target cannot follow"):
        copy(tmp_path, f"file:{tmp_path}/source.jsonl", f"file:{tmp_path}/t.jsonl", follow=True)
    assert not list(tmp_path.glob("t.jsonl*"))


def test_a_copy_does_not_overwrite_an_existing_file(tmp_path):
    written(open_endpoint(f"file:{tmp_path}/source.jsonl"), DEFINITION, [simple_row(7)])
    written(open_endpoint(f"file:{tmp_path}/t.jsonl"), DEFINITION, [simple_row(8)])
    with pytest.raises(TransferError, match="exists already"):
        copy(tmp_path, f"file:{tmp_path}/source.jsonl", f"file:{tmp_path}/t.jsonl")
    assert [row.modified_at for row in scanned(open_endpoint(f"file:{tmp_path}/t.jsonl"))] == [8]


def test_copies_to_files_read_back_what_was_written(tmp_path, monkeypatch):
    """A defect of a writer: each changes or drops a row of two. The file gets no name, and the rows can be written again."""
    line_of, cells = dynamodb_lines.line_of, csv_files._cells
    lines = iter(range(100))
    cases: list[tuple[str, Any, str, Any]] = [
        ("t.json", dynamodb_lines, "line_of", lambda row, ion: line_of(row, ion) if next(lines) % 2 else b""),
        ("t.ion", dynamodb_lines, "line_of", lambda row, ion: line_of(row, ion).replace(b"row 1", b"row 2")),
        ("t.ion.zst", dynamodb_lines, "line_of", lambda row, ion: line_of(row, ion).replace(b"row 1", b"row \\q")),
        ("export?format=dynamodb-export", dynamodb_export, "line_of", lambda row, ion: line_of(simple_row(1), ion)),
        ("t.parquet", parquet._RowGroup, "_put", lambda group, column, cell: group._cells[column].append(None)),
        ("t.csv", csv_files, "_cells", lambda row, names: list(cells(row, names))[:-1]),
        ("t.jsonl.gz", staging, "compressed", lambda lines, compression: compressed(lines[:-9] + b"00000000\n", compression)),
    ]  # fmt: skip
    written(open_endpoint(f"file:{tmp_path}/source.jsonl"), DEFINITION, [simple_row(1), simple_row(2)])
    for name, owner, attribute, faulty in cases:
        with monkeypatch.context() as patch:
            patch.setattr(owner, attribute, faulty)
            with pytest.raises(TransferError) as refused:
                copy(tmp_path, f"file:{tmp_path}/source.jsonl", f"file:{tmp_path}/{name}")
        path = tmp_path / name.partition("?")[0]
        assert path.name in str(refused.value) and not path.exists(), name


@pytest.mark.parametrize("name", ["t.ion.gz", "export?format=dynamodb-export&lines=ion"])
def test_ion_is_not_written_if_it_cannot_be_read_back(tmp_path, monkeypatch, name):
    monkeypatch.setitem(sys.modules, "tablegate.adapters.dynamodb.export_files.ion_values", None)
    written(open_endpoint(f"file:{tmp_path}/source.jsonl"), DEFINITION, [simple_row(1)])
    with pytest.raises(MissingSoftware, match=r"pip install 'tablegate\[ion\]'"):
        copy(tmp_path, f"file:{tmp_path}/source.jsonl", f"file:{tmp_path}/{name}")


@pytest.mark.parametrize("name", ["t.jsonl", "t.json", "t.csv"])
def test_a_file_that_has_changed_is_not_read_on(tmp_path, name):
    """A copy goes on after a number of rows, which would be others."""
    address = f"file:{tmp_path}/{name}" + (KEYS if name == "t.json" else "")
    written(open_endpoint(f"file:{tmp_path}/source.jsonl"), DEFINITION, [simple_row(at) for at in range(600)])
    copy(tmp_path, f"file:{tmp_path}/source.jsonl", address)
    [segment] = open_endpoint(address).segments(4)
    first = next(iter(open_endpoint(address).scan(segment)))
    assert sum(len(page.rows) for page in open_endpoint(address).scan(segment, first.resume)) == 100
    (tmp_path / name).unlink()
    copy(tmp_path, f"file:{tmp_path}/source.jsonl", address)
    with pytest.raises(TransferError, match="has changed since reading began"):
        list(open_endpoint(address).scan(segment, first.resume))


def test_a_pattern_stands_for_the_files_of_a_folder(tmp_path):
    for name in ("b.jsonl", "a.jsonl", "c.jsonl.partial", "d.csv"):
        (tmp_path / name).touch()
    pattern = f"file:{tmp_path}/*.jsonl"
    assert is_pattern(pattern) and not is_pattern(f"file:{tmp_path}/a.jsonl")
    assert tables_of(pattern) == [f"file:{tmp_path}/a.jsonl", f"file:{tmp_path}/b.jsonl"]
    assert tables_of(f"file:{tmp_path}/*.jsonl?format=jsonl")[0] == f"file:{tmp_path}/a.jsonl?format=jsonl"
    assert tables_of(f"file:{tmp_path}/a.jsonl") == [f"file:{tmp_path}/a.jsonl"]
    with pytest.raises(TransferError, match="no such file"):
        tables_of(f"file:{tmp_path}/*.parquet")


def test_a_pattern_of_files_is_copied_to_a_pattern_of_files(tmp_path):
    """docs/migrate/file-formats.md: as the target of several tables, `*` is replaced by the name of the table."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text('{"id":{"S":"x"}}\n')
    pairs = pairs_of(f"file:{tmp_path}/*.json?keys=id:S", f"file:{tmp_path}/out/*.jsonl")
    assert [target for _, target in pairs] == [f"file:{tmp_path}/out/{name}.jsonl" for name in ("a", "b")]


def test_tables_of_a_pattern_become_files_of_their_names():
    assert with_table("file:dump/*.jsonl.zst", "Music.1") == "file:dump/Music.1.jsonl.zst"
    assert with_table("file:*.json?keys=a:S", "a/../b") == "file:a%2F..%2Fb.json?keys=a%3AS"
    with pytest.raises(BadAddress, match=r"file:FOLDER/\*\.jsonl"):
        with_table("file:dump.jsonl", "Music")
