"""`tablegate streams`: what there is, splitting and merging, also under a running server."""

from __future__ import annotations

import contextlib
from pathlib import Path

from click.testing import CliRunner

from tablegate.gateway.__main__ import main
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.model.commands.stream_commands import FindStream, ListShards
from tablegate.gateway.model.commands.table_commands import AlterTable, CreateTable
from tablegate.gateway.model.tables.tables import Rules, StreamRule
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.values import Kind
from tablegate.gateway.store.migrating import migrate
from tablegate.gateway.wiring import connect, open_store


def tablegate(folder: Path, *arguments: str, code: int = 0) -> str:
    with contextlib.chdir(folder):
        done = CliRunner().invoke(main, arguments)
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.output


def test_shards_are_split_and_merged(tmp_path: Path) -> None:
    settings = load({"database": f"sqlite:///{tmp_path}/tablegate.sqlite"}, {})
    database = connect(settings)
    migrate(database)
    opened = open_store(settings, database)
    schema = KeySchema((KeyColumn("p", Kind.TEXT),))
    stream = StreamRule("1", True, "NEW_IMAGE", 86_400_000, 0)
    [table] = opened.engine.run([CreateTable("test", "shared", "t", schema, (), Rules(stream=stream))])
    opened.engine.run([CreateTable("test", "shared", "u", schema)])
    # `opened` represents a running server with a separate cache.
    assert "t has 3 open shards: 3, 4, 2" in tablegate(tmp_path, "streams", "reshard", "t", "--shards", "3")
    listed = tablegate(tmp_path, "streams", "list")
    assert "shared\tt\t1\tenabled" in listed
    assert "shard 0\thashes 0-255\tparents none\tclosed" in listed
    assert "shard 2\thashes 128-255\tparents 0\topen" in listed
    [found] = opened.engine.run([FindStream("shared", "t", "1")])
    [shards] = opened.engine.run([ListShards(found)])
    assert len(shards) == 4
    [stale] = opened.engine.run([AlterTable("test", table, properties={})])
    assert type(stale).__name__ == "StaleTable"
    assert "no enabled stream" in tablegate(tmp_path, "streams", "reshard", "u", "--shards", "3", code=1)
    assert "no table" in tablegate(tmp_path, "streams", "reshard", "nowhere", "--shards", "3", code=1)
    tablegate(tmp_path, "streams", "reshard", "t", "--shards", "0", code=2)
    tablegate(tmp_path, "streams", "reshard", "t", "--shards", "257", code=2)
    opened.close()
