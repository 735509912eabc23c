"""Resource policies: PutResourcePolicy, GetResourcePolicy, DeleteResourcePolicy, and the ResourcePolicy of CreateTable.

The table's properties hold the policies of a table and its streams. They apply to the requests of all dialects
(model/authorization/authorizations.py). Behaviour and texts: ack-api-quirks, measured in October 2026 (findings 205 to
214, 351 to 356), and moto's tests that are verified against the service
(tests/test_dynamodb/test_dynamodb_resource_policies.py). Shapes: botocore 1.44.5. Documents:
validation/resource_rules.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tablegate.adapters.dynamodb import DIALECT
from tablegate.adapters.dynamodb.call import Answer, CallContext
from tablegate.adapters.dynamodb.tables.properties import is_being_filled
from tablegate.adapters.dynamodb.validation import resource_rules
from tablegate.adapters.dynamodb.wire import error_texts, limits
from tablegate.adapters.dynamodb.wire.arns import partition_of
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.gateway.model.authorization import authorizations
from tablegate.gateway.model.authorization.accesses import Access
from tablegate.gateway.model.authorization.conditions import POSSIBLE, ConditionKey
from tablegate.gateway.model.authorization.grants import EVERYTHING, Policy, Verdict
from tablegate.gateway.model.authorization.permissions import Channel, Permission
from tablegate.gateway.model.commands.stream_commands import FindStream
from tablegate.gateway.model.commands.table_commands import AlterTable, FindTable
from tablegate.gateway.model.errors import StreamMissing, TableMissing
from tablegate.gateway.model.tables.tables import RESOURCE_POLICIES, Table
from tablegate.gateway.security.credentials import read_resource_policy

_ARN = re.compile(
    r"arn:(?P<partition>[^:/]+):dynamodb:(?P<region>[^:/]*):(?P<account>[^:/]*):table/(?P<table>[A-Za-z0-9_.-]{3,255})"
    r"(?:/(?P<kind>index|stream)/(?P<part>[A-Za-z0-9_.:-]+))?"
)
_NO_POLICY = "NO_POLICY"
_OF_CALLERS = frozenset(
    {
        ConditionKey.ACCOUNT,
        ConditionKey.PRINCIPAL,
        ConditionKey.PRINCIPAL_KIND,
        ConditionKey.USER,
        ConditionKey.USER_ID,
        ConditionKey.ORGANIZATION,
        ConditionKey.REGION,
    }
)
_Policies = Mapping[str, Mapping[str, str]]
"""Policies by stream label ("" for the table). The entry of a deleted policy has no text, and the revision of its deletion."""


async def put_resource_policy(call: CallContext) -> Answer:
    """PutResourcePolicy: set the policy of a table or stream.

    An equivalent policy changes nothing. Raises ServiceError.
    """
    arguments = call.input
    name, label = _resource(call)
    path = f"{name}/stream/{label}" if label else name
    text, decision = _read(call, arguments["Policy"], path)
    table = await _find(call, name, label)
    if not (arguments.get("ConfirmRemoveSelfResourceAccess") or _is_confirmed_in_head(call)):
        _check_access_is_kept(call, decision, path)
    policies = _policies(table)
    _expect(call, table, label)
    if label in policies and policies[label].get("text") == text:
        return {"RevisionId": policies[label]["revision"]}
    policy = {"text": text, "revision": _next_revision(call, policies.get(label))}
    await _save(call, table, {**policies, label: policy})
    return {"RevisionId": policy["revision"]}


def _is_confirmed_in_head(call: CallContext) -> bool:
    """Return True if the request header confirms the removal of the caller's own access.

    Some SDKs send this member as a header (PutResourcePolicy, API reference, "Request Syntax"; aws/aws-sdk-js-v3, the
    schema of PutResourcePolicyInput). botocore sends it in the body.
    """
    return call.headers.get("x-amz-confirm-remove-self-resource-access", "").lower() == "true"


async def get_resource_policy(call: CallContext) -> Answer:
    """GetResourcePolicy: the policy of a table or stream in its canonical form. Raises ServiceError."""
    name, label = _resource(call)
    table = await _find(call, name, label)
    policy = _policies(table).get(label, {})
    if "text" not in policy:
        raise _not_found(call.input["ResourceArn"])
    return {"Policy": resource_rules.with_version(policy["text"]), "RevisionId": policy["revision"]}


async def delete_resource_policy(call: CallContext) -> Answer:
    """DeleteResourcePolicy: remove the policy of a table or stream. Raises ServiceError.

    The answer has the revision of the policy, of its earlier deletion, or none.
    """
    name, label = _resource(call)
    table = await _find(call, name, label)
    policies = _policies(table)
    _expect(call, table, label)
    policy = policies.get(label)
    if policy is None:
        return {}
    if "text" in policy:
        await _save(call, table, {**policies, label: {"revision": _next_revision(call, policy)}})
    return {"RevisionId": policy["revision"]}


def of_new_table(call: CallContext, name: str) -> dict[str, Any]:
    """Return the properties that CreateTable's ResourcePolicy sets. Raises ServiceError."""
    policy = call.input.get("ResourcePolicy")
    if not policy:
        return {}
    text, _ = _read(call, policy, name)
    return {RESOURCE_POLICIES: {"": {"text": text, "revision": _next_revision(call, None)}}}


def apply_policies(call: CallContext, table: Table) -> None:
    """Apply the policies of a table from now on. Other processes load them later."""
    if RESOURCE_POLICIES in table.properties:
        call.gateway.credentials.know_resource_policies(table.namespace, table.name, _policies(table))


def _policies(table: Table) -> _Policies:
    policies: _Policies = table.properties.get(RESOURCE_POLICIES, {})
    return policies


def _next_revision(call: CallContext, former: Mapping[str, str] | None) -> str:
    """Return a revision: a time in milliseconds, always later than the former revision."""
    return str(max(call.gateway.now_ms(), int(former["revision"]) + 1 if former else 0))


async def _save(call: CallContext, table: Table, policies: _Policies) -> None:
    properties = {RESOURCE_POLICIES: dict(policies)}
    altered = await AlterTable(DIALECT, table, properties=properties, instant=True)
    apply_policies(call, altered)


def _expect(call: CallContext, table: Table, label: str) -> None:
    """Check that the policy has the revision that the request expects. Raises ServiceError."""
    expected = call.input.get("ExpectedRevisionId")
    policy = _policies(table).get(label, {})
    revision = policy["revision"] if "text" in policy else _NO_POLICY
    if expected is None or expected == revision:
        return
    name = f"stream {label}" if label else f"table {table.name}"
    requested = f"Requested update for policy with revision id {expected}, but"
    if revision == _NO_POLICY:
        raise _not_found(f"{requested} {name} has no associated policy.")
    if expected == _NO_POLICY:
        expecting = f"Requested policy update expecting none to be present for {name}"
        raise _not_found(f"{expecting}, but a policy exists with revision id {revision}.")
    raise _not_found(f"{requested} the policy associated to target {name} has revision id {revision}.")


def _not_found(detail: str) -> ServiceError:
    text = f"Resource-based policy not found for the provided ResourceArn: {detail}"
    return ServiceError("PolicyNotFoundException", text)


def _resource(call: CallContext) -> tuple[str, str]:
    """Return the table that ResourceArn names, and the label if it names a stream. Raises ServiceError."""
    arn, caller = call.input["ResourceArn"], call.caller
    shortened = arn[: limits.ECHO_CHARACTERS]
    if not arn.startswith("arn:"):
        raise validation(f"{error_texts.INVALID}ARNs must start with 'arn:': {shortened}")
    match = _ARN.fullmatch(arn)
    if match is None:
        raise validation(f"{error_texts.INVALID}Provided Arn is not a DynamoDB resource arn: {shortened}")
    if match["kind"] == "index":
        accepted = "Invalid resource arn provided, only table or stream is accepted."
        raise validation(f"{error_texts.INVALID}{accepted} Provided resource arn: {shortened}")
    if match["account"] != caller.account:
        raise validation(
            "This action is only supported by accounts that match the resource owner\u2019s account."
        )
    if (match["partition"], match["region"]) != (partition_of(caller.region), caller.region):
        raise validation(f"{error_texts.INVALID}Invalid resource Arn: {shortened}")
    return match["table"], match["part"] or ""


async def _find(call: CallContext, name: str, label: str) -> Table:
    """Return the table, after checking that a named stream exists. Raises ServiceError, TableMissing."""
    namespace = call.caller.namespace
    try:
        if label:
            await FindStream(namespace, name, label)
        table = await FindTable(namespace, name)
        if is_being_filled(table, call.gateway.now_ms()):
            raise TableMissing(name)
        return table
    except StreamMissing:
        text = f"Requested resource not found: Stream: {label} not found for Table: {name}"
        raise ServiceError("ResourceNotFoundException", text) from None
    except TableMissing:
        if label and call.operation == "GetResourcePolicy":
            # The stream outlives its table, but its policy does not.
            raise _not_found(call.input["ResourceArn"]) from None
        raise


def _identity(call: CallContext) -> authorizations.CallerIdentity:
    caller = call.caller
    arn = f"arn:aws:iam::{caller.account}:user/{caller.access_id}"
    return authorizations.CallerIdentity("aws", caller.access_id, caller.account, arn)


def _read(call: CallContext, policy: str, path: str) -> tuple[str, authorizations.ResourceDecision]:
    """Return the canonical form of a policy and its decision on the caller. Raises ServiceError."""
    text = resource_rules.canonical_document(policy, path, partition_of(call.caller.region))
    try:
        return text, read_resource_policy(text, _identity(call))
    except ValueError as error:
        raise validation(f"{error_texts.INVALID}Invalid policy document: {error}") from None


def _check_access_is_kept(call: CallContext, theirs: authorizations.ResourceDecision, path: str) -> None:
    """Check that the caller could still change the policy. Raises ServiceError."""
    access = Access(Permission.WRITE_POLICY, Channel.SINGLE, call.caller.namespace, path, None)
    source = authorizations.RequestSource("", is_secure=False, region=call.caller.region)
    around = authorizations.Authorization(EVERYTHING, _identity(call), source, call.gateway.now_ms())
    if any(_refuses(policy, access, around) for policy in theirs):
        text = "The new resource policy will not allow you to update the resource policy in the future."
        raise ServiceError("AccessDeniedException", text)


def _refuses(policy: Policy, access: Access, around: authorizations.Authorization) -> bool:
    """Return True if a statement denies an access of this caller under all circumstances."""
    decision = policy.decide(access)
    if decision.verdict is not None:
        return decision.verdict is Verdict.REFUSED
    return any(
        all(condition.fact in _OF_CALLERS for condition in statement.conditions)
        and statement.holds(POSSIBLE, around)
        for statement in decision.refusing
    )
