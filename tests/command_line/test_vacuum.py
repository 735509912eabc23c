"""`tablegate vacuum` gives the free pages of a SQLite file back to the disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tablegate.gateway.__main__ import main
from tests.support.raw_client import RawClient
from tests.support.running import Begin, processes

pytestmark = pytest.mark.extended


def vacuum(url: str) -> Result:
    return CliRunner().invoke(main, ["vacuum", "--database", url])


def test_the_file_becomes_shorter_and_keeps_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "tables.sqlite"
    with processes(tmp_path, "--dialects", "dynamodb") as begin:
        _fill_and_drop(begin, f"sqlite:///{path}")
        full = path.stat().st_size
        result = vacuum(f"sqlite:///{path}")
        assert result.exit_code == 0, result.output
        assert path.stat().st_size < full / 2
        assert f"{path.stat().st_size:,} bytes now" in result.stdout
        server = begin(f"sqlite:///{path}")
        with RawClient(server.url) as client:
            assert [item["p"]["S"] for item in client.scan("kept")] == ["a"]


def test_a_server_that_runs_keeps_working(tmp_path: Path) -> None:
    path = tmp_path / "tables.sqlite"
    with processes(tmp_path, "--dialects", "dynamodb") as begin:
        server = begin(f"sqlite:///{path}")
        with RawClient(server.url) as client:
            client.create_table("kept")
            client.call("PutItem", TableName="kept", Item={"p": {"S": "a"}})
            assert vacuum(f"sqlite:///{path}").exit_code == 0
            client.call("PutItem", TableName="kept", Item={"p": {"S": "b"}})
            assert {item["p"]["S"] for item in client.scan("kept")} == {"a", "b"}


def test_a_missing_file_is_not_created(tmp_path: Path) -> None:
    result = vacuum(f"sqlite:///{tmp_path}/tables.sqlite")
    assert result.exit_code == 1
    assert "There is no tablegate database" in result.stderr
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_postgresql_has_tools_of_its_own(database_url: str) -> None:
    result = vacuum(database_url)
    assert result.exit_code == 1
    assert "VACUUM FULL" in result.stderr


def _fill_and_drop(begin: Begin, url: str) -> None:
    server = begin(url)
    with RawClient(server.url) as client:
        for table in ("kept", "gone"):
            client.create_table(table)
        client.call("PutItem", TableName="kept", Item={"p": {"S": "a"}})
        for number in range(20):
            client.call(
                "PutItem", TableName="gone", Item={"p": {"S": f"{number}"}, "x": {"S": "x" * 300_000}}
            )
        client.call("DeleteTable", TableName="gone")
    server.terminate()
    assert CliRunner().invoke(main, ["sweep", "--database", url]).exit_code == 0
