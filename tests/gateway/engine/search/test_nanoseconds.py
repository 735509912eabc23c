"""An index from the time when dates had milliseconds goes on with nanoseconds."""

from __future__ import annotations

import importlib

import pytest
from alembic.migration import MigrationContext
from alembic.operations import Operations

from tablegate.gateway.model.commands.search_commands import SearchRows
from tablegate.gateway.model.search import documents, queries
from tablegate.gateway.model.search.dates import NS_PER_MS
from tablegate.gateway.model.search.schema import FieldType
from tablegate.gateway.store.sql.databases import Database
from tests.gateway.engine.conftest import Client, do_background_work
from tests.gateway.engine.search.test_random_queries import FIELDS, create_index, put

DATE = FIELDS["w"]
MOMENTS = [f"2024-01-01 08:00:00.00000000{digit}" for digit in range(3)]


def test_an_index_is_filled_again(
    things: Client, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = create_index(things.engine, things.table)
    [things.table] = [things.engine.cached_table("", things.table.name) or things.table]

    def found(lower: str, upper: str | None = None) -> list[str]:
        bounds = [None if each is None else documents.query_value_of(DATE, each) for each in (lower, upper)]
        query = queries.Range(DATE, *bounds, includes_lower=True, includes_upper=True)
        [page] = things.engine.run([SearchRows(things.table, index, query)])
        return [row.latest["p"].data for row in page.rows]

    convert = documents._CONVERTERS[FieldType.DATE]
    with monkeypatch.context() as patch:
        in_ms = {
            **documents._CONVERTERS,
            FieldType.DATE: lambda field, data: convert(field, data) // NS_PER_MS,
        }
        patch.setattr(documents, "_CONVERTERS", in_ms)
        for number, moment in enumerate(MOMENTS[:2]):
            put(things, f"{number}", {"w": moment})
        do_background_work(things.engine)
        assert found(MOMENTS[0]) == ["0", "1"]
    assert found(MOMENTS[0]) == []
    with database.engine.begin() as connection, Operations.context(MigrationContext.configure(connection)):
        importlib.import_module("tablegate.migrations.versions.0020_search_nanoseconds").upgrade()
    put(things, "2", {"w": MOMENTS[2]})
    do_background_work(things.engine)
    assert found(MOMENTS[0]) == ["0", "1", "2"]
    assert found(MOMENTS[1], MOMENTS[1]) == ["1"]
    assert found("1970-01-01 00:00:00.000000000", "1980-01-01 00:00:00.000000000") == []
