"""Plain names of SQL tables, columns and rules.

Tables: partition_locks (before: holds), staged_writes (staged), expiry_backfills (refills). Rule of a table:
has_local_transactions (holds). Column of credentials: encrypted_secrets (sealed).

Tables and columns are renamed in place, without copying rows. The rules are rewritten in batches.
"""

from __future__ import annotations

import json

import sqlalchemy
from alembic import op

revision = "0004"
down_revision = "0003"
REWRITES = ("tables",)

RENAMED = {"holds": "partition_locks", "staged": "staged_writes", "refills": "expiry_backfills"}
# PostgreSQL names a constraint's index after its table and keeps that name when the table is renamed. SQLite renames
# it.
CONSTRAINTS = {
    "holds_pkey": "partition_locks_pkey",
    "holds_table_id_partition_key": "partition_locks_table_id_partition_key",
    "staged_pkey": "staged_writes_pkey",
    "refills_pkey": "expiry_backfills_pkey",
}
BATCH_TABLES = 500

tables = sqlalchemy.table("tables", sqlalchemy.column("id"), sqlalchemy.column("rules"))


def upgrade() -> None:
    for old, new in RENAMED.items():
        op.rename_table(old, new)
    if op.get_bind().dialect.name == "postgresql":
        for old, new in CONSTRAINTS.items():
            op.execute(f"ALTER INDEX {old} RENAME TO {new}")
    op.execute("ALTER TABLE credentials RENAME COLUMN sealed TO encrypted_secrets")
    rename_rule(op.get_bind())


def rename_rule(connection: sqlalchemy.Connection) -> None:
    """Rewrite the rules of all tables with the new name, in the order of their ids."""
    after = None
    while True:
        statement = sqlalchemy.select(tables).order_by(tables.c.id).limit(BATCH_TABLES)
        if after is not None:
            statement = statement.where(tables.c.id > after)
        batch = connection.execute(statement).all()
        if not batch:
            return
        after = batch[-1].id
        changed = [{"row": row.id, "now": renamed(row.rules)} for row in batch]
        update = sqlalchemy.update(tables).where(tables.c.id == sqlalchemy.bindparam("row"))
        connection.execute(update.values(rules=sqlalchemy.bindparam("now")), changed)


def renamed(rules: str) -> str:
    """Return the JSON of a table's rules with the new name. Rules older than local transactions have neither name."""
    document = json.loads(rules)
    if "holds" in document:
        document["has_local_transactions"] = document.pop("holds")
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))
