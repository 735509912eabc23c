"""Help texts of commands: options by groups of settings, commands by sections, placeholders that name the value."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import click

from tablegate.gateway.configuration.settings import SETTINGS

_UNITS = frozenset({"BYTES", "DAYS", "PORT", "SECONDS"})


class SectionedCommand(click.Command):
    """A command with a section of the help text for each group of settings.

    The placeholder of a value is FILE, NUMBER or the last word of the option's name, unless the option defines another
    one.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        _name_values(self)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections: the command's own options first."""
        _write_options(self, ctx, formatter)


class SectionedGroup(click.Group):
    """A group of such commands. It lists them with the whole first sentence of their help texts."""

    command_class = SectionedCommand

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        _name_values(self)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections of options and the list of commands."""
        _write_options(self, ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        write_commands(self, ctx, formatter, "Commands", self.list_commands(ctx))


def write_commands(
    group: click.Group, ctx: click.Context, formatter: click.HelpFormatter, title: str, names: Collection[str]
) -> None:
    """Write a section with commands of a group and the first sentences of their help texts."""
    commands = [(name, group.get_command(ctx, name)) for name in names]
    with formatter.section(title):
        formatter.write_dl(
            [(name, command.get_short_help_str(limit=1000)) for name, command in commands if command]
        )


def _write_options(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    sections: dict[str, list[tuple[str, str]]] = {"Options": []}
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is not None and record[1]:  # a positional argument without a text is in the first line
            field = SETTINGS.get(parameter.name or "")
            title = "Options" if field is None else f"{field.metadata['group']} settings"
            sections.setdefault(title, []).append(record)
    for title, records in sections.items():
        with formatter.section(title):
            formatter.write_dl(records)


def _name_values(command: click.Command) -> None:
    for option in command.params:
        has_value = isinstance(option, click.Option) and not option.is_flag
        if has_value and option.metavar is None and not isinstance(option.type, click.Choice):
            option.metavar = _placeholder(option)


def _placeholder(option: click.Parameter) -> str:
    word = re.split("[-_]", max(option.opts, key=len))[-1].upper()
    if isinstance(option.type, click.Path | click.File):
        return "FILE"
    is_number = isinstance(option.type, click.types.IntParamType | click.types.FloatParamType)
    return "NUMBER" if is_number and word not in _UNITS else word
