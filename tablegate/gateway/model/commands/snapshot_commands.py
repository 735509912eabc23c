"""Commands of the control API about whole namespaces: reset, copy, export and import."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tablegate.gateway.model.authorization.permissions import Permission
from tablegate.gateway.model.commands.command import ControlCommand
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.rows import Row


@dataclass(frozen=True, slots=True)
class ResetTables(ControlCommand[int]):
    """Drop tables, or empty them, atomically. Outcome: number of tables. Error: TableMissing if one of `names` does not
    exist.

    - `namespace`: None for all namespaces.
    - `names`: None for all tables. Then backups and jobs are dropped with the tables.
    - `keeps_definitions`: the tables become empty, and their definitions stay.
    """

    namespace: str | None = None
    names: frozenset[str] | None = None
    keeps_definitions: bool = False

    permission = Permission.ADMINISTER


class DocumentChange(NamedTuple):
    """A change of a document (PutProperties) in the transaction of another command.

    `apply` is called with the document, empty if it does not exist, and the outcome of the command. It returns the new
    document. An exception rolls back the transaction.
    """

    namespace: str
    name: str
    apply: Callable[[dict[str, Any], int], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class CopyTables(ControlCommand[int]):
    """Replace the tables of namespaces by copies of the tables of others, with their rows, in one snapshot.

    `copies`: (source, target), each target once. `empties`: prefix of further namespaces to empty. Outcome: number of
    tables. Error: TableBusy while an index of a source is being filled.
    """

    copies: tuple[tuple[str, str], ...]
    empties: str = ""
    records: DocumentChange | None = None

    permission = Permission.ADMINISTER


@dataclass(frozen=True, slots=True)
class DescribeTables(ControlCommand[list[tuple[Table, dict[str, Any]]]]):
    """Describe the tables of a namespace. Outcome: each Table with its document for `ImportDefinition`, by id."""

    namespace: str

    permission = Permission.ADMINISTER


@dataclass(frozen=True, slots=True)
class ImportDefinition(ControlCommand[Table]):
    """Create an empty table from a document, in a namespace of copies. Outcome: Table.

    No other command writes to such a namespace. Errors: TableExists, InvalidInput `document`.
    """

    namespace: str
    document: Mapping[str, Any]

    permission = Permission.ADMINISTER


@dataclass(frozen=True, slots=True)
class ImportRows(ControlCommand[None]):
    """Put unchanged rows into an empty table that ImportDefinition has created. Outcome: None. Error: InvalidInput
    `rows`."""

    table: Table
    rows: Sequence[Row]

    permission = Permission.ADMINISTER


@dataclass(frozen=True, slots=True)
class ListNamespaces(ControlCommand[list[str]]):
    """List the namespaces that have tables and begin with `prefix`. Outcome: sorted names."""

    prefix: str = ""

    permission = Permission.ADMINISTER
