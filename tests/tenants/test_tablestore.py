"""A foreign Table Store key, and every identifier: the instance header, names of tables and indexes, stream ids, shard ids,
iterators, start keys, transaction ids."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import tablestore as ots

from tablegate.adapters.tablestore.operation_table import OPERATIONS
from tablegate.adapters.tablestore.wire.plainbuffer import Bound, decode_row
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as search_messages
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.adapters.tablestore.wire.protocol import tunnel_pb2
from tests.adapters.tablestore.client import Refused, no_throughput, plain, row, rows_of
from tests.adapters.tablestore.search_messages import match_all, schema, search_query
from tests.support.sql_client import sql
from tests.support.tables import each_row
from tests.support.tunnel_client import create_tunnel, describe
from tests.tenants.conftest import ABSENT, MUSIC, Instance, Tenants, same_as_of_nobody, secret_of, whole_range

KEY, NEW = {"pk": "p", "sk": "s0"}, {"pk": "p", "sk": "stolen"}


def one_row(name: str, **members: Any) -> Any:
    return messages.TableInBatchGetRowRequest(
        table_name=name, primary_key=[row(KEY)], max_versions=1, **members
    )


def one_write(name: str) -> Any:
    change = messages.RowInBatchWriteRowRequest(
        type=messages.PUT,
        row_change=row(NEW, {"a": 1}),
        condition=messages.Condition(row_existence=messages.IGNORE),
    )
    return messages.TableInBatchWriteRowRequest(table_name=name, rows=[change])


BY_NAME: dict[str, Callable[[Instance, str], Any]] = {
    "DescribeTable": lambda c, n: c.call("DescribeTable", table_name=n),
    "UpdateTable": lambda c, n: c.call("UpdateTable", table_name=n, reserved_throughput=no_throughput()),
    "DeleteTable": lambda c, n: c.call("DeleteTable", table_name=n),
    "AddDefinedColumn": lambda c, n: c.call(
        "AddDefinedColumn",
        table_name=n,
        columns=[messages.DefinedColumnSchema(name="x", type=messages.DCT_STRING)],
    ),
    "DeleteDefinedColumn": lambda c, n: c.call("DeleteDefinedColumn", table_name=n, columns=["album"]),
    "ComputeSplitPointsBySize": lambda c, n: c.call("ComputeSplitPointsBySize", table_name=n, split_size=1),
    "CreateIndex": lambda c, n: c.call(
        "CreateIndex",
        main_table_name=n,
        index_meta=messages.IndexMeta(
            name="other",
            primary_key=["album"],
            index_type=messages.IT_GLOBAL_INDEX,
            index_update_mode=messages.IUM_ASYNC_INDEX,
        ),
    ),
    "DropIndex": lambda c, n: c.call("DropIndex", main_table_name=n, index_name="byAlbum"),
    "StartLocalTransaction": lambda c, n: c.call("StartLocalTransaction", table_name=n, key=row({"pk": "p"})),
    "GetRow": lambda c, n: c.get(KEY, table=n),
    "PutRow": lambda c, n: c.put(NEW, {"a": 1}, table=n),
    "UpdateRow": lambda c, n: c.update(KEY, {"a": 1}, table=n),
    "DeleteRow": lambda c, n: c.delete(KEY, table=n),
    "BatchGetRow": lambda c, n: c.call("BatchGetRow", tables=[one_row(n)]),
    "BatchWriteRow": lambda c, n: c.call("BatchWriteRow", tables=[one_write(n)]),
    "GetRange": lambda c, n: whole_range(c, n),
    "BulkImport": lambda c, n: c.call(
        "BulkImport",
        table_name=n,
        rows=[messages.RowInBulkImportRequest(type=messages.PUT, row_change=row(NEW, {"a": 1}))],
    ),
    "BulkExport": lambda c, n: c.call(
        "BulkExport",
        table_name=n,
        inclusive_start_primary_key=row({"pk": Bound.INF_MIN, "sk": Bound.INF_MIN}),
        exclusive_end_primary_key=row({"pk": Bound.INF_MAX, "sk": Bound.INF_MAX}),
        columns_to_get=["album"],
    ),
    "ListStream": lambda c, n: c.call("ListStream", table_name=n),
    "ListSearchIndex": lambda c, n: c.call("ListSearchIndex", table_name=n),
    "SQLQuery": lambda c, n: sql(c, f"select * from {n}"),
    "tunnel/create": lambda c, n: create_tunnel(c, tunnel_pb2.BaseAndStream, n),
    "tunnel/delete": lambda c, n: c.call("tunnel/delete", table_name=n, tunnel_name="u"),
    "tunnel/list": lambda c, n: c.call("tunnel/list", table_name=n),
    "tunnel/describe": lambda c, n: describe(c, n),
    "CreateSearchIndex": lambda c, n: c.call(
        "CreateSearchIndex",
        table_name=n,
        index_name="other",
        schema=schema(("album", search_messages.KEYWORD)),
    ),
    "DescribeSearchIndex": lambda c, n: c.call("DescribeSearchIndex", table_name=n, index_name="i"),
    "UpdateSearchIndex": lambda c, n: c.call(
        "UpdateSearchIndex", table_name=n, index_name="i", time_to_live=-1
    ),
    "DeleteSearchIndex": lambda c, n: c.call("DeleteSearchIndex", table_name=n, index_name="i"),
    "ComputeSplits": lambda c, n: c.call(
        "ComputeSplits",
        table_name=n,
        search_index_splits_options=search_messages.SearchIndexSplitsOptions(index_name="i"),
    ),
    "ParallelScan": lambda c, n: c.call("ParallelScan", table_name=n, index_name="i"),
    "Search": lambda c, n: c.call(
        "Search", table_name=n, index_name="i", search_query=search_query(match_all())
    ),
}
BY_NAME = {name: asks for name, asks in BY_NAME.items() if name in OPERATIONS}
WITHOUT_NAME = {"CreateTable", "ListTable", "ListTimeseriesTable", "CommitTransaction", "AbortTransaction"}
BY_STREAM = {"DescribeStream", "GetShardIterator", "GetStreamRecord"}
OF_SEARCH_INDEXES = {"ComputeSplits", "ParallelScan", "Search"} | {
    f"{verb}SearchIndex" for verb in ("Create", "Describe", "Update", "Delete")
}
BY_TUNNEL = {name for name in OPERATIONS if name.startswith("tunnel/") and name not in BY_NAME}


def said(call: Callable[[], Any]) -> str:
    try:
        return str(call())
    except Refused as error:
        return f"{error.code}: {error.message}"


def test_no_operation_is_forgotten() -> None:
    assert set(OPERATIONS) == set(BY_NAME) | WITHOUT_NAME | BY_STREAM | BY_TUNNEL


@each_row("operation", BY_NAME)
def test_a_name_is_a_name_of_the_instances(tenants: Tenants, operation: str) -> None:
    thief = tenants.thief.tablestore()
    answer = same_as_of_nobody(lambda name: said(lambda: BY_NAME[operation](thief, name)))
    absent = "Requested table does not exist" if operation.startswith("tunnel/") else "OTSObjectNotExist"
    if operation in OF_SEARCH_INDEXES:
        absent = "OTSParameterInvalid: table ["
    assert absent in answer or operation in ("ListStream", "ListSearchIndex"), answer


@pytest.mark.parametrize("operation", sorted(BY_TUNNEL))
def test_a_tunnel_is_one_of_the_instances(tenants: Tenants, operation: str) -> None:
    """Another instance gets the answer for a tunnel that does not exist."""
    owner, thief = tenants.victim.tablestore(), tenants.thief.tablestore()
    create_tunnel(owner, tunnel_pb2.BaseAndStream, MUSIC, "theirs")
    tunnel = describe(owner, MUSIC, "theirs").tunnel.tunnel_id
    request = OPERATIONS[operation].request
    names = {field.name for field in request.DESCRIPTOR.fields}
    members = {"client_id": "c", "channel_id": "c", "token": "t", "checkpoint": "t", "sequence_number": 1}
    given = {name: value for name, value in members.items() if name in names}
    answers = {
        said(lambda tunnel_id=each: thief.call(operation, tunnel_id=tunnel_id, **given))
        for each in (tunnel, "x" * 36)
    }
    assert {answer.replace(tunnel, "x" * 36) for answer in answers} == {
        f"OTSParameterInvalid: The tunnel does not exist: '{'x' * 36}'."
    }
    owner.call("tunnel/delete", table_name=MUSIC, tunnel_name="theirs")


def test_an_index_is_one_of_the_instances(tenants: Tenants) -> None:
    thief = tenants.thief.tablestore()
    for read in ("GetRow", "GetRange", "BatchGetRow"):
        ask = BY_NAME[read]
        answer = same_as_of_nobody(lambda name, ask=ask: said(lambda: ask(thief, name)), "byAlbum")
        assert "OTSObjectNotExist" in answer


@each_row("access_id", ["thief", "unsaid"])
@each_row("operation", ["ListTable", *BY_NAME])
def test_the_instance_of_another_is_shut(tenants: Tenants, operation: str, access_id: str) -> None:
    """The answer does not show whether such an instance exists."""
    ask = BY_NAME.get(operation, lambda c, n: c.call(operation))

    def of(instance: str) -> str:
        return said(lambda: ask(tenants.thief.tablestore(instance, access_id), MUSIC))

    assert of("victim").startswith("OTSAuthFailed")
    assert of("victim").replace("victim", "<>") == of("nobody").replace("nobody", "<>")
    assert access_id == "thief" or of("thief").startswith("OTSAuthFailed")


def test_the_official_sdk_gets_no_further(tenants: Tenants) -> None:
    for access_id in ("thief", "unsaid"):
        client = ots.OTSClient(
            tenants.server.url, access_id, secret_of(access_id), "victim", retry_policy=ots.NoRetryPolicy()
        )
        for ask in (client.list_table, lambda client=client: client.delete_table(MUSIC)):
            with pytest.raises(ots.OTSServiceError) as caught:
                ask()
            assert caught.value.get_error_code() == "OTSAuthFailed"


def test_a_key_that_was_made_for_all_opens_all(tenants: Tenants) -> None:
    for instance, names in (("victim", [MUSIC]), ("thief", [])):
        assert list(tenants.thief.tablestore(instance, "steward").call("ListTable").table_names) == names


def test_an_instance_has_a_name_that_can_be_kept(tenants: Tenants) -> None:
    """It is part of what the databases find tables by, and PostgreSQL refuses keys of 2,704 bytes. "%" is kept as three."""
    longest = tenants.thief.tablestore("%" * 256, "steward")
    longest.create("t")
    assert list(longest.call("ListTable").table_names) == ["t"]
    assert said(lambda: tenants.thief.tablestore("%" * 257, "steward").create("t")).startswith(
        "OTSAuthFailed"
    )


def test_the_victims_id_is_no_use_without_its_secret(tenants: Tenants) -> None:
    forged = Instance(tenants.server.url, "victim", "victim", secret_of("thief"))
    forged.check_signature = lambda *_: None  # type: ignore[method-assign]
    assert said(lambda: forged.call("ListTable")).startswith("OTSAuthFailed")


@pytest.fixture
def own(tenants: Tenants) -> Iterator[Instance]:
    """The thief's own table, of the victim's name and key, with a stream and one row."""
    thief = tenants.thief.tablestore()
    spec = messages.StreamSpecification(enable_stream=True, expiration_time=24)
    thief.create(MUSIC, ("pk", messages.STRING), ("sk", messages.STRING), stream_spec=spec)
    thief.put(KEY, {"mine": True}, table=MUSIC)
    yield thief
    thief.call("DeleteTable", table_name=MUSIC)


def test_streams_shards_and_iterators(tenants: Tenants, own: Instance) -> None:
    victim = tenants.victim.tablestore()
    [stream] = victim.call("ListStream").streams
    [shard] = victim.call("DescribeStream", stream_id=stream.stream_id).shards
    seek = {"stream_id": stream.stream_id, "shard_id": shard.shard_id}
    place = victim.call("GetShardIterator", **seek).shard_iterator
    assert len(victim.call("GetStreamRecord", shard_iterator=place).stream_records) == 5
    [mine] = own.call("ListStream").streams
    assert mine.stream_id != stream.stream_id
    for ask in (
        lambda: own.call("DescribeStream", stream_id=stream.stream_id),
        lambda: own.call("GetShardIterator", **seek),
        lambda: own.call("GetStreamRecord", shard_iterator=place),
    ):
        assert said(ask).startswith("OTSParameterInvalid: Invalid stream id")
    # The victim's shard and place in a stream of one's own.
    there = own.call("GetShardIterator", stream_id=mine.stream_id, shard_id=shard.shard_id).shard_iterator
    for iterator in (there, place.replace(stream.stream_id, mine.stream_id)):
        for record in own.call("GetStreamRecord", shard_iterator=iterator).stream_records:
            assert plain(decode_row(record.record)) == {**KEY, "mine": True}


def test_foreign_start_keys_lead_through_own_rows(tenants: Tenants, own: Instance) -> None:
    page = whole_range(tenants.victim.tablestore(), MUSIC, limit=2)
    own.put({"pk": "p", "sk": "s9"}, {"mine": True}, table=MUSIC)
    answer = own.call(
        "GetRange",
        table_name=MUSIC,
        direction=messages.FORWARD,
        max_versions=1,
        inclusive_start_primary_key=page.next_start_primary_key,
        exclusive_end_primary_key=row({"pk": Bound.INF_MAX, "sk": Bound.INF_MAX}),
    )
    assert rows_of(answer) == [{"pk": "p", "sk": "s9", "mine": True}]


def test_a_transaction_is_one_of_the_instances(tenants: Tenants, own: Instance) -> None:
    """With an id from the victim's log, for example, the thief can neither end the transaction nor read or
    write in it.
    """
    victim = tenants.victim.tablestore()
    start = {"table_name": MUSIC, "key": row({"pk": "held"})}
    known = victim.call("StartLocalTransaction", **start).transaction_id
    staged = {"pk": "held", "sk": "s"}
    victim.put(staged, {"a": 1}, table=MUSIC, transaction_id=known)
    unknown = "00000000-0000-4000-8000-000000000000"

    def answers(transaction: str) -> list[str]:
        calls = [
            lambda: own.call("CommitTransaction", transaction_id=transaction),
            lambda: own.call("AbortTransaction", transaction_id=transaction),
            lambda: own.get(staged, table=MUSIC, transaction_id=transaction),
            lambda: own.put(staged, {"a": 2}, table=MUSIC, transaction_id=transaction),
            lambda: own.put(staged, {"a": 2}, table=ABSENT, transaction_id=transaction),
            lambda: own.update(staged, {"a": 2}, table=MUSIC, transaction_id=transaction),
            lambda: own.delete(staged, table=MUSIC, transaction_id=transaction),
            lambda: own.call("BatchWriteRow", tables=[one_write(MUSIC)], transaction_id=transaction),
            lambda: whole_range(own, MUSIC, transaction_id=transaction),
        ]
        return [said(each).replace(transaction, "<id>") for each in calls]

    assert answers(known) == answers(unknown)
    assert plain(victim.get(staged, table=MUSIC, transaction_id=known)) == {**staged, "a": 1}
    victim.call("AbortTransaction", transaction_id=known)
