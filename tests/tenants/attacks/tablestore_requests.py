"""Requests of one side to Table Store: on its own tables, and with every identifier of the other side.

Rows use the official SDK. Streams, which the SDK lacks, use the tests' wire client.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tablestore as ots
from google.protobuf.json_format import MessageToDict

from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.http.messages import Reply, Request
from tests.adapters.tablestore.client import Refused
from tests.tenants.attacks.sides import Side
from tests.tenants.conftest import Instance

NAMES = ("table_name", "TableName", "TableNames")
IGNORE = ots.Condition(ots.RowExistenceExpectation.IGNORE)
Key = list[tuple[str, Any]]


class _Wire(Instance):
    """The tests' wire client, with a check of its replies."""

    heard: Callable[[bytes], None] = staticmethod(lambda body: None)

    def send(self, request: Request) -> Reply:
        reply = super().send(request)
        self.heard(reply.body)
        return reply


class TableStore:
    """A side at its own instance and at the other's, with its own key."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self.wires = {}
        self.clients = {}
        for instance in dict.fromkeys((side.instance, side.other.instance)):
            client = ots.OTSClient(
                side.url,
                side.name,
                side.name + " secret",
                instance,
                retry_policy=ots.NoRetryPolicy(),
                max_connection=2,
            )
            self._listen(client)
            self.clients[instance] = client
            wire = _Wire(side.url, side.name, instance, side.name + " secret")
            wire.heard = self.side.seen
            self.wires[instance] = wire
        self.own = self.clients[side.instance]
        self.own_wire = self.wires[side.instance]

    def _listen(self, client: Any) -> None:
        send = client.connection.send_receive

        def listening(*given: Any) -> Any:
            answer = send(*given)
            self.side.seen(answer[3])
            return answer

        client.connection.send_receive = listening

    def ask(self, operation: str, call: Callable[[], Any]) -> Any:
        """The answer, or None."""
        self.side.doing = f"ots {operation}"
        try:
            answer = call()
        except ots.OTSServiceError as error:
            self.side.answered(f"ots {operation}", error.get_http_status(), error.get_error_code())
        except Refused as error:
            self.side.answered(f"ots {operation}", error.status, error.code)
        except (ots.OTSClientError, TypeError, ValueError, AttributeError) as error:
            self.side.answered(f"ots {operation}", 0, type(error).__name__)  # what the SDK refuses to send
        else:
            self.side.answered(f"ots {operation}", 200, "")
            if hasattr(answer, "DESCRIPTOR"):
                self.side.bag.collect(
                    MessageToDict(answer, preserving_proto_field_name=True), (self.side.secret,)
                )
            return answer
        return None

    def furnish(self) -> None:
        """Make the vault, where each dialect has its own tables."""
        defined = [messages.DefinedColumnSchema(name="album", type=messages.DCT_STRING)]
        self.own_wire.create(
            self.side.vault, ("pk", messages.STRING), ("sk", messages.STRING), defined=defined,
            stream_spec=messages.StreamSpecification(enable_stream=True, expiration_time=24),
            enable_local_txn=True,
        )  # fmt: skip
        index = messages.IndexMeta(
            name=f"{self.side.name}byAlbum", primary_key=["album"], index_type=messages.IT_GLOBAL_INDEX,
            index_update_mode=messages.IUM_ASYNC_INDEX,
        )  # fmt: skip
        self.own_wire.call("CreateIndex", main_table_name=self.side.vault, index_meta=index)
        self.side.bag.keep("table_name", f"{self.side.name}byAlbum")
        for pk in ("p0", "p1"):
            for number in range(5):
                self.own.put_row(self.side.vault, self.row(pk, f"s{number}"), IGNORE)

    def row(self, pk: str, sk: str) -> Any:
        """A row of this side's."""
        return ots.Row([("pk", pk), ("sk", sk)], [("album", "a"), ("note", self.side.secret)])

    def fingerprint(self) -> list[Any]:
        """Return all data that the other side could have changed."""
        _, _, rows, _ = self.own.get_range(self.side.vault, "FORWARD", LOWEST, HIGHEST, max_version=1)
        described = self.own_wire.call("DescribeTable", table_name=self.side.vault)
        return [str([(row.primary_key, row.attribute_columns) for row in rows]), str(described.table_meta),
                str(described.index_metas), str(described.stream_details)]  # fmt: skip

    def work(self) -> None:
        """One thing that a tenant does."""
        self.side.chance.choice(
            (self._look_through, self._page, self._stream, self._transaction, self._scratch)
        )()

    def _look_through(self) -> None:
        names = self.ask("list_table", self.own.list_table) or []
        for name in names:
            self.side.bag.keep("table_name", name)
        own = [name for name in names if name.startswith(self.side.name)]
        if own:
            name = self.side.chance.choice(own)
            self.ask("get_range", lambda: self.own.get_range(name, "FORWARD", LOWEST, HIGHEST, max_version=1))
        for name in own[8:]:
            if name != self.side.vault:
                self.ask("delete_table", lambda name=name: self.own.delete_table(name))

    def _page(self) -> None:
        page = self.ask(
            "page",
            lambda: self.own.get_range(self.side.vault, "FORWARD", LOWEST, HIGHEST, limit=2, max_version=1),
        )
        if page and page[1]:
            self.side.bag.keep("next_start_primary_key", [tuple(part[:2]) for part in page[1]])

    def _stream(self) -> None:
        wire = self.own_wire
        listed = self.ask("ListStream", lambda: wire.call("ListStream", table_name=self.side.vault))
        for stream in listed.streams if listed else ():
            self._read_stream(wire, stream.stream_id)

    def _read_stream(self, wire: Instance, stream: str) -> None:
        described = self.ask("DescribeStream", lambda: wire.call("DescribeStream", stream_id=stream))
        for shard in described.shards if described else ():
            self._read_shard(wire, stream, shard.shard_id)

    def _read_shard(self, wire: Instance, stream: str, shard: str) -> None:
        seek = {"stream_id": stream, "shard_id": shard}
        place = self.ask("GetShardIterator", lambda: wire.call("GetShardIterator", **seek))
        if place:
            self._read_from(wire, place.shard_iterator)

    def _read_from(self, wire: Instance, iterator: str) -> None:
        self.ask("GetStreamRecord", lambda: wire.call("GetStreamRecord", shard_iterator=iterator, limit=3))

    def _transaction(self) -> None:
        """Stage, read and abort a write in a transaction. Both sides see its id."""
        self.take_back()
        vault, key = self.side.vault, [("pk", "held")]
        known = self.ask("start", lambda: self.own.start_local_transaction(vault, key))
        if not known:
            return
        self.side.bag.keep("transaction_id", known)
        self.ask(
            "stage", lambda: self.own.put_row(vault, self.row("held", "s"), IGNORE, transaction_id=known)
        )
        self.side.held.append(known)

    def take_back(self) -> None:
        """Abort its own open transactions."""
        while self.side.held:
            known = self.side.held.pop()
            self.side.doing = "ots abort"
            try:
                self.own.abort_transaction(known)
            except ots.OTSServiceError as error:
                self.side.crossings.append(f"{self.side.name}'s transaction was ended by another: {error}")

    def _scratch(self) -> None:
        name = self.side.new_name()
        meta = ots.TableMeta(name, [("pk", "STRING"), ("sk", "STRING")])
        none = ots.ReservedThroughput(ots.CapacityUnit(0, 0))
        self.ask("create_table", lambda: self.own.create_table(meta, ots.TableOptions(), none))
        self.ask("put_row", lambda: self.own.put_row(name, self.row("p0", "s0"), IGNORE))

    # With what the other side has seen

    def attack(self) -> None:
        """One request with something that the other side has seen."""
        operation = self.side.chance.choice(list(ATTACKS))
        instance = self.side.chance.choice(list(self.clients))
        self.ask(operation, lambda: ATTACKS[operation](self, self.clients[instance]))
        if self.side.chance.random() < 0.3:
            self._attack_stream(self.wires[instance])

    def _attack_stream(self, wire: Instance) -> None:
        foreign = self.side.foreign
        stream, shard = str(foreign("stream_id")), str(foreign("shard_id"))
        iterator = str(foreign("shard_iterator", "next_shard_iterator"))
        self.side.chance.choice(
            (
                lambda: self.ask("ListStream", lambda: wire.call("ListStream", table_name=self.name())),
                lambda: self._read_stream(wire, stream),
                lambda: self._read_shard(wire, stream, shard),
                lambda: self._read_from(wire, iterator),
            )
        )()

    def name(self) -> str:
        """A table of the other's, or an index."""
        return str(self.side.foreign(*NAMES))

    def key(self) -> Key:
        """A key that both have."""
        chance = self.side.chance
        return [("pk", chance.choice(("p0", "p1", "held"))), ("sk", f"s{chance.choice(('', '0', '1', '2'))}")]

    def transaction(self) -> str:
        """A transaction of the other's, or none."""
        return str(self.side.foreign("transaction_id")) if self.side.chance.random() < 0.5 else ""


LOWEST = [("pk", ots.INF_MIN), ("sk", ots.INF_MIN)]
HIGHEST = [("pk", ots.INF_MAX), ("sk", ots.INF_MAX)]


def _ranged(side: TableStore, client: Any) -> Any:
    start = side.side.foreign("next_start_primary_key")
    low = start if isinstance(start, list) and side.side.chance.random() < 0.5 else LOWEST
    return client.get_range(
        side.name(), "FORWARD", low, HIGHEST, max_version=1, transaction_id=side.transaction() or None
    )


def _index_range(side: TableStore, client: Any) -> Any:
    low, high = ([("album", bound), ("pk", bound), ("sk", bound)] for bound in (ots.INF_MIN, ots.INF_MAX))
    return client.get_range(side.name(), "FORWARD", low, high, max_version=1)


def _batch_read(side: TableStore, client: Any) -> Any:
    request = ots.BatchGetRowRequest()
    request.add(ots.TableInBatchGetRowItem(side.name(), [side.key()], max_version=1))
    return client.batch_get_row(request)


def _batch_write(side: TableStore, client: Any) -> Any:
    request = ots.BatchWriteRowRequest()
    row = ots.Row(side.key(), [("note", side.side.secret)])
    request.add(ots.TableInBatchWriteRowItem(side.name(), [ots.PutRowItem(row, IGNORE)]))
    if side.side.chance.random() < 0.3:
        request.set_transaction_id(side.transaction())
    return client.batch_write_row(request)


def _index(side: TableStore, client: Any) -> Any:
    meta = ots.SecondaryIndexMeta("stolen", ["album"], [])
    return client.create_secondary_index(side.name(), meta, True)


ATTACKS: dict[str, Callable[[TableStore, Any], Any]] = {
    "list_table": lambda side, client: client.list_table(),
    "describe_table": lambda side, client: client.describe_table(side.name()),
    "get_row": lambda side, client: client.get_row(
        side.name(), side.key(), max_version=1, transaction_id=side.transaction() or None
    ),
    "get_range": _ranged,
    "index_range": _index_range,
    "put_row": lambda side, client: client.put_row(
        side.name(), ots.Row(side.key(), [("note", side.side.secret)]), IGNORE,
        transaction_id=side.transaction() or None,
    ),
    "update_row": lambda side, client: client.update_row(
        side.name(), ots.Row(side.key(), {"PUT": [("stolen", "t")]}), IGNORE, transaction_id=side.transaction() or None
    ),
    "delete_row": lambda side, client: client.delete_row(side.name(), ots.Row(side.key()), IGNORE),
    "batch_get_row": _batch_read,
    "batch_write_row": _batch_write,
    "commit": lambda side, client: client.commit_transaction(side.side.foreign("transaction_id")),
    "abort": lambda side, client: client.abort_transaction(side.side.foreign("transaction_id")),
    "start": lambda side, client: client.start_local_transaction(side.name(), [("pk", "p0")]),
    "create_index": _index,
    "delete_index": lambda side, client: client.delete_secondary_index(side.name(), side.name()),
    "delete_table": lambda side, client: client.delete_table(side.name()),
    "create_table": lambda side, client: client.create_table(
        ots.TableMeta(side.name(), [("pk", "STRING"), ("sk", "STRING")]), ots.TableOptions(),
        ots.ReservedThroughput(ots.CapacityUnit(0, 0)),
    ),
}  # fmt: skip
