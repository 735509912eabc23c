"""Rows in the form of this dialect, for the console (gateway/console)."""

from __future__ import annotations

from typing import Any

from tablegate.adapters.azuretable.entities.entity_renderer import EntityFormat, MetadataLevel
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.security.credentials import DEV_AZURE_ACCOUNT

FORM = "OData"


def shown_row(table: Table, row: Row) -> Any:
    """Return an entity as a JSON document with the types of its properties, without addresses."""
    return EntityFormat(table, "", "", MetadataLevel.MINIMAL).member(row)


def snippet(table: Table, url: str) -> str:
    """Return a few lines of SDK code that read the table."""
    return f"""from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableClient

credential = AzureNamedKeyCredential({DEV_AZURE_ACCOUNT!r}, "your key")
table = TableClient({f"{url}/{DEV_AZURE_ACCOUNT}"!r}, {table.azure_name!r}, credential=credential)
for entity in table.list_entities(results_per_page=10):
    print(entity)
"""
