"""The cache of table descriptors, one for each process."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import orjson

from tablegate.gateway.model.authorization.authorizations import Authorization
from tablegate.gateway.model.tables.tables import Table

# Approximate memory of a descriptor or an index without its properties, and of properties for each byte of their JSON.
_OBJECT_BYTES, _BYTES_FOR_JSON = 1_200, 3


class Cache:
    """Descriptors by (namespace, name), loaded at first use.

    If they need more memory than `capacity_bytes`, the least recently used ones are evicted.
    """

    def __init__(self, capacity_bytes: int = 64 << 20) -> None:
        self._capacity_bytes = capacity_bytes
        self._used_bytes = 0
        self._tables: OrderedDict[tuple[str, str], Table] = OrderedDict()
        self._sizes: dict[tuple[str, str], int] = {}
        self._by_id: dict[int, Table] = {}
        self._by_azure_name: dict[tuple[str, str], Table] = {}
        self._lock = threading.Lock()

    def get(
        self,
        namespace: str,
        name: str,
        by_azure_name: bool = False,
        authorization: Authorization | None = None,
    ) -> Table | None:
        """Return the cached descriptor of a table by its name, or by its Azure name in any case.

        None if it is absent, or if `authorization` forbids it.
        """
        key = namespace, name.lower() if by_azure_name else name
        table = (self._by_azure_name if by_azure_name else self._tables).get(key)
        if table is None or (authorization is not None and not authorization.reaches(table)):
            return None
        try:
            self._tables.move_to_end((namespace, table.name))
        except KeyError:  # another thread has removed it
            return table
        return table

    def by_id(self, table_id: int) -> Table | None:
        """Return the cached descriptor of a table by its id, or None."""
        return self._by_id.get(table_id)

    def keep(self, table: Table) -> None:
        """Insert a descriptor, or replace the one of the same name."""
        size = memory_bytes(table)
        with self._lock:
            old = self._tables.get((table.namespace, table.name))
            if old is not None:
                self._drop(old)
            while self._tables and self._used_bytes + size > self._capacity_bytes:
                self._drop(next(iter(self._tables.values())))
            self._used_bytes += size
            self._sizes[table.namespace, table.name] = size
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
        if (table.namespace, table.name) not in self._tables:
            self._used_bytes -= self._sizes.pop((table.namespace, table.name), 0)


def memory_bytes(table: Table) -> int:
    """Return the approximate memory of a descriptor."""
    documents = [table.properties, *(index.properties for index in table.indexes)]
    json_bytes = sum(len(orjson.dumps(document)) for document in documents)
    return _OBJECT_BYTES * (1 + len(table.all_indexes)) + _BYTES_FOR_JSON * json_bytes
