"""Commands of the engine on one table of a database, tried again while the database is busy or the table changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from tablegate.gateway.configuration.database_urls import BadDatabaseURL, normalise, without_password
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.configuration.settings import BadSetting
from tablegate.gateway.model import errors
from tablegate.gateway.model.commands.commands import AnyCommand
from tablegate.gateway.model.commands.table_commands import AlterTable, FindTable
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.security import gate
from tablegate.gateway.security.credentials import SHARED_NAMESPACE
from tablegate.transfer.endpoints.database import opening
from tablegate.transfer.endpoints.database.opening import OpenDatabase
from tablegate.transfer.errors import (
    BadAddress,
    SchemaChanged,
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
    """One table of a database, by its name."""

    def __init__(self, address: str) -> None:
        """`address`: DATABASE-URL#[NAMESPACE/]TABLE. Nothing is opened yet. Raises BadAddress."""
        url, hash_sign, place = address.rpartition("#")
        if not hash_sign or not url or not place:
            raise BadAddress(
                f"{_shown_url(address)}: a table of a database is DATABASE-URL#[NAMESPACE/]TABLE"
            )
        namespace, _, self.name = place.rpartition("/")
        self.namespace = namespace or SHARED_NAMESPACE
        try:
            self._url = normalise(url)
            self.settings = load({"database": self._url}, {})
        except (BadDatabaseURL, BadSetting) as error:
            raise BadAddress(str(error)) from None
        if self.settings.memory:
            raise BadAddress("a database in memory is its process's alone; name a file or a server")
        self.shown = f"{_shown_url(self._url)}#{place}"
        self._known: Table | None = None
        self._opened: OpenDatabase | None = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the database, unless another endpoint uses it."""
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None:
            opening.release(self._url)

    def database(self) -> OpenDatabase:
        """The database, opened at the first call. A missing SQLite file is created."""
        with self._lock:
            if self._opened is None:
                self._opened = opening.acquire(self._url, self.settings, self.shown)
            return self._opened

    def remember(self, table: Table) -> None:
        """Take a definition of the table as the current one."""
        with self._lock:
            self._known = table

    def find(self, anew: bool = False) -> Table:
        """The table. Raises TableAbsent; SchemaChanged if it is another one than it was."""
        with self._lock:
            known = self._known
        if known is not None and not anew:
            return known
        self.require_file()
        try:
            table: Table = self.run([FindTable(self.namespace, self.name)])[0]
        except errors.TableMissing:
            raise TableAbsent(f"{self.shown}: there is no such table") from None
        if known is not None and known.id != table.id:
            raise SchemaChanged(f"{self.shown}: the table was dropped and made anew meanwhile")
        self.remember(table)
        return table

    def require_file(self) -> None:
        """Raise TableAbsent for a file that does not exist, which is no empty database."""
        path = self.settings.database_path
        if self._opened is None and path is not None and not path.exists():
            raise TableAbsent(f"{self.shown}: there is no such database")

    def on_table(self, commands_on: Callable[[Table], list[AnyCommand]], refusals: bool = False) -> list[Any]:
        """Outcomes of commands that name the table, tried again while another process changes it."""
        until = time.monotonic() + _PATIENCE_S
        anew = False
        while True:
            try:
                return self.run(commands_on(self.find(anew)), refusals)
            except (errors.StaleTable, errors.TableBusy) as error:
                if time.monotonic() > until:
                    raise ServiceUnavailable(f"{self.shown}: the table keeps changing: {error!r}") from None
                anew = True
                time.sleep(0.05)

    def alter(self, command_on: Callable[[Table], AlterTable]) -> Table:
        """The table after a change of its definition."""
        self.find(anew=True)
        altered: Table = self.on_table(lambda table: [command_on(table)])[0]
        self.remember(altered)
        return altered

    def run(self, commands: Sequence[AnyCommand], refusals: bool = False) -> list[Any]:
        """The outcomes of commands. What may pass is tried again for minutes; other errors are raised, or given back where the
        caller deals with `refusals`. Raises `_EXPECTED`, TransferError."""
        until = time.monotonic() + _PATIENCE_S
        pause = 0.1
        while True:
            outcomes = gate.run(self.database().engine, list(commands), None)
            passing = [each for each in outcomes if isinstance(each, (errors.Busy, errors.CommitUnknown))]
            full = [each for each in passing if isinstance(each, errors.OutOfSpace)]
            if full:
                raise ServiceUnavailable(f"{self.shown}: the database has no room for more: {full[0]}")
            if not passing:
                break
            if time.monotonic() > until:
                raise ServiceUnavailable(f"{self.shown}: the database: {passing[0]}")
            time.sleep(pause)
            pause = min(2 * pause, 5.0)
        for outcome in outcomes:
            if isinstance(outcome, _EXPECTED):
                raise outcome
            if isinstance(outcome, errors.GatewayError) and not refusals:
                raise TransferError(f"{self.shown}: the database: {outcome!r}")
        return outcomes


def _shown_url(address: str) -> str:
    return "tablegate:" + without_password(address)
