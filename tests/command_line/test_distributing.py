"""distribute and undistribute where there is nothing to distribute over. With Citus: tests/durability/test_distributed.py."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from tablegate.gateway.__main__ import main


@pytest.mark.parametrize("command", ["distribute", "undistribute"])
def test_a_database_without_other_nodes_is_refused(command: str, database_url: str) -> None:
    result = CliRunner().invoke(main, [command, "--database", database_url])
    assert result.exit_code == 1
    expected = "has no Citus" if database_url.startswith("postgresql") else "only a PostgreSQL database"
    assert expected in result.output
    assert "Traceback" not in result.output


def test_more_shards_than_slots_could_not_be_filled() -> None:
    result = CliRunner().invoke(main, ["distribute", "--shards", "257"])
    assert result.exit_code == 2
    assert "256" in result.output
