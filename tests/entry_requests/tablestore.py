"""Table Store: every operation (all enter in front of Flask), and what is refused before an operation is known."""

from __future__ import annotations

from typing import Any

from tablegate.adapters.tablestore.operation_table import OPERATIONS
from tablegate.adapters.tablestore.wire.plainbuffer import Bound, WireRow, encode_row
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as search_messages
from tablegate.adapters.tablestore.wire.protocol import sql_pb2, tunnel_pb2
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.http.messages import Request
from tests.adapters.tablestore.client import cells_of, condition, no_throughput, row, signed
from tests.adapters.tablestore.search_messages import match_all, schema, search_query
from tests.entry_requests import NOW_MS, Case, Send

KEY = {"p": "a", "i": 1}
CELLS = {"text": "ü🙂", "number": 7, "half": 0.5, "flag": True, "bytes": b"\x00\xff"}
LOWEST = {"p": Bound.INF_MIN, "i": Bound.INF_MIN}
HIGHEST = {"p": Bound.INF_MAX, "i": Bound.INF_MAX}


def _request(operation: str, body: bytes, **headers: str) -> Request:
    named = (("host", "localhost:8000"), *signed(operation, body, NOW_MS, **headers))
    return Request("POST", f"/{operation}", named, body)


def _case(name: str, operation: str, **members: Any) -> Case:
    installed = operation in OPERATIONS
    body = OPERATIONS[operation].request(**members).SerializeToString() if installed else b""
    return Case(f"{operation} {name}", operation, _request(operation, body))


def _write(name: str, operation: str, data: bytes, table: str = "t", **members: Any) -> Case:
    content = {"PutRow": "row", "UpdateRow": "row_change", "DeleteRow": "primary_key"}[operation]
    expected = condition(members)
    return _case(name, operation, table_name=table, condition=expected, **{content: data}, **members)


def _deleted(key: dict[str, Any]) -> bytes:
    return encode_row(WireRow(cells_of(key), (), is_delete=True))


def _in_batch(kind: int, data: bytes, expect: int = messages.IGNORE) -> messages.RowInBatchWriteRowRequest:
    expected = messages.Condition(row_existence=expect)  # type: ignore[arg-type]
    return messages.RowInBatchWriteRowRequest(type=kind, row_change=data, condition=expected)  # type: ignore[arg-type]


def _created(table: str, **members: Any) -> dict[str, Any]:
    columns = [
        messages.PrimaryKeySchema(name="p", type=messages.STRING),
        messages.PrimaryKeySchema(name="i", type=messages.INTEGER),
    ]
    return {
        "table_meta": messages.TableMeta(table_name=table, primary_key=columns),
        "reserved_throughput": no_throughput(),
        "table_options": messages.TableOptions(time_to_live=-1, max_versions=1),
        **members,
    }


def _tables() -> list[Case]:
    stream = messages.StreamSpecification(enable_stream=True, expiration_time=24)
    defined = [messages.DefinedColumnSchema(name="d", type=messages.DCT_INTEGER)]
    searched = {"table_name": "indexed", "index_name": "s"}
    made = {**searched, "schema": schema(("d", search_messages.LONG))}
    found = {**searched, "search_query": search_query(match_all())}
    return [
        _case("makes one with a stream", "CreateTable", **_created("t", stream_spec=stream)),
        _case("of one that is there", "CreateTable", **_created("t")),
        _case("of a name that is none", "CreateTable", **_created("t-")),
        _case("makes one for indexes", "CreateTable", **_created("indexed")),
        _case("finds", "ListTable"),
        _case("finds", "DescribeTable", table_name="t"),
        _case("of none", "DescribeTable", table_name="nowhere"),
        _case("changes", "UpdateTable", table_name="t", table_options=messages.TableOptions(max_versions=2)),
        _case("of nothing", "UpdateTable", table_name="t"),
        _case("adds", "AddDefinedColumn", table_name="indexed", columns=defined),
        _case("makes", "CreateIndex", main_table_name="indexed", include_base_data=False, index_meta=messages.IndexMeta(
            name="by_d", primary_key=["d"], index_update_mode=messages.IUM_ASYNC_INDEX, index_type=messages.IT_GLOBAL_INDEX)),
        _case("of none", "DropIndex", main_table_name="indexed", index_name="none"),
        _case("drops", "DropIndex", main_table_name="indexed", index_name="by_d"),
        _case("removes", "DeleteDefinedColumn", table_name="indexed", columns=["d"]),
        _case("makes", "CreateSearchIndex", **made),
        _case("of none", "DescribeSearchIndex", table_name="indexed", index_name="none"),
        _case("of one that is there", "CreateSearchIndex", **made),
        _case("finds one", "ListSearchIndex", table_name="indexed"),
        _case("of none", "Search", **{**found, "index_name": "none"}),
        _case("finds none", "Search", **found),
        _case("of none", "ComputeSplits", table_name="indexed"),
        _case("of no session", "ParallelScan", **searched),
        _case("of nothing", "UpdateSearchIndex", **searched),
        _case("changes", "UpdateSearchIndex", **searched, time_to_live=-1),
        _case("drops", "DeleteSearchIndex", **searched),
        _case("finds none", "ListSearchIndex", table_name="t"),
        _case("finds none", "ListTimeseriesTable"),
        _case("deletes", "DeleteTable", table_name="indexed"),
        _case("of none", "DeleteTable", table_name="nowhere"),
    ]  # fmt: skip


def _tunnels() -> list[Case]:
    """Requests whose answers have no random ids."""
    named = {"table_name": "t", "tunnel_name": "none"}
    of_none = {"tunnel_id": "none"}
    client = {**of_none, "client_id": "none"}
    channel = {**client, "channel_id": "none"}
    wanted = tunnel_pb2.Tunnel(table_name="nowhere", tunnel_name="u", tunnel_type=tunnel_pb2.Stream)
    return [
        _case("of no table", "tunnel/create", tunnel=wanted),
        _case("finds none", "tunnel/list", table_name="t"),
        _case("of none", "tunnel/describe", **named),
        _case("of none", "tunnel/delete", **named),
        _case("of none", "tunnel/getrpo", **of_none),
        _case("of none", "tunnel/connect", **of_none),
        _case("of none", "tunnel/heartbeat", **client),
        _case("of none", "tunnel/shutdown", **client),
        _case("of none", "tunnel/getcheckpoint", **channel),
        _case("of none", "tunnel/checkpoint", **channel, checkpoint="x", sequence_number=1),
        _case("of none", "tunnel/readrecords", **channel, token="x"),
    ]


def _statements() -> list[Case]:
    def statement(name: str, query: str) -> Case:
        return _case(name, "SQLQuery", query=query, version=sql_pb2.SQL_FLAT_BUFFERS)

    return [
        statement("maps", "create table t (p varchar(9), i bigint, number bigint, primary key(p, i))"),
        statement("finds", "select * from t where p = 'a' order by i desc limit 3"),
        statement("counts", "select number, count(*) from t group by number order by 1"),
        statement("shows", "show tables"),
        statement("describes", "desc t"),
        statement("of no table", "select * from nowhere"),
        statement("of no statement", "guess"),
        statement("unmaps", "drop mapping table t"),
    ]


def _rows() -> list[Case]:
    other = {"p": "a", "i": 2}
    back = messages.ReturnContent(return_type=messages.RT_PK)
    return [
        _write("puts every kind", "PutRow", row(KEY, CELLS)),
        _write("puts a new one", "PutRow", row(other, {"n": 1}), expect=messages.EXPECT_NOT_EXIST, return_content=back),
        _write("under a false condition", "PutRow", row(other), expect=messages.EXPECT_NOT_EXIST),
        _write("of half a key", "PutRow", row({"p": "a"})),
        _write("of a wrong type", "PutRow", row({"p": "a", "i": "1"})),
        _write("of bytes that are no row", "PutRow", b"\x75\x00\x00\x00\x01"),
        _write("of no bytes", "PutRow", b""),
        _write("into no table", "PutRow", row(KEY), table="nowhere"),
        _write("updates", "UpdateRow", row(KEY, {"number": 8}), return_content=back),
        _write("under a false condition", "UpdateRow", row({"p": "b", "i": 1}, {"n": 1}), expect=messages.EXPECT_EXIST),
        _write("deletes", "DeleteRow", _deleted({"p": "b", "i": 1})),
        _write("under a false condition", "DeleteRow", _deleted({"p": "b", "i": 1}), expect=messages.EXPECT_EXIST),
        _case("finds", "GetRow", table_name="t", primary_key=row(KEY), max_versions=1),
        _case("shows a part", "GetRow", table_name="t", primary_key=row(KEY), max_versions=1, columns_to_get=["half", "p"]),
        _case("finds nothing", "GetRow", table_name="t", primary_key=row({"p": "z", "i": 1}), max_versions=1),
        _case("without versions", "GetRow", table_name="t", primary_key=row(KEY)),
        _case("from no table", "GetRow", table_name="nowhere", primary_key=row(KEY), max_versions=1),
    ]  # fmt: skip


def _many() -> list[Case]:
    def read(name: str, *keys: dict[str, Any]) -> Any:
        return messages.TableInBatchGetRowRequest(
            table_name=name, primary_key=[row(key) for key in keys], max_versions=1
        )

    def written(name: str, *rows: Any) -> Any:
        return messages.TableInBatchWriteRowRequest(table_name=name, rows=rows)

    puts = [_in_batch(messages.PUT, row({"p": "batch", "i": number}, {"n": number})) for number in range(3)]
    refused = _in_batch(messages.UPDATE, row({"p": "no", "i": 1}, {"n": 1}), messages.EXPECT_EXIST)
    every = {"table_name": "t", "max_versions": 1}
    forward = {"inclusive_start_primary_key": row(LOWEST), "exclusive_end_primary_key": row(HIGHEST)}
    backward = {"inclusive_start_primary_key": row(HIGHEST), "exclusive_end_primary_key": row(LOWEST)}
    imported = messages.RowInBulkImportRequest(
        type=messages.PUT, row_change=row({"p": "bulk", "i": 1}, {"n": 1})
    )
    return [
        _case("writes, and one is refused", "BatchWriteRow", tables=[written("t", *puts, refused)]),
        _case("atomic, and refused", "BatchWriteRow", tables=[written("t", *puts, refused)], is_atomic=True),
        _case("of nothing", "BatchWriteRow"),
        _case("into no table", "BatchWriteRow", tables=[written("nowhere", puts[0])]),
        _case("finds", "BatchGetRow", tables=[read("t", KEY, {"p": "z", "i": 1})]),
        _case("from no table", "BatchGetRow", tables=[read("nowhere", KEY)]),
        _case("of nothing", "BatchGetRow"),
        _case("finds", "GetRange", direction=messages.FORWARD, **every, **forward),
        _case("backwards, two", "GetRange", direction=messages.BACKWARD, limit=2, **every, **backward),
        _case("the wrong way round", "GetRange", direction=messages.FORWARD, **every, **backward),
        _case("of a limit that is none", "GetRange", direction=messages.FORWARD, limit=-1, **every, **forward),
        _case("writes", "BulkImport", table_name="t", rows=[imported]),
        _case("of nothing", "BulkImport", table_name="t"),
        _case("finds", "BulkExport", table_name="t", columns_to_get=["p", "i", "n"], **forward),
        _case("from no table", "BulkExport", table_name="nowhere", columns_to_get=["p"], **forward),
        _case("splits", "ComputeSplitPointsBySize", table_name="t", split_size=1),
    ]  # fmt: skip


def transactions(send: Send) -> None:
    """A transaction that is committed, one that is given up, and what refers to none."""
    for name in ("CommitTransaction", "AbortTransaction"):
        started = send(_case("begins", "StartLocalTransaction", table_name="t", key=row({"p": "held"})))
        held = {
            "transaction_id": messages.StartLocalTransactionResponse.FromString(started.body).transaction_id
        }
        send(_write("in a transaction", "PutRow", row({"p": "held", "i": 1}, {"by": name}), **held))
        send(_write("in another partition", "PutRow", row({"p": "free", "i": 1}), **held))
        send(_write("of a partition that is held", "PutRow", row({"p": "held", "i": 2})))
        send(
            _case(
                "of a partition that is held", "StartLocalTransaction", table_name="t", key=row({"p": "held"})
            )
        )
        send(_case("ends", name, **held))
        send(_case("of one that has ended", name, **held))
    send(_case("of a whole key", "StartLocalTransaction", table_name="t", key=row(KEY)))


def streams(send: Send) -> None:
    """Follow the table's stream from its beginning, then request a missing stream, shard and iterator."""
    [stream] = messages.ListStreamResponse.FromString(
        send(_case("finds", "ListStream", table_name="t")).body
    ).streams
    whole = {"stream_id": stream.stream_id}
    described = messages.DescribeStreamResponse.FromString(
        send(_case("finds", "DescribeStream", **whole)).body
    )
    for shard in described.shards:
        begun = send(_case("begins", "GetShardIterator", **whole, shard_id=shard.shard_id))
        place = messages.GetShardIteratorResponse.FromString(begun.body).shard_iterator
        send(_case("finds", "GetStreamRecord", shard_iterator=place))
        send(_case("a page", "GetStreamRecord", shard_iterator=place, limit=1))
    send(_case("of none", "DescribeStream", stream_id="x"))
    send(_case("of none", "GetShardIterator", **whole, shard_id="x"))
    send(_case("of an iterator that is none", "GetStreamRecord", shard_iterator="x"))


def _refused_before() -> list[Case]:
    body = (
        OPERATIONS["GetRow"].request(table_name="t", primary_key=row(KEY), max_versions=1).SerializeToString()
    )

    def raw(name: str, operation: str = "GetRow", **headers: str) -> Case:
        return Case(name, operation, _request(operation, body, **headers))

    good = _request("GetRow", body)
    return [
        raw("a wrong signature", x_ots_signature="eA=="),
        raw("an unknown key", x_ots_accesskeyid="nobody"),
        raw("no key", x_ots_accesskeyid=""),
        raw("no date", x_ots_date=""),
        raw("a date long ago", x_ots_date="2001-01-01T00:00:00.000Z"),
        raw("a wrong checksum", x_ots_contentmd5="eA=="),
        raw("no instance", x_ots_instancename=""),
        raw("no version", x_ots_apiversion=""),
        raw("an operation that is none", "Guess"),
        raw("compression that is none", x_ots_request_compress_type="guess", x_ots_request_compress_size="9"),
        Case("bytes that are no message", "GetRow", _request("GetRow", b"\xff\xff")),
        Case("no body", "GetRow", _request("GetRow", b"")),
        Case("by GET", "GetRow", Request("GET", good.target, good.headers, b"")),
    ]  # fmt: skip


_INSTALLED = (
    case
    for case in (*_tables(), *_tunnels(), *_rows(), *_many(), *_statements())
    if case.operation in OPERATIONS
)
CASES = [*_INSTALLED, *_refused_before()]
