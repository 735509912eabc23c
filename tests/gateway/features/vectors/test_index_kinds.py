"""A server without the capability of an index serves all other tables (issue 47)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.engine.tables import indexing
from tablegate.gateway.features.history.backup_commands import ImportDefinition
from tablegate.gateway.features.vectors.vectors import Metric, VectorIndex
from tablegate.gateway.model.commands.row_commands import WriteGroup
from tablegate.gateway.model.commands.table_commands import (
    AlterTable,
    CreateTable,
    DropTable,
    FindTable,
    ListTables,
    NewIndex,
)
from tablegate.gateway.model.errors import DatabaseFailed, InvalidInput, NotInstalled
from tablegate.gateway.model.tables.indexes import IndexProjection
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.tables import descriptors, index_kinds
from tests.gateway.engine.conftest import PAIR, Client, column, make_table
from tests.support.clock import Clock

BY_VECTOR = VectorIndex(0, "by_vector", "v", 3, Metric.COSINE, IndexProjection.ALL)


@pytest.fixture
def special(engine: Engine) -> Client:
    """A table with an index of a kind that belongs to a capability."""
    [table] = engine.run([CreateTable("test", "", "special", PAIR, other_indexes=(BY_VECTOR,))])
    return Client(engine, table)


@pytest.fixture
def plain(engine: Engine) -> Client:
    return Client(engine, make_table(engine, "plain"))


@pytest.fixture
def core(
    engine: Engine, special: Client, plain: Client, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Engine]:
    """An engine on the same database without capabilities."""
    with monkeypatch.context() as context:
        context.setattr(index_kinds, "_kinds", {index_kinds.ORDERED.name: index_kinds.ORDERED})
        descriptors._index_of_text.cache_clear()
        yield Engine(Store(engine._store.database), now=clock)
    descriptors._index_of_text.cache_clear()


def test_a_table_with_an_index_of_an_absent_capability_cannot_be_found(core: Engine) -> None:
    missing, found, tables = core.run([FindTable("", "special"), FindTable("", "plain"), ListTables("")])
    assert isinstance(missing, NotInstalled) and missing.extra == "vector"
    assert found.name == "plain"
    assert [table.name for table in tables] == ["plain", "special"]


def test_only_writes_to_a_table_with_an_absent_kind_fail(
    core: Engine, special: Client, plain: Client
) -> None:
    """Background work, such as expiry, reads descriptors without FindTable."""
    writes = [special.put("a"), plain.put("b"), special.put("c"), plain.put("d")]
    outcomes = core.run([WriteGroup((write,)) for write in writes])
    assert [isinstance(outcome, DatabaseFailed) for outcome in outcomes] == [True, False, True, False]
    assert len(plain.rows()) == 2 and special.rows() == []


def test_a_table_with_an_index_of_an_absent_kind_is_not_dropped(core: Engine, special: Client) -> None:
    """Nothing could delete the entries."""
    [outcome] = core.run([DropTable(special.table)])
    assert isinstance(outcome, DatabaseFailed)


def test_backfills_of_other_tables_go_on(
    engine: Engine, core: Engine, special: Client, plain: Client
) -> None:
    index = NewIndex("by_n", KeySchema((column("n"),)), IndexProjection.KEYS)
    with core._store.write() as session:
        session.execute("UPDATE indexes SET filled = 0")
    core.run([AlterTable("test", plain.table, add_indexes=(index,))])
    while indexing.backfill(core._store, 100) is not None:
        pass
    with core._store.write() as session:
        assert session.query("SELECT name FROM indexes WHERE filled = 0") == [("by_vector",)]
        session.execute("UPDATE indexes SET filled = 1")


def test_a_definition_with_an_index_of_an_absent_capability_is_refused(engine: Engine, plain: Client) -> None:
    index = {"name": "i", "definition": {"absent": {}}, "properties": {}}
    document = {**descriptors.document_of(plain.table), "indexes": [index]}
    [outcome] = engine.run([ImportDefinition(document, "other")])
    assert isinstance(outcome, InvalidInput)
