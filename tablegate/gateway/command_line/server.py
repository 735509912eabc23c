"""serve, config, healthcheck and wait: run a server, print its settings, and probe its readiness."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import time
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import click

from tablegate.gateway.command_line.errors import one_line_errors
from tablegate.gateway.command_line.options import (
    ALL_SETTINGS,
    FiniteFloatRange,
    SectionedCommand,
    ServerURL,
    loaded_settings,
    with_settings,
)
from tablegate.gateway.configuration.database_urls import without_password
from tablegate.gateway.configuration.settings import SETTINGS, Settings


@click.command(cls=SectionedCommand)
@with_settings(*ALL_SETTINGS)
def serve(settings: Settings) -> None:
    """Run a server until SIGTERM or SIGINT. It finishes the requests in progress first.

    Exit status: 0 stopped, 1 the start failed or the stop cut requests, 2 wrong command line.
    """
    if settings.workers > 1:
        import tempfile

        # The metrics library reads the variable when it is imported.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = tempfile.mkdtemp(prefix="tablegate-metrics-")
    from tablegate.gateway.server import serving

    with one_line_errors():
        serving.serve(settings)


_COLUMN = 60


@click.command(cls=SectionedCommand)
@click.option(
    "--example",
    is_flag=True,
    help="Print an example file instead: every setting with its meaning and default.",
)
@with_settings(*ALL_SETTINGS)
def config(settings: Settings, example: bool) -> None:
    """Print the settings in force, and where each comes from.

    The output is a file for --config. Secrets and passwords are omitted.
    """
    click.echo("\n".join(_example() if example else _in_force(settings)))


def _in_force(settings: Settings) -> Iterator[str]:
    loaded = loaded_settings()
    sources = {} if loaded is None else loaded.sources
    for group, names in _groups():
        yield f"# {group}"
        for name in names:
            value = getattr(settings, name)
            source = sources.get(name, "default")
            if f"{name}_file" in SETTINGS:  # a secret
                line = f"# {name} is {'set' if value else 'not set'}"
                source = sources.get(name) or sources.get(f"{name}_file", "default")
            elif value is None:
                line = f"# {name} is not set"
            else:
                line = f"{name} = {_toml(value)}"
            yield f"{line:<{_COLUMN}}  # {source}"
        yield ""


def _example() -> Iterator[str]:
    yield "# Settings of tablegate. Remove the # of a line to change a setting. Use the file with:"
    yield "#     tablegate serve --config FILE"
    for group, names in _groups():
        yield f"\n# {group}"
        for name in names:
            field = SETTINGS[name]
            yield f"\n# {field.metadata['meaning']}"
            yield f"# {name} = {'' if field.default is None else _toml(field.default)}".rstrip()


def _groups() -> Iterator[tuple[str, list[str]]]:
    for group, fields in groupby(SETTINGS.values(), key=lambda field: field.metadata["group"]):
        yield group, [field.name for field in fields]


def _toml(value: Any) -> str:
    """Return a value in the form of TOML, without the password of a database URL."""
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    # Strings of JSON are strings of TOML.
    return json.dumps(without_password(str(value)), ensure_ascii=False)


_PAUSE_S = 0.05
_URL = click.option(
    "--url", type=ServerURL(), help="URL of the server. Default: the host and port of the settings."
)
_ADDRESS_SETTINGS = ("host", "port", "tls_cert", "tls_key", "tls_self_signed")


@click.command(cls=SectionedCommand)
@_URL
@with_settings(*_ADDRESS_SETTINGS)
def healthcheck(settings: Settings, url: str | None) -> None:
    """Exit with status 0 if a server and its database are ready, otherwise with 1.

    Use it as the health check of a container.
    """
    address = _readiness_url(settings, url)
    try:
        click.echo(_probe(address))
    except OSError as error:
        raise click.ClickException(f"The server is not ready at {address}: {error}") from None


@click.command(cls=SectionedCommand)
@_URL
@click.option(
    "--seconds",
    metavar="SECONDS",
    type=FiniteFloatRange(0),
    default=30.0,
    show_default=True,
    help="Maximum time to wait, in seconds.",
)
@with_settings(*_ADDRESS_SETTINGS)
def wait(settings: Settings, url: str | None, seconds: float) -> None:
    """Wait until a server and its database are ready. Exit with status 1 after --seconds."""
    address = _readiness_url(settings, url)
    until = time.monotonic() + seconds
    while True:
        try:
            click.echo(_probe(address))
            return
        except OSError as error:
            if time.monotonic() > until:
                raise click.ClickException(
                    f"The server is not ready at {address} after {seconds:g} seconds: {error}"
                ) from None
        time.sleep(_PAUSE_S)


def _readiness_url(settings: Settings, url: str | None) -> str:
    scheme = "https" if settings.is_secure else "http"
    host = settings.host
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_unspecified:
            host = "127.0.0.1"
    return f"{url.rstrip('/') if url else f'{scheme}://{_bracketed(host)}:{settings.port}'}/readyz"


def _probe(address: str) -> str:
    """Return the reply of a server that is ready. Raises OSError if it is not."""
    import http.client
    import ssl
    import urllib.request

    # The probe tests readiness, not identity. The certificate may be for another name.
    context = ssl._create_unverified_context()
    try:
        with urllib.request.urlopen(address, timeout=5, context=context) as reply:
            text: str = reply.read().decode().strip()
            return text
    except (http.client.HTTPException, UnicodeDecodeError) as error:
        raise OSError(f"the answer is not that of a server of tablegate ({error!r})") from None


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
