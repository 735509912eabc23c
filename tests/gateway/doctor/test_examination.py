"""A run of the checks that is bounded in time, and the pages that findings name."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tablegate.gateway.configuration.loading import load
from tablegate.gateway.doctor import examination
from tablegate.gateway.doctor.examination import CHECKS, DEEP_CHECKS, PLAIN_CHECKS, BoundedExamination
from tablegate.gateway.doctor.findings import Check, CheckContext, CheckResult, Severity

DOCS = Path(__file__).parents[3] / "docs"


def test_callers_share_a_run_and_do_not_wait_longer_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    is_running, may_end, runs = threading.Event(), threading.Event(), []

    def quick(context: CheckContext) -> Iterator[CheckResult]:
        runs.append("quick")
        yield CheckResult(Severity.OK, "done")

    def slow(context: CheckContext) -> Iterator[CheckResult]:
        is_running.set()
        may_end.wait()
        yield CheckResult(Severity.OK, "done")

    checks = (Check("quick", quick, "", ""), Check("slow", slow, "", ""))
    monkeypatch.setattr(examination, "CHECKS", checks)
    bounded = BoundedExamination(load({"memory": True}, {}))
    try:
        assert "did not end within 0 s" in bounded.findings(0)[-1].text
        is_running.wait()
        assert [each.check for each in bounded.findings(0)] == ["database", "quick", "time"]
        assert runs == ["quick"]
    finally:
        may_end.set()
    assert [each.check for each in bounded.findings(60)] == ["database", "quick", "slow"]


def test_every_check_has_advice_and_a_page_of_docs() -> None:
    for check in (*CHECKS, *PLAIN_CHECKS, *DEEP_CHECKS):
        path, _, anchor = check.page.partition("#")
        headings = re.findall(r"^#+ (.+)$", (DOCS / path).read_text(), re.MULTILINE)
        assert check.advice.endswith("."), check.name
        assert not anchor or anchor in [each.lower().replace(" ", "-") for each in headings], check.page
