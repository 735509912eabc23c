"""The findings of `tablegate doctor` in the console: what is shown, to whom, and the audit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tablegate.gateway import wiring
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.doctor.examination import BoundedExamination, examine
from tablegate.gateway.doctor.findings import DOCUMENTATION
from tablegate.gateway.observability import audit
from tablegate.gateway.observability.audit import AuditScope, AuditTrail, KeyForm
from tests.gateway.console.test_administration import Lines
from tests.gateway.console.test_console import Console
from tests.support.running import ENTRIES, start

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
Signed = Callable[..., Console]


@pytest.fixture
def signed(database_url: str) -> Iterator[Signed]:
    """Start a server with settings, and return its console, signed in as administrator."""
    servers = []

    def open_console(entry: str = ENTRIES[0], **settings: Any) -> Console:
        if database_url.startswith("sqlite"):
            Path(database_url.removeprefix("sqlite:///")).chmod(0o600)  # as a server creates it
        servers.append(start(database_url, entry, admin_token="a token of the administrator", **settings))
        console = Console(servers[-1].url)
        console.sign_in("administrator", "a token of the administrator")
        return console

    yield open_console
    for running in servers:
        running.stop()


@on_sqlite
@pytest.mark.parametrize("entry", ENTRIES)
def test_without_a_problem_there_is_nothing_to_report(signed: Signed, entry: str) -> None:
    page = signed(entry).get("/health")
    assert "Nothing to report" in page
    assert levels(page)["settings"] == levels(page)["database reachable"] == "ok"
    assert "the newest of this release" in page


def levels(page: str) -> dict[str, str]:
    """Return check -> level of the findings on a page."""
    found = re.findall(r'<tr><th scope="row">(.*?)</th>.*?<span class="badge \w*">(\w+)</span>', page)
    return dict(found)


@on_sqlite
def test_a_finding_has_a_level_advice_and_a_page(signed: Signed) -> None:
    page = signed(synchronous="normal").get("/health")
    assert "Nothing to report" not in page
    problems, heading, others = page.replace("<wbr>", "").partition("<h2>Other findings</h2>")
    assert heading and '<th scope="row">schema</th>' in others
    assert (
        '<th scope="row">durability</th>' in problems
        and '<span class="badge warn">warning</span>' in problems
    )
    assert "synchronous is normal: a power failure can lose the last writes" in problems
    assert "start the server with --synchronous full" in problems
    assert f'href="{DOCUMENTATION}explain/durability.md"' in problems
    assert '<th scope="row">schema</th>' not in problems


def test_a_clash_of_settings_is_found_on_each_database(signed: Signed) -> None:
    problems = (
        signed(stop_seconds=100_000)
        .get("/health")
        .replace("<wbr>", "")
        .partition("<h2>Other findings</h2>")[0]
    )
    assert "stop_seconds: it exceeds the maximum time of a request" in problems
    assert f"{DOCUMENTATION}operate/runbook.md#the-server-does-not-start" in problems


@on_sqlite
def test_a_database_in_memory_says_what_was_not_checked(
    signed: Signed, monkeypatch: pytest.MonkeyPatch
) -> None:
    findings = list(examine(load({"memory": True}, {})))
    monkeypatch.setattr(BoundedExamination, "findings", lambda *_: findings)
    page = signed().get("/health")
    found = levels(page)
    assert found["settings"] == found["open files"] == "ok"
    assert found["schema"] == "skipped"


def test_the_checks_open_no_database(signed: Signed, monkeypatch: pytest.MonkeyPatch) -> None:
    console, opened = signed(), []
    monkeypatch.setattr(wiring, "connect", lambda *given: opened.append(given))
    page = console.get("/health")
    assert "database reachable" in page and "does not answer" not in page
    assert opened == []


@on_sqlite
def test_only_the_administrator_has_the_health_page_in_the_menu(signed: Signed) -> None:
    console = signed()
    assert "/console/health" in console.get("/")
    console.post("/sign-out")
    assert "/console/health" not in console.get("/")
    assert "sign in as administrator" in console.get("/health", 403)


@on_sqlite
def test_views_and_refusals_are_in_the_audit_log(signed: Signed) -> None:
    console, sink = signed(ENTRIES[1]), Lines()
    try:
        audit.start(AuditTrail(sink, KeyForm(True, ""), AuditScope(writes=False, requests=True)))
        console.get("/health")
        console.post("/sign-out")
        console.get("/health", 403)
    finally:
        audit.stop()
    operation = "GET /_tablegate/console/health"
    found = [
        (each["event"], each["who"], each["result"]) for each in sink.found if each["operation"] == operation
    ]
    assert found == [("request", "administrator", 200), ("refusal", "everybody on this machine", 403)]
