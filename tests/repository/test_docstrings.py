"""Every module, public class and public function of the gateway and of the adapters has a docstring."""

from __future__ import annotations

import ast

from tests.support.sources import FILES, tree

MODULES = [
    module
    for module, path in FILES.items()
    if module.startswith(("gateway", "adapters")) and not path.name.endswith("_pb2.py")
]
Named = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def undocumented(tree: ast.Module) -> list[str]:
    """Return the public classes and functions of a module without a docstring. Methods need none."""
    missing = [] if ast.get_docstring(tree) else ["the module"]
    for node in tree.body:
        if isinstance(node, Named) and not node.name.startswith("_") and not ast.get_docstring(node):
            missing.append(node.name)
    return missing


def test_everything_public_has_a_docstring() -> None:
    assert {module: missing for module in MODULES if (missing := undocumented(tree(module)))} == {}


def test_no_docstring_says_only_that_it_is_the_same() -> None:
    """A reader may see it before the other one."""
    for module in MODULES:
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.Module | Named):
                text = ast.get_docstring(node) or ""
                assert not text.startswith(("The same", "As above", "Ditto")), (module, text)


def test_this_test_finds_what_is_missing() -> None:
    source = '"""M."""\nclass Session:\n    """S."""\n    def query(self): pass\ndef one(): pass\ndef _two(): pass\n'
    assert undocumented(ast.parse(source)) == ["one"]
    assert undocumented(ast.parse("class Cache: pass")) == ["the module", "Cache"]
