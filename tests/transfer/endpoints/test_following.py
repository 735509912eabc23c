"""Changes of a table during writes: no write after the capture is omitted, whatever happens to shards and to the
follower.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from click.testing import CliRunner

from tablegate.gateway.__main__ import main
from tablegate.gateway.model.values.keys import Position
from tablegate.transfer.endpoints import dynamodb_streams
from tablegate.transfer.endpoints.endpoint import Definition, Endpoint, Service
from tablegate.transfer.errors import PositionLost, RequestRefused
from tests.support.running import Running
from tests.support.waiting import PATIENCE_S, wait_until
from tests.transfer.endpoints.conftest import OPENERS, open_azure, open_dynamodb
from tests.transfer.endpoints.places import SCHEMAS, key_of, numbered_rows

FOLLOWED = {Service.DYNAMODB: "followd", Service.TABLE_STORE: "followt"}


@pytest.fixture(params=list(FOLLOWED), ids=lambda service: service.value)
def service(request: pytest.FixtureRequest) -> Any:
    return request.param


def made(ours: Running, service: Service, name: str) -> Endpoint:
    endpoint = OPENERS[service](ours.url, name)
    endpoint.create(Definition(name, service, SCHEMAS[service]))
    return endpoint


def drained(
    open_again: Callable[[], Endpoint], position: Any, seen: set[Position], until: Callable[[], bool]
) -> Any:
    """Follow from a position until nothing is left after `until` holds.

    A new endpoint is used every few reads, as after a crash.
    """
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        endpoint = open_again()
        for _ in range(20):
            was_over = until()
            looked = endpoint.changes(json.loads(json.dumps(position)))
            position = looked.position
            seen.update(key.position for key in looked.keys)
            assert (looked.at_ms is not None) == bool(looked.keys)
            if was_over and looked.caught_up:
                endpoint.close()
                return position
        endpoint.close()
    raise AssertionError("the stream was never read to its end")


def reshard(ours: Running, table: str, shards: int) -> None:
    flags = ["streams", "reshard", table, "--shards", str(shards), "--database", ours.settings.database]
    done = CliRunner().invoke(main, flags)
    assert done.exit_code == 0, done.output


def test_every_write_after_the_capture_is_returned_over_splits_and_merges(
    ours: Running, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dynamodb_streams, "CHILDLESS_MS", 500)
    name = FOLLOWED[service] + "all"
    endpoint = made(ours, service, name)
    schema = SCHEMAS[service]
    stop, written = threading.Event(), [set[Position]() for _ in range(3)]
    captured = threading.Event()

    def write(number: int) -> None:
        writer, at = OPENERS[service](ours.url, name), number * 100_000
        while not stop.is_set():
            rows = numbered_rows(service, 20, first=at)
            counted = captured.is_set()
            writer.write(rows)
            writer.delete([key_of(rows[0], schema)])
            if counted:
                written[number].update(row.position for row in rows)
            at += 20

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    try:
        position = endpoint.capture()
        captured.set()
        seen: set[Position] = set()
        for shards in (3, 1, 4, 2):
            looked = endpoint.changes(position)
            seen.update(key.position for key in looked.keys)
            position = looked.position
            reshard(ours, name, shards)
            enough = sum(map(len, written)) + 26
            wait_until(lambda enough=enough: sum(map(len, written)) >= enough)  # type: ignore[misc]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    position = drained(partial(OPENERS[service], ours.url, name), position, seen, lambda: True)
    assert sum(map(len, written)) > 100
    for part in written:
        assert part <= seen
    # Without new changes, none is returned, with the same position.
    assert endpoint.changes(position).keys == []


@pytest.mark.clients
def test_dynamodb_local_is_followed_while_it_is_written(dynamodb_local: str) -> None:
    endpoint = open_dynamodb(dynamodb_local, "followlocal")
    endpoint.create(Definition("followlocal", Service.DYNAMODB, SCHEMAS[Service.DYNAMODB]))
    early = numbered_rows(Service.DYNAMODB, 30, first=1_000_000)
    endpoint.write(early)
    position = endpoint.capture()
    parts = [numbered_rows(Service.DYNAMODB, 100, first=number * 1000) for number in range(3)]
    writers = [
        threading.Thread(target=open_dynamodb(dynamodb_local, "followlocal").write, args=(part,))
        for part in parts
    ]
    for writer in writers:
        writer.start()
    seen: set[Position] = set()
    open_again = partial(open_dynamodb, dynamodb_local, "followlocal")
    position = drained(open_again, position, seen, lambda: not any(writer.is_alive() for writer in writers))
    assert seen == {row.position for part in parts for row in part}  # what was there before is no change
    open_again().delete([key_of(early[0], SCHEMAS[Service.DYNAMODB])])
    seen.clear()
    drained(open_again, position, seen, lambda: True)
    assert seen == {early[0].position}


def test_an_existing_stream_is_used_and_a_missing_one_is_enabled(ours: Running, service: Service) -> None:
    name = FOLLOWED[service] + "on"
    endpoint = made(ours, service, name)
    assert endpoint.describe().rules.stream is None
    first = endpoint.capture()
    rule = endpoint.describe().rules.stream
    assert rule is not None and rule.enabled
    endpoint.write(numbered_rows(service, 3))
    second = endpoint.capture()
    assert second["stream"] == first["stream"]
    seen: set[Position] = set()
    drained(partial(OPENERS[service], ours.url, name), first, seen, lambda: True)
    assert len(seen) == 3


def test_a_position_unused_for_too_long_is_lost(ours: Running, service: Service) -> None:
    endpoint = made(ours, service, FOLLOWED[service] + "lost")
    position = endpoint.capture()
    hours = 24 if service is Service.DYNAMODB else position["hours"]
    endpoint.changes({**position, "looked_ms": position["looked_ms"] - (hours - 1) * 3_600_000})
    with pytest.raises(PositionLost, match="Copy the table again"):
        endpoint.changes({**position, "looked_ms": position["looked_ms"] - hours * 3_600_000})


def test_a_stream_that_is_gone_is_a_lost_position(ours: Running, service: Service) -> None:
    endpoint = made(ours, service, FOLLOWED[service] + "gone")
    position = endpoint.capture()
    stream = position["stream"]
    other = stream[:-3] + ("000" if not stream.endswith("000") else "111")
    with pytest.raises(PositionLost):
        endpoint.changes({**position, "stream": other})


def test_an_expired_iterator_is_requested_again(ours: Running) -> None:
    endpoint = made(ours, Service.DYNAMODB, "followexpired")
    position = endpoint.capture()
    endpoint.write(numbered_rows(Service.DYNAMODB, 3))
    assert isinstance(endpoint, type(open_dynamodb(ours.url, "x")))
    position = endpoint.changes(position).position
    follower = endpoint._follower
    real = follower._streams.call
    asked: list[str] = []

    def call(operation: str, body: Any) -> Any:
        asked.append(operation)
        if operation == "GetRecords" and asked.count("GetRecords") == 1:
            raise RequestRefused("stream", "ExpiredIteratorException", "Iterator expired", 400)
        return real(operation, body)

    follower._streams.call = call  # type: ignore[method-assign]
    endpoint.write(numbered_rows(Service.DYNAMODB, 2, first=10))
    looked = endpoint.changes(position)
    assert asked == ["GetRecords", "GetShardIterator", "GetRecords"]
    assert len(looked.keys) == 2


def test_records_that_are_trimmed_are_a_lost_position(ours: Running) -> None:
    endpoint = made(ours, Service.DYNAMODB, "followtrimmed")
    position = endpoint.capture()
    assert isinstance(endpoint, type(open_dynamodb(ours.url, "x")))
    from tablegate.transfer.endpoints.dynamodb_client import TrimmedData

    def call(operation: str, body: Any) -> Any:
        raise TrimmedData("The operation attempted to read past the oldest stream record in a shard.")

    endpoint._follower._streams.call = call  # type: ignore[method-assign]
    with pytest.raises(PositionLost, match="have been deleted"):
        endpoint.changes(position)


def test_azure_returns_later_writes_and_reports_its_limits(ours: Running) -> None:
    endpoint = made(ours, Service.AZURE_TABLE, "followazure")
    assert not endpoint.follows and "deleted" in endpoint.unseen_changes
    schema = SCHEMAS[Service.AZURE_TABLE]
    position = endpoint.capture()
    rows = numbered_rows(Service.AZURE_TABLE, 1100)
    endpoint.write(rows)
    seen: set[Position] = set()
    position = drained(partial(open_azure, ours.url, "followazure"), position, seen, lambda: True)
    assert seen == {row.position for row in rows}
    looked = endpoint.changes(position)  # of the overlap, which a new process does not remember
    while not looked.caught_up:
        looked = endpoint.changes(looked.position)
    assert endpoint.changes(looked.position).keys == []
    endpoint.write(rows[7:8])
    again = endpoint.changes(looked.position)
    while not again.keys and again.position["token"] is not None:
        again = endpoint.changes(again.position)
    assert [key.position for key in again.keys] == [rows[7].position]
    assert again.at_ms is not None
    endpoint.delete([key_of(row, schema) for row in rows[:1]])
    assert endpoint.changes(again.position).keys == []
