"""The commands verify and diff on files of Azure Table, in this process."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from tablegate.transfer.comparison_commands import diff, signature, verify


def _file(path: Path, number: str, kind: str) -> str:
    header = "PartitionKey,RowKey,Timestamp,n,n@type"
    path.write_text(f"{header}\r\np,r,,{number},{kind}\r\n", newline="")
    return f"file:{path}"


def test_changed_kinds_are_different_unless_lenient(tmp_path: Path) -> None:
    """Issue 44, point 10: two tables of one service with Int64 5 and Int32 5 were equal."""
    runner = CliRunner()
    for first, second in (
        (("5", "Int64"), ("5", "Int32")),
        (("3", "Int32"), ("3.0", "Double")),
        (("1234567890123456768", "Double"), ("1234567890123456768", "Int64")),
    ):
        ends = [_file(tmp_path / "a.csv", *first), _file(tmp_path / "b.csv", *second)]
        usual = runner.invoke(verify, ends)
        assert (usual.exit_code, "different: 1 kind" in usual.output) == (1, True), usual.output
        assert runner.invoke(verify, [*ends, "--strict"]).exit_code == 1
        lenient = runner.invoke(verify, [*ends, "--lenient"])
        assert (
            lenient.exit_code,
            "lenient: kinds of numbers were not compared\nequal\n" in lenient.output,
        ) == (
            0,
            True,
        ), lenient.output
        assert [runner.invoke(diff, [*ends, *more]).exit_code for more in ([], ["--lenient"])] == [1, 0]
        digests = [runner.invoke(signature, [end, "--quiet"]).output for end in ends]
        assert digests[0] != digests[1]


def test_a_rounded_double_is_a_difference_even_if_lenient(tmp_path: Path) -> None:
    ends = [
        _file(tmp_path / "a.csv", "1234567890123456768", "Double"),
        _file(tmp_path / "b.csv", "1234567890123456800", "Int64"),
    ]
    found = CliRunner().invoke(verify, [*ends, "--lenient"])
    assert (found.exit_code, "different: 1 changed" in found.output) == (1, True), found.output
