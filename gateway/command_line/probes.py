"""healthcheck and wait, which ask a server whether it is there."""

from __future__ import annotations

import contextlib
import ipaddress
import time

import click

from tablegate.gateway.command_line.flags import with_settings
from tablegate.gateway.configuration.settings import Settings

_PAUSE_S = 0.05


@click.command()
@click.option("--url", help="The server's address, if not the one that the settings say.")
@with_settings(every=True)
def healthcheck(settings: Settings, url: str | None) -> None:
    """Exit with 0 if a server is there and its database answers."""
    address = _readiness(settings, url)
    try:
        click.echo(_asked(address))
    except OSError as error:
        raise click.ClickException(f"{address}: {error}") from None


@click.command()
@click.option("--url", help="The server's address, if not the one that the settings say.")
@click.option("--seconds", default=30.0, show_default=True, help="How long to wait at most.")
@with_settings(every=True)
def wait(settings: Settings, url: str | None, seconds: float) -> None:
    """Wait until a server is there and its database answers; exit with 1 if that takes too long."""
    address = _readiness(settings, url)
    until = time.monotonic() + seconds
    while True:
        try:
            click.echo(_asked(address))
            return
        except OSError as error:
            if time.monotonic() > until:
                raise click.ClickException(f"{address}, after {seconds:g} seconds: {error}") from None
        time.sleep(_PAUSE_S)


def _readiness(settings: Settings, url: str | None) -> str:
    """The address at which a server tells whether it is ready."""
    scheme = "https" if settings.is_secure else "http"
    host = settings.host
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_unspecified:
            host = "127.0.0.1"
    return f"{url.rstrip('/') if url else f'{scheme}://{_bracketed(host)}:{settings.port}'}/readyz"


def _asked(address: str) -> str:
    """What a server says of itself. Raises OSError if it is not ready."""
    import ssl
    import urllib.request

    # Whether the server is there is asked, not who it is: its certificate may be for another name.
    context = ssl._create_unverified_context()
    with urllib.request.urlopen(address, timeout=5, context=context) as reply:
        said: str = reply.read().decode().strip()
        return said


def _bracketed(host: str) -> str:
    """A host as a URL has it."""
    return f"[{host}]" if ":" in host else host
