"""The pages of docs/glossary*.md name modules, classes and members that exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tablegate.gateway.store.sql.databases import Database, Session, Statements
from tablegate.migrations.schema import PARTS
from tests.support.sources import FILES, PRODUCT, ROOT, tree

PAGES = sorted((ROOT / "docs").glob("glossary*.md"))
# SQL tables and their columns.
SQL = "".join(Path(str(part.__file__)).read_text() for part in PARTS)


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


@cache
def names_by_owner() -> dict[str, set[str]]:
    """Return the names that each module (by the last part of its name) and each class defines."""
    found: dict[str, set[str]] = {}
    for module in FILES:
        if not module.startswith("migrations"):
            found.setdefault(module.rpartition(".")[2], set()).update(names_in(tree(module)))
            for node in ast.walk(tree(module)):
                if isinstance(node, ast.ClassDef):
                    found.setdefault(node.name, set()).update(names_in(node))
    return found


def lines() -> list[str]:
    """The lines of all pages of the glossary."""
    return [line for page in PAGES for line in page.read_text().splitlines()]


def rows() -> list[tuple[str, str]]:
    """(term, name in the code) for each backticked name of the glossary's third column."""
    found = []
    for line in lines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) >= 3 and cells[0] not in ("term", "---"):
            found += [(cells[0], name) for name in re.findall(r"`([^`]+)`", cells[2])]
    return found


def is_in_code(name: str) -> bool:
    """True if a name of the glossary is a path, a module's name, a class's member or a column of SQL."""
    if name.endswith((".py", "/")):
        return any((PRODUCT / folder / name).exists() for folder in ("", "gateway", "adapters", "transfer"))
    owner, _, member = name.rpartition(".")
    if not owner:
        return any(member in names for names in names_by_owner().values()) or f'"{member}"' in SQL
    owner = owner.rpartition(".")[2]
    is_column = f'"{owner}"' in SQL and f'"{member}"' in SQL
    return member in names_by_owner().get(owner, set()) or is_column


# Documents whose names of code are all ours. adding-a-dialect.md invents a dialect.
DOCUMENTS = (
    "architecture.md",
    "contribute/add-a-capability.md",
    "contribute/adding-a-database.md",
    "contribute/background-work.md",
    "contribute/follow-a-request.md",
    "contribute/the-tick.md",
)
# Names of a service, a setting or SQL, in the same style.
OTHERS = frozenset({"s.sort", "pyproject.toml"})


def members_named_in(document: str) -> Iterator[str]:
    """The names `owner.member` of a document. Modules are named by their path or from a package of this project."""
    text = re.sub(r"```.*?```", "", (ROOT / "docs" / document).read_text(), flags=re.DOTALL)
    for name in re.findall(r"`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)(?:\([^`]*\))?`", text):
        if not name.endswith((".py", ".md")) and not name.startswith(("gateway.", "adapters.")):
            yield name


@pytest.mark.parametrize("document", DOCUMENTS)
def test_members_that_documents_name_are_in_the_code(document: str) -> None:
    names = set(members_named_in(document)) - OTHERS
    assert [name for name in sorted(names) if not is_in_code(name)] == []


@pytest.mark.parametrize("part", [Database, Session, Statements])
def test_every_member_of_a_database_is_described(part: type) -> None:
    text = (ROOT / "docs/contribute/adding-a-database.md").read_text()
    members = {name for name in {**vars(part), **part.__annotations__} if not name.startswith("_")}
    assert members - set(re.findall(r"`(\w+)[`(]", text)) == set()


def test_names_of_the_glossary_are_in_the_code() -> None:
    assert [f"{term}: the code has no {name}" for term, name in rows() if not is_in_code(name)] == []


def test_each_term_stands_once() -> None:
    terms = [line.split("|")[1].strip() for line in lines() if line.startswith("| ")]
    terms = [term for term in terms if term not in ("term", "---")]
    assert sorted(terms) == sorted(set(terms))


def test_a_name_that_is_gone_is_found() -> None:
    assert is_in_code("keys.KeySchema")
    assert not is_in_code("keys.NoSuchClass")
    assert not is_in_code("gateway/no_such_module.py")
