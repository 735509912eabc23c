"""The SQL table of jobs."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, SmallInteger, Table, Text, text

from tablegate.gateway.store.sql.core_schema import Name, metadata

# Long-running jobs of clients (exports, imports) and their progress. Only the server with the last claim runs a job,
# until the claim expires. An ended job is kept so that its result can be described.
jobs = Table(
    "jobs",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("namespace", Name, nullable=False),
    Column("table_name", Name, nullable=False),
    Column("definition", Text, nullable=False),
    Column("progress", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("ended_at_ms", BigInteger),
    Column("cancelled", SmallInteger, nullable=False),
    Column("claim", BigInteger, nullable=False),
    Column("claimed_until_ms", BigInteger, nullable=False),
    info={"on_every_node": "a row for each job; progress is saved batch by batch"},
)
Index("jobs_by_age", jobs.c.namespace, jobs.c.kind, jobs.c.created_at_ms, jobs.c.id)
Index(
    "jobs_to_do",
    jobs.c.id,
    sqlite_where=text("ended_at_ms IS NULL"),
    postgresql_where=text("ended_at_ms IS NULL"),
)
