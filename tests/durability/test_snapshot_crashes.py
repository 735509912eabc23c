"""Kills of a server while a snapshot is saved or read from a file: the name has the former snapshot or the new one, whole."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import tarfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import requests

from tablegate.gateway.configuration.loading import load
from tablegate.gateway.control import snapshots
from tablegate.gateway.control.documents import run
from tablegate.gateway.features.history.backup_commands import ListNamespaces
from tablegate.gateway.model.tables.tables import SNAPSHOTS
from tablegate.gateway.wiring import connect, open_store
from tests.support.raw_client import RawClient
from tests.support.running import Process
from tests.support.soak import minutes_long
from tests.support.waiting import PATIENCE_S, wait_at_random

pytestmark = pytest.mark.extended

KILLS = int(os.environ.get("TABLEGATE_TEST_SNAPSHOT_KILLS", "4"))
ITEMS, MORE = 600, 25
_DAYS_MS = 2 * 86_400_000


def put_all(client: RawClient, numbers: range) -> None:
    for first in numbers[::25]:
        items = [{"p": {"S": f"{first + more:05}"}, "x": {"S": "x" * 300}} for more in range(25)]
        wanted = [{"PutRequest": {"Item": item}} for item in items]
        client.call("BatchWriteItem", RequestItems={"things": wanted})


def content(file: bytes) -> tuple[int, list[str]]:
    """The time at which the snapshot in a file was saved, and the keys of its items."""
    with tarfile.open(fileobj=io.BytesIO(file)) as archive:
        members = {member.name: archive.extractfile(member).read() for member in archive.getmembers()}  # type: ignore[union-attr]
    manifest = json.loads(members["snapshot.json"])
    [table] = manifest["tables"]
    lines = members[table["file"]].splitlines()
    return manifest["saved_at_ms"], sorted(json.loads(line)["row"]["p"]["S"] for line in lines)


def names_left(database_url: str, later_ms: int = 0) -> set[str]:
    """The names of snapshots that have tables. With `later_ms`: once a server has started so much later."""
    settings = load({"database": database_url}, {})
    opened = open_store(settings, connect(settings))
    try:
        if later_ms:
            now_ms = time.time_ns() // 1_000_000
            snapshots.remove_unfinished(opened.engine, opened.store.database.shared, now_ms + later_ms)
        return {each.split("/")[1] for each in run(opened.engine, ListNamespaces(SNAPSHOTS))}
    finally:
        opened.close()


def test_kills_while_snapshots_are_made(tmp_path: Path, database_url: str) -> None:
    chance = random.Random(11)

    def begin() -> Process:
        process = Process(tmp_path, "--database", database_url, "--dialects", "dynamodb")
        process.wait_until_ready()
        return process

    def url(path: str) -> str:
        return f"{server.url}/_tablegate/snapshots{path}"

    server = begin()
    try:
        with RawClient(server.url) as client:
            client.create_table("things")
            put_all(client, range(ITEMS))
            requests.post(url(""), json={"name": "first"}, timeout=PATIENCE_S).raise_for_status()
            file = requests.get(url("/first/file"), timeout=PATIENCE_S).content
            put_all(client, range(ITEMS, ITEMS + MORE))
        from_file = content(file)
        assert len(from_file[1]) == ITEMS
        saved = [f"{number:05}" for number in range(ITEMS + MORE)]
        former: tuple[int, list[str]] | None = None
        for round_ in range(KILLS):
            answers: list[Any] = []

            def send(at: str, is_put: bool, answers: list[Any] = answers) -> None:
                with contextlib.suppress(requests.RequestException):
                    if is_put:
                        answers.append(requests.put(f"{at}/target/file", data=file, timeout=PATIENCE_S))
                    else:
                        answers.append(requests.post(at, json={"name": "target"}, timeout=PATIENCE_S))

            is_put = round_ % 2 == 0
            sender = threading.Thread(target=send, args=(url(""), is_put))
            sender.start()
            wait_at_random(chance, 0.3)
            server.kill()
            sender.join()
            server = begin()
            index = requests.get(url(""), timeout=PATIENCE_S).json()["snapshots"]
            left = names_left(database_url)
            assert {name for name in left if not name.startswith(".")} == index.keys()
            assert left == index.keys() or not database_url.startswith("sqlite")
            now = None
            if "target" in index:
                now = content(requests.get(url("/target/file"), timeout=PATIENCE_S).content)
                assert now[0] == index["target"]["saved_at_ms"]
            if answers or now != former:
                assert all(answer.status_code == 200 for answer in answers), answers[0].text
                assert now is not None
                assert now == from_file if is_put else now[1] == saved
            former = now
        requests.post(url("/first/load"), timeout=PATIENCE_S).raise_for_status()
        with RawClient(server.url) as client:
            assert sorted(item["p"]["S"] for item in client.scan("things")) == from_file[1]
        assert names_left(database_url, _DAYS_MS) == index.keys()
    finally:
        server.kill()


@pytest.mark.soak
@minutes_long
def test_fifty_kills(tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "KILLS", 50)
    test_kills_while_snapshots_are_made(tmp_path, database_url)
