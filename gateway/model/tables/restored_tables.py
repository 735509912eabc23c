"""The definition of a table that is to have the rows of another."""

from __future__ import annotations

import dataclasses

from tablegate.gateway.model.commands.table_commands import CreateTable, NewIndex, NewVectorIndex
from tablegate.gateway.model.tables.tables import RESOURCE_POLICIES, Rules, Table


def alone(rules: Rules) -> Rules:
    """The rules of a table that is made again, or restored: without what belongs to the table that it is made of, as its history,
    those who follow it and its replicas."""
    return dataclasses.replace(
        rules, history=None, has_local_transactions=False, followed=False, log=None, replication=None
    )


def like(source: Table, namespace: str, name: str) -> CreateTable:
    """The definition of a table as another was defined, without its stream, its history and its policies, which let callers do
    something to the other one alone."""
    rules = dataclasses.replace(alone(source.rules), stream=None)
    return CreateTable(
        "",
        namespace,
        name,
        source.key_schema,
        indexes_like(source),
        rules,
        {name: known for name, known in source.properties.items() if name != RESOURCE_POLICIES},
        vector_indexes=vector_indexes_like(source),
    )


def indexes_like(source: Table) -> tuple[NewIndex, ...]:
    """Indexes as another table has them."""
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


def vector_indexes_like(source: Table) -> tuple[NewVectorIndex, ...]:
    """Vector indexes as another table has them."""
    return tuple(
        NewVectorIndex(
            index.name,
            index.attribute,
            index.dimensions,
            index.metric,
            index.projection,
            index.included,
            index.partition,
            index.filters,
            index.dialect,
        )
        for index in source.vector_indexes
    )
