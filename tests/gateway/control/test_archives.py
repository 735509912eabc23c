"""Snapshots as files: exact, consistent under writers, portable between databases.

A damaged file is rejected and changes nothing.
"""

from __future__ import annotations

import io
import json
import tarfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from click.testing import CliRunner

from tablegate.gateway.__main__ import main
from tablegate.testing import Server, ServerFailed
from tests.conftest import KINDS, Serve
from tests.support.control import Control, make
from tests.support.databases import PostgresServer
from tests.support.filled import fill, state
from tests.support.live_dynamodb import Live
from tests.support.waiting import PATIENCE_S

URL = "/_tablegate/snapshots/first/file"


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    with postgres.new_database() as url:
        yield url


@pytest.mark.skipif(len(KINDS) < 2, reason="there is one database only")
@pytest.mark.parametrize("first", KINDS)
def test_a_snapshot_loads_on_the_other_database_and_is_equal(
    serve: Serve, sqlite_url: str, postgres_url: str, first: str
) -> None:
    urls = [sqlite_url, postgres_url] if first == "sqlite" else [postgres_url, sqlite_url]
    one, other = (serve(url) for url in urls)
    fill(one.url)
    Control(one.url)("POST", "/snapshots", name="first")
    Live(one.url).client.delete_table(TableName="things")
    exported = requests.get(one.url + URL, timeout=PATIENCE_S).content
    make(Live(other.url), "to-be-gone")
    put = requests.put(other.url + URL, data=exported, timeout=PATIENCE_S)
    assert (put.status_code, put.json()["tables"]) == (200, 3), put.text
    Control(other.url)("POST", "/snapshots/first/load")
    Control(one.url)("POST", "/snapshots/first/load")
    assert state(one.url) == state(other.url)
    for name in ("people", "things", "rows"):
        verified = CliRunner().invoke(main, ["verify", *(f"tablegate:{url}#{name}" for url in urls)])
        assert verified.exit_code == 0, verified.output
    # Later writes are indexed, and another export is equal.
    again = requests.get(other.url + URL, timeout=PATIENCE_S).content
    assert rows_of(again) == rows_of(exported)


def rows_of(exported: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(exported)) as archive:
        return {
            member.name: archive.extractfile(member).read()  # type: ignore[union-attr]
            for member in archive.getmembers()
            if member.name != "snapshot.json"
        }


def other_database(request: pytest.FixtureRequest, url: str) -> str:
    """One of the other kind, or of the same where there is one kind only."""
    is_sqlite = url.startswith("sqlite") and len(KINDS) > 1
    found: str = request.getfixturevalue("postgres_url" if is_sqlite else "sqlite_url")
    return found


def test_a_snapshot_under_writers_equals_a_state_that_existed(
    serve: Serve, database_url: str, request: pytest.FixtureRequest
) -> None:
    """Eight writers move money between accounts of two tables by transactions.

    The sum is constant in each snapshot. Such a snapshot gives the same rows on the other database.
    """
    server = serve(database_url)
    control, live = Control(server.url), Live(server.url)
    for name in ("bank-a", "bank-b"):
        make(live, name, items=0)
        for number in range(8):
            live.client.put_item(TableName=name, Item={"id": {"S": str(number)}, "sum": {"N": "100"}})
    is_over = threading.Event()

    def move(own: int) -> None:
        client, moved = Live(server.url).client, 0
        while not is_over.is_set():
            moved += 1
            client.transact_write_items(
                TransactItems=[
                    {
                        "Update": {
                            "TableName": name, "Key": {"id": {"S": str(own)}},
                            "UpdateExpression": "ADD #s :n", "ExpressionAttributeNames": {"#s": "sum"},
                            "ExpressionAttributeValues": {":n": {"N": str(sign * (moved % 7))}},
                        }
                    }
                    for name, sign in (("bank-a", -1), ("bank-b", 1))
                ]
            )  # fmt: skip

    writers = [threading.Thread(target=move, args=(number,)) for number in range(8)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(3):
            control("POST", "/snapshots", name="first")
            exported = requests.get(server.url + URL, timeout=PATIENCE_S).content
            rows = rows_of(exported)
            accounts = [json.loads(line)["row"] for lines in rows.values() for line in lines.splitlines()]
            sums = {(account["id"]["S"], int(account["sum"]["N"])) for account in accounts}
            assert len(accounts) == 16
            assert sum(int(account["sum"]["N"]) for account in accounts) == 1600, sums
            # The sum of each pair holds too: no transaction is half done.
            for own in range(8):
                assert sum(int(each["sum"]["N"]) for each in accounts if each["id"]["S"] == str(own)) == 200
    finally:
        is_over.set()
        for writer in writers:
            writer.join()
    other_url = other_database(request, database_url)
    other = serve(other_url)
    assert requests.put(other.url + URL, data=exported, timeout=PATIENCE_S).status_code == 200
    for each in (server, other):
        Control(each.url)("POST", "/snapshots/first/load")
    assert rows_of(requests.get(other.url + URL, timeout=PATIENCE_S).content) == rows
    for name in ("bank-a", "bank-b"):
        ends = [f"tablegate:{url}#{name}" for url in (database_url, other_url)]
        verified = CliRunner().invoke(main, ["verify", *ends])
        assert verified.exit_code == 0, verified.output


@pytest.mark.extended
def test_a_server_starts_from_a_snapshot_file(tmp_path: Path) -> None:
    path, database = tmp_path / "first.tgz", f"sqlite:///{tmp_path / 'kept.sqlite'}"
    with Server() as server:
        fill(server.url)
        before = state(server.url)
        server.control.save("first")
        server.control.export("first", path)
    with Server(start_from=path) as server:
        assert state(server.url) == before
        assert server.control.snapshots() == {}
        server.control.reset()
        server.control.import_snapshot("again", path)
        server.control.load("again")
        assert state(server.url) == before
    for _ in range(2):  # the second start is of a database that was begun so
        with Server(start_from=path, database=database) as server:
            assert state(server.url) == before
            assert server.control.snapshots() == {}
    other = f"sqlite:///{tmp_path / 'other.sqlite'}"
    with Server(database=other) as server:
        server.control.import_snapshot("kept", path)
    with pytest.raises(ServerFailed, match="the database is not empty"):
        Server(start_from=path, database=other).start()
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(ServerFailed, match=r"from .*first\.tgz: the snapshot"):
        Server(start_from=path).start()


def changed(exported: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    """Return a copy of the file with a changed manifest."""
    made = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(exported)) as archive,
        tarfile.open(fileobj=made, mode="w:gz") as out,
    ):
        for member in archive.getmembers():
            content = archive.extractfile(member).read()  # type: ignore[union-attr]
            if member.name == "snapshot.json":
                manifest = json.loads(content)
                change(manifest)
                content = json.dumps(manifest).encode()
                member.size = len(content)
            out.addfile(member, io.BytesIO(content))
    return made.getvalue()


def test_a_file_that_is_no_snapshot_is_refused_and_changes_nothing(serve: Serve, sqlite_url: str) -> None:
    server = serve(sqlite_url)
    control, live = Control(server.url), Live(server.url)
    make(live, "people")
    control("POST", "/snapshots", name="first")
    exported = requests.get(server.url + URL, timeout=PATIENCE_S).content

    def refused(content: bytes, says: str) -> None:
        answer = requests.put(
            f"{server.url}/_tablegate/snapshots/second/file", data=content, timeout=PATIENCE_S
        )
        assert (answer.status_code, answer.json()["error"]) == (400, "BadRequest"), answer.text
        assert says in answer.json()["message"]

    flipped = exported[:100] + bytes([exported[100] ^ 1]) + exported[101:]
    for content in (b"", b"nothing", exported[: len(exported) // 2], exported[:-20], exported[10:], flipped):
        refused(content, "snapshot")
    refused(changed(exported, lambda it: it.update(version=2)), "this release reads up to version 1")
    refused(changed(exported, lambda it: it.update(tablegate="rows")), "not a snapshot")
    refused(changed(exported, lambda it: it.update(namespaces=[])), "not one of its namespaces")
    for name in ("", "snapshot/x", "retained/x"):
        refused(
            changed(exported, lambda it, name=name: it.update(namespaces=[name])), "a namespace is reserved"
        )
    refused(changed(exported, lambda it: it["tables"][0].update(rows=4)), "checksum")
    refused(changed(exported, lambda it: it["tables"][0].update(sha256="")), "checksum")
    refused(changed(exported, lambda it: it["tables"][0].update(file="x")), "x is missing")
    refused(changed(exported, lambda it: it["tables"][0]["definition"].update(key_schema=[])), "the snapshot")
    refused(changed(exported, lambda it: it["tables"][0]["definition"].pop("rules")), "the snapshot")
    refused(changed(exported, lambda it: it.pop("tables")), "the snapshot")
    control("POST", "/snapshots/second/load", status=404)
    assert [*control("GET", "/snapshots")["snapshots"]] == ["first"]
    control("GET", "/snapshots/second/file", status=404)
    answer = requests.put(f"{server.url}/_tablegate/snapshots/..x/file", data=exported, timeout=PATIENCE_S)
    assert answer.status_code == 400
    assert live.client.scan(TableName="people")["Count"] == 3
