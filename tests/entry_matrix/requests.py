"""One valid request for each operation of each dialect, generated from the code's tables of operations.

Requests that name a table are the first form of each operation in tests/gateway/security/named_requests.py. Requests on
an account are here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from tablegate.adapters.azuretable.operation_table import OPERATIONS as AZURE
from tablegate.adapters.dynamodb.operation_table import OPERATIONS as DYNAMODB
from tablegate.adapters.tablestore.operation_table import OPERATIONS as TABLE_STORE
from tablegate.gateway.http.messages import Request
from tablegate.gateway.model.authorization.permissions import Permission, Purpose
from tablegate.gateway.model.request_info import RequestKind
from tablegate.gateway.security.credentials import Session
from tests.gateway.security import named_requests, named_requests_of_others
from tests.gateway.security.named_requests import Handles
from tests.support.strict import azure_request, dynamodb_request, tablestore_request

P = Permission
_WRITING = {P.PUT, P.UPDATE, P.DELETE, P.CHECK, P.BEGIN, P.COMMIT, P.ABORT}
_LOOKING = {
    P.READ, P.QUERY, P.SCAN, P.SEARCH, P.SPLIT, P.LIST, P.DESCRIBE, P.DESCRIBE_EXPIRY, P.READ_TAGS, P.DESCRIBE_FEATURES,
    P.LIST_FEATURES, P.LIST_BACKUPS, P.DESCRIBE_BACKUP, P.LIST_JOBS, P.DESCRIBE_JOB, P.READ_POLICY, P.LIST_STREAMS,
    P.DESCRIBE_STREAM, P.POSITION_STREAM, P.READ_STREAM, P.READ_ACCOUNT,
}  # fmt: skip
UNSIGNED, WRONG_SECRET = "", "wrong secret"
"""Callers that are no credential's: a request without a proof, and one that is signed with another secret."""
KNOWN = "full"
"""The credential that a request with a wrong secret names."""


class Derived(NamedTuple):
    """A caller with credentials that are derived from one token: temporary keys, and signatures by a delegation key.

    `signature`: returns the query of a signature for a table, by a key of the account KNOWN.
    """

    name: str
    keys: Session
    signature: Callable[[str], str]


Caller = str | Derived


class Row(NamedTuple):
    """An operation: its dialect, its name, its kind by purpose, and its request by caller and table.

    `names_table`: the request names the table. `makes_table`: the table must not exist yet.
    """

    dialect: str
    operation: str
    kind: RequestKind
    request: Callable[[Caller, str, Handles], Request]
    names_table: bool
    makes_table: bool
    purpose: Purpose

    @property
    def id(self) -> str:
        return f"{self.dialect} {self.operation}"

    @property
    def told(self) -> str:
        """The operation's name in the audit."""
        return self.operation.partition("?")[0]


def kind_of(purpose: Purpose) -> RequestKind:
    """The kind of an operation by what it needs: an operation that writes rows or defines something does so first of all."""
    needed = {*purpose.permissions}
    if needed & _WRITING:
        return RequestKind.WRITE
    return RequestKind.READ if needed <= _LOOKING else RequestKind.DEFINITION


def _proof(caller: Caller) -> tuple[str, str, str]:
    """(access id, secret, session token) of a request by a caller."""
    if isinstance(caller, Derived):
        return caller.keys[:3]
    return (KNOWN, "another secret", "") if caller == WRONG_SECRET else (caller, "secret", "")


# DynamoDB

_OF_AWS_ACCOUNTS = {
    "ListTables", "DescribeLimits", "DescribeEndpoints", "ListBackups", "ListStreams", "ListGlobalTables",
    "ListContributorInsights", "ListBulkOperations",
}  # fmt: skip
_STATEMENTS = ("ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction")


def _statement(operation: str, table: str) -> dict[str, Any]:
    text = f"UPDATE \"{table}\" SET note = 'n' WHERE pk = 'a' AND sk = 'b'"
    match operation:
        case "ExecuteStatement":
            return {"Statement": text}
        case "BatchExecuteStatement":
            return {"Statements": [{"Statement": text}]}
    return {"TransactStatements": [{"Statement": text}]}


def _dynamodb_given(operation: str, table: str, has: Handles) -> dict[str, Any]:
    if operation in _OF_AWS_ACCOUNTS:
        return {}
    if operation in _STATEMENTS:
        return _statement(operation, table)
    return next(given for name, _, given in named_requests.of_dynamodb(table, has) if name == operation)


def _of_dynamodb(operation: str) -> Callable[[Caller, str, Handles], Request]:
    def request(caller: Caller, table: str, has: Handles) -> Request:
        access_id, secret, token = _proof(caller)
        return dynamodb_request(access_id, operation, _dynamodb_given(operation, table, has), secret, token)

    return request


# Azure Table

_PROPERTIES = (
    b'<?xml version="1.0" encoding="utf-8"?><StorageServiceProperties><Cors /></StorageServiceProperties>'
)
_OF_AZURE_ACCOUNTS: dict[str, tuple[str, str, Any, Mapping[str, str]]] = {
    "GET TableSet": ("GET", "/Tables", b"", {}),
    "GET Service?properties": ("GET", "/?restype=service&comp=properties", b"", {}),
    "PUT Service?properties": ("PUT", "/?restype=service&comp=properties", _PROPERTIES, {}),
    "GET Service?stats": ("GET", "/?restype=service&comp=stats", b"", {}),
}


def _of_azure(operation: str) -> Callable[[Caller, str, Handles], Request]:
    def request(caller: Caller, table: str, has: Handles) -> Request:
        found = _OF_AZURE_ACCOUNTS.get(operation) or next(
            given for name, _, given in named_requests_of_others.of_azure(table) if name == operation
        )
        method, path, body, headers = found
        account = caller if caller not in (UNSIGNED, WRONG_SECRET) and isinstance(caller, str) else KNOWN
        if isinstance(body, bytes):
            body = body.replace(b"ACCOUNT", account.encode())
        if isinstance(caller, Derived):
            path = f"{path}{'&' if '?' in path else '?'}{caller.signature(table)}"
            return azure_request(account, method, path, body, headers, key=None)
        proof: dict[str, Any] = {UNSIGNED: {"key": None}, WRONG_SECRET: {"key": "YW5vdGhlcg=="}}.get(
            caller, {}
        )
        return azure_request(account, method, path, body, headers, **proof)

    return request


# Table Store

_OF_INSTANCES: dict[str, dict[str, Any]] = {
    "ListTable": {},
    "ListStream": {},
    "ListSearchIndex": {},
    "ListTimeseriesTable": {},
    "CommitTransaction": {"transaction_id": "x"},
    "AbortTransaction": {"transaction_id": "x"},
    **named_requests_of_others.BY_TUNNEL,
}


def _of_table_store(operation: str) -> Callable[[Caller, str, Handles], Request]:
    def request(caller: Caller, table: str, has: Handles) -> Request:
        if operation in _OF_INSTANCES:
            message = TABLE_STORE[operation].request(**_OF_INSTANCES[operation])
        else:
            shapes = named_requests_of_others.of_table_store(table, has)
            message = next(given for name, _, given in shapes if name == operation)
        access_id, secret, token = _proof(caller)
        return tablestore_request(access_id, operation, message, secret, token)

    return request


def rows() -> Iterator[Row]:
    """Every operation of the three dialects. Raises StopIteration for one that has no request."""
    for name, dynamodb in DYNAMODB.items():
        yield _row("dynamodb", name, dynamodb.purpose, _of_dynamodb(name), name not in _OF_AWS_ACCOUNTS)
    for (resource, verb, comp), azure in AZURE.items():
        name = f"{verb} {resource.__name__}{comp and '?' + comp}"
        if comp == "userdelegationkey":  # for identities only (tests/adapters/azuretable/test_delegation.py)
            continue
        yield _row("azuretable", name, azure.purpose, _of_azure(name), name not in _OF_AZURE_ACCOUNTS)
    for name, operation in TABLE_STORE.items():
        yield _row("tablestore", name, operation.purpose, _of_table_store(name), name not in _OF_INSTANCES)


def _row(
    dialect: str,
    name: str,
    purpose: Purpose,
    request: Callable[[Caller, str, Handles], Request],
    names_table: bool,
) -> Row:
    makes_table = purpose.permissions[0] in (P.CREATE, P.IMPORT)
    # The statement decides, and here it is a SELECT.
    kind = RequestKind.READ if name == "SQLQuery" else kind_of(purpose)
    return Row(dialect, name, kind, request, names_table, makes_table, purpose)
