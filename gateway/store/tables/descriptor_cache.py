"""The cache of table descriptors, one for each process."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

from tablegate.gateway.model.tables.tables import Table


class Cache:
    """Descriptors by (namespace, name), loaded at first use. Beyond `capacity`, the least recently used one is evicted."""

    def __init__(self, capacity: int = 10_000) -> None:
        self._capacity = capacity
        self._tables: OrderedDict[tuple[str, str], Table] = OrderedDict()
        self._by_id: dict[int, Table] = {}
        self._by_azure_name: dict[tuple[str, str], Table] = {}
        self._lock = threading.Lock()

    def get(self, namespace: str, name: str) -> Table | None:
        """Return the cached descriptor of a table, or None."""
        table = self._tables.get((namespace, name))
        if table is not None:
            try:
                self._tables.move_to_end((namespace, name))
            except KeyError:  # another thread has removed it
                return table
        return table

    def get_azure(self, namespace: str, azure_name: str) -> Table | None:
        """Return the cached descriptor of a table by its Azure name, in any case, or None."""
        table = self._by_azure_name.get((namespace, azure_name.lower()))
        return None if table is None else self.get(namespace, table.name)

    def by_id(self, table_id: int) -> Table | None:
        """Return the cached descriptor of a table by its id, or None."""
        return self._by_id.get(table_id)

    def keep(self, table: Table) -> None:
        """Insert a descriptor, or replace the one of the same name."""
        with self._lock:
            old = self._tables.get((table.namespace, table.name))
            if old is not None:
                self._drop(old)
            elif len(self._tables) >= self._capacity:
                self._drop(next(iter(self._tables.values())))
            self._tables[table.namespace, table.name] = table
            self._by_id[table.id] = table
            self._by_azure_name[table.namespace, table.azure_name.lower()] = table

    def forget(self, table_id: int) -> None:
        """Remove a descriptor, if it is cached."""
        with self._lock:
            table = self._by_id.get(table_id)
            if table is not None:
                self._drop(table)

    def _drop(self, table: Table) -> None:
        maps: tuple[tuple[Any, Any], ...] = (
            (self._by_id, table.id),
            (self._tables, (table.namespace, table.name)),
            (self._by_azure_name, (table.namespace, table.azure_name.lower())),
        )
        for index, key in maps:
            if index.get(key) is table:
                del index[key]
