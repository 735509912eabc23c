"""BatchExecuteStatement authorizes each statement separately.

`AccessDenied` is the error of that statement, and the others run (BatchStatementError, API reference; issue 23, point
2).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.strict import LIMITED, Strict, strict

USER = "User: arn:aws:iam::000000000000:user/limited is not authorized to perform: dynamodb:"
TABLE = "arn:aws:dynamodb:us-east-1:000000000000:table/"
WHY = "because no identity-based policy allows the dynamodb:"


def denied(action: str, resource: str) -> dict[str, str]:
    text = f"{USER}{action} on resource: {TABLE}{resource} {WHY}{action} action"
    return {"Code": "AccessDenied", "Message": text}


@pytest.fixture
def server(database_url: str) -> Iterator[Strict]:
    with strict(database_url) as made:
        for table in ("orders", "secret"):
            schema: dict[str, Any] = {
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
            }
            made.ok("CreateTable", TableName=table, **schema)
            made.ok("PutItem", TableName=table, Item={"pk": {"S": "u1"}})
        yield made


def batch(server: Strict, *statements: str) -> list[dict[str, Any]]:
    given = [{"Statement": text} for text in statements]
    responses: list[dict[str, Any]] = server.ok("BatchExecuteStatement", LIMITED, Statements=given)[
        "Responses"
    ]
    return responses


def test_reads(server: Strict) -> None:
    server.grant(LIMITED, {"read": ["orders"]})
    told = batch(
        server,
        "SELECT * FROM \"secret\" WHERE pk = 'u1'",
        "SELECT * FROM \"orders\" WHERE pk = 'u1'",
        "SELECT * FROM \"absent\" WHERE pk = 'u1'",
        "SELECT * FROM \"secret\" WHERE id = 'u1'",
    )
    assert told[0] == {"Error": denied("PartiQLSelect", "secret")}
    assert told[1] == {"TableName": "orders", "Item": {"pk": {"S": "u1"}}}
    assert told[2] == {"Error": denied("PartiQLSelect", "absent")}
    assert told[3] == told[0]


def test_writes(server: Strict) -> None:
    server.grant(LIMITED, {"write": ["orders"]}, {"delete": ["secret"]})
    told = batch(
        server,
        "INSERT INTO \"orders\" VALUE {'pk': 'u2'}",
        "INSERT INTO \"secret\" VALUE {'pk': 'u2'}",
        "DELETE FROM \"orders\" WHERE pk = 'u1'",
        "DELETE FROM \"secret\" WHERE pk = 'u1'",
        "UPDATE \"secret\" SET a = 1 WHERE pk = 'u3'",
    )
    assert told[0] == {"TableName": "orders"}
    assert told[1] == {"Error": denied("PartiQLInsert", "secret")}
    assert told[2] == {"Error": denied("PartiQLDelete", "orders")}
    assert told[3] == {"TableName": "secret"}
    assert told[4] == {"Error": denied("PartiQLUpdate", "secret")}
    assert sorted(each["pk"]["S"] for each in server.ok("Scan", TableName="orders")["Items"]) == ["u1", "u2"]
    assert server.ok("Scan", TableName="secret")["Items"] == []


def test_partitions(server: Strict) -> None:
    """Decisions that depend on the key follow after the statement has been read with its table."""
    server.grant(LIMITED, {"read": ["orders"], "keys": ["u1"]}, {"write": ["orders"], "keys": ["u1"]})
    read = batch(server, *(f"SELECT * FROM \"orders\" WHERE pk = '{key}'" for key in ("u1", "u2", "u3")))
    assert [each.get("Error") for each in read] == [None, *[denied("PartiQLSelect", "orders")] * 2]
    written = batch(server, *(f"UPDATE \"orders\" SET a = 1 WHERE pk = '{key}'" for key in ("u1", "u2")))
    assert [each.get("Error") for each in written] == [None, denied("PartiQLUpdate", "orders")]


def test_two_statements_on_one_forbidden_item_are_no_error_of_the_batch(server: Strict) -> None:
    server.grant(LIMITED, {"read": ["orders"]})
    told = batch(server, *["SELECT * FROM \"secret\" WHERE pk = 'u1'"] * 2)
    assert [each["Error"] for each in told] == [denied("PartiQLSelect", "secret")] * 2


def test_a_batch_without_any_right_is_answered_alike(server: Strict) -> None:
    server.grant(LIMITED)
    [told] = batch(server, "SELECT * FROM \"secret\" WHERE pk = 'u1'")
    assert told == {"Error": denied("PartiQLSelect", "secret")}


def test_a_transaction_is_refused_as_a_whole(server: Strict) -> None:
    server.grant(LIMITED, {"write": ["orders"]})
    texts = ["INSERT INTO \"orders\" VALUE {'pk': 'u2'}", "INSERT INTO \"secret\" VALUE {'pk': 'u2'}"]
    told = server.dynamodb(
        LIMITED, "ExecuteTransaction", TransactStatements=[{"Statement": text} for text in texts]
    )
    assert (told.code, told.text) == ("AccessDeniedException", denied("PartiQLInsert", "secret")["Message"])
    assert len(server.ok("Scan", TableName="orders")["Items"]) == 1
