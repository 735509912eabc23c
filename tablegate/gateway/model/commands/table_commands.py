"""Commands that find, define, drop and count tables, and those for the documents that a dialect stores for an account."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tablegate.gateway.model.authorization.accesses import Access, Path, also, finer, on_table
from tablegate.gateway.model.authorization.permissions import Permission, Purpose
from tablegate.gateway.model.authorization.quotas import TableLimit
from tablegate.gateway.model.commands.command import AccountRead, ControlCommand
from tablegate.gateway.model.tables.indexes import BaseIndex, Index, IndexProjection
from tablegate.gateway.model.tables.tables import RESOURCE_POLICIES, Rules, Table
from tablegate.gateway.model.values.keys import KeySchema

_ALTERING = (
    Permission.ALTER, Permission.TAG, Permission.UNTAG, Permission.ALTER_EXPIRY, Permission.WRITE_POLICY,
    Permission.REMOVE_POLICY, Permission.CREATE_INDEX, Permission.DROP_INDEX, Permission.ALTER_FEATURES,
    Permission.ADD_COLUMNS, Permission.DROP_COLUMNS,
    Permission.ALTER_INSIGHTS, Permission.ALTER_DELIVERIES, Permission.ALTER_RECOVERY,
)  # fmt: skip
_OF_POLICIES = (Permission.WRITE_POLICY, Permission.REMOVE_POLICY)


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

    @classmethod
    def like(cls, index: Index) -> NewIndex:
        """Return a definition of the same index."""
        return cls(
            index.name,
            index.key_schema,
            index.projection,
            index.included,
            index.local,
            dict(index.properties),
            dialect=index.dialect,
        )


@dataclass(frozen=True, slots=True)
class FindTable(ControlCommand[Table]):
    """Look a table up by name, or by its Azure name. Outcome: Table. Error: TableMissing."""

    namespace: str
    name: str
    by_azure_name: bool = False

    is_look_up = True

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        """Return none. The table is authorized under its own name afterwards."""
        return ()


@dataclass(frozen=True, slots=True)
class ListTables(AccountRead[list[Table]]):
    """List tables of a namespace by name, after a name, at most `limit`. Outcome: list of Table."""

    namespace: str
    after: str = ""
    limit: int | None = None
    by_azure_name: bool = False

    permission = Permission.LIST


@dataclass(frozen=True, slots=True)
class CreateTable(ControlCommand[Table]):
    """Create a table. Outcome: Table. Errors: TableExists, TableBusy, QuotaExceeded.

    `dialect` interprets the key columns of its indexes. `ignoring_case`: a table whose Azure name differs only in case
    counts as the same name. `other_indexes`: definitions of indexes of other kinds. Their ids and states are
    ignored, and `dialect` is as in NewIndex. `bounds`: bounds of quotas.
    """

    dialect: str
    namespace: str
    name: str
    key_schema: KeySchema
    indexes: tuple[NewIndex, ...] = ()
    rules: Rules = field(default_factory=Rules)
    properties: Mapping[str, Any] = field(default_factory=dict)
    ignoring_case: bool = False
    other_indexes: tuple[BaseIndex, ...] = ()
    bounds: tuple[TableLimit, ...] = ()

    @classmethod
    def like(cls, table: Table, namespace: str, name: str) -> CreateTable:
        """Return a definition like that of another table, without its stream, its history and its resource policies.

        The policies grant access to the original table only.
        """
        return cls(
            "",
            namespace,
            name,
            table.key_schema,
            tuple(NewIndex.like(index) for index in table.indexes),
            replace(table.rules.independent(), stream=None),
            {name: value for name, value in table.properties.items() if name != RESOURCE_POLICIES},
            other_indexes=table.other_indexes,
        )

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        for permission in (Permission.CREATE, *purpose.also):
            yield Access(permission, purpose.channel, self.namespace, self.name, self)

    def with_bounds(self, bounds: tuple[TableLimit, ...]) -> CreateTable:
        return replace(self, bounds=bounds)


@dataclass(frozen=True, slots=True)
class AlterTable(ControlCommand[Table]):
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
    add_other_indexes: tuple[BaseIndex, ...] = ()

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        table = self.table
        permission = finer(purpose, *_ALTERING)
        paths = self._paths_of_policies() if permission in _OF_POLICIES else [table.name]
        for path in paths:
            yield Access(permission, purpose.channel, table.namespace, path, self, table)
        yield from also(self, table, purpose)

    def _paths_of_policies(self) -> Iterable[Path]:
        """Return the resources with changed policies: the table, or streams of it."""
        old = self.table.properties.get(RESOURCE_POLICIES, {})
        new = (self.properties or {}).get(RESOURCE_POLICIES, {})
        labels = [label for label in dict.fromkeys((*old, *new)) if old.get(label) != new.get(label)]
        for label in labels or [""]:
            yield f"{self.table.name}/stream/{label}" if label else self.table.name


@dataclass(frozen=True, slots=True)
class AlterTables(ControlCommand["tuple[Table, ...]"]):
    """Change several tables in one transaction. Outcome: the tables in this order. Errors: those of AlterTable."""

    alterations: tuple[AlterTable, ...]

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        for alteration in self.alterations:
            yield from alteration.accesses(purpose)


@dataclass(frozen=True, slots=True)
class DropTable(ControlCommand[Table]):
    """Drop a table, in constant time. Outcome: the former Table. Errors: TableMissing, TableBusy.

    `delay_ms`: minimum time for which the table is DELETING and its name taken.
    """

    table: Table
    delay_ms: int = 0

    permission = Permission.DROP


@dataclass(frozen=True, slots=True)
class CountRows(ControlCommand["TableStatistics"]):
    """Return the number of rows and bytes of a table. Outcome: TableStatistics.

    `again`: count them by a scan, and replace the counts that writes maintain.
    """

    table: Table
    again: bool = False

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        """Return the access of the request's own permission, because counts are part of its answer."""
        yield on_table(self, self.table, purpose.permissions[0], purpose)


@dataclass(frozen=True, slots=True)
class TableStatistics:
    """Rows and billed bytes of a table and of each of its indexes, by name."""

    rows: int
    size_bytes: int
    indexes: Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class GetProperties(AccountRead[dict[str, Any] | None]):
    """Read a document of a namespace by name. Outcome: the document, or None."""

    namespace: str
    name: str

    permission = Permission.READ_ACCOUNT


@dataclass(frozen=True, slots=True)
class PutProperties(ControlCommand[None]):
    """Store a document (plain JSON values) of a namespace by name. Outcome: None."""

    namespace: str
    name: str
    document: Mapping[str, Any]

    permission = Permission.WRITE_ACCOUNT
