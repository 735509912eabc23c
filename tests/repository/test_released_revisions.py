"""Revisions of releases never change: databases in use were made by them."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tablegate.gateway import __version__
from tablegate.gateway.store.migrating import FOLDER


def test_revisions_of_releases_are_as_recorded() -> None:
    """The record has the lines of `sha256sum`. A release adds its revisions (docs/contribute/governance.md).

    If a file differs from its line, restore it, and add a revision instead.
    """
    lines = Path(__file__).with_name("released_revisions.txt").read_text().splitlines()
    recorded = {name: digest for digest, name in map(str.split, lines)}
    paths = [*FOLDER.glob("versions/[0-9]*.py"), *FOLDER.glob("schemas/*.sql")]
    found = {str(path.relative_to(FOLDER)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    assert {name: digest for name, digest in recorded.items() if found.get(name) != digest} == {}
    is_release = ".dev" not in __version__
    assert not is_release or recorded == found
