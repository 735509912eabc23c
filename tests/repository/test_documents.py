"""Sizes of the documents, and phrases that readers must not see."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.sources import ROOT
from tests.support.tables import each_row

# `make docs` makes the list of modules for the site. It is not in the repository.
PAGES = sorted(
    str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md") if path.name != "modules.md"
)
MOST_WORDS = 2_500
# Pages with a bound of their own.
BOUNDS = {"docs/architecture.md": 3_500}


def words_of(path: str) -> int:
    """The number of words, as `wc -w` counts them."""
    return len((ROOT / path).read_text().split())


def test_pages_are_short_enough_to_be_read_at_once() -> None:
    """A longer page is split by topic."""
    sizes = {page: words_of(page) for page in PAGES}
    assert {page: size for page, size in sizes.items() if size > BOUNDS.get(page, MOST_WORDS)} == {}


def test_the_readme_is_short() -> None:
    assert words_of("README.md") <= 550
    assert len((ROOT / "README.md").read_text().splitlines()) <= 100


def shown(path: Path) -> str:
    """The text of a document as a reader sees it, without comments."""
    return re.sub(r"<!--.*?-->", "", path.read_text(), flags=re.DOTALL)


@each_row("phrase", ["not checked", "not measured", "Not run by the tests"])
def test_readers_see_no_notes_about_checks(phrase: str) -> None:
    """Each cell of a comparison is measured, documented or left out. Marks for the tests are comments."""
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / page for page in PAGES)]
    assert [str(path) for path in documents if phrase.lower() in shown(path).lower()] == []


@pytest.mark.parametrize("folder", ["contribute", "."])
def test_modules_that_documents_name_are_there(folder: str) -> None:
    """Contributors' pages name a module by its path or by the end of it."""
    modules = [
        f"/{path.relative_to(ROOT)}"
        for top in ("tablegate", "tests", "benchmarks", "docs")
        for path in (ROOT / top).rglob("*.py")
    ]
    for path in (ROOT / "docs" / folder).glob("*.md"):
        text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
        named = set(re.findall(r"`([\w/.-]+\.py)`", text))
        missing = {name for name in named if not any(module.endswith(f"/{name}") for module in modules)}
        assert missing == set(), path
