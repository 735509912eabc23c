"""The SQL table of vector indexes."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    text,
)

from tablegate.gateway.store.sql.core_schema import metadata

# Entries of vector indexes: vectors of 32-bit floats, and digests of the filter columns. Each write of an entry assigns
# the next number of its index, so that changes since a version can be read alone. The key is the row's.
vectors = Table(
    "vectors",
    metadata,
    Column("index_id", BigInteger, nullable=False),
    Column("partition", LargeBinary, nullable=False),
    Column("sort", LargeBinary, nullable=False),
    Column("slot", SmallInteger, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("size_bytes", Integer, nullable=False),
    # NULL: the index has no partitions.
    Column("partition_digest", LargeBinary),
    Column("filter_digests", LargeBinary, nullable=False),
    Column("full_key", LargeBinary),
    Column("vector", LargeBinary, nullable=False),
    PrimaryKeyConstraint("index_id", "partition", "sort", "slot"),
)
Index("vectors_by_version", vectors.c.index_id, vectors.c.version, vectors.c.size_bytes)
Index(
    "vectors_by_partition",
    vectors.c.index_id,
    vectors.c.partition_digest,
    vectors.c.version,
    sqlite_where=text("partition_digest IS NOT NULL"),
    postgresql_where=text("partition_digest IS NOT NULL"),
)
