"""The tunnel service: tunnels, the sharing of channels, checkpoints, and which records a client gets.

Sources: docs/protocols/table-store.md section 2.9, and the clients of the Go and Java SDKs (tunnel/state.go,
tunnel/channel.go, tunnel/worker/TunnelStateMachine.java).
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.plainbuffer import CellOperation, WireCell
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.adapters.tablestore.wire.protocol import tunnel_pb2
from tablegate.gateway.features.tunnels.tunnel_engine import RETENTION_MS
from tablegate.gateway.model.commands.stream_commands import Reshard
from tablegate.gateway.model.commands.table_commands import FindTable
from tests.adapters.tablestore.client import Refused, TableStoreService, plain
from tests.support.clock import Clock
from tests.support.tunnel_client import (
    CLOSE,
    CLOSING,
    FINISHED,
    OPEN,
    TERMINATED,
    TunnelWorker,
    create_tunnel,
    describe,
)

BASE, STREAM, BOTH = tunnel_pb2.BaseData, tunnel_pb2.Stream, tunnel_pb2.BaseAndStream
PUT, UPDATE, DELETE = tunnel_pb2.PUT_ROW, tunnel_pb2.UPDATE_ROW, tunnel_pb2.DELETE_ROW


@pytest.fixture(scope="module")
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module")
def opened(clock: Clock, shared_database_url: str) -> Iterator[TableStoreService]:
    """Table Store on both databases."""
    with TableStoreService.opened(clock, database=shared_database_url) as made:
        yield made


@pytest.fixture
def service(opened: TableStoreService) -> Iterator[TableStoreService]:
    """Table Store with a new table."""
    opened.create()
    yield opened
    opened.call("DeleteTable", table_name="t")


def keys_of(worker: TunnelWorker) -> list[int]:
    return [row.key[0].value.data for _, _, row in worker.records]  # type: ignore[union-attr]


def refusal(service: TableStoreService, operation: str, **members: Any) -> Refused:
    with pytest.raises(Refused) as refused:
        service.call(f"tunnel/{operation}", **members)
    return refused.value


# Tunnels


def test_a_tunnel_is_created_listed_described_and_deleted(service: TableStoreService, clock: Clock) -> None:
    tunnel = create_tunnel(service, BOTH)
    [listed] = service.call("tunnel/list", table_name="t").tunnels
    assert (listed.tunnel_id, listed.tunnel_name, listed.tunnel_type) == (tunnel, "u", "BaseAndStream")
    assert (listed.table_name, listed.instance_name, listed.stage) == ("t", "inst", "ProcessBaseData")
    assert listed.create_time == clock.ms * 1_000_000
    assert not listed.expired
    told = describe(service)
    assert told.tunnel == listed
    assert {channel.channel_type for channel in told.channels} == {"BaseData", "Stream"}
    assert {channel.channel_status for channel in told.channels} == {"WAIT"}
    rows = [channel.channel_id for channel in told.channels if channel.channel_type == "BaseData"]
    assert all(name.startswith("BaseData_") for name in rows)
    service.call("tunnel/delete", table_name="t", tunnel_name="u")
    assert not service.call("tunnel/list", table_name="t").tunnels
    assert refusal(service, "connect", tunnel_id=tunnel).code == "OTSParameterInvalid"


def test_refused_definitions(service: TableStoreService) -> None:
    create_tunnel(service, STREAM)
    wanted = tunnel_pb2.Tunnel(table_name="t", tunnel_name="u", tunnel_type=STREAM)
    taken = refusal(service, "create", tunnel=wanted)
    assert (taken.status, taken.code) == (409, "OTSTunnelExist")
    for member, value in (("table_name", "nowhere"), ("tunnel_name", "a b"), ("tunnel_name", "")):
        other = tunnel_pb2.Tunnel(table_name="t", tunnel_name="x", tunnel_type=STREAM)
        setattr(other, member, value)
        assert refusal(service, "create", tunnel=other).code == "OTSParameterInvalid"
    for operation in ("delete", "describe"):
        gone = refusal(service, operation, table_name="t", tunnel_name="none")
        assert (gone.status, gone.code) == (400, "OTSParameterInvalid")
        absent = refusal(service, operation, table_name="nowhere", tunnel_name="u")
        assert (absent.status, absent.code) == (400, "OTSParameterInvalid")


def test_the_number_of_tunnels_is_limited(service: TableStoreService) -> None:
    for number in range(limits.TUNNELS_MAX):
        create_tunnel(service, BASE, name=f"u{number}")
    wanted = tunnel_pb2.Tunnel(table_name="t", tunnel_name="more", tunnel_type=BASE)
    assert refusal(service, "create", tunnel=wanted).code == "OTSQuotaExhausted"


def test_a_dropped_table_takes_its_tunnels_along(service: TableStoreService) -> None:
    tunnel = create_tunnel(service, BOTH)
    service.call("DeleteTable", table_name="t")
    service.create()
    assert not service.call("tunnel/list", table_name="t").tunnels
    assert refusal(service, "connect", tunnel_id=tunnel).code == "OTSParameterInvalid"


def test_rpo_is_json(service: TableStoreService) -> None:
    tunnel = create_tunnel(service, STREAM)
    service.put({"pk": 1}, {"a": 1})
    worker = TunnelWorker(service, tunnel)
    worker.drain()
    told = service.call("tunnel/getrpo", tunnel_id=tunnel)
    [channel] = orjson.loads(told.rpo_infos)[tunnel].values()
    assert (channel["ChannelTyp"], channel["TotalCount"], channel["Status"]) == ("Stream", 1, "OPEN")
    assert orjson.loads(told.tunnel_rpo_infos)[tunnel]["TotalCount"] == 1


# Records


def test_base_data_is_all_rows_and_then_the_end(service: TableStoreService) -> None:
    for number in range(30):
        service.put({"pk": number}, {"a": number})
    worker = TunnelWorker(service, create_tunnel(service, BASE))
    worker.drain()
    assert sorted(keys_of(worker)) == [*range(30)]
    assert {action for _, action, _ in worker.records} == {PUT}
    assert len({channel for channel, _, _ in worker.records}) > 1
    assert all(row.extension is None for _, _, row in worker.records)
    assert describe(service).tunnel.stage == "ProcessStream"
    assert {channel.channel_status for channel in describe(service).channels} == {"TERMINATED"}
    service.put({"pk": 99}, {"a": 1})
    worker.drain()
    assert 99 not in keys_of(worker)


def test_pages_of_base_data(service: TableStoreService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TUNNEL_RECORDS_MAX", 3)
    for number in range(40):
        service.put({"pk": number}, {"a": number})
    worker = TunnelWorker(service, create_tunnel(service, BASE))
    worker.drain()
    assert sorted(keys_of(worker)) == [*range(40)]


def test_changes_are_those_since_the_creation(service: TableStoreService) -> None:
    service.put({"pk": 1}, {"a": 1})
    worker = TunnelWorker(service, create_tunnel(service, STREAM))
    service.update({"pk": 1}, [WireCell("a", None, None, CellOperation.DELETE_ALL)])
    service.put({"pk": 2}, {"b": "x"})
    service.delete({"pk": 2})
    worker.drain()
    assert [(action, row.key[0].value.data) for _, action, row in worker.records] == [  # type: ignore[union-attr]
        (UPDATE, 1),
        (PUT, 2),
        (DELETE, 2),
    ]
    assert worker.records[0][2].cells[0].operation is CellOperation.DELETE_ALL
    assert plain(worker.records[1][2]) == {"pk": 2, "b": "x"}
    assert all(row.extension is not None for _, _, row in worker.records)


def test_rows_come_before_changes(service: TableStoreService) -> None:
    service.put({"pk": 1}, {"a": 1})
    worker = TunnelWorker(service, create_tunnel(service, BOTH))
    service.put({"pk": 1}, {"a": 2})
    assert all(name.startswith("BaseData_") for name in worker.beat())
    worker.drain()
    assert [plain(row) for _, _, row in worker.records] == [{"pk": 1, "a": 2}] * 2
    assert [channel.startswith("BaseData_") for channel, _, _ in worker.records] == [True, False]


def test_shards_are_read_after_their_parents(service: TableStoreService) -> None:
    """Splits and merges of shards: nothing is lost, and each key is in order."""
    spec = messages.StreamSpecification(enable_stream=True, expiration_time=24)
    service.call("UpdateTable", table_name="t", stream_spec=spec)
    worker = TunnelWorker(service, create_tunnel(service, STREAM))
    for number, shards in enumerate((1, 4, 2, 3)):
        [table] = service.gateway.engine.run([FindTable("shared", "t")])
        service.gateway.engine.run([Reshard(table, shards)])
        for key in range(8):
            service.put({"pk": key}, {"n": number})
    worker.drain()
    by_key: dict[int, list[int]] = {}
    for _, _, row in worker.records:
        found = plain(row)
        assert found is not None
        by_key.setdefault(found["pk"], []).append(found["n"])
    assert by_key == {key: [0, 1, 2, 3] for key in range(8)}
    assert len({channel for channel, _, _ in worker.records}) > 3


def test_a_stream_that_clients_enable_or_disable_ends_no_tunnel(service: TableStoreService) -> None:
    worker = TunnelWorker(service, create_tunnel(service, STREAM))
    service.put({"pk": 1}, {"a": 1})
    for number, enable in enumerate((True, False, True)):
        spec = messages.StreamSpecification(enable_stream=enable, expiration_time=24)
        service.call("UpdateTable", table_name="t", stream_spec=spec)
        service.put({"pk": 2 + number}, {"a": 1})
    worker.drain()
    assert keys_of(worker) == [1, 2, 3, 4]


def test_start_and_end_of_the_changes(service: TableStoreService, clock: Clock) -> None:
    spec = messages.StreamSpecification(enable_stream=True, expiration_time=24)
    service.call("UpdateTable", table_name="t", stream_spec=spec)
    times = []
    for number in range(4):
        clock.advance(1)
        times.append(clock.ms * 1_000_000)
        service.put({"pk": number}, {"a": 1})
    oldest = TunnelWorker(service, create_tunnel(service, STREAM, name="a", flag=tunnel_pb2.EARLIEST))
    oldest.drain()
    assert keys_of(oldest) == [0, 1, 2, 3]
    config = {"start_offset": times[1], "end_offset": times[3]}
    part = TunnelWorker(service, create_tunnel(service, STREAM, name="b", **config))
    part.drain()
    assert keys_of(part) == [1, 2]
    assert describe(service, name="b").channels[0].channel_status == "TERMINATED"
    wrong = tunnel_pb2.Tunnel(table_name="t", tunnel_name="c", tunnel_type=STREAM)
    wrong.stream_tunnel_config.start_offset = times[3]
    wrong.stream_tunnel_config.end_offset = times[1]
    assert refusal(service, "create", tunnel=wrong).code == "OTSParameterInvalid"


# Clients


def test_clients_share_channels(service: TableStoreService) -> None:
    """The server asks the first client to give channels back, and then gives them to the second one."""
    tunnel = create_tunnel(service, BASE)
    first = TunnelWorker(service, tunnel)
    assert [*first.beat().values()] == [OPEN] * 4
    second = TunnelWorker(service, tunnel)
    assert second.beat() == {}
    assert sorted(first.beat().values()) == [OPEN, OPEN, CLOSING, CLOSING]
    assert [*first.beat().values()] == [OPEN] * 2
    assert [*second.beat().values()] == [OPEN] * 2
    assert not first.channels.keys() & second.channels.keys()


def test_channels_of_a_client_that_stopped_go_to_another(service: TableStoreService, clock: Clock) -> None:
    for number in range(20):
        service.put({"pk": number}, {"a": 1})
    tunnel = create_tunnel(service, BASE)
    first = TunnelWorker(service, tunnel, timeout_s=10)
    [name, *_] = first.beat()
    first.read(name)
    clock.advance(10.001)
    second = TunnelWorker(service, tunnel, timeout_s=10)
    second.drain()
    assert sorted({*keys_of(first), *keys_of(second)}) == [*range(20)]
    gone = refusal(service, "heartbeat", tunnel_id=tunnel, client_id=first.client)
    assert (gone.status, gone.code) == (410, "OTSResourceGone")


def test_a_heartbeat_in_time_keeps_the_channels(service: TableStoreService, clock: Clock) -> None:
    tunnel = create_tunnel(service, BASE)
    first = TunnelWorker(service, tunnel, timeout_s=10)
    first.beat()
    clock.advance(10)
    assert len(first.beat()) == 4
    clock.advance(10)
    assert len(first.beat()) == 4


def test_shutdown_gives_the_channels_to_others(service: TableStoreService) -> None:
    tunnel = create_tunnel(service, BASE)
    first, second = TunnelWorker(service, tunnel), TunnelWorker(service, tunnel)
    first.beat()
    service.call("tunnel/shutdown", tunnel_id=tunnel, client_id=first.client)
    assert len(second.beat()) == 4
    assert refusal(service, "shutdown", tunnel_id=tunnel, client_id=first.client).code == "OTSResourceGone"


def test_a_client_reads_its_own_channels_only(service: TableStoreService) -> None:
    tunnel = create_tunnel(service, BASE)
    first, second = TunnelWorker(service, tunnel), TunnelWorker(service, tunnel)
    [name, *_] = first.beat()
    for client, channel in ((second.client, name), (first.client, "none")):
        members = {"tunnel_id": tunnel, "client_id": client, "channel_id": channel}
        assert refusal(service, "getcheckpoint", **members).code == "OTSParameterInvalid"
        assert refusal(service, "readrecords", token=FINISHED, **members).code == "OTSParameterInvalid"


def test_a_channel_without_a_client_is_read_without_one(service: TableStoreService) -> None:
    """Source: TestTableGroup of the Java SDK reads the channels of DescribeTunnel. It connects no client."""
    tunnel = create_tunnel(service, STREAM)
    service.put({"pk": 1}, {"a": 1})
    [channel] = describe(service).channels
    members = {"tunnel_id": tunnel, "client_id": channel.client_id, "channel_id": channel.channel_id}
    start = service.call("tunnel/getcheckpoint", **members)
    found = service.call("tunnel/readrecords", token=start.checkpoint, **members)
    assert len(found.records) == 1
    number = start.sequence_number + 1
    kept = refusal(service, "checkpoint", checkpoint=found.next_token, sequence_number=number, **members)
    assert kept.code == "OTSResourceGone"
    TunnelWorker(service, tunnel).beat()
    assert refusal(service, "getcheckpoint", **members).code == "OTSParameterInvalid"


def test_a_shard_with_more_to_come_does_not_end(service: TableStoreService) -> None:
    """A client cannot lose later changes by its report or its checkpoint."""
    worker = TunnelWorker(service, create_tunnel(service, STREAM))
    [name] = worker.beat()
    worker.set_status(name, TERMINATED)
    assert worker.beat() == {name: OPEN}
    with pytest.raises(Refused) as refused:
        worker.ask("checkpoint", channel_id=name, checkpoint=FINISHED, sequence_number=1)
    assert refused.value.code == "OTSParameterInvalid"
    service.put({"pk": 1}, {"a": 1})
    worker.drain()
    assert keys_of(worker) == [1]


def test_an_old_version_of_a_channel_is_ignored(service: TableStoreService) -> None:
    worker = TunnelWorker(service, create_tunnel(service, STREAM))
    [name] = worker.beat()
    channel = worker.channels[name]
    channel.status = CLOSE
    channel.version -= 1
    answer = worker.ask("heartbeat", channels=[channel])
    assert [each.status for each in answer.channels] == [OPEN]


# Checkpoints


def test_the_number_of_a_checkpoint_must_be_the_next(service: TableStoreService) -> None:
    service.put({"pk": 1}, {"a": 1})
    worker = TunnelWorker(service, create_tunnel(service, BASE))
    [name, *_] = worker.beat()
    saved = worker.ask("getcheckpoint", channel_id=name)
    assert saved.sequence_number == 0
    for number in (0, 2, -1):
        with pytest.raises(Refused) as refused:
            worker.ask("checkpoint", channel_id=name, checkpoint=saved.checkpoint, sequence_number=number)
        assert (refused.value.status, refused.value.code) == (400, "OTSSequenceNumberNotMatch")
    worker.ask("checkpoint", channel_id=name, checkpoint=saved.checkpoint, sequence_number=1)
    assert worker.ask("getcheckpoint", channel_id=name).sequence_number == 1


def test_a_token_shows_the_phase(service: TableStoreService) -> None:
    """The SDKs tell rows and changes apart by the iterator (tunnel/pipeline/Utils.java)."""
    worker = TunnelWorker(service, create_tunnel(service, BASE, name="a"))
    name = next(iter(worker.beat()))
    assert not content_of(worker.ask("getcheckpoint", channel_id=name).checkpoint).iterator
    worker = TunnelWorker(service, create_tunnel(service, STREAM, name="b"))
    name = next(iter(worker.beat()))
    assert content_of(worker.ask("getcheckpoint", channel_id=name).checkpoint).iterator


def content_of(token: str) -> tunnel_pb2.TokenContent:
    parsed = tunnel_pb2.Token.FromString(base64.b64decode(token))
    assert parsed.version in (1, 2)
    return tunnel_pb2.TokenContent.FromString(parsed.content)


def token(**members: Any) -> str:
    content = tunnel_pb2.TokenContent(**members).SerializeToString()
    return base64.b64encode(tunnel_pb2.Token(version=2, content=content).SerializeToString()).decode()


WRONG = [
    "", "x", "ü", "!!!!", "A" * (limits.TUNNEL_TOKEN_MAX + 4), token(primary_key=b"\0"),
    token(primary_key=b"\xff\xff\xff\xff"), token(iterator="-1"), token(iterator="x"), token(iterator="9" * 19),
    token(iterator="٣"), token(iterator="1", primary_key=b"\0\0\0\0"),
    token(total_count=limits.TUNNEL_COUNT_MAX + 1), token(iterator="1", total_count=2**63 - 1),
]  # fmt: skip


@pytest.mark.parametrize("kind", [BASE, STREAM])
def test_invalid_tokens(service: TableStoreService, kind: int) -> None:
    worker = TunnelWorker(service, create_tunnel(service, kind))
    name = next(iter(worker.beat()))
    of_other_kind = token(primary_key=b"\0\0\0\0") if kind == STREAM else token(iterator="1")
    accepted = []
    for text in [*WRONG, of_other_kind]:
        try:
            worker.ask("readrecords", channel_id=name, token=text)
            accepted.append(text)
        except Refused as refused:
            assert (refused.status, refused.code) == (400, "OTSParameterInvalid"), text
    assert accepted == ([""] if kind == BASE else [])  # the beginning


def test_any_key_bytes_in_a_token_are_a_position(service: TableStoreService) -> None:
    worker = TunnelWorker(service, create_tunnel(service, BASE))
    name = next(iter(worker.beat()))
    for data in (b"\0\0\0\0", b"\0\0\0\1a", b"\0\0\0\2\xff\xffxyz", b"\0\0\0\0" + b"\xff" * 5000):
        answer = worker.ask("readrecords", channel_id=name, token=token(primary_key=data))
        assert answer.next_token == FINISHED


def test_the_highest_count_of_a_token(service: TableStoreService) -> None:
    """Later counts add to it, so it ends below the largest integer of the protocol."""
    service.put({"pk": 1}, {"a": 1})
    worker = TunnelWorker(service, create_tunnel(service, BASE))
    start = token(total_count=limits.TUNNEL_COUNT_MAX)
    for name in worker.beat():
        worker.tokens[name] = start, 0
        worker.read(name)
    assert keys_of(worker) == [1]


# Retention


def test_changes_wait_for_a_tunnel_until_it_expires(service: TableStoreService, clock: Clock) -> None:
    """Trimming waits for the tunnel for seven days, even if the stream's own retention is an hour."""
    spec = messages.StreamSpecification(enable_stream=True, expiration_time=1)
    service.call("UpdateTable", table_name="t", stream_spec=spec)
    tunnel = create_tunnel(service, STREAM)
    service.put({"pk": 1}, {"a": 1})
    clock.advance(RETENTION_MS / 1000 - 1)
    maintain(service)
    worker = TunnelWorker(service, tunnel)
    worker.drain()
    assert keys_of(worker) == [1]
    service.put({"pk": 2}, {"a": 1})
    clock.advance(RETENTION_MS / 1000 + 1)
    maintain(service)
    assert describe(service).tunnel.expired
    expired = refusal(service, "heartbeat", tunnel_id=tunnel, client_id=worker.client)
    assert (expired.status, expired.code) == (400, "OTSTunnelExpired")


def maintain(service: TableStoreService) -> None:
    """Do the background work that is due."""
    service.gateway.engine.background.catch_up()


# Instances and permissions


def test_a_tunnel_belongs_to_an_instance(clock: Clock) -> None:
    with TableStoreService.opened(clock, namespaces="separate") as service:
        service.create()
        tunnel = create_tunnel(service, STREAM)
        body = tunnel_pb2.ConnectRequest(tunnel_id=tunnel).SerializeToString()
        reply = service.post("tunnel/connect", body, x_ots_instancename="other")
        assert reply.status == 400
        assert service.post("tunnel/connect", body).status == 200
