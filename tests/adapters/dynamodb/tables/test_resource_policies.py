"""Resource policies: stored, conditional on revisions, limited (API reference; botocore 1.44.5).

tests/adapters/dynamodb/measured/test_policies.py tests measured answers.
tests/gateway/security/test_resource_policies.py tests their evaluation.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tablegate.adapters.dynamodb.wire import limits
from tablegate.gateway.model.commands.table_commands import CreateTable, FindTable
from tablegate.gateway.model.tables.tables import RESOURCE_POLICIES

TABLE_ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/orders"
STREAM = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}


ROOT = {"AWS": "arn:aws:iam::000000000000:root"}


def document(**more: Any) -> str:
    """A document in the canonical form (ack-api-quirks, TABLE-351)."""
    statement = {"Effect": "Allow", "Principal": ROOT, "Action": "dynamodb:GetItem", "Resource": "*", **more}
    order = ["Sid", "Effect", "Principal"]
    ordered = {name: statement[name] for name in (*order, *statement) if name in statement}
    return json.dumps({"Version": "2012-10-17", "Statement": [ordered]}, separators=(",", ":"))


@pytest.fixture
def arn(service) -> str:
    return service.table()["TableArn"]


def put(service, arn: str, text: str, **more: Any) -> str:
    answer = service.call("PutResourcePolicy", {"ResourceArn": arn, "Policy": text, **more})
    assert service.last.status == 200, answer
    return answer["RevisionId"]


def code(service, operation: str, arn: str, **more: Any) -> str:
    return service.error(operation, {"ResourceArn": arn, **more})[0]


def test_a_policy_is_put_got_and_taken_away(service, arn):
    assert code(service, "GetResourcePolicy", arn) == "PolicyNotFoundException"
    revision = put(service, arn, document())
    assert revision.isdigit()
    assert len(revision) >= 13
    shown = service.call("GetResourcePolicy", {"ResourceArn": arn})
    assert shown == {"Policy": document(), "RevisionId": revision}
    assert service.call("DeleteResourcePolicy", {"ResourceArn": arn}) == {"RevisionId": revision}
    again = service.call("DeleteResourcePolicy", {"ResourceArn": arn})  # the deletion's (TABLE-205)
    assert int(again["RevisionId"]) > int(revision)
    assert code(service, "GetResourcePolicy", arn) == "PolicyNotFoundException"


def test_the_same_policy_again_has_the_same_revision_and_another_a_later_one(service, arn):
    first = put(service, arn, document())
    assert put(service, arn, document()) == first
    assert int(put(service, arn, document(Sid="other"))) > int(first)


def test_a_change_can_expect_a_revision(service, arn):
    old = document()
    changes = ["PutResourcePolicy", "DeleteResourcePolicy"]
    for operation in changes:
        given = {"ExpectedRevisionId": "1700000000000", **({"Policy": old} if operation[0] == "P" else {})}
        assert code(service, operation, arn, **given) == "PolicyNotFoundException"
    first = put(service, arn, old, ExpectedRevisionId="NO_POLICY")
    for expected in ("NO_POLICY", str(int(first) + 1)):
        given = {"ExpectedRevisionId": expected}
        assert code(service, "PutResourcePolicy", arn, Policy=old, **given) == "PolicyNotFoundException"
        assert code(service, "DeleteResourcePolicy", arn, **given) == "PolicyNotFoundException"
    second = put(service, arn, document(Sid="other"), ExpectedRevisionId=first)
    assert code(service, "DeleteResourcePolicy", arn, ExpectedRevisionId=first) == "PolicyNotFoundException"
    service.call("DeleteResourcePolicy", {"ResourceArn": arn, "ExpectedRevisionId": second})
    assert service.last.status == 200


@pytest.mark.parametrize("filler", [" ", "é"])
def test_a_policy_has_at_most_20_kilobytes(service, arn, filler):
    """White space counts (API reference, PutResourcePolicy)."""
    shortest = document() if filler == " " else document(Sid="X").replace("X", "")
    room = limits.RESOURCE_POLICY_BYTES - len(shortest)
    odd, most = room % len(filler.encode()), room // len(filler.encode())
    padding = " " * odd

    def of(fillers: int) -> str:
        if filler == " ":
            return shortest + filler * fillers
        return shortest.replace('"Sid":""', f'"Sid":"{filler * fillers}"') + padding

    assert len(of(most).encode()) == 20 * 1024
    put(service, arn, of(most))
    too_long = of(most) + " "
    assert code(service, "PutResourcePolicy", arn, Policy=too_long) == "ValidationException"


BAD = [
    {"Principal": {"AWS": "arn:aws:iam::000000000000:user/*"}},
    {"Principal": {"AWS": "nobody"}},
    {"Principal": {"AWS": []}},
    {"Principal": {}},
    {"Principal": {"Who": "*"}},
    {"Principal": None},
    {"NotPrincipal": "*"},
    {"Action": "GetItem"},
    {"Action": []},
    {"Effect": "Maybe"},
    {"Resource": "orders"},
    {"Resource": "arn:aws:s3:::orders"},
    {"Condition": {"StringEquals": {"aws:Nothing": "x"}}},
    {"Whatever": "x"},
]


@pytest.mark.parametrize("wrong", BAD, ids=str)
def test_an_unsupported_policy_is_refused_and_not_stored(service, arn, wrong):
    assert code(service, "PutResourcePolicy", arn, Policy=document(**wrong)) == "ValidationException"
    assert code(service, "GetResourcePolicy", arn) == "PolicyNotFoundException"


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"Statement": []}'])
def test_a_text_that_is_no_policy_is_refused(service, arn, text):
    assert code(service, "PutResourcePolicy", arn, Policy=text) == "ValidationException"


@pytest.mark.parametrize(
    "right",
    [
        {"Principal": {"AWS": ["*", "000000000000", "arn:aws:iam::000000000000:root"]}, "Effect": "Deny"},
        {"Principal": {"AWS": "arn:aws:iam::000000000000:user/somebody"}},
        {"Principal": {"Service": "replication.dynamodb.amazonaws.com"}},
        {"Resource": [TABLE_ARN, TABLE_ARN + "/index/*"]},
        {"Condition": {"StringEquals": {"aws:SourceAccount": "000000000000"}}},
        {"Condition": {"ArnLike": {"aws:SourceArn": "arn:aws:s3:::x"}}},
    ],
    ids=str,
)
def test_principals_resources_and_conditions(service, arn, right):
    put(service, arn, document(**right))


def test_a_policy_that_locks_its_writer_out_is_confirmed(service, arn):
    """AccessDeniedException: ack-api-quirks, TABLE-210."""
    shut = document(Effect="Deny", Principal="*", Action="dynamodb:*")
    assert code(service, "PutResourcePolicy", arn, Policy=shut) == "AccessDeniedException"
    put(service, arn, document(Effect="Deny", Principal="*", Action="dynamodb:DeleteItem"))
    put(service, arn, shut, ConfirmRemoveSelfResourceAccess=True)


@pytest.mark.parametrize(
    ("said", "is_taken"), [("true", True), ("True", True), ("false", False), ("", False)]
)
def test_the_removal_of_own_access_may_be_confirmed_by_a_header(service, arn, said, is_taken):
    """x-amz-confirm-remove-self-resource-access (PutResourcePolicy, API reference, "Request Syntax")."""
    given = {"ResourceArn": arn, "Policy": document(Effect="Deny", Principal="*", Action="dynamodb:*")}
    service.call("PutResourcePolicy", given, x_amz_confirm_remove_self_resource_access=said)
    assert (service.last.status == 200) is is_taken


def test_a_new_table_may_have_one(service):
    arn = service.table(ResourcePolicy=document())["TableArn"]
    shown = service.call("GetResourcePolicy", {"ResourceArn": arn})
    assert shown["Policy"] == document()


def test_other_changes_of_a_table_keep_its_policy(service, arn):
    put(service, arn, document())
    service.call("TagResource", {"ResourceArn": arn, "Tags": [{"Key": "a", "Value": "b"}]})
    service.update(DeletionProtectionEnabled=True)
    assert service.call("GetResourcePolicy", {"ResourceArn": arn})["Policy"] == document()


def test_a_table_that_is_made_like_another_has_none(service, arn):
    """Whom the policy of a table lets in is not let into a copy by it."""
    put(service, arn, document())
    [table] = service.gateway.engine.run([FindTable("shared", "orders")])
    assert RESOURCE_POLICIES in table.properties
    made = CreateTable.like(table, "shared", "restored")
    assert made.properties.keys() == table.properties.keys() - {RESOURCE_POLICIES}


def test_a_stream_has_a_policy_of_its_own(service):
    table = service.table(StreamSpecification=STREAM)
    arn, stream = table["TableArn"], table["LatestStreamArn"]
    put(service, stream, document(Action="dynamodb:GetRecords", Resource=stream))
    assert code(service, "GetResourcePolicy", arn) == "PolicyNotFoundException"
    assert "GetRecords" in service.call("GetResourcePolicy", {"ResourceArn": stream})["Policy"]
    assert code(service, "PutResourcePolicy", stream, Policy=document(Resource=arn)) == "ValidationException"
    service.call("DeleteResourcePolicy", {"ResourceArn": stream})
    assert code(service, "GetResourcePolicy", stream) == "PolicyNotFoundException"


@pytest.mark.parametrize("operation", ["PutResourcePolicy", "GetResourcePolicy", "DeleteResourcePolicy"])
def test_policies_of_missing_resources_are_not_found(service, arn, operation):
    more = {"Policy": document()} if operation.startswith("Put") else {}
    assert code(service, operation, arn + "x", **more) == "ResourceNotFoundException"
    stream = arn + "/stream/2020-01-01T00:00:00.000"
    # A document is checked before the resource is looked for (TABLE-212).
    more |= {"Policy": document(Action="dynamodb:GetRecords", Resource=stream)} if more else {}
    assert code(service, operation, stream, **more) == "ResourceNotFoundException"
    assert code(service, operation, "orders", **more) == "ValidationException"
    assert code(service, operation, arn + "/index/x", **more) == "ValidationException"
