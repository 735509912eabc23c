"""Grants of SQL. A statement reads the range of keys and the columns that it mentions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.tablestore.strict_table import NO_PERMISSION, ask, ram, server
from tests.support.sql_client import Answer
from tests.support.strict import LIMITED, Strict

__all__ = ["server"]


def outcome(server: Strict, query: str) -> Any:
    """The rows of a statement of the limited caller, or the code of its error."""
    told = ask(server, LIMITED, "SQLQuery", query=query)
    return Answer(told.body).rows if told.status == 200 else told.code


@pytest.mark.parametrize(
    ("grant", "query", "expected"),
    [
        ({"scan": ["t"]}, "select pk from t where sk = '1'", [("a",), ("b",)]),
        ({"query": ["t"]}, "select pk from t", NO_PERMISSION),
        ({"query": ["t"]}, "select pk from t where pk = 'a'", [("a",)]),
        ({"scan": ["other"]}, "select pk from t", NO_PERMISSION),
        (ram("SQL_Select"), "select pk from t where pk = 'a'", [("a",)]),
        (ram("GetRange"), "select pk from t", NO_PERMISSION),
    ],
)
def test_statements_and_the_words_of_grants(
    server: Strict, grant: dict[str, Any], query: str, expected: Any
) -> None:
    server.grant(LIMITED, grant)
    assert outcome(server, query) == expected


def test_statements_read_no_column_that_is_forbidden(server: Strict) -> None:
    server.grant(LIMITED, {"scan": ["t"], "query": ["t"], "define": ["t"]})
    mapped = "create table t (pk varchar(9), sk varchar(9), open mediumtext, secret mediumtext, primary key(pk, sk))"
    assert outcome(server, mapped) == []
    server.grant(LIMITED, {"query": ["t"], "attributes": ["pk", "sk", "open"]})
    assert outcome(server, "select pk, open from t where pk = 'b'") == [("b", "o")]
    assert outcome(server, "select count(*) from t where pk = 'a'") == [(1,)]
    for query in (
        "select * from t where pk = 'a'",
        "select pk from t where pk = 'a' and secret = 's'",
        "select count(secret) from t where pk = 'a'",
        "select pk from t where pk = 'a' order by secret",
        "select pk from t where pk = 'a' group by length(SECRET)",
        "select a.pk from t a join t b on a.secret = b.secret where a.pk = 'a' and b.pk = 'a'",
        "select pk, open from t",
    ):
        assert outcome(server, query) == NO_PERMISSION, query
    server.grant(LIMITED, {"query": ["t"], "keys": ["a"]})
    assert outcome(server, "select pk, secret from t where pk = 'a'") == [("a", "s")]
    assert outcome(server, "select pk from t where pk = 'b'") == NO_PERMISSION
    assert outcome(server, "select pk from t where pk = 'a' or pk = 'b'") == NO_PERMISSION
    assert outcome(server, "drop mapping table t") == NO_PERMISSION
