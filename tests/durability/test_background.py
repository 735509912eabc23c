"""Background work of real server processes: progress, pauses, restart after kill -9, and effect on other clients.

The tables have a few thousand rows here. `make soak` purges and indexes a million.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks.background import fill
from tablegate.gateway.__main__ import main
from tablegate.gateway.app import create_app
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.features.jobs.job_runner import JobRunner
from tablegate.gateway.model.commands.table_commands import CreateTable, FindTable, ListTables, NewIndex
from tablegate.gateway.model.tables.indexes import IndexProjection
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.values import Kind
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.wiring import connect, open_store
from tests.support.raw_client import RawClient
from tests.support.running import Process, start
from tests.support.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.extended

SECONDS = float(os.environ.get("TABLEGATE_TEST_SOAK_SECONDS", "1.5"))
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
# A batch takes milliseconds, and its rest fifty times as long.
CRAWLING = ("--background-cpu-share", "0.05")
"""A pause of 19 times the duration of a batch, which can be seconds on a busy machine."""


@contextlib.contextmanager
def running(folder: Path, database_url: str, *flags: str) -> Iterator[tuple[Process, RawClient]]:
    process = Process(folder, "--database", database_url, "--dialects", "dynamodb", *flags)
    process.wait_until_ready()
    try:
        with RawClient(process.url) as client:
            yield process, client
    finally:
        if process.is_running:
            process.kill()


def create(client: RawClient, name: str) -> None:
    columns = (("pk", "HASH"), ("sk", "RANGE"))
    client.call(
        "CreateTable",
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": column, "AttributeType": "S"} for column, _ in columns],
        KeySchema=[{"AttributeName": column, "KeyType": kind} for column, kind in columns],
    )


def add_index(client: RawClient, name: str) -> None:
    index = {
        "IndexName": "by_sk",
        "KeySchema": [{"AttributeName": "sk", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    }
    client.call(
        "UpdateTable",
        TableName=name,
        AttributeDefinitions=[{"AttributeName": "sk", "AttributeType": "S"}],
        GlobalSecondaryIndexUpdates=[{"Create": index}],
    )


def index_of(client: RawClient, name: str) -> dict[str, Any]:
    [index] = client.call("DescribeTable", TableName=name)["Table"]["GlobalSecondaryIndexes"]
    return dict(index)


def metrics(process: Process, name: str) -> dict[str, float]:
    """A metric by its label `work`."""
    with urllib.request.urlopen(f"{process.url}/metrics", timeout=PATIENCE_S) as reply:
        text = reply.read().decode()
    found = re.findall(rf'^{name}{{work="(\w+)"}} (\S+)$', text, re.MULTILINE)
    return {work: float(value) for work, value in found}


def shown(database_url: str) -> dict[str, tuple[str, int, int]]:
    """Return the progress of background work in `tablegate tables`: kind, rows done, rows left."""
    done = CliRunner().invoke(main, ["tables", "--database", database_url])
    assert done.exit_code == 0, done.output
    found = re.findall(r"^(\w+)\t(.*)\t([\d,]+) rows done\tabout ([\d,]+) left$", done.output, re.MULTILINE)
    return {
        work: (name, int(did.replace(",", "")), int(left.replace(",", ""))) for work, name, did, left in found
    }


ROWS = 10_000
WORKS = ("purge", "index_backfill")


def test_background_work_reports_progress_and_resumes_after_sigkill(
    tmp_path: Path, database_url: str
) -> None:
    with running(tmp_path, database_url) as (_, client):
        for name in ("gone", "indexed"):
            create(client, name)
            fill(database_url, name, ROWS)
    with running(tmp_path, database_url, *CRAWLING) as (process, client):
        client.call("DeleteTable", TableName="gone")
        add_index(client, "indexed")
        wait_until(
            lambda: all(metrics(process, "tablegate_background_rows_total").get(work) for work in WORKS)
        )
        left = metrics(process, "tablegate_background_rows_left")
        assert all(0 < left[work] < ROWS for work in WORKS)
        index = index_of(client, "indexed")
        assert (index["IndexStatus"], index["Backfilling"]) == ("CREATING", True)
        process.kill()
    before = shown(database_url)
    assert before["index_backfill"][0] == "indexed/by_sk"
    assert before["purge"][0].startswith("dropped, id ")
    for _, did, left in before.values():
        assert did + left == ROWS
        assert left
    with running(tmp_path, database_url, "--background-cpu-share", "1") as (process, client):
        wait_until(lambda: index_of(client, "indexed")["IndexStatus"] == "ACTIVE")
        wait_until(lambda: not shown(database_url))
        wait_until(lambda: not any(metrics(process, "tablegate_background_rows_left").values()))
        rows = metrics(process, "tablegate_background_rows_total")
        assert rows["purge"] == before["purge"][2]
        assert rows["index_backfill"] == before["index_backfill"][2]
        query = {
            "KeyConditionExpression": "sk = :sk",
            "ExpressionAttributeValues": {
                ":sk": {"S": client.call("Scan", TableName="indexed", Limit=1)["Items"][0]["sk"]["S"]}
            },
        }
        assert client.call("Query", TableName="indexed", IndexName="by_sk", **query)["Count"] >= 1


def test_a_start_reads_no_more_with_many_tables_than_with_one(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts all reads until the background work is done.

    Descriptors are read on the first request for a table, and then only one.
    """
    of_one = started(database_url, monkeypatch, 1, "t0")
    of_many = started(database_url, monkeypatch, 150, "t149")
    assert of_many == of_one


def started(database_url: str, monkeypatch: pytest.MonkeyPatch, tables: int, wanted: str) -> tuple[int, int]:
    """Return (statements, result rows) of a start with this number of tables and a request for one of them."""
    settings = load({"database": database_url}, {})
    made = open_store(settings, connect(settings))
    schema = KeySchema((KeyColumn("p", Kind.TEXT),))
    index = NewIndex("by_q", KeySchema((KeyColumn("q", Kind.TEXT),)), IndexProjection.ALL)
    known = len(made.engine.run([ListTables("", "", None, False)])[0])
    for number in range(known, tables):
        made.engine.run([CreateTable("dynamodb", "", f"t{number}", schema, (index,))])
    made.close()
    opened = open_store(settings, connect(settings))
    with opened.store.read() as session:
        kind = type(session)
    query, seen = kind.query, [0, 0]

    def counted(session: Session, statement: str, parameters: Any = ()) -> list[Any]:
        found = query(session, statement, parameters)
        seen[0] += 1
        seen[1] += len(found)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(kind, "query", counted)
        create_app(settings, opened)
        [table] = opened.engine.run([FindTable("", wanted)])
        assert table.name == wanted
        while opened.engine.background.next_batch():
            pass
    opened.close()
    return seen[0], seen[1]


def test_the_share_of_background_work_is_more_than_none_and_at_most_all(tmp_path: Path) -> None:
    for share, code in (("0", 1), ("1.01", 1), ("nan", 1), ("1", 0), ("0.001", 0)):
        done = CliRunner().invoke(
            main, ["healthcheck", "--url", "http://127.0.0.1:1", "--background-cpu-share", share]
        )
        assert ("background_cpu_share" in done.output or "background-cpu-share" in done.output) is bool(
            code
        ), share


@pytest.mark.soak
def test_background_work_does_not_slow_other_tables(tmp_path: Path, database_url: str) -> None:
    """`make soak` purges a million rows and indexes half a million.

    The work keeps to its CPU share. Reads and writes of another table are at most twice as slow at the median.
    """
    size = 1_000_000 if SECONDS >= 60 else 4_000
    with running(tmp_path, database_url) as (_, client):
        for name, rows in (("gone", size), ("indexed", size // 2), ("near", 100)):
            create(client, name)
            fill(database_url, name, rows)
    with running(tmp_path, database_url) as (process, client):
        quiet = neighbour(client, lambda: False, SECONDS)
        for operate in (
            lambda: client.call("DeleteTable", TableName="gone"),
            lambda: add_index(client, "indexed"),
        ):
            before = sum(metrics(process, "tablegate_background_seconds_total").values())
            began = time.monotonic()
            operate()

            def worked(process: Any = process, before: float = before) -> float:
                return sum(metrics(process, "tablegate_background_seconds_total").values()) - before

            def is_done(process: Any = process, worked: Any = worked) -> bool:
                """True if the work has begun and nothing of it is left."""
                return worked() > 0 and not any(metrics(process, "tablegate_background_rows_left").values())

            beside = neighbour(client, is_done)
            took = time.monotonic() - began
            if SECONDS >= 60:
                assert worked() <= 0.3 * took
                for mine, its in zip(beside, quiet, strict=True):
                    assert mine < 2 * its, (beside, quiet)
        # The last batch finds no row and only marks the work as done.
        wait_until(lambda: not shown(database_url), lambda: shown(database_url))


def neighbour(client: RawClient, is_over: Any, seconds: float = 3_600.0) -> tuple[float, float]:
    """Return the medians of alternating reads and writes over this period."""
    taken: tuple[list[float], list[float]] = ([], [])
    key = {"pk": {"S": "a"}, "sk": {"S": "a"}}
    began = asked = time.monotonic()
    while time.monotonic() - began < seconds:
        for kept, operation, given in (
            (taken[0], "GetItem", {"Key": key}),
            (taken[1], "PutItem", {"Item": {**key, "x": {"S": "x" * 900}}}),
        ):
            start = time.perf_counter()
            client.call(operation, TableName="near", **given)
            kept.append(time.perf_counter() - start)
        if time.monotonic() - asked > 1:
            asked = time.monotonic()
            if is_over():
                break
    return sorted(taken[0])[len(taken[0]) // 2], sorted(taken[1])[len(taken[1]) // 2]


@on_sqlite
def test_claims_on_jobs_are_renewed_however_rarely_credentials_are_read(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A claim lasts for 6 s. Without renewals, another server would take the job over."""
    renewals: list[float] = []
    monkeypatch.setattr(JobRunner, "renew", lambda self: renewals.append(time.monotonic()))
    server = start(database_url, credentials_period=3600.0, s3_folder=tmp_path)
    try:
        wait_until(lambda: len(renewals) >= 2)
    finally:
        server.stop()
