"""Python files: their syntax trees and imports. The modules of the product by name.

Each file is parsed once, when a test asks for it.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator
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
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def tree(module: str) -> ast.Module:
    return parse(FILES[module])


@cache
def imports(module: str) -> list[str]:
    """Every module that a module imports, wherever in it: at the top, in a function, under TYPE_CHECKING.

    Ours are without the name of the package, as `module_name` gives them.
    """
    files = {PACKAGE + name for name in FILES}
    return sorted({name.removeprefix(PACKAGE) for name in imports_of(tree(module), files)})


def imports_of(parsed: ast.Module, modules: Container[str]) -> Iterator[str]:
    """Yield the whole name of each module that is imported. `from a import b` imports a.b if `modules` has it, else a."""
    for node in ast.walk(parsed):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            for name in node.names:
                whole = f"{node.module}.{name.name}"
                yield whole if whole in modules else node.module
