"""serve: run a server."""

from __future__ import annotations

import os

import click

from tablegate.gateway.command_line.errors import one_line_errors
from tablegate.gateway.command_line.flags import ALL_SETTINGS, with_settings
from tablegate.gateway.command_line.help_sections import SectionedCommand
from tablegate.gateway.configuration.settings import Settings


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
