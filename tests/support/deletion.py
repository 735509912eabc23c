"""Deletion of a capability in a copy of the repository: `python -m tests.support.deletion NAME FOLDER`.

The steps are those of docs/contribute/add-a-capability.md.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

ROOT = Path(__file__).parents[2]
LISTS = (
    "tablegate/gateway/capabilities.py",
    "tablegate/adapters/dynamodb/capabilities.py",
    "tablegate/adapters/tablestore/operation_table.py",
)
PACKAGES = ("gateway", "adapters/dynamodb", "adapters/tablestore")


def copy_repository(folder: Path) -> None:
    """Copy the files that git knows, and link the environment."""
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in names.splitlines():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).exists():
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)


def without_lines(text: str, name: str) -> str:
    """Return a list of capabilities without the lines of one."""
    text = re.sub(rf'"{name}",? ?', "", text)
    text = re.sub(
        rf'^    "[\w.]*\bfeatures\.{name}\.[\w.]*": .*?\n(?=    "|\}})',
        "",
        text,
        flags=re.DOTALL | re.MULTILINE,
    )
    text = re.sub(rf'^    "[\w.]*": "features\.{name}\.[\w.]*",\n', "", text, flags=re.MULTILINE)
    text = re.sub(rf'\("[\w.]*\b{name}_pages",\)', "()", text)
    for imported in re.findall(rf"^from [\w.]*\.features\.{name} import (\w+)\n", text, flags=re.MULTILINE):
        text = re.sub(rf"^from .* import {imported}\n", "", text, flags=re.MULTILINE)
        text = re.sub(rf"\b{imported}(?:\.\w+)?,? ?", "", text)
    return text


def delete(name: str, folder: Path) -> None:
    """Delete the folders of a capability and its lines, and write the scripts of the schema again."""
    for kind, package in product(("tablegate", "tests"), PACKAGES):
        features = folder / kind / package / "features"
        for path in [features / name, *features.glob(f"*/{name}")]:  # features/search/sql belongs to both
            shutil.rmtree(path, ignore_errors=True)
    for path in map(folder.joinpath, LISTS):
        path.write_text(without_lines(path.read_text(), name))
    run(folder, "-m", "tablegate.migrations.scripts")


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in the copy. Raises CalledProcessError."""
    environment = {name: value for name, value in os.environ.items() if name != "TABLEGATE_TEST_SOAK_SECONDS"}
    environment["PYTHONPATH"] = str(folder)
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, check=True, capture_output=True, text=True
    )


if __name__ == "__main__":
    copy_repository(Path(sys.argv[2]))
    delete(sys.argv[1], Path(sys.argv[2]))
