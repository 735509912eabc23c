"""The commands of a cut-over (docs/migrate/cut-over.md) as a script runs them: output and status."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tablegate.gateway.model.values.values import text
from tablegate.transfer.copying.job_setup import ChosenOptions
from tests.command_line.test_transfers import A, B, Fill, fill, tablegate
from tests.transfer.support.memory_endpoint import PAIR, row_of, rows_of

__all__ = ["fill"]

FOLLOW = ("--follow", "--until-lag", "2s", "--quiet")


@pytest.mark.parametrize("job", [("--job", "my copy.job"), ()])
def test_a_copy_that_stops_following_says_why_and_how_to_continue(
    fill: Fill, tmp_path: Path, job: tuple[str, ...]
) -> None:
    fill(rows_of(10))
    told = tablegate(tmp_path, "copy", A, B, *job, *FOLLOW)
    for rows, changed in ((7, "7 changed rows"), (1, "1 changed row"), (0, "0 changed rows")):
        last = told.splitlines()[-1]
        reason = (
            r"stopped following at a lag of \d+\.\d s \(--until-lag 2s\)\. The last look at the source found \d+ changed "
            r"rows?, and later writes are not copied\. Continue with: tablegate (copy --job .+ --resume), or add --follow to "
            "follow without end"
        )
        found = re.fullmatch(reason, last)
        assert found, last
        fill(rows_of(rows))
        told = tablegate(tmp_path, *shlex.split(found[1]), "--quiet")
        assert f" {changed}, and later" in told
    assert tablegate(tmp_path, "verify", A, B, "--quiet").endswith("equal\n\n")


def test_follow_without_until_lag_replaces_that_of_the_job() -> None:
    stored = ChosenOptions(follow=True, until_lag_s=2.0).document()
    assert ChosenOptions().over(stored).until_lag_s == 2.0
    assert ChosenOptions(follow=True, until_lag_s=5.0).over(stored).until_lag_s == 5.0
    assert ChosenOptions(follow=True).over(stored).until_lag_s is None


def test_a_copy_that_does_not_follow_prints_its_rows_last(fill: Fill, tmp_path: Path) -> None:
    fill(rows_of(10))
    assert tablegate(tmp_path, "copy", A, B, "--quiet").splitlines()[-1].startswith("copied 10 rows")


BAD = row_of(PAIR, pk=text("b/ad"), sk=text("s"))
CSV = "file:things.typed.csv"


def test_lint_fails_where_rows_would_be_lost(fill: Fill, tmp_path: Path) -> None:
    fill([*rows_of(2), BAD])
    assert "1 would be rejected" in tablegate(tmp_path, "lint", A, "azure-table", code=1)
    tablegate(tmp_path, "lint", A, "azure-table", "--fail-on", "none")
    tablegate(tmp_path, "lint", A, "azure-table", "--accept", "key-forbidden")
    tablegate(tmp_path, "lint", A, "tablegate")
    repeated = "file:x.json?keys=pk:S,sk:S"
    (tmp_path / "x.json").write_text('{"Item": {"pk": {"S": "a"}, "sk": {"S": "s"}}}\n' * 2)
    tablegate(tmp_path, "lint", repeated, "tablegate", code=1)
    tablegate(tmp_path, "lint", repeated, "tablegate", "--fail-on", "none")


def test_a_cut_over_with_accepted_rejects_needs_no_judgement(fill: Fill, tmp_path: Path) -> None:
    fill([*rows_of(20), BAD])
    tablegate(tmp_path, "copy", A, CSV, "--job", "copy.job", code=1)
    accept = ("--except-rejects", "copy.job.rejects.jsonl")
    tablegate(tmp_path, "verify", A, CSV, code=1)
    told = tablegate(tmp_path, "verify", A, CSV, *accept, "--format", "json")
    assert '"excepted": 1' in told and '"equal": true' in told
    assert "needs rows" in tablegate(tmp_path, "verify", A, CSV, *accept, "--level", "count", code=2)
    fill([row_of(PAIR, pk=text("b/ad"), sk=text("s"), more=text("new"))])
    assert "1 missing" in tablegate(tmp_path, "verify", A, CSV, *accept, code=1)


def test_a_missing_file_of_rejects_has_no_rows(fill: Fill, tmp_path: Path) -> None:
    """Copy removes the file if it rejects nothing, so that a script can name it always."""
    fill(rows_of(20))
    tablegate(tmp_path, "copy", A, B)
    assert tablegate(tmp_path, "verify", A, B, "--except-rejects", "none.jsonl").endswith("equal\n\n")
    fill([BAD])
    tablegate(tmp_path, "verify", A, B, "--except-rejects", "none.jsonl", code=1)
