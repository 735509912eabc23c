"""Every module, public class and public function of the gateway and of the adapters has a docstring.

Docstrings and names of tests are whole sentences.
"""

from __future__ import annotations

import ast
import re

import pytest

from tests.support.sources import FILES, ROOT, tree

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


_NO_SENTENCE = re.compile(
    r"^(What|Whether|Who|Whose|How|Where|Which|Of)\b"
    r"|\b(None|Empty): |\b(by|of) which\b|\b(whoever|somebody|nobody)\b"
)


def strings_of(tree: ast.Module) -> list[str]:
    """Return the docstrings of a module, also those of attributes and constants, with their lines joined."""
    values = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    return [
        " ".join(value.value.split())
        for value in values
        if isinstance(value, ast.Constant) and isinstance(value.value, str)
    ]


def test_docstrings_are_whole_sentences() -> None:
    """`Return None:` is a sentence, and its reason follows."""
    found = [
        (module, text) for module in FILES for text in strings_of(tree(module)) if _NO_SENTENCE.search(text)
    ]
    assert [(module, text) for module, text in found if not text.startswith("Return None: ")] == []


@pytest.mark.parametrize(
    "text", ["Whether it is on.", "A limit. None: no limit.", "A key, by which rows are found."]
)
def test_elliptic_docstrings_are_found(text: str) -> None:
    module = ast.parse(f'limit = 1\n"""{text}"""')
    assert [found for found in strings_of(module) if _NO_SENTENCE.search(found)] == [text]


_NO_SUBJECT = re.compile(
    r"^test_(what|who|whose|whoever|which|whether|how|where|it|its|they|them|their|those|these|others|such|of)_"
    r"|_(of_which|ones_own|nobody|somebody|anybody|whoever)(_|$)|_(is|are)_(said|told)$"
)


def test_names_of_tests_begin_with_their_subject() -> None:
    names = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
    }
    assert len(names) > 4_000
    assert sorted(name for name in names if _NO_SUBJECT.search(name)) == []
