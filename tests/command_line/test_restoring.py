"""tables keep-history, tables restore: point-in-time recovery from the command line, for tables of any dialect."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway.command_line.tables import tables
from gateway.engine.engine import Engine
from gateway.model.commands import FindTable
from gateway.security.credentials import SHARED_NAMESPACE
from gateway.store.migrating import migrate
from gateway.store.opening import open_database
from gateway.store.store import Store
from tests.gateway.engine.conftest import Client, do_background_work


def said(path: Path, *arguments: str) -> tuple[int, str]:
    command, *rest = arguments
    result = CliRunner().invoke(tables, [command, *rest, "--database", str(path)])
    return result.exit_code, result.output


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.sqlite"


def test_a_table_is_restored(path: Path) -> None:
    database = open_database(f"sqlite:///{path}")
    migrate(database)
    engine = Engine(Store(database))
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


def make_table_in_shared() -> object:
    from gateway.model.commands import CreateTable
    from tests.gateway.engine.conftest import PAIR

    return CreateTable("test", SHARED_NAMESPACE, "things", PAIR)
