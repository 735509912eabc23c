"""Traffic that no SDK sends: bombs, floods, fragments and silence at the socket of a real server process.

Each is refused in the dialect's words or disconnected, in bounded time and memory. Other clients are served meanwhile.
Single limits of HTTP are in server/test_connection.py.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import statistics
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.raw_client import SIGNED_IN_FORM, RawClient, Refused
from tests.support.running import Process
from tests.support.waiting import PATIENCE_S, wait_until

MIB = 1 << 20
MOST_GROWTH_BYTES = 300 * MIB
HEAD = (
    "POST / HTTP/1.1\r\nHost: a\r\nX-Amz-Target: DynamoDB_20120810.{operation}\r\n"
    + "".join(f"{name}: {value}\r\n" for name, value in SIGNED_IN_FORM.items())
)  # fmt: skip


@pytest.fixture(scope="module", params=["one process", "two workers"])
def process(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A server of all dialects that loses its patience soon: one process on SQLite, or two on PostgreSQL. At the end it must
    still be there, and have seen no defect."""
    patience = {"header-seconds": 1, "body-seconds": 5, "write-seconds": 2, "idle-seconds": 5}
    flags = [f"--{name}={value}" for name, value in patience.items()]
    if request.param == "two workers":
        flags += ["--workers=2", f"--database={request.getfixturevalue('postgres').empty_database()}"]
    started = Process(
        tmp_path_factory.mktemp("hostile"),
        *flags,
        f"--max-buffered-bytes={64 * MIB}",
        environment={"TABLEGATE_SECRET_KEY": "k" * 16},
    )
    started.wait_until_ready()
    with RawClient(started.url) as client:
        client.create_table("things")
    yield started
    code, errors = started.terminate()
    assert (code, "Traceback" in errors) == (0, False), errors[-5000:]


@pytest.fixture
def client(process: Process) -> Iterator[RawClient]:
    with RawClient(process.url) as made:
        yield made


@pytest.fixture(autouse=True)
def bounded(process: Process) -> Iterator[None]:
    """The memory of the process at its highest, and that it serves on."""
    _forget_peak(process.pid)
    before = _bytes(process.pid, "VmRSS")
    yield
    growth = _bytes(process.pid, "VmHWM") - before
    print(f"memory grew by {growth / MIB:.0f} MiB")
    assert growth < MOST_GROWTH_BYTES
    with RawClient(process.url) as client:
        item = {"p": {"S": "still here"}}
        assert cheaply(process, 2, lambda: client.call("PutItem", TableName="things", Item=item)) == {}


def _bytes(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise AssertionError(name)


def _forget_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def connect(process: Process) -> socket.socket:
    host, port = process.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE_S)


def read_to_end(connection: socket.socket) -> bytes:
    """Read until the server closes. Returns the data received, also if the connection is reset."""
    received = b""
    try:
        while part := connection.recv(65_536):
            received += part
    except ConnectionResetError:
        pass
    return received


def cheaply(process: Process, seconds: float, ask: Callable[[], Any]) -> Any:
    """Return the answer, for which the server needs less than this much CPU. Elapsed time depends on other load."""
    before = process.cpu_seconds()
    answer = ask()
    assert process.cpu_seconds() - before < seconds
    return answer


# Bodies


def nested_items(levels: int) -> bytes:
    return b'{"TableName":"things","Item":{"p":{"S":"a"},"x":' + b'{"L":[' * levels + b"]}" * levels + b"}}"


@pytest.mark.extended
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"[" * 15_000_000, id="arrays"),
        pytest.param(b'{"a":' * 3_000_000, id="objects"),
        pytest.param(b'{"TableName":' + b"[" * 1000 + b"]" * 1000 + b"}", id="wrong type"),
        pytest.param(nested_items(33), id="33 levels"),
        pytest.param(nested_items(400), id="400 levels"),
        pytest.param(nested_items(100_000), id="100,000 levels"),
        pytest.param(
            b'{"TableName":"things","Item":{"p":{"N":"' + b"9" * 5_000_000 + b'"}}}', id="long number"
        ),
        pytest.param(b'{"TableName":"things","Item":{"p":{"N":"1e999999999"}}}', id="large number"),
        pytest.param(
            b'{"TableName":"things","Item":{"p":{"S":"' + b"x" * 15_000_000 + b'"}}}', id="long key"
        ),
        pytest.param(
            b'{"TableName":"things","Item":{"p":{"S":"a"},'
            + b",".join(b'"%d":{}' % n for n in range(500_000))
            + b"}}",
            id="many attributes",
        ),
        pytest.param(b"\xff\xfe" * 1_000_000, id="no text"),
    ],
)
def test_a_body_that_is_a_bomb_is_a_clear_refusal(process: Process, client: RawClient, body: bytes) -> None:
    status, answer = cheaply(process, 5, lambda: client.post("DynamoDB_20120810.PutItem", body))
    assert status == 400
    assert json.loads(answer)["__type"].partition("#")[2] in ("SerializationException", "ValidationException")
    assert len(answer) < 20_000


@pytest.mark.extended
@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("(" * 2000 + "a = :a" + ")" * 2000, id="parentheses"),
        pytest.param("NOT " * 1000 + "a = :a", id="negations"),
        pytest.param("a" + "[0]" * 1300 + " = :a", id="path"),
        pytest.param("a = :a" + " OR a = :a" * 400, id="operators"),
        pytest.param("a" * 100_000, id="length"),
    ],
)
def test_an_expression_that_is_a_bomb_is_a_clear_refusal(
    process: Process, client: RawClient, expression: str
) -> None:
    with pytest.raises(Refused) as refusal:
        cheaply(
            process,
            3,
            lambda: client.call(
                "PutItem",
                TableName="things",
                Item={"p": {"S": "a"}},
                ConditionExpression=expression,
                ExpressionAttributeValues={":a": {"S": "a"}},
            ),
        )
    assert refusal.value.code == "ValidationException"


def test_a_body_of_16_mb_is_read_and_one_byte_more_is_too_large(client: RawClient) -> None:
    body = json.dumps({"TableName": "things", "Key": {"p": {"S": "a"}}}).encode()
    assert client.post("DynamoDB_20120810.GetItem", body.ljust(16 * MIB))[0] == 200
    assert client.post("DynamoDB_20120810.GetItem", body.ljust(16 * MIB + 1)) == (413, b"")


def test_a_body_over_20_mb_is_refused_before_it_has_come(process: Process) -> None:
    with connect(process) as connection:
        head = HEAD.format(operation="PutItem") + f"Content-Length: {20 * MIB + 1}\r\n\r\n"
        connection.sendall(head.encode() + b"x" * 1000)
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")  # it would be 408 if the server waited


@pytest.mark.extended
def test_many_large_bodies_at_once_are_too_much_together(process: Process, client: RawClient) -> None:
    """No request is complete, so all of them wait in memory. The limit is 64 MB for all."""
    head = (HEAD.format(operation="PutItem") + f"Content-Length: {20 * MIB}\r\n\r\n").encode()

    def send_most_of_it(_: int) -> bytes:
        with connect(process) as connection:
            with contextlib.suppress(OSError):
                connection.sendall(head + bytes(19 * MIB))
            return read_to_end(connection)[:12]

    with ThreadPoolExecutor(8) as senders:
        answers = list(senders.map(send_most_of_it, range(8)))
    # The other connections time out. A client that continues to send can miss its refusal.
    assert set(answers) <= {b"HTTP/1.1 503", b"HTTP/1.1 408", b""}
    assert b"HTTP/1.1 503" in answers


@pytest.mark.extended
@pytest.mark.parametrize(
    ("coding", "bomb"),
    [
        ("gzip", lambda: gzip.compress(bytes(200 * MIB), 9)),
        ("gzip", lambda: gzip.compress(bytes(4 * MIB), 9) * 500),
        ("gzip", lambda: gzip.compress(b"") * 500_000),
        ("deflate", lambda: zlib.compress(bytes(200 * MIB), 9)),
    ],
    ids=["one", "members", "empty members", "deflate"],
)
def test_a_body_that_unfolds_without_end_is_refused(
    process: Process, client: RawClient, coding: str, bomb: Callable[[], bytes]
) -> None:
    body = bomb()
    status, _ = cheaply(
        process, 5, lambda: client.post("DynamoDB_20120810.PutItem", body, Content_Encoding=coding)
    )
    assert status in (413, 500)


# Heads


def test_headers_of_16_kb_are_refused(client: RawClient) -> None:
    assert client.post("DynamoDB_20120810.ListTables", b"{}", X_Long="x" * 15_000)[0] == 200
    assert client.post("DynamoDB_20120810.ListTables", b"{}", X_Long="x" * 16_384)[0] == 400


@pytest.mark.parametrize(
    "target", ["DynamoDB_20120810.Nonsense", "Nonsense", "", "DynamoDB_20120810.", "x" * 10_000]
)
def test_an_unknown_operation_gets_its_error(client: RawClient, target: str) -> None:
    status, answer = client.post(target, b"{}")
    assert status == 400
    assert json.loads(answer)["__type"] == "com.amazon.coral.service#UnknownOperationException"


# Time


@pytest.mark.extended
def test_clients_that_trickle_are_disconnected_and_delay_no_others(
    process: Process, client: RawClient
) -> None:
    tricklers = [connect(process) for _ in range(60)]
    head = HEAD.format(operation="ListTables") + "X-Slow: " + "x" * 10_000
    waits: list[float] = []
    alive = list(range(len(tricklers)))
    for byte in head.encode():
        if not alive:
            break
        for at in list(alive):
            try:
                tricklers[at].send(bytes([byte]))
            except OSError:
                alive.remove(at)
        asked = time.monotonic()
        client.call("ListTables")
        waits.append(time.monotonic() - asked)
    assert not alive
    assert statistics.median(waits) < 1  # they would all be as long as the server waits for the others
    for trickler in tricklers:
        # Connections that were not reset during a send receive the reason.
        answer = read_to_end(trickler)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 408 ")
        trickler.close()


def test_1100_unfinished_heads_delay_no_others(process: Process, client: RawClient) -> None:
    # More connections than --max-connections 1000: all later ones get status 503.
    head = HEAD.format(operation="ListTables").encode()
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(connect(process)) for _ in range(1100)]
        for each in silent:
            with contextlib.suppress(ConnectionError):
                each.sendall(head)
        for _ in range(20):
            with RawClient(process.url) as other:
                assert other.call("ListTables") == {"TableNames": ["things"]}
        assert client.call("ListTables") == {"TableNames": ["things"]}


@pytest.mark.extended
def test_a_body_that_stops_coming_is_a_408(process: Process) -> None:
    with connect(process) as connection:
        connection.sendall((HEAD.format(operation="ListTables") + "Content-Length: 2\r\n\r\n{").encode())
        assert read_to_end(connection).startswith(b"HTTP/1.1 408 ")


@pytest.mark.extended
def test_a_client_that_takes_no_replies_is_cut_off(process: Process, client: RawClient) -> None:
    for number in range(8):
        client.call(
            "PutItem", TableName="things", Item={"p": {"S": f"big{number}"}, "x": {"S": "x" * 100_000}}
        )
    with connect(process) as connection:
        body = b'{"TableName":"things"}'
        request = (HEAD.format(operation="Scan") + f"Content-Length: {len(body)}\r\n\r\n").encode() + body
        connection.settimeout(0.2)

        def is_cut_off() -> bool:
            try:
                with contextlib.suppress(TimeoutError):
                    connection.sendall(request * 100)
            except ConnectionError:
                return True
            return False

        wait_until(is_cut_off)


# Order


def test_many_requests_in_one_packet_are_answered_in_order(process: Process) -> None:
    with connect(process) as connection:
        wanted = [f"k{number}" for number in range(200)]
        for key in wanted:
            body = json.dumps({"TableName": "things", "Item": {"p": {"S": key}}, "ReturnValues": "ALL_OLD"})
            head = HEAD.format(operation="PutItem") + f"Content-Length: {len(body)}\r\n"
            connection.sendall(f"{head}\r\n{body}".encode() * 2)
        connection.shutdown(socket.SHUT_WR)
        answers = read_to_end(connection)
    assert answers.count(b"HTTP/1.1 200 ") == 400
    told = [part.partition(b'"')[0].decode() for part in answers.split(b'{"Attributes":{"p":{"S":"')[1:]]
    assert told == wanted


def test_a_client_that_has_closed_its_half_gets_its_reply(process: Process) -> None:
    with connect(process) as connection:
        connection.sendall((HEAD.format(operation="ListTables") + "Content-Length: 2\r\n\r\n{}").encode())
        connection.shutdown(socket.SHUT_WR)
        assert read_to_end(connection).endswith(b'{"TableNames":["things"]}')


@pytest.mark.extended
def test_clients_that_vanish_leave_nothing_behind(process: Process, client: RawClient) -> None:
    body = b'{"TableName":"things"}'
    request = (HEAD.format(operation="Scan") + f"Content-Length: {len(body)}\r\n\r\n").encode() + body
    before = len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
    for number in range(150):
        with connect(process) as connection:
            # Its close will be a reset.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.sendall(request[: 1 + number * len(request) // 149])
    client.call("ListTables")
    assert len(list(Path(f"/proc/{process.pid}/fd").iterdir())) <= before + 5
