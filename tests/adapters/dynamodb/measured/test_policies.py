"""Findings of table-policy-kinesis-autoscaling.md about resource policies. Full texts of revisions: moto's tests that are
verified against the service (test_dynamodb_resource_policies.py)."""

from __future__ import annotations

import json
from typing import Any

import pytest

ACCOUNT = "000000000000"
ARN = f"arn:aws:dynamodb:us-east-1:{ACCOUNT}:table/orders"
ROOT = f"arn:aws:iam::{ACCOUNT}:root"
INVALID = "One or more parameter values were invalid: "
PUBLIC = (
    "Resource-based policy grants unbounded access in one or more elements. "
    "Please revise the policy to ensure least-privilege form of access"
)
NOT_FOUND = "Resource-based policy not found for the provided ResourceArn: "
MISSING = "Requested resource not found: "
LOCKED_OUT = "The new resource policy will not allow you to update the resource policy in the future."
STREAM = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
OPERATIONS = ["GetResourcePolicy", "PutResourcePolicy", "DeleteResourcePolicy"]
PLAIN: dict[str, Any] = {
    "Sid": "Plain",
    "Effect": "Allow",
    "Principal": {"AWS": ROOT},
    "Action": "dynamodb:GetItem",
    "Resource": ARN,
}


def policy(*statements: dict[str, Any], **changes: Any) -> str:
    """Return a document of these statements, or of the plain one with changes. None removes a member."""
    listed = list(statements) or [{**PLAIN, **changes}]
    listed = [{name: value for name, value in each.items() if value is not None} for each in listed]
    return json.dumps({"Version": "2012-10-17", "Statement": listed}, separators=(",", ":"))


@pytest.fixture
def arn(service) -> str:
    return service.table()["TableArn"]


def put(service, text: str, arn: str = ARN, **more: Any) -> str:
    answer = service.call("PutResourcePolicy", {"ResourceArn": arn, "Policy": text, **more})
    assert service.last.status == 200, answer
    return answer["RevisionId"]


def got(service, arn: str = ARN) -> str:
    return service.call("GetResourcePolicy", {"ResourceArn": arn})["Policy"]


def refused(service, operation: str, arn: str = ARN, **more: Any) -> tuple[str, str]:
    given = {"Policy": policy()} if operation == "PutResourcePolicy" else {}
    return service.error(operation, {"ResourceArn": arn, **given, **more})


def test_a_table_that_never_had_a_policy_has_none_to_read_or_update(service, arn):
    """TABLE-205"""
    assert refused(service, "GetResourcePolicy") == ("PolicyNotFoundException", NOT_FOUND + arn)
    for _ in range(2):
        assert service.call("DeleteResourcePolicy", {"ResourceArn": arn}) == {}
    text = f"{NOT_FOUND}Requested update for policy with revision id 123456789, but table orders has no associated policy."
    for operation in ("PutResourcePolicy", "DeleteResourcePolicy"):
        assert refused(service, operation, ExpectedRevisionId="123456789") == (
            "PolicyNotFoundException",
            text,
        )


def test_a_second_delete_has_the_revision_of_the_deletion(service, clock, arn):
    """TABLE-205, TABLE-246"""
    revision = put(service, policy())
    clock.ms += 16_000
    assert service.call("DeleteResourcePolicy", {"ResourceArn": arn}) == {"RevisionId": revision}
    clock.ms += 2_000
    again = service.call("DeleteResourcePolicy", {"ResourceArn": arn})
    assert again == {"RevisionId": str(int(revision) + 16_000)}
    for operation in ("PutResourcePolicy", "DeleteResourcePolicy"):
        code, text = refused(service, operation, ExpectedRevisionId=revision)
        assert code == "PolicyNotFoundException"
        assert "but table orders has no associated policy" in text


EQUIVALENT = {
    "indented": json.dumps(json.loads(policy()), indent=2),
    "reordered": json.dumps(
        {"Statement": [dict(reversed(PLAIN.items()))], "Version": "2012-10-17"},
    ),
    "listed action": policy(Action=["dynamodb:GetItem"]),
    "account id": policy(Principal={"AWS": ACCOUNT}),
    "account twice": policy(Principal={"AWS": [ACCOUNT, ROOT]}),
    "lower-case effect": policy(Effect="allow"),
    "statement alone": json.dumps({"Version": "2012-10-17", "Statement": PLAIN}),
    "escaped": policy().replace("Plain", "Pl\\u0061in"),
}


@pytest.mark.parametrize("spelling", EQUIVALENT)
def test_an_equivalent_policy_changes_nothing(service, clock, arn, spelling):
    """TABLE-207, TABLE-208, TABLE-351, TABLE-352, TABLE-355"""
    revision = put(service, EQUIVALENT[spelling])
    assert revision == str(clock.ms)
    assert len(revision) == 13
    assert got(service) == policy()
    clock.ms += 1
    assert put(service, policy()) == revision
    assert put(service, EQUIVALENT[spelling]) == revision


def test_a_revision_is_a_moment_and_not_a_digest(service, clock, arn):
    """TABLE-207"""
    first = put(service, policy())
    second = put(service, policy(Sid="Other"))
    assert int(put(service, policy())) > int(second) > int(first)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"Action": ["dynamodb:Query", "dynamodb:GetItem"]}, {}),
        ({"Action": ["dynamodb:GetItem", "dynamodb:GetItem"]}, {}),
        ({"Action": "dynamodb:getitem"}, {}),
        ({"Action": None, "NotAction": "dynamodb:DeleteTable"}, {}),
        ({"Resource": [ARN + "/index/*", ARN]}, {}),
        ({"Resource": [ARN]}, {"Resource": ARN}),
        ({"Sid": None}, {}),
        (
            {"Condition": {"StringEquals": {"aws:PrincipalAccount": [ACCOUNT]}}},
            {"Condition": {"StringEquals": {"aws:PrincipalAccount": ACCOUNT}}},
        ),
        ({"Principal": "*", "Condition": {"StringEquals": {"aws:PrincipalOrgID": "o-abcdefghij"}}}, {}),
    ],
    ids=str,
)
def test_only_lists_of_one_are_rewritten(service, arn, given, shown):
    """TABLE-353, TABLE-351 (NotAction), TABLE-355 (no Sid is made up)"""
    put(service, policy(**given))
    assert json.loads(got(service)) == json.loads(policy(**{**given, **shown}))


def test_the_canonical_form_is_a_fixed_point(service, arn):
    """TABLE-351, TABLE-208: minified, members in one order, and white space counts for nothing."""
    condition = {"StringEquals": {"aws:PrincipalAccount": ACCOUNT}}
    scrambled = {"Condition": condition, **dict(reversed(PLAIN.items()))}
    put(service, json.dumps({"Statement": [scrambled], "Version": "2012-10-17"}) + " " * 19_000)
    shown = got(service)
    assert shown == policy({**PLAIN, "Condition": condition})
    assert put(service, shown) == service.call("GetResourcePolicy", {"ResourceArn": arn})["RevisionId"]


def test_a_missing_version_is_shown_and_is_not_the_same_as_a_written_one(service, clock, arn):
    """TABLE-354"""
    bare = json.dumps({"Statement": [PLAIN]}, separators=(",", ":"))
    first = put(service, bare)
    shown = got(service)
    assert shown == policy().replace("2012-10-17", "2008-10-17")
    assert put(service, bare) == first
    second = put(service, shown)
    assert second != first
    assert put(service, bare) not in (first, second)


def test_a_change_of_another_revision_is_refused(service, clock, arn):
    """TABLE-209, TABLE-347 (no PolicyNotFoundException for the revision just returned)"""
    first = put(service, policy())
    second = put(service, policy(Sid="Second"), ExpectedRevisionId=first)
    for wrong in ("000000000000000000", first):
        text = (
            f"{NOT_FOUND}Requested update for policy with revision id {wrong}, "
            f"but the policy associated to target table orders has revision id {second}."
        )
        for operation in ("PutResourcePolicy", "DeleteResourcePolicy"):
            found = refused(service, operation, ExpectedRevisionId=wrong)
            assert found == ("PolicyNotFoundException", text)
    text = (
        f"{NOT_FOUND}Requested policy update expecting none to be present for table orders, "
        f"but a policy exists with revision id {second}."
    )
    found = refused(service, "PutResourcePolicy", ExpectedRevisionId="NO_POLICY")
    assert found == ("PolicyNotFoundException", text)
    answer = service.call("DeleteResourcePolicy", {"ResourceArn": arn, "ExpectedRevisionId": second})
    assert answer == {"RevisionId": second}


DENIED = {"Effect": "Deny", "Principal": "*"}
LOCKING = {
    "both": policy(**DENIED, Action=["dynamodb:PutResourcePolicy", "dynamodb:DeleteResourcePolicy"]),
    "put": policy(**DENIED, Action="dynamodb:PutResourcePolicy"),
    "the caller": policy(
        **DENIED,
        Action="dynamodb:PutResourcePolicy",
        Condition={"ArnLike": {"aws:PrincipalArn": f"arn:aws:iam::{ACCOUNT}:user/anybody"}},
    ),
}


@pytest.mark.parametrize("locking", LOCKING)
def test_a_policy_that_locks_its_writer_out_must_be_confirmed(service, arn, locking):
    """TABLE-210"""
    for given in ({}, {"ConfirmRemoveSelfResourceAccess": False}):
        found = refused(service, "PutResourcePolicy", Policy=LOCKING[locking], **given)
        assert found == ("AccessDeniedException", LOCKED_OUT)
    assert refused(service, "GetResourcePolicy")[0] == "PolicyNotFoundException"
    put(service, LOCKING[locking], ConfirmRemoveSelfResourceAccess=True)


def test_a_denial_of_the_removal_alone_needs_no_confirmation(service, arn):
    """TABLE-210, TABLE-270"""
    put(service, policy(**DENIED, Action="dynamodb:DeleteResourcePolicy"))
    someone = {"ArnLike": {"aws:PrincipalArn": f"arn:aws:iam::{ACCOUNT}:user/somebody"}}
    put(service, policy(**DENIED, Action="dynamodb:PutResourcePolicy", Condition=someone))


@pytest.mark.parametrize("resource", [ARN + "2", "*", ARN + "/index/by-day", [ARN, ARN + "2"]])
def test_a_resource_may_be_another_one(service, arn, resource):
    """TABLE-211"""
    put(service, policy(Resource=resource))


STREAM_ARN = ARN + "/stream/2026-10-09T00:29:04.041"
REFUSED = {
    "no resource": (
        policy(Resource=None),
        f"{INVALID}Invalid policy document: Missing required field Resource",
    ),
    "a stream": (
        policy(Resource=STREAM_ARN),
        (
            f"{INVALID}Invalid policy document: The relative-id "
            f'"table/orders/stream/2026-10-09T00:29:04.041" is invalid for ARN "{STREAM_ARN}"'
        ),
    ),
    "actions of streams": (
        policy(Action=["dynamodb:DescribeStream", "dynamodb:GetRecords"]),
        (
            f"{INVALID}Invalid policy document: The following action names are invalid: "
            '"dynamodb:GetRecords", "dynamodb:DescribeStream"'
        ),
    ),
    "21504 bytes": (policy().ljust(21_504), f"{INVALID}Maximum policy size of 20480 bytes exceeded"),
    "150 statements": (
        policy(*({**PLAIN, "Sid": f"S{at}"} for at in range(150))),
        f"{INVALID}Maximum policy size of 20480 bytes exceeded",
    ),
    "no JSON": ("{not json", f"{INVALID}Invalid policy document: This policy contains invalid Json"),
    "empty": ("", f"{INVALID}Invalid policy document: This policy contains invalid Json"),
    "no statements": (
        '{"Version":"2012-10-17","Statement":[]}',
        f"{INVALID}Invalid policy document: Could not parse the policy: Statement is empty!",
    ),
    "one Sid twice": (
        policy(PLAIN, PLAIN),
        f"{INVALID}Invalid policy document: The Statement Ids in the policy are not unique",
    ),
    "bare account": (policy(Principal=ACCOUNT), None),
    "everybody": (policy(Principal="*"), PUBLIC),
    "every principal": (policy(Principal={"AWS": "*"}), PUBLIC),
    "no principal's ARN": (
        policy(Principal={"AWS": [ROOT, "arn:aws:iam::nowhere:root"]}),
        f"{INVALID}Invalid principal in policy document.",
    ),
}


@pytest.mark.parametrize("wrong", REFUSED)
def test_a_policy_is_refused_and_the_former_one_stays(service, arn, wrong):
    """TABLE-211, TABLE-352, TABLE-356"""
    revision = put(service, policy())
    given, expected = REFUSED[wrong]
    code, text = refused(service, "PutResourcePolicy", Policy=given)
    assert code == "ValidationException"
    assert text == expected if expected else "Invalid policy document: Syntax error at position (1," in text
    assert service.call("GetResourcePolicy", {"ResourceArn": arn}) == {
        "Policy": policy(),
        "RevisionId": revision,
    }


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    ("resource", "code", "text"),
    [
        ("orders", "ValidationException", f"{INVALID}ARNs must start with 'arn:': orders"),
        (ARN + "2", "ResourceNotFoundException", f"{MISSING}Table: orders2 not found"),
        (ARN.replace("orders", "ORDERS"), "ResourceNotFoundException", f"{MISSING}Table: ORDERS not found"),
        (
            ARN.replace(ACCOUNT, "111111111111"),
            "ValidationException",
            "This action is only supported by accounts that match the resource owner\u2019s account.",
        ),
        *(
            (other, "ValidationException", f"{INVALID}Invalid resource Arn: {other}")
            for other in (ARN.replace("us-east-1", "us-west-2"), ARN.replace("arn:aws", "arn:aws-cn"))
        ),
        (
            ARN + "/index/by-day",
            "ValidationException",
            (
                f"{INVALID}Invalid resource arn provided, only table or stream is accepted. "
                f"Provided resource arn: {ARN}/index/by-day"
            ),
        ),
        (
            ARN + "/backup/01700000000000-0123abcd",
            "ValidationException",
            f"{INVALID}Provided Arn is not a DynamoDB resource arn: {ARN}/backup/01700000000000-0123abcd",
        ),
    ],
)
def test_arns_that_are_refused(service, arn, operation, resource, code, text):
    """TABLE-212, TABLE-014"""
    assert refused(service, operation, resource) == (code, text)


def test_arns_of_streams(service):
    """TABLE-212, TABLE-213: a stream has a separate policy, which the table's policy does not show."""
    stream = service.table(StreamSpecification=STREAM)["LatestStreamArn"]
    bogus = ARN + "/stream/2000-01-01T00:00:00.000"
    text = f"{MISSING}Stream: 2000-01-01T00:00:00.000 not found for Table: orders"
    for operation in ("GetResourcePolicy", "DeleteResourcePolicy"):
        assert refused(service, operation, bogus) == ("ResourceNotFoundException", text)
    code, text = refused(service, "PutResourcePolicy", bogus)
    assert code == "ValidationException"
    assert (
        text == f'{INVALID}Invalid policy document: The relative-id "table/orders" is invalid for ARN "{ARN}"'
    )
    assert refused(service, "GetResourcePolicy", stream) == ("PolicyNotFoundException", NOT_FOUND + stream)
    assert service.call("DeleteResourcePolicy", {"ResourceArn": stream}) == {}
    revision = put(service, policy(Action="dynamodb:GetRecords", Resource=stream), stream)
    assert refused(service, "GetResourcePolicy") == ("PolicyNotFoundException", NOT_FOUND + ARN)
    put(service, policy())
    assert "dynamodb:GetRecords" in got(service, stream)
    assert service.call("DeleteResourcePolicy", {"ResourceArn": stream}) == {"RevisionId": revision}
    assert got(service) == policy()


def test_policies_of_a_deleted_table(service):
    """TABLE-214"""
    stream = service.table(StreamSpecification=STREAM)["LatestStreamArn"]
    put(service, policy())
    service.call("DeleteTable", {"TableName": "orders"})
    for operation in OPERATIONS:
        text = f"{MISSING}Table: orders not found"
        assert refused(service, operation) == ("ResourceNotFoundException", text)
    assert refused(service, "GetResourcePolicy", stream) == ("PolicyNotFoundException", NOT_FOUND + stream)


def test_a_new_table_of_the_name_has_no_policy(service, arn):
    """TABLE-271, TABLE-436"""
    put(service, policy())
    service.call("DeleteTable", {"TableName": "orders"})
    service.table()
    assert refused(service, "GetResourcePolicy") == ("PolicyNotFoundException", NOT_FOUND + arn)
    assert service.call("DeleteResourcePolicy", {"ResourceArn": arn}) == {}


def test_a_table_that_is_made_with_a_policy(delayed, clock):
    """TABLE-233: readable while CREATING, at the revision of the creation, and no part of the description."""
    described = delayed.table(ResourcePolicy=policy())
    assert "olicy" not in str(described.keys())
    shown = delayed.call("GetResourcePolicy", {"ResourceArn": ARN})
    assert shown == {"Policy": policy(), "RevisionId": str(clock.ms)}
    clock.ms += 10_000
    assert "olicy" not in str(delayed.described().keys())


def test_policies_of_a_table_that_is_updated_or_deleted(delayed, clock):
    """TABLE-234, TABLE-236, TABLE-122"""
    delayed.table()
    clock.ms += 10_000
    throughput = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    updated = delayed.update(BillingMode="PROVISIONED", ProvisionedThroughput=throughput)
    assert updated["TableStatus"] == "UPDATING"
    revision = put(delayed, policy())
    clock.ms += 10_000
    delayed.call("DeleteTable", {"TableName": "orders"})
    assert got(delayed) == policy()
    assert put(delayed, policy()) == revision
    text = "Attempt to change a resource which is still in use: Table is being deleted: orders"
    changed = {"Policy": policy(Sid="Changed")}
    for operation, given in (("PutResourcePolicy", changed), ("DeleteResourcePolicy", {})):
        assert refused(delayed, operation, **given) == ("ResourceInUseException", text)
    clock.ms += 10_000
    assert refused(delayed, "GetResourcePolicy") == (
        "ResourceNotFoundException",
        f"{MISSING}Table: orders not found",
    )
