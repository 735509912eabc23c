"""Requests of attackers, for benchmarks.attackers: each costs the server much more than a GetItem."""

from __future__ import annotations

import gzip
import json
from typing import Any

from benchmarks.dynamodb import call
from benchmarks.search import Server, make_rows, search_request
from benchmarks.signing import HOST, Client, dynamodb, raw, tablestore
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as search
from tablegate.adapters.tablestore.wire.protocol import sql_pb2

_ROWS = 2_000
_TABLE = "rows"


def unsigned_attacks() -> dict[str, bytes]:
    """Return requests without credentials by name."""
    json_type = ("Content-Type", "application/x-amz-json-1.0")
    head = [("Host", HOST), json_type, ("X-Amz-Target", "DynamoDB_20120810.PutItem")]
    bomb = gzip.compress(b"[" + b"{}," * 5_100_000 + b"{}]", 9)
    form = [("Host", HOST), ("Content-Type", "application/x-www-form-urlencoded")]
    return {
        "gzip bombs of 15 MB": raw("POST", "/", [*head, ("Content-Encoding", "gzip")], bomb),
        "bodies of 10 MB": raw("POST", "/", head, b"[" + b"{}," * 3_300_000 + b"{}]"),
        "bodies of 60 KB": raw("POST", "/", head, b"[" + b"{}," * 20_000 + b"{}]"),
        "forms of 15 MB": raw("POST", "/_tablegate/console/sign-in", form, b"a=1&" * 3_900_000),
        "forms of 8 KB": raw("POST", "/_tablegate/console/sign-in", form, b"a=1&" * 2_000),
        "pipelined GET /healthz": raw("GET", "/healthz", [("Host", HOST)], b"") * 2_000,
        "pipelined unsigned POST": raw("POST", "/", head, b"{}") * 2_000,
    }


def prepare(client: Client) -> None:
    """Make the rows that signed attacks read."""
    call(client, "PutItem", _put("large", _numbers(60_000)))
    for at in range(8):
        call(client, "PutItem", _put(f"list {at}", _numbers(10_000)))
    for at in range(400):
        call(client, "PutItem", _put(f"text {at}", {"S": "x" * 2_000}))
    make_rows(Server(client.port, 0), _TABLE, _ROWS)


def signed_attacks(port: int) -> dict[str, bytes]:
    """Return requests of an authenticated client by name. A signature is valid for 15 minutes."""
    absent = {f":v{at}": {"N": str(-1 - at)} for at in range(100)}
    contains = " OR ".join(f"contains(l, {name})" for name in absent)
    lacks = " AND ".join(f"NOT contains(l, {name})" for name in absent)
    checks = [
        {
            "ConditionCheck": {
                "TableName": "things",
                "Key": _key(f"list {at}"),
                "ConditionExpression": lacks,
                "ExpressionAttributeValues": absent,
            }
        }
        for at in range(8)
    ]
    statement = (
        "SELECT * FROM things WHERE pk IN (" + ",".join(f"'{at:08}'" for at in range(50)) + ") AND sk = 'a'"
    )
    deep = "(" * 20_000 + "1" + ")" * 20_000
    requests: dict[str, tuple[str, dict[str, Any]]] = {
        "Query with 100 contains on 60,000 numbers": (
            "Query",
            {
                "TableName": "things",
                "KeyConditionExpression": "pk = :p",
                "FilterExpression": contains,
                "ExpressionAttributeValues": {**absent, ":p": {"S": "large"}},
            },
        ),
        "TransactWriteItems with 800 NOT contains": ("TransactWriteItems", {"TransactItems": checks}),
        "PutItem of 12 MB": ("PutItem", _put("huge", {"L": [{"N": "1"}] * 1_000_000})),
        "BatchExecuteStatement, 25 x IN 50": (
            "BatchExecuteStatement",
            {"Statements": [{"Statement": statement} for _ in range(25)]},
        ),
        "PutItem with 20,000 numbers": ("PutItem", _put("list", _numbers(20_000))),
        "TransactWriteItems of 100": (
            "TransactWriteItems",
            {"TransactItems": [{"Put": _put(f"part {at}", {"S": "x" * 500})} for at in range(100)]},
        ),
        "Scan": ("Scan", {"TableName": "things"}),
    }
    wildcard = search.WildcardQuery(field_name="name", value="*n*a*m*e*9*9*")
    query = search.Query(type=search.WILDCARD_QUERY, query=wildcard.SerializeToString())
    join = f"SELECT a.pk FROM {_TABLE} a JOIN {_TABLE} b ON a.number < b.number LIMIT 1000"
    return {
        **{
            name: _once(dynamodb(port, operation, json.dumps(body).encode()))
            for name, (operation, body) in requests.items()
        },
        "SQL self join": _once(tablestore(port, "SQLQuery", _sql(join))),
        "SQL that is nested too deep": _once(tablestore(port, "SQLQuery", _sql(f"SELECT {deep}"))),
        "search with wildcards": _once(
            tablestore(
                port, "Search", search_request(_TABLE, search.SearchQuery(query=query)).SerializeToString()
            )
        ),
    }


def _once(request: bytes) -> bytes:
    """Return a request that is the last of its connection."""
    return request.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)


def _sql(statement: str) -> bytes:
    return sql_pb2.SQLQueryRequest(query=statement).SerializeToString()


def _numbers(number: int) -> dict[str, Any]:
    return {"L": [{"N": str(at)} for at in range(number)]}


def _key(partition: str) -> dict[str, Any]:
    return {"pk": {"S": partition}, "sk": {"S": "a"}}


def _put(partition: str, value: dict[str, Any]) -> dict[str, Any]:
    return {"TableName": "things", "Item": {**_key(partition), "l": value}}
