"""The wheel and the sdist (tests/support/packages.py). test_commands.py installs the wheel and starts it."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest

from tests.support import packages
from tests.support.soak import minutes_long
from tests.support.sources import PRODUCT


def test_each_extra_has_modules_that_need_it() -> None:
    """`make test-extras` imports them."""
    project = tomllib.loads((packages.ROOT / "pyproject.toml").read_text())["project"]
    assert {*packages.MODULES_OF_EXTRAS} == {*project["optional-dependencies"]} - {"dev"}
    for modules in packages.MODULES_OF_EXTRAS.values():
        paths = [PRODUCT / f"{name.replace('.', '/')}.py" for name in modules]
        assert [path for path in paths if not path.exists()] == []


def test_the_page_on_pypi_has_no_relative_links() -> None:
    """PyPI shows README.md, and has no other file of the repository."""
    text = packages.with_absolute_links((packages.ROOT / "README.md").read_text(), "0a1b2c")
    targets = re.findall(r'(?:\]\(|^\[\w+\]: |\bsrc(?:set)?=")([^\s)"]+)', text, re.MULTILINE)
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []
    links = [target.removeprefix(f"{packages.REPOSITORY}/") for target in targets]
    own = [re.fullmatch(r"(?:blob|raw)/0a1b2c/([^#]+)(?:#.*)?", link) for link in links]
    files = [packages.ROOT / match[1] for match in own if match]
    assert len(files) >= 20
    assert [path for path in files if not path.is_file()] == []


@pytest.mark.soak
@minutes_long
def test_two_builds_have_the_same_bytes(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        first = packages.build(tmp_path / "first")
    finally:
        os.umask(before)
    second = packages.build(tmp_path / "second")
    assert [path.name for path in first] == [path.name for path in second]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
