"""The search page of the console shows what the key's grants permit it to read."""

from __future__ import annotations

import pytest

from tablegate.gateway.features.search.schema import FieldType, SearchField, SearchSchema
from tablegate.gateway.features.search.search_commands import CreateSearchIndex
from tablegate.gateway.model.commands.table_commands import FindTable
from tablegate.gateway.security.gate import run
from tests.gateway.console.test_console import keys_of
from tests.gateway.console.test_grants_of_visitors import ARN, of, server, visitor
from tests.gateway.security.test_permission_cases import allow
from tests.support.live_dynamodb import Live
from tests.support.running import Running

__all__ = ["server"]
# Authorization may not know the database (import rules 2 to 4 of docs/architecture.md).
pytestmark = pytest.mark.parametrize("shared_database_url", ["sqlite"], indirect=True, scope="module")


def test_a_search_of_an_index_is_a_read_of_all_rows(server: Running) -> None:
    gateway = server.app.extensions["tablegate"].gateway
    live = Live(server.url)
    live.create("p:S", name="searched")
    live.client.put_item(
        TableName="searched", Item={"p": {"S": "a"}, "open": {"S": "x"}, "private": {"S": "y"}}
    )
    [table] = run(gateway.engine, [FindTable("shared", "searched")], None)
    fields = tuple(SearchField(name, FieldType.KEYWORD, name) for name in ("open", "private"))
    run(gateway.engine, [CreateSearchIndex(table, "i", "dynamodb", SearchSchema(fields), {}, 9)], None)
    gateway.engine.background.catch_up()
    searched = f"{ARN}searched"
    condition = {"field0": "private", "comparison0": "=", "value0": "y"}
    page = visitor(server, allow("*", on=searched)).get("/search", **of("searched", **condition))
    assert keys_of(page) == ["a"]
    of_one_row = visitor(server, allow("Query", "GetItem", on=searched))
    page = of_one_row.get("/search", 403, **of("searched", **condition))
    assert "private" not in page
    narrow = {"ForAllValues:StringEquals": {"dynamodb:Attributes": ["p", "open"]}}
    restricted = visitor(server, allow("*", on=searched, **narrow))
    page = restricted.get("/search", 403, **of("searched", **condition))
    assert keys_of(page) == []
