"""Policies of tables and streams: what they permit and refuse beside the callers' grants (IAM guide, "Policy evaluation
logic", within one account; API reference of DynamoDB).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from tablegate.adapters.dynamodb import dialect
from tablegate.adapters.dynamodb.wire.auth import authorization as signature
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.http.messages import Request
from tablegate.gateway.security.credential_store import CredentialStore
from tablegate.gateway.security.credentials import Credential, Scheme
from tablegate.gateway.security.grant_store import WrittenGrant, policy_of
from tablegate.gateway.wiring import connect, open_store, wire

NOW_MS = 1_700_000_000_000
SETTINGS = {"auth": "strict", "secret_key": "a secret key that is long"}
ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/orders"
ITEM = {"pk": {"S": "k1"}}
GET = ("GetItem", {"TableName": "orders", "Key": ITEM})
PUT = ("PutItem", {"TableName": "orders", "Item": ITEM})
DESCRIBE = ("DescribeTable", {"TableName": "orders"})
TABLE = {
    "TableName": "orders",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
}


def statement(effect: str, actions: str | list[str], principal: Any = "*", **more: Any) -> dict[str, Any]:
    """Return a statement about all callers.

    An allowance names each caller, because a public one is refused (ack-api-quirks, TABLE-356).
    """
    is_public = effect == "Allow" and principal == "*" and "Condition" not in more
    return {
        "Effect": effect,
        "Principal": user("FULL", "READER", "NOBODY") if is_public else principal,
        "Action": actions,
        "Resource": [ARN, ARN + "/*"],
        **more,
    }


def user(*names: str) -> dict[str, Any]:
    return {"AWS": [f"arn:aws:iam::000000000000:user/{name}" for name in names]}


ROOT = {"AWS": "arn:aws:iam::000000000000:root"}


class Server:
    """A DynamoDB server with three callers: FULL is unrestricted, READER can get items, and NOBODY has no grants."""

    def __init__(self, opened: Any, gateway: Any) -> None:
        self.opened = opened
        self.gateway = gateway
        self.dialect = dialect.DynamoDB(gateway)
        self.text = ""

    def ask(self, who: str, operation: str, body: Any, prefix: str = "DynamoDB_20120810") -> dict[str, Any]:
        raw = json.dumps(body).encode()
        headers = (
            ("host", "h"),
            ("content-type", "application/x-amz-json-1.0"),
            ("x-amz-date", "20231114T221320Z"),
            ("x-amz-target", f"{prefix}.{operation}"),
        )
        proof = ("authorization", signature(Request("POST", "/", headers, raw), who, "secret", "us-east-1"))
        request = Request("POST", "/", (*headers, proof), raw)
        self.was_judged = False
        reply = self.dialect.serve(request)
        self.was_judged = request.authorization is not None
        answer = orjson.loads(reply.body or b"{}")
        self.text = answer.get("message", answer.get("Message", ""))
        return answer

    def may(self, who: str, operation: str, body: Any, prefix: str = "DynamoDB_20120810") -> bool:
        answer = self.ask(who, operation, body, prefix)
        code = answer.get("__type", "").partition("#")[2]
        assert code in ("", "AccessDeniedException"), answer
        return not code

    def put(self, *statements: dict[str, Any], arn: str = ARN, confirmed: bool = False) -> None:
        policy = json.dumps({"Version": "2012-10-17", "Statement": statements})
        given = {"ResourceArn": arn, "Policy": policy, "ConfirmRemoveSelfResourceAccess": confirmed}
        assert self.may("FULL", "PutResourcePolicy", given)


def credentials() -> list[Credential]:
    full = Credential(Scheme.AWS, "FULL", ("secret",))
    document = {
        "Version": "2012-10-17",
        "Statement": {"Effect": "Allow", "Action": "dynamodb:GetItem", "Resource": "*"},
    }
    reader = policy_of(WrittenGrant("iam", json.dumps(document)), full.identity)
    nobody = policy_of(WrittenGrant("role", "none"), full.identity)
    return [
        full,
        Credential(Scheme.AWS, "READER", ("secret",), policy=reader),
        Credential(Scheme.AWS, "NOBODY", ("secret",), policy=nobody),
    ]


@pytest.fixture
def server(database_url: str) -> Iterator[Server]:
    made = load({"database": database_url, **SETTINGS}, {})
    opened = open_store(made, connect(made))
    gateway = wire(made, opened).gateway
    object.__setattr__(gateway, "real_now_ms", lambda: NOW_MS)
    gateway.credentials.replace(credentials())
    found = Server(opened, gateway)
    assert found.may("FULL", "CreateTable", TABLE)
    assert found.may("FULL", *PUT)
    yield found
    opened.close()


def test_a_caller_whom_the_policy_names_needs_no_grant(server):
    server.put(statement("Allow", "dynamodb:GetItem", user("NOBODY")))
    assert server.may("NOBODY", *GET)
    assert not server.may("NOBODY", *PUT)
    assert "because no identity-based policy allows the dynamodb:PutItem action" in server.text


@pytest.mark.parametrize("principal", ["*", {"AWS": "*"}])
def test_a_public_principal_matches_all_callers(server, principal):
    of_account = {"StringEquals": {"aws:PrincipalAccount": "000000000000"}}
    actions = ["dynamodb:GetItem", "dynamodb:DescribeTable"]
    server.put(statement("Allow", actions, principal, Condition=of_account))
    assert server.may("NOBODY", *GET)
    assert server.may("NOBODY", *DESCRIBE)
    assert not server.may("NOBODY", "Scan", {"TableName": "orders"})


@pytest.mark.parametrize("principal", [ROOT, {"AWS": "000000000000"}])
def test_an_account_only_delegates(server, principal):
    server.put(statement("Allow", "dynamodb:*", principal))
    assert not server.may("NOBODY", *GET)
    assert server.may("READER", *GET)
    assert not server.may("READER", *PUT)


@pytest.mark.parametrize("principal", ["*", ROOT, user("FULL")])
def test_a_refusal_beats_every_grant_even_all(server, principal):
    server.put(statement("Deny", "dynamodb:PutItem", principal))
    assert not server.may("FULL", *PUT)
    assert "with an explicit deny in a resource-based policy" in server.text
    assert server.may("FULL", *GET)
    assert not server.may("FULL", "BatchWriteItem", {"RequestItems": {"orders": [{"DeleteRequest": {"Key": ITEM}},
                          {"PutRequest": {"Item": {"pk": {"S": "k2"}}}}]}})  # fmt: skip


def test_whom_a_policy_is_not_about_it_leaves_alone(server):
    server.put(
        statement("Deny", "dynamodb:*", user("SOMEBODY")),
        statement("Deny", "dynamodb:*", {"AWS": "111111111111"}),
    )
    assert server.may("FULL", *PUT)
    assert server.may("READER", *GET)
    assert not server.may("NOBODY", *GET)


def test_a_conditional_allowance_narrows_no_grant(server):
    condition = {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["k9"]}}
    server.put(statement("Allow", "dynamodb:GetItem", user("NOBODY"), Condition=condition))
    assert server.may("READER", *GET)
    assert not server.may("NOBODY", *GET)
    assert server.may("NOBODY", "GetItem", {"TableName": "orders", "Key": {"pk": {"S": "k9"}}})


@pytest.mark.parametrize(("key", "value"), [("SourceArn", ARN), ("SourceAccount", "000000000000")])
def test_conditions_on_calling_services_are_false_for_direct_calls(server, key, value):
    """A statement that requires a call through a service permits no direct call."""
    server.put(statement("Allow", "dynamodb:GetItem", Condition={"StringEquals": {f"aws:{key}": value}}))
    assert not server.may("NOBODY", *GET)
    server.put(statement("Deny", "dynamodb:GetItem", Condition={"StringNotEquals": {f"aws:{key}": value}}))
    assert not server.may("FULL", *GET)


def test_an_unrestricted_caller_removes_a_policy_that_refuses_all(server):
    server.put(statement("Deny", "dynamodb:*"), confirmed=True)
    for asked in (
        GET,
        PUT,
        DESCRIBE,
        ("DeleteTable", {"TableName": "orders"}),
        ("GetResourcePolicy", {"ResourceArn": ARN}),
    ):
        assert not server.may("FULL", *asked)
    assert not server.may("READER", "DeleteResourcePolicy", {"ResourceArn": ARN})
    assert server.may("FULL", "DeleteResourcePolicy", {"ResourceArn": ARN})
    assert server.may("FULL", *GET)


def test_a_policy_that_is_changed_or_taken_away_holds_no_more(server):
    server.put(statement("Allow", "dynamodb:GetItem"))
    assert server.may("NOBODY", *GET)
    server.put(statement("Allow", "dynamodb:PutItem"))
    assert not server.may("NOBODY", *GET)
    assert server.may("NOBODY", *PUT)
    assert server.may("FULL", "DeleteResourcePolicy", {"ResourceArn": ARN})
    assert not server.may("NOBODY", *PUT)


def test_an_unrestricted_caller_skips_authorization_without_policies(server):
    assert server.may("FULL", *GET)
    assert not server.was_judged
    server.put(statement("Allow", "dynamodb:GetItem"))
    assert server.may("FULL", *GET)
    assert server.was_judged


@pytest.mark.parametrize(
    ("operation", "given"),
    [
        ("GetResourcePolicy", {"ResourceArn": ARN}),
        ("ListTagsOfResource", {"ResourceArn": ARN}),
        ("DescribeTimeToLive", {"TableName": "orders"}),
    ],
)
def test_a_refusal_of_the_table_alone_refuses_what_only_looks_it_up(server, operation, given):
    """The table's policy or a grant refuses. Its indexes and streams need no separate refusal."""
    action = f"dynamodb:{operation}"
    everything = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    but = {"Effect": "Deny", "Action": action, "Resource": ARN}
    text = json.dumps({"Version": "2012-10-17", "Statement": [everything, but]})
    own = policy_of(WrittenGrant("iam", text), credentials()[0].identity)
    limited = Credential(Scheme.AWS, "LIMITED", ("secret",), policy=own)
    server.gateway.credentials.replace([*credentials(), limited])
    assert not server.may("LIMITED", operation, given)
    server.put(statement("Deny", action, Resource=ARN))
    assert not server.may("FULL", operation, given)
    assert "with an explicit deny in a resource-based policy" in server.text


def test_a_policy_that_came_with_its_table_holds_at_once(server):
    policy = json.dumps(
        {"Version": "2012-10-17", "Statement": {**statement("Deny", "dynamodb:PutItem"), "Resource": "*"}}
    )
    assert server.may("FULL", "CreateTable", {**TABLE, "TableName": "news", "ResourcePolicy": policy})
    assert not server.may("FULL", "PutItem", {"TableName": "news", "Item": ITEM})
    assert server.may("FULL", *PUT)


def test_policies_are_known_after_a_start_and_after_a_change_elsewhere(server):
    store: CredentialStore = server.opened.credential_store
    store.load()
    assert store.resource_policies == {}
    server.put(statement("Deny", "dynamodb:PutItem"))
    assert store.changes() is not None
    [named] = store.resource_policies
    assert named[1] == "orders"
    assert store.changes() is None
    again = wire(load({"memory": True, **SETTINGS}, {}), server.opened).gateway
    object.__setattr__(again, "real_now_ms", lambda: NOW_MS)
    again.credentials.replace(credentials())
    other = Server(server.opened, again)
    assert not other.may("FULL", *PUT)
    assert other.may("FULL", *GET)


def stream_of(server: Server) -> str:
    return server.ask("FULL", *DESCRIBE)["Table"]["LatestStreamArn"]


def test_a_stream_has_a_policy_of_its_own(server):
    stream = stream_of(server)
    asked = ("DescribeStream", {"StreamArn": stream}, "DynamoDBStreams_20120810")
    assert server.may("FULL", *asked)
    server.put(statement("Deny", "dynamodb:Describe*", Resource=[ARN, ARN + "/*"]))
    assert server.may("FULL", *asked)  # the table's policy is not the stream's
    server.put(statement("Allow", "dynamodb:DescribeStream", user("NOBODY"), Resource=stream), arn=stream)
    assert server.may("NOBODY", *asked)
    server.put(statement("Deny", "dynamodb:DescribeStream", Resource=stream), arn=stream)
    assert not server.may("FULL", *asked)
    assert "with an explicit deny in a resource-based policy" in server.text
    assert server.may("FULL", *GET)


def test_a_grant_of_a_tables_policy_is_none_of_its_streams(server):
    stream = stream_of(server)
    policy = json.dumps(
        {"Version": "2012-10-17", "Statement": statement("Allow", "dynamodb:*", Resource="*")}
    )
    document = {"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "dynamodb:PutResourcePolicy",
                "Resource": ARN}}  # fmt: skip
    own = policy_of(WrittenGrant("iam", json.dumps(document)), credentials()[0].identity)
    setter = Credential(Scheme.AWS, "SETTER", ("secret",), policy=own)
    server.gateway.credentials.replace([*credentials(), setter])
    assert not server.may("SETTER", "PutResourcePolicy", {"ResourceArn": stream, "Policy": policy})
    assert not server.may("SETTER", "DeleteResourcePolicy", {"ResourceArn": ARN})
    assert server.may("SETTER", "PutResourcePolicy", {"ResourceArn": ARN, "Policy": policy})


def test_a_policy_that_can_no_longer_be_read_refuses_everything(server):
    from tablegate.gateway.security.iam_policies import stored_resource_policy

    for each in stored_resource_policy("{}", credentials()[0].identity)[:1]:
        assert all(found.effect.value == "deny" for found in each.statements)
