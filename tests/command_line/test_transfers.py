"""`tablegate lint`, `copy`, `verify`, `diff` and `signature` as users run them: output and status."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tablegate.gateway.__main__ import main
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Kind, Value, text
from tablegate.testing import Server
from tablegate.transfer.endpoints.database import DatabaseEndpoint
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.endpoints.files import file_endpoint
from tablegate.transfer.endpoints.files.file_endpoint import LineReader
from tests.support.databases import PostgresServer
from tests.support.running import ROOT
from tests.transfer.support.memory_endpoint import PAIR, row_of, rows_of

A, B = "tablegate:a.sqlite#things", "tablegate:b.sqlite#things"
Fill = Callable[..., None]


def tablegate(folder: Path, *arguments: str, code: int = 0) -> str:
    """Run a command in this process, as if in a folder.

    Returns its results, or what it reports on standard error if it prints none.
    """
    with contextlib.chdir(folder):
        done = CliRunner().invoke(main, arguments)
    assert done.exit_code == code, done.output
    return done.stdout or done.stderr


@pytest.fixture
def fill(tmp_path: Path) -> Fill:
    """Write rows to a table of a database in the test's folder, which is made if it is missing."""

    def write(rows: list[Row], name: str = "things", file: str = "a.sqlite") -> None:
        endpoint = DatabaseEndpoint(f"sqlite:///{tmp_path}/{file}#{name}")
        with contextlib.closing(endpoint):
            endpoint.create(Definition(name, Service.TABLEGATE, PAIR))
            assert endpoint.write(rows) == []

    return write


def test_a_table_is_copied_and_verified(fill: Fill, tmp_path: Path) -> None:
    fill(rows_of(1_000))
    assert "copied 1,000 rows, 50.0 kB\n" in re.sub(
        r"\d+\.\d kB", "50.0 kB", tablegate(tmp_path, "copy", A, B)
    )
    assert not list(tmp_path.glob("*.job*"))
    assert tablegate(tmp_path, "verify", A, B).endswith("equal\n\n")
    assert tablegate(tmp_path, "diff", A, B) == ""
    signed = tablegate(tmp_path, "signature", A)
    assert re.fullmatch(r"[0-9a-f]{64}  1000 rows\n", signed)
    assert tablegate(tmp_path, "signature", B) == signed


def test_differences_are_reported(fill: Fill, tmp_path: Path) -> None:
    fill(rows_of(100))
    fill([*rows_of(50), *rows_of(50, size=11, start=50)], file="b.sqlite")
    told = json.loads(tablegate(tmp_path, "verify", A, B, "--format", "json", "--limit", "3", code=1))
    assert told["counts"]["changed"] == 50
    assert len(told["differences"]) == 3
    assert (
        len(tablegate(tmp_path, "diff", A, B, "--format", "jsonl", "--limit", "7", code=1).splitlines()) == 7
    )
    assert tablegate(tmp_path, "verify", A, B, "--ignore", "text").endswith("equal\n\n")
    assert tablegate(tmp_path, "signature", A) != tablegate(tmp_path, "signature", B)
    assert tablegate(tmp_path, "signature", A, "--ignore", "text") == tablegate(
        tmp_path, "signature", B, "--ignore", "text"
    )


def test_a_pattern_copies_all_tables_of_a_database(fill: Fill, tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        fill(rows_of(len(name)), name)
    ends = "tablegate:a.sqlite#t*", "tablegate:b.sqlite#*"
    assert "copied 8 rows" in tablegate(tmp_path, "copy", *ends)
    assert tablegate(tmp_path, "verify", *ends).count("equal\n") == 2
    assert "no such table" in tablegate(
        tmp_path, "verify", "tablegate:a.sqlite#*", "tablegate:b.sqlite#*", code=2
    )
    assert "no such table" in tablegate(tmp_path, "copy", "tablegate:a.sqlite#x*", ends[1], code=2)
    assert "Use * as the target table" in tablegate(tmp_path, "copy", ends[0], B, code=2)


def test_a_copy_through_a_file_is_equal(fill: Fill, tmp_path: Path) -> None:
    fill(
        [
            *rows_of(500),
            row_of(PAIR, pk=text("p"), sk=text("s"), f=Value(Kind.DOUBLE, 0.1), b=Value(Kind.BYTES, b"\x00")),
        ]
    )
    tablegate(tmp_path, "copy", A, "file:things.jsonl.gz")
    tablegate(tmp_path, "copy", "file:things.jsonl.gz", B)
    assert tablegate(tmp_path, "verify", A, B, "--strict").endswith("equal\n\n")


def test_a_plan_writes_nothing(fill: Fill, tmp_path: Path) -> None:
    fill(rows_of(10))
    before = sorted(tmp_path.iterdir())
    told = tablegate(tmp_path, "copy", A, B, "--dry-run", "--follow")
    assert "about 10 rows" in told
    assert "is created, key pk, sk" in told
    assert "changes are captured" in told
    assert sorted(tmp_path.iterdir()) == before


def test_rejects_are_status_1(fill: Fill, tmp_path: Path) -> None:
    """Azure Table rejects a key with a slash ("Understanding the Table service data model")."""
    good, bad = [row_of(PAIR, pk=text(pk), sk=text("s")) for pk in ("good", "b/ad")]
    fill([good, bad])
    azure = DatabaseEndpoint(f"sqlite:///{tmp_path}/b.sqlite#things")
    with contextlib.closing(azure):
        azure.create(Definition("things", Service.TABLEGATE, PAIR))
    told = tablegate(tmp_path, "copy", A, "file:things.typed.csv", "--job", "copy.job", code=1)
    assert "copied 1 rows" in told
    assert "1 rejected, see copy.job.rejects.jsonl" in told
    [line] = (tmp_path / "copy.job.rejects.jsonl").read_text().splitlines()
    assert json.loads(line)["key"] == {"pk": {"S": "b/ad"}, "sk": {"S": "s"}}


@pytest.mark.parametrize("name", ["notes.txt", "things.jsonl", "copy.job"])
def test_only_a_file_of_rejects_is_replaced_by_rejects(fill: Fill, tmp_path: Path, name: str) -> None:
    """These files belong to a user, to the copy itself, and to the job."""
    fill(rows_of(1))
    (tmp_path / "notes.txt").write_text("notes")
    arguments = ("copy", A, "file:things.jsonl", "--job", "copy.job", "--rejects", name)
    told = tablegate(tmp_path, *arguments, code=2)
    assert f"{name} exists and is not a file of rejected rows" in told
    if name == "things.jsonl":
        tablegate(tmp_path, "copy", "--job", "copy.job", "--resume")
        assert tablegate(tmp_path, "verify", A, "file:things.jsonl").endswith("equal\n\n")
    assert (tmp_path / "notes.txt").read_text() == "notes"


def test_lint_reports_in_advance(fill: Fill, tmp_path: Path) -> None:
    """A 38-digit number is a text in Azure Table, a key with a slash is refused there (see test_rejects_are_status_1)."""
    number = Value(Kind.DECIMAL, Decimal("1" * 38))
    fill([row_of(PAIR, pk=text("good"), sk=text("s"), n=number), row_of(PAIR, pk=text("b/ad"), sk=text("s"))])
    told = json.loads(tablegate(tmp_path, "lint", A, "azure-table", "--format", "json", code=1))
    assert (told["rows"], told["rejected"]) == (2, 1)
    assert {each["class"] for each in told["rules"]} >= {"impossible", "rendered"}
    impossible = [each["rule"] for each in told["rules"] if each["class"] == "impossible"]
    assert "b/ad" in tablegate(tmp_path, "lint", A, "azure-table", "--fail-on", "impossible", code=1)
    accepted = [word for rule in impossible for word in ("--accept", rule)]
    tablegate(tmp_path, "lint", A, "azure-table", "--fail-on", "impossible", *accepted)
    tablegate(tmp_path, "lint", A, "tablegate", "--fail-on", "rendered")
    html = tablegate(tmp_path, "lint", A, "azure-table", "--format", "html", "--fail-on", "none")
    assert html.startswith("<!doctype html>")
    assert "no such database" in tablegate(tmp_path, "lint", B, "azure-table", code=2)


def test_a_job_is_resumed_by_its_file_alone(fill: Fill, tmp_path: Path) -> None:
    fill(rows_of(10))
    tablegate(tmp_path, "copy", A, B, "--job", "copy.job", "--rate", "1000", "--follow", "--until-lag", "2s")
    fill(rows_of(10, start=5))
    told = tablegate(tmp_path, "copy", "--job", "copy.job", "--resume")
    assert "10 changes applied" in told
    assert tablegate(tmp_path, "verify", A, B).endswith("equal\n\n")
    other = "tablegate:c.sqlite#things"
    assert "has another target" in tablegate(
        tmp_path, "copy", A, other, "--job", "copy.job", "--resume", code=2
    )
    assert "--escape-keys, which cannot change" in tablegate(
        tmp_path, "copy", "--job", "copy.job", "--resume", "--escape-keys", code=2
    )
    assert "exists already" in tablegate(tmp_path, "copy", A, B, "--job", "copy.job", code=2)


def advised(folder: Path, *arguments: str) -> tuple[str, list[str]]:
    """Run a command that fails. Return its error, and the words of the one command that it advises."""
    error, advice = tablegate(folder, *arguments, "--quiet", code=2).splitlines()
    label, command = advice.split(": ", 1)
    assert label in ("Continue with", "Start again with"), advice
    return error, shlex.split(command)[1:]


def test_each_advised_command_works(fill: Fill, tmp_path: Path) -> None:
    """A job that can only fail again is not continued. A lost position, a changed file, a lost file, repeated keys."""
    job = ("--job", "my copy.job")

    def lose_position() -> None:
        fill(rows_of(10))
        tablegate(tmp_path, "copy", A, B, *job, "--follow", "--until-lag", "2s", "--rate", "1000")
        with contextlib.closing(sqlite3.connect(tmp_path / job[1])) as connection, connection:
            connection.execute("UPDATE tables SET position = json_set(position, '$.stream', 'x')")

    def write_items(*ids: str) -> None:
        lines = [json.dumps({"Item": {"pk": {"S": each}, "sk": {"S": "s"}}}) for each in ids]
        (tmp_path / "x.json").write_text("\n".join(lines) + "\n")

    def begin(target: str, *more: str) -> None:
        """Begin a copy of 1,000 rows that is interrupted after a page."""
        write_items(*map(str, range(1000)))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(file_endpoint, "PAGE_ROWS", 100)
            patch.setattr(LineReader, "__next__", failing_after(500, LineReader.__next__))
            assert "cut" in tablegate(tmp_path, "copy", ITEMS, target, *job, *more, code=2)

    def change_file() -> None:
        begin(B)
        write_items("a", "b")

    def lose_rows() -> None:
        begin("file:t.jsonl")
        (tmp_path / "t.jsonl.partial").unlink()

    def repeat() -> None:
        write_items("a", "b", "a")
        assert "several rows have the key" in tablegate(tmp_path, "copy", ITEMS, B, *job, code=2)

    for prepare, ends, words, options in (
        (lose_position, (A, B), "Copy the table again", ["--follow", "--until-lag", "2s", "--rate", "1000"]),
        (change_file, (ITEMS, B), "has changed since reading began", []),
        (lose_rows, (ITEMS, "file:t.jsonl"), "was removed with the copied rows", []),
        (repeat, (ITEMS, B), "Remove them, or keep the last row", ["--duplicates", "last"]),
    ):
        prepare()
        error, command = advised(tmp_path, "copy", *job, "--resume")
        assert words in error
        assert [word for word in options if word not in command] == []
        told = tablegate(tmp_path, *command)
        assert "copied " in told
        if prepare is repeat:
            assert "copied 2 rows, " in told and "1 earlier row with the same key left out" in told
        else:
            assert tablegate(tmp_path, "verify", *ends, "--quiet").endswith("equal\n\n")
        for path in tmp_path.iterdir():
            path.unlink()


ITEMS = "file:x.json?keys=pk:S,sk:S"


def failing_after(number: int, call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a method that fails from a number of calls on."""
    left = [number]

    def fail_at_last(reader: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.EIO, "cut")
        return call(reader)

    return fail_at_last


def test_rows_at_the_target_are_never_replaced_unasked(fill: Fill, tmp_path: Path) -> None:
    fill(rows_of(10))
    fill(rows_of(5, size=3, start=8), file="b.sqlite")
    told = tablegate(tmp_path, "copy", A, B, code=2)
    assert "b.sqlite#things exists already with 5 rows. Use --if-exists append" in told
    assert told == tablegate(tmp_path, "copy", A, B, "--dry-run", code=2)
    assert not list(tmp_path.glob("*.job*"))
    assert "exists already with 5 rows, which stay" in tablegate(
        tmp_path, "copy", A, B, "--if-exists", "append"
    )
    assert tablegate(tmp_path, "signature", B).endswith("  13 rows\n")
    assert "exists already with 13 rows, which are deleted first" in tablegate(
        tmp_path, "copy", A, B, "--if-exists", "replace", "--dry-run"
    )
    tablegate(tmp_path, "copy", A, B, "--if-exists", "replace")
    assert tablegate(tmp_path, "verify", A, B).endswith("equal\n\n")


def test_repeated_keys_are_reported_by_lint_and_copy(tmp_path: Path) -> None:
    """`007` and `7.0` are one number."""
    lines = [json.dumps({"Item": {"id": {"N": number}}}) for number in ("007", "7.0", "8")]
    (tmp_path / "x.json").write_text("\n".join(lines) + "\n")
    source = "file:x.json?keys=id:N"
    told = tablegate(tmp_path, "lint", source, "tablegate", "--quiet", code=1)
    assert "key-repeated" in told and "1 rows" in told
    tablegate(tmp_path, "lint", source, "tablegate", "--duplicates", "last", "--quiet")
    assert '{"id":{"N":"7"}}' in tablegate(tmp_path, "copy", source, "tablegate:c.sqlite#t", code=2)
    [job] = tmp_path.glob("*.job")
    job.unlink()
    told = tablegate(
        tmp_path, "copy", source, "tablegate:c.sqlite#t", "--duplicates", "last", "--if-exists", "replace"
    )
    assert "copied 2 rows" in told and "1 earlier row with the same key left out" in told


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("copy", "--job", "x.job", "--resume", "--if-exists", "append"), "Omit it with --resume"),
        (("copy", A), "give SOURCE and TARGET"),
        (("copy", "--resume"), "--resume needs --job"),
        (("copy", A, B, "--until-lag", "soon"), "such as 500ms, 2s, 10m or 1h"),
        (("copy", A, B, "--until-lag", "2s"), "--until-lag needs --follow"),
        (("copy", A, B, "--rate", "fast"), "--rate fast"),
        (("copy", A, B, "--rate", "0.0009"), "from 0.001 to 1,000,000,000"),
        (("copy", A, B, "--rate", "1000000001"), "from 0.001 to 1,000,000,000"),
        (("copy", A, B, "--rate", "9" * 400), "from 0.001 to 1,000,000,000"),
        (("copy", A, B, "--job", ""), "the name of the file is empty"),
        (("copy", A, B, "--job", "/"), "is a directory"),
        (("copy", A, B, "--job", "j" * 256), "File name too long"),
        (("copy", A, B, "--rejects", ""), "the name of the file is empty"),
        (("copy", A, B, "--rejects", "/"), "is a directory"),
        (("copy", "--job", "x.job", "--resume", "--dry-run"), "Omit --resume"),
        (("copy", "file:\udcff.jsonl", B), "not text in UTF-8"),
        (("verify", A, B, "--float-tolerance", "nan"), "nan is not a finite number"),
        (("diff", A, B, "--float-tolerance", "1e999"), "1e999 is not a finite number"),
        (("copy", A, B), "no such database"),
        (("copy", "--job", "no.job", "--resume"), "the job file no.job does not exist"),
        (("copy", "nothing", B), "not an address"),
        (("copy", A, "tablegate:sqlite:///a.sqlite#things"), "are the same table"),
        (("copy", A, A, "--dry-run"), "are the same table"),
        (("copy", "nosql://x", B), "not a kind of address"),
        (("copy", "dynamodb://t?region=x&secret=hidden", B), "must not contain credentials"),
        (("verify", A, B, "--level", "some"), "is none of count, checksum"),
        (("lint", A, "dynamodb", "--accept", "nonsense"), "there is no rule 'nonsense'"),
        (
            ("lint", "dynamodb://abc?region=x&endpoint=http://127.0.0.1:65536", "dynamodb"),
            "a port from 1 to 65535",
        ),
        (("lint", "tablestore://i/t?endpoint=http://127.0.0.1:99999", "dynamodb"), "a port from 1 to 65535"),
        (("diff", A), "Missing argument"),
        (("signature", A), "no such database"),
    ],
)
def test_bad_input_is_status_2(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    told = tablegate(tmp_path, *arguments, code=2)
    assert words in told
    assert "hidden" not in told
    assert "Traceback" not in told
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", [("lint", "dynamodb"), ("signature",)])
def test_a_port_of_the_environment_that_is_none_is_status_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    for name, value in (
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:99999"),
        ("AWS_ACCESS_KEY_ID", "a"),
        ("AWS_SECRET_ACCESS_KEY", "b"),
    ):
        monkeypatch.setenv(name, value)
    name, *more = command
    [line] = tablegate(tmp_path, name, "dynamodb://abc?region=x", *more, code=2).splitlines()
    assert line.startswith("Error: dynamodb://abc?region=x: ")


@pytest.mark.extended
@pytest.mark.parametrize("command", [("copy", "-"), ("signature",), ("verify", A), ("lint", "azure-table")])
def test_a_refusal_of_a_service_is_one_line(
    fill: Fill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """DynamoDB has no table names of one letter."""
    fill(rows_of(1))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    name, *more = command
    with Server() as server:
        address = f"dynamodb://t?region=us-east-1&endpoint={server.url}"
        [line] = tablegate(tmp_path, name, address, *more, code=2).splitlines()
    assert line.startswith(f"Error: {address}: the service rejects the request: ValidationException: ")


def test_a_table_is_copied_to_standard_output_and_from_standard_input(fill: Fill, tmp_path: Path) -> None:
    rows = rows_of(500)
    fill(rows)
    done = _process(tmp_path, "copy", A, "-")
    assert (done.returncode, done.stdout.count(b"\n")) == (0, 1 + len(rows) + 1)  # with a header and an end
    assert b"copied 500 rows" in done.stderr
    done = _process(tmp_path, "copy", "-", B, typed=done.stdout)
    assert done.returncode == 0, done.stderr
    assert tablegate(tmp_path, "verify", A, B, "--strict").endswith("equal\n\n")
    assert "-: is created" in tablegate(tmp_path, "copy", A, "-", "--dry-run")
    assert not list(tmp_path.glob("*.job*"))


def test_standard_output_that_is_gone_leaves_no_job(fill: Fill, tmp_path: Path) -> None:
    """A copy to a pipe cannot be continued."""
    fill(rows_of(10))
    with open("/dev/full", "wb") as full:
        done = _process(tmp_path, "copy", A, "-", "--quiet", stdout=full)
    assert (done.returncode, done.stderr) == (2, b"Error: -: No space left on device\n")
    assert "cannot follow" in tablegate(tmp_path, "copy", A, "-", "--follow", code=2)
    assert not list(tmp_path.glob("*.job*"))


def _process(
    folder: Path, *arguments: str, typed: bytes = b"", stdout: Any = subprocess.PIPE
) -> subprocess.CompletedProcess[bytes]:
    """Start a command as a separate process."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TABLEGATE_")}
    return subprocess.run(
        [sys.executable, "-m", "tablegate", *arguments], cwd=folder, env={**clean, "PYTHONPATH": str(ROOT)},
        input=typed, stdout=stdout, stderr=subprocess.PIPE,
    )  # fmt: skip


def test_no_password_is_kept(fill: Fill, postgres: PostgresServer, tmp_path: Path) -> None:
    fill(rows_of(10))
    with postgres.new_database() as url:
        target = f"tablegate:{url.replace('://postgres:', '://postgres:hidden').replace('://postgres@', '://postgres:hidden@')}#things"
        assert "hidden" in target
        told = tablegate(tmp_path, "copy", A, target, "--job", "copy.job", "--follow", "--until-lag", "2s")
        assert "hidden" not in told
        assert b"hidden" not in b"".join(path.read_bytes() for path in tmp_path.glob("copy.job*"))
        told = tablegate(tmp_path, "copy", "--job", "copy.job", "--resume", code=2)
        assert "the job file stores no password. Give SOURCE and TARGET again" in told
        tablegate(tmp_path, "copy", A, target, "--job", "copy.job", "--resume")


def test_help_imports_no_code_of_transfers() -> None:
    code = (
        "import sys, tablegate.gateway.__main__;"
        "heavy = ('tablegate.transfer.', 'tablegate.adapters', 'sqlalchemy');"
        "print([name for name in sys.modules if name.startswith(heavy)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True
    )  # fmt: skip
    assert set(re.findall(r"'([\w.]+)'", done.stdout)) <= {
        "tablegate.transfer.commands", "tablegate.transfer.comparison_commands", "tablegate.transfer.errors",
        "tablegate.transfer.traffic", "tablegate.transfer.traffic.commands",
    }  # fmt: skip


@pytest.mark.parametrize("command", ["lint", "copy", "verify", "diff", "signature"])
def test_help_teaches(tmp_path: Path, command: str) -> None:
    told = tablegate(tmp_path, command, "--help")
    assert "Exit status: 0 " in told
    assert "dynamodb://TABLE?region=REGION" in told


@pytest.mark.extended
@pytest.mark.parametrize("command", [("lint", A, "dynamodb"), ("signature", A), ("verify", A, A)])
def test_reading_of_a_table_shows_progress(fill: Fill, tmp_path: Path, command: tuple[str, ...]) -> None:
    """On standard error: standard output has the results only."""
    fill(rows_of(500))
    done = _process(tmp_path, *command)
    assert done.returncode == 0
    lines = done.stderr.decode().splitlines()
    number = 500 * command.count(A)
    assert "about" in lines[0]
    assert f"{number:,} rows, " in lines[-1]
    assert "rows/s" not in done.stdout.decode()
    assert _process(tmp_path, *command, "--quiet").stderr == b""
