"""PostgreSQL keeps the plans of the statements of requests."""

from __future__ import annotations

from contextlib import closing

import pytest

from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.model.commands.row_commands import Get
from tablegate.gateway.model.commands.table_commands import NewIndex
from tablegate.gateway.model.expressions.ranges import KeyRange
from tablegate.gateway.model.tables.indexes import IndexProjection
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.values import text
from tablegate.gateway.store.opening import open_database
from tablegate.gateway.store.store import Store
from tests.gateway.engine.conftest import Client, column, make_table

# Executions that PostgreSQL always plans with the values of their parameters, before it compares the costs of plans.
_FIRST_EXECUTIONS = 5


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_statements_of_requests_are_not_planned_at_each_execution(database_url: str) -> None:
    index = NewIndex("by_color", KeySchema((column("color"),)), IndexProjection.ALL)
    with closing(open_database(database_url)) as database:
        engine = new_engine(Store(database))
        client = Client(engine, make_table(engine, indexes=(index,)))
        for number in range(2 * _FIRST_EXECUTIONS):
            client.write(client.put("p", number, color=text("red")))
            client.write(*(client.put(f"p{other}", number, color=text("blue")) for other in range(3)))
            client.write(client.remove("p2", number))
            keys = [client.key("p", number), client.key("p0", number)]
            engine.run([Get(client.table, keys[0].position)])
            engine.run([Get(client.table, key.position) for key in keys])
            client.page(KeyRange(client.key("p").position, client.key("p", 100).position))
        for begin in (database.read, database.write):
            with begin() as session:
                planned = session.query(
                    "SELECT statement FROM pg_prepared_statements WHERE custom_plans > ?",
                    (_FIRST_EXECUTIONS,),
                )
                assert planned == []
