"""Build the container image and check it: labels, size, health, a read-only root file system and another user.

    python -m tests.support.image docker

The argument is a command with the options of Docker: docker or podman. It uses the standard library only.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import zlib
from typing import Any

from tests.support.sources import ROOT

MOST_BYTES = 120_000_000
"""Maximum size of the image as a registry sends it, compressed."""
IMAGE = "tablegate"
SQLITE = ("serve", "--host", "0.0.0.0", "--auth", "strict", "--database", "sqlite:////data/tablegate.sqlite")
AZURITE = ("azurite", "--tableHost", "0.0.0.0", "--inMemoryPersistence")


class Engine:
    """Docker or Podman, by their common command line."""

    def __init__(self, command: str) -> None:
        self._command = command

    def __call__(self, *words: str) -> str:
        done = subprocess.run([self._command, *words], stdout=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit(f"{self._command} {' '.join(words)}: status {done.returncode}\n{done.stdout}")
        return done.stdout.strip()

    def fails(self, *words: str) -> bool:
        """Run a command that may fail. Return True if it does."""
        return subprocess.run([self._command, *words], capture_output=True).returncode != 0

    def compressed_bytes(self, image: str) -> int:
        """Return the size of a saved image after compression."""
        squeezed, size = zlib.compressobj(6), 0
        with subprocess.Popen([self._command, "save", image], stdout=subprocess.PIPE) as saving:
            assert saving.stdout is not None
            while piece := saving.stdout.read(1 << 20):
                size += len(squeezed.compress(piece))
        assert saving.returncode == 0
        return size + len(squeezed.flush())


def health_check_of(image: dict[str, Any]) -> str:
    """Check what `inspect` says of an image, and return the command of its health check."""
    configuration = image["Config"]
    assert int(configuration["User"]) > 0
    assert configuration["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert configuration["Entrypoint"] == ["tablegate"]
    # Podman has it beside the configuration.
    [kind, command] = (image.get("Healthcheck") or configuration["Healthcheck"])["Test"]
    assert kind == "CMD-SHELL"
    return str(command)


def check_run(engine: Engine, health: str, options: tuple[str, ...], command: tuple[str, ...]) -> None:
    """Run the image on a read-only root file system until it is healthy."""
    container = engine("run", "--detach", "--read-only", "--tmpfs", "/tmp", *options, IMAGE, *command)
    try:
        until = time.monotonic() + 60
        while engine.fails("exec", container, "/bin/sh", "-c", health):
            if time.monotonic() > until:
                sys.exit(f"not healthy:\n{engine('logs', container)}")
        assert engine.fails("exec", container, "touch", "/opt/tablegate/x")
        assert engine("exec", container, "id", "-u") != "0"
    finally:
        engine("rm", "--force", container)


def main(command: str) -> None:
    """Build and check."""
    engine = Engine(command)
    engine("build", "--tag", IMAGE, str(ROOT))
    health = health_check_of(json.loads(engine("inspect", IMAGE))[0])
    check_run(engine, health, ("--user", "4321:4321"), ())
    check_run(engine, health, ("--user", "4321:4321"), AZURITE)
    check_run(engine, health, ("--env", "TABLEGATE_SECRET_KEY=sixteen characters"), SQLITE)
    size = engine.compressed_bytes(IMAGE)
    print(f"{IMAGE}: {size:,} bytes compressed, healthy on a read-only file system as users 1000 and 4321")
    assert size <= MOST_BYTES


if __name__ == "__main__":
    main(sys.argv[1])
