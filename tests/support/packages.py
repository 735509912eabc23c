"""The wheel and the sdist of a commit, the same bytes each time, and its extras.

    python -m tests.support.packages build FOLDER
    python -m tests.support.packages extras WHEEL
    python -m tests.support.packages installs WHEEL

`build` takes the files of HEAD. Times are those of the commit, and permissions do not depend on this machine. README.md is
the page on PyPI, so its links lead to the commit on GitHub.

`extras` installs the wheel with each extra in a clean environment, and imports the modules that need the extra. `installs`
does so without extras, on each supported Python of this machine, with the oldest and the newest dependencies, and starts
the server. Then it runs the wheel by uvx and by pipx, and checks that the locked dependencies have wheels for each Python
on each platform of the image.
"""

from __future__ import annotations

import gzip
import io
import itertools
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
REPOSITORY = "https://github.com/tablegate/tablegate"
MOST_WHEEL_BYTES = 2_000_000
MOST_DEPENDENCIES = 29
"""Maximum number of packages that an installation without extras brings. docs/contribute/dependencies.md states both."""
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
RESOLUTIONS = ("lowest-direct", "highest")
PLATFORMS = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
"""Those of the image, in uv's names."""
_UV = Path(sys.executable).with_name("uv")


def build(target: Path, commit: str = "HEAD") -> list[Path]:
    """Build the sdist of a commit, and the wheel from it. Return the wheel and the sdist."""
    made_at = int(_git("log", "-1", "--format=%ct", commit))
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source"
        extract(commit, source)
        readme = source / "README.md"
        readme.write_text(with_absolute_links(readme.read_text(), _git("rev-parse", commit).decode().strip()))
        subprocess.run(
            [sys.executable, "-m", "build", "--no-isolation", "--outdir", target, source],
            env={**os.environ, "SOURCE_DATE_EPOCH": str(made_at)},
            check=True,
            umask=0o022,
            capture_output=True,
        )
    for sdist in target.glob("*.tar.gz"):
        sdist.write_bytes(_normalized(sdist.read_bytes(), made_at))
    return [*target.glob("*.whl"), *target.glob("*.tar.gz")]


def extract(commit: str, folder: Path) -> None:
    """Write the files of a commit into a folder, with modes that do not depend on the user.

    Python's tarfile has the filter that this needs from 3.11.4 on. Debian 12 has 3.11.2.
    """
    folder.mkdir(parents=True, exist_ok=True)
    archive = _git("-c", "tar.umask=0022", "archive", commit)
    subprocess.run(["tar", "-x", "-p", "-f", "-", "-C", folder], input=archive, check=True)


def with_absolute_links(text: str, commit: str) -> str:
    """Return a Markdown document with links to the files of a commit on GitHub in place of relative ones."""
    relative = r"(?!https?:|#)"
    text = re.sub(rf"\]\({relative}", f"]({REPOSITORY}/blob/{commit}/", text)
    text = re.sub(rf"^(\[\w+\]: ){relative}", rf"\1{REPOSITORY}/blob/{commit}/", text, flags=re.MULTILINE)
    return re.sub(rf'\b(src|srcset)="{relative}', rf'\1="{REPOSITORY}/raw/{commit}/', text)


def _git(*words: str) -> bytes:
    return subprocess.run(["git", "-C", ROOT, *words], check=True, capture_output=True).stdout


def _mode(member: tarfile.TarInfo) -> int:
    return 0o755 if member.isdir() or member.mode & 0o100 else 0o644


def _normalized(archive: bytes, made_at: int) -> bytes:
    """Return a tar.gz with one time, owner and order. setuptools uses those of the build."""
    output = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(archive)) as given,
        gzip.GzipFile(fileobj=output, mode="wb", mtime=made_at) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as made,
    ):
        for member in sorted(given.getmembers(), key=lambda member: member.name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = made_at, 0, 0, "", ""
            member.mode, member.pax_headers = _mode(member), {}
            made.addfile(member, given.extractfile(member) if member.isfile() else None)
    return output.getvalue()


MODULES_OF_EXTRAS = {
    "clouds": (
        "adapters.dynamodb.features.exports_imports.s3_store",
        "adapters.dynamodb.features.kinesis.producer",
        "transfer.endpoints.dynamodb_client",
        "transfer.endpoints.azure_table_client",
        "transfer.endpoints.table_store_client",
    ),
    "parquet": ("transfer.endpoints.files.parquet_columns",),
    "ion": ("adapters.dynamodb.export_files.ion_values",),
    "otel": ("gateway.observability.telemetry",),
    "chinese": ("gateway.features.search.analysis",),
    "vectors": ("gateway.features.vectors.exact_search", "gateway.features.vectors.index_images"),
    "traffic": ("transfer.traffic.services",),
    "mcp": ("gateway.command_line.mcp_tools",),
}  # fmt: skip


def try_extra(wheel: Path, extra: str, python: str = sys.executable) -> None:
    """Install a wheel with an extra in a clean environment, check it, and import what needs the extra."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "environment"
        imports = "; ".join(f"import tablegate.{name}" for name in MODULES_OF_EXTRAS[extra])
        for command in (
            [_UV, "venv", "--quiet", "--python", python, environment],
            [_UV, "pip", "install", "--quiet", "--python", environment, f"{wheel.absolute()}[{extra}]"],
            [_UV, "pip", "check", "--quiet", "--python", environment],
            [environment / "bin" / "python", "-c", imports],
            [environment / "bin" / "tablegate", "--version"],
        ):
            subprocess.run(command, check=True, cwd=folder)


def try_install(wheel: Path, python: str, resolution: str) -> None:
    """Install a wheel in a clean environment with the oldest or newest dependencies, check it, and start its server."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "environment"
        install = [_UV, "pip", "install", "--quiet", "--python", environment, "--resolution", resolution]
        for command in (
            [_UV, "venv", "--quiet", "--python", python, environment],
            [*install, wheel.absolute()],
            [_UV, "pip", "check", "--quiet", "--python", environment],
            [environment / "bin" / "tablegate", "migrate"],
        ):
            subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL)
        serve = [environment / "bin" / "tablegate", "serve", "--port", "0"]
        with subprocess.Popen(serve, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            while not server.stdout.readline().startswith("health:"):
                assert server.poll() is None, "the server did not start"
            healthcheck = [environment / "bin" / "tablegate", "healthcheck", "--url", url]
            subprocess.run(healthcheck, check=True, stdout=subprocess.DEVNULL)
            server.terminate()
        assert server.returncode == 0


def try_runners(wheel: Path) -> None:
    """Run a wheel without installing it."""
    for runner in (["--from", wheel.absolute()], ["pipx==1.8.0", "run", "--spec", wheel.absolute()]):
        subprocess.run([_UV, "tool", "run", "--quiet", *runner, "tablegate", "--version"], check=True)


def check_wheels(python: str, platform: str) -> None:
    """Fail if a locked dependency has no wheel for a Python on a platform. Neither has to be on this machine."""
    with tempfile.TemporaryDirectory() as folder:
        find = [_UV, "pip", "install", "--quiet", "--dry-run", "--only-binary", ":all:", "--target", folder]
        where = ["--python-version", python, "--python-platform", platform]
        subprocess.run([*find, *where, "--requirement", ROOT / "requirements.lock"], check=True)


def is_here(python: str) -> bool:
    """Return True if uv finds a Python."""
    return subprocess.run([_UV, "python", "find", "--quiet", python], capture_output=True).returncode == 0


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["build", folder]:
            for path in build(Path(folder)):
                print(f"{path}: {path.stat().st_size:,} bytes")
        case ["extras", wheel]:
            for extra in MODULES_OF_EXTRAS:
                print(f"{extra}:", flush=True)
                try_extra(Path(wheel), extra)
        case ["installs", wheel]:
            for python in PYTHONS:
                print(f"Python {python}:", "" if is_here(python) else "not on this machine", flush=True)
                for resolution in RESOLUTIONS if is_here(python) else ():
                    try_install(Path(wheel), python, resolution)
            try_runners(Path(wheel))
            for python, platform in itertools.product(PYTHONS, PLATFORMS):
                print(f"wheels for Python {python} on {platform}", flush=True)
                check_wheels(python, platform)
        case _:
            sys.exit(__doc__)
