"""A connection that reads whole requests by their bytes hands on what one does that leaves everything to the parser."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tablegate.gateway.configuration.loading import load
from tablegate.gateway.http import Reply
from tablegate.gateway.request_memory import RequestMemory
from tablegate.gateway.server import connection, fast_heads
from tablegate.gateway.server.connection import Connection
from tablegate.gateway.server.pending_request import PendingRequest

SETTINGS = load({"memory": True, "max_body_bytes": 1000, "max_header_bytes": 4096}, {})


class Server:
    """Notes what it is handed, and answers at once."""

    is_stopping = False
    settings = SETTINGS

    def __init__(self) -> None:
        self.handed: list[Any] = []
        self.memory = RequestMemory(SETTINGS.max_buffered_bytes)

    def enter(self, made: Connection) -> bool:
        return True

    def leave(self, made: Connection) -> None: ...
    def head_began(self, made: Connection) -> None: ...
    def head_ended(self, made: Connection) -> None: ...
    def discard(self, transport: asyncio.Transport, size_bytes: int) -> None: ...

    def handle(self, pending: PendingRequest) -> None:
        known = pending.header_map
        facts = (
            pending.method,
            pending.target,
            pending.path,
            pending.query,
            pending.headers,
            known,
            pending.body,
        )
        self.handed.append((*facts, pending.keep_alive, pending.http_10, self.memory.received_bytes))
        pending.connection.answer(Reply(200, (), b"answered"))

    def answer(self, pending: PendingRequest, reply: Reply) -> None: ...
    def refusal_of_head(self, pending: PendingRequest) -> Reply | None:
        return None

    def refuse(self, request: PendingRequest, error: Exception) -> Reply:
        return Reply(413, (), repr(error).encode())


class Transport(asyncio.Transport):
    """Keeps the first line of each reply: the rest has a date in it."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[bytes] = []

    def write(self, data: Any) -> None:
        self.said.append(bytes(data).partition(b"\r\n")[0] + bytes(data).partition(b"\r\n\r\n")[2])

    def is_closing(self) -> bool:
        return b"closed" in self.said

    def close(self) -> None:
        self.said.append(b"closed")

    def can_write_eof(self) -> bool:
        return False


def read(pieces: list[bytes], way: Any) -> tuple[list[Any], list[bytes], int]:
    """Feed these pieces to a connection. Returns its requests, its output, and the bytes still counted in memory."""
    server, transport = Server(), Transport()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "_whole_request", way)
        made = Connection(server)
        made.connection_made(transport)
        for piece in pieces:
            made.data_received(piece)
    return server.handed, transport.said, server.memory.received_bytes


METHODS = [
    "POST",
    "GET",
    "PUT",
    "DELETE",
    "MERGE",
    "PATCH",
    "HEAD",
    "OPTIONS",
    "post",
    "CONNECT",
    "P OST",
    "",
]
TARGETS = [
    "/",
    "/a(PartitionKey='p',RowKey='r%2F')?$top=1&x=%20",
    "*",
    "/ü",
    "/a b",
    "http://h/x",
    "/" + "x" * 9000,
    "/#f",
    '/"',
]
NAMES = [
    *("Host", "host", "Content-Length", "content-length", "Connection", "Transfer-Encoding", "Expect", "Upgrade", "X-Y", "Date"),
    *("Authorization", "x_y", "x y", "", "Content-Length ", "Accept", "Trailer", "X-Amz-Date", "Proxy-Connection", "TE"),
]  # fmt: skip
VALUES = [
    *(
        "a",
        "",
        " a ",
        "a b",
        "a\tb",
        "ü",
        "\x00",
        "a\rb",
        "a\nb",
        "0",
        "5",
        "05",
        "+5",
        "5, 5",
        "1001",
        "x" * 5000,
        "chunked",
    ),
    *(
        "keep-alive",
        "Keep-Alive",
        "close",
        "upgrade",
        "h2c",
        "100-continue",
        "identity",
        "5 ",
        "-1",
        "9999999999",
    ),
]
VERSIONS = ["HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "http/1.1", ""]
BODIES = [
    b"",
    b"hello",
    b"hello",
    b"\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: b\r\n\r\n",
    b"x" * 1001,
    b"0\r\n\r\n",
]
SIGNED = b"POST / HTTP/1.1\r\nHost: a\r\n%s\r\nAccept: a\r\nContent-Length: 5\r\n\r\nhello"
PLAIN = "POST / HTTP/1.1\r\nHost: a\r\nX-Y: z\r\nContent-Length: 5\r\n\r\n"


@st.composite
def messages(draw: Any) -> bytes:
    """A request that is written as most are, with nothing odd about it, one thing, or several."""
    oddities = draw(st.sampled_from([0, 0, 1, 1, 3]))
    odd = draw(
        st.sets(st.sampled_from(["start", "lines", "host", "length", "separator", "end"]), max_size=oddities)
    )
    start = draw(st.sampled_from(["POST / HTTP/1.1", "GET /a?b=c HTTP/1.1", "PUT /t(p='1') HTTP/1.1"]))
    if "start" in odd:
        start = " ".join(draw(st.tuples(*map(st.sampled_from, (METHODS, TARGETS, VERSIONS)))))
    body = draw(st.sampled_from(BODIES))
    names = st.sampled_from(
        NAMES if "lines" in odd else ["X-Y", "Date", "Accept", "x-ms-version", "Authorization"]
    )
    values = st.sampled_from(VALUES if "lines" in odd else ["a", "a b", "0", "x" * 300])
    lines = [
        (start, ""),
        *draw(st.lists(st.tuples(names, values), max_size=3, unique_by=lambda line: line[0])),
    ]
    if "host" not in odd or draw(st.booleans()):
        lines.insert(draw(st.integers(1, len(lines))), ("Host", "a"))
    length = len(body) + (draw(st.sampled_from([1, -1, 0])) if "length" in odd else 0)
    if length or "length" in odd:
        lines.insert(draw(st.integers(1, len(lines))), ("Content-Length", str(length)))
    text = ""
    for at, (name, value) in enumerate(lines):
        separator = draw(st.sampled_from([": ", ":", ":  ", " : "])) if "separator" in odd else ": "
        end = draw(st.sampled_from(["\r\n", "\r\n", "\n", "\r", ""])) if "end" in odd else "\r\n"
        text += f"{name}{separator if at else ''}{value}{end}"
    return (text + "\r\n").encode("latin-1", "replace") + body


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    for known in (fast_heads._lines, fast_heads._heads):
        known.clear()
    yield
    for known in (fast_heads._lines, fast_heads._heads):
        known.clear()


@given(st.lists(messages(), min_size=1, max_size=4), st.lists(st.integers(1, 200), max_size=3))
@example([PLAIN.encode() + b"hello", PLAIN.encode() + b"again"], [])
@example([PLAIN.encode() + b"hell", b"o" + PLAIN.encode() + b"hello"], [3])
@example(
    [SIGNED % (b"Authorization: " + proof) for proof in (b"one", b"two", b"three ", b"\x00", b"f\xc3", b"")],
    [],
)
@example(
    [SIGNED % b"Authorization: one", SIGNED % b"authorization: two", SIGNED % b"X-Authorization: three"], []
)
@example(
    [
        SIGNED % b"Authorization: one",
        SIGNED % b"Authorization: 2\r\nAuthorization: 3",
        SIGNED % b"Authorization: 4\n",
    ],
    [],
)
@example(
    [SIGNED % b"Authorization: one", SIGNED.replace(b"Accept", b"Authorization: x\r\nAccept") % b"Date: b"],
    [],
)
@example(
    [
        (SIGNED % b"Authorization: one")[:-1],
        SIGNED % b"Authorization: one",
        (SIGNED % b"Authorization: 2") + b"x",
    ],
    [],
)
@example([b"\r\n", PLAIN.encode() + b"hello"], [])
def test_both_ways_hand_on_the_same_requests(requests: list[bytes], cuts: list[int]) -> None:
    """In whichever pieces they come."""
    pieces = requests
    for cut in cuts:
        pieces = [*pieces[:-1], pieces[-1][:cut], pieces[-1][cut:]]
    pieces = [piece for piece in pieces if piece]
    assert read(pieces, fast_heads.whole_request) == read(pieces, connection._by_parser)


@pytest.mark.parametrize("name", ["Host", "X-Amz-Target", "Authorization", "X-Secret"])
def test_lines_that_may_be_secrets_are_not_remembered(name: str) -> None:
    line = f"{name}: a".encode()
    assert (
        fast_heads.whole_request(b"GET / HTTP/1.1\r\nHost: b\r\n" + line + b"\r\n\r\n", 100, 100) is None
        or name != "Host"
    )
    assert (line in fast_heads._lines) is (name in ("Host", "X-Amz-Target"))


def test_cached_heads_exclude_credentials() -> None:
    for proof in (b"one", b"two"):
        assert fast_heads.whole_request(SIGNED % (b"Authorization: " + proof), 1000, 1000) is not None
    assert len(fast_heads._heads) == 1
    assert not any(b"one" in known or b"two" in known for known in (*fast_heads._heads, *fast_heads._lines))
    assert fast_heads.whole_request(SIGNED % b"Authorization: one\r\nX-Secret: x", 1000, 1000) is not None
    assert len(fast_heads._heads) == 1
    for number in range(fast_heads._MAX_CACHED_HEADS + 10):
        fast_heads.whole_request(SIGNED % b"Authorization: one\r\nDate: %d" % number, 1000, 1000)
    assert len(fast_heads._heads) <= fast_heads._MAX_CACHED_HEADS


def test_no_more_than_some_lines_are_remembered() -> None:
    for number in range(fast_heads._MAX_CACHED * 2):
        head = f"GET / HTTP/1.1\r\nHost: h{number}\r\nDate: {'x' * 300}{number}\r\n\r\n"
        assert fast_heads.whole_request(head.encode(), 1000, 1000) is not None
    assert len(fast_heads._lines) <= fast_heads._MAX_CACHED
    assert max(map(len, fast_heads._lines)) <= fast_heads._MAX_CACHED_LINE_BYTES


@pytest.mark.fast_paths
def test_what_most_clients_send_is_taken() -> None:
    assert connection._whole_request is fast_heads.whole_request
    assert fast_heads.whole_request(PLAIN.encode() + b"hello", 100, 1) is not None
    assert fast_heads.whole_request(PLAIN.encode() + b"hello", len(PLAIN) - 5, 1) is None
    assert fast_heads.whole_request(PLAIN.encode() + b"hello", 100, 0) is None
