"""The SQL tables of administration: credentials, grants, quotas, audit lines and properties of accounts."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, LargeBinary, MetaData, PrimaryKeyConstraint, Table, Text

metadata = MetaData()
"""The SQL tables of the imported modules. migrations/schema.py imports all of them."""
# PostgreSQL would sort by the locale of the database. SQLite sorts by bytes already.
Name = Text().with_variant(Text(collation="C"), "postgresql")

# Properties of an account (Azure's service properties), as JSON of the dialect.
Table(
    "namespace_properties",
    metadata,
    Column("namespace", Name, nullable=False),
    Column("name", Name, nullable=False),
    Column("document", Text, nullable=False),
    PrimaryKeyConstraint("namespace", "name"),
    info={"on_every_node": "changed by operators"},
)

# Access keys. The secrets are encrypted (gateway/security/secret_cipher.py).
Table(
    "credentials",
    metadata,
    Column("scheme", Name, nullable=False),
    Column("access_id", Name, nullable=False),
    Column("place", Text, nullable=False),
    Column("encrypted_secrets", LargeBinary, nullable=False),
    Column("changed_at_ms", BigInteger, nullable=False),
    PrimaryKeyConstraint("scheme", "access_id"),
    info={"on_every_node": "changed by operators"},
)

# One row: the schema of the oldest release that may serve this database (gateway/store/opening/migrating.py).
Table(
    "schema_compatibility",
    metadata,
    Column("oldest", Text, primary_key=True),
    info={"on_every_node": "changed by migrations"},
)

# Grants of permissions (gateway/security/grant_store.py).
Table(
    "grants",
    metadata,
    Column("id", Name, nullable=False),
    Column("grantee", Name, nullable=False),
    Column("form", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    PrimaryKeyConstraint("id"),
    info={"on_every_node": "changed by operators"},
)

# Audit lines, if the audit is kept in the database (gateway/observability/audit.py).
Table(
    "audit_events",
    metadata,
    Column("at_ms", BigInteger, nullable=False),
    Column("id", Text, nullable=False),
    Column("line", Text, nullable=False),
    PrimaryKeyConstraint("at_ms", "id"),
    info={"on_every_node": "many lines at a time, from the thread of the audit"},
)

# The quota document of a credential or a namespace (gateway/security/quotas.py).
Table(
    "quotas",
    metadata,
    Column("owner", Name, primary_key=True),
    Column("document", Text, nullable=False),
    Column("changed_at_ms", BigInteger, nullable=False),
    info={"on_every_node": "changed by operators"},
)

# Recent demand on each quota at every server process. The processes share a quota in proportion.
Table(
    "quota_demands",
    metadata,
    Column("owner", Name, nullable=False),
    Column("process", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    PrimaryKeyConstraint("owner", "process"),
    info={"on_every_node": "a row for each server process, every few seconds"},
)
