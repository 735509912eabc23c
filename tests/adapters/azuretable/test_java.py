"""The Java SDK against a live server, where the machine has a JDK and Maven: the cases of java/Cases.java."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.adapters.azuretable.client import ACCOUNT, DEV_KEY
from tests.support.node import cache_folder, filling_cache
from tests.support.running import Running
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.clients

SOURCES = Path(__file__).parent / "java"
IS_HERE = all(shutil.which(program) for program in ("java", "javac", "mvn"))


@pytest.fixture(scope="session")
def class_path() -> str:
    """Return the class path of the compiled cases and the SDK. They are built once for each version."""
    with filling_cache():
        return compiled()


def compiled() -> str:
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(SOURCES.iterdir()))).hexdigest()[
        :16
    ]
    folder = cache_folder() / "java" / digest
    class_path = f"{folder}/lib/*:{folder}"
    if not (folder / "Cases.class").exists():
        shutil.copytree(SOURCES, folder, dirs_exist_ok=True)
        maven = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={folder}/lib"]
        subprocess.run(maven, cwd=folder, check=True, timeout=600)
        subprocess.run(["javac", "-cp", class_path, "Cases.java"], cwd=folder, check=True, timeout=PATIENCE_S)
    return class_path


@pytest.mark.skipif(not IS_HERE, reason="there is no JDK with Maven on this machine")
def test_java_cases(class_path: str, server: Running) -> None:
    connection = f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={DEV_KEY};TableEndpoint={server.url}/{ACCOUNT};"
    command = ["java", "-Dfile.encoding=UTF-8", "-cp", class_path, "Cases", connection]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    results = ran.stdout.splitlines()
    assert ran.returncode == 0, ran.stderr
    assert [result for result in results if not result.startswith("ok ")] == []
    assert len(results) >= 12
