"""The workflows of .github: what they run exists, and they test what the packages promise.

`make lint-workflows` checks their syntax with actionlint.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any

import yaml

from tests.support.sources import ROOT

WORKFLOWS: dict[str, dict[str, Any]] = {
    path.stem: yaml.safe_load(path.read_text()) for path in sorted((ROOT / ".github/workflows").glob("*.yml"))
}


def jobs() -> list[dict[str, Any]]:
    return [job for workflow in WORKFLOWS.values() for job in workflow["jobs"].values()]


def test_what_they_run_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = [step["run"] for job in jobs() for step in job["steps"] if "run" in step]
    called = set(re.findall(r"\bmake ([a-z-]+)", "\n".join(commands)))
    called |= {*WORKFLOWS["nightly"]["jobs"]["long-forms"]["strategy"]["matrix"]["target"]}
    assert len(called) >= 5
    assert called <= targets
    assert (ROOT / ".ci/run").is_file()
    named = set(re.findall(r"\btests/[\w/]+", "\n".join(commands)))
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_supported_python_and_postgresql_is_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    versions = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    everything, postgresql = (WORKFLOWS["test"]["jobs"][name] for name in ("everything", "postgresql"))
    assert everything["strategy"]["matrix"]["python"] == versions
    [oldest] = re.findall(r"PostgreSQL (\d+) or later", (ROOT / "docs/operate/install.md").read_text())
    assert postgresql["strategy"]["matrix"]["postgresql"][0] == oldest


def test_every_job_has_a_bound_and_few_rights() -> None:
    assert [job for job in jobs() if "timeout-minutes" not in job] == []
    for name, workflow in WORKFLOWS.items():
        assert workflow["permissions"].get("contents") == "read", name


def test_jobs_of_all_tests_have_the_commits_of_earlier_releases() -> None:
    """tests/durability/test_released_databases.py runs them, and skips those that it does not find."""
    found = 0
    for job in jobs():
        if any(step.get("run", "") in (".ci/run", "make ${{ matrix.target }}") for step in job["steps"]):
            [checkout] = [
                step for step in job["steps"] if step.get("uses", "").startswith("actions/checkout@")
            ]
            assert checkout["with"]["fetch-depth"] == 0
            found += 1
    assert found == 3
