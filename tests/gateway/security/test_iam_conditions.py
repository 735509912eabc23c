"""Condition elements: what each operator finds right, and what is refused when a policy is read.

Source: "IAM JSON policy elements: Condition operators".
"""

from __future__ import annotations

from typing import Any

import pytest

from tablegate.gateway.model.authorization.conditions import ConditionKey, Glob
from tablegate.gateway.security.iam_conditions import BadPolicy, conditions_of
from tests.support.tables import each_row


class Request:
    """The facts of a request by name. Each has one text or several."""

    def __init__(self, **known: Any) -> None:
        self._known = {ConditionKey[name]: value for name, value in known.items()}

    def values_of(self, fact: ConditionKey) -> Any:
        return self._known.get(fact)

    def value(self, fact: ConditionKey) -> str | None:
        return self._known.get(fact)


def holds(element: Any, **known: Any) -> bool:
    request = Request(**known)
    return all(condition.holds(request, request, True) for condition in conditions_of(element, Glob.of))


@pytest.mark.parametrize(
    ("operator", "named", "value", "expected"),
    [
        ("StringEquals", "eu-west-1", "eu-west-1", True),
        ("StringEquals", "eu-west-1", "EU-WEST-1", False),
        ("StringEqualsIgnoreCase", "eu-WEST-1", "EU-west-1", True),
        ("StringNotEquals", "eu-west-1", "eu-west-1", False),
        ("StringNotEquals", ["a", "b"], "c", True),
        ("StringNotEquals", ["a", "b"], "b", False),
        ("StringLike", "eu-*-?", "eu-west-1", True),
        ("StringLike", "eu-*-?", "eu-west-10", False),
        ("StringNotLike", "eu-*", "us-east-1", True),
        ("stringlike", "eu-*", "eu-west-1", True),
    ],
)
def test_texts(operator: str, named: Any, value: str, expected: bool) -> None:
    assert holds({operator: {"aws:RequestedRegion": named}}, REGION=value) is expected


@pytest.mark.parametrize(
    ("operator", "network", "address", "expected"),
    [
        ("IpAddress", "203.0.113.0/24", "203.0.113.255", True),
        ("IpAddress", "203.0.113.0/24", "203.0.114.0", False),
        ("IpAddress", "203.0.113.9", "203.0.113.9", True),
        ("IpAddress", "203.0.113.0/24", "::ffff:203.0.113.7", True),
        ("IpAddress", "0.0.0.0/0", "2001:db8::1", False),
        ("NotIpAddress", "203.0.113.0/24", "203.0.114.0", True),
        ("IpAddress", "2001:DB8::/32", "2001:db8::7", True),
    ],
)
def test_addresses(operator: str, network: str, address: str, expected: bool) -> None:
    assert holds({operator: {"aws:SourceIp": network}}, SOURCE_ADDRESS=address) is expected


@each_row(
    "operator, seconds, expected",
    [
        ("DateLessThan", "1577836799", True),
        ("DateLessThan", "1577836800", False),
        ("DateLessThanEquals", "1577836800", True),
        ("DateGreaterThan", "1577836800", False),
        ("DateGreaterThanEquals", "1577836800", True),
        ("DateNotEquals", "1577836800", False),
    ],
)
@each_row("moment", ["2020-01-01T00:00:00Z", "2020-01-01T01:00:00+01:00", "1577836800", 1577836800])
def test_times(operator: str, moment: Any, seconds: str, expected: bool) -> None:
    assert holds({operator: {"aws:CurrentTime": moment}}, NOW=seconds) is expected


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("arn:aws:iam::123456789012:user/*", True),
        ("arn:aws:iam::*:user/a*", True),
        ("arn:aws:iam::210987654321:user/anna", False),
    ],
)
def test_resource_names_are_compared_part_by_part(named: str, expected: bool) -> None:
    element = {"ArnLike": {"aws:PrincipalArn": named}}
    assert holds(element, PRINCIPAL="arn:aws:iam::123456789012:user/anna") is expected


@pytest.mark.parametrize(
    ("quantifier", "keys", "expected"),
    [
        ("ForAllValues", ("anna", "ben"), True),
        ("ForAllValues", ("anna", "carl"), False),
        ("ForAllValues", (), True),
        ("ForAnyValue", ("carl", "ben"), True),
        ("ForAnyValue", ("carl",), False),
        ("ForAnyValue", (), False),
    ],
)
def test_keys_of_many_values(quantifier: str, keys: tuple[str, ...], expected: bool) -> None:
    element = {f"{quantifier}:StringEquals": {"dynamodb:LeadingKeys": ["anna", "ben"]}}
    assert holds(element, LEADING_KEYS=keys) is expected


@pytest.mark.parametrize(
    ("element", "expected"),
    [
        ({"StringEquals": {"aws:RequestedRegion": "x"}}, False),
        ({"StringNotEquals": {"aws:RequestedRegion": "x"}}, True),
        ({"StringEqualsIfExists": {"aws:RequestedRegion": "x"}}, True),
        ({"Null": {"aws:RequestedRegion": "true"}}, True),
        ({"Null": {"aws:RequestedRegion": False}}, False),
    ],
)
def test_a_fact_that_is_not_there(element: Any, expected: bool) -> None:
    assert holds(element) is expected


def test_all_operators_and_keys_must_hold() -> None:
    element = {
        "StringEquals": {"aws:RequestedRegion": "x", "aws:PrincipalAccount": "1"},
        "Bool": {"aws:SecureTransport": "true"},
    }
    assert holds(element, REGION="x", ACCOUNT="1", IS_SECURE="true")
    assert not holds(element, REGION="x", ACCOUNT="2", IS_SECURE="true")
    assert not holds(element, REGION="x", ACCOUNT="1", IS_SECURE="false")


@each_row(
    "element",
    [
        [],
        {"StringEquals": "x"},
        {"StringEquals": {"aws:RequestedRegion": []}},
        {"StringEquals": {"aws:RequestedRegion": [None]}},
        {"StringEquals": {"aws:Unknown": "x"}},
        {"StringMatches": {"aws:RequestedRegion": "x"}},
        {"StringEquals": {"dynamodb:LeadingKeys": "x"}},  # would never match
        {"StringEquals": {"aws:CurrentTime": "x"}},
        {"DateLessThan": {"aws:RequestedRegion": "2020-01-01"}},
        {"DateLessThan": {"aws:CurrentTime": "soon"}},
        {"NumericLessThan": {"aws:EpochTime": "nan"}},
        {"StringEquals": {"aws:SourceIp": "10.0.0.1"}},
        {"IpAddress": {"aws:SourceIp": "10.0.0.256"}},
        {"Bool": {"aws:SecureTransport": "yes"}},
        {"ArnLike": {"aws:PrincipalArn": "arn:aws:*:user/anna"}},  # six parts: a pattern goes over no colon
        {"Null": {"aws:RequestedRegion": ["true", "false"]}},
        {"ForAllValues:Null": {"dynamodb:LeadingKeys": "true"}},
        {"BinaryEquals": {"aws:UserId": "no base64"}},
    ],
)
def test_conditions_that_are_unknown_or_never_match_are_refused(element: Any) -> None:
    with pytest.raises(BadPolicy):
        list(conditions_of(element, Glob.of))
