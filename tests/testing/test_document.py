"""The code blocks of docs/test/, run unchanged, if their toolchain is on the machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tablegate.testing import Server
from tests.support.document_blocks import blocks_of, chapter_of
from tests.support.node import node_with
from tests.support.running import free_port

pytestmark = pytest.mark.clients

ROOT = Path(__file__).parents[2]
PAGES = ("docs/test/pytest.md", "docs/test/control.md", "docs/test/other-languages.md", "docs/test/moving.md")
DOCUMENT = "".join((ROOT / page).read_text() for page in PAGES)


def blocks(section: str) -> list[tuple[str, str]]:
    """(language, text) of the blocks of a section."""
    found = re.search(rf"^## {re.escape(section)}\n(.*?)(?=^##? |\Z)", DOCUMENT, re.MULTILINE | re.DOTALL)
    assert found, section
    return re.findall(r"^```(\w+)\n(.*?)^```$", found[1], re.MULTILINE | re.DOTALL)


def block(section: str, language: str) -> str:
    [text] = [text for known, text in blocks(section) if known == language]
    return text


@pytest.fixture
def on_path(tmp_path: Path) -> dict[str, str]:
    """An environment in which `tablegate` is a command, and nothing is set that would lead to another server."""
    folder = tmp_path / "bin"
    folder.mkdir()
    command = folder / "tablegate"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tablegate "$@"\n')
    command.chmod(0o755)
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AWS_", "TABLEGATE_", "PYTEST_"))
    }
    return {**kept, "PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


def run(*command: str, cwd: Path, env: dict[str, str]) -> str:
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_pytest_example_passes(tmp_path: Path, on_path: dict[str, str]) -> None:
    (tmp_path / "test_orders.py").write_text(block("pytest", "python"))
    said = run(
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "test_orders.py",
        cwd=tmp_path,
        env=on_path,
    )
    assert "4 passed" in said


def test_the_example_of_a_server_for_one_module_passes(tmp_path: Path, on_path: dict[str, str]) -> None:
    text = block("One server state for a module or the whole run", "python")
    (tmp_path / "test_orders.py").write_text(text)
    said = run(
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_orders.py", cwd=tmp_path, env=on_path
    )  # fmt: skip
    assert "2 passed" in said


def test_the_ini_file_has_the_plugins_options() -> None:
    names = re.findall(r"^(tablegate_\w+) =", block("Options of a test", "ini"), re.MULTILINE)
    plugin = (ROOT / "tablegate/testing/pytest_plugin.py").read_text()
    assert sorted(names) == sorted(re.findall(r'addini\(\s*"(\w+)"', plugin))


def test_the_unittest_example_passes(tmp_path: Path, on_path: dict[str, str]) -> None:
    (tmp_path / "test_orders.py").write_text(block("unittest", "python"))
    assert "OK" in run(sys.executable, "-m", "unittest", "test_orders", cwd=tmp_path, env=on_path)
    run(sys.executable, "-c", "import test_orders; test_orders.test_a_function()", cwd=tmp_path, env=on_path)


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl")
def test_the_curl_example_passes(tmp_path: Path, on_path: dict[str, str]) -> None:
    script = block("Use it from a shell", "sh").replace("curl -s", "curl -sS --fail-with-body")
    with Server() as server:
        said = run("sh", "-e", "-c", script, cwd=tmp_path, env={**on_path, "URL": server.url})
        assert '"now":"2040-01-02T00:00:00.000Z"' in said
    with Server(start_from=tmp_path / "filled.tgz") as server:
        assert server.control.snapshots() == {}


_JAVASCRIPT = ("vitest@5.1.1", "jest@30.5.2", "@aws-sdk/client-dynamodb@3.1164.0")


@pytest.fixture
def javascript(tmp_path: Path, on_path: dict[str, str]) -> tuple[str, dict[str, str]]:
    """Node.js and its environment. The blocks of the page are in `tmp_path` as the files that they name."""
    try:
        node, found, packages = node_with(*_JAVASCRIPT)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no npm registry: {error}")
    for each in blocks_of(chapter_of(DOCUMENT, "Vitest and Jest")):
        assert each.file is not None
        (tmp_path / each.file).write_text(each.text)
    (tmp_path / "package.json").write_text('{"private": true}')
    (tmp_path / "node_modules").symlink_to(packages / "node_modules")
    path = on_path["PATH"].partition(":")[0]
    return str(node), {**on_path, "PATH": f"{path}:{found['PATH']}", "NO_COLOR": "1"}


def test_the_vitest_example_passes(tmp_path: Path, javascript: tuple[str, dict[str, str]]) -> None:
    node, environment = javascript
    said = run(
        node, "node_modules/vitest/vitest.mjs", "run", "--no-file-parallelism", cwd=tmp_path, env=environment
    )  # fmt: skip
    assert re.search(r"Tests +2 passed", said)
    assert "close timed out" not in said, "teardown was not called"


def test_the_jest_example_passes(tmp_path: Path, javascript: tuple[str, dict[str, str]]) -> None:
    node, environment = javascript
    said = run(
        node, "node_modules/jest/bin/jest.js", "--runInBand", "--detectOpenHandles", cwd=tmp_path, env=environment
    )  # fmt: skip
    assert "2 passed" in said
    assert "open handle" not in said, "teardown was not called"


def test_the_set_up_for_javascript_fails_with_the_server(
    tmp_path: Path, javascript: tuple[str, dict[str, str]]
) -> None:
    node, environment = javascript
    done = subprocess.run(
        [node, "node_modules/vitest/vitest.mjs", "run"],
        cwd=tmp_path,
        env={**environment, "TABLEGATE_PORT": "70000"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode != 0
    assert "tablegate did not start" in done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("go") is None, reason="no go")
def test_go(tmp_path: Path, on_path: dict[str, str]) -> None:
    (tmp_path / "orders_test.go").write_text(block("Go", "go"))
    (tmp_path / "go.mod").write_text("module orders\n\ngo 1.21\n")
    assert "ok" in run(
        "go", "test", "./...", cwd=tmp_path, env={**on_path, "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
    )


_USE_IN_JAVA = """
public final class Use {
    public static void main(String[] words) throws Exception {
        try (Tablegate tablegate = new Tablegate()) {
            tablegate.reset();
            System.out.println("reset at " + tablegate.url);
        }
    }
}
"""


@pytest.mark.skipif(shutil.which("javac") is None, reason="no javac")
def test_the_java_example_runs(tmp_path: Path, on_path: dict[str, str]) -> None:
    (tmp_path / "Tablegate.java").write_text(block("Java", "java"))
    (tmp_path / "Use.java").write_text(_USE_IN_JAVA)
    run("javac", "Tablegate.java", "Use.java", cwd=tmp_path, env=on_path)
    assert re.search(
        r"^reset at http://127\.0\.0\.1:\d+$", run("java", "Use", cwd=tmp_path, env=on_path), re.MULTILINE
    )


def test_github_actions(tmp_path: Path, on_path: dict[str, str]) -> None:
    lines = re.findall(r"^      (tablegate .+)$", block("GitHub Actions", "yaml"), re.MULTILINE)
    assert len(lines) == 2
    port = str(free_port())
    script = "\n".join(lines).replace("8000", port)
    said = run("sh", "-e", "-c", f"{script}\nkill $!", cwd=tmp_path, env=on_path)
    assert re.search(r"^ready$", said, re.MULTILINE), said


@pytest.mark.parametrize(
    ("section", "language"), [("Java, with Testcontainers", "java"), (".NET Aspire", "csharp")]
)
def test_flags_of_containers_are_flags_of_serve(section: str, language: str) -> None:
    from click.testing import CliRunner

    from tablegate.gateway.__main__ import main

    known: Any = CliRunner().invoke(main, ["serve", "--help"]).output
    flags = re.findall(r"--[a-z-]+", block(section, language))
    assert flags
    assert [flag for flag in flags if flag not in known] == []


@pytest.mark.parametrize("language", ["csharp", "ts"])
def test_words_of_containers_in_place_of_azurite_are_those_of_the_command_line(language: str) -> None:
    words = re.findall(
        r'(?:WithCommand\(|withCommand\(\[)("azurite".*?)\]?\)', block("From Azurite", language)
    )
    assert re.findall(r'"([^"]+)"', words[0]) == [
        "azurite",
        "--tableHost",
        "0.0.0.0",
        "--inMemoryPersistence",
    ]
