"""Engine commands on one table of a database, with retries while the database is busy or the table changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from tablegate.gateway.configuration.database_urls import BadDatabaseURL, normalise, without_password
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.configuration.settings import BadSetting
from tablegate.gateway.model import errors
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.commands.table_commands import AlterTable, FindTable
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.security import gate
from tablegate.gateway.security.credentials import SHARED_NAMESPACE
from tablegate.transfer.endpoints.database import opening
from tablegate.transfer.endpoints.database.opening import OpenDatabase
from tablegate.transfer.errors import (
    BadAddress,
    CannotResume,
    ServiceUnavailable,
    TableAbsent,
    TransferError,
)

_PATIENCE_S = 180.0
_EXPECTED = (
    errors.StaleTable,
    errors.TableBusy,
    errors.TableMissing,
    errors.PositionExpired,
    errors.StreamMissing,
)
"""The errors that callers of `Client.run` handle."""


class Client:
    """One table of a database by name."""

    def __init__(self, address: str) -> None:
        """Parse an address DATABASE-URL#[NAMESPACE/]TABLE without opening the database. Raises BadAddress."""
        url, hash_sign, table_path = address.rpartition("#")
        if not hash_sign or not url or not table_path:
            raise BadAddress(
                f"{_shown_url(address)}: the address must have the form DATABASE-URL#[NAMESPACE/]TABLE"
            )
        namespace, _, self.name = table_path.rpartition("/")
        self.namespace = namespace or SHARED_NAMESPACE
        try:
            self._url = normalise(url)
            self.settings = load({"database": self._url}, {})
        except (BadDatabaseURL, BadSetting) as error:
            raise BadAddress(str(error)) from None
        if self.settings.memory:
            raise BadAddress(
                "a database in memory is private to its process. Use a file or a database server"
            )
        self.shown = f"{_shown_url(self._url)}#{table_path}"
        self._known: Table | None = None
        self._opened: OpenDatabase | None = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the database if no other endpoint uses it."""
        with self._lock:
            database, self._opened = self._opened, None
        if database is not None:
            opening.release(self._url)

    def database(self) -> OpenDatabase:
        """Return the database, which the first call opens. A missing SQLite file is created."""
        with self._lock:
            if self._opened is None:
                self._opened = opening.acquire(self._url, self.settings, self.shown)
            return self._opened

    def remember(self, table: Table) -> None:
        with self._lock:
            self._known = table

    def find(self, is_refreshed: bool = False) -> Table:
        """Return the table. Raises TableAbsent, and CannotResume if it was replaced by another table."""
        with self._lock:
            remembered = self._known
        if remembered is not None and not is_refreshed:
            return remembered
        self.require_file()
        try:
            table: Table = self.run([FindTable(self.namespace, self.name)])[0]
        except errors.TableMissing:
            raise TableAbsent(f"{self.shown}: no such table") from None
        if remembered is not None and remembered.id != table.id:
            raise CannotResume(
                f"{self.shown}: the table was dropped and created again during the transfer. Start it again"
            )
        self.remember(table)
        return table

    def require_file(self) -> None:
        """Raise TableAbsent if the database file does not exist, so that no empty database is created."""
        path = self.settings.database_path
        if self._opened is None and path is not None and not path.exists():
            raise TableAbsent(f"{self.shown}: no such database")

    def on_table(
        self, commands_on: Callable[[Table], list[Command[Any]]], returns_errors: bool = False
    ) -> list[Any]:
        """Return the outcomes of commands that name the table, with retries while another process changes it."""
        until = time.monotonic() + _PATIENCE_S
        is_refreshed = False
        while True:
            try:
                return self.run(commands_on(self.find(is_refreshed)), returns_errors)
            except (errors.StaleTable, errors.TableBusy) as error:
                if time.monotonic() > until:
                    raise ServiceUnavailable(f"{self.shown}: the table keeps changing: {error!r}") from None
                is_refreshed = True
                time.sleep(0.05)

    def alter(self, command_on: Callable[[Table], AlterTable]) -> Table:
        """Change the table's definition and return the new table."""
        self.find(is_refreshed=True)
        altered: Table = self.on_table(lambda table: [command_on(table)])[0]
        self.remember(altered)
        return altered

    def run(self, commands: Sequence[Command[Any]], returns_errors: bool = False) -> list[Any]:
        """Return the outcomes of commands. Transient errors are retried for minutes.

        With `returns_errors`, other errors are returned as outcomes. Otherwise they are raised. Raises `_EXPECTED`,
        TransferError.
        """
        until = time.monotonic() + _PATIENCE_S
        pause = 0.1
        while True:
            outcomes = gate.run(self.database().engine, list(commands), None)
            transient = [
                result for result in outcomes if isinstance(result, (errors.Busy, errors.CommitUnknown))
            ]
            full = [result for result in transient if isinstance(result, errors.OutOfSpace)]
            if full:
                raise ServiceUnavailable(f"{self.shown}: the database is out of space: {full[0]}")
            if not transient:
                break
            if time.monotonic() > until:
                raise ServiceUnavailable(f"{self.shown}: the database is not available: {transient[0]}")
            time.sleep(pause)
            pause = min(2 * pause, 5.0)
        for outcome in outcomes:
            if isinstance(outcome, _EXPECTED):
                raise outcome
            if isinstance(outcome, errors.GatewayError) and not returns_errors:
                raise TransferError(f"{self.shown}: the database returned an error: {outcome!r}")
        return outcomes


def _shown_url(address: str) -> str:
    return "tablegate:" + without_password(address)
