"""A source without rows is a warning of copy, lint and verify, and status 1 of verify."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tablegate.gateway.__main__ import main
from tablegate.transfer.endpoints.files.opening import open_file
from tests.transfer.support.small_table import DEFINITION, simple_row, written

WARNING = "Warning: file:{} has no rows. Check the address and the format if this is not meant\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files in the working directory: one empty table, its copy, and one with a row."""
    monkeypatch.chdir(tmp_path)
    written(open_file("empty.jsonl", {}), DEFINITION)
    written(open_file("also-empty.jsonl", {}), DEFINITION)
    written(open_file("full.jsonl", {}), DEFINITION, [simple_row(1)])


def tablegate(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_copies_warn() -> None:
    copied = tablegate("copy", "file:empty.jsonl", "file:copy.jsonl", "--quiet")
    assert copied.exit_code == 0 and copied.stderr.startswith(WARNING.format("empty.jsonl"))
    copied = tablegate("copy", "file:full.jsonl", "file:full-copy.jsonl", "--quiet")
    assert copied.exit_code == 0 and "Warning" not in copied.stderr


@pytest.mark.parametrize("level", ["count", "checksum"])
def test_equal_tables_without_rows_are_not_verified(level: str) -> None:
    ends = "file:empty.jsonl", "file:also-empty.jsonl"
    verified = tablegate("verify", *ends, "--level", level)
    assert verified.exit_code == 1 and verified.stderr.endswith(WARNING.format("empty.jsonl"))
    last = "different: no rows in file:empty.jsonl (--allow-empty accepts this)"
    assert last in verified.stdout and "\nequal" not in verified.stdout
    assert not json.loads(tablegate("verify", *ends, "--format", "json").stdout)["equal"]
    allowed = tablegate("verify", *ends, "--level", level, "--allow-empty")
    assert allowed.exit_code == 0 and allowed.stderr.endswith(WARNING.format("empty.jsonl"))
    assert "\nequal" in allowed.stdout


def test_rows_that_only_the_second_table_has_are_different() -> None:
    verified = tablegate("verify", "file:empty.jsonl", "file:full.jsonl", "--allow-empty", "--level", "count")
    assert verified.exit_code == 1 and WARNING.format("empty.jsonl") in verified.stderr
    verified = tablegate("verify", "file:full.jsonl", "file:empty.jsonl", "--level", "count")
    assert verified.exit_code == 1 and "Warning" not in verified.stderr


def test_lint_warns() -> None:
    checked = tablegate("lint", "file:empty.jsonl", "dynamodb", "--quiet")
    assert checked.exit_code == 0 and checked.stderr == WARNING.format("empty.jsonl")
    assert "0 rows checked: the source has no rows" in checked.stdout
    assert "Warning" not in tablegate("lint", "file:full.jsonl", "dynamodb").stderr
