"""Written grants: rejected documents, and the meaning of some elements.

Sources: IAM guide, "Grammar of the IAM JSON policy language", "Condition operators" and "Policy variables", and the RAM
policy elements of Alibaba Cloud.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tablegate.adapters.tablestore.operation_table import OPERATIONS
from tablegate.gateway.model.authorization.accesses import Access
from tablegate.gateway.model.authorization.authorizations import (
    Authorization,
    CallerIdentity,
    NamedResource,
    RequestSource,
)
from tablegate.gateway.model.authorization.conditions import EVERYTHING as EVERY_VALUE
from tablegate.gateway.model.authorization.conditions import ConditionKey, FactValues, Glob
from tablegate.gateway.model.authorization.grants import EVERYTHING, Policy, Verdict
from tablegate.gateway.model.authorization.permissions import Channel, Permission, Purpose
from tablegate.gateway.security.grant_store import WrittenGrant, policy_of, written_of
from tablegate.gateway.security.iam_conditions import BadPolicy
from tests.support.ram import action_of
from tests.support.tables import each_row

ALICE = CallerIdentity("aws", "alice*", "111122223333", "arn:aws:iam::111122223333:user/alice*")
T = "arn:aws:dynamodb:*:*:table/T"


class Given:
    """Facts as a test gives them."""

    def __init__(self, **facts: FactValues) -> None:
        self._facts = facts

    def values_of(self, fact: ConditionKey) -> FactValues:
        return self._facts.get(fact.name.lower())

    def value(self, fact: ConditionKey) -> str | None:
        found = self._facts.get(fact.name.lower())
        return found if isinstance(found, str) else None


def verdict(policy: Policy, path: str = "T", permission: Permission = Permission.READ, namespace: str = "shared",
            way: Channel = Channel.SINGLE, **facts: Any) -> Verdict:  # fmt: skip
    known = Given(**facts)
    return policy.decide(Access(permission, way, namespace, path, None)).judge(known, known)  # type: ignore[arg-type]


def read(*statements: dict[str, Any], version: str = "2012-10-17") -> Policy:
    document = {"Version": version, "Statement": list(statements)}
    return policy_of(WrittenGrant("iam", json.dumps(document)), ALICE)


def one(resource: Any = T, action: Any = "dynamodb:GetItem", **more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": action, "Resource": resource, **more}


def where(**conditions: Any) -> dict[str, Any]:
    return one(Condition=conditions)


@each_row(
    "statement",
    [
        {},
        {"Effect": "allow", "Action": "*", "Resource": "*"},
        {"Effect": "Allow", "Action": "*"},
        {"Effect": "Allow", "Resource": "*"},
        {"Effect": "Allow", "Action": "*", "NotAction": "*", "Resource": "*"},
        {"Effect": "Allow", "Action": "*", "Resource": "*", "NotResource": "*"},
        {"Effect": "Allow", "Action": [], "Resource": "*"},
        {"Effect": "Allow", "NotAction": [], "Resource": "*"},
        {"Effect": "Allow", "Action": "*", "NotResource": []},
        {"Effect": "Allow", "Action": 1, "Resource": "*"},
        {"Effect": "Allow", "Action": "GetItem", "Resource": "*"},
        one("T"),
        one("arn:aws:dynamodb:T"),
        {**one(), "Unknown": 1},
        {**one(), "Principal": "*"},
        where(StringSame={"dynamodb:Select": "COUNT"}),
        where(StringEquals={"dynamodb:Leading": "x"}),
        where(StringEquals={"dynamodb:LeadingKeys": "x"}),
        where(StringEquals={"dynamodb:Attributes": ["x"]}),
        where(StringEquals={"dynamodb:Select": []}),
        where(StringEquals=[]),
        where(Bool={"aws:SecureTransport": "maybe"}),
        where(IpAddress={"aws:SourceIp": "10.0.0.0/99"}),
        where(IpAddress={"aws:username": "10.0.0.0/8"}),
        where(StringEquals={"aws:SourceIp": "10.0.0.1"}),
        where(DateLessThan={"aws:CurrentTime": "soon"}),
        where(NumericLessThan={"aws:EpochTime": "NaN"}),
        where(NumericLessThan={"dynamodb:Select": "1"}),
        where(BinaryEquals={"dynamodb:Select": "%"}),
        where(ArnLike={"aws:PrincipalArn": "alice"}),
        where(Null={"dynamodb:LeadingKeys": "perhaps"}),
        where(**{"ForAllValues:Null": {"dynamodb:LeadingKeys": "true"}}),
        where(**{"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["${aws:PrincipalTag/team}"]}}),
        where(StringEquals={"aws:RequestTag/k": "v"}),
        one("arn:aws:dynamodb:*:*:table/${unknown}"),
    ],
)
def test_an_unsupported_statement_is_refused_when_it_is_read(statement: dict[str, Any]) -> None:
    with pytest.raises(BadPolicy):
        read(statement)
    with pytest.raises(BadPolicy):
        read(one(), statement)


@pytest.mark.parametrize(
    "document",
    [
        "",
        "[]",
        "{}",
        '{"Statement": []}',
        '{"Version": "2011-10-17", "Statement": []}',
        '{"Statement": "x"}',
        '{"Version": "2012-10-17", "Statement": {}, "More": 1}',
        json.dumps({"Statement": one(), "Id": "x" * 21_000}),
        "[" * 10_000,
        '{"Statement": {"Effect": "Deny", "Effect": "Allow", "Action": "*", "Resource": "*"}}',
    ],
)
def test_a_document_that_is_no_policy_is_refused(document: str) -> None:
    with pytest.raises(BadPolicy):
        policy_of(WrittenGrant("iam", document), ALICE)


def test_variables_are_literal_and_of_the_newer_version() -> None:
    """A `*` in a substituted value is no wildcard. Documents of version 2008 have no variables."""
    mine = read(one("arn:aws:dynamodb:*:*:table/${aws:username}-data"))
    assert verdict(mine, "alice*-data") is Verdict.ALLOWED
    assert verdict(mine, "alice2-data") is Verdict.NOT_ALLOWED
    team = read(one("arn:aws:dynamodb:*:*:table/${aws:PrincipalTag/team, 'T'}"))
    assert verdict(team, "T") is Verdict.ALLOWED
    assert verdict(read(one("arn:aws:dynamodb:*:*:table/a${*}")), "ab") is Verdict.NOT_ALLOWED
    with pytest.raises(BadPolicy):
        read(one("arn:aws:dynamodb:*:*:table/${aws:username}"), version="2008-10-17")


def test_account_and_region_count_where_tables_are_kept_apart() -> None:
    there = read(one("arn:aws:dynamodb:eu-west-1:111122223333:table/T"))
    assert verdict(there, namespace="aws/111122223333/eu-west-1") is Verdict.ALLOWED
    assert verdict(there, namespace="aws/111122223333/us-east-1") is Verdict.NOT_ALLOWED
    assert verdict(there, namespace="aws/999999999999/eu-west-1") is Verdict.NOT_ALLOWED
    assert verdict(there, namespace="shared") is Verdict.ALLOWED
    instance = policy_of(written_of(
        {"Version": "1", "Statement": {"Effect": "Allow", "Action": "ots:*", "Resource": "acs:ots:*:*:instance/A/table/T"}}
    ), ALICE)  # fmt: skip
    assert verdict(instance, namespace="tablestore/a") is Verdict.ALLOWED
    assert verdict(instance, namespace="tablestore/b") is Verdict.NOT_ALLOWED


LIKE_U = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["u?"]}}


@each_row(
    "conditions, facts, holds",
    [
        (LIKE_U, {"leading_keys": ("u1",)}, True),
        (LIKE_U, {"leading_keys": ("u1", "v1")}, False),
        (LIKE_U, {"leading_keys": None}, True),
        (LIKE_U, {"leading_keys": EVERY_VALUE}, False),
        ({"ForAnyValue:StringEquals": {"dynamodb:Attributes": ["a"]}}, {"attributes": ("a", "b")}, True),
        ({"ForAnyValue:StringEquals": {"dynamodb:Attributes": ["a"]}}, {"attributes": ("b",)}, False),
        ({"ForAnyValue:StringEquals": {"dynamodb:Attributes": ["a"]}}, {"attributes": None}, False),
        ({"StringEquals": {"dynamodb:Select": "COUNT"}}, {"select": ("COUNT",)}, True),
        ({"StringEquals": {"dynamodb:Select": "COUNT"}}, {}, False),
        ({"StringEqualsIfExists": {"dynamodb:Select": "COUNT"}}, {}, True),
        ({"StringEqualsIgnoreCase": {"dynamodb:Select": "count"}}, {"select": ("COUNT",)}, True),
        ({"StringNotEquals": {"dynamodb:Select": "COUNT"}}, {}, True),
        ({"StringNotEquals": {"dynamodb:Select": ["COUNT", "X"]}}, {"select": ("X",)}, False),
        ({"StringNotLike": {"dynamodb:Select": "C*"}}, {"select": ("COUNT",)}, False),
        ({"StringLike": {"dynamodb:Select": "c*"}}, {"select": ("COUNT",)}, False),
        ({"Null": {"dynamodb:LeadingKeys": "true"}}, {"leading_keys": EVERY_VALUE}, True),
        ({"Null": {"dynamodb:LeadingKeys": False}}, {"leading_keys": ("a",)}, True),
        ({"IpAddress": {"aws:SourceIp": "10.0.0.9/24"}}, {"source_address": "10.0.0.200"}, True),
        ({"IpAddress": {"aws:SourceIp": "10.0.0.0/24"}}, {"source_address": "::ffff:10.0.0.200"}, True),
        ({"IpAddress": {"aws:SourceIp": "10.0.0.0/24"}}, {"source_address": "2001:db8::1"}, False),
        ({"IpAddress": {"aws:SourceIp": "2001:db8::/32"}}, {"source_address": "2001:db8::1"}, True),
        ({"NotIpAddress": {"aws:SourceIp": "10.0.0.0/24"}}, {"source_address": "10.0.0.1"}, False),
        ({"Bool": {"aws:SecureTransport": True}}, {"is_secure": "true"}, True),
        ({"DateGreaterThan": {"aws:CurrentTime": "2020-01-01T00:00:00Z"}}, {"now": "1577836801"}, True),
        ({"DateGreaterThan": {"aws:CurrentTime": "2020-01-01T00:00:00Z"}}, {"now": "1577836800"}, False),
        ({"NumericLessThanEquals": {"aws:EpochTime": "100"}}, {"now": "100"}, True),
        ({"ArnLike": {"aws:PrincipalArn": "arn:aws:iam::*:user/a*"}}, {"principal": "arn:aws:iam::1:user/a/b"}, True),
        ({"ArnLike": {"aws:PrincipalArn": "arn:aws:iam:*:1:user/b"}}, {"principal": "arn:aws:iam::1:user/a"}, False),
        ({"ArnNotEquals": {"aws:SourceArn": "arn:aws:s3:::b"}}, {}, True),
        ({"StringEquals": {"aws:SourceAccount": "1"}}, {}, False),
        ({"StringEquals": {"dynamodb:Select": "X", "aws:username": "y"}}, {"select": ("X",), "user": "z"}, False),
        ({"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["${aws:username}"]}}, {"leading_keys": ("alice*",)}, True),
        ({"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["${aws:username}"]}}, {"leading_keys": ("alice2",)}, False),
    ],
)  # fmt: skip
def test_conditions(conditions: dict[str, Any], facts: dict[str, Any], holds: bool) -> None:
    """ "Condition operators" and "Conditions with multiple context keys or values" (IAM guide)."""
    expected = Verdict.ALLOWED if holds else Verdict.NOT_ALLOWED
    assert verdict(read(where(**conditions)), **facts) is expected


def test_an_unbounded_fact_meets_no_allowance_and_every_denial() -> None:
    """Stricter than IAM, which takes it for absent (docs/operate/grants.md)."""
    condition = {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["u1"]}}
    allowing = read(one(action="dynamodb:Scan", Condition=condition))
    facts = {"permission": Permission.SCAN, "leading_keys": EVERY_VALUE}
    assert verdict(allowing, **facts) is Verdict.NOT_ALLOWED
    refusing = read(one(action="*"), {**one(Condition={"ForAnyValue:StringEquals": {
        "dynamodb:LeadingKeys": ["u2"]}}, action="*"), "Effect": "Deny"})  # fmt: skip
    assert verdict(refusing, **facts) is Verdict.REFUSED
    assert verdict(refusing, leading_keys=("u1",)) is Verdict.ALLOWED


def test_a_pattern_is_matched_in_linear_time() -> None:
    pattern = Glob.of("a*" * 40 + "b")
    assert not pattern.matches("a" * 2_000)
    assert pattern.matches("a" * 100 + "b")
    assert Glob.of("T*").matches("T/index/x")
    assert not Glob.of("T*", "/").matches("T/index/x")


def test_only_a_policy_without_limits_is_unrestricted() -> None:
    """An unrestricted caller skips authorization.

    A caller is unrestricted only if nothing is refused or conditional.
    """
    assert EVERYTHING.is_everything
    assert not read(one("*", "dynamodb:*")).statements[0].conditions
    assert read(one("*", "*")).is_everything
    assert not read(one("*", "*"), {**one("*", "dynamodb:DeleteTable"), "Effect": "Deny"}).is_everything
    assert not read(one("*", "*", Condition={"Bool": {"aws:SecureTransport": "true"}})).is_everything
    assert not read(one("arn:aws:dynamodb:*:*:table/T", "*")).is_everything


def refused_of(policy: Policy, permission: Permission, path: str) -> str | None:
    """Why a request that names a resource is refused before the resource is looked up."""
    authorization = Authorization(policy, ALICE, RequestSource("127.0.0.1", False), 0)
    refusal = authorization.refusal_of_named([NamedResource((permission,), "shared", path)])
    return None if refusal is None else refusal.by


def test_a_request_is_refused_early_if_no_grant_can_allow_its_resource() -> None:
    """This decision comes before the request is decoded, so it does not depend on the existence of the resource."""
    conditional = read(where(**LIKE_U))
    assert refused_of(conditional, Permission.READ, "T") is None
    assert refused_of(conditional, Permission.READ, "U") == "not allowed"
    of_index = read(one(f"{T}/index/I", "dynamodb:Query"))
    assert refused_of(of_index, Permission.QUERY, "T/index/I") is None
    assert refused_of(of_index, Permission.QUERY, "T/index/J") == "not allowed"
    assert refused_of(of_index, Permission.QUERY, "T") == "not allowed"
    refused = read(one("*", "*"), {**one(f"{T}*", "dynamodb:GetItem"), "Effect": "Deny"})
    assert refused_of(refused, Permission.READ, "T") == "refused"
    assert refused_of(refused, Permission.READ, "U") is None


def test_a_request_is_refused_early_if_no_grant_can_allow_any_resource() -> None:
    """The request names no resource that can be read."""
    reading = Purpose((Permission.READ,))
    assert read(where(**LIKE_U)).possible_verdict(reading, Given()) is Verdict.ALLOWED
    assert read(one(action="dynamodb:PutItem")).possible_verdict(reading, Given()) is Verdict.NOT_ALLOWED
    refusal = {**one("*", "dynamodb:GetItem"), "Effect": "Deny"}
    assert read(one("*", "*"), refusal).possible_verdict(reading, Given()) is Verdict.REFUSED


@pytest.mark.parametrize(
    "document",
    [
        {"Version": "1"},
        {"Version": "2", "Statement": []},
        {"Version": "1", "Statement": [{"Effect": "Allow", "Action": "ots", "Resource": "*"}]},
        {"Version": "1", "Statement": [{"Effect": "Allow", "Action": "ots:*", "Resource": "instance/x"}]},
        {"Version": "1", "Statement": [{"Effect": "Allow", "Action": "ots:*", "Resource": "acs:ots:*:*:bucket/x"}]},
        {"Version": "1", "Statement": [{"Effect": "Allow", "Action": "ots:*", "Resource": "*", "Condition": {
            "StringEquals": {"acs:MFAPresent": "true"}}}]},
        {"Version": "1", "Statement": [{"Effect": "Allow", "Action": "ots:*", "Resource": "*", "Principal": "*"}]},
    ],
)  # fmt: skip
def test_ram_policies_that_are_not_understood(document: dict[str, Any]) -> None:
    with pytest.raises(BadPolicy):
        policy_of(WrittenGrant("ram", json.dumps(document)), ALICE)


@pytest.mark.parametrize(
    "document",
    [{}, {"read": "T"}, {"read": [""]}, {"fly": ["T"]}, {"define": ["T"], "keys": ["u1"]}, {"keys": ["u1"]}],
)
def test_short_forms_that_are_not_understood(document: dict[str, Any]) -> None:
    with pytest.raises(BadPolicy):
        policy_of(WrittenGrant("short", json.dumps(document)), ALICE)


SINGLE = [name for name in OPERATIONS if not name.startswith(("Batch", "Bulk"))]


def ram(effect: str, action: str) -> Policy:
    statement = {"Effect": effect, "Action": f"ots:{action}", "Resource": "*"}
    return policy_of(WrittenGrant("ram", json.dumps({"Version": "1", "Statement": [statement]})), ALICE)


@each_row("operation", SINGLE)
def test_every_operation_of_table_store_is_an_action_of_ram(operation: str) -> None:
    """An action is permitted or refused by its name, whatever else the policy permits ("Custom RAM policy", Tablestore:
    an action is the name of an API operation).
    """
    purpose = OPERATIONS[operation].purpose
    access = Access(purpose.permissions[0], purpose.channel, "shared", "things", None)
    assert ram("Allow", action_of(operation)).decide(access).verdict is Verdict.ALLOWED
    refused = Policy((*EVERYTHING.statements, *ram("Deny", action_of(operation)).statements))
    assert refused.decide(access).verdict is Verdict.REFUSED


def test_a_tunnel_is_granted_apart() -> None:
    """Reading a tunnel permits neither GetRange nor GetStreamRecord. A refusal of these refuses the tunnel too."""
    access = Access(Permission.SCAN, Channel.SINGLE, "shared", "things", None)
    assert ram("Allow", "ConsumeTunnel").decide(access).verdict is Verdict.NOT_ALLOWED
    through_tunnel = access._replace(channel=Channel.TUNNEL)
    assert ram("Allow", "ConsumeTunnel").decide(through_tunnel).verdict is Verdict.ALLOWED
    assert ram("Allow", "GetRange").decide(through_tunnel).verdict is Verdict.NOT_ALLOWED
    assert ram("Deny", "GetRange").decide(through_tunnel).verdict is Verdict.REFUSED


def test_operations_that_alter_a_table_are_granted_separately() -> None:
    for operation in ("AddDefinedColumn", "DeleteDefinedColumn", "CreateIndex", "DropIndex"):
        access = Access(
            OPERATIONS[operation].purpose.permissions[0], Channel.SINGLE, "shared", "things", None
        )
        assert ram("Allow", "UpdateTable").decide(access).verdict is Verdict.NOT_ALLOWED
