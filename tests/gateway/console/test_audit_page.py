"""The audit log in the console: filters, bounds, and who may read it."""

from __future__ import annotations

import json
import re
import time
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tablegate.gateway.configuration.loading import load
from tablegate.gateway.console import server_pages
from tablegate.gateway.observability import audit
from tablegate.gateway.observability.audit import AuditScope, AuditTrail, KeyForm
from tablegate.gateway.observability.audit_sinks import DatabaseSink, newest_lines
from tablegate.gateway.store import accounts
from tablegate.gateway.store.store import Store
from tablegate.gateway.wiring import connect, open_store
from tests.gateway.console.test_administration import Lines
from tests.gateway.console.test_console import Console
from tests.support.live_dynamodb import Live
from tests.support.running import ENTRIES, start


def line(second: int, event: str = "definition", who: str = "KEY", operation: str = "CreateTable") -> bytes:
    made = {
        "time": f"2026-01-02T03:04:{second:02}.000000Z", "event": event, "who": who, "from": "127.0.0.1",
        "dialect": "dynamodb", "operation": operation, "tables": [f"<b>table-{second % 2}"], "result": 200,
    }  # fmt: skip
    return json.dumps(made).encode()


LINES = [
    *(line(second) for second in range(10)),
    line(10, "refusal", "OTHER", "DeleteTable"),
    b"not an event",
    b"[1]",
]


def events(page: str) -> list[str]:
    """Return the seconds of the events on a page."""
    return [found[-2:] for found in re.findall(r'<th scope="row">2026-01-02 (03:04:\d\d)</th>', page)]


@pytest.fixture(params=["file", "database"])
def console(request: pytest.FixtureRequest, database_url: str, tmp_path: Path) -> Any:
    """A console, signed in as administrator, of a server with LINES in its audit log."""
    settings = load({"database": database_url}, {})
    opened = open_store(settings, connect(settings))
    audited = "database"
    if request.param == "file":
        audited = str(tmp_path / "audit.jsonl")
        Path(audited).write_bytes(b"\n".join(LINES) + b"\n")
    else:
        _write(opened.store)
    opened.close()
    running = start(database_url, audit=audited, admin_token="the token")
    found = Console(running.url)
    found.sign_in("administrator", "the token")
    yield found
    audit.stop()
    running.stop()


def _write(store: Store) -> None:
    """Write LINES as they are written shortly after the events."""
    with store.write() as session:
        for number, each in enumerate(LINES):
            at_ms = 1_767_323_040_500 + 1000 * min(number, 10)
            accounts.add_audit_line(session, at_ms, f"process-{number:012}", each.decode())


def test_lines_of_one_batch_are_read_in_their_order(database_url: str) -> None:
    settings = load({"database": database_url, "audit": "database"}, {})
    opened = open_store(settings, connect(settings))
    sink = DatabaseSink(opened.store, 1)
    sink.write([b"%d" % number for number in range(1200)])
    now_ms = time.time_ns() // 1_000_000
    found = [*newest_lines(settings, opened.store, now_ms - 60_000, now_ms)]
    opened.close()
    assert found == [str(number) for number in reversed(range(1200))]


def test_events_are_found_newest_first(console: Console) -> None:
    assert events(console.get("/audit"))[:3] == ["10", "09", "08"]
    assert events(console.get("/audit", who="OTHER")) == ["10"]
    assert events(console.get("/audit", event="refusal")) == ["10"]
    assert events(console.get("/audit", operation="delete")) == ["10"]
    page = console.get("/audit", table="<b>table-1")
    assert events(page) == ["09", "07", "05", "03", "01"]
    assert "&lt;b&gt;table-1" in page and "<b>" not in page
    page = console.get("/audit", since="2026-01-02T03:04:02", until="2026-01-02T03:04:04")
    assert events(page) == ["04", "03", "02"]
    assert "No event was found" in console.get("/audit", who="nobody")


def test_a_wrong_time_is_explained_beside_its_field(console: Console) -> None:
    page = console.get("/audit", 400, since="yesterday", who="KEY")
    assert 'id="since-error">Write the time as 2026-01-31T23:59:59, in UTC.' in page
    assert 'value="yesterday"' in page and 'value="KEY"' in page


def test_pages_and_searches_are_bounded(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_pages, "EVENTS", 4)
    page = console.get("/audit", event="definition")
    assert events(page) == ["09", "08", "07", "06"]
    assert "until=2026-01-02T03:04:06" in page.replace("%3A", ":")
    monkeypatch.setattr(server_pages, "LINES", 5)
    page = console.get("/audit", who="nobody")
    assert "Lines searched: 5, which is the bound." in page


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_older_events_of_one_second_are_on_further_pages(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time in a link has whole seconds, and a second can have more events than a page."""
    path = tmp_path / "audit.jsonl"
    callers = [f"caller-{number:02}" for number in range(16)]
    lines = [line(min(number // 3, 1), who=who) for number, who in enumerate(callers)]
    path.write_bytes(b"\n".join(lines) + b"\n")
    running = start(database_url, audit=str(path), admin_token="the token")
    try:
        console = Console(running.url)
        console.sign_in("administrator", "the token")
        monkeypatch.setattr(server_pages, "EVENTS", 4)
        found: list[str] = []
        link = "/audit?event=definition&until=2026-01-02T03:04:02"
        while link and len(found) < 100:
            page = console.get(link)
            found += re.findall(r'data-label="Caller">([^<]+)<', page)
            link = "".join(map(unescape, re.findall(r'rel="next" href="[^"]*(/audit[^"]*)"', page)))
        assert found == callers[::-1]
    finally:
        audit.stop()
        running.stop()


def test_only_the_administrator_reads_the_audit_log(database_url: str) -> None:
    running = start(database_url, admin_token="the token")
    try:
        console = Console(running.url)
        console.get("/audit", 403)
        console.sign_in("administrator", "the token")
        assert "The audit log cannot be read here" in console.get("/audit")
    finally:
        running.stop()


@pytest.mark.parametrize("records", [False, True])
def test_changes_of_rows_are_recorded_with_audit_writes(
    database_url: str, tmp_path: Path, records: bool
) -> None:
    settings: dict[str, Any] = {"audit": str(tmp_path / "audit.jsonl"), "audit_writes": records}
    running = start(database_url, ENTRIES[1], console_writes=True, admin_token="the token", **settings)
    sink = Lines()
    try:
        console = Console(running.url)
        console.sign_in("administrator", "the token")
        Live(running.url).create("p:S", name="songs")
        audit.start(AuditTrail(sink, KeyForm(True, ""), AuditScope(writes=records, requests=False)))
        console.post("/row/put", namespace="shared", name="songs", row='{"p": {"S": "a"}}')
        page = console.get("/audit")
    finally:
        audit.stop()
        running.stop()
    assert [each["event"] for each in sink.found] == ["write"] * records
    assert ("Changes of rows are not recorded" in page) is not records
