"""Accesses of commands, and the purposes of the operations of all dialects."""

from __future__ import annotations

import typing

import pytest

from tablegate.adapters.azuretable.operation_table import OPERATIONS as AZURE
from tablegate.adapters.dynamodb.operation_table import OPERATIONS as DYNAMODB
from tablegate.adapters.tablestore.operation_table import OPERATIONS as TABLE_STORE
from tablegate.gateway.features.jobs import job_commands
from tablegate.gateway.model.authorization.authorizations import (
    Authorization,
    CallerIdentity,
    RequestSource,
)
from tablegate.gateway.model.authorization.conditions import EVERY
from tablegate.gateway.model.authorization.grants import EVERYTHING, Effect, Policy, Resources, Statement
from tablegate.gateway.model.authorization.permissions import UNKNOWN_PURPOSE, Channel, Permission, Purpose
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.security import iam_policies, ram_policies
from tests.support.ram import action_of


def test_a_command_that_declares_no_access_needs_an_unrestricted_caller() -> None:
    class Undeclared(Command[None]):
        """A command without accesses, on a table that the caller may read."""

        table = "music"

    [access] = Undeclared().accesses(Purpose((Permission.READ,)))
    assert (access.permission, access.namespace, access.path) == (Permission.ADMINISTER, "", "")
    reader = Statement(Effect.ALLOW, frozenset({(Permission.READ, Channel.SINGLE)}), (Resources(EVERY),))
    for policy, may in ((EVERYTHING, True), (Policy((reader,)), False)):
        caller = Authorization(policy, CallerIdentity("", "", "", ""), RequestSource("", False), 0)
        caller.purpose = Purpose((Permission.READ,))
        assert (caller.refusal([Undeclared()]) is None) is may


@pytest.mark.parametrize("operations", [DYNAMODB, AZURE, TABLE_STORE])
def test_every_operation_declares_its_purpose(operations: dict[object, typing.Any]) -> None:
    assert [name for name, row in operations.items() if row.purpose == UNKNOWN_PURPOSE] == []


def test_every_operation_of_dynamodb_can_be_granted_by_its_name() -> None:
    """Transactions and statements have no action of their own, but those of their parts (service authorization reference)."""
    parts = {
        "TransactGetItems", "TransactWriteItems", "ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction",
    }  # fmt: skip
    for name, row in DYNAMODB.items():
        if name not in parts:
            doors = iam_policies.ACTIONS[name]
            assert any(
                (permission, row.purpose.channel) in doors for permission in row.purpose.permissions
            ), name


def test_every_operation_of_table_store_can_be_granted_by_its_name() -> None:
    for name, row in TABLE_STORE.items():
        if name not in ("AddDefinedColumn", "DeleteDefinedColumn"):  # parts of ots:UpdateTable
            doors = ram_policies.ACTIONS[action_of(name)]
            assert any(
                (permission, row.purpose.channel) in doors for permission in row.purpose.permissions
            ), name


def test_permissions_of_bulk_jobs_include_those_of_single_operations() -> None:
    """So that a refusal of PutItem is one of StartBulkPutItems, and one of Scan is one of an export (issue 23, point 2)."""
    for permission, expected in (
        (Permission.LOAD, [Permission.LOAD, Permission.PUT]),
        (Permission.EXPORT, [Permission.EXPORT, Permission.SCAN]),
        (Permission.IMPORT, [Permission.IMPORT]),
    ):
        command = job_commands.StartJob("kind", "space", "music", {}, "running", 1)
        found = list(command.accesses(Purpose((permission,))))
        assert [(access.permission, access.path) for access in found] == [
            (each, "music") for each in expected
        ]


@pytest.mark.parametrize("permission", [Permission.DESCRIBE_JOB, Permission.CANCEL_JOB])
def test_one_job_is_authorized_by_its_own_name(permission: Permission) -> None:
    command = job_commands.ListJobs("space", "kind", table_name="music", path="music/export/1-2")
    [access] = command.accesses(Purpose((permission,)))
    assert (access.permission, access.path) == (permission, "music/export/1-2")


def test_a_list_of_jobs_is_of_the_account() -> None:
    [access] = job_commands.ListJobs("space", "kind").accesses(Purpose((Permission.LIST_JOBS,)))
    assert (access.permission, access.path) == (Permission.LIST_JOBS, "")
