"""Namespaces with a dialect: aws/ACCOUNT/REGION, azure/ACCOUNT, tablestore/INSTANCE.

Before, an Azure account and a Table Store instance of one name shared a namespace. Its tables go to the dialect that
created them: Table Store's tables keep a time with each cell ("stamped"), Azure's never do, even if the other dialect
altered them later. ACCOUNT/REGION was used by DynamoDB alone. The namespace `shared` keeps its name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import sqlalchemy
from alembic import op

revision = "0002"
down_revision = "0001"
REWRITES = ("tables", "streams", "namespace_properties")

SHARED = "shared"
AZURE_KEYS = ["PartitionKey", "RowKey"]

tables = sqlalchemy.table("tables", *map(sqlalchemy.column, ("id", "namespace", "rules")))
streams = sqlalchemy.table("streams", *map(sqlalchemy.column, ("id", "table_id", "namespace", "key_schema")))
documents = sqlalchemy.table("namespace_properties", sqlalchemy.column("namespace"))


def upgrade() -> None:
    connection = op.get_bind()
    renamed: dict[int, str] = {}
    for row in connection.execute(sqlalchemy.select(tables).where(tables.c.namespace != SHARED)):
        renamed[row.id] = namespace_now(
            row.namespace, "tablestore" if json.loads(row.rules)["stamped"] else "azure"
        )
    rename(connection, tables, renamed.items())
    rows = connection.execute(sqlalchemy.select(streams).where(streams.c.namespace != SHARED)).all()
    rename(
        connection, streams, [(row.id, renamed.get(row.table_id) or namespace_of_orphan(row)) for row in rows]
    )
    for (old,) in connection.execute(sqlalchemy.select(documents.c.namespace).distinct()).all():
        if old != SHARED:
            # Only Azure stores documents for an account as a whole.
            connection.execute(
                sqlalchemy.update(documents)
                .where(documents.c.namespace == old)
                .values(namespace=namespace_now(old, "azure"))
            )


def namespace_now(old: str, dialect: str) -> str:
    """Return the new name of a namespace. `dialect`: its owner, if its form leaves that open."""
    return f"aws/{old}" if "/" in old else f"{dialect}/{old}"


def namespace_of_orphan(stream: sqlalchemy.Row[tuple[str]]) -> str:
    """Return the new namespace of a stream of a dropped table.

    Of these two dialects only Table Store has streams. A stream of a table with Azure's two keys was enabled by Table
    Store on an Azure table. Such a stream can no longer be read.
    """
    keys = [column[0] for columns in json.loads(stream.key_schema) for column in columns]
    return namespace_now(stream.namespace, "azure" if keys == AZURE_KEYS else "tablestore")


def rename(
    connection: sqlalchemy.Connection, table: sqlalchemy.TableClause, renamed: Iterable[tuple[int, str]]
) -> None:
    """Store new namespaces by row id."""
    values = [{"row": identity, "now": namespace} for identity, namespace in renamed]
    if values:
        statement = sqlalchemy.update(table).where(table.c.id == sqlalchemy.bindparam("row"))
        connection.execute(statement.values(namespace=sqlalchemy.bindparam("now")), values)
