"""Requests of Azure Table and Table Store that name a table, for every operation, in right and in wrong shapes.

As named_requests.py has those of DynamoDB.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.message import Message

from tablegate.adapters.azuretable.operation_table import OPERATIONS as AZURE_OPERATIONS
from tablegate.adapters.azuretable.wire.addresses import Service
from tablegate.adapters.tablestore.operation_table import OPERATIONS as TABLE_STORE_OPERATIONS
from tablegate.adapters.tablestore.wire.plainbuffer import Bound, WireRow, encode_row
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as search_messages
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.adapters.tablestore.wire.protocol import tunnel_pb2
from tablegate.gateway.model.authorization.permissions import ACCOUNT_PERMISSIONS
from tests.adapters.tablestore.client import cells_of, row
from tests.adapters.tablestore.search_messages import match_all, schema, search_query
from tests.gateway.security.named_requests import INDEX, Handles

# Azure Table: (operation, description, (method, path, body, headers))

OF_AZURE = {
    f"{verb} {resource.__name__}{comp and '?' + comp}"
    for (resource, verb, comp), operation in AZURE_OPERATIONS.items()
    if operation.purpose.permissions[0] not in ACCOUNT_PERMISSIONS and resource is not Service
}
AzureGiven = tuple[str, str, tuple[str, str, Any, dict[str, str]]]
_BODIES: dict[str, Any] = {
    "properties": {"note": "n"},
    "a property of no type": {"note": []},
    "a property of another type": {"status": 1, "status@odata.type": "Edm.DateTime"},
    "no JSON": b"{",
    "nothing": {},
}


def of_azure(table: str) -> Iterator[AzureGiven]:
    entities = {
        "right keys": "(PartitionKey='a',RowKey='b')",
        "an empty key": "(PartitionKey='',RowKey='')",
        "one key": "(PartitionKey='a')",
        "a key with a slash": "(PartitionKey='a%2Fb',RowKey='b')",
    }
    for said, keys in entities.items():
        yield "GET Entity", said, ("GET", f"/{table}{keys}", b"", {})
        for etag in ("*", 'W/"x"', "x", ""):
            headers = {"If-Match": etag} if etag else {}
            yield "DELETE Entity", f"{said} {etag}", ("DELETE", f"/{table}{keys}", b"", headers)
            for about, body in _BODIES.items():
                for verb in ("PUT", "MERGE", "PATCH"):
                    yield f"{verb} Entity", f"{said} {about} {etag}", (verb, f"/{table}{keys}", body, headers)
    for about, body in _BODIES.items():
        keyed = body if isinstance(body, bytes) else {"PartitionKey": "a", "RowKey": "b", **body}
        yield "POST EntitySet", about, ("POST", f"/{table}", keyed, {})
        yield "POST EntitySet", f"without keys {about}", ("POST", f"/{table}", body, {})
    for option in (
        "", "$filter=PartitionKey%20eq%20'a'", "$filter=PartitionKey%20eq", "$top=0", "$select=a%2Cb", "NextPartitionKey=x",
    ):  # fmt: skip
        path = f"/{table}()" + (f"?{option}" if option else "")
        yield "GET EntitySet", option, ("GET", path, b"", {})
    yield "GET EntitySet?acl", "", ("GET", f"/{table}?comp=acl", b"", {})
    yield "HEAD EntitySet?acl", "", ("HEAD", f"/{table}?comp=acl", b"", {})
    for acl in (b"<SignedIdentifiers/>", b"<x"):
        yield "PUT EntitySet?acl", f"{acl!r}", ("PUT", f"/{table}?comp=acl", acl, {})
    yield "GET TableEntry", "", ("GET", f"/Tables('{table}')", b"", {})
    yield "DELETE TableEntry", "", ("DELETE", f"/Tables('{table}')", b"", {})
    for made in ({"TableName": table}, {"TableName": table.upper()}, {"TableName": table, "x": 1}):
        yield "POST TableSet", f"{list(made.items())[-1:]}", ("POST", "/Tables", made, {})
    yield from _azure_batches(table)


def _azure_batches(table: str) -> Iterator[AzureGiven]:
    parts = {
        "a right insert": ("POST", f"/{table}", '{"PartitionKey": "a", "RowKey": "b"}'),
        "an insert without a key": ("POST", f"/{table}", '{"PartitionKey": "a"}'),
        "an insert with a wrong key": ("POST", f"/{table}", '{"PartitionKey": 1, "RowKey": "b"}'),
        "an insert that is no JSON": ("POST", f"/{table}", "{"),
        "an upsert": ("PUT", f"/{table}(PartitionKey='a',RowKey='b')", "{}"),
        "an upsert of one key": ("PUT", f"/{table}(PartitionKey='a')", "{}"),
        "a merge of a wrong type": ("MERGE", f"/{table}(PartitionKey='a',RowKey='b')", '{"a": []}'),
        "a delete": ("DELETE", f"/{table}(PartitionKey='a',RowKey='b')", ""),
    }
    headers = {"Content-Type": "multipart/mixed; boundary=batch_1"}
    for said, part in parts.items():
        for number in (1, 2):
            yield "POST Batch", f"{number} {said}", ("POST", "/$batch", changeset([part] * number), headers)
    for option in ("(PartitionKey='a',RowKey='b')", "()?$filter=PartitionKey%20eq", "()"):
        yield "POST Batch", f"a query {option}", ("POST", "/$batch", query_of(f"/{table}{option}"), headers)


def changeset(parts: list[tuple[str, str, str]]) -> bytes:
    changes = "".join(
        "--changeset_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
        f"{method} http://h/ACCOUNT{path} HTTP/1.1\r\nContent-Type: application/json\r\nIf-Match: *\r\n\r\n{body}\r\n"
        for method, path, body in parts
    )
    head = "--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n"
    return f"{head}{changes}--changeset_1--\r\n--batch_1--\r\n".encode()


def query_of(path: str) -> bytes:
    return (
        "--batch_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
        f"GET http://h/ACCOUNT{path} HTTP/1.1\r\nAccept: application/json\r\n\r\n\r\n--batch_1--\r\n"
    ).encode()


# Table Store

_CHANNEL = {"tunnel_id": "x", "client_id": "x", "channel_id": "x"}
BY_TUNNEL: dict[str, dict[str, Any]] = {
    "tunnel/getrpo": {"tunnel_id": "x"},
    "tunnel/connect": {"tunnel_id": "x"},
    "tunnel/heartbeat": {"tunnel_id": "x", "client_id": "x"},
    "tunnel/shutdown": {"tunnel_id": "x", "client_id": "x"},
    "tunnel/getcheckpoint": _CHANNEL,
    "tunnel/checkpoint": {**_CHANNEL, "checkpoint": "x", "sequence_number": 1},
    "tunnel/readrecords": {**_CHANNEL, "token": "x"},
}
"""Requests that name a tunnel by its id, which cannot be guessed."""
OF_TABLE_STORE = {
    name
    for name, operation in TABLE_STORE_OPERATIONS.items()
    if operation.purpose.permissions[0] not in ACCOUNT_PERMISSIONS
    and name not in ("CommitTransaction", "AbortTransaction")  # they name no table
    and name not in BY_TUNNEL
}
TableStoreGiven = tuple[str, str, Message]
_ROWS = {
    "a right key": row({"pk": "a", "sk": "b"}),
    "half a key": row({"pk": "a"}),
    "a key of another type": row({"pk": 1, "sk": "b"}),
    "another key": row({"id": "a"}),
    "no row": b"",
    "bytes that are no row": b"\x75\x00\x00\x00\x01",
}
_IGNORE = messages.Condition(row_existence=messages.IGNORE)


def of_table_store(table: str, has: Handles) -> Iterator[TableStoreGiven]:
    for name, said, members in _table_store_members(table, has):
        if name in TABLE_STORE_OPERATIONS:
            yield name, said, TABLE_STORE_OPERATIONS[name].request(**members)


def _table_store_members(table: str, has: Handles) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for said, key in _ROWS.items():
        for versions in (1, 0):
            more = {"max_versions": versions} if versions else {}
            yield "GetRow", f"{said} {versions}", {"table_name": table, "primary_key": key, **more}
            part = messages.TableInBatchGetRowRequest(table_name=table, primary_key=[key], **more)
            yield "BatchGetRow", f"{said} {versions}", {"tables": [part]}
        for name, member, kind in (
            ("PutRow", "row", messages.PUT),
            ("UpdateRow", "row_change", messages.UPDATE),
            ("DeleteRow", "primary_key", messages.DELETE),
        ):
            yield name, said, {"table_name": table, member: key, "condition": _IGNORE}
            held = {"transaction_id": "x"}
            yield name, f"{said} held", {"table_name": table, member: key, "condition": _IGNORE, **held}
            written = messages.RowInBatchWriteRowRequest(type=kind, row_change=key, condition=_IGNORE)
            batch = messages.TableInBatchWriteRowRequest(table_name=table, rows=[written])
            yield "BatchWriteRow", f"{name} {said}", {"tables": [batch]}
            yield "BatchWriteRow", f"atomic {name} {said}", {"tables": [batch], "is_atomic": True}
            loaded = messages.RowInBulkImportRequest(type=kind, row_change=key)
            yield "BulkImport", f"{name} {said}", {"table_name": table, "rows": [loaded]}
        yield "StartLocalTransaction", said, {"table_name": table, "key": key}
    yield from _table_store_ranges(table)
    yield from _table_store_tables(table)
    yield from _table_store_streams(table, has)
    yield from _table_store_tunnels(table)
    yield from _table_store_statements(table)


def _table_store_ranges(table: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    def bound(*names: str, value: Any) -> bytes:
        return encode_row(WireRow(cells_of(dict.fromkeys(names, value)), ()))

    for said, names in (("right", ("pk", "sk")), ("half", ("pk",)), ("another", ("id",))):
        low, high = (bound(*names, value=value) for value in (Bound.INF_MIN, Bound.INF_MAX))
        ends = {"inclusive_start_primary_key": low, "exclusive_end_primary_key": high}
        for limit in (1, -1):
            more = {"max_versions": 1, "direction": messages.FORWARD, "limit": limit}
            yield "GetRange", f"{said} {limit}", {"table_name": table, **ends, **more}
        yield "BulkExport", said, {"table_name": table, **ends, "columns_to_get": ["pk"]}


def _table_store_tables(table: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    yield "DescribeTable", "", {"table_name": table}
    yield "DeleteTable", "", {"table_name": table}
    yield "UpdateTable", "", {"table_name": table, "table_options": messages.TableOptions(max_versions=2)}
    yield "UpdateTable", "nothing", {"table_name": table}
    columns = [messages.PrimaryKeySchema(name="pk", type=messages.STRING)]
    throughput = messages.ReservedThroughput(capacity_unit=messages.CapacityUnit(read=0, write=0))
    for keys in (columns, []):
        meta = messages.TableMeta(table_name=table, primary_key=keys)
        options = messages.TableOptions(time_to_live=-1, max_versions=1)
        made = {"table_meta": meta, "reserved_throughput": throughput, "table_options": options}
        yield "CreateTable", f"{len(keys)}", made
    for size in (1, 0):
        yield "ComputeSplitPointsBySize", f"{size}", {"table_name": table, "split_size": size}
    for column in ("status", "d"):
        added = [messages.DefinedColumnSchema(name=column, type=messages.DCT_INTEGER)]
        yield "AddDefinedColumn", column, {"table_name": table, "columns": added}
        yield "DeleteDefinedColumn", column, {"table_name": table, "columns": [column]}
        index = messages.IndexMeta(
            name="byOther",
            primary_key=[column],
            index_type=messages.IT_GLOBAL_INDEX,
            index_update_mode=messages.IUM_ASYNC_INDEX,
        )
        yield "CreateIndex", column, {"main_table_name": table, "index_meta": index}
    for name in (INDEX, "nowhere"):
        yield "DropIndex", name, {"main_table_name": table, "index_name": name}
        for operation in ("DescribeSearchIndex", "DeleteSearchIndex"):
            yield operation, name, {"table_name": table, "index_name": name}
        yield "UpdateSearchIndex", name, {"table_name": table, "index_name": name, "time_to_live": -1}
        query = search_query(match_all())
        yield "ParallelScan", name, {"table_name": table, "index_name": name}
        options = search_messages.SearchIndexSplitsOptions(index_name=name)
        yield "ComputeSplits", name, {"table_name": table, "search_index_splits_options": options}
        yield "Search", name, {"table_name": table, "index_name": name, "search_query": query}
    for kind in (search_messages.KEYWORD, search_messages.JSON):
        made = {"table_name": table, "index_name": "bySearch", "schema": schema(("status", kind))}
        yield "CreateSearchIndex", f"{kind}", made


def _table_store_statements(table: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for query in (
        f"select * from {table}",
        f"select nothing from {table}",
        f"select * from {table} where pk = 'a'",
        f"select a.pk from {table} a join {table} b on a.pk = b.pk",
        f"desc {table}",
        f"show index from {table}",
        f"create table {table} (pk varchar(9), sk varchar(9), primary key(pk, sk))",
        f"create table {table} (pk bigint, primary key(pk))",
        f"drop mapping table {table}",
        f"drop mapping table if exists {table}",
    ):
        yield "SQLQuery", query.replace(table, "T"), {"query": query}


def _table_store_tunnels(table: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    yield "tunnel/list", "", {"table_name": table}
    for name in ("u", "not a name"):
        for kind in (tunnel_pb2.BaseData, tunnel_pb2.Stream):
            tunnel = tunnel_pb2.Tunnel(table_name=table, tunnel_name=name, tunnel_type=kind)
            yield "tunnel/create", f"{name} {kind}", {"tunnel": tunnel}
        for operation in ("tunnel/describe", "tunnel/delete"):
            yield operation, name, {"table_name": table, "tunnel_name": name}


def _table_store_streams(table: str, has: Handles) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for label in (has.label, "x"):
        stream = f"{table}_{label}"
        yield "DescribeStream", label, {"stream_id": stream}
        yield "DescribeStream", f"none {label}", {"stream_id": stream, "shard_limit": 0}
        for shard in ("shard-00000000", "x"):
            yield "GetShardIterator", f"{label} {shard}", {"stream_id": stream, "shard_id": shard}
        yield "GetStreamRecord", label, {"shard_iterator": f"{stream}:0:0"}
        yield "GetStreamRecord", f"none {label}", {"shard_iterator": f"{stream}:0:0", "limit": 0}
