"""`make reference`: the pages of docs/reference, generated from the code. A test compares them with it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("gateway", "adapters", "transfer", "migrations", "tablegate")
MODULES_PAGE = ROOT / "docs" / "reference" / "modules.md"
_INTRODUCTION = """# Modules

Every folder and file of the product and its purpose, generated from their docstrings by `make reference`.
[architecture.md](../architecture.md) says how they work together.
"""


def modules_page() -> str:
    """The text of docs/reference/modules.md."""
    return "\n".join([_INTRODUCTION, *(line for folder in FOLDERS for line in _folder_lines(ROOT / folder))])


def _folder_lines(folder: Path) -> Iterator[str]:
    own = folder / "__init__.py"
    purpose = f": {purpose_of(own).rstrip('.')}" if own.exists() and purpose_of(own) else ""
    files = [path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"]
    if files:
        yield f"## `{folder.relative_to(ROOT)}/`{purpose}\n"
        yield "| file | purpose |\n|---|---|"
        yield from (f"| `{path.name}` | {purpose_of(path)} |" for path in files)
        yield ""
    for inner in sorted(folder.iterdir()):
        if inner.is_dir() and not inner.is_symlink() and inner.name != "__pycache__":
            yield from _folder_lines(inner)


def purpose_of(path: Path) -> str:
    """The first sentence of a module's docstring; "" if it has none."""
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    first = " ".join(text.partition("\n\n")[0].split())
    found = re.match(r"(.+?[.:])(?= [A-Z`]|$)", first)
    sentence = found[1] if found else first
    return sentence.rstrip(":").replace("|", "\\|")


if __name__ == "__main__":
    MODULES_PAGE.parent.mkdir(exist_ok=True)
    MODULES_PAGE.write_text(modules_page())
