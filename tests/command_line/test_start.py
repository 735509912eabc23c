"""The start of a server: addresses are printed once it accepts connections, and a failed start prints none."""

from __future__ import annotations

import http.client
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.server.serving import first_credential
from tests.support.running import ROOT, Process
from tests.support.waiting import PATIENCE_S


def missing(folder: Path, package: str) -> dict[str, str]:
    """Return an environment in which a package cannot be imported."""
    Path(folder, f"{package}.py").write_text(f"raise ModuleNotFoundError('no', name={package!r})\n")
    return {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}


def failed_start(folder: Path, *flags: str, **environment: str) -> str:
    """Return the standard error of a start that fails with status 1 and prints nothing on standard output."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TABLEGATE_")}
    done = subprocess.run(
        [sys.executable, "-m", "tablegate", "serve", "--port", "0", *flags],
        cwd=folder,
        env={**clean, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, done.stdout) == (1, ""), done.stdout + done.stderr
    return done.stderr


@pytest.mark.extended
@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize(
    ("flags", "package", "reason"),
    [
        (("--otel",), "opentelemetry", "otel: pip install 'tablegate[otel]'"),
        (("--s3-endpoint-url", "http://127.0.0.1:1"), "boto3", "pip install 'tablegate[clouds]'"),
        (("--dialects", "dynamo"), "nothing", "dialects: there is no adapter dynamo"),
        (("--seed", "absent"), "nothing", "--seed: absent is not a folder"),
        (("--from", "absent.tgz"), "nothing", "--from absent.tgz: "),
    ],
)
def test_settings_that_only_the_server_can_check(
    tmp_path: Path, workers: str, flags: tuple[str, ...], package: str, reason: str
) -> None:
    errors = failed_start(tmp_path, *flags, "--workers", workers, **missing(tmp_path, package))
    assert reason in errors
    assert len(errors.splitlines()) == 1


@pytest.mark.extended
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_wrong_secret_key_ends_the_start_with_a_message(tmp_path: Path, workers: str) -> None:
    key, other = {"TABLEGATE_SECRET_KEY": "1" * 64}, {"TABLEGATE_SECRET_KEY": "2" * 64}
    for words in (("migrate",), ("credentials", "add", "AKID", "--all")):
        subprocess.run(
            [sys.executable, "-m", "tablegate", *words],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT), **key}, check=True, capture_output=True,
        )  # fmt: skip
    errors = failed_start(tmp_path, "--auth", "strict", "--workers", workers, **other)
    assert "secret key" in errors
    assert len(errors.splitlines()) == 1


@pytest.mark.extended
def test_a_worker_that_fails_ends_the_start(tmp_path: Path) -> None:
    """The library of traces rejects its settings in each worker. A server of workers that die has no address."""
    errors = failed_start(
        tmp_path, "--otel", "--workers", "2",
        OTEL_EXPORTER_OTLP_TIMEOUT="never", OTEL_BSP_SCHEDULE_DELAY="-1",
    )  # fmt: skip
    assert "a worker did not start" in errors


@pytest.mark.extended
@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_addresses_as_json(tmp_path: Path, workers: str) -> None:
    flags = ("--azure-port", "0", "--metrics-port", "0", "--workers", workers)
    process = Process(tmp_path, "--print-json", *flags)
    addresses = json.loads(process.url)
    for name, path in (("url", "/readyz"), ("azure_url", "/readyz"), ("metrics_url", "")):
        address = urlsplit(addresses.pop(name))
        connection = http.client.HTTPConnection(address.netloc, timeout=PATIENCE_S)
        connection.request("GET", address.path + path)
        assert connection.getresponse().status == 200
        connection.close()
    assert addresses == {"pid": process.pid, "version": addresses["version"]}
    assert process.terminate()[0] == 0


@pytest.mark.extended
@pytest.mark.parametrize("key_file", ["tablegate.sqlite.key", "my secret.key"])
def test_a_strict_server_says_how_to_add_the_first_key(tmp_path: Path, key_file: str) -> None:
    """Its examples would have credentials that it refuses. The printed command finds the key of the secrets."""
    flags = ["--auth", "strict"]
    if key_file == "my secret.key":
        (tmp_path / key_file).write_text("k" * 32)
        flags += ["--secret-key-file", key_file]
    server = Process(tmp_path, *flags)
    told = server.wait_until_ready()
    assert "aws_access_key_id" not in told
    assert str(tmp_path / key_file) in told
    [line] = [line for line in told.splitlines() if "tablegate credentials add" in line]
    folder = tmp_path / "another"
    folder.mkdir()
    command = line.strip().replace("tablegate", f"{shlex.quote(sys.executable)} -m tablegate", 1)
    done = subprocess.run(
        command, shell=True, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "secret=" in done.stdout
    server.terminate()
    assert (tmp_path / key_file).is_file()
    again = Process(tmp_path, *flags)
    assert "credentials add" not in again.wait_until_ready()
    again.terminate()


@pytest.mark.parametrize(
    ("settings", "hint"),
    [
        ({"database": "postgresql://localhost/x"}, "restart with --secret-key-file FILE"),
        (
            {"database": "postgresql://localhost/x", "secret_key": "k" * 32},
            "the TABLEGATE_SECRET_KEY of this server",
        ),
        ({"memory": True}, "restart with --credentials-file FILE"),
    ],
)
def test_the_first_key_needs_a_key_that_the_command_finds(settings: dict[str, Any], hint: str) -> None:
    assert hint in "\n".join(first_credential(Settings(auth="strict", **settings)))


def test_the_first_make_serve_shows_what_it_does() -> None:
    """It installs libraries for a minute."""
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", "serve"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "Installing tablegate and its libraries" in done.stdout
    [install] = [line for line in done.stdout.splitlines() if "--requirement requirements.lock" in line]
    assert "--quiet" not in install
