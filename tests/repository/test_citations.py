"""Citations of docs/ in code and tests: the file, and the rule or section, exist.

Links and names in documents are checked too.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tablegate.gateway.dialects.dialect import Dialect
from tablegate.gateway.store.sql.databases import Database, Statements
from tests.support.sources import FOLDERS, PRODUCT, ROOT

_CITING = sorted(
    path
    for folder in ("tablegate", "tests", "benchmarks")
    for pattern in ("*.py", "*.toml", "*.proto")
    for path in (ROOT / folder).rglob(pattern)
    if path != Path(__file__)
)
_FILE = re.compile(r"\b(?:docs/)?protocols/[\w-]+\.md|\bdocs/[\w/-]+\.md")
_NUMBER = r"\d+(?:\.\d+)*"
_NUMBERS = re.compile(
    rf"(docs/(?:protocols/[\w-]+|architecture)\.md),? (?:rules?|section) ({_NUMBER}(?:(?:, | and | to |, and ){_NUMBER})*)"
)
_DEFINED = re.compile(rf"^(?:#+ (?:Rule )?|- \*\*)({_NUMBER})(?:[. ]|\*\*)", re.MULTILINE)


def text_of(path: Path) -> str:
    """A file's text with lines joined, so that a citation that goes over two of them is found."""
    return re.sub(r"\s+#?\s*", " ", path.read_text())


def pages_of(document: str) -> list[Path]:
    """Return the page of a document and those that continue it: protocols/x.md, protocols/x-*.md."""
    path = ROOT / document
    return [path, *sorted(path.parent.glob(f"{path.stem}-*.md"))]


def test_cited_files_and_rules_exist():
    for path in _CITING:
        text = text_of(path)
        assert [cited for cited in _FILE.findall(text) if not (ROOT / cited).is_file()] == [], path
        for document, numbers in _NUMBERS.findall(text):
            defined = set(_DEFINED.findall("\n".join(page.read_text() for page in pages_of(document))))
            assert set(re.findall(_NUMBER, numbers)) <= defined, (path, document)


def test_citations_are_found():
    """The patterns above match the forms in which rules are cited."""
    assert _NUMBERS.findall(
        "docs/protocols/x.md rules 30 to 33, and docs/protocols/y.md section 4.1, 4.2 and 4.9"
    ) == [
        ("docs/protocols/x.md", "30 to 33"),
        ("docs/protocols/y.md", "4.1, 4.2 and 4.9"),
    ]
    assert _DEFINED.findall("### Rule 27. Where\n## 4. Meaning\n### 4.1 Data\n- **4.1.1** Keys") == [
        "27",
        "4",
        "4.1",
        "4.1.1",
    ]


_DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])


def test_links_lead_somewhere():
    for path in _DOCUMENTS:
        links = re.findall(r"\]\((?!https?://|#)([^)#\s]+)", path.read_text())
        assert [link for link in links if not (path.parent / link).exists()] == [], path


# Pages about conformance and protocols name files of other projects.
_NAMING = [
    path for path in _DOCUMENTS if not path.name.startswith("conformance") and path.parent.name != "protocols"
]


def path_of(name: str) -> Path:
    """Return the path of a file that a document names. Documents name the product's files without `tablegate/`."""
    return PRODUCT / name if name.partition("/")[0] in FOLDERS else ROOT / name


def test_files_that_documents_name_exist():
    """Those that are named with the folder in which they are."""
    for path in _NAMING:
        named = re.findall(
            r"`((?:adapters|docs|gateway|migrations|tablegate|tests|transfer)/[\w./-]+)`", path.read_text()
        )
        assert [name for name in named if not path_of(name).exists()] == [], path


def test_the_page_where_it_is_decided_names_existing_functions():
    """`file`: `name` in the table is a function, method, class or constant of that file."""
    page = (ROOT / "docs" / "contribute" / "where-it-is-decided.md").read_text()
    answers = re.findall(r"`((?:adapters|gateway)/[\w/]+\.py)`: `(?:\w+\.)?(\w+)`", page)
    assert len(answers) >= 8
    for file, name in answers:
        assert re.search(
            rf"^ *(?:def|class) {name}\b|^{name}(?:: .*)? = ", path_of(file).read_text(), re.MULTILINE
        ), file


@pytest.mark.parametrize(
    ("document", "described"),
    [("adding-a-database", Statements), ("adding-a-database", Database), ("adding-a-dialect", Dialect)],
)
def test_guides_describe_every_member_of_the_base_classes(document: str, described: type):
    """Each method and attribute of what a new database or dialect derives from has its line."""
    text = (ROOT / "docs/contribute" / f"{document}.md").read_text()
    public = {name for name in {*vars(described), *described.__annotations__} if not name.startswith("_")}
    # A dialect need not override these.
    assert [
        name for name in public - {"methods", "serve", "blueprint"} if not re.search(rf"`{name}\b", text)
    ] == []


# A message of the product names what an installed user has: a command, a setting, or the address of a page.
_OF_REPOSITORY = re.compile(r"(?<!main/)\b(?:docs|deploy|benchmarks|tests)/[\w-]+|\b[A-Z]{4,}\.md|`make ")


def messages_of(tree: ast.Module) -> list[str]:
    """Return the texts of a module that users can see: all but docstrings, and the docstrings of commands."""
    docstrings = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            decorators = [ast.unparse(each) for each in getattr(node, "decorator_list", ())]
            if not any(re.search(r"command|group|tool", each) for each in decorators):
                docstrings |= {id(each.value) for each in node.body if isinstance(each, ast.Expr)}
    texts = [
        node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return [str(node.value) for node in texts if id(node) not in docstrings]


def test_messages_name_no_files_of_the_repository():
    for path in sorted(PRODUCT.rglob("*.py")):
        if path.name == "fast_paths.py":  # a table of tests, which nobody is shown
            continue
        found = [each for each in messages_of(ast.parse(path.read_text())) if _OF_REPOSITORY.search(each)]
        assert found == [], path


def test_messages_are_found():
    source = '''"""See docs/a.md."""
@click.command()
def run() -> None:
    """Run (docs/b.md)."""
    "docs/c.md"
    raise ValueError(f"{run} is in docs/d.md, or in https://x/main/docs/e.md")
'''
    found = [each for each in messages_of(ast.parse(source)) if _OF_REPOSITORY.search(each)]
    assert found == ["Run (docs/b.md).", "docs/c.md", " is in docs/d.md, or in https://x/main/docs/e.md"]
