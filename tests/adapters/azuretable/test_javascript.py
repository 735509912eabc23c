"""The JavaScript SDK against a live server: the cases of javascript/cases.mjs, all of them, on each database."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

import pytest

from tablegate.gateway.security.credentials import DEV_AZURE_ACCOUNT, DEV_CREDENTIALS, Scheme
from tests.support.node import node_with
from tests.support.running import Running

pytestmark = pytest.mark.clients

CASES = Path(__file__).parent / "javascript" / "cases.mjs"
SDK = "@azure/data-tables@13.3.2"


def test_javascript_cases(server: Running) -> None:
    node, environment, folder = node_with(SDK)
    [key] = next(item for item in DEV_CREDENTIALS if item.scheme is Scheme.AZURE).secrets
    endpoint = f"{server.url}/{DEV_AZURE_ACCOUNT}"
    # Beside node_modules, where Node looks for packages.
    with tempfile.NamedTemporaryFile(dir=folder, suffix=".mjs") as script:
        script.write(CASES.read_bytes())
        script.flush()
        command = [str(node), script.name, endpoint, DEV_AZURE_ACCOUNT, key]
        ran = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
    results = [json.loads(line) for line in ran.stdout.splitlines()]
    failed = {result["name"]: result["error"] for result in results if not result["ok"]}
    assert ran.returncode == 0, ran.stderr
    assert failed == {}
    assert len(results) >= 40
