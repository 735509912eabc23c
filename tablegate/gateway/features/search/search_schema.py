"""The SQL tables of search indexes."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
)

from tablegate.gateway.store.sql.core_schema import Name, metadata

# Search indexes (model/search): fields, and what the dialect reports of them, as JSON. `lifetime_ms`: NULL for documents
# that do not expire.
search_indexes = Table(
    "search_indexes",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("table_id", BigInteger, nullable=False),
    Column("name", Name, nullable=False),
    Column("dialect", Text, nullable=False),
    Column("fields", Text, nullable=False),
    Column("properties", Text, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("lifetime_ms", BigInteger),
    UniqueConstraint("table_id", "name"),
    info={"on_every_node": "changed by definitions"},
)

# The document of each row in a search index. `document` numbers the documents of an index, for `search_terms`.
search_documents = Table(
    "search_documents",
    metadata,
    Column("index_id", BigInteger, nullable=False),
    Column("partition", LargeBinary, nullable=False),
    Column("sort", LargeBinary, nullable=False),
    Column("slot", SmallInteger, nullable=False),
    Column("document", BigInteger, nullable=False),
    Column("full_key", LargeBinary),
    Column("body", LargeBinary, nullable=False),
    PrimaryKeyConstraint("index_id", "partition", "sort", "slot"),
)
Index("search_documents_by_number", search_documents.c.index_id, search_documents.c.document)

# The terms of documents: the number of the field, and the bytes of a value in the order of values.
Table(
    "search_terms",
    metadata,
    Column("index_id", BigInteger, nullable=False),
    Column("field", SmallInteger, nullable=False),
    Column("term", LargeBinary, nullable=False),
    Column("document", BigInteger, nullable=False),
    Column("slot", SmallInteger, nullable=False),
    PrimaryKeyConstraint("index_id", "field", "term", "document", "slot"),
    sqlite_with_rowid=False,
)
