"""Bodies are decoded within bounds, and a shortage of memory is no fault of the sender."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from tablegate.adapters.dynamodb.dialect import DynamoDB
from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.http.messages import Request
from tablegate.gateway.http.request_bodies import Undecodable, inflate, parse_json
from tablegate.gateway.model.errors import Busy, LimitExceeded
from tablegate.gateway.security.credentials import Credentials
from tests.support.raw_client import SIGNED_IN_FORM

MIB = 1 << 20


def test_encoded_bodies_are_decoded() -> None:
    data = b'{"a":1}' * 100_000
    assert inflate(gzip.compress(data), "gzip", len(data)) == data
    assert inflate(zlib.compress(data), "deflate", len(data)) == data
    assert inflate(gzip.compress(data) * 3, "gzip", 3 * len(data), 3) == data * 3


def test_decoding_stops_at_the_bound() -> None:
    """200 MiB in 200 KB. Memory holds at most the bound, and twice the bound while zlib's buffer grows."""
    bomb = gzip.compress(bytes(200 * MIB), 9)
    tracemalloc.start()
    with pytest.raises(LimitExceeded):
        inflate(bomb, "gzip", MIB)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 4 * MIB


@pytest.mark.parametrize(
    ("data", "coding"),
    [
        (b"", "gzip"),
        (b"junk", "gzip"),
        (gzip.compress(b"x", mtime=0)[:-1], "gzip"),
        (gzip.compress(b"x", mtime=0) + b"junk", "gzip"),
        (gzip.compress(b"x", mtime=0) * 2, "gzip"),
        (zlib.compress(b"x") + b"y", "deflate"),
        (b"x", "br"),
    ],
)
def test_invalid_encodings_are_undecodable(data: bytes, coding: str) -> None:
    with pytest.raises(Undecodable):
        inflate(data, coding, MIB)


@pytest.mark.parametrize(
    "text", [b"", b"{", b"NaN", b'"\\ud800"', b"\xff", b"[" * 2000, b"[" * 2000 + b"]" * 2000]
)
def test_a_text_that_is_no_json_is_undecodable(text: bytes) -> None:
    with pytest.raises(Undecodable):
        parse_json(text)


def fails(error: Exception) -> Callable[..., Any]:
    def raising(*given: Any) -> Any:
        raise error

    return raising


# Errors of orjson 3.13 in processes with 200 and 300 MiB of address space, and of zlib and Python in the same case.
SHORTAGES = [
    orjson.JSONDecodeError("Not enough memory to allocate buffer for parsing", "", 0),
    SystemError("<built-in function loads> returned a result with an exception set"),
    MemoryError(),
]


@pytest.mark.parametrize("error", SHORTAGES, ids=lambda error: type(error).__name__)
def test_a_shortage_of_memory_is_no_fault_of_the_sender(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(orjson, "loads", fails(error))
        with pytest.raises(Busy):
            parse_json(b"{}")
    for short in (MemoryError(), zlib.error("Error -4 while decompressing data")):
        monkeypatch.setattr(zlib, "decompressobj", fails(short))
        with pytest.raises(Busy):
            inflate(b"x", "gzip", MIB)


@pytest.mark.parametrize("error", SHORTAGES, ids=lambda error: type(error).__name__)
def test_dynamodb_answers_503_to_a_shortage_of_memory(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request does not reach the database, so the test has none."""
    settings = Settings(database="sqlite://", memory=True)
    gateway = Gateway(Engines(), Credentials(settings), settings, lambda: 0, lambda: 0)  # type: ignore[arg-type]
    headers = {name.lower(): value for name, value in SIGNED_IN_FORM.items()}
    headers["x-amz-target"] = "DynamoDB_20120810.ListTables"
    dialect = DynamoDB(gateway)
    monkeypatch.setattr(orjson, "loads", fails(error))
    reply = dialect.serve(Request("POST", "/", tuple(headers.items()), b"{}"))
    assert (reply.status, b"ServiceUnavailableException" in reply.body) == (503, True)


class Engines:
    """In place of an engine."""

    def register_view(self, *given: Any) -> None:
        pass
