"""Workloads of Table Store, with rows of two key columns and about 900 bytes.

There is no other server to compare with. So the same work also runs through the server's DynamoDB dialect, and in
raw SQL (databases.py). Requests are built with the adapter's protocol module and PlainBuffer encoder, which its
tests compare with the SDKs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from benchmarks import dynamodb
from benchmarks.dynamodb import partition_of
from benchmarks.signing import Client, tablestore
from benchmarks.signing import dynamodb as sign_dynamodb
from benchmarks.workloads import Workload, expect
from tablegate.adapters.tablestore.wire.plainbuffer import (
    Bound,
    WireCell,
    WireRow,
    decode_row,
    decode_rows,
    encode_row,
)
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.values.values import TRUE, Kind, Value

_RANGE = 1000
_BATCH = 200
_ITEMS_BATCH = 25  # DynamoDB's limit
_FILLER = "x" * 780


def _key(partition: str, sort: Any) -> tuple[WireCell, WireCell]:
    return WireCell("pk", Value(Kind.TEXT, partition)), WireCell("sk", sort)


def _row(partition: str, number: int) -> bytes:
    cells = (
        WireCell("name", Value(Kind.TEXT, f"customer {number % 1000:03d}")),
        WireCell("visits", Value(Kind.INT64, number % 1000)),
        WireCell("active", TRUE),
        WireCell("text", Value(Kind.TEXT, _FILLER)),
    )
    return encode_row(WireRow(_key(partition, Value(Kind.INT64, number)), cells))


def _make_table(client: Client, name: str) -> None:
    columns = [
        messages.PrimaryKeySchema(name="pk", type=messages.STRING),
        messages.PrimaryKeySchema(name="sk", type=messages.INTEGER),
    ]
    request = messages.CreateTableRequest(
        table_meta=messages.TableMeta(table_name=name, primary_key=columns),
        reserved_throughput=messages.ReservedThroughput(capacity_unit=messages.CapacityUnit(read=0, write=0)),
        table_options=messages.TableOptions(time_to_live=-1, max_versions=1),
    )
    expect(client, tablestore(client.port, "CreateTable", request.SerializeToString()))


def _empty(name: str) -> Callable[[Client], None]:
    return lambda client: _make_table(client, name)


def _prepare_read(client: Client) -> None:
    _make_table(client, "Read")
    for start in range(0, _RANGE, _BATCH):
        rows = [_row("part0000", number) for number in range(start, start + _BATCH)]
        expect(client, _writes(client.port, "Read", rows))


def _writes(port: int, table: str, rows: list[bytes]) -> bytes:
    changes = [
        messages.RowInBatchWriteRowRequest(type=messages.PUT, row_change=row, condition=_ignore())
        for row in rows
    ]
    of_table = messages.TableInBatchWriteRowRequest(table_name=table, rows=changes)
    return tablestore(
        port, "BatchWriteRow", messages.BatchWriteRowRequest(tables=[of_table]).SerializeToString()
    )


def _ignore() -> Any:
    return messages.Condition(row_existence=messages.IGNORE)


def _put(port: int, number: int) -> bytes:
    row = _row(partition_of(number), number)
    request = messages.PutRowRequest(table_name="Put", row=row, condition=_ignore())
    return tablestore(port, "PutRow", request.SerializeToString())


def _get(port: int, number: int) -> bytes:
    key = encode_row(WireRow(_key("part0000", Value(Kind.INT64, number * 7919 % _RANGE))))
    request = messages.GetRowRequest(table_name="Read", primary_key=key, max_versions=1)
    return tablestore(port, "GetRow", request.SerializeToString())


def _range(port: int, number: int) -> bytes:
    first, last = (encode_row(WireRow(_key("part0000", bound))) for bound in (Bound.INF_MIN, Bound.INF_MAX))
    request = messages.GetRangeRequest(
        table_name="Read",
        direction=messages.FORWARD,
        max_versions=1,
        inclusive_start_primary_key=first,
        exclusive_end_primary_key=last,
    )
    return tablestore(port, "GetRange", request.SerializeToString())


def _batch(port: int, number: int) -> bytes:
    first = number * _BATCH
    return _writes(
        port,
        "Batch",
        [_row(partition_of(row_number), row_number) for row_number in range(first, first + _BATCH)],
    )


def _has_row(body: bytes) -> bool:
    row = decode_row(messages.GetRowResponse.FromString(body).row)
    return any(cell.name == "text" and cell.value == Value(Kind.TEXT, _FILLER) for cell in row.cells)


def _has(count: int, body: bytes) -> bool:
    return len(decode_rows(messages.GetRangeResponse.FromString(body).rows)) == count


def _wrote_one(body: bytes) -> bool:
    return bool(messages.PutRowResponse.FromString(body).IsInitialized())


def _wrote_all(body: bytes) -> bool:
    [of_table] = messages.BatchWriteRowResponse.FromString(body).tables
    return len(of_table.rows) == _BATCH and all(row.is_ok for row in of_table.rows)


# The same work through the DynamoDB dialect


def _item(partition: str, number: int) -> dict[str, dict[str, Any]]:
    """Return the columns and values of `_row` as an item."""
    return {
        "pk": {"S": partition},
        "sk": {"N": str(number)},
        "name": {"S": f"customer {number % 1000:03d}"},
        "visits": {"N": str(number % 1000)},
        "active": {"BOOL": True},
        "text": {"S": _FILLER},
    }


def _call(operation: str, make: Callable[[int], dict[str, Any]]) -> Callable[[int, int], bytes]:
    return lambda port, number: sign_dynamodb(
        port, operation, json.dumps(make(number), separators=(",", ":")).encode()
    )


def _batch_body(table: str, items: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {"RequestItems": {table: [{"PutRequest": {"Item": item}} for item in items]}}


def _empty_items(name: str) -> Callable[[Client], None]:
    return lambda client: dynamodb.make_table(client, name, sort_type="N")


def _prepare_items(client: Client) -> None:
    dynamodb.make_table(client, "ReadItems", sort_type="N")
    dynamodb.load(client, "ReadItems", (_item("part0000", number) for number in range(_RANGE)))


def _put_item(number: int) -> dict[str, Any]:
    return {"TableName": "PutItems", "Item": _item(partition_of(number), number)}


def _get_item(number: int) -> dict[str, Any]:
    key = {"pk": {"S": "part0000"}, "sk": {"N": str(number * 7919 % _RANGE)}}
    return {"TableName": "ReadItems", "Key": key}


def _query(number: int) -> dict[str, Any]:
    """Return a query for a page of 1 MB with all items."""
    return {
        "TableName": "ReadItems",
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": "part0000"}},
    }


def _put_items(number: int) -> dict[str, Any]:
    first = number * _ITEMS_BATCH
    items = (
        _item(partition_of(item_number), item_number) for item_number in range(first, first + _ITEMS_BATCH)
    )
    return _batch_body("BatchItems", items)


def _has_item(body: bytes) -> bool:
    return bool(json.loads(body)["Item"]["text"] == {"S": _FILLER})


def _has_items(body: bytes) -> bool:
    return bool(json.loads(body)["Count"] == _RANGE)


def _wrote_items(body: bytes) -> bool:
    return json.loads(body) == {"UnprocessedItems": {}}


WORKLOADS = (
    Workload("put", "PutRow", _put, _empty("Put"), _wrote_one),
    Workload("get", "GetRow", _get, _prepare_read, _has_row, pool=1000),
    Workload("range", "GetRange of 1,000", _range, _prepare_read, partial(_has, _RANGE), pool=1, rows=_RANGE),
    Workload("batch", "BatchWriteRow of 200", _batch, _empty("Batch"), _wrote_all, rows=_BATCH),
    Workload(
        "put-item", "the same row by PutItem", _call("PutItem", _put_item), _empty_items("PutItems"), bool
    ),
    Workload(
        "get-item", "the same by GetItem", _call("GetItem", _get_item), _prepare_items, _has_item, pool=1000
    ),
    Workload(
        "query",
        "the same 1,000 by Query",
        _call("Query", _query),
        _prepare_items,
        _has_items,
        pool=1,
        rows=_RANGE,
    ),
    Workload(
        "batch-items",
        "such rows by BatchWriteItem of 25",
        _call("BatchWriteItem", _put_items),
        _empty_items("BatchItems"),
        _wrote_items,
        rows=_ITEMS_BATCH,
    ),
)
