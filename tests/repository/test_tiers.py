"""Each case of a test is in one tier, each tier is run by `make test-all`, and each file by one process."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.tiers import (
    CLIENTS,
    EXTENDED,
    ROOT,
    TEST,
    TIERS,
    Progress,
    files_of_tests,
    shares,
    tier_of,
)

ADAPTER, ENGINE = "tests/adapters/test_alike.py::test_x", "tests/gateway/engine/test_races.py::test_x"


def case(nodeid: str, *marks: str, **params: Any) -> Any:
    return SimpleNamespace(
        nodeid=nodeid, get_closest_marker=marks.__contains__, callspec=SimpleNamespace(params=params)
    )


@pytest.mark.parametrize(
    ("item", "tier"),
    [
        (case(ADAPTER), TEST),
        (case(ADAPTER, database_url="sqlite"), TEST),
        (case(ADAPTER, database_url="postgresql"), EXTENDED),
        (case(ADAPTER, "clients", database_url="postgresql"), CLIENTS),
        (case(ENGINE, database_url="postgresql"), TEST),
        (case(ENGINE, "extended"), EXTENDED),
    ],
)
def test_the_tier_is_that_of_the_mark_or_of_the_database(item: Any, tier: str) -> None:
    assert tier_of(item) == tier


def test_two_marks_are_refused() -> None:
    with pytest.raises(pytest.UsageError, match="marked as clients and as extended"):
        tier_of(case(ADAPTER, "clients", "extended"))


def test_every_case_of_this_run_is_in_one_tier(request: pytest.FixtureRequest) -> None:
    """`tier_of` raises an error for a case whose marks name two tiers."""
    wanted = request.config.option.tier or TIERS
    assert {tier_of(item) for item in request.session.items} <= set(wanted)


def test_make_runs_each_tier_once() -> None:
    makefile = (ROOT / "Makefile").read_text()
    parts = re.search(r"^test-all: .*?for part in ([a-z -]+);", makefile, re.MULTILINE | re.DOTALL)
    assert parts
    recipes = [re.search(rf"^{part}: .*\n\t(.*)", makefile, re.MULTILINE) for part in parts[1].split()]
    tiers = [tier for recipe in recipes if recipe for tier in re.findall(r"--tier (\w+)", recipe[1])]
    assert sorted(tiers) == sorted(TIERS)


@pytest.mark.parametrize("number", [1, 2, 3, 7])
def test_each_file_is_of_one_process(number: int) -> None:
    files = files_of_tests()
    seconds = dict.fromkeys(files, 1.0)
    found = shares(files, {**seconds, files[0]: float(len(files)), "tests/test_removed.py": 5.0}, number)
    assert sorted(file for share in found for file in share) == files
    assert number == 1 or {files[0]} in found  # it takes longer than all others together


def test_files_without_recorded_seconds_are_divided_too() -> None:
    assert shares("abcd", {"a": 2.0}, 2) == [{"a", "c"}, {"b", "d"}]


def test_progress_counts_the_cases_of_all_processes() -> None:
    session: Any = SimpleNamespace(testscollected=0)
    progress = Progress(session)
    for ids in ("abc", "de"):
        progress.pytest_xdist_node_collection_finished(ids)
        session.testscollected = len(ids)  # as xdist does
    progress.pytest_runtest_logstart()
    assert session.testscollected == 5
