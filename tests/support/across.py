"""Three official SDKs against one live server, for tests that read one dialect's tables through another.

Table Store's streams have no Python SDK. `ask` sends any Table Store operation as a protobuf message of this
repository.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import tablestore as ots
from azure.data.tables import TableClient

from tests.support.live_azure import LiveAzure
from tests.support.live_dynamodb import Live
from tests.support.live_tablestore import LiveTableStore

TYPES = {str: "STRING", int: "INTEGER", bytes: "BINARY"}


# Two servers may have one database, one after the other.
_NUMBERS = itertools.count()


@dataclass
class Across:
    """One server, three clients. Tables have names that all three can spell, and are of one test each."""

    url: str
    _numbers: Iterator[int] = field(default_factory=lambda: _NUMBERS)

    @cached_property
    def dynamodb(self) -> Live:
        return Live(self.url, _numbers=self._numbers)

    @cached_property
    def azure(self) -> LiveAzure:
        return LiveAzure(self.url, (f"table{number}" for number in self._numbers))

    @cached_property
    def tablestore(self) -> ots.OTSClient:
        return ots.OTSClient(self.url, "tablegate", "tablegate", "across", retry_policy=ots.NoRetryPolicy())

    def new_name(self) -> str:
        return f"across{next(self._numbers)}"

    def table(self, *key: str, name: str = "") -> str:
        """Create a Table Store table with key columns of the form "name:TYPE" and return its name."""
        name = name or self.new_name()
        meta = ots.TableMeta(name, [tuple(column.split(":")) for column in key])
        throughput = ots.ReservedThroughput(ots.CapacityUnit(0, 0))
        self.tablestore.create_table(meta, ots.TableOptions(), throughput)
        return name

    def put(self, table: str, key: dict[str, Any], **columns: Any) -> None:
        """PutRow."""
        row = ots.Row(list(key.items()), list(columns.items()))
        self.tablestore.put_row(table, row, ots.Condition(ots.RowExistenceExpectation.IGNORE))

    def get(self, table: str, key: dict[str, Any]) -> dict[str, Any] | None:
        """GetRow: its columns, key included, or None."""
        _, row, _ = self.tablestore.get_row(table, list(key.items()), max_version=1)
        return None if row is None else _columns(row)

    def rows(self, table: str, key_names: list[str]) -> list[dict[str, Any]]:
        """GetRange over the whole table."""
        lowest = [(name, ots.INF_MIN) for name in key_names]
        highest = [(name, ots.INF_MAX) for name in key_names]
        _, start, rows, _ = self.tablestore.get_range(
            table, ots.Direction.FORWARD, lowest, highest, max_version=1
        )
        assert start is None
        return [_columns(row) for row in rows]

    def entities(self, table: str) -> TableClient:
        """Return Azure's client for a table, by its Azure name."""
        return self.azure.service.get_table_client(table)

    def ask(self, operation: str, **members: Any) -> Any:
        """A Table Store operation as its messages are on the wire."""
        return LiveTableStore(self.url).call(operation, **members)


def _columns(row: Any) -> dict[str, Any]:
    return {column[0]: column[1] for column in (*row.primary_key, *row.attribute_columns)}
