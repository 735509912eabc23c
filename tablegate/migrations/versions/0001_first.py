"""The first schema. Its scripts in `schemas/` never change once they are released."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    connection = op.get_bind()
    script = Path(__file__).parents[1] / "schemas" / f"{revision}-{connection.dialect.name}.sql"
    for statement in script.read_text().split("\n\n"):
        connection.exec_driver_sql(statement)
