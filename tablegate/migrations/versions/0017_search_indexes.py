"""Search indexes, their documents and terms."""

from __future__ import annotations

import sqlalchemy
from alembic import op

revision = "0017"
down_revision = "0016"

NAME = sqlalchemy.Text().with_variant(sqlalchemy.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "search_indexes",
        sqlalchemy.Column("id", sqlalchemy.BigInteger, primary_key=True, autoincrement=False),
        sqlalchemy.Column("table_id", sqlalchemy.BigInteger, nullable=False),
        sqlalchemy.Column("name", NAME, nullable=False),
        sqlalchemy.Column("dialect", sqlalchemy.Text, nullable=False),
        sqlalchemy.Column("fields", sqlalchemy.Text, nullable=False),
        sqlalchemy.Column("properties", sqlalchemy.Text, nullable=False),
        sqlalchemy.Column("created_at_ms", sqlalchemy.BigInteger, nullable=False),
        sqlalchemy.UniqueConstraint("table_id", "name"),
    )
    op.create_table(
        "search_documents",
        sqlalchemy.Column("index_id", sqlalchemy.BigInteger, nullable=False),
        sqlalchemy.Column("partition", sqlalchemy.LargeBinary, nullable=False),
        sqlalchemy.Column("sort", sqlalchemy.LargeBinary, nullable=False),
        sqlalchemy.Column("slot", sqlalchemy.SmallInteger, nullable=False),
        sqlalchemy.Column("document", sqlalchemy.BigInteger, nullable=False),
        sqlalchemy.Column("full_key", sqlalchemy.LargeBinary),
        sqlalchemy.Column("body", sqlalchemy.LargeBinary, nullable=False),
        sqlalchemy.PrimaryKeyConstraint("index_id", "partition", "sort", "slot"),
    )
    op.create_index("search_documents_by_number", "search_documents", ["index_id", "document"])
    op.create_table(
        "search_terms",
        sqlalchemy.Column("index_id", sqlalchemy.BigInteger, nullable=False),
        sqlalchemy.Column("field", sqlalchemy.SmallInteger, nullable=False),
        sqlalchemy.Column("term", sqlalchemy.LargeBinary, nullable=False),
        sqlalchemy.Column("document", sqlalchemy.BigInteger, nullable=False),
        sqlalchemy.Column("slot", sqlalchemy.SmallInteger, nullable=False),
        sqlalchemy.PrimaryKeyConstraint("index_id", "field", "term", "document", "slot"),
        sqlite_with_rowid=False,
    )
