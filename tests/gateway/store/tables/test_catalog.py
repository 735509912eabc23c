"""Readings of the catalogue that must not become slower with the number of tables."""

from __future__ import annotations

from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.model.commands.table_commands import AlterTable
from tablegate.gateway.model.tables.tables import RESOURCE_POLICIES
from tablegate.gateway.store.sql.databases import Database
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.tables.catalog import WITH_POLICIES
from tests.gateway.engine.conftest import make_table


def test_resource_policies_are_read_without_a_scan_of_all_tables(database: Database) -> None:
    """Every server reads them every few seconds."""
    engine = new_engine(Store(database))
    table, _ = make_table(engine, "with"), make_table(engine, "without")
    policies = {"": {"policy": "{}"}}
    engine.run([AlterTable("test", table, properties={RESOURCE_POLICIES: policies})])
    with database.read() as session:
        assert engine._store.catalog.resource_policies(session) == {("", "with"): policies}
        if database.name == "sqlite":
            plans = session.query(f"EXPLAIN QUERY PLAN {WITH_POLICIES}")
        else:
            session.query("SELECT set_config('enable_seqscan', 'off', true)")
            plans = session.query(f"EXPLAIN {WITH_POLICIES}")
    assert any("tables_with_policies" in str(plan) for plan in plans), plans
