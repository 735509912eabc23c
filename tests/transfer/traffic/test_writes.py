"""The requests that write: decided by the purposes of operations, for permissions, the audit, traffic and the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tablegate.adapters.azuretable import operation_table as azure_operations
from tablegate.adapters.azuretable.dialect import AzureTable as AzureEntry
from tablegate.adapters.azuretable.wire import addresses
from tablegate.adapters.dynamodb import operation_table as dynamodb_operations
from tablegate.adapters.dynamodb.dialect import DynamoDB as DynamoDBEntry
from tablegate.adapters.tablestore import operation_table as table_store_operations
from tablegate.adapters.tablestore.dialect import TableStore as TableStoreEntry
from tablegate.adapters.tablestore.wire.protocol import search_pb2, sql_pb2, tunnel_pb2
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.model.authorization.permissions import Permission, Purpose
from tablegate.gateway.model.request_info import RequestKind, kind_of, only_reads_rows
from tablegate.transfer.traffic.comparing import Tokens
from tablegate.transfer.traffic.dialects.azuretable import AzureTable
from tablegate.transfer.traffic.dialects.dialect import ProxiedDialect, UnknownToken
from tablegate.transfer.traffic.dialects.dynamodb import DynamoDB
from tablegate.transfer.traffic.dialects.tablestore import TableStore
from tests.support.capabilities import INSTALLED, needs

AZURE_PATHS = {
    addresses.TableSet: "/account/Tables",
    addresses.TableEntry: "/account/Tables('people')",
    addresses.EntitySet: "/account/people",
    addresses.Entity: "/account/people(PartitionKey='p',RowKey='r')",
    addresses.Batch: "/account/$batch",
    addresses.Service: "/account/",
}
# The verbs with which the documentation of each service describes operations that change nothing.
READING_VERBS = (
    "Get", "BatchGet", "TransactGet", "Query", "Scan", "Search", "Describe", "List", "Compute", "ParallelScan",
    "BulkExport", "GET ", "HEAD ", "tunnel/list", "tunnel/describe", "tunnel/get", "tunnel/readrecords",
    "tunnel/connect", "tunnel/heartbeat", "tunnel/checkpoint", "tunnel/shutdown",
)  # fmt: skip


def requests() -> Iterator[tuple[ProxiedDialect, str, Request, Purpose]]:
    for target in dynamodb_operations.NAMES:
        name = target.partition(".")[2]
        purpose = dynamodb_operations.OPERATIONS[name].purpose
        yield DynamoDB(), name, Request("POST", "/", (("x-amz-target", target),), b"{}"), purpose
    for (kind, verb, comp), row in azure_operations.OPERATIONS.items():
        target = AZURE_PATHS[kind] + (f"?comp={comp}" if comp else "")
        yield AzureTable(), f"{verb} {kind.__name__}", Request(verb, target, (), b""), row.purpose
    for name, operation in table_store_operations.OPERATIONS.items():
        yield TableStore(), name, Request("POST", f"/{name}", (), b""), operation.purpose


@pytest.mark.parametrize(
    ("dialect", "name", "request_", "purpose"),
    [pytest.param(*row, id=f"{row[0].name} {row[1]}") for row in requests()],
)
def test_traffic_decides_by_the_purpose_of_each_operation(
    dialect: ProxiedDialect, name: str, request_: Request, purpose: Purpose
) -> None:
    assert dialect.operation(request_) == name
    assert dialect.is_write(request_) is (kind_of(purpose) is not RequestKind.READ)
    assert dialect.is_write(request_) is not name.startswith(READING_VERBS)


def test_the_audit_has_the_kind_of_each_purpose() -> None:
    entries = {entry.name: entry for entry in (DynamoDBEntry, AzureEntry, TableStoreEntry)}
    for dialect, name, _, purpose in requests():
        if name != "POST Service":  # a user delegation key is a sign-in
            assert entries[dialect.name].kind_of(name) is kind_of(purpose), name


def test_every_permission_has_one_kind() -> None:
    """Only ADMINISTER has no operation of a dialect. It counts as a definition."""
    kinds = {permission: kind_of(Purpose((permission,))) for permission in Permission}
    assert {permission.name for permission, kind in kinds.items() if kind is RequestKind.WRITE} == {
        "PUT", "UPDATE", "DELETE", "CHECK", "BEGIN", "COMMIT", "ABORT",
    }  # fmt: skip
    assert kinds[Permission.ADMINISTER] is RequestKind.DEFINITION
    assert all(
        kinds[permission] is RequestKind.READ
        for permission in Permission
        if only_reads_rows(Purpose((permission,)))
    )


def test_processes_that_only_read_answer_reads_of_rows() -> None:
    """SearchVectors needs the index in the memory of the process that writes, and SQLQuery may change a mapping."""
    found = {f"{each.name} {name}" for each, name, _, purpose in requests() if only_reads_rows(purpose)}
    searches = ("Search", "ComputeSplits", "ParallelScan") if "search" in INSTALLED else ()
    assert found == {
        *(f"dynamodb {name}" for name in ("GetItem", "BatchGetItem", "TransactGetItems", "Query", "Scan")),
        *(f"azuretable GET {name}" for name in ("Entity", "EntitySet")),
        *(f"tablestore {name}" for name in ("GetRow", "BatchGetRow", "GetRange", "BulkExport", *searches)),
    }  # fmt: skip


def sql(query: str) -> Request:
    return Request("POST", "/SQLQuery", (), sql_pb2.SQLQueryRequest(query=query).SerializeToString())


@needs("sql")
@pytest.mark.parametrize(
    ("query", "is_write"),
    [
        ("SELECT * FROM t", False), (" (select 1)", False), ("show tables", False), ("DESC t", False),
        ("explain select * from t", False), ("create table t (a bigint)", True), ("DROP MAPPING TABLE t", True),
        ("alter table t add column b double", True), ("insert into t values (1)", True), ("", True),
    ],
)  # fmt: skip
def test_statements_that_change_a_mapping_write(query: str, is_write: bool) -> None:
    """https://www.alibabacloud.com/help/en/tablestore/developer-reference/ddl-statements"""
    assert TableStore().is_write(sql(query)) is is_write


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST"])
@pytest.mark.parametrize("dialect", [DynamoDB(), AzureTable(), TableStore()], ids=lambda each: each.name)
def test_unknown_operations_write_unless_their_method_reads(dialect: ProxiedDialect, method: str) -> None:
    assert dialect.is_write(Request(method, "/account/a/b/c", (), b"\xff")) is (method == "POST")


def test_tunnelled_methods_of_azure_have_the_kind_of_their_operation() -> None:
    """docs/protocols/azure-table.md: POST can carry the verb in X-HTTP-Method."""
    for kind, verb in (
        (addresses.TableEntry, "DELETE"),
        (addresses.EntitySet, "PUT"),
        (addresses.Entity, "MERGE"),
    ):
        target = AZURE_PATHS[kind]
        request = Request("POST", target, (("x-http-method", verb),), b"")
        assert AzureTable().operation(request) == f"{verb} {kind.__name__}"
        assert AzureTable().is_write(request)


def moved(operation: str, message: Any) -> Any:
    """Return the message with the tokens of the live service."""
    tokens = Tokens()
    for rule, recorded, live in (
        ("page-token", "b2xk", "bmV3"),
        ("page-token", "old", "new"),
        ("tunnel-id", "t1", "t2"),
        ("tunnel-id", "c1", "c2"),
    ):
        tokens.learn(rule, "", recorded, live)
    request = Request("POST", f"/{operation}", (), message.SerializeToString())
    return type(message).FromString(TableStore().with_live_tokens(request, tokens, True).body)


@needs("search")
def test_tokens_of_searches_are_replaced() -> None:
    """Search and ParallelScan have their tokens in serialized queries."""
    search = search_pb2.SearchRequest(search_query=search_pb2.SearchQuery(token=b"old").SerializeToString())
    assert search_pb2.SearchQuery.FromString(moved("Search", search).search_query).token == b"new"
    scan = search_pb2.ParallelScanRequest(
        session_id=b"old", scan_query=search_pb2.ScanQuery(token=b"old").SerializeToString()
    )
    found = moved("ParallelScan", scan)
    assert (found.session_id, search_pb2.ScanQuery.FromString(found.scan_query).token) == (b"new", b"new")


@needs("tunnels")
def test_tokens_of_tunnels_are_replaced() -> None:
    """A heartbeat has ids in its channels."""
    channel = tunnel_pb2.Channel(channel_id="c1", version=1, status=tunnel_pb2.OPEN)
    beat = tunnel_pb2.HeartbeatRequest(tunnel_id="t1", client_id="c1", channels=[channel])
    found = moved("tunnel/heartbeat", beat)
    assert (found.tunnel_id, found.client_id, found.channels[0].channel_id) == ("t2", "c2", "c2")
    unknown = tunnel_pb2.ReadRecordsRequest(tunnel_id="t9", client_id="c1", channel_id="c1", token="old")
    with pytest.raises(UnknownToken, match="tunnel_id"):
        moved("tunnel/readrecords", unknown)


@needs("search")
def test_replies_of_searches_are_compared_as_trees() -> None:
    reply = search_pb2.SearchResponse(total_hits=3, rows=[b"\x01"])
    tree = (
        TableStore()
        .answer(Request("POST", "/Search", (), b""), Reply(200, [], reply.SerializeToString()))
        .body
    )
    assert tree["total_hits"] == 3
