"""healthcheck and wait: probes of a server's readiness."""

from __future__ import annotations

import contextlib
import ipaddress
import time

import click

from tablegate.gateway.command_line.flags import FiniteFloatRange, ServerURL, with_settings
from tablegate.gateway.command_line.help_sections import SectionedCommand
from tablegate.gateway.configuration.settings import Settings

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
