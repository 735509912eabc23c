"""The Go SDK against a live server, where the machine has Go: the cases of go/main.go."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.adapters.azuretable.client import ACCOUNT, DEV_KEY
from tests.support.node import cache_folder, filling_cache
from tests.support.running import Running

pytestmark = pytest.mark.clients

SOURCES = Path(__file__).parent / "go"
GO = shutil.which("go")


@pytest.fixture(scope="session")
def program() -> Path:
    """The cases as a program, built once for each version of them."""
    with filling_cache():
        return built_program()


def built_program() -> Path:
    assert GO is not None
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(SOURCES.iterdir()))).hexdigest()[
        :16
    ]
    folder = cache_folder() / "go" / digest
    built = folder / "cases"
    if not built.exists():
        shutil.copytree(SOURCES, folder, dirs_exist_ok=True)
        for command in (["mod", "tidy"], ["build", "-o", str(built), "."]):
            subprocess.run([GO, *command], cwd=folder, check=True, timeout=600)
    return built


@pytest.mark.skipif(GO is None, reason="there is no Go on this machine")
def test_go_cases(program: Path, server: Running) -> None:
    command = [str(program), f"{server.url}/{ACCOUNT}", ACCOUNT, DEV_KEY]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    results = [json.loads(line) for line in ran.stdout.splitlines()]
    failed = {result["name"]: result["error"] for result in results if not result["ok"]}
    assert ran.returncode == 0, ran.stderr
    assert failed == {}
    assert len(results) >= 13
