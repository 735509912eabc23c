"""The workflows of .github: what they run exists, and they test what the packages promise.

`make lint-workflows` checks their syntax with actionlint, and their security with zizmor.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import yaml

from tests.support.sources import ROOT

WORKFLOWS: dict[str, dict[str, Any]] = {
    path.stem: yaml.safe_load(path.read_text()) for path in sorted((ROOT / ".github/workflows").glob("*.yml"))
}


def jobs() -> list[dict[str, Any]]:
    return [job for workflow in WORKFLOWS.values() for job in workflow["jobs"].values()]


def test_commands_of_workflows_exist() -> None:
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
    """Rights to write belong to the jobs that need them, not to workflows."""
    assert [job for job in jobs() if "timeout-minutes" not in job] == []
    for name, workflow in WORKFLOWS.items():
        assert workflow["permissions"] == {"contents": "read"}, name


def test_actions_are_pinned_to_commits_and_keep_no_credentials() -> None:
    used = [
        line.strip().removeprefix("- ")
        for path in sorted((ROOT / ".github/workflows").glob("*.yml"))
        for line in path.read_text().splitlines()
        if "uses:" in line
    ]
    assert len(used) > 30
    pinned = re.compile(r"uses: [\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert [line for line in used if not pinned.fullmatch(line)] == []
    assert len({line.partition("uses: ")[2] for line in used}) == len(
        {line.partition("@")[0] for line in used}
    ), "an action has two versions"
    checkouts = [
        step
        for job in jobs()
        for step in job["steps"]
        if step.get("uses", "").startswith("actions/checkout@")
    ]
    assert [step for step in checkouts if step["with"]["persist-credentials"] is not False] == []


def test_a_release_has_one_version_everywhere(tmp_path: Path) -> None:
    [step] = [
        step
        for step in WORKFLOWS["release"]["jobs"]["packages"]["steps"]
        if "The tag" in step.get("name", "")
    ]

    def is_accepted() -> bool:
        environment = {**os.environ, "GITHUB_REF_NAME": "v7.8.9"}
        return subprocess.run(["bash", "-ec", step["run"]], cwd=tmp_path, env=environment).returncode == 0

    for name in ("tablegate/gateway/__init__.py", "CHANGELOG.md", "deploy/helm/tablegate/Chart.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for name, begin, version in (
        ("tablegate/gateway/__init__.py", "__version__ = ", '"7.8.9"'),
        ("CHANGELOG.md", "## ", "7.8.9 - 2030-01-31"),
        ("deploy/helm/tablegate/Chart.yaml", "version: ", "7.8.9"),
        ("deploy/helm/tablegate/Chart.yaml", "appVersion: ", "7.8.9"),
    ):
        assert not is_accepted()
        path = tmp_path / name
        path.write_text(re.sub(f"^{begin}.*", begin + version, path.read_text(), count=1, flags=re.MULTILINE))
    assert is_accepted()
