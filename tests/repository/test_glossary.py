"""docs/glossary.md names modules, classes and members that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/glossary.md"
FOLDERS = ("gateway", "adapters", "transfer")
SOURCES = {path: ast.parse(path.read_text()) for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
# SQL tables and their columns: gateway/store/sql/schema.py.
SQL = (ROOT / "gateway/store/sql/schema.py").read_text() + (
    ROOT / "gateway/store/sql/administration_schema.py"
).read_text()


def names_in(node: ast.AST) -> set[str]:
    """The names that a module or class defines in its body, fields and attributes of self included."""
    found = set()
    for child in ast.walk(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(child.name)
        elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            found.add(child.id)
        elif isinstance(child, ast.Attribute) and isinstance(child.ctx, ast.Store):
            found.add(child.attr)
        elif isinstance(child, ast.arg):
            found.add(child.arg)
    return found


MODULES: dict[str, set[str]] = {}
CLASSES: dict[str, set[str]] = {}
for _path, _tree in SOURCES.items():
    MODULES.setdefault(_path.stem, set()).update(names_in(_tree))
    for _node in ast.walk(_tree):
        if isinstance(_node, ast.ClassDef):
            CLASSES.setdefault(_node.name, set()).update(names_in(_node))
ALL_NAMES = set().union(*MODULES.values())


def rows() -> list[tuple[str, str]]:
    """(term, name in the code) for each backticked name of the glossary's third column."""
    found = []
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) >= 3 and cells[0] not in ("term", "---"):
            found += [(cells[0], name) for name in re.findall(r"`([^`]+)`", cells[2])]
    return found


def is_in_code(name: str) -> bool:
    """True if a name of the glossary is a path, a module's name, a class's member or a column of SQL."""
    if name.endswith((".py", "/")):
        return any((ROOT / folder / name).exists() for folder in ("", "gateway", "adapters", "transfer"))
    owner, _, member = name.rpartition(".")
    if not owner:
        return member in ALL_NAMES or f'"{member}"' in SQL
    owner = owner.rpartition(".")[2]
    is_column = f'"{owner}"' in SQL and f'"{member}"' in SQL
    return member in MODULES.get(owner, set()) or member in CLASSES.get(owner, set()) or is_column


@pytest.mark.parametrize(("term", "name"), rows())
def test_names_of_the_glossary_are_in_the_code(term: str, name: str) -> None:
    assert is_in_code(name), f"{term}: the code has no {name}"


def test_each_term_stands_once() -> None:
    terms = [line.split("|")[1].strip() for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    terms = [term for term in terms if term not in ("term", "---")]
    assert sorted(terms) == sorted(set(terms))


def test_a_name_that_is_gone_is_found() -> None:
    assert is_in_code("keys.KeySchema")
    assert not is_in_code("keys.NoSuchClass")
    assert not is_in_code("gateway/no_such_module.py")
