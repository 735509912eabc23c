"""The memory budget: what it counts, what it refuses, and that all of it is given back."""

from __future__ import annotations

import json
import threading
import tracemalloc

import orjson
import pytest

from tablegate.gateway.http.messages import Request
from tablegate.gateway.http.request_bodies import RequestMemory
from tablegate.gateway.model.errors import Busy

LIMIT_BYTES = 1 << 20


def request() -> Request:
    return Request("POST", "/", (), b"")


@pytest.fixture
def memory() -> RequestMemory:
    return RequestMemory(LIMIT_BYTES)


def left(memory: RequestMemory) -> int:
    return memory.receivable_bytes - memory.received_bytes


def test_received_and_decoded_bodies_share_one_limit(memory: RequestMemory) -> None:
    first, second = request(), request()
    memory.receive(LIMIT_BYTES // 2)
    memory.hold(first, LIMIT_BYTES // 4)
    assert left(memory) == LIMIT_BYTES // 4
    with pytest.raises(Busy):
        memory.receive(LIMIT_BYTES // 4 + 1)
    with pytest.raises(Busy):
        memory.hold(second, LIMIT_BYTES // 4 + 1)
    memory.hold(second, LIMIT_BYTES // 4)
    for each in (first, second, second):
        memory.release(each)
    memory.discard(LIMIT_BYTES // 2)
    assert left(memory) == LIMIT_BYTES


def test_a_new_count_of_a_request_replaces_its_earlier_count(memory: RequestMemory) -> None:
    """A handler begins again where a table has changed, and a body is first decoded and then parsed."""
    made = request()
    for size_bytes in (LIMIT_BYTES, LIMIT_BYTES // 2, LIMIT_BYTES):
        memory.hold(made, size_bytes)
        assert left(memory) == LIMIT_BYTES - size_bytes


def test_a_request_beyond_the_limit_is_decoded_alone(memory: RequestMemory) -> None:
    """A request of a size that the service permits is decoded, one at a time."""
    large, small = request(), request()
    memory.hold(small, 1)
    with pytest.raises(Busy):
        memory.hold(large, LIMIT_BYTES + 1)
    memory.release(small)
    memory.hold(large, LIMIT_BYTES + 1)
    with pytest.raises(Busy):
        memory.hold(small, 1)
    with pytest.raises(Busy):
        memory.receive(1)


def test_json_is_counted_only_where_its_length_does_not_fit(memory: RequestMemory) -> None:
    """36 bytes for each byte are the most there can be. Few objects need no more than twice their text."""
    small, long = request(), request()
    memory.hold_json(small, b"{}" * 5000)
    assert small.held_bytes == 36 * 10_000
    memory.hold_json(long, b'{"S":"' + b"x" * 100_000 + b'"}')
    assert long.held_bytes < 250_000


DENSE = [
    {},
    [],
    {"S": ""},
    {"S": "x"},
    {"N": "1"},
    {"L": []},
    {"M": {"a": {"S": ""}}},
    "",
    "x",
    1,
    1.5,
    {"a": 1, "b": 2},
]


@pytest.mark.parametrize("part", DENSE, ids=json.dumps)
def test_the_estimate_covers_the_parsed_objects(part: object) -> None:
    """Counts objects only. tracemalloc does not measure the parser's buffer, which is freed before the next request."""
    text = orjson.dumps([part] * 20_000)
    memory, made = RequestMemory(len(text)), request()
    memory.hold_json(made, text)
    tracemalloc.start()
    built = orjson.loads(text)
    size_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(built) == 20_000
    assert made.held_bytes >= size_bytes


def test_threads_return_the_memory_that_they_hold(memory: RequestMemory) -> None:
    def work() -> None:
        for _ in range(2000):
            made = request()
            memory.hold(made, 10)
            memory.release(made)
            memory.receive(10)
            memory.discard(10)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (memory.received_bytes, memory.receivable_bytes) == (0, LIMIT_BYTES)
