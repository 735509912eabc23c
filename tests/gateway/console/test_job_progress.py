"""The page of jobs shows the progress of jobs, and of background work to a visitor that sees everything."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tablegate.gateway.console import server_pages
from tablegate.gateway.console.server_pages import JobPages
from tablegate.gateway.control.administration import Administration
from tablegate.gateway.features.jobs.job_commands import AdvanceJob, Job, StartJob
from tests.conftest import Serve
from tests.gateway.console.test_console import Console
from tests.support.running import OWN_CREDENTIALS
from tests.tenants.conftest import CREDENTIALS, SETTINGS, secret_of


def text_of(page: str) -> list[str]:
    """Return the texts of the cells on a page."""
    return [
        re.sub(r"<[^>]*>", " ", cell).strip()
        for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", page, re.DOTALL)
    ]


def test_jobs_have_rows_and_a_rate(serve: Serve, database_url: str) -> None:
    server = serve(database_url)
    gateway = server.app.extensions["tablegate"].gateway
    [job] = gateway.engine.run([StartJob("kind", "shared", "songs", {}, "IN_PROGRESS", 9)])
    gateway.engine.run([AdvanceJob(job, {"processed": 5_000})])
    cells = text_of(Console(server.url).get("/jobs"))
    assert 1 <= int(cells[cells.index("5,000") + 1].replace(",", "")) <= 5_000


def test_a_job_that_knows_its_total_has_an_expected_end(serve: Serve, database_url: str) -> None:
    server = serve(database_url)
    gateway = server.app.extensions["tablegate"].gateway
    gateway.engine.run([StartJob("unknown", "shared", "songs", {}, "IN_PROGRESS", 9)])
    now_ms = gateway.now_ms()
    shown = Console(server.url)
    assert "not known yet" in text_of(shown.get("/jobs"))
    for progress, expected in (
        ({"bytes": 0, "total": 100}, None),
        ({"bytes": 25, "processed": 7, "total": 100}, 300),
        ({"items": 50, "total": 100}, 100),
        ({"items": 120, "total": 100}, 0),
    ):
        job = Job(1, "kind", "shared", "songs", {}, progress, "", now_ms - 100_000)
        left_s = JobPages(gateway, None)._progress(job).left_s
        assert left_s == expected or (expected and left_s and abs(left_s - expected) <= expected // 10)


def test_background_work_has_progress_a_rate_and_an_expected_end(
    serve: Serve, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(database_url)
    now_s, piece = (
        [100.0],
        {"work": "index backfill", "name": "songs/by-color", "rows_done": 1000, "rows_left": 9000},
    )
    monkeypatch.setattr(server_pages, "monotonic", lambda: now_s[0])
    monkeypatch.setattr(Administration, "unfinished_work", lambda self: [dict(piece)])
    console = Console(server.url)
    page = console.get("/jobs")
    assert "1,000 of 10,000 rows" in page and "not known yet" in page
    now_s[0] += 10
    piece.update(rows_done=3000, rows_left=7000)
    page = console.get("/jobs")
    assert "3,000 of 10,000 rows" in page and "in 35 s" in page
    assert "200" in text_of(page)


def test_a_key_of_one_tenant_sees_no_work_of_others(
    serve: Serve, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(database_url, **SETTINGS, **OWN_CREDENTIALS, admin_token="the token")
    server.app.extensions["tablegate"].gateway.credentials.replace(CREDENTIALS)
    piece: dict[str, Any] = {"work": "purge", "name": "precious", "rows_done": 1, "rows_left": 2}
    monkeypatch.setattr(Administration, "unfinished_work", lambda self: [piece])
    console = Console(server.url)
    console.sign_in("thief", secret_of("thief"))
    assert "precious" not in console.get("/jobs")
    console.sign_in("administrator", "the token")
    assert "precious" in console.get("/jobs")
