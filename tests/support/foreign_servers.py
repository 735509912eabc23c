"""Servers of other projects: DynamoDB Local, dynalite, kinesalite and Azurite.

They are installed from their registries into the cache folder of tests (node.py). Tests that need a server which cannot
be installed are skipped with a reason.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from benchmarks import installing
from tests.support.node import cache_folder
from tests.support.running import free_port
from tests.support.waiting import PATIENCE_S

_SURVIVE_ABORTED_REQUESTS = (
    "data:text/javascript,process.on('uncaughtException', error => {"
    "if (error.code !== 'ECONNRESET') { console.error(error); process.exit(1) } })"
)
"""A module that Node loads first. kinesalite 3.3.3 and dynalite throw the error of a request whose client disconnects
(index.js: `req.on('error', function(err) { throw err })`), which ends their process when a test kills the client."""


def _command(name: str, port: int, folder: Path) -> list[str]:
    if name == "dynamodb-local":
        jars = installing.dynamodb_local()
        libraries = [f"-Djava.library.path={jars}", f"-Dsqlite4java.library.path={jars}"]
        main = "com.amazonaws.services.dynamodbv2.local.main.ServerRunner"
        flags = ["-port", str(port), "-inMemory", "-sharedDb", "-disableTelemetry"]
        return ["java", "-Xmx256m", *libraries, "-cp", f"{jars}/*", main, *flags]
    node = str(installing.node())
    if name == "dynalite":
        main = str(installing.npm_package("dynalite", installing.DYNALITE) / "cli.js")
        states = ["--createTableMs", "0", "--deleteTableMs", "0", "--updateTableMs", "0"]
        return [node, main, "--port", str(port), "--host", "127.0.0.1", *states]
    if name == "kinesalite":
        main = str(installing.npm_package("kinesalite", installing.KINESALITE) / "cli.js")
        states = [
            "--createStreamMs",
            "0",
            "--deleteStreamMs",
            "0",
            "--updateStreamMs",
            "0",
            "--shardLimit",
            "50",
        ]
        return [node, "--import", _SURVIVE_ABORTED_REQUESTS, main, "--port", str(port), *states]
    package = installing.npm_package("azurite", installing.AZURITE)
    main = str(package / "dist" / "src" / "table" / "main.js")
    flags = ["--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry"]
    return [node, main, "--tableHost", "127.0.0.1", "--tablePort", str(port), *flags]


@contextlib.contextmanager
def foreign_server(name: str, folder: Path) -> Iterator[str]:
    """The URL of one, stopped at the end: "dynamodb-local", "dynalite", "kinesalite" or "azurite"."""
    port = free_port()
    with mock.patch.object(installing, "PEERS", cache_folder() / "peers"):
        try:
            command = _command(name, port, folder)
        except installing.Absent as reason:
            pytest.skip(f"{name} cannot be installed: {reason}")
    process = subprocess.Popen(
        command, cwd=folder, env=dict(os.environ), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait_for(port, process, name)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_S)


def _wait_for(port: int, process: subprocess.Popen[bytes], name: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if process.poll() is not None:
            pytest.skip(f"{name} does not start here: it ended with status {process.returncode}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    pytest.skip(f"{name} does not start here within {PATIENCE_S:.0f} seconds")
