"""A server in this process without sockets, with requests and replies as bytes.

Connections are real, and their transport only keeps the replies. So counts and times cover the code from the first
byte of a request to the last of its reply.
`python -m benchmarks.in_process` prints the calls of our Python code and the microseconds of CPU for each hot
operation, 16 requests at a time and one at a time. Figures are minimums of several rounds on SQLite in memory.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks import signing
from tablegate.adapters.tablestore.wire.plainbuffer import WireCell, WireRow, encode_row
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.app import application_of, create_app
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.http.messages import call_wsgi
from tablegate.gateway.model.values.values import TRUE, Kind, Value
from tablegate.gateway.server.connection import Connection
from tablegate.gateway.server.server import Server, ServerContext
from tablegate.gateway.server.server_process import run_in_loop
from tablegate.gateway.store.migrating import migrate
from tablegate.gateway.wiring import connect, open_store

ROOT = Path(__file__).parents[1]
OURS = f"{ROOT}/tablegate/"
CONNECTIONS = 16
PORT = 8000


class Transport(asyncio.Transport):
    """A transport that keeps the last reply and counts replies."""

    def __init__(self, owner: Connection) -> None:
        """Set up a transport of the connection `owner`."""
        super().__init__()
        self.owner = owner
        self.replies = 0
        self.last = b""

    def write(self, data: Any) -> None:
        self.replies += 1
        self.last = data

    def writelines(self, parts: Any) -> None:
        self.write(b"".join(parts))

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        asyncio.get_running_loop().call_soon(self.owner.connection_lost, None)


class InProcess:
    """A server on a database in memory with a number of connections."""

    def __init__(self, connections: int = CONNECTIONS, **further: Any) -> None:
        """Start a server. `further` are further settings."""
        # A stall of the machine must not add the calls that log slow requests.
        settings = load({"memory": True, "slow_request_ms": 86_400_000, **further}, {})
        database = connect(settings)
        migrate(database)
        self.opened = open_store(settings, database)
        app = create_app(settings, self.opened)
        self.gateway = application_of(app).gateway
        self.server = Server(ServerContext(application_of(app), partial(call_wsgi, app)), "inline")
        self.clients: list[tuple[Connection, Transport]] = []
        for _ in range(connections):
            connection = Connection(self.server)
            transport = Transport(connection)
            connection.connection_made(transport)
            self.clients.append((connection, transport))

    async def send(self, requests: list[bytes]) -> None:
        """Send requests, one at a time on each connection, and wait for successful replies."""
        for start in range(0, len(requests), len(self.clients)):
            together = requests[start : start + len(self.clients)]
            expected = []
            for (connection, transport), request in zip(self.clients, together, strict=False):
                expected.append((transport, transport.replies + 1))
                connection.data_received(request)
            while any(transport.replies < number for transport, number in expected):
                await asyncio.sleep(0)
            for transport, _ in expected:
                assert transport.last.startswith(b"HTTP/1.1 2"), transport.last[:500]

    async def stop(self) -> None:
        await self.server.stop()
        self.opened.close()


def in_process(work: Callable[[InProcess], Coroutine[None, None, Any]], **further: Any) -> Any:
    """Run `work` in an event loop of its own and return its result. `further` is passed to InProcess."""
    results: list[Any] = []

    async def main() -> bool:
        running = InProcess(**further)
        for prepared in PREPARED:
            for request in prepared():
                await running.send([request])
        results.append(await work(running))
        await running.stop()
        return True

    run_in_loop(main())
    return results[0]


class Calls:
    """A counter of calls of our Python code: functions, properties, comprehensions and resumed generators.

    `names` has the count of each function.
    """

    def __init__(self) -> None:
        self.names: dict[str, int] = {}

    def __enter__(self) -> Calls:
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            code = frame.f_code
            if code.co_filename.startswith(OURS):
                name = f"{code.co_filename.removeprefix(f'{ROOT}/')}:{code.co_qualname}"
                self.names[name] = self.names.get(name, 0) + 1


# Requests


def dynamodb_request(operation: str, **members: Any) -> bytes:
    return signing.dynamodb(PORT, operation, json.dumps(members).encode())


def _azure(method: str, path: str, body: Any = None) -> bytes:
    return signing.azure(PORT, method, path, b"" if body is None else json.dumps(body).encode())


def tablestore_request(operation: str, message: Any) -> bytes:
    return signing.tablestore(PORT, operation, message.SerializeToString())


_LONG, _OTHER = "x" * 80, "y" * 80
_ITEM = {f"v{number}": {"S": _LONG} for number in range(9)}
_IGNORE = messages.Condition(row_existence=messages.IGNORE)


def _item_key(number: int) -> dict[str, Any]:
    return {"pk": {"S": f"p{number % 4}"}, "sk": {"S": f"{number // 4:04}"}}


def _entity(number: int) -> dict[str, Any]:
    return {"PartitionKey": "p", "RowKey": f"{number:04}", "Name": _LONG, "Visits": number, "Active": True}


def _entity_path(number: int) -> str:
    return f"/people(PartitionKey='p',RowKey='{number:04}')"


def _row_key(number: int) -> tuple[WireCell, WireCell]:
    return WireCell("pk", Value(Kind.TEXT, "p")), WireCell("sk", Value(Kind.INT64, number))


def row_key(number: int) -> bytes:
    return encode_row(WireRow(_row_key(number)))


def row_of(number: int, *cells: WireCell) -> bytes:
    return encode_row(WireRow(_row_key(number), cells))


def _created() -> list[bytes]:
    attributes = [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")]
    schema = [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]
    columns = [
        messages.PrimaryKeySchema(name="pk", type=messages.STRING),
        messages.PrimaryKeySchema(name="sk", type=messages.INTEGER),
    ]
    rows = messages.CreateTableRequest(
        table_meta=messages.TableMeta(table_name="rows", primary_key=columns),
        reserved_throughput=messages.ReservedThroughput(capacity_unit=messages.CapacityUnit(read=0, write=0)),
        table_options=messages.TableOptions(time_to_live=-1, max_versions=1),
    )
    return [
        dynamodb_request("CreateTable", TableName="items", BillingMode="PAY_PER_REQUEST", KeySchema=schema,
                  AttributeDefinitions=attributes),
        _azure("POST", "/Tables", {"TableName": "people"}),
        tablestore_request("CreateTable", rows),
    ]  # fmt: skip


ROWS = 200  # 50 in each partition of items
_NUMBERS = range(ROWS)
_UPDATED = {"UpdateExpression": "SET v1 = :v", "ExpressionAttributeValues": {":v": {"S": _OTHER}}}
_COMPARED = {"ConditionExpression": "v2 = :v", "ExpressionAttributeValues": {":v": {"S": _LONG}}}
_CELLS = (
    WireCell("name", Value(Kind.TEXT, _LONG)),
    WireCell("visits", Value(Kind.INT64, 7)),
    WireCell("active", TRUE),
)


def _queried(number: int) -> dict[str, Any]:
    values = {":p": {"S": f"p{number % 4}"}}
    return {"KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": values}


def _puts() -> list[bytes]:
    return [dynamodb_request("PutItem", TableName="items", Item={**_item_key(n), **_ITEM}) for n in _NUMBERS]


def _upserts() -> list[bytes]:
    return [_azure("PUT", _entity_path(n), _entity(n)) for n in _NUMBERS]


def _row_puts() -> list[bytes]:
    return [
        tablestore_request(
            "PutRow", messages.PutRowRequest(table_name="rows", row=row_of(n, *_CELLS), condition=_IGNORE)
        )
        for n in _NUMBERS
    ]


Requests = Callable[[], list[bytes]]
"""Signs requests. Services accept a signature for 15 minutes, so requests are signed just before they are sent."""
PREPARED: tuple[Requests, ...] = (_created, _puts, _upserts, _row_puts)
"""The requests sent first, in this order: tables, items, entities, rows."""

REQUESTS: dict[str, Requests] = {
    "DynamoDB GetItem": lambda: [
        dynamodb_request("GetItem", TableName="items", Key=_item_key(n)) for n in _NUMBERS
    ],
    "DynamoDB PutItem": _puts,
    "DynamoDB PutItem on a condition": lambda: [
        dynamodb_request("PutItem", TableName="items", Item={**_item_key(n), **_ITEM}, **_COMPARED) for n in _NUMBERS
    ],
    "DynamoDB UpdateItem": lambda: [
        dynamodb_request("UpdateItem", TableName="items", Key=_item_key(n), **_UPDATED) for n in _NUMBERS
    ],
    "DynamoDB DeleteItem": lambda: [
        dynamodb_request("DeleteItem", TableName="items", Key={"pk": {"S": "none"}, "sk": {"S": str(n)}})
        for n in _NUMBERS
    ],
    "DynamoDB Query of 50": lambda: [
        dynamodb_request("Query", TableName="items", **_queried(n)) for n in _NUMBERS
    ],
    "Azure get": lambda: [_azure("GET", _entity_path(n)) for n in _NUMBERS],
    "Azure insert": lambda: [
        _azure("POST", "/people", {**_entity(n), "PartitionKey": "inserted"}) for n in _NUMBERS
    ],
    "Azure insert or replace": _upserts,
    "Azure insert or merge": lambda: [
        _azure("PATCH", _entity_path(n), {"Name": _OTHER}) for n in _NUMBERS
    ],
    "Table Store GetRow": lambda: [
        tablestore_request("GetRow", messages.GetRowRequest(table_name="rows", primary_key=row_of(n), max_versions=1))
        for n in _NUMBERS
    ],
    "Table Store PutRow": _row_puts,
    "Table Store UpdateRow": lambda: [
        tablestore_request("UpdateRow", messages.UpdateRowRequest(
            table_name="rows", row_change=row_of(n, WireCell("name", Value(Kind.TEXT, _OTHER))), condition=_IGNORE))
        for n in _NUMBERS
    ],
}  # fmt: skip
"""Requests of each hot operation, all for different rows. Puts do not change existing values."""


# Figures


_ROUNDS = 9


async def counted(running: InProcess) -> dict[str, dict[str, float]]:
    """Return operation -> average number of calls of each function for a request after warm-up."""
    counts = {}
    for name, sign in REQUESTS.items():
        requests = sign()
        half = len(requests) // 2 // CONNECTIONS * CONNECTIONS
        await running.send(requests[:half])
        with Calls() as calls:
            await running.send(requests[half : 2 * half])
        counts[name] = {called: number / half for called, number in calls.names.items()}
    return counts


async def _time_requests(running: InProcess) -> dict[str, tuple[float, float]]:
    """Return operation -> microseconds of CPU for a request, 16 at a time and one at a time. Inserts run once only."""
    clients = running.clients
    times = {}
    gc.collect()
    gc.freeze()
    for name, sign in REQUESTS.items():
        requests = sign()
        best = []
        for together in (clients, clients[:1]):
            running.clients = together
            rounds = []
            for _ in range(1 if name == "Azure insert" else _ROUNDS):
                if name == "Azure insert" and together is not clients:
                    rounds.append(float("nan"))
                    continue
                began = time.process_time()
                await running.send(requests)
                rounds.append((time.process_time() - began) / len(requests) * 1e6)
            best.append(min(rounds))
        running.clients = clients
        times[name] = (best[0], best[1])
    return times


def main() -> None:
    """Print a line for each operation."""
    times, calls = in_process(_time_requests), in_process(counted)
    print(f"{'':32}  calls   us, 16 together   us, one at a time")
    for name, (together, alone) in times.items():
        print(f"{name:32} {sum(calls[name].values()):6.1f} {together:17.1f} {alone:19.1f}")


if __name__ == "__main__":
    main()
