"""No command that the plain evaluator of a policy would refuse reaches the store.

The fast path of requests, with its caches and shortcuts, is compared with a plain evaluation of each statement, on
random policies and random requests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.adapters.dynamodb import dialect
from tablegate.adapters.dynamodb.wire.auth import authorization as signature
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.http.messages import Request
from tablegate.gateway.model.authorization.accesses import Access
from tablegate.gateway.model.authorization.authorizations import Authorization
from tablegate.gateway.model.authorization.grants import Effect, Policy, Verdict
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.security.credentials import Credential, Scheme
from tablegate.gateway.security.grant_store import WrittenGrant, policy_of
from tablegate.gateway.store.migrating import migrate
from tablegate.gateway.wiring import connect, open_store, wire
from tests.support.examples import examples

ACTIONS = [
    "GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "Scan", "BatchGetItem", "BatchWriteItem",
    "ConditionCheckItem", "PartiQL*", "PartiQLSelect", "*Item", "*", "DescribeTable",
]  # fmt: skip
RESOURCES = ["*", "table/one", "table/two", "table/o*", "table/one/index/*", "table/*/index/byA"]
CONDITIONS: list[dict[str, Any]] = [
    {},
    {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["k1"]}},
    {"ForAnyValue:StringEquals": {"dynamodb:LeadingKeys": ["k2"]}},
    {"ForAllValues:StringEquals": {"dynamodb:Attributes": ["pk", "a"]}},
    {"ForAnyValue:StringEquals": {"dynamodb:Attributes": ["b"]}},
    {"StringEquals": {"dynamodb:Select": "SPECIFIC_ATTRIBUTES"}},
    {"StringEqualsIfExists": {"dynamodb:ReturnValues": "NONE"}},
    {"Null": {"dynamodb:LeadingKeys": "false"}},
    {"StringEquals": {"dynamodb:EnclosingOperation": "TransactWriteItems"}},
]


def plain_verdict(policy: Policy, access: Access, authorization: Authorization) -> Verdict:
    """Return the verdict of a policy without caches: evaluate each statement, and a refusal wins."""
    effects = {
        each.effect for each in policy.statements if each.covers(access) and each.holds(access, authorization)
    }
    if Effect.DENY in effects:
        return Verdict.REFUSED
    return Verdict.ALLOWED if effects else Verdict.NOT_ALLOWED


def _statement(effect: str, action: str, resource: str, condition: dict[str, Any]) -> dict[str, Any]:
    name = resource if resource == "*" else f"arn:aws:dynamodb:*:*:{resource}"
    made = {"Effect": effect, "Action": f"dynamodb:{action}", "Resource": name}
    return {**made, "Condition": condition} if condition else made


statements = st.builds(
    _statement,
    st.sampled_from(["Allow", "Allow", "Allow", "Deny"]),
    st.sampled_from(ACTIONS),
    st.sampled_from(RESOURCES),
    st.sampled_from(CONDITIONS),
)
tables, names = st.sampled_from(["one", "two"]), st.sampled_from(["a", "b"])
keys = st.sampled_from(["k1", "k2"]).map(lambda key: {"pk": {"S": key}})
projections = st.sampled_from([{}, {"ProjectionExpression": "a"}, {"ProjectionExpression": "pk, b"}])
returns = st.sampled_from([{}, {"ReturnValues": "ALL_OLD"}])
TEXTS = [
    'SELECT * FROM "one"', "SELECT a FROM \"one\" WHERE pk = 'k1'", "SELECT * FROM \"two\" WHERE pk IN ['k1', 'k2']",
    'SELECT * FROM "one"."byA" WHERE a = \'x\'', "UPDATE \"one\" SET a = 'y' WHERE pk = 'k1'",
    "DELETE FROM \"two\" WHERE pk = 'k2'", "INSERT INTO \"one\" VALUE {'pk': 'new', 'b': 'x'}",
]  # fmt: skip


def of(operation: str, make: Any, *parts: Any) -> Any:
    return st.tuples(st.just(operation), st.builds(make, *parts))


actions = st.one_of(
    st.builds(lambda t, k, n: {"Put": {"TableName": t, "Item": {**k, n: {"S": "x"}}}}, tables, keys, names),
    st.builds(lambda t, k: {"Delete": {"TableName": t, "Key": k}}, tables, keys),
    st.builds(
        lambda t, k, n: {
            "ConditionCheck": {"TableName": t, "Key": k, "ConditionExpression": f"attribute_not_exists({n}x)"}
        },
        tables,
        keys,
        names,
    ),
)
of_tables = st.dictionaries(tables, keys, min_size=1)
requests = st.one_of(
    of("GetItem", lambda t, k, p: {"TableName": t, "Key": k, **p}, tables, keys, projections),
    of("PutItem", lambda t, k, n, r: {"TableName": t, "Item": {**k, n: {"S": "x"}}, **r}, tables, keys, names, returns),
    of(
        "UpdateItem",
        lambda t, k, n, m: {"TableName": t, "Key": k, "UpdateExpression": f"SET {n} = if_not_exists({m}, {n})"},
        tables, keys, names, names,
    ),
    of("DeleteItem", lambda t, k, r: {"TableName": t, "Key": k, **r}, tables, keys, returns),
    of(
        "Query",
        lambda t, k, p: {
            "TableName": t, "KeyConditionExpression": "pk = :k", "ExpressionAttributeValues": {":k": k["pk"]}, **p
        },
        tables, keys, projections,
    ),
    of(
        "Query",
        lambda t: {
            "TableName": t, "IndexName": "byA", "KeyConditionExpression": "a = :k",
            "ExpressionAttributeValues": {":k": {"S": "k1"}},
        },
        tables,
    ),
    of("Scan", lambda t, p: {"TableName": t, **p}, tables, projections),
    of("BatchGetItem", lambda ks: {"RequestItems": {t: {"Keys": [k]} for t, k in ks.items()}}, of_tables),
    of(
        "BatchWriteItem",
        lambda ks: {"RequestItems": {t: [{"PutRequest": {"Item": k}}] for t, k in ks.items()}},
        of_tables,
    ),
    of("TransactWriteItems", lambda each: {"TransactItems": each}, st.lists(actions, min_size=1, max_size=3)),
    of("ExecuteStatement", lambda text: {"Statement": text}, st.sampled_from(TEXTS)),
    of("DescribeTable", lambda t: {"TableName": t}, tables),
)  # fmt: skip
FULL = Credential(Scheme.AWS, "FULL", ("secret",))


@dataclass
class Watched:
    """A server's dialect, and what reached its engine while a request was handled."""

    dialect: Any
    reached: list[Command[Any]] = field(default_factory=list)

    def ask(self, access_id: str, operation: str, body: dict[str, Any]) -> tuple[int, Authorization | None]:
        """The status of the reply, and the request's authorization."""
        self.reached.clear()
        raw = json.dumps(body).encode()
        headers = (
            ("host", "h"),
            ("content-type", "application/x-amz-json-1.0"),
            ("x-amz-date", "20231114T221320Z"),
            ("x-amz-target", f"DynamoDB_20120810.{operation}"),
        )
        unsigned = Request("POST", "/", headers, raw)
        proof = ("authorization", signature(unsigned, access_id, "secret", "us-east-1"))
        request = Request("POST", "/", (*headers, proof), raw)
        return self.dialect.serve(request).status, request.authorization


@pytest.fixture(scope="module")
def watched() -> Iterator[Watched]:
    made = load({"memory": True, "auth": "strict", "secret_key": "a secret key that is long"}, {})
    database = connect(made)
    migrate(database)
    opened = open_store(made, database)
    gateway = wire(made, opened).gateway
    object.__setattr__(gateway, "real_now_ms", lambda: 1_700_000_000_000)
    gateway.credentials.replace([FULL])
    found = Watched(dialect.DynamoDB(gateway))
    index = {
        "IndexName": "byA",
        "KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    }
    types = [{"AttributeName": each, "AttributeType": "S"} for each in ("pk", "a")]
    table = {
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": types,
        "BillingMode": "PAY_PER_REQUEST",
        "GlobalSecondaryIndexes": [index],
    }
    for name in ("one", "two"):
        assert found.ask("FULL", "CreateTable", {"TableName": name, **table})[0] == 200
        for key in ("k1", "k2"):
            found.ask("FULL", "PutItem", {"TableName": name, "Item": {"pk": {"S": key}, "b": {"S": "x"}}})
    with pytest.MonkeyPatch.context() as patched:
        plain = Engine.run

        def run(self: Engine, commands: list[Command[Any]], nowait: bool = False) -> list[Any]:
            found.reached.extend(commands)
            return plain(self, commands, nowait)

        patched.setattr(Engine, "run", run)
        yield found
    opened.close()


@examples(300)
@given(
    st.lists(st.lists(statements, min_size=1, max_size=4), min_size=1, max_size=2),
    st.lists(requests, min_size=1, max_size=6),
)
def test_commands_that_a_plain_evaluator_refuses_never_reach_the_store(
    watched: Watched, documents: list[list[dict[str, Any]]], asked: list[tuple[str, dict[str, Any]]]
) -> None:
    written = [json.dumps({"Version": "2012-10-17", "Statement": each}) for each in documents]
    of_each = [policy_of(WrittenGrant("iam", each), FULL.identity) for each in written]
    policy = Policy(tuple(statement for each in of_each for statement in each.statements))
    limited = Credential(Scheme.AWS, "LIMITED", ("secret",), policy=policy)
    watched.dialect.gateway.credentials.replace([FULL, limited])
    for operation, body in asked:
        status, authorization = watched.ask("LIMITED", operation, body)
        assert status < 500
        assert authorization is not None
        judged = 0
        for command in watched.reached:
            for access in command.accesses(authorization.purpose):
                judged += 1
                verdict = plain_verdict(policy, access, authorization)
                assert verdict is Verdict.ALLOWED, (operation, body, written)
        assert judged or status != 200, (operation, body, written)
