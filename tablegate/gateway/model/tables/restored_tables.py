"""Definitions of tables that receive the rows of another table."""

from __future__ import annotations

import dataclasses

from tablegate.gateway.model.commands.table_commands import CreateTable, NewIndex
from tablegate.gateway.model.tables.tables import RESOURCE_POLICIES, Table


def copied_definition(source: Table, namespace: str, name: str) -> CreateTable:
    """Return a definition like that of another table, without its stream, its history and its resource policies.

    The policies grant access to the original table only.
    """
    rules = dataclasses.replace(source.rules.independent(), stream=None)
    return CreateTable(
        "",
        namespace,
        name,
        source.key_schema,
        indexes_like(source),
        rules,
        {name: value for name, value in source.properties.items() if name != RESOURCE_POLICIES},
        other_indexes=source.other_indexes,
    )


def indexes_like(source: Table) -> tuple[NewIndex, ...]:
    """Return definitions of the same indexes as another table."""
    return tuple(
        NewIndex(
            index.name,
            index.key_schema,
            index.projection,
            index.included,
            index.local,
            dict(index.properties),
            dialect=index.dialect,
        )
        for index in source.indexes
    )
