"""The database of a command: one that the command opens, or that of a running server (--url). Commands are recorded in the audit.

A database is opened, migrated to this release's schema, and closed. A command never creates a database. A wrong folder or
variable would otherwise give an empty one. The operations of administration are the same for both
(gateway/control/administration.py).

Each command that changes something is recorded. A command that is in none of the lists below counts as a change, so that a new
command is never omitted.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
import sys
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode, urlsplit

import click

from tablegate.gateway.command_line.errors import one_line_errors
from tablegate.gateway.command_line.options import AUDIT_SETTINGS, DATABASE_SETTINGS, ServerURL
from tablegate.gateway.configuration.database_urls import without_password
from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.observability import audit

READING_COMMANDS = frozenset(
    {
        "backup", "doctor", "tables", "tables list-backups", "streams list", "jobs list",
        "credentials list", "grants list", "quotas list",
    }
)  # fmt: skip
"""Commands that do not change the database."""
COMMANDS_WITH_OWN_RECORDS = frozenset(
    {
        "credentials add", "credentials bind", "credentials rotate", "credentials remove", "credentials reseal", "grants add",
        "grants remove", "quotas set", "quotas remove",
    }
)  # fmt: skip
"""Commands that write their own, more detailed audit records."""
_TABLE_PARAMETERS = ("table", "target")


def record_current_command() -> None:
    """Record the command that has run, if it changes something and writes no record itself."""
    context = click.get_current_context(silent=True)
    operation = "" if context is None else context.command_path.partition(" ")[2]
    if context is None or operation in READING_COMMANDS | COMMANDS_WITH_OWN_RECORDS:
        return
    given = context.params
    tables = [given[name] for name in _TABLE_PARAMETERS if isinstance(given.get(name), str)]
    audit.record_operation(operation, tables, "done")


@contextlib.contextmanager
def opened_database(settings: Settings) -> Iterator[Any]:
    """Open the database of these settings (wiring.OpenDatabase), with this release's schema. Raises ClickException.

    The name of the database is printed on standard error, because standard output has the results.
    """
    from tablegate.gateway.store.migrating import migrate as run
    from tablegate.gateway.store.migrating import revision_of
    from tablegate.gateway.wiring import connect, open_store

    path = settings.database_path
    if settings.memory:
        raise click.ClickException(
            "A database in memory cannot be opened by a command. Name a database with --database."
        )
    if path is not None and not path.is_file():
        raise _missing(settings)
    with one_line_errors():
        database = connect(settings)
        if not revision_of(database):
            database.close()
            raise _missing(settings)
        click.echo(f"Database: {without_password(settings.database)}", err=True)
        run(database)
        opened = open_store(settings, database)
        try:
            with _audited(settings, opened):
                yield opened
        finally:
            opened.close()


def _missing(settings: Settings) -> click.ClickException:
    shown = settings.database_path or without_password(settings.database)
    context = click.get_current_context(silent=True)
    takes_url = context is not None and "url" in context.params
    return click.ClickException(
        f"There is no tablegate database in {shown}. Create it with `tablegate migrate` or `tablegate serve`, or name"
        f" another database with --database{' or a running server with --url' if takes_url else ''}."
    )


def record_command(settings: Settings) -> None:
    """Record a command in the audit log that did not run in `opened_database`."""
    if settings.audit:
        with opened_database(settings):
            pass


@contextlib.contextmanager
def _audited(settings: Settings, opened: Any) -> Iterator[None]:
    """Record changes in the audit log, if one is set. `-` is standard error here: standard output has the results."""
    if not settings.audit:
        yield
        return
    from tablegate.gateway.observability.audit_sinks import recording

    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(recording(settings, opened.store, sys.stderr))
        except OSError as error:
            raise click.ClickException(
                f"Cannot write the audit log {settings.audit}: {error.strerror}."
            ) from None
        yield
        record_current_command()


ADMINISTRATION_SETTINGS = (*DATABASE_SETTINGS, *AUDIT_SETTINGS, "admin_token", "admin_token_file")
"""The settings of commands with URL_OPTION."""
URL_OPTION = click.option(
    "--url",
    type=ServerURL(),
    help="Server that runs the command on its database. It requires --admin-token or --admin-token-file.",
)
# A sweep may take long.
_TIMEOUT_S = 600.0

Operate = Callable[..., dict[str, Any]]
"""Run the operation (method, path) with the members of its document. Returns the reply."""


@contextlib.contextmanager
def administration(settings: Settings, url: str | None) -> Iterator[Operate]:
    """Return the function that runs the operations of the administrator. Raises ClickException."""
    if url is not None:
        yield _remote(settings, url)
        return
    from tablegate.gateway.control.documents import BadRequest, OperationRejected
    from tablegate.gateway.wiring import administration_of

    with opened_database(settings) as opened:
        operations = {
            (method, path): operation
            for method, path, operation in administration_of(settings, opened).operations()
        }

        def operate(method: str, path: str, **members: Any) -> dict[str, Any]:
            try:
                return operations[method, path](_given(members))
            except (BadRequest, OperationRejected) as error:
                raise click.ClickException(str(error)) from None

        yield operate


def _given(members: dict[str, Any]) -> dict[str, Any]:
    """Return the members that were given. An absent option is None."""
    return {name: value for name, value in members.items() if value is not None}


def _remote(settings: Settings, url: str) -> Operate:
    def operate(method: str, path: str, **members: Any) -> dict[str, Any]:
        given = _given(members)
        target = f"/_tablegate{path}" + (f"?{urlencode(given)}" if given and method == "GET" else "")
        body = None if method == "GET" else json.dumps(given)
        headers = {"Content-Type": "application/json"}
        if settings.admin_token:
            headers["Authorization"] = f"Bearer {settings.admin_token}"
        try:
            with contextlib.closing(_connection(url)) as connection:
                connection.request(method, target, body, headers)
                response = connection.getresponse()
                text = response.read()
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise click.ClickException(f"Cannot reach the server {url}: {error}") from None
        return _reply(url, response.status, text)

    return operate


def _connection(url: str) -> http.client.HTTPConnection:
    address = urlsplit(url)
    host = address.hostname or ""
    if address.scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, address.port, timeout=_TIMEOUT_S, context=context)
    return http.client.HTTPConnection(host, address.port, timeout=_TIMEOUT_S)


def _reply(url: str, status: int, text: bytes) -> dict[str, Any]:
    try:
        document = json.loads(text)
        message = "" if status == 200 else document["message"]
    except (ValueError, KeyError, TypeError):
        raise click.ClickException(
            f"{url} answered with status {status}, not as a tablegate server with --control."
        ) from None
    if status != 200:
        raise click.ClickException(f"{url}: {message}")
    result: dict[str, Any] = document
    return result
