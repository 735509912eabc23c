"""The hooks of tables: what a capability does when a table is copied, dropped or removed (issue 47, point 4)."""

from __future__ import annotations

import pytest

from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.features.history.backup_commands import ResetTables
from tablegate.gateway.model.commands.table_commands import DropTable
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.tables.catalog import TableHook
from tests.gateway.engine.conftest import make_table


class RecordingHook(TableHook):
    """Notes the calls. `retains`: tables are retained."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.retains = False

    def copied(self, session: Session, source: Table, copy: Table, now_ms: int) -> Table:
        self.calls.append(("copied", copy.namespace))
        return copy

    def detach(self, session: Session, table: Table, now_ms: int) -> None:
        self.calls.append(("detach", table.name))

    def retain(self, session: Session, table: Table, now_ms: int) -> bool:
        self.calls.append(("retain", table.name))
        return self.retains

    def remove_indexes(self, session: Session, table: Table) -> None:
        self.calls.append(("remove_indexes", table.name))

    def remove(self, session: Session, table: Table) -> None:
        self.calls.append(("remove", table.name))


@pytest.fixture
def hook(engine: Engine) -> RecordingHook:
    made = RecordingHook()
    engine._store.catalog.hooks.append(made)
    return made


def test_a_dropped_table_is_detached_and_removed(engine: Engine, hook: RecordingHook) -> None:
    engine.run([DropTable(make_table(engine, "a"))])
    assert hook.calls == [(name, "a") for name in ("detach", "retain", "remove_indexes", "remove")]


def test_a_retained_table_is_not_removed(engine: Engine, hook: RecordingHook) -> None:
    hook.retains = True
    table = make_table(engine, "a")
    engine.run([DropTable(table)])
    assert hook.calls == [("detach", "a"), ("retain", "a")]
    with engine._store.read() as session:
        assert engine._store.catalog.by_id(session, table.id) is not None


def test_a_table_that_is_emptied_is_removed_without_retention(engine: Engine, hook: RecordingHook) -> None:
    make_table(engine, "a")
    engine.run([ResetTables("", frozenset({"a"}), keeps_definitions=True)])
    assert hook.calls == [("detach", "a"), ("remove_indexes", "a"), ("remove", "a"), ("copied", "")]
