"""Commands that find, define, drop and count tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tablegate.gateway.model.authorization.quotas import TableLimit
from tablegate.gateway.model.commands.command import BaseCommand
from tablegate.gateway.model.tables.indexes import IndexProjection
from tablegate.gateway.model.tables.tables import Rules, Table
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.vectors import Metric


@dataclass(frozen=True, slots=True)
class NewIndex:
    """An index to create. `fill`: existing rows get entries. `dialect`: interprets the key columns (default: that of
    the command)."""

    name: str
    key_schema: KeySchema
    projection: IndexProjection
    included: tuple[str, ...] = ()
    local: bool = False
    properties: Mapping[str, Any] = field(default_factory=dict)
    fill: bool = True
    dialect: str = ""


@dataclass(frozen=True, slots=True)
class NewVectorIndex:
    """A vector index to create. Its members are those of VectorIndex. `dialect`: as in NewIndex."""

    name: str
    attribute: str
    dimensions: int
    metric: Metric
    projection: IndexProjection
    included: tuple[str, ...] = ()
    partition: KeyColumn | None = None
    filters: tuple[KeyColumn, ...] = ()
    dialect: str = ""


@dataclass(frozen=True, slots=True)
class FindTable(BaseCommand[Table]):
    """Look a table up by name, or by its Azure name. Outcome: Table. Error: TableMissing."""

    namespace: str
    name: str
    by_azure_name: bool = False


@dataclass(frozen=True, slots=True)
class ListTables(BaseCommand[list[Table]]):
    """List tables of a namespace by name, after a name, at most `limit`. Outcome: list of Table."""

    namespace: str
    after: str = ""
    limit: int | None = None
    by_azure_name: bool = False


@dataclass(frozen=True, slots=True)
class CreateTable(BaseCommand[Table]):
    """Create a table. Outcome: Table. Errors: TableExists, TableBusy, QuotaExceeded.

    `dialect` interprets the key columns of its indexes. `ignoring_case`: a table whose Azure name differs only in case
    counts as the same name. `bounds`: bounds of quotas.
    """

    dialect: str
    namespace: str
    name: str
    key_schema: KeySchema
    indexes: tuple[NewIndex, ...] = ()
    rules: Rules = field(default_factory=Rules)
    properties: Mapping[str, Any] = field(default_factory=dict)
    ignoring_case: bool = False
    vector_indexes: tuple[NewVectorIndex, ...] = ()
    bounds: tuple[TableLimit, ...] = ()


@dataclass(frozen=True, slots=True)
class AlterTable(BaseCommand[Table]):
    """Change rules, properties or indexes of a table. Outcome: Table. Errors: StaleTable, TableBusy, IndexMissing.

    - `properties`: the new properties, by dialect. Those of other dialects stay.
    - `add_indexes`: maintained from now on, filled in the background.
    - `instant`: the change is complete with the outcome. The table does not become UPDATING, and may be UPDATING
      already.
    """

    dialect: str
    table: Table
    rules: Rules | None = None
    properties: Mapping[str, Any] | None = None
    add_indexes: tuple[NewIndex, ...] = ()
    drop_indexes: tuple[str, ...] = ()
    index_properties: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    instant: bool = False
    add_vector_indexes: tuple[NewVectorIndex, ...] = ()


@dataclass(frozen=True, slots=True)
class AlterTables(BaseCommand["tuple[Table, ...]"]):
    """Change several tables in one transaction. Outcome: the tables in this order. Errors: those of AlterTable."""

    alterations: tuple[AlterTable, ...]


@dataclass(frozen=True, slots=True)
class DropTable(BaseCommand[Table]):
    """Drop a table, in constant time. Outcome: the former Table. Errors: TableMissing, TableBusy.

    `delay_ms`: minimum time for which the table is DELETING and its name taken.
    """

    table: Table
    delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class CountRows(BaseCommand["TableStatistics"]):
    """Return the number of rows and bytes of a table. Outcome: TableStatistics.

    `again`: count them by a scan, and replace the counts that writes maintain.
    """

    table: Table
    again: bool = False


@dataclass(frozen=True, slots=True)
class TableStatistics:
    """Rows and billed bytes of a table and of each of its indexes, by name."""

    rows: int
    size_bytes: int
    indexes: Mapping[str, tuple[int, int]]


TableCommand = FindTable | ListTables | CreateTable | AlterTable | AlterTables | DropTable | CountRows
