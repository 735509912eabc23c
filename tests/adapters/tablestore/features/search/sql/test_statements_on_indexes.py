"""Grants of SQL: every table and index that a statement reads is authorized, in joins, subqueries, mappings of search
indexes, and EXPLAIN. An index is selected only if the caller may read it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tablegate.adapters.tablestore.operation_table import OPERATIONS
from tablegate.adapters.tablestore.wire.protocol import search_pb2
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tests.adapters.tablestore.client import no_throughput, row
from tests.adapters.tablestore.search_messages import field, schema
from tests.support.sql_client import Answer
from tests.support.strict import FULL, LIMITED, Strict, Told, strict

NO_PERMISSION = "OTSNoPermissionAccess"
COLUMNS = ("pk", "sk", "open", "secret")


@pytest.fixture(scope="module")
def server(shared_database_url: str) -> Iterator[Strict]:
    """Tables `u` (search index mapped as `found`), `v` and `denied`, each with a secondary index by `open`."""
    with strict(shared_database_url) as made:
        for table, index in (("u", "by_open"), ("v", "v_open"), ("denied", "denied_open")):
            create(made, table, index)
            for name in ("a", "b"):
                put = row({"pk": name, "sk": "1"}, {"open": f"o{name}", "secret": f"s{name}"})
                condition = messages.Condition(row_existence=messages.IGNORE)
                ask(made, FULL, "PutRow", table_name=table, row=put, condition=condition)
        fields = schema(
            *((name, search_pb2.KEYWORD) for name in ("pk", "sk", "open")), ("secret", search_pb2.TEXT),
            field("word", search_pb2.KEYWORD, is_virtual_field=True, source_field_names=["secret"]),
        )  # fmt: skip
        ask(made, FULL, "CreateSearchIndex", table_name="u", index_name="searched", schema=fields)
        made.gateway.engine.background.catch_up()
        columns = ", ".join(f"{name} mediumtext" for name in (*COLUMNS, "word"))
        told = ask(
            made, FULL, "SQLQuery", query=f"create table found ({columns}) engine='searchindex', engine_attribute="
            """'{"index_name": "searched", "table_name": "u"}'""",
        )  # fmt: skip
        assert told.status == 200
        yield made


def create(server: Strict, table: str, index: str) -> None:
    columns = [messages.PrimaryKeySchema(name=name, type=messages.STRING) for name in ("pk", "sk")]
    defined = [
        messages.DefinedColumnSchema(name=name, type=messages.DCT_STRING) for name in ("open", "secret")
    ]
    index_meta = messages.IndexMeta(
        name=index, primary_key=["open"], index_update_mode=messages.IUM_ASYNC_INDEX, index_type=messages.IT_GLOBAL_INDEX
    )  # fmt: skip
    told = ask(
        server, FULL, "CreateTable", table_meta=messages.TableMeta(table_name=table, primary_key=columns, defined_column=defined),
        reserved_throughput=no_throughput(), table_options=messages.TableOptions(time_to_live=-1, max_versions=1),
        index_metas=[index_meta],
    )  # fmt: skip
    assert told.status == 200


def ask(server: Strict, caller: str, operation: str, **members: Any) -> Told:
    return server.tablestore(caller, operation, OPERATIONS[operation].request(**members))


def outcome(server: Strict, query: str) -> Any:
    """The first column of a statement of the limited caller, or the code of its error."""
    told = ask(server, LIMITED, "SQLQuery", query=query)
    return [each[0] for each in Answer(told.body).rows] if told.status == 200 else told.code


def ram(table: str, action: str = "SQL_Select") -> dict[str, Any]:
    resource = f"acs:ots:*:*:instance/inst/table/{table}"
    return {"Version": "1", "Statement": {"Effect": "Allow", "Action": f"ots:{action}", "Resource": resource}}


ALL_OF_U = {"scan": ["u"], "query": ["u"]}
COLUMNS_OF_U = {"scan": ["u"], "query": ["u"], "attributes": ["pk", "sk", "open"]}
KEYS_OF_U = {"query": ["u"], "keys": ["a"]}


@pytest.mark.parametrize(
    ("grant", "query", "expected"),
    [
        (ALL_OF_U, "select pk from found", ["a", "b"]),
        (ALL_OF_U, "select pk from u where secret like 's%'", ["a", "b"]),
        (ALL_OF_U, "select pk from found where word = 'sa'", ["a"]),
        (ALL_OF_U, "select pk from by_open where open = 'oa'", ["a"]),
        (ALL_OF_U, "explain select pk from found", ["u"]),
        ({"query": ["u"]}, "select pk from found where pk = 'a'", NO_PERMISSION),
        ({"query": ["u"]}, "select pk from u where pk = 'a'", ["a"]),
        ({"query": ["u"]}, "select pk, open from by_open where open = 'oa'", ["a"]),
        ({"query": ["denied"]}, "select pk from by_open where open = 'oa'", NO_PERMISSION),
        (ram("u"), "select pk from found", ["a", "b"]),
        (ram("u"), "select pk from by_open where open = 'oa'", NO_PERMISSION),
        (ram("by_open"), "select pk from by_open where open = 'oa'", ["a"]),
        (ram("by_open"), "select pk from u where open = 'oa'", NO_PERMISSION),
        (ram("by_open"), "select pk from found", NO_PERMISSION),
        (ram("u", "Search"), "select pk from found", NO_PERMISSION),
        (COLUMNS_OF_U, "select open from found where sk = '1'", ["oa", "ob"]),
        (COLUMNS_OF_U, "select pk from u where open = 'oa'", ["a"]),
        (COLUMNS_OF_U, "select count(*) from found", [2]),
        (COLUMNS_OF_U, "explain select pk from u where open = 'oa'", ["u"]),
        (KEYS_OF_U, "select secret from u where pk = 'a'", ["sa"]),
        (KEYS_OF_U, "explain select secret from u where pk = 'a'", ["u"]),
    ],
)  # fmt: skip
def test_accesses_to_indexes(server: Strict, grant: dict[str, Any], query: str, expected: Any) -> None:
    server.grant(LIMITED, grant)
    assert outcome(server, query) == expected


def test_an_index_that_the_caller_may_not_read_is_not_selected(server: Strict) -> None:
    for grant, read in (({"scan": ["v"], "query": ["v"]}, "v_open"), (ram("v"), "v")):
        server.grant(LIMITED, grant)
        told = ask(server, LIMITED, "SQLQuery", query="select pk from v where open = 'ob'")
        assert [each.table_name for each in told.body.consumes] == [read]
        assert Answer(told.body).rows == [("b",)]


@pytest.mark.parametrize("prefix", ["", "explain "])
@pytest.mark.parametrize(
    ("grant", "queries"),
    [
        (ALL_OF_U, [
            "select pk from denied",
            "select u.pk from u join denied d on u.pk = d.pk",
            "select u.pk from u left join denied d on u.pk = d.pk",
            "select u.pk from denied d left join u on u.pk = d.pk",
            "select pk from u where pk in (select pk from denied)",
            "select pk from u where exists (select 1 from denied)",
            "select (select count(*) from denied) from u",
            "select pk from (select pk from denied) x",
            "select pk from u having pk > (select min(pk) from denied)",
            "select pk from u order by (select min(pk) from denied)",
            "select u.pk from u join u v on u.pk in (select pk from denied)",
            "select pk from u where exists (select 1 from denied d where d.pk = u.pk)",
            # Their key ranges are empty.
            "select pk from denied where pk > 'b' and pk < 'a'", "select * from denied where pk = 'a' and pk = 'b'",
            "select count(*) from denied where pk = 'a' and pk = 'b'", "select pk from denied limit 0",
            "select pk from denied where pk < ''", "select pk from denied where pk > 'a' and pk < 'a'",
            "select pk from denied where pk = 'a' and sk > '1' and sk < '1'", "select pk from denied where pk = 1",
        ]),
        (COLUMNS_OF_U, [
            "select secret from u", "select * from u", "select * from found", "select secret from found",
            "select pk from found where secret = 'sa'", "select pk from found where text_match(secret, 'sa')",
            "select pk from u where text_match_phrase(secret, 'sa')", "select pk from found order by secret",
            "select count(secret) from found", "select max(x) from (select secret x from u) y",
            "select pk from u where pk in (select pk from found where secret = 'sa')",
            "select a.pk from found a join found b on a.pk = b.pk and b.secret = 'sa'",
            "select pk from u where exists (select secret from u)", "select open from by_open",
            "select pk from u where exists (select 1 from found f where f.pk = u.secret)",
            "select (select u.secret) from u", "select pk from found f where f.pk = (select max(pk) from u where secret = f.pk)",
            "select secret->>'$' from u", "select pk from found where word = 'sa'", "select count(word) from found",
            "select pk from found order by upper(word)", "select count(*) from found group by word",
        ]),
        (KEYS_OF_U, [
            "select pk from u", "select pk from u where pk = 'b'", "select pk from found", "select pk from found where pk = 'a'",
            "select pk from u where pk = 'a' and exists (select 1 from u where pk = 'b')",
            "select pk from u where pk = 'a' and exists (select 1 from u v where v.sk = u.sk)",
            "select a.pk from u a join u b on a.sk = b.sk where a.pk = 'a'", "select open from by_open where open = 'oa'",
        ]),
    ],
    ids=["tables", "columns", "keys"],
)  # fmt: skip
def test_statements_that_read_more_than_is_granted(
    server: Strict, grant: dict[str, Any], queries: list[str], prefix: str
) -> None:
    server.grant(LIMITED, grant)
    assert {query: outcome(server, prefix + query) for query in queries} == dict.fromkeys(
        queries, NO_PERMISSION
    )


CREATE_OTHER = (
    "create table other (pk text) engine='searchindex'"
    """ engine_attribute='{"index_name": "searched", "table_name": "u"}'"""
)


@pytest.mark.parametrize(
    ("table", "statements"),
    [("u", ["drop mapping table found", "alter table found drop column open", CREATE_OTHER]),
     ("v", ["desc found", "show index from found", "desc by_open"])],
    ids=["changes", "descriptions"],
)  # fmt: skip
def test_statements_on_mappings_need_their_permission(
    server: Strict, table: str, statements: list[str]
) -> None:
    server.grant(LIMITED, {"scan": [table], "query": [table], "write": [table]})
    assert [outcome(server, statement) for statement in statements] == [NO_PERMISSION] * 3
