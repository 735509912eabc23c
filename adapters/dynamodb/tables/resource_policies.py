"""Resource policies: PutResourcePolicy, GetResourcePolicy, DeleteResourcePolicy, and the ResourcePolicy of CreateTable.

The policies of a table and of its streams are kept with the table's properties, where every dialect's requests are judged by them
(model/authorizations.py). Shapes and rules: botocore 1.44.5 and the API reference; the text of a policy that is not there:
measured by ack-api-quirks in October 2026 (findings 083, 089, 187). Other texts are our own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from adapters.dynamodb import DIALECT
from adapters.dynamodb.wire import limits
from adapters.dynamodb.wire.calls import Answer, Call, check_place
from adapters.dynamodb.wire.errors import ServiceError, validation
from adapters.dynamodb.wire.resources import table_of_arn
from gateway.engine.engine import one
from gateway.model.accesses import Access
from gateway.model.authorizations import Identity, OfResource
from gateway.model.commands import AlterTable, Exchange, FindStream, FindTable
from gateway.model.errors import StreamMissing, TableMissing
from gateway.model.grants import Verdict
from gateway.model.permissions import Permission, Way
from gateway.model.tables import RESOURCE_POLICIES, Table
from gateway.security.credentials import read_resource_policy

_STREAM_ARN = re.compile(r"(arn:[^/]+/[A-Za-z0-9_.-]+)/stream/([0-9T:.-]+)")
_NO_POLICY = "NO_POLICY"
_Policies = Mapping[str, Mapping[str, str]]


def put_resource_policy(call: Call) -> Exchange[Answer]:
    """PutResourcePolicy: give a table or stream a policy, or another one. The same text again changes nothing. Raises
    ServiceError."""
    given = call.input
    table, label = yield from _resource(call)
    path = f"{table.name}/stream/{label}" if label else table.name
    theirs = _read(call, given["Policy"], path)
    if not (given.get("ConfirmRemoveSelfResourceAccess") or _is_confirmed_in_head(call)):
        _check_access_is_kept(call, theirs, path)
    known = _policies(table)
    _expect(call, known.get(label))
    if label in known and known[label]["text"] == given["Policy"]:
        return {"RevisionId": known[label]["revision"]}
    made = _made(given["Policy"], call.gateway.now_ms(), known.get(label))
    yield from _save(call, table, {**known, label: made})
    return {"RevisionId": made["revision"]}


def _is_confirmed_in_head(call: Call) -> bool:
    """The member has a header of its own, by which some SDKs send it (PutResourcePolicy, API reference, "Request Syntax";
    aws/aws-sdk-js-v3, the schema of PutResourcePolicyInput); botocore sends it in the body."""
    return call.headers.get("x-amz-confirm-remove-self-resource-access", "").lower() == "true"


def get_resource_policy(call: Call) -> Exchange[Answer]:
    """GetResourcePolicy: the policy of a table or stream, as it was written. Raises ServiceError."""
    table, label = yield from _resource(call)
    known = _policies(table).get(label)
    if known is None:
        raise _not_found(call)
    return {"Policy": known["text"], "RevisionId": known["revision"]}


def delete_resource_policy(call: Call) -> Exchange[Answer]:
    """DeleteResourcePolicy: take the policy of a table or stream away. Where there is none, the revision is empty. Raises
    ServiceError."""
    table, label = yield from _resource(call)
    known = _policies(table)
    _expect(call, known.get(label))
    if label not in known:
        return {"RevisionId": ""}
    yield from _save(call, table, {name: policy for name, policy in known.items() if name != label})
    return {"RevisionId": known[label]["revision"]}


def of_new_table(call: Call, name: str) -> dict[str, Any]:
    """What CreateTable's ResourcePolicy is as properties of the table. Raises ValidationException."""
    text = call.input.get("ResourcePolicy")
    if not text:
        return {}
    _read(call, text, name)
    return {RESOURCE_POLICIES: {"": _made(text, call.gateway.now_ms(), None)}}


def know(call: Call, table: Table) -> None:
    """Judge requests by the policies of a table from now on; other processes learn of them in a while."""
    if RESOURCE_POLICIES in table.properties:
        call.gateway.credentials.know_resource_policies(table.namespace, table.name, _policies(table))


def _policies(table: Table) -> _Policies:
    found: _Policies = table.properties.get(RESOURCE_POLICIES, {})
    return found


def _made(text: str, now_ms: int, former: Mapping[str, str] | None) -> dict[str, str]:
    """A policy with its revision, which is a moment: each is later than the one before."""
    return {"text": text, "revision": str(max(now_ms, int(former["revision"]) + 1 if former else 0))}


def _save(call: Call, table: Table, policies: _Policies) -> Exchange[None]:
    changed = {RESOURCE_POLICIES: dict(policies)}
    altered = yield from one(AlterTable(DIALECT, table, properties=changed, instant=True))
    know(call, altered)


def _expect(call: Call, known: Mapping[str, str] | None) -> None:
    """Raise PolicyNotFoundException if the policy is not at the revision that the request expects."""
    expected = call.input.get("ExpectedRevisionId")
    if expected is not None and expected != (known["revision"] if known else _NO_POLICY):
        raise _not_found(call)


def _not_found(call: Call) -> ServiceError:
    text = "Resource-based policy not found for the provided ResourceArn: Policy is not found for: "
    return ServiceError("PolicyNotFoundException", text + call.input["ResourceArn"])


def _resource(call: Call) -> Exchange[tuple[Table, str]]:
    """The table that ResourceArn names, and the label if it is a stream of it."""
    arn = call.input["ResourceArn"]
    match = _STREAM_ARN.fullmatch(arn)
    of_table, label = (match[1], match[2]) if match else (arn, "")
    name = table_of_arn(of_table, call.gateway.settings.message_style)
    check_place(call, arn)
    namespace = call.caller.namespace
    try:
        if label:
            yield from one(FindStream(namespace, name, label))
        return (yield from one(FindTable(namespace, name))), label
    except (TableMissing, StreamMissing):
        text = f"Requested resource not found: ResourceArn: {arn} not found"
        raise ServiceError("ResourceNotFoundException", text) from None


def _identity(call: Call) -> Identity:
    caller = call.caller
    arn = f"arn:aws:iam::{caller.account}:user/{caller.access_id}"
    return Identity("aws", caller.access_id, caller.account, arn)


def _read(call: Call, text: str, path: str) -> OfResource:
    """What a policy says of the caller. Raises ValidationException for one that cannot be this resource's."""
    if len(text.encode()) > limits.RESOURCE_POLICY_BYTES:
        raise validation(f"Resource policy size exceeds the limit of {limits.RESOURCE_POLICY_BYTES} bytes")
    try:
        return read_resource_policy(text, _identity(call), call.caller.namespace, path)
    except ValueError as error:
        raise validation(f"Invalid policy document: {error}") from None


def _check_access_is_kept(call: Call, theirs: OfResource, path: str) -> None:
    """Raise ValidationException for a policy by which the caller could never change it again."""
    access = Access(Permission.WRITE_POLICY, Way.SINGLE, call.caller.namespace, path, None)
    if any(each.decide(access).verdict is Verdict.REFUSED for each in theirs):
        raise validation(
            "The policy takes away your permission to change it: confirm by ConfirmRemoveSelfResourceAccess"
        )
