"""tables keep-history, tables restore: point-in-time recovery from the command line, for tables of any dialect."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from tablegate.gateway.__main__ import main
from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.command_line.maintenance import sweep
from tablegate.gateway.command_line.tables import tables
from tablegate.gateway.model.commands.table_commands import FindTable
from tablegate.gateway.security.credentials import SHARED_NAMESPACE
from tablegate.gateway.store.migrating import migrate
from tablegate.gateway.store.opening import open_database
from tablegate.gateway.store.store import Store
from tests.gateway.engine.conftest import Client, do_background_work


def said(path: Path, *arguments: str) -> tuple[int, str]:
    command, *rest = arguments
    result = CliRunner().invoke(tables, [command, *rest, "--database", str(path)])
    return result.exit_code, result.stdout if result.exit_code == 0 else result.output


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.sqlite"


def test_a_table_is_restored(path: Path) -> None:
    database = open_database(f"sqlite:///{path}")
    migrate(database)
    engine = new_engine(Store(database))
    [made] = engine.run([make_table_in_shared()])
    client = Client(engine, made)
    client.write(client.put("a", 1))
    assert said(path, "restore", "things", "again")[0] == 1
    assert said(path, "keep-history", "things", "--days", "7") == (0, "things: 7 days\n")
    [client.table] = engine.run([FindTable(SHARED_NAMESPACE, "things")])
    client.write(client.remove("a", 1), client.put("b", 2))
    assert said(path, "restore", "things", "again") == (0, "again is being restored\n")
    code, text = said(path, "restore", "things", "other", "--at", "2001-01-01T00:00:00")
    assert code == 1
    assert "between" in text
    assert said(path, "restore", "things", "other", "--at", "yesterday")[0] == 2
    assert "already" in said(path, "restore", "things", "again")[1]
    assert "no table" in said(path, "restore", "nothing", "again")[1]
    do_background_work(engine)
    [again] = engine.run([FindTable(SHARED_NAMESPACE, "again")])
    assert [row.latest["p"][1] for row in Client(engine, again).rows()] == ["b"]
    assert said(path, "keep-history", "things", "--off") == (0, "things: no history is kept\n")
    assert said(path, "keep-history", "things")[0] == 2
    engine.close()


def test_backups(path: Path) -> None:
    """Made, listed, restored and deleted without a client of DynamoDB."""
    database = open_database(f"sqlite:///{path}")
    migrate(database)
    engine = new_engine(Store(database))
    [made] = engine.run([make_table_in_shared()])
    client = Client(engine, made)
    client.write(client.put("a", 1))

    def swept() -> str:
        result = CliRunner().invoke(sweep, ["--database", str(path)])
        assert result.exit_code == 0, result.output
        return said(path, "list-backups", "things")[1]

    code, text = said(path, "create-backup", "things", "--name", "first")
    assert code == 0
    name = text.removesuffix(" is being created\n")
    listed = said(path, "list-backups")[1]
    assert listed.startswith(f"{name}\tthings\t")
    assert listed.endswith("\tcreating\t1 rows\tfirst\n")
    restore = ("restore", "things", "again", "--backup", name)
    assert "being created or restored" in said(path, *restore)[1]
    assert "\tavailable\t" in swept()
    assert "no backup" in said(path, "restore", "other", "again", "--backup", name)[1]
    assert "no backup" in said(path, "delete-backup", "0-1")[1]
    assert said(path, *restore)[0] == 0
    swept()
    [again] = engine.run([FindTable(SHARED_NAMESPACE, "again")])
    assert [row.latest["p"][1] for row in Client(engine, again).rows()] == ["a"]
    assert said(path, "delete-backup", name) == (0, f"{name} is deleted\n")
    assert swept() == ""
    assert said(path, *restore, "--at", "2001-01-01")[0] == 2
    engine.close()


def make_table_in_shared() -> object:
    from tablegate.gateway.model.commands.table_commands import CreateTable
    from tests.gateway.engine.conftest import PAIR

    return CreateTable("test", SHARED_NAMESPACE, "things", PAIR)


def test_a_backup_names_the_secret_key_that_it_needs(tmp_path: Path) -> None:
    url, copy = f"sqlite:///{tmp_path}/a.sqlite", tmp_path / "copy.sqlite"
    runner = CliRunner()
    assert runner.invoke(main, ["migrate", "--database", url]).exit_code == 0
    assert runner.invoke(main, ["credentials", "add", "KEY", "--database", url]).exit_code == 0
    told = runner.invoke(main, ["backup", str(copy), "--database", url]).stderr
    on_copy = ["credentials", "list", "--database", f"sqlite:///{copy}"]
    refused = runner.invoke(main, on_copy)
    assert refused.exit_code == 1
    assert "DATABASE.key beside the database" in refused.stderr
    [source, target] = re.findall(r"\S+\.key", told)
    shutil.copy(source, target.rstrip("."))
    assert runner.invoke(main, on_copy).stdout == "aws\tKEY\n"
