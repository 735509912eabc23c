"""The cells of the matrix without a request: background jobs on behalf of a caller, and the command line.

Kinds of jobs come from the engine's workers, commands from the command line itself, so a new one without a cell fails.
The operator who runs commands has all rights and no quotas.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tablegate.gateway.__main__ import main
from tablegate.gateway.command_line.database import COMMANDS_WITH_OWN_RECORDS, READING_COMMANDS
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.features.history import backup_commands
from tablegate.gateway.features.jobs import job_commands
from tablegate.gateway.model.authorization.quotas import Quota
from tablegate.gateway.model.commands import row_commands, stream_commands, table_commands
from tablegate.gateway.security.gate import run_one
from tablegate.gateway.store.store import Store
from tablegate.gateway.wiring import connect
from tests.conftest import new_database
from tests.entry_matrix.servers import WORKER, Matrix, contents_of
from tests.gateway.observability.test_audit_of_entries import (
    BESIDE,
    CHANGES,
    NOT_RUN_HERE,
    commands,
    make_music,
)
from tests.gateway.security.named_requests import ACCOUNT, SCHEMA, furnish
from tests.support.job_runners import runner_of
from tests.support.soak import minutes_long
from tests.support.strict import FULL, dynamodb_request

# Jobs

TABLE = "orders"
_SOURCE = {"S3BucketSource": {"S3Bucket": "bucket", "S3KeyPrefix": "in/"}, "InputFormat": "DYNAMODB_JSON"}
_BULK = {
    "InputS3Configuration": {"S3Bucket": "bucket", "S3KeyPrefix": "in/", "InputFormat": "DYNAMODB_JSON"},
    "OutputS3Configuration": {"S3Bucket": "bucket", "S3KeyPrefix": "out/", "OutputType": ["ERROR"]},
}
JOBS: dict[str, tuple[str, dict[str, Any]]] = {
    "dynamodb-export": ("ExportTableToPointInTime", {"TableArn": ACCOUNT + TABLE, "S3Bucket": "bucket"}),
    "dynamodb-import": (
        "ImportTable",
        {"TableCreationParameters": {"TableName": "made", **SCHEMA}, **_SOURCE},
    ),
    "dynamodb-bulk-put": ("StartBulkPutItems", {"TableName": TABLE, **_BULK}),
}
"""Kind -> the operation that begins such a job, and its request."""
FULL_QUOTA = "LimitExceededException"
_STORES_ROWS = {
    "granted": "COMPLETED",
    "over quota": FULL_QUOTA,
    "group over quota": FULL_QUOTA,
    "cancelled": "Cancelled",
}
ENDS = {
    "dynamodb-export": {**_STORES_ROWS, "over quota": "COMPLETED", "group over quota": "COMPLETED"},
    "dynamodb-import": _STORES_ROWS,
    "dynamodb-bulk-put": _STORES_ROWS,
}
"""Kind -> what the line of its end says by what happens after it began."""


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=[minutes_long, pytest.mark.soak])])
def matrix(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Matrix]:
    with new_database(request, tmp_path) as url:
        made = Matrix(url, tmp_path)
        made.gateway.quotas.replace({})
        with made.serving():
            yield made


def test_every_kind_of_job_has_cells(matrix: Matrix) -> None:
    assert set(runner_of(matrix.opened.engine)._workers) == JOBS.keys() == ENDS.keys()


@pytest.mark.parametrize("happening", _STORES_ROWS)
@pytest.mark.parametrize("kind", JOBS)
def test_jobs_on_behalf_of_a_caller(matrix: Matrix, kind: str, happening: str, tmp_path: Path) -> None:
    furnish(matrix.strict, TABLE)
    _work(matrix)
    _put_objects(tmp_path)
    matrix.recorder.drained()
    operation, given = JOBS[kind]
    caller = WORKER.grantee if happening == "group over quota" else FULL
    proof = matrix.derived(WORKER).keys[:3] if caller != FULL else (FULL, "secret", "")
    request = dynamodb_request(proof[0], operation, given, *proof[1:])
    assert matrix.ask("wsgi", request)[0].status == 200
    match happening:
        case "over quota":
            matrix.gateway.quotas.replace({f"aws/{FULL}": Quota(bytes=1)})
        case "group over quota":
            matrix.gateway.quotas.replace({"group/small": Quota(bytes=1)})
        case "cancelled":
            [job] = run_one(matrix.opened.engine, job_commands.ListUnfinishedJobs(), None)
            run_one(matrix.opened.engine, job_commands.CancelJob(job), None)
    _work(matrix)
    found = [
        (
            line["event"],
            line["who"],
            line["from"],
            line["dialect"],
            line["operation"],
            line["tables"],
            line["result"],
        )
        for line in matrix.recorder.drained()
    ]
    table = "made" if kind == "dynamodb-import" else TABLE
    ended = ENDS[kind][happening]
    assert found == [("definition", caller, "background", "dynamodb", kind, [table], ended)]
    if ended == FULL_QUOTA:
        assert matrix.strict.ok("Scan", TableName=table)["Count"] == (0 if table == "made" else 1)


def _work(matrix: Matrix) -> None:
    engine = matrix.opened.engine
    while engine.background.next_batch() or engine.background.batch_of("jobs"):
        pass


def _put_objects(folder: Path) -> None:
    place = folder / "bucket" / "in"
    place.mkdir()
    item = {"pk": {"S": "imported"}, "sk": {"S": "imported"}}
    (place / "1.json").write_text(json.dumps({"Item": item}) + "\n")


# The command line

LOOKING = {
    table_commands.FindTable,
    table_commands.ListTables,
    backup_commands.ListNamespaces,
    backup_commands.ListBackups,
    job_commands.ListJobs,
    job_commands.ListUnfinishedJobs,
    stream_commands.ListStreams,
    stream_commands.ListShards,
    table_commands.CountRows,
    backup_commands.DescribeTables,
    row_commands.Read,
    row_commands.Get,
    table_commands.GetProperties,
    stream_commands.ListFollowers,
}
"""Commands of the engine that change nothing."""
READS: dict[str, list[str]] = {
    "backup": ["copy.sqlite"], "doctor": [], "tables": [], "tables list-backups": [], "streams list": [], "jobs list": [],
    "credentials list": [], "grants list": [], "quotas list": [],
}  # fmt: skip
KEPT: dict[str, tuple[list[str], str]] = {
    "credentials add": (["KEY"], "credential added"),
    "credentials bind": (["KEY", "--place", "123456789012"], "credential changed"),
    "credentials rotate": (["KEY"], "credential changed"),
    "grants add": (["KEY", "--read", "music"], "grant added"),
    "grants remove": ([], "grant removed"),  # which one is known by then
    "quotas set": (["KEY", "--requests", "5"], "quota set"),
    "quotas remove": (["KEY"], "quota removed"),
    "credentials reseal": (["--new-secret-key-file", "new.key"], "credentials resealed"),
    "credentials remove": (["KEY"], "credential removed"),
}
"""Commands that put on record themselves what they change -> words, event."""
CONFIRMS = {"migrate", "tables recount", "vacuum"}
"""Commands that leave a database that is in order as it is."""


class CommandLine:
    """A database with the table `music`, and commands on it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.url = f"sqlite:///{folder}/tablegate.sqlite"
        self._path = folder / "audit.jsonl"
        self._path.touch()
        self.ran: set[type] = set()
        plain = Engine.run

        def run(engine: Engine, given: Any, *more: Any, **named: Any) -> Any:
            self.ran |= {type(command) for command in given}
            return plain(engine, given, *more, **named)

        monkeypatch.chdir(folder)
        assert CliRunner().invoke(main, ["migrate", "--database", self.url]).exit_code == 0
        make_music(self.url)
        monkeypatch.setattr(Engine, "run", run)

    def run(
        self, command: str, words: list[str], secret_key: str
    ) -> tuple[int, str, list[dict[str, Any]], set[type], bool]:
        """(exit code, output, lines of the audit, commands of the engine, True if the database was changed)."""
        before, known = self._contents(), len(self._lines())
        self.ran.clear()
        flags = ["--database", self.url, "--audit", str(self._path), "--secret-key", secret_key]
        done = CliRunner().invoke(main, [*command.split(), *words, *flags])
        return done.exit_code, done.stdout, self._lines()[known:], {*self.ran}, self._contents() != before

    def _lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._path.read_text().splitlines()]

    def _contents(self) -> str:
        database = connect(load({"database": self.url}, {}))
        try:
            return contents_of(Store(database))
        finally:
            database.close()


KEY, NEW_KEY = "a secret key that is long", "another secret key that is long"


@pytest.fixture
def command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    (tmp_path / "new.key").write_text(NEW_KEY)
    return CommandLine(tmp_path, monkeypatch)


def test_every_command_has_a_cell() -> None:
    assert READS.keys() == READING_COMMANDS
    assert KEPT.keys() == COMMANDS_WITH_OWN_RECORDS
    assert set(commands(main)) == READS.keys() | KEPT.keys() | CHANGES.keys() | BESIDE | NOT_RUN_HERE


def test_commands_that_read_leave_no_line(command_line: CommandLine) -> None:
    for command, words in READS.items():
        code, output, lines, ran, is_changed = command_line.run(command, words, KEY)
        assert (code, lines, ran - LOOKING, is_changed) == (0, [], set(), False), (command, output)


def test_commands_that_change_something_leave_one_line(command_line: CommandLine) -> None:
    for command, given in CHANGES.items():
        words = given
        if command == "tables delete-backup":
            command_line.run("sweep", [], KEY)
            words = [command_line.run("tables list-backups", [], KEY)[1].split("\t")[0]]
        code, output, lines, _, is_changed = command_line.run(command, words, KEY)
        assert code == 0, (command, output)
        told = [
            (line["event"], line["from"], line["dialect"], line["operation"], line["result"])
            for line in lines
        ]
        assert told == [("definition", "command line", "gateway", command, "done")]
        assert lines[0]["tables"] == [word for word in given if word in ("music", "again")]
        assert is_changed or command in CONFIRMS


def test_commands_with_lines_of_their_own(command_line: CommandLine) -> None:
    key, grant_id = KEY, ""
    for command, (given, event) in KEPT.items():
        words = [grant_id] if command == "grants remove" else given
        code, output, lines, _, is_changed = command_line.run(command, words, key)
        grant_id = lines[0].get("id", grant_id)
        key = NEW_KEY if command == "credentials reseal" else key
        assert (code, is_changed) == (0, True), (command, output)
        assert [(line["event"], line["from"]) for line in lines] == [(event, "command line")]


@pytest.mark.parametrize(
    "command",
    [
        ["tables", "keep-history", "absent", "--days", "3"], ["tables", "create-backup", "absent"],
        ["tables", "restore", "absent", "again"], ["tables", "restore", "music", "music"],
        ["tables", "delete-backup", "absent"], ["streams", "reshard", "absent", "--shards", "2"],
        ["jobs", "cancel", "1"], ["credentials", "remove", "absent"], ["credentials", "rotate", "absent"],
        ["credentials", "bind", "absent", "--place", "123456789012"], ["grants", "add", "absent", "--read", "music"],
        ["grants", "remove", "9"], ["quotas", "remove", "absent"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_commands_that_fail_leave_no_line(command_line: CommandLine, command: list[str]) -> None:
    code, output, lines, _, is_changed = command_line.run(" ".join(command), [], KEY)
    assert (code != 0, lines, is_changed) == (True, [], False), output
