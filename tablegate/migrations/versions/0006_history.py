"""Histories of rows, copies of tables, and backups."""

from __future__ import annotations

import sqlalchemy
from alembic import op

revision = "0006"
down_revision = "0005"

NAME = sqlalchemy.Text().with_variant(sqlalchemy.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "history",
        _number("history_id"),
        _number("changed_at"),
        sqlalchemy.Column("slot", sqlalchemy.SmallInteger(), nullable=False),
        sqlalchemy.Column("partition", sqlalchemy.LargeBinary(), nullable=False),
        sqlalchemy.Column("sort", sqlalchemy.LargeBinary(), nullable=False),
        sqlalchemy.Column("full_key", sqlalchemy.LargeBinary()),
        _number("modified_at", nullable=True),
        sqlalchemy.Column("size_bytes", sqlalchemy.Integer(), nullable=False),
        sqlalchemy.Column("kinds", sqlalchemy.LargeBinary()),
        sqlalchemy.Column("body", sqlalchemy.LargeBinary()),
        sqlalchemy.PrimaryKeyConstraint("history_id", "changed_at", "slot", "partition", "sort"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "histories", _id("id"), _number("table_id"), sqlalchemy.Column("days", sqlalchemy.Integer())
    )
    op.create_table(
        "copies",
        _id("target_id"),
        _number("source_id"),
        _number("history_id", nullable=True),
        _number("at", nullable=True),
        sqlalchemy.Column("phase", sqlalchemy.SmallInteger(), nullable=False),
        sqlalchemy.Column("mark", sqlalchemy.LargeBinary()),
    )
    op.create_index("ix_copies_source_id", "copies", ["source_id"])
    op.create_table(
        "backups",
        _id("id"),
        sqlalchemy.Column("namespace", NAME, nullable=False),
        sqlalchemy.Column("table_name", NAME, nullable=False),
        sqlalchemy.Column("name", NAME, nullable=False),
        sqlalchemy.Column("kind", sqlalchemy.Text(), nullable=False),
        _number("copy_id"),
        sqlalchemy.Column("definition", sqlalchemy.Text(), nullable=False),
        _number("rows"),
        _number("size_bytes"),
        sqlalchemy.Column("ready", sqlalchemy.SmallInteger(), nullable=False),
        _number("created_at_ms"),
        _number("expires_at_ms", nullable=True),
    )
    op.create_index("backups_by_table", "backups", ["namespace", "table_name", "created_at_ms"])
    op.create_index("ix_backups_copy_id", "backups", ["copy_id"])
    op.create_index("ix_backups_expires_at_ms", "backups", ["expires_at_ms"])


def _id(name: str) -> sqlalchemy.Column[int]:
    return sqlalchemy.Column(name, sqlalchemy.BigInteger(), primary_key=True, autoincrement=False)


def _number(name: str, nullable: bool = False) -> sqlalchemy.Column[int]:
    return sqlalchemy.Column(name, sqlalchemy.BigInteger(), nullable=nullable)
