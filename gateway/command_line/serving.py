"""serve."""

from __future__ import annotations

import os

import click

from tablegate.gateway.command_line.errors import told_in_one_line
from tablegate.gateway.command_line.flags import with_settings
from tablegate.gateway.configuration.settings import Settings


@click.command()
@with_settings(every=True)
def serve(settings: Settings) -> None:
    """Serve until told to stop."""
    if settings.workers > 1:
        import tempfile

        # Read by the metrics library when it is imported.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = tempfile.mkdtemp(prefix="tablegate-metrics-")
    from tablegate.gateway.server import serving

    with told_in_one_line():
        serving.serve(settings)
