"""The administration of a database by a command: of one that it opens, or of a running server (--url).

Both have the same operations (gateway/control/administration.py).
"""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode, urlsplit

import click

from tablegate.gateway.command_line.flags import AUDIT_SETTINGS, DATABASE_SETTINGS, ServerURL
from tablegate.gateway.command_line.opening import opened_database
from tablegate.gateway.configuration.settings import Settings

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
    from tablegate.gateway.control.answers import BadRequest, OperationRejected
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
