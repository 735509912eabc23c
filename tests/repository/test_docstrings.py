"""Every module, public class and public function of the gateway and of the adapters says what it is, or gives."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("gateway", "adapters")
# Methods that a library calls, by names of its own: asyncio.Protocol and httptools.
CALLED_BY_LIBRARIES = {
    "connection_made",
    "connection_lost",
    "data_received",
    "pause_writing",
    "resume_writing",
} | {
    f"on_{event}"
    for event in ("message_begin", "url", "header", "headers_complete", "body", "message_complete")
}
FILES = {
    path.relative_to(ROOT).as_posix(): ast.parse(path.read_text())
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("*.py"))
    if not path.name.endswith("_pb2.py")
}
CLASSES = {
    node.name: node for tree in FILES.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
}

Named = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def public(
    node: ast.Module | ast.ClassDef, within: str = ""
) -> Iterator[tuple[str, Named, ast.ClassDef | None]]:
    """(name, node, its class if it is a method) of what stands in a module and has no underscore before its name."""
    for child in node.body:
        if isinstance(child, Named) and not child.name.startswith("_"):
            yield f"{within}{child.name}", child, node if isinstance(node, ast.ClassDef) else None
            if isinstance(child, ast.ClassDef):
                yield from public(child, f"{child.name}.")


def is_documented_above(method: str, owner: ast.ClassDef) -> bool:
    """Whether a class from which this one inherits has the method, and says what it is."""
    for base in owner.bases:
        parent = CLASSES.get(base.id) if isinstance(base, ast.Name) else None
        if parent is None:
            continue
        for child in parent.body:
            if isinstance(child, ast.FunctionDef) and child.name == method and ast.get_docstring(child):
                return True
        if is_documented_above(method, parent):
            return True
    return False


def undocumented(tree: ast.Module) -> list[str]:
    """The names of what says nothing of itself, but for methods that override one that does."""
    missing = [] if ast.get_docstring(tree) else ["the module"]
    for name, node, owner in public(tree):
        is_inherited = owner is not None and is_documented_above(node.name, owner)
        is_called_by_a_library = owner is not None and node.name in CALLED_BY_LIBRARIES
        if not ast.get_docstring(node) and not is_inherited and not is_called_by_a_library:
            missing.append(name)
    return missing


@pytest.mark.parametrize("path", FILES)
def test_everything_public_has_a_docstring(path: str) -> None:
    assert undocumented(FILES[path]) == []


@pytest.mark.parametrize("path", FILES)
def test_no_docstring_says_only_that_it_is_the_same(path: str) -> None:
    """Who reads it out of order does not know as what."""
    for node in ast.walk(FILES[path]):
        if isinstance(node, ast.Module | Named):
            text = ast.get_docstring(node) or ""
            assert not text.startswith(("The same", "As above", "Ditto")), text


def test_this_test_finds_what_is_missing() -> None:
    source = '"""M."""\nclass Session:\n    """S."""\n    def query(self): pass\ndef one(): pass\ndef _two(): pass\n'
    assert undocumented(ast.parse(source)) == ["Session.query", "one"]
    overriding = (
        '"""M."""\nclass Ours(Session):\n    """O."""\n    def query(self): pass\n    def other(self): pass\n'
    )
    assert undocumented(ast.parse(overriding)) == ["Ours.other"]
