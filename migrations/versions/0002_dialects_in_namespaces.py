"""A namespace says whose it is: aws/ACCOUNT/REGION, azure/ACCOUNT, tablestore/INSTANCE.

Before, an Azure account and a Table Store instance of one name were one namespace. Its tables go to whoever made them, which
is known of every table: those that Table Store made keep a time with each cell ("stamped"), those that Azure made never do,
whatever the other has altered since. ACCOUNT/REGION was DynamoDB's alone. The namespace `shared` stays everybody's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import sqlalchemy
from alembic import op

revision = "0002"
down_revision = "0001"

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
            # Only Azure keeps documents for an account as a whole.
            connection.execute(
                sqlalchemy.update(documents)
                .where(documents.c.namespace == old)
                .values(namespace=namespace_now(old, "azure"))
            )


def namespace_now(old: str, dialect: str) -> str:
    """What a namespace is called from now on. `dialect`: whose it is if its form does not tell."""
    return f"aws/{old}" if "/" in old else f"{dialect}/{old}"


def namespace_of_orphan(stream: sqlalchemy.Row[tuple[str]]) -> str:
    """That of a stream whose table is gone. Of these two dialects only Table Store has streams; but it may have switched one
    on for a table of Azure's, which has Azure's two keys, and then it is nobody's to read any longer."""
    keys = [column[0] for columns in json.loads(stream.key_schema) for column in columns]
    return namespace_now(stream.namespace, "azure" if keys == AZURE_KEYS else "tablestore")


def rename(
    connection: sqlalchemy.Connection, table: sqlalchemy.TableClause, renamed: Iterable[tuple[int, str]]
) -> None:
    """Write the new namespaces of rows, by their ids."""
    values = [{"row": identity, "now": namespace} for identity, namespace in renamed]
    if values:
        statement = sqlalchemy.update(table).where(table.c.id == sqlalchemy.bindparam("row"))
        connection.execute(statement.values(namespace=sqlalchemy.bindparam("now")), values)
