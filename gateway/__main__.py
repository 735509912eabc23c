"""The command line: the group of all commands. The commands are in `gateway/command_line/`.

A package with further commands adds them to `other_commands`. No other module under `gateway` imports it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import click

from tablegate.gateway import __version__
from tablegate.gateway.command_line.help_sections import write_commands
from tablegate.gateway.command_line.serving import serve

_SECTIONS = {
    "Server": ("serve", "config", "doctor", "healthcheck", "wait", "migrate", "sweep", "vacuum"),
    "Tables and data": ("tables", "streams", "jobs", "backup", "distribute", "undistribute"),
    "Access": ("credentials", "grants", "quotas"),
    "Transfers between services": ("lint", "copy", "verify", "diff", "signature"),
    "Recorded requests": ("record", "replay", "shadow"),
    "Replacements for other programs": ("dynamodb-local", "azurite", "azurite-table"),
    "Assistants": ("mcp",),
    "Shell": ("completion",),
}
"""The sections of `tablegate --help`. Commands without a section are listed last."""
_DROP_INS = frozenset({"dynamodb-local", "azurite", "azurite-table"})
_PROBES = frozenset({"healthcheck", "wait"})
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


def drop_ins() -> tuple[click.Command, ...]:
    """Return the commands with the command lines of other programs."""
    from tablegate.gateway.command_line.azurite import azurite, azurite_table
    from tablegate.gateway.command_line.dynamodb_local import dynamodb_local

    return dynamodb_local, azurite, azurite_table


def probes() -> tuple[click.Command, ...]:
    """Return the probe commands. They run often, so they load no other command."""
    from tablegate.gateway.command_line.probes import healthcheck, wait

    return healthcheck, wait


def other_commands() -> tuple[click.Command, ...]:
    """Return the commands that only they and `--help` load. The start of a server does not."""
    from tablegate.gateway.command_line.backup import backup
    from tablegate.gateway.command_line.completion import completion
    from tablegate.gateway.command_line.config import config
    from tablegate.gateway.command_line.credentials import credentials
    from tablegate.gateway.command_line.distributing import distribute, undistribute
    from tablegate.gateway.command_line.doctor import doctor
    from tablegate.gateway.command_line.grants import grants
    from tablegate.gateway.command_line.jobs import jobs
    from tablegate.gateway.command_line.maintenance import migrate, sweep, vacuum
    from tablegate.gateway.command_line.mcp import mcp
    from tablegate.gateway.command_line.quotas import quotas
    from tablegate.gateway.command_line.streams import streams
    from tablegate.gateway.command_line.tables import tables
    from tablegate.transfer.commands import COMMANDS as TRANSFER_COMMANDS
    from tablegate.transfer.traffic.commands import COMMANDS as TRAFFIC_COMMANDS

    return (
        config,
        completion,
        migrate,
        mcp,
        sweep,
        vacuum,
        backup,
        doctor,
        tables,
        streams,
        jobs,
        credentials,
        grants,
        quotas,
        distribute,
        undistribute,
        *TRANSFER_COMMANDS,
        *TRAFFIC_COMMANDS,
    )


class _Commands(click.Group):
    """The group of commands, which are loaded when click requests them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        self._load()
        return super().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command. None if there is none of that name."""
        for names, commands in ((_DROP_INS, drop_ins), (_PROBES, probes)):
            if cmd_name in names:
                return next(command for command in commands() if command.name == cmd_name)
        command = super().get_command(ctx, cmd_name)
        if command is None:
            self._load()
            command = super().get_command(ctx, cmd_name)
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
        names = self.list_commands(ctx)
        in_sections = {name for members in _SECTIONS.values() for name in members}
        other_names = [name for name in names if name not in in_sections]
        for title, members in {**_SECTIONS, "Other": other_names}.items():
            if members:
                write_commands(self, ctx, formatter, title, members)

    def _load(self) -> None:
        for command in (*drop_ins(), *probes(), *other_commands()):
            self.add_command(command)


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


main.add_command(serve)


if __name__ == "__main__":
    sys.exit(main(words_of("tablegate", sys.argv[1:]), prog_name="tablegate"))
