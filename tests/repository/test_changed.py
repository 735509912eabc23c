"""`make test-changed` chooses the tests nearest to a change (tests/support/changed.py)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support import changed
from tests.support.changed import changed_files, distances, importers, mirrored_folder, nearest
from tests.support.tables import each_row


@each_row(
    "path, folder",
    [
        ("tablegate/gateway/store/sql/prefilters.py", "tests/gateway/store/sql"),
        ("tablegate/gateway/console/templates/console/rows.html", "tests/gateway/console"),
        ("tests/gateway/console/test_pages.py", "tests/gateway/console"),
        ("tablegate/__main__.py", "tests/repository"),
        ("docs/architecture.md", "tests/repository"),
        ("Makefile", "tests/repository"),
    ],
)
def test_a_file_is_tested_in_the_folder_of_its_name(path: str, folder: str) -> None:
    assert mirrored_folder(path) == folder


def test_importers_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = {
        "tablegate/low.py": "",
        "tablegate/folder/__init__.py": "from tablegate import low",
        "tests/conftest.py": "def fixture():\n    import tablegate.low",
        "tests/test_all.py": "from tablegate.folder import name",
    }
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(changed, "ROOT", tmp_path)
    assert importers(["tests/test_all.py"]) == {
        "tablegate/low.py": {"tablegate/folder/__init__.py", "tests/conftest.py"},
        "tablegate/folder/__init__.py": {"tests/test_all.py"},
        "tests/conftest.py": {"tests/test_all.py"},
    }


TESTS = [f"tests/gateway/store/{name}.py" for name in ("sql/test_a", "sql/test_b", "test_c", "test_d")]
A, B, C, D = TESTS


def test_distances_count_imports_between_a_test_and_a_change() -> None:
    graph = {"tablegate/gateway/store/sql/a.py": {A, "tablegate/between.py"}, "tablegate/between.py": {A, C}}
    found = distances(["tablegate/gateway/store/sql/a.py"], TESTS, graph)
    assert found == {A: 1, B: 1, C: 2}  # B is in the folder of the same name
    assert distances([A], TESTS, graph) == {A: 0, B: 1}
    assert distances(["docs/index.md"], TESTS, graph) == {}


def test_changed_tests_run_and_the_nearest_others_within_the_bound() -> None:
    by_distance = {"changed": 0, "far": 5, "long": 1, "near": 1, "nearer": 1}
    seconds = {"changed": 90.0, "far": 1.0, "long": 50.0, "near": 5.0, "nearer": 4.0}
    assert [*nearest(by_distance, seconds, 10.0)] == ["changed"]
    assert [*nearest(by_distance, seconds, 100.0)] == ["changed", "nearer", "near"]
    assert [*nearest(by_distance, seconds, 1000.0)] == ["changed", "nearer", "near", "long", "far"]


def test_committed_uncommitted_and_new_files_are_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*words: str) -> None:
        author = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *author, *words], cwd=tmp_path, check=True, capture_output=True)

    monkeypatch.setattr(changed, "ROOT", tmp_path)
    git("init", "--initial-branch", "main")
    for name in ("same", "committed", "uncommitted"):
        (tmp_path / name).write_text("1")
    git("add", ".")
    git("commit", "--message", "first")
    git("checkout", "-b", "branch")
    (tmp_path / "committed").write_text("2")
    git("commit", "--all", "--message", "second")
    (tmp_path / "uncommitted").write_text("2")
    (tmp_path / "new").write_text("1")
    assert changed_files("main") == ["committed", "new", "uncommitted"]
    with pytest.raises(subprocess.CalledProcessError):
        changed_files("no-such-branch")
