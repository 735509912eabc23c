"""How DynamoDB calls a table of any dialect: for `tablegate tables`."""

from __future__ import annotations

from adapters.dynamodb.tables.descriptions import shown_table_keys
from gateway.model.tables import Table


def listed(table: Table) -> tuple[str, str, str]:
    """(name, key attributes, address). In the ARN "*" stands for whatever account and region a caller has."""
    keys = ", ".join(f"{key.name} {key.role} {key.type}" for key in shown_table_keys(table.key_schema))
    return table.name, keys, f"arn:aws:dynamodb:*:*:table/{table.name}"
