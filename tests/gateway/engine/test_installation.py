"""Capabilities are installed once, when the first command, table or background work needs one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.engine.installation import Installation
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.commands.row_commands import Get
from tablegate.gateway.model.commands.table_commands import AlterTable, DropTable, FindTable
from tablegate.gateway.model.errors import DatabaseFailed
from tablegate.gateway.model.tables.indexes import Index, IndexProjection
from tablegate.gateway.model.tables.tables import HistoryRule, Rules, Table
from tablegate.gateway.store.tables import index_kinds
from tests.gateway.engine.conftest import PAIR, Client, decimal, make_table
from tests.support.waiting import PATIENCE_S


class Unregistered(Command[None]):
    """A command of a capability that is not installed."""


@dataclass(frozen=True)
class UnregisteredRead(Command[None]):
    """A read of such a capability."""

    table: Table
    only_reads = True


@pytest.fixture
def installed() -> list[Engine]:
    return []


@pytest.fixture
def client(engine: Engine, installed: list[Engine]) -> Client:
    """A plain table of an engine that notes each installation."""
    core = Engine(engine._store, install=installed.append)
    return Client(core, make_table(core, "plain"))


def test_a_plain_table_needs_no_capability(client: Client, installed: list[Engine]) -> None:
    client.write(client.put("a", n=decimal(1)))
    client.engine.run([Get(client.table, client.put("a").key.position), FindTable("", "plain")])
    assert client.rows() and installed == []


def read(client: Client) -> None:
    assert isinstance(client.engine.run([UnregisteredRead(client.table)])[0], DatabaseFailed)


def run(client: Client) -> None:
    with pytest.raises(KeyError):
        client.engine.run([Unregistered()])


def drop(client: Client) -> None:
    client.engine.run([DropTable(client.table)])


def work(client: Client) -> None:
    client.engine.background.next_batch()


def move_clock(client: Client) -> None:
    client.engine.background.catch_up()


def write_with_rule(client: Client) -> None:
    [client.table] = client.engine.run(
        [AlterTable("test", client.table, rules=Rules(history=HistoryRule(1)))]
    )
    client.write(client.put("a", n=decimal(1)))


@pytest.mark.parametrize("use", [read, run, drop, work, move_clock, write_with_rule])
def test_the_first_use_of_a_capability_installs_all(
    client: Client, installed: list[Engine], use: Callable[[Client], None]
) -> None:
    use(client)
    assert installed == [client.engine]
    client.engine.background.next_batch()
    assert len(installed) == 1


def test_an_index_of_an_unknown_kind_imports_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    import_others = threading.Event()
    monkeypatch.setattr(index_kinds, "_importers", [import_others.set])
    index = index_kinds.defined_index(
        index_kinds.ORDERED.definition_of(Index(0, "by_key", PAIR, IndexProjection.ALL))
    )
    assert index.kind == index_kinds.ORDERED.name and not import_others.is_set()
    assert isinstance(index_kinds.defined_index({"special": 1}), index_kinds.UnknownIndex)
    assert import_others.is_set()


def test_another_thread_waits_for_an_installation() -> None:
    began, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def install() -> None:
        installation.complete()  # as a hook that is read while hooks are added
        began.set()
        assert may_end.wait(PATIENCE_S)
        ended.set()

    installation = Installation(install)
    seen: list[bool] = []

    def wait() -> None:
        installation.complete()
        seen.append(ended.is_set())

    threads = [threading.Thread(target=installation.complete), threading.Thread(target=wait)]
    threads[0].start()
    assert began.wait(PATIENCE_S)
    threads[1].start()
    may_end.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert seen == [True]


def test_an_installation_that_fails_is_repeated() -> None:
    results: list[Exception | None] = [ImportError("no such module"), None]

    def install() -> None:
        result = results.pop(0)
        if result is not None:
            raise result

    installation = Installation(install)
    with pytest.raises(ImportError):
        installation.complete()
    installation.complete()
    installation.complete()
    assert results == []
