"""AccessDeniedException with the service's text: the caller, the action, the resource, and the kind of policy that
decided.

Texts: "Troubleshoot access denied error messages" (IAM guide), and answers of the service quoted in public issues
(rebuy-de/aws-nuke 265, terraform-aws-modules/terraform-aws-appsync 7).
"""

from __future__ import annotations

from collections.abc import Mapping

from tablegate.adapters.dynamodb.wire.errors import ServiceError
from tablegate.adapters.dynamodb.wire.gateway_errors import service_error_of
from tablegate.adapters.dynamodb.wire.resources import partition_of
from tablegate.gateway.model.authorization.accesses import ANYWHERE
from tablegate.gateway.model.authorization.authorizations import Authorization
from tablegate.gateway.model.authorization.grants import Verdict
from tablegate.gateway.model.authorization.permissions import Permission
from tablegate.gateway.model.errors import NotPermitted

_P = Permission
_PARTS: Mapping[Permission, str] = {
    _P.READ: "GetItem", _P.PUT: "PutItem", _P.UPDATE: "UpdateItem", _P.DELETE: "DeleteItem",
    _P.CHECK: "ConditionCheckItem",
}  # fmt: skip
_PARTS_OF_STATEMENTS: Mapping[Permission, str] = {
    _P.READ: "PartiQLSelect", _P.QUERY: "PartiQLSelect", _P.SCAN: "PartiQLSelect", _P.CHECK: "PartiQLSelect",
    _P.PUT: "PartiQLInsert", _P.UPDATE: "PartiQLUpdate", _P.DELETE: "PartiQLDelete",
}  # fmt: skip
_ADDITIONAL: Mapping[Permission, str] = {
    _P.TAG: "TagResource", _P.WRITE_POLICY: "PutResourcePolicy", _P.READ_STREAM: "GetRecords",
}  # fmt: skip
_COPYING: Mapping[Permission, str] = {**_PARTS, _P.QUERY: "Query", _P.SCAN: "Scan"}
_ACTIONS: Mapping[str, Mapping[Permission, str]] = {
    "TransactGetItems": _PARTS,
    "TransactWriteItems": _PARTS,
    "ExecuteStatement": _PARTS_OF_STATEMENTS,
    "BatchExecuteStatement": _PARTS_OF_STATEMENTS,
    "ExecuteTransaction": _PARTS_OF_STATEMENTS,
    "CreateTable": _ADDITIONAL,
    "EnableKinesisStreamingDestination": _ADDITIONAL,
    "RestoreTableFromBackup": _COPYING,
    "RestoreTableToPointInTime": _COPYING,
    "ExportTableToPointInTime": _COPYING,
    "StartBulkPutItems": _COPYING,
}
"""Operations with parts that are actions of their own. For all others the action has the operation's name."""
_ALL_TABLES = frozenset({"ListTables"})


def error_for_caller(error: Exception, operation: str, authorization: Authorization | None) -> ServiceError:
    """Return the service's error, with the caller's name if it is NotPermitted. Unknown errors are internal."""
    if isinstance(error, NotPermitted) and authorization is not None:
        return _not_permitted(error, operation, authorization)
    return service_error_of(error, operation)


def _not_permitted(error: NotPermitted, operation: str, authorization: Authorization) -> ServiceError:
    identity, region = authorization.identity, authorization.source.region
    action = "dynamodb:" + _ACTIONS.get(operation, {}).get(error.permission, operation)
    prefix = f"arn:{partition_of(region)}:dynamodb:{region}:{identity.account}:"
    resource = prefix + f"table/{error.path.replace(ANYWHERE, '*')}" if error.path else "*"
    if operation in _ALL_TABLES:
        resource = prefix + "table/*"
    if error.by == Verdict.REFUSED.value:
        reason = "with an explicit deny in an identity-based policy"
    elif error.by == Verdict.REFUSED_BY_RESOURCE.value:
        reason = "with an explicit deny in a resource-based policy"
    else:
        reason = f"because no identity-based policy allows the {action} action"
    text = f"User: {identity.arn} is not authorized to perform: {action} on resource: {resource} {reason}"
    return ServiceError("AccessDeniedException", text)
