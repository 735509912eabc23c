"""Export and import of rows in the console: formats, bounds, bad lines, and who may not."""

from __future__ import annotations

import csv
import io
import json
from html import unescape

import pytest

from tablegate.gateway.console import transfer_pages
from tests.conftest import Serve
from tests.gateway.console.test_console import Console
from tests.gateway.console.test_grants_of_visitors import server, visitor  # noqa: F401
from tests.gateway.security.test_permission_cases import allow
from tests.support.live_dynamodb import Live
from tests.support.running import Running

SONGS = {"namespace": "shared", "name": "songs"}
ARN = "arn:aws:dynamodb:*:*:table/songs"


@pytest.fixture
def console(serve: Serve, database_url: str) -> Console:
    """A console of a server with the table `songs`: two items."""
    running = serve(database_url, console_writes=True)
    live = Live(running.url)
    live.create("p:S", name="songs")
    live.client.put_item(TableName="songs", Item={"p": {"S": "a"}, "n": {"N": "1.50"}, "b": {"B": b"\xff"}})
    live.client.put_item(TableName="songs", Item={"p": {"S": "=b,\n"}, "l": {"L": [{"S": "x"}]}})
    return Console(running.url)


def test_rows_are_exported_in_each_format(console: Console) -> None:
    typed = [json.loads(line) for line in console.get("/export", **SONGS, format="typed").splitlines()]
    assert {"p": {"S": "a"}, "n": {"N": "1.5"}, "b": {"B": "/w=="}} in typed and len(typed) == 2
    plain = [json.loads(line) for line in console.get("/export", **SONGS, format="plain").splitlines()]
    assert {"p": "=b,\n", "l": ["x"]} in plain
    rows = list(csv.reader(io.StringIO(console.get("/export", **SONGS, format="csv"))))
    assert rows[0] == ["p", "b", "l", "n"]
    assert ["a", "/w==", "", "1.5"] in rows and ["=b,\n", "", '["x"]', ""] in rows
    reply = console.session.get(f"{console.url}/export", params={**SONGS, "format": "csv"}, timeout=60)
    assert reply.headers["Content-Disposition"] == 'attachment; filename="songs.csv"'
    console.get("/export", 400, **SONGS, format="xml")


def test_an_export_that_is_too_large_is_refused(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer_pages, "ROWS", 2)
    console.get("/export", **SONGS)
    monkeypatch.setattr(transfer_pages, "ROWS", 1)
    assert "tablegate copy songs FILE" in console.get("/export", 400, **SONGS)
    monkeypatch.setattr(transfer_pages, "ROWS", 2)
    monkeypatch.setattr(transfer_pages, "BYTES", 10)
    assert "tablegate copy songs FILE" in console.get("/export", 400, **SONGS)


def test_an_export_can_be_imported(console: Console) -> None:
    exported = console.get("/export", **SONGS)
    lines = exported + '\n{"p": {"S": "new"}, "x": {"N": "7"}}\n'
    assert "3 rows were imported." in console.post("/import", **SONGS, lines=lines)
    assert '{"p":{"S":"new"},"x":{"N":"7"}}' in console.get("/export", **SONGS)


def test_a_bad_line_is_named_and_nothing_is_written(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    for bad in ("{", "[]", '{"p": {"N": "1"}}', '{"x": {"S": "no key"}}'):
        page = unescape(console.post("/import", 400, **SONGS, lines=f'{{"p": {{"S": "new"}}}}\n{bad}'))
        assert "Line 2: " in page and f"{bad}</textarea>" in page
    assert "Give at least one row." in console.post("/import", 400, **SONGS, lines=" ")
    monkeypatch.setattr(transfer_pages, "LINES", 1)
    lines = '{"p": {"S": "new"}}\n' * 2
    assert "At most 1 rows can be imported at once." in console.post("/import", 400, **SONGS, lines=lines)
    assert "new" not in console.get("/export", **SONGS)


def test_a_key_needs_the_permissions_of_an_sdk(server: Running) -> None:  # noqa: F811
    console = visitor(server, allow("Query", on=ARN))
    page = console.get("/transfer", **SONGS)
    assert "not allowed to scan" in page and "Import rows" not in page
    console.get("/export", 403, **SONGS)
    console.post("/import", 403, **SONGS, lines='{"p": {"S": "a"}, "s": {"N": "1"}}')
    for path in ("/transfer", "/export"):
        forbidden = console.get(path, 403, namespace="shared", name="secrets")
        assert forbidden == console.get(path, 403, namespace="shared", name="absent").replace(
            "absent", "secrets"
        )
