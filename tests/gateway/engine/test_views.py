"""Each engine fills the indexes of all dialects, also of those that its settings leave out."""

from __future__ import annotations

from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.dialects.adapter import register_views
from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.model.commands.table_commands import FindTable, NewIndex
from tablegate.gateway.model.tables.indexes import IndexProjection
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.values import Kind, Value
from tablegate.gateway.store.store import Store
from tests.gateway.engine.conftest import Client, column, make_table


def test_a_server_of_one_dialect_fills_the_indexes_of_another(engine: Engine) -> None:
    """DynamoDB sees an Int32 of Azure as a number, so its index has the row."""
    by_number = NewIndex(
        "by_number", KeySchema((column("n", Kind.DECIMAL),)), IndexProjection.ALL, dialect="dynamodb"
    )
    make_table(engine, "things", indexes=(by_number,))
    azure = new_engine(Store(engine._store.database))
    register_views(azure)
    [table] = azure.run([FindTable("", "things")])
    client = Client(azure, table)
    client.write(client.put("a", n=Value(Kind.INT32, 5)))
    [row] = client.rows(index=table.indexes[0])
    assert row.latest["n"] == Value(Kind.INT32, 5)
