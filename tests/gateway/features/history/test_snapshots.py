"""Kills between the commands of a snapshot: it exists completely or not at all. A start from a file is repeated."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tablegate.gateway.control import archives, snapshots
from tablegate.gateway.control.documents import run
from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.features.history.backup_commands import CopyTables, ListNamespaces, ResetTables
from tablegate.gateway.model.commands.table_commands import CreateTable, ListTables
from tablegate.gateway.model.tables.tables import SNAPSHOTS, is_reserved_namespace
from tests.gateway.engine.conftest import PAIR


@contextlib.contextmanager
def killed_after(commands: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stop the block after this number of commands."""
    number = 0

    def killed(engine: Engine, command: Any) -> Any:
        nonlocal number
        number += 1
        if number > commands:
            raise KeyboardInterrupt
        return run(engine, command)

    with monkeypatch.context() as patched, contextlib.suppress(KeyboardInterrupt):
        for module in (snapshots, archives):
            patched.setattr(module, "run", killed)
        yield


@pytest.mark.parametrize("killed_at", range(12))
def test_a_start_that_was_killed_is_done_again(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed_at: int
) -> None:
    """The kill can follow any command. Nothing of the attempt remains."""
    run(engine, CreateTable("test", "shared", "things", PAIR))
    snapshots.save(engine, {"name": "one"}, 1)
    path = tmp_path / "one.tgz"
    path.write_bytes(snapshots.export(engine, "one").body)
    run(engine, ResetTables())
    snapshots.remove(engine, "one")
    with killed_after(killed_at, monkeypatch):
        snapshots.start_from(engine, path)
    for is_shared in (True, False):
        snapshots.remove_unfinished(engine, is_shared, 1)
    snapshots.start_from(engine, path)
    snapshots.start_from(engine, path)
    assert [each for each in run(engine, ListNamespaces()) if is_reserved_namespace(each)] == []
    assert len(run(engine, ListTables("shared"))) == 1
    assert snapshots.listed(engine) == {"snapshots": {}}


def tables_of(engine: Engine, name: str) -> list[tuple[str, str]]:
    """(namespace, table) of what a snapshot has."""
    prefix = f"{SNAPSHOTS}{name}/"
    spaces = run(engine, ListNamespaces(prefix))
    return [
        (space.removeprefix(prefix), table.name)
        for space in spaces
        for table in run(engine, ListTables(space))
    ]


def remove(engine: Engine, file: bytes) -> None:
    snapshots.remove(engine, "one")


def save(engine: Engine, file: bytes) -> None:
    snapshots.save(engine, {"name": "one"}, 2)


def put(engine: Engine, file: bytes) -> None:
    snapshots.put(engine, file, "one")


@pytest.mark.parametrize("killed_at", range(5))
@pytest.mark.parametrize("change", [save, put, remove])
def test_a_snapshot_is_in_the_index_and_has_its_tables_or_neither(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, change: Any, killed_at: int
) -> None:
    before, after = [("left", "a"), ("shared", "a")], [("right", "b"), ("shared", "b")]
    for space, name in before:
        run(engine, CreateTable("test", space, name, PAIR))
    snapshots.save(engine, {"name": "one"}, 1)
    run(engine, ResetTables())
    for space, name in after:
        run(engine, CreateTable("test", space, name, PAIR))
    snapshots.save(engine, {"name": "other"}, 2)
    file = snapshots.export(engine, "other").body
    assert tables_of(engine, "one") == before
    with killed_after(killed_at, monkeypatch):
        change(engine, file)
    index = snapshots.listed(engine)["snapshots"]
    expected = ({1: before, 2: after}[index["one"]["saved_at_ms"]]) if "one" in index else []
    assert tables_of(engine, "one") == expected
    assert ("one" in index) or change is remove
    snapshots.remove_unfinished(engine, True, 3 + (1 << 60))
    assert tables_of(engine, "one") == expected
    named = {each.split("/")[1] for each in run(engine, ListNamespaces(SNAPSHOTS))}
    assert named == index.keys()


@pytest.mark.parametrize("is_shared", [True, False])
def test_partial_snapshots_of_earlier_releases_are_removed(engine: Engine, is_shared: bool) -> None:
    """They copied the tables first and wrote the index then."""
    run(engine, CreateTable("test", "shared", "things", PAIR))
    snapshots.save(engine, {"name": "kept"}, 1)
    run(engine, CopyTables((("shared", f"{SNAPSHOTS}left/shared"),)))
    snapshots.remove_unfinished(engine, is_shared, 1)
    assert (tables_of(engine, "left"), tables_of(engine, "kept")) == ([], [("shared", "things")])


def test_a_snapshot_that_was_saved_meanwhile_is_not_removed(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(engine, CreateTable("test", "shared", "things", PAIR))
    snapshots.save(engine, {"name": "one"}, 1)
    monkeypatch.setattr(snapshots, "_index", lambda engine: {})
    snapshots.remove_unfinished(engine, False, 1)
    monkeypatch.undo()
    assert list(snapshots.listed(engine)["snapshots"]) == ["one"]
    assert tables_of(engine, "one") == [("shared", "things")]


def test_snapshots_that_are_saved_at_once_are_all_in_the_index(engine: Engine) -> None:
    run(engine, CreateTable("test", "shared", "things", PAIR))
    names = [f"s{number}" for number in range(6)]
    threads = [threading.Thread(target=snapshots.save, args=(engine, {"name": name}, 1)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(snapshots.listed(engine)["snapshots"]) == names
