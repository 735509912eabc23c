"""The command line: the group of all commands. The commands are in `gateway/command_line/`.

A package with further commands adds them to `_SECTIONS`. No other module under `gateway` names it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import click

from tablegate.gateway import __version__
from tablegate.gateway.command_line.options import write_commands

_SECTIONS = {
    "Server": {
        "serve": "gateway.command_line.server",
        "config": "gateway.command_line.server",
        "doctor": "gateway.command_line.doctor",
        "healthcheck": "gateway.command_line.server",
        "wait": "gateway.command_line.server",
        "migrate": "gateway.command_line.maintenance",
        "sweep": "gateway.command_line.maintenance",
        "vacuum": "gateway.command_line.maintenance",
    },
    "Tables and data": {
        "tables": "gateway.command_line.tables",
        "streams": "gateway.command_line.tables",
        "jobs": "gateway.command_line.tables",
        "backup": "gateway.command_line.maintenance",
        "distribute": "gateway.command_line.maintenance",
        "undistribute": "gateway.command_line.maintenance",
        "restore-point": "gateway.command_line.maintenance",
    },
    "Access": {
        "credentials": "gateway.command_line.access",
        "grants": "gateway.command_line.access",
        "quotas": "gateway.command_line.access",
    },
    "Transfers between services": {
        "lint": "transfer.comparison_commands",
        "copy": "transfer.commands",
        "verify": "transfer.comparison_commands",
        "diff": "transfer.comparison_commands",
        "signature": "transfer.comparison_commands",
    },
    "Recorded requests": {
        "record": "transfer.traffic.commands",
        "replay": "transfer.traffic.commands",
        "shadow": "transfer.traffic.commands",
    },
    "Replacements for other programs": {
        "dynamodb-local": "gateway.command_line.drop_ins",
        "azurite": "gateway.command_line.drop_ins",
        "azurite-table": "gateway.command_line.drop_ins",
    },
    "Assistants": {"mcp": "gateway.command_line.mcp"},
    "Shell": {"completion": "gateway.command_line.completion"},
}
"""The sections of `tablegate --help`: the commands of each, with the module that defines the function of that name."""
_MODULES = {name: module for commands in _SECTIONS.values() for name, module in commands.items()}
# Flags of the Java virtual machine, which stand before the archive in commands for the image of DynamoDB Local.
_JAVA_WORDS = ("-jar", "-D", "-X", "-javaagent:")


def words_of(program: str, words: Sequence[str]) -> list[str]:
    """Return the words of a command line, preceded by a drop-in command if they are for another program.

    The program's name or the first word decides. So the container image replaces that program's image without changes.
    """
    name = PurePath(program).name
    if name in ("azurite", "azurite-table"):
        return [name, *words]
    if name == "java" or words[:1] == ["java"] or (words and words[0].startswith(_JAVA_WORDS)):
        return ["dynamodb-local", *words]
    return [*words]


class _Commands(click.Group):
    """The group of commands. Only the requested one is loaded, because most of the time of a command is imports."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command. None if there is none of that name."""
        if cmd_name not in _MODULES:
            return None
        module = importlib.import_module(f"tablegate.{_MODULES[cmd_name]}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. An error of the operating system, such as a full disk, becomes one line."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # click ends without a message
            raise
        except OSError as error:
            from tablegate.gateway.command_line.errors import reason_of

            raise click.ClickException(reason_of(error)) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by sections."""
        for title, commands in _SECTIONS.items():
            write_commands(self, ctx, formatter, title, list(commands))


@click.group(
    cls=_Commands, context_settings={"max_content_width": 110, "help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__)
def main() -> None:
    """One server for the DynamoDB, Azure Table and Table Store APIs over SQLite or PostgreSQL.

    Each setting can be a flag, a variable TABLEGATE_<NAME> in the environment, or a key in a TOML file (--config).
    `tablegate config` prints the settings in force.

    Exit status of a command: 0 done, 1 failed, 2 wrong command line. Some commands define more in their help texts.
    """


if __name__ == "__main__":
    sys.exit(main(words_of("tablegate", sys.argv[1:]), prog_name="tablegate"))
