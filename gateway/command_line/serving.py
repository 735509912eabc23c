"""serve, and healthcheck, which asks a server whether it is there."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import tempfile

import click

from gateway.command_line.errors import told_in_one_line
from gateway.command_line.flags import with_settings
from gateway.settings import Settings


@click.command()
@with_settings(every=True)
def serve(settings: Settings) -> None:
    """Serve until told to stop."""
    if settings.workers > 1:
        # Read by the metrics library when it is imported.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = tempfile.mkdtemp(prefix="tablegate-metrics-")
    from gateway.server import serving

    with told_in_one_line():
        serving.serve(settings)


@click.command()
@click.option("--url", help="The server's address, if not the one that the settings say.")
@with_settings(every=True)
def healthcheck(settings: Settings, url: str | None) -> None:
    """Exit with 0 if a server is there and its database answers."""
    import ssl
    import urllib.request

    scheme = "https" if settings.is_secure else "http"
    host = settings.host
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_unspecified:
            host = "127.0.0.1"
    address = f"{url or f'{scheme}://{_bracketed(host)}:{settings.port}'}/readyz"
    # Whether the server is there is asked, not who it is: its certificate may be for another name.
    context = ssl._create_unverified_context()
    try:
        with urllib.request.urlopen(address, timeout=5, context=context) as reply:
            click.echo(reply.read().decode().strip())
    except OSError as error:
        raise click.ClickException(f"{address}: {error}") from None


def _bracketed(host: str) -> str:
    """A host as a URL has it."""
    return f"[{host}]" if ":" in host else host
