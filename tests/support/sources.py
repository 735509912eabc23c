"""The modules of the product: their files, syntax trees and imports. Each file is parsed once, when a test asks for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = ROOT / "tablegate"
FOLDERS = ("gateway", "adapters", "migrations", "transfer")
PACKAGE = "tablegate."


def module_name(path: Path) -> str:
    """Return the dotted name without the name of the package, `tablegate`."""
    parts = path.relative_to(PRODUCT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for folder in FOLDERS for path in sorted((PRODUCT / folder).rglob("*.py"))}


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(FILES[module].read_text())


@cache
def imports(module: str) -> list[str]:
    """Every module that a module imports, wherever in it: at the top, in a function, under TYPE_CHECKING.

    Ours are without the name of the package, as `module_name` gives them.
    """
    return sorted(set(_imports(module)))


def _imports(module: str) -> Iterator[str]:
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            yield from (name.name.removeprefix(PACKAGE) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are absolute"
            assert node.module is not None
            for name in node.names:
                whole = f"{node.module}.{name.name}".removeprefix(PACKAGE)
                yield whole if whole in FILES else node.module.removeprefix(PACKAGE)
