"""Grants of tunnels and of SQL: what a caller with limits reads by them.

A tunnel reads all rows, all changes, or both. A statement reads the range of keys and the columns that it mentions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tablegate.adapters.tablestore.operation_table import OPERATIONS
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.adapters.tablestore.wire.protocol import tunnel_pb2
from tests.adapters.tablestore.client import no_throughput, row
from tests.support.sql_client import Answer
from tests.support.strict import FULL, LIMITED, Strict, Told, strict

NO_PERMISSION = "OTSNoPermissionAccess"


@pytest.fixture(scope="module")
def server(shared_database_url: str) -> Iterator[Strict]:
    with strict(shared_database_url) as made:
        columns = [messages.PrimaryKeySchema(name=name, type=messages.STRING) for name in ("pk", "sk")]
        ask(
            made, FULL, "CreateTable", table_meta=messages.TableMeta(table_name="t", primary_key=columns),
            reserved_throughput=no_throughput(), table_options=messages.TableOptions(time_to_live=-1, max_versions=1),
        )  # fmt: skip
        condition = messages.Condition(row_existence=messages.IGNORE)
        for name in ("a", "b"):
            put = row({"pk": name, "sk": "1"}, {"open": "o", "secret": "s"})
            ask(made, FULL, "PutRow", table_name="t", row=put, condition=condition)
        yield made


def ask(server: Strict, caller: str, operation: str, **members: Any) -> Told:
    return server.tablestore(caller, operation, OPERATIONS[operation].request(**members))


def create(server: Strict, caller: str, kind: int, name: str) -> Told:
    tunnel = tunnel_pb2.Tunnel(table_name="t", tunnel_name=name, tunnel_type=kind)  # type: ignore[arg-type]
    return ask(server, caller, "tunnel/create", tunnel=tunnel)


def reads(server: Strict, tunnel: str) -> bool:
    """Whether a limited caller gets the records of a tunnel. No request of a tunnel is answered without the permission."""
    connected = ask(server, LIMITED, "tunnel/connect", tunnel_id=tunnel)
    if connected.code == NO_PERMISSION:
        client = {"tunnel_id": tunnel, "client_id": "x"}
        assert ask(server, LIMITED, "tunnel/heartbeat", **client).code == NO_PERMISSION
        channel = {**client, "channel_id": "x"}
        assert ask(server, LIMITED, "tunnel/readrecords", token="", **channel).code == NO_PERMISSION
        assert ask(server, LIMITED, "tunnel/getcheckpoint", **channel).code == NO_PERMISSION
        return False
    client = {"tunnel_id": tunnel, "client_id": connected.body.client_id}
    for channel in ask(server, LIMITED, "tunnel/heartbeat", **client).body.channels:
        channel_id = {**client, "channel_id": channel.channel_id}
        token = ask(server, LIMITED, "tunnel/getcheckpoint", **channel_id).body.checkpoint
        answer = ask(server, LIMITED, "tunnel/readrecords", token=token, **channel_id)
        assert answer.status == 200, answer
    ask(server, LIMITED, "tunnel/shutdown", **client)
    return True


RAM_T = "acs:ots:*:*:instance/inst/table/t"


def ram(*actions: str) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Action": [f"ots:{action}" for action in actions], "Resource": RAM_T}
    return {"Version": "1", "Statement": statement}


@pytest.mark.parametrize(
    ("grants", "expected"),
    [
        ([{"scan": ["t"]}], {"rows"}),
        ([{"stream": ["t"]}], {"changes"}),
        ([{"scan": ["t"]}, {"stream": ["t"]}], {"rows", "changes", "both"}),
        ([{"read": ["t"], "query": ["t"], "write": ["t"]}], set()),
        ([{"query": ["t"], "keys": ["a"]}, {"stream": ["t"]}], {"changes"}),
        ([{"scan": ["other"]}, {"stream": ["other"]}], set()),
        ([ram("ConsumeTunnel")], {"rows", "changes", "both"}),
        ([ram("GetRange", "GetStreamRecord")], set()),
    ],
)
def test_who_reads_a_tunnel(server: Strict, grants: list[Any], expected: set[str]) -> None:
    kinds = {"rows": tunnel_pb2.BaseData, "changes": tunnel_pb2.Stream, "both": tunnel_pb2.BaseAndStream}
    server.grant(LIMITED, *grants)
    found = set()
    for name, kind in kinds.items():
        tunnel = create(server, FULL, kind, name).body.tunnel_id
        if reads(server, tunnel):
            found.add(name)
        ask(server, FULL, "tunnel/delete", table_name="t", tunnel_name=name)
    assert found == expected


def test_who_creates_a_tunnel(server: Strict) -> None:
    for grant, is_allowed in (
        (ram("CreateTunnel"), True),
        (ram("ConsumeTunnel"), False),
        ({"define": ["t"]}, True),
    ):
        server.grant(LIMITED, grant)
        told = create(server, LIMITED, tunnel_pb2.Stream, "mine")
        assert (told.status == 200) is is_allowed, told
        if is_allowed:
            ask(server, FULL, "tunnel/delete", table_name="t", tunnel_name="mine")
        else:
            assert told.code == NO_PERMISSION


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
