"""distribute and undistribute where there is nothing to distribute over. With Citus: tests/durability/test_distributed.py."""

from __future__ import annotations

import psycopg
import pytest
import sqlalchemy
from click.testing import CliRunner

from tablegate.gateway.__main__ import main
from tablegate.gateway.store.postgresql.distributed import placement
from tablegate.migrations.schema import metadata
from tests.support.databases import PostgresServer


@pytest.mark.parametrize("command", ["distribute", "undistribute", "restore-point here"])
def test_a_database_without_other_nodes_is_refused(command: str, database_url: str) -> None:
    result = CliRunner().invoke(main, [*command.split(), "--database", database_url])
    assert result.exit_code == 1
    expected = "has no Citus" if database_url.startswith("postgresql") else "only a PostgreSQL database"
    assert expected in result.output
    assert "Traceback" not in result.output


def test_more_shards_than_slots_could_not_be_filled() -> None:
    result = CliRunner().invoke(main, ["distribute", "--shards", "257"])
    assert result.exit_code == 2
    assert "256" in result.output


# The functions and tables of Citus that a distribution calls. They only note what is asked of them.
CITUS = """
    CREATE TABLE pg_dist_local_group AS SELECT 0 AS groupid;
    CREATE TABLE pg_dist_node AS SELECT 0 AS groupid, true AS shouldhaveshards, true AS isactive;
    CREATE TABLE pg_dist_partition (logicalrelid regclass);
    CREATE FUNCTION run_command_on_all_nodes(text) RETURNS void LANGUAGE sql AS '';
    CREATE FUNCTION create_reference_table(text) RETURNS void LANGUAGE sql
        AS 'INSERT INTO pg_dist_partition VALUES ($1::regclass)';
    CREATE FUNCTION create_distributed_table(text, text, shard_count int = 0, colocate_with text = '') RETURNS void
        LANGUAGE sql AS 'INSERT INTO pg_dist_partition VALUES ($1::regclass)';
    CREATE FUNCTION undistribute_table(text) RETURNS void LANGUAGE sql
        AS 'DELETE FROM pg_dist_partition WHERE logicalrelid = $1::regclass';
"""


def test_each_table_is_named_before_it_moves(postgres: PostgresServer) -> None:
    url = postgres.empty_database()
    engine = sqlalchemy.create_engine(url)
    metadata.create_all(engine)
    engine.dispose()
    number = len(metadata.sorted_tables)
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(CITUS)
        steps = placement.distribute(connection, 4)
        assert next(steps).startswith(f"1 of {number}: ")
        assert connection.execute("SELECT count(*) FROM pg_dist_partition").fetchone() == (0,)
        lines = [*steps]
        [of_rows] = [line for line in lines if ": rows (" in line]
        assert of_rows.endswith((" bytes), by slot", " kB), by slot"))
        assert lines[-1].startswith(f"{number} of {number}: ")
        assert [*placement.distribute(connection, 4)] == []
        lines = [*placement.undistribute(connection)]
        assert len(lines) == number
        assert f"{number} of {number}: " in lines[-1]
        assert [*placement.undistribute(connection)] == []
