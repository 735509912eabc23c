"""A capability can be deleted: the server starts, and the tests of all others pass (docs/contribute/add-a-capability.md).

Documents and generated pages name it afterwards, which their tests say.
"""

from __future__ import annotations

from pathlib import Path
from subprocess import CalledProcessError

import pytest

from tests.support.deletion import ROOT, copy_repository, delete, run
from tests.support.soak import minutes_long

OF_OTHERS = (
    "tests/repository/test_architecture.py",
    "tests/gateway/test_capabilities.py",
    "tests/gateway/store/test_migrations.py::test_migrations_lead_to_the_schema",
    "tests/testing/test_server.py::test_the_three_sdks_find_the_server",
    "tests/adapters/tablestore/features/streams",
)


def assert_others_pass(folder: Path, name: str, *tests: str) -> None:
    copy_repository(folder)
    delete(name, folder)
    try:
        run(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tier", "test", *tests)
    except CalledProcessError as failed:
        pytest.fail(failed.stdout[-4000:])


@pytest.mark.clients
def test_tunnels_can_be_deleted(tmp_path: Path) -> None:
    assert_others_pass(tmp_path, "tunnels", "-n", "0", *OF_OTHERS)


@minutes_long
@pytest.mark.soak
@pytest.mark.parametrize("name", ["search", "vectors", "tunnels", "sql", "global_tables"])
def test_each_can_be_deleted_and_all_tests_of_others_pass(tmp_path: Path, name: str) -> None:
    tests = ROOT / "tests"
    folders = {path.relative_to(tests).parts[0] for path in tests.rglob("test_*.py")} - {"repository"}
    others = [f"tests/{folder}" for folder in sorted(folders)]
    assert_others_pass(tmp_path, name, "-n", "2", "tests/repository/test_architecture.py", *others)
