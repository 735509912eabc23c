"""A slot in the key of every data table, by which a distributed PostgreSQL keeps related rows on one node.

Changes are kept with the counter that numbers them, a local transaction with its partition. Old keys are part of the
new ones, so there are no conflicts. These tables are small except changes, which a stream keeps for a day or a week.
They are copied once, which takes some seconds for a million. Open local transactions end as if they had expired (after
a minute): the id of a transaction now encodes its slot, and theirs do not.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import sqlalchemy
from alembic import op

revision = "0005"
down_revision = "0004"
REWRITES = ("counters", "tokens", "changes")

BATCH_ROWS = 2_000
NAME = sqlalchemy.Text().with_variant(sqlalchemy.Text(collation="C"), "postgresql")


def upgrade() -> None:
    connection = op.get_bind()
    for table in ("staged_writes", "partition_locks"):
        op.drop_table(table)
    _create_local_transactions()
    _with_slots(connection, "counters", ("name",), lambda name: slot_of(name))
    _with_slots(connection, "tokens", ("scope", "name"), lambda scope, name: slot_of(f"{scope}/{name}"))
    _move_changes(connection)


def slot_of(text: str) -> int:
    """Return the hash slot of a text (gateway/model/values/keys.py)."""
    return zlib.crc32(text.encode()) >> 24


def _with_slots(
    connection: sqlalchemy.Connection, name: str, keys: tuple[str, ...], slot: Callable[..., int]
) -> None:
    """Copy a table into one with slots, in batches in the order of its key."""
    old = f"{name}_of_0004"
    _set_aside(name, old)
    _CREATE[name]()
    table = sqlalchemy.Table(old, sqlalchemy.MetaData(), autoload_with=connection)
    made = sqlalchemy.Table(name, sqlalchemy.MetaData(), autoload_with=connection)
    columns = [table.c[key] for key in keys]
    after: tuple[str, ...] | None = None
    while True:
        statement = sqlalchemy.select(table).order_by(*columns).limit(BATCH_ROWS)
        if after is not None:
            statement = statement.where(sqlalchemy.tuple_(*columns) > sqlalchemy.tuple_(*after))
        batch = connection.execute(statement).mappings().all()
        if not batch:
            break
        after = tuple(batch[-1][key] for key in keys)
        rows = [{**row, "slot": slot(*(row[key] for key in keys))} for row in batch]
        connection.execute(sqlalchemy.insert(made), rows)
    op.drop_table(old)


def _move_changes(connection: sqlalchemy.Connection) -> None:
    """Copy changes shard by shard inside the database."""
    old = "changes_of_0004"
    op.drop_index("changes_by_time", "changes")
    _set_aside("changes", old)
    _create_changes()
    columns = ", ".join(
        column["name"]
        for column in sqlalchemy.inspect(connection).get_columns(old)
        if column["name"] != "slot"
    )
    copy = sqlalchemy.text(
        f"INSERT INTO changes (slot, {columns}) SELECT :slot, {columns} FROM {old}"
        " WHERE stream_id = :stream AND shard = :shard"
    )
    for stream, shard in connection.execute(sqlalchemy.text("SELECT stream_id, number FROM shards")).all():
        connection.execute(
            copy, {"slot": slot_of(f"shard/{stream}/{shard}"), "stream": stream, "shard": shard}
        )
    op.drop_table(old)
    op.create_index("changes_by_time", "changes", ["stream_id", "shard", "at_ms"], unique=False)


def _set_aside(name: str, old: str) -> None:
    """Rename a table and the index of its key, because index names are unique in PostgreSQL."""
    op.rename_table(name, old)
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"ALTER INDEX {name}_pkey RENAME TO {old}_pkey")


def _create_local_transactions() -> None:
    op.create_table(
        "partition_locks",
        sqlalchemy.Column("id", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("slot", sqlalchemy.SmallInteger(), nullable=False),
        sqlalchemy.Column("table_id", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("partition", sqlalchemy.LargeBinary(), nullable=False),
        sqlalchemy.Column("expires_at_ms", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("size_bytes", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("writes", sqlalchemy.Integer(), nullable=False),
        sqlalchemy.PrimaryKeyConstraint("id", "slot"),
        sqlalchemy.UniqueConstraint("table_id", "partition", "slot"),
    )
    op.create_table(
        "staged_writes",
        sqlalchemy.Column("transaction_id", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("slot", sqlalchemy.SmallInteger(), nullable=False),
        sqlalchemy.Column("ordinal", sqlalchemy.Integer(), nullable=False),
        sqlalchemy.Column("partition", sqlalchemy.LargeBinary(), nullable=False),
        sqlalchemy.Column("sort", sqlalchemy.LargeBinary(), nullable=False),
        sqlalchemy.Column("full_key", sqlalchemy.LargeBinary(), nullable=True),
        sqlalchemy.Column("kind", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("modified_at", sqlalchemy.BigInteger(), nullable=True),
        sqlalchemy.Column("size_bytes", sqlalchemy.Integer(), nullable=True),
        sqlalchemy.Column("kinds", sqlalchemy.LargeBinary(), nullable=True),
        sqlalchemy.Column("body", sqlalchemy.LargeBinary(), nullable=True),
        sqlalchemy.Column("actions", sqlalchemy.LargeBinary(), nullable=True),
        sqlalchemy.PrimaryKeyConstraint("transaction_id", "slot", "ordinal"),
    )


def _create_counters() -> None:
    op.create_table(
        "counters",
        sqlalchemy.Column("name", NAME, nullable=False),
        sqlalchemy.Column("slot", sqlalchemy.SmallInteger(), nullable=False),
        sqlalchemy.Column("value", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.PrimaryKeyConstraint("name", "slot"),
    )


def _create_tokens() -> None:
    op.drop_index("ix_tokens_expires_at_ms", "tokens_of_0004")
    op.create_table(
        "tokens",
        sqlalchemy.Column("scope", NAME, nullable=False),
        sqlalchemy.Column("name", NAME, nullable=False),
        sqlalchemy.Column("slot", sqlalchemy.SmallInteger(), nullable=False),
        sqlalchemy.Column("digest", sqlalchemy.LargeBinary(), nullable=False),
        sqlalchemy.Column("answer", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("expires_at_ms", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.PrimaryKeyConstraint("scope", "name", "slot"),
    )
    op.create_index("ix_tokens_expires_at_ms", "tokens", ["expires_at_ms"], unique=False)


def _create_changes() -> None:
    op.create_table(
        "changes",
        sqlalchemy.Column("stream_id", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("shard", sqlalchemy.Integer(), nullable=False),
        sqlalchemy.Column("sequence", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("slot", sqlalchemy.SmallInteger(), nullable=False),
        sqlalchemy.Column("at_ms", sqlalchemy.BigInteger(), nullable=False),
        sqlalchemy.Column("kind", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("noop", sqlalchemy.SmallInteger(), nullable=False),
        sqlalchemy.Column("actor", sqlalchemy.Text(), nullable=False),
        sqlalchemy.Column("key", sqlalchemy.LargeBinary(), nullable=False),
        sqlalchemy.Column("old_modified_at", sqlalchemy.BigInteger(), nullable=True),
        sqlalchemy.Column("old_kinds", sqlalchemy.LargeBinary(), nullable=True),
        sqlalchemy.Column("old_body", sqlalchemy.LargeBinary(), nullable=True),
        sqlalchemy.Column("new_modified_at", sqlalchemy.BigInteger(), nullable=True),
        sqlalchemy.Column("new_kinds", sqlalchemy.LargeBinary(), nullable=True),
        sqlalchemy.Column("new_body", sqlalchemy.LargeBinary(), nullable=True),
        sqlalchemy.Column("actions", sqlalchemy.LargeBinary(), nullable=True),
        sqlalchemy.PrimaryKeyConstraint("stream_id", "shard", "sequence", "slot"),
        sqlite_with_rowid=False,
    )


_CREATE = {"counters": _create_counters, "tokens": _create_tokens}
