"""Every module, public class and public function of the gateway and of the adapters has a docstring."""

from __future__ import annotations

import ast
import re

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


def test_missing_docstrings_are_found() -> None:
    source = '"""M."""\nclass Session:\n    """S."""\n    def query(self): pass\ndef one(): pass\ndef _two(): pass\n'
    assert undocumented(ast.parse(source)) == ["one"]
    assert undocumented(ast.parse("class Cache: pass")) == ["the module", "Cache"]


_NO_NEWS = re.compile(
    r"\b(a|an|and|as|at|be|by|do|for|from|has|have|if|in|is|it|its|no|not|of|on|one|or|returns?|than|that|the|their|then"
    r"|there|they|this|to|true|was|with|without|which|yield|are|under|into)\b"
)


def words_of(text: str) -> list[str]:
    spread = re.sub(r"([a-z])([A-Z])", r"\1 \2", text).replace("_", " ").lower()
    return re.findall(r"[a-z0-9]+", _NO_NEWS.sub("", spread))


def repeats_its_code(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """True for a docstring whose words, but one, are all in its function of three lines or fewer."""
    text, body = ast.get_docstring(function), function.body[1:]
    if text is None or not body or (function.end_lineno or 0) - body[0].lineno >= 3:
        return False
    parts = [function.name, *map(ast.unparse, filter(None, [function.args, function.returns, *body]))]
    known = {word[:4] for word in words_of(" ".join(parts))}
    return sum(word[:4] not in known for word in words_of(text)) <= 1


def test_docstrings_of_short_private_functions_say_more_than_their_code() -> None:
    repeating = [
        (module, node.name)
        for module in MODULES
        for node in ast.walk(tree(module))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("_")
        if not node.name.endswith("__") and repeats_its_code(node)
    ]
    assert repeating == []
