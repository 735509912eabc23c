"""The wheel and the locked dependencies on arm64: in a folder with Debian's Python, run by QEMU's emulation of a process.

It stands for the image, which has the same Debian and Python. Nothing is installed on this machine.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support.sources import ROOT

DEBIAN = "trixie"
"""The Debian of the image python:3.13-slim."""
PROGRAMS = ("qemu-aarch64-static", "mmdebstrap")
MISSING = [name for name in PROGRAMS if shutil.which(name) is None]
BOUND_S = 3600
"""Maximum duration of a program. The emulation is many times slower than the machine, which may be busy."""


@dataclass(frozen=True)
class Installation:
    """Debian's files for arm64 in the folder `debian`, the packages of Python in the folder `packages`."""

    debian: Path
    packages: Path

    @property
    def python(self) -> tuple[str, ...]:
        """The command that runs Python on arm64."""
        bound = ("timeout", "--foreground", "--signal=KILL", str(BOUND_S))
        return (*bound, "qemu-aarch64-static", "-L", str(self.debian), str(self.debian / "usr/bin/python3"))

    @property
    def environment(self) -> dict[str, str]:
        """Variables for Python. What it compiles is kept, whatever the environment says: that is most of the time."""
        return {"PYTHONPATH": str(self.packages), "PYTHONDONTWRITEBYTECODE": ""}

    def run(self, *arguments: str) -> str:
        """Run Python. Return its output."""
        environment = {**os.environ, **self.environment}
        done = subprocess.run(
            [*self.python, *arguments], cwd=self.packages, env=environment, stdout=subprocess.PIPE, text=True
        )
        assert done.returncode == 0, arguments
        return done.stdout.strip()

    def compiled_modules(self) -> list[str]:
        """Return the names of the modules that are machine code."""
        found = [path.relative_to(self.packages) for path in self.packages.rglob("*.so")]
        return sorted(
            ".".join((*path.parent.parts, path.name.partition(".")[0]))
            for path in found
            if not path.parent.name.endswith(".libs")
        )


def python_of_image() -> str:
    """Return the version of Python that the image has."""
    [version] = {
        *re.findall(r"^FROM python:(\d+\.\d+)-slim", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    }
    return version


def install(wheel: Path, folder: Path) -> Installation:
    """Install a wheel and the locked dependencies for arm64. All of them come as wheels.

    The wheel of re2 needs libstdc++, which each image of Debian has, because apt needs it.
    """
    made = Installation(folder / "debian", folder / "packages")
    debootstrap = ["mmdebstrap", "--quiet", "--variant=extract", "--mode=chrootless", "--architectures=arm64"]
    install = [
        Path(sys.executable).with_name("uv"),
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--target",
        made.packages,
    ]
    platform = ["--python-platform", "aarch64-manylinux_2_28", "--python-version", python_of_image()]
    for command in (
        [*debootstrap, "--include=base-files,libstdc++6,python3", DEBIAN, made.debian],
        [*install, *platform, "--only-binary", ":all:", "--requirement", ROOT / "requirements.lock"],
        [*install, *platform, wheel],
    ):
        subprocess.run(command, check=True, timeout=BOUND_S)
    return made
