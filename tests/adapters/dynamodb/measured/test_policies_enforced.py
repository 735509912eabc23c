"""Findings about refusals by table policies for otherwise unrestricted callers. Here a policy takes effect at once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tablegate.gateway.security.credentials import Credential, Scheme
from tablegate.gateway.security.grant_store import WrittenGrant, policy_of
from tests.gateway.security.test_resource_policies import ARN, credentials, server, statement  # noqa: F401

BY_NAME = {"TableName": "orders"}
TTL = {"TimeToLiveSpecification": {"Enabled": True, "AttributeName": "ttl"}}
RECOVERY = {"PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}}
TAGS = {"ResourceArn": ARN, "Tags": [{"Key": "a", "Value": "b"}]}


@pytest.fixture
def admin(server: Any) -> Any:  # noqa: F811
    """The server with ADMIN, a caller with a grant of every action. (FULL is like the root of an account.)"""
    document = {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": "dynamodb:*", "Resource": "*"},
            {"Effect": "Deny", "Action": "dynamodb:ListTables", "Resource": "*"},
        ],
    }
    own = policy_of(WrittenGrant("iam", json.dumps(document)), credentials()[0].identity)
    made = Credential(Scheme.AWS, "ADMIN", ("secret",), policy=own)
    server.gateway.credentials.replace([*credentials(), made])
    return server


def test_a_refusal_is_of_one_action(admin):
    """TABLE-432: UpdateTable by name and by ARN, with and without a change. All other actions are permitted."""
    admin.put(statement("Deny", "dynamodb:UpdateTable"))
    for name in ("orders", ARN):
        for change in (
            {"DeletionProtectionEnabled": False},
            {"StreamSpecification": {"StreamEnabled": False}},
        ):
            assert not admin.may("ADMIN", "UpdateTable", {"TableName": name, **change})
    for operation, given in (
        ("DescribeTable", BY_NAME),
        ("UpdateTimeToLive", {**BY_NAME, **TTL}),
        ("TagResource", TAGS),
        ("UpdateContinuousBackups", {**BY_NAME, **RECOVERY}),
        ("GetResourcePolicy", {"ResourceArn": ARN}),
        ("DeleteTable", BY_NAME),
    ):
        assert admin.may("ADMIN", operation, given), operation


def test_a_policy_that_denies_its_removal_is_replaced(admin):
    """TABLE-270"""
    admin.put(statement("Deny", "dynamodb:DeleteResourcePolicy"))
    assert admin.may("ADMIN", "GetResourcePolicy", {"ResourceArn": ARN})
    assert not admin.may("ADMIN", "DeleteResourcePolicy", {"ResourceArn": ARN})
    assert "with an explicit deny in a resource-based policy" in admin.text
    admin.put(statement("Allow", "dynamodb:GetItem"))
    assert admin.may("ADMIN", "DeleteResourcePolicy", {"ResourceArn": ARN})


def test_a_confirmed_lock_out_holds_for_the_policy_alone(admin):
    """TABLE-210"""
    actions = ["dynamodb:PutResourcePolicy", "dynamodb:DeleteResourcePolicy"]
    admin.put(statement("Deny", actions), confirmed=True)
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement("Allow", "dynamodb:GetItem")]})
    again = {"ResourceArn": ARN, "Policy": document, "ConfirmRemoveSelfResourceAccess": True}
    for operation, given in (("PutResourcePolicy", again), ("DeleteResourcePolicy", {"ResourceArn": ARN})):
        assert not admin.may("ADMIN", operation, given)
        assert f"is not authorized to perform: dynamodb:{operation} on resource: {ARN}" in admin.text
        assert "with an explicit deny in a resource-based policy" in admin.text
    for operation, given in (
        ("GetResourcePolicy", {"ResourceArn": ARN}),
        ("DescribeTable", BY_NAME),
        ("TagResource", TAGS),
        ("DeleteTable", BY_NAME),
    ):
        assert admin.may("ADMIN", operation, given), operation


def test_a_denied_deletion_comes_before_its_protection(admin):
    """TABLE-431: an unrestricted caller is refused, too, until the policy permits it."""
    assert admin.may("FULL", "UpdateTable", {**BY_NAME, "DeletionProtectionEnabled": True})
    admin.put(statement("Deny", "dynamodb:DeleteTable"))
    for caller in ("ADMIN", "FULL"):
        assert not admin.may(caller, "DeleteTable", BY_NAME)
    admin.put(statement("Allow", "dynamodb:GetItem"))
    assert admin.may("FULL", "UpdateTable", {**BY_NAME, "DeletionProtectionEnabled": False})
    assert admin.may("ADMIN", "DeleteTable", BY_NAME)
