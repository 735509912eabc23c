"""Administration of the history, restores, backups and row counts of tables, by documents.

The operations belong to those of administration.py. They work for tables of all dialects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from tablegate.gateway.control.documents import (
    AdministratorOperation,
    BadRequest,
    OperationRejected,
    members_of,
    required,
    run,
)
from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.features.history.backup_commands import (
    RECOVERY_DAYS,
    Backup,
    CreateBackup,
    DeleteBackup,
    KeepHistory,
    ListBackups,
    RestoreTable,
)
from tablegate.gateway.model import errors
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.commands.table_commands import CountRows, CreateTable, FindTable
from tablegate.gateway.model.tables.tables import Table, is_reserved_namespace
from tablegate.gateway.security.credentials import SHARED_NAMESPACE

# That of DynamoDB and Table Store, the longest of the three services.
_MOST_NAME_CHARACTERS = 255


class TableAdministration:
    """The operations on one open database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def operations(self) -> Sequence[AdministratorOperation]:
        """Return (method, path, operation) of each operation."""
        return (
            ("PUT", "/tables/history", self._keep_history),
            ("POST", "/tables/restore", self._restore),
            ("POST", "/tables/recount", self._recount),
            ("GET", "/backups", self._list_backups),
            ("POST", "/backups", self._create_backup),
            ("DELETE", "/backups", self._delete_backup),
        )

    def _keep_history(self, given: dict[str, Any]) -> dict[str, Any]:
        """Keep the history of a table for some days. Without `days`, delete it and keep none."""
        members = members_of(given, table=str, namespace=str, days=int)
        days = members.get("days")
        if days is not None and not 1 <= days <= RECOVERY_DAYS:
            raise BadRequest(f"days must be from 1 to {RECOVERY_DAYS}")
        rule = self._run(KeepHistory(self._table(members), days)).rules.history
        return {"table": members["table"], "days": None if days is None or rule is None else rule.days}

    def _restore(self, given: dict[str, Any]) -> dict[str, Any]:
        """Create a table with the rows of another one at a time, or in a backup."""
        members = members_of(given, table=str, target=str, namespace=str, at=str, backup=str)
        if "at" in members and "backup" in members:
            raise BadRequest("give either at or backup")
        target, ticks = required(members, "target"), _ticks(members["at"]) if "at" in members else None
        if len(target) > _MOST_NAME_CHARACTERS:
            raise BadRequest(f"target must have at most {_MOST_NAME_CHARACTERS} characters")
        source: Table | Backup
        if "backup" in members:
            source = self._backup(members, members["backup"], required(members, "table"))
            definition = source.source
        else:
            source = definition = self._table(members)
        copied = CreateTable.like(definition, _namespace(members), target)
        self._run(RestoreTable(copied, source, ticks))
        return {"table": target}

    def _recount(self, given: dict[str, Any]) -> dict[str, Any]:
        """Count the rows of a table and of its indexes again."""
        members = members_of(given, table=str, namespace=str)
        counted = self._run(CountRows(self._table(members), again=True))
        return {
            "rows": counted.rows,
            "bytes": counted.size_bytes,
            "indexes": {
                name: {"rows": rows, "bytes": size_bytes}
                for name, (rows, size_bytes) in counted.indexes.items()
            },
        }

    def _list_backups(self, given: dict[str, Any]) -> dict[str, Any]:
        members = members_of(given, table=str, namespace=str)
        return {
            "backups": [
                {
                    "id": backup.label,
                    "table": backup.table_name,
                    "created_at_ms": backup.created_at_ms,
                    "is_available": backup.ready,
                    "rows": backup.rows,
                    "name": backup.name or backup.kind.value,
                }
                for backup in self._backups(members, members.get("table"))
            ]
        }

    def _create_backup(self, given: dict[str, Any]) -> dict[str, Any]:
        members = members_of(given, table=str, namespace=str, name=str)
        table = self._table(members)
        return {"id": self._run(CreateBackup(table, members.get("name") or members["table"])).label}

    def _delete_backup(self, given: dict[str, Any]) -> dict[str, Any]:
        members = members_of(given, id=str, namespace=str)
        backup = self._backup(members, required(members, "id"), None)
        self._run(DeleteBackup(backup))
        return {"id": backup.label}

    def _table(self, members: dict[str, Any]) -> Table:
        return self._run(FindTable(_namespace(members), required(members, "table")))

    def _backups(self, members: dict[str, Any], table: str | None) -> Iterator[Backup]:
        namespace, after = _namespace(members), ("", 0, 0)
        while page := self._run(ListBackups(namespace, after, table_name=table)):
            yield from page
            after = page[-1].place

    def _backup(self, members: dict[str, Any], backup_id: str, table: str | None) -> Backup:
        for backup in self._backups(members, table):
            if backup.label == backup_id:
                return backup
        of_table = f" of {table}" if table else ""
        raise OperationRejected(
            404, f"There is no backup {backup_id}{of_table}. `tablegate tables list-backups` lists all."
        )

    def _run(self, command: Command[Any]) -> Any:
        """Return the outcome of a command. Raises OperationRejected."""
        try:
            return run(self._engine, command)
        except errors.TableMissing as error:
            raise OperationRejected(
                404,
                f"There is no table {error.name} in this namespace. `tablegate tables` lists all tables with their "
                "namespaces. Name another one with --namespace.",
            ) from None
        except errors.TableExists as error:
            raise OperationRejected(
                409, f"The table {error.name} exists already. Choose another name."
            ) from None
        except errors.TimeNotRetained as error:
            raise OperationRejected(409, _not_retained(error)) from None
        except errors.BackupMissing:
            raise OperationRejected(404, "The backup was deleted.") from None
        except errors.BackupBusy:
            raise OperationRejected(
                409, "The backup is in use: it is being created or restored. Try again when that has ended."
            ) from None


def _not_retained(error: errors.TimeNotRetained) -> str:
    if error.earliest_ms is None or error.latest_ms is None:
        return f"No history of {error.name} is kept. Enable it with `tablegate tables keep-history`."
    first, last = (
        datetime.fromtimestamp(ms / 1000, UTC).isoformat() for ms in (error.earliest_ms, error.latest_ms)
    )
    return f"The history has times between {first} and {last} only. Choose one of them."


def _namespace(members: dict[str, Any]) -> str:
    namespace = str(members.get("namespace", SHARED_NAMESPACE))
    if is_reserved_namespace(namespace):
        raise BadRequest(f"the namespace {namespace} is reserved")
    return namespace


def _ticks(at: str) -> int:
    """Return a time in ISO 8601, UTC by default, in 100 ns since 1970."""
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        raise BadRequest(
            f"at: {at[:64]} is not a time in ISO 8601, for example 2026-11-22T10:42:00"
        ) from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000) * 10_000
