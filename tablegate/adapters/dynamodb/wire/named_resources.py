"""The resources that a request names and the permissions that it needs on them, for authorization before any table
is looked up.

The JSON is not validated yet, so values of other forms are skipped. Resources in PartiQL statements are
authorized after a statement has been parsed (partiql/sources.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tablegate.adapters.dynamodb.wire.resources import bare_name
from tablegate.gateway.model.authorization.authorizations import NamedResource
from tablegate.gateway.model.authorization.permissions import ACCOUNT_PERMISSIONS, Permission, Purpose

# Named resources


_P = Permission
_NAMES = ("TableName", "SourceTableName", "TargetTableName", "GlobalTableName")
_ARNS = (
    "TableArn", "ResourceArn", "SourceTableArn", "StreamArn", "BackupArn", "ExportArn", "ImportArn", "BulkOperationArn",
    "ShardIterator",
)  # fmt: skip
"""A shard iterator begins with the ARN of its stream."""
_IN_BATCHES = {"PutRequest": _P.PUT, "DeleteRequest": _P.DELETE}
_IN_TRANSACTIONS = {
    "Get": _P.READ, "Put": _P.PUT, "Update": _P.UPDATE, "Delete": _P.DELETE, "ConditionCheck": _P.CHECK,
}  # fmt: skip


def named_resources(body: Any, purpose: Purpose, namespace: str) -> Iterable[NamedResource]:
    """Return the resources in the body of a request.

    Listing operations of an account name none, even with a table as a filter.
    """
    if not isinstance(body, dict) or purpose.permissions[0] in ACCOUNT_PERMISSIONS:
        return ()
    return [
        *(
            NamedResource(purpose.permissions if permission is None else (permission,), namespace, path)
            for permission, path in _members(body)
        ),
        *(NamedResource(purpose.permissions, namespace, path) for path in _paths(body, purpose)),
    ]


def _paths(body: Mapping[str, Any], purpose: Purpose) -> Iterator[str]:
    """Yield the resources of the request as a whole."""
    for member in _NAMES:
        name = body.get(member)
        if isinstance(name, str):
            yield from _table_or_index(bare_name(name), body, purpose)
    for member in _ARNS:
        arn = body.get(member)
        if isinstance(arn, str) and ":table/" in arn:
            yield arn.partition(":table/")[2].partition("|")[0]
    parameters = body.get("TableCreationParameters")
    if isinstance(parameters, dict) and isinstance(parameters.get("TableName"), str):
        yield bare_name(parameters["TableName"])


def _table_or_index(table: str, body: Mapping[str, Any], purpose: Purpose) -> Iterator[str]:
    """Yield the index if one is read: a permission on the table does not include its indexes.

    A vector search reads both.
    """
    index = body.get("IndexName")
    reads = purpose.permissions[0]
    if reads not in (_P.QUERY, _P.SCAN, _P.SEARCH) or not isinstance(index, str):
        yield table
        return
    if reads is _P.SEARCH:
        yield table
    yield f"{table}/index/{index}"


def _members(body: Mapping[str, Any]) -> Iterator[tuple[Permission | None, str]]:
    """Yield the tables in the members of a batch or transaction, each with the permission that its member needs."""
    requests = body.get("RequestItems")
    for name, table_requests in requests.items() if isinstance(requests, dict) else ():
        kinds = _kinds(table_requests, _IN_BATCHES)
        yield from ((kind, bare_name(name)) for kind in kinds or [None])
    for member in list_or_empty(body.get("TransactItems")):
        for kind, action in member.items() if isinstance(member, dict) else ():
            name = action.get("TableName") if isinstance(action, dict) else None
            if isinstance(name, str):
                yield _IN_TRANSACTIONS.get(kind), bare_name(name)


def _kinds(members: Any, permissions: Mapping[str, Permission]) -> list[Permission | None]:
    kinds = {kind for member in list_or_empty(members) if isinstance(member, dict) for kind in member}
    return [permission for kind, permission in permissions.items() if kind in kinds]


def list_or_empty(value: Any) -> list[Any]:
    """Return a value of unchecked JSON if it is a list."""
    return value if isinstance(value, list) else []
