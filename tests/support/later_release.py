"""A made-up later release: this one with two more revisions. Tests of migrations upgrade a database to it."""

from __future__ import annotations

import shutil
from pathlib import Path

from tablegate.gateway.store.migrating import steps
from tests.support.running import ROOT

NEWEST = steps()[-1]
"""The newest revision of this release."""
LATER = ["9001", "9002"]
"""The revisions of the later release after that."""

_REVISIONS = {
    "9001_doubles": f'''"""Doubled
counters."""

import sqlalchemy
from alembic import op

revision, down_revision = "9001", "{NEWEST}"
REWRITES = ("counters",)


def upgrade():
    op.add_column("counters", sqlalchemy.Column("doubled", sqlalchemy.BigInteger()))
    op.execute("UPDATE counters SET doubled = 2 * value")
''',
    "9002_places": '''"""Places."""

import sqlalchemy
from alembic import op

revision, down_revision = "9002", "9001"


def upgrade():
    op.create_table("places", sqlalchemy.Column("name", sqlalchemy.Text(), primary_key=True))
    op.create_index("counters_by_double", "counters", ["doubled"])
''',
}


def add_revisions(migrations: Path) -> None:
    """Add the revisions of the later release to a folder of migrations."""
    for name, text in _REVISIONS.items():
        (migrations / "versions" / f"{name}.py").write_text(text)


def later_migrations(folder: Path) -> Path:
    """Write the migrations of the later release into a folder. Return them, for a patch of `migrating.FOLDER`."""
    migrations = folder / "migrations"
    shutil.copytree(ROOT / "tablegate" / "migrations", migrations)
    add_revisions(migrations)
    return migrations


def source_with_own_migrations(folder: Path) -> Path:
    """Write a source of this release with migrations that a test can change. Return it, for PYTHONPATH."""
    package = folder / "tablegate"
    package.mkdir(parents=True)
    for path in (ROOT / "tablegate").iterdir():
        if path.name == "migrations":
            shutil.copytree(path, package / path.name)
        else:
            (package / path.name).symlink_to(path)
    return folder
