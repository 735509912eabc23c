"""A shadow's clients get the primary's answers, whatever the secondary does. The answers of both are compared.

These tests use no clock. A secondary that never answers shows in the answers that still arrive.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from azure.core import MatchConditions
from azure.core.exceptions import ResourceModifiedError

from tablegate.gateway.http.messages import Reply, Request
from tablegate.transfer.traffic import shadowing as shadowing_module
from tablegate.transfer.traffic.comparing import BODY
from tablegate.transfer.traffic.reports import DivergenceReport, SkipReason
from tests.support.across import Across
from tests.support.running import Running, free_port
from tests.support.waiting import PATIENCE_S, wait_until
from tests.transfer.traffic.proxies import Run, faulty, shadowing
from tests.transfer.traffic.test_replaying import (
    etags,
    streams_and_scans,
    tablestore_streams,
    what_all_three_promise,
)


@pytest.fixture(autouse=True)
def _secondaries_have_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a secondary may need more than 10 s for an answer, and 5 s for the queue at the end."""
    monkeypatch.setattr(shadowing_module, "_SECONDARY_SECONDS", PATIENCE_S)
    monkeypatch.setattr(shadowing_module, "_DRAIN_SECONDS", PATIENCE_S)


def figure(run: Run, name: str, **labels: str) -> float:
    """A figure of /metrics."""
    wanted = ",".join(f'{key}="{value}"' for key, value in labels.items())
    for line in requests.get(run.metrics + "/metrics", timeout=PATIENCE_S).text.splitlines():
        if line.startswith(f"{name}{{{wanted}}}"):
            return float(line.rpartition(" ")[2])
    return 0.0


def report_of(run: Run) -> DivergenceReport:
    assert run.error is None
    assert isinstance(run.result, DivergenceReport)
    return run.result


def test_two_services_that_are_written_alike_answer_alike(
    sqlite_server: Running, postgres_server: Running
) -> None:
    with shadowing(sqlite_server.url, postgres_server.url) as run:
        across = Across(run.url)
        for part in (what_all_three_promise, streams_and_scans, etags, tablestore_streams):
            part(across)
    report = report_of(run)
    assert report.exit_status == 0, report.as_text(100)
    assert report.equal.total() > 80
    assert not report.skipped


def test_a_sample_of_the_reads_makes_no_divergence(sqlite_server: Running, postgres_server: Running) -> None:
    """Tokens that came in answers that were not sampled have no counterpart: their requests are left out."""
    with shadowing(sqlite_server.url, postgres_server.url, share=0.4) as run:
        across = Across(run.url)
        for part in (what_all_three_promise, streams_and_scans, etags, tablestore_streams):
            part(across)
    report = report_of(run)
    assert not report.found, report.as_text(100)
    assert report.equal.total() > 50
    assert set(report.skipped) == {SkipReason.NOT_SAMPLED, SkipReason.UNKNOWN_TOKEN}


def things(across: Across) -> Any:
    table = across.dynamodb.create("pk:S")
    for number in range(3):
        table.put_item(Item={"pk": str(number), "n": number})
    return table


def test_a_share_of_the_reads_is_compared_and_all_writes(
    sqlite_server: Running, postgres_server: Running
) -> None:
    with shadowing(sqlite_server.url, postgres_server.url, share=0.05) as run:
        table = things(Across(run.url))
        for _ in range(100):
            assert table.get_item(Key={"pk": "1"})["Item"]["n"] == 1
    report = report_of(run)
    assert report.equal == {
        ("dynamodb", "GetItem"): 5,
        ("dynamodb", "PutItem"): 3,
        ("dynamodb", "CreateTable"): 1,
    }
    assert report.skipped == {SkipReason.NOT_SAMPLED: 95}
    assert report.exit_status == 0


def test_writes_may_be_the_primarys_alone(sqlite_server: Running, postgres_server: Running) -> None:
    with shadowing(sqlite_server.url, postgres_server.url, with_writes=False) as run:
        across = Across(run.url)
        table = things(across)
        assert table.get_item(Key={"pk": "1"})["Item"]["n"] == 1
        # The secondary has no table.
        assert Across(postgres_server.url).dynamodb.client.list_tables()["TableNames"] == []
    report = report_of(run)
    assert report.skipped == {SkipReason.NOT_SAMPLED: 4}
    assert [(each.operation, each.divergence.what) for each in report.found] == [("GetItem", "status")]
    assert report.exit_status == 1


def test_a_divergence_is_in_the_figures_while_it_runs(
    sqlite_server: Running, postgres_server: Running
) -> None:
    def change(request: Request, reply: Reply) -> Reply:
        if not request.header("x-amz-target").endswith(".GetItem"):
            return reply
        tree = json.loads(reply.body)
        tree["Item"]["n"] = {"N": "7"}
        return reply._replace(body=json.dumps(tree).encode())

    with faulty(postgres_server.url, change) as wrong, shadowing(sqlite_server.url, wrong.url) as run:
        table = things(Across(run.url))
        assert table.get_item(Key={"pk": "1"})["Item"]["n"] == 1
        of_reads = {"dialect": "dynamodb", "operation": "GetItem"}
        wait_until(lambda: figure(run, "tablegate_shadow_compared_total", **of_reads, result="diverged") == 1)
        assert figure(run, "tablegate_shadow_divergences_total", **of_reads, what=BODY) == 1
        of_writes = {"dialect": "dynamodb", "operation": "PutItem", "result": "equal"}
        assert figure(run, "tablegate_shadow_compared_total", **of_writes) == 3
    [found] = report_of(run).found
    assert (found.divergence.place, found.divergence.recorded, found.divergence.live) == (
        "body/Item/n/N",
        "1",
        "7",
    )


@contextlib.contextmanager
def hanging() -> Iterator[str]:
    """A service that takes connections and requests, and never answers."""
    listening = socket.create_server(("127.0.0.1", 0))
    kept: list[socket.socket] = []

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                kept.append(listening.accept()[0])

    thread = threading.Thread(target=accept)
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    thread.join()
    for connection in kept:
        connection.close()


QUEUE = 10
REQUESTS = 50


def test_a_secondary_that_hangs_costs_clients_nothing(
    sqlite_server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All answers arrive while the secondary blocks on the first request.

    Requests beyond the queue's limit are counted.
    """
    monkeypatch.setattr(shadowing_module, "QUEUE_MAX", QUEUE)
    monkeypatch.setattr(shadowing_module, "_DRAIN_SECONDS", 0.1)
    with hanging() as secondary, shadowing(sqlite_server.url, secondary) as run:
        client = Across(run.url).dynamodb.client
        for _ in range(REQUESTS):
            assert client.list_tables()["TableNames"] == []
        assert figure(run, "tablegate_shadow_skipped_total", reason="dropped") == REQUESTS - QUEUE - 1
    report = report_of(run)
    assert not report.equal
    assert report.skipped[SkipReason.DROPPED] >= REQUESTS - 1
    assert report.exit_status == 2


def test_a_queue_is_bounded_in_bytes_too(sqlite_server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shadowing_module, "QUEUE_MAX_BYTES", 250_000)
    monkeypatch.setattr(shadowing_module, "_DRAIN_SECONDS", 0.1)
    table = Across(sqlite_server.url).dynamodb.create("pk:S")
    with hanging() as secondary, shadowing(sqlite_server.url, secondary) as run:
        through = Across(run.url).dynamodb.resource.Table(table.name)
        for number in range(10):
            through.put_item(Item={"pk": str(number), "text": "x" * 100_000})
        # One is being sent, and two of 100 KB wait.
        assert figure(run, "tablegate_shadow_skipped_total", reason="dropped") == 7
    assert "writes were dropped" in report_of(run).notes[0]
    assert len(table.scan(Select="COUNT", ConsistentRead=True).get("Items", [])) == 0
    assert table.scan(Select="COUNT")["Count"] == 10


def test_a_secondary_that_is_dead_costs_clients_nothing(sqlite_server: Running) -> None:
    with shadowing(sqlite_server.url, f"http://127.0.0.1:{free_port()}") as run:
        table = things(Across(run.url))
        assert table.get_item(Key={"pk": "2"})["Item"]["n"] == 2
    report = report_of(run)
    assert report.skipped == {SkipReason.NO_LIVE_ANSWER: 5}
    assert report.exit_status == 2


def test_a_secondary_that_recovers_is_compared_again(
    sqlite_server: Running, postgres_server: Running
) -> None:
    """It is out of order for a while, and then no more."""
    is_dead = threading.Event()

    def change(request: Request, reply: Reply) -> Reply:
        if is_dead.is_set():
            raise ConnectionError
        return reply

    with faulty(postgres_server.url, change) as secondary, shadowing(sqlite_server.url, secondary.url) as run:
        table = things(Across(run.url))
        count = {"dialect": "dynamodb", "operation": "PutItem", "result": "equal"}
        wait_until(lambda: figure(run, "tablegate_shadow_compared_total", **count) == 3)
        is_dead.set()
        assert table.get_item(Key={"pk": "2"})["Item"]["n"] == 2
        read = {"dialect": "dynamodb", "operation": "GetItem"}
        wait_until(lambda: figure(run, "tablegate_shadow_compared_total", **read, result="diverged") == 1)
        is_dead.clear()
        assert table.get_item(Key={"pk": "2"})["Item"]["n"] == 2
        wait_until(lambda: figure(run, "tablegate_shadow_compared_total", **read, result="equal") == 1)
    assert report_of(run).exit_status == 1


def test_an_etag_of_before_does_not_undo_the_shadow(sqlite_server: Running, postgres_server: Running) -> None:
    """A client that has read an entity before the shadow began writes on the condition of what it has read."""
    etags_before = []
    for server in (sqlite_server, postgres_server):
        table = Across(server.url).azure.service.create_table("people")
        table.create_entity({"PartitionKey": "p", "RowKey": "r", "n": 1})
        etags_before.append(table.get_entity("p", "r").metadata["etag"])
    assert etags_before[0] != etags_before[1]
    with shadowing(sqlite_server.url, postgres_server.url) as run:
        table = Across(run.url).azure.service.get_table_client("people")
        entity = {"PartitionKey": "p", "RowKey": "r", "n": 2}
        table.update_entity(entity, etag=etags_before[0], match_condition=MatchConditions.IfNotModified)
        with pytest.raises(ResourceModifiedError):
            table.update_entity(entity, etag=etags_before[0], match_condition=MatchConditions.IfNotModified)
    report = report_of(run)
    assert report.exit_status == 0, report.as_text(10)
    assert report.equal.total() == 2
