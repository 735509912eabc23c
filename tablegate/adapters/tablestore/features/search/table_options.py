"""The limits on the options of a table with search indexes."""

from __future__ import annotations

from collections.abc import Iterable

from tablegate.adapters.tablestore.table_properties import UPDATE_CHECKS, TableOptions
from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.gateway.features.search.search_commands import ListSearchIndexes
from tablegate.gateway.model.tables.tables import Rules, Table


async def _check_update(table: Table, rules: Rules, table_options: TableOptions) -> None:
    indexes = await ListSearchIndexes(table.namespace, table.name)
    if indexes:
        check_search_indexes(rules, table_options.allow_update, [index.lifetime_ms for _, index in indexes])


def check_search_indexes(rules: Rules, allow_update: bool, lifetimes_ms: Iterable[int | None]) -> None:
    """Raise ServiceError if a table with these options cannot have search indexes with these times to live.

    Source: "Virtual columns" and "Specify the TTL of a search index" (2026).
    """
    if rules.max_versions != 1:
        raise invalid("The max versions of a table with search index must be 1.")
    age_ms = None if rules.expiry is None else rules.expiry.age_ms
    if age_ms is not None and allow_update:
        raise invalid(
            "The time to live of a table with search index must be -1, or allow_update must be false."
        )
    for lifetime_ms in lifetimes_ms:
        if lifetime_ms is not None and allow_update:
            raise invalid("allow_update must be false if a search index has a time to live.")
        if lifetime_ms is not None and age_ms is not None and lifetime_ms > age_ms:
            raise invalid("The time to live of a search index must not exceed that of the table.")


UPDATE_CHECKS.append(_check_update)
