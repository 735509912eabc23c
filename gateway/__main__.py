"""The command line: one group, and every command that is in it. What commands do is in `gateway/command_line/`.

A package that has commands of its own adds them to COMMANDS: nothing else under `gateway` imports it.
"""

from __future__ import annotations

import sys

import click

from gateway import __version__
from gateway.command_line.credentials import credentials
from gateway.command_line.maintenance import migrate, sweep
from gateway.command_line.serving import healthcheck, serve, wait
from gateway.command_line.streams import streams
from gateway.command_line.tables import tables
from transfer.commands import COMMANDS as TRANSFER_COMMANDS
from transfer.traffic.commands import COMMANDS as TRAFFIC_COMMANDS

COMMANDS: tuple[click.Command, ...] = (
    serve,
    healthcheck,
    wait,
    migrate,
    sweep,
    tables,
    streams,
    credentials,
    *TRANSFER_COMMANDS,
    *TRAFFIC_COMMANDS,
)


@click.group(context_settings={"max_content_width": 110, "help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """One server that speaks the DynamoDB, Azure Table and Table Store APIs over SQLite or PostgreSQL.

    Every flag may be given as TABLEGATE_<NAME> in the environment, or in a TOML file named by --config.
    """


for command in COMMANDS:
    main.add_command(command)


if __name__ == "__main__":
    sys.exit(main(prog_name="tablegate"))
