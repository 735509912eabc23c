"""Requests as large as Table Store takes, made of very many small things, that must be refused: by name.

There is a table `t` with the key `pk` (INTEGER). Bodies are put together as bytes: messages of a million parts would take longer
to make than to refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from google.protobuf.message import Message

from tablegate.adapters.tablestore.wire.plainbuffer import HEADER, WireCell, WireRow, encode_row
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.values.values import Kind, Value

_ONE = Value(Kind.INT64, 1)
_KEY = encode_row(WireRow([WireCell("pk", _ONE)]))
_ROW = encode_row(WireRow([WireCell("pk", _ONE)], [WireCell("c", _ONE)]))
_IGNORE = messages.Condition(row_existence=messages.IGNORE).SerializeToString()
_CELL = encode_row(WireRow([WireCell("c", _ONE)]))[len(HEADER) + 1 : -2]
_NUMBER = b"\xf8\x7f\x01"
"""An unknown field."""


class Wasteful(NamedTuple):
    """A request: what it is made of, the operation and its body."""

    name: str
    operation: str
    body: bytes


def encoded(kind: type[Message], **members: bytes | int) -> bytes:
    """Return a message of a kind from encoded members."""
    made = b""
    for name, value in members.items():
        number = kind.DESCRIPTOR.fields_by_name[name].number << 3
        if isinstance(value, int):
            made += _varint(number) + _varint(value)
        else:
            made += _varint(number | 2) + _varint(len(value)) + value
    return made


def _varint(number: int) -> bytes:
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    made.append(number)
    return bytes(made)


def times(part: bytes, size_bytes: int) -> bytes:
    """A part, over and over."""
    return part * (size_bytes // len(part))


def with_number(part: Callable[[bytes], bytes], size_bytes: int) -> bytes:
    """Parts that are each made of their number."""
    return b"".join(part(b"%d" % number) for number in range(size_bytes // (len(part(b"")) + 6)))


def batches(size_bytes: int) -> Iterator[Wasteful]:
    """Batches of very many rows or tables."""
    batch, table, row = (
        messages.BatchWriteRowRequest,
        messages.TableInBatchWriteRowRequest,
        messages.RowInBatchWriteRowRequest,
    )
    put = encoded(row, type=messages.PUT, row_change=_ROW, condition=_IGNORE)
    for name, data in {
        "rows": put,
        "broken rows": encoded(row, type=messages.PUT, row_change=b"", condition=_IGNORE),
        "incomplete rows": encoded(row, type=messages.PUT),
    }.items():
        rows = times(encoded(table, rows=data), size_bytes)
        body = encoded(batch, tables=encoded(table, table_name=b"t") + rows)
        yield Wasteful(f"many {name}", "BatchWriteRow", body)
    one = encoded(table, rows=put)
    for name, make in {
        "tables": lambda n: encoded(batch, tables=encoded(table, table_name=b"t" + n) + one),
        "tables without rows": lambda n: encoded(batch, tables=encoded(table, table_name=b"t" + n)),
        "empty tables": lambda n: encoded(batch, tables=b""),
    }.items():
        yield Wasteful(f"many {name}", "BatchWriteRow", with_number(make, size_bytes))
    bulk, bulk_row = messages.BulkImportRequest, messages.RowInBulkImportRequest
    rows = times(encoded(bulk, rows=encoded(bulk_row, type=messages.PUT, row_change=_ROW)), size_bytes)
    yield Wasteful("many rows", "BulkImport", encoded(bulk, table_name=b"t") + rows)
    yield from _gets(size_bytes)


def _gets(size_bytes: int) -> Iterator[Wasteful]:
    batch, table = messages.BatchGetRowRequest, messages.TableInBatchGetRowRequest
    named = encoded(table, table_name=b"t", max_versions=1)
    for name, part in {
        "keys": encoded(table, primary_key=_KEY),
        "columns to get": encoded(table, columns_to_get=b"c"),
        "columns to get without a name": encoded(table, columns_to_get=b""),
    }.items():
        body = encoded(batch, tables=named + encoded(table, primary_key=_KEY) + times(part, size_bytes))
        yield Wasteful(f"many {name}", "BatchGetRow", body)
    for name, part in {
        "tables": named + encoded(table, primary_key=_KEY),
        "tables without keys": named,
        "badly named tables": encoded(table, table_name=b"-", max_versions=1),
        "empty tables": b"",
    }.items():
        yield Wasteful(f"many {name}", "BatchGetRow", times(encoded(batch, tables=part), size_bytes))


def rows(size_bytes: int) -> Iterator[Wasteful]:
    """Rows and keys, and what is no message."""
    key_of = HEADER + b"\x01"
    for name, data in {
        "many columns": _KEY[:-2] + b"\x02" + times(_CELL, size_bytes),
        "many key columns": key_of + times(_CELL, size_bytes),
        "many rows": HEADER + times(_KEY[len(HEADER) :], size_bytes),
        "zeros": bytes(size_bytes),
        "a row, zeros and more": _KEY + bytes(size_bytes) + b"\x01",
    }.items():
        table = encoded(messages.PutRowRequest, table_name=b"t")
        put = table + encoded(messages.PutRowRequest, row=data, condition=_IGNORE)
        yield Wasteful(name, "PutRow", put)
        update = table + encoded(messages.UpdateRowRequest, row_change=data, condition=_IGNORE)
        yield Wasteful(name, "UpdateRow", update)
        get = table + encoded(messages.GetRowRequest, primary_key=data, max_versions=1)
        yield Wasteful(name, "GetRow", get)
        ranged = messages.GetRangeRequest
        bounds = encoded(ranged, inclusive_start_primary_key=data, exclusive_end_primary_key=_KEY)
        ends = encoded(ranged, direction=messages.FORWARD, max_versions=1)
        yield Wasteful(name, "GetRange", table + bounds + ends)
    get = encoded(messages.GetRowRequest, table_name=b"t", primary_key=_KEY, max_versions=1)
    names = times(encoded(messages.GetRowRequest, columns_to_get=b""), size_bytes)
    yield Wasteful("many columns to get without a name", "GetRow", get + names)
    returned = times(encoded(messages.ReturnContent, return_column_names=b"a"), size_bytes)
    returned += encoded(messages.ReturnContent, return_type=messages.RT_AFTER_MODIFY)
    put = encoded(
        messages.PutRowRequest, table_name=b"t", row=_KEY, condition=_IGNORE, return_content=returned
    )
    yield Wasteful("many columns to return", "PutRow", put)
    yield Wasteful("no message", "PutRow", b"\xff" * size_bytes)
    yield Wasteful("unknown fields", "GetRow", times(_NUMBER, size_bytes))
    yield Wasteful("unknown groups", "GetRow", times(b"\xfb\x7f\xfc\x7f", size_bytes))


def filters(size_bytes: int) -> Iterator[Wasteful]:
    """Filters of reads."""
    kind, composite = messages.Filter, messages.CompositeColumnValueFilter
    single = encoded(
        messages.SingleColumnValueFilter,
        comparator=messages.CT_EXIST,
        column_name=b"c",
        column_value=b"",
        filter_if_missing=1,
        latest_version_only=1,
    )
    leaf = encoded(kind, type=messages.FT_SINGLE_COLUMN_VALUE, filter=single)

    def joined(parts: bytes, combinator: int = messages.LO_AND) -> bytes:
        made = encoded(composite, combinator=combinator) + parts
        return encoded(kind, type=messages.FT_COMPOSITE_COLUMN_VALUE, filter=made)

    many = joined(times(encoded(composite, sub_filters=leaf), size_bytes))
    below = joined(times(encoded(composite, sub_filters=leaf), size_bytes // 31))
    deep = many
    for _ in range(40):
        deep = joined(encoded(composite, sub_filters=deep), messages.LO_NOT)
    for name, data in {
        "many filters": many,
        "many empty filters": joined(times(encoded(composite, sub_filters=b""), size_bytes)),
        "filters of many": joined(encoded(composite, sub_filters=below) * 31),
        "deep filters": deep,
        "a filter of unknown fields": times(_NUMBER, size_bytes),
    }.items():
        get = encoded(messages.GetRowRequest, table_name=b"t", primary_key=_KEY, max_versions=1, filter=data)
        yield Wasteful(name, "GetRow", get)


def tables(size_bytes: int) -> Iterator[Wasteful]:
    """Tables and indexes of very many columns."""
    meta, create, index = messages.TableMeta, messages.CreateTableRequest, messages.IndexMeta
    schema = encoded(messages.PrimaryKeySchema, name=b"pk", type=messages.INTEGER)
    table = encoded(meta, table_name=b"many", primary_key=schema)
    made = encoded(
        create,
        reserved_throughput=b"\x0a\x04\x08\x00\x10\x00",
        table_options=encoded(messages.TableOptions, time_to_live=86400, max_versions=1),
    )

    def defined(number: bytes) -> bytes:
        return encoded(messages.DefinedColumnSchema, name=b"d" + number, type=messages.DCT_INTEGER)

    for name, columns in {
        "key columns": times(encoded(meta, primary_key=schema), size_bytes),
        "empty key columns": times(encoded(meta, primary_key=b""), size_bytes),
        "defined columns": with_number(lambda n: encoded(meta, defined_column=defined(n)), size_bytes),
        "empty defined columns": times(encoded(meta, defined_column=b""), size_bytes),
    }.items():
        yield Wasteful(f"many {name}", "CreateTable", made + encoded(create, table_meta=table + columns))
    made += encoded(create, table_meta=table)
    narrow = encoded(index, name=b"i", primary_key=b"pk", index_update_mode=0, index_type=0)
    wide = narrow + times(encoded(index, primary_key=b"pk"), size_bytes)
    part = encoded(messages.PartitionRange, begin=bytes(9), end=bytes(9))
    for name, more in {
        "many indexes": times(encoded(create, index_metas=narrow), size_bytes),
        "many empty indexes": times(encoded(create, index_metas=b""), size_bytes),
        "many partitions": times(encoded(create, partitions=part), size_bytes),
        "a wide index": encoded(create, index_metas=wide),
    }.items():
        yield Wasteful(name, "CreateTable", made + more)
    asked = encoded(messages.CreateIndexRequest, main_table_name=b"t", index_meta=wide)
    yield Wasteful("a wide index", "CreateIndex", asked)
    add = messages.AddDefinedColumnRequest
    columns = with_number(lambda n: encoded(add, columns=defined(n)), size_bytes)
    yield Wasteful("many columns", "AddDefinedColumn", encoded(add, table_name=b"t") + columns)
    drop = messages.DeleteDefinedColumnRequest
    names = times(encoded(drop, columns=b"d"), size_bytes)
    yield Wasteful("many columns", "DeleteDefinedColumn", encoded(drop, table_name=b"t") + names)
