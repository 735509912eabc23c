"""Options of commands: flags from the table of settings, Settings from flags, and help texts in sections.

The settings are defined in `gateway/configuration/settings.py`. A help text has a section for each group of settings, and
placeholders that name the value.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import urlsplit

import click

from tablegate.gateway.configuration.loading import LoadedSettings, flag_of, load_with_sources
from tablegate.gateway.configuration.settings import SETTINGS, BadSetting

Command = Callable[..., None]

ALL_SETTINGS = tuple(SETTINGS)
DATABASE_SETTINGS = ("database", "synchronous", "verify_checksums", "prepared_statements")
"""The settings of commands that open a database."""
AUDIT_SETTINGS = ("audit", "audit_file_bytes", "audit_files")
"""The settings of commands that write to the audit log."""
SECRET_KEY_SETTINGS = ("secret_key", "secret_key_file")
"""The settings of commands that read or store secrets."""

_CONFIG = click.option(
    "--config",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="TOML file of settings. Flags and environment variables override it. [env: TABLEGATE_CONFIG]",
)
_LOADED = "tablegate.loaded_settings"


class FiniteFloatRange(click.FloatRange):
    """A number in a range, which neither NaN nor an infinity is."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


class ServerURL(click.ParamType[str]):
    """The URL of a server."""

    name = "url"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            address = urlsplit(value)
            is_valid = address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
        except ValueError:
            is_valid = False
        if not is_valid or not value.isascii():
            self.fail(f"{value} is not the address of a server. Use http://HOST:PORT.", param, ctx)
        return str(value)


def with_settings(*names: str) -> Callable[[Command], Command]:
    """Add the flags of the settings and --config to a command, and call the command with Settings.

    The help text shows the settings `names`, which the command uses. The command accepts the others too, so that all
    commands of a deployment can get the same flags.
    """

    def decorate(command: Command) -> Command:
        def call(config: Path | None, **given: Any) -> None:
            flags = {name: given.pop(name) for name in SETTINGS}
            loaded = _load(flags, config)
            click.get_current_context().meta[_LOADED] = loaded
            command(loaded.settings, **given)

        call.__name__, call.__doc__ = command.__name__, command.__doc__
        # click keeps the options of the decorators below this one here.
        vars(call)["__click_params__"] = list(vars(command).get("__click_params__", []))
        wrapped: Any = call
        for name in reversed([*SETTINGS]):
            wrapped = _option(name, hidden=name not in names)(wrapped)
        return _CONFIG(wrapped)

    return decorate


def loaded_settings() -> LoadedSettings | None:
    """Return the settings of the command that runs. None if none were loaded."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(_LOADED)


def file_text(file: TextIO) -> str:
    """Return the text of a file that an option names. Raises ClickException."""
    try:
        return file.read()
    except UnicodeDecodeError:
        raise click.ClickException(f"Cannot read {file.name}: it is not text in UTF-8.") from None


def _option(name: str, hidden: bool) -> Callable[[Any], Any]:
    """Return the flag of a setting."""
    field = SETTINGS[name]
    flag = flag_of(name)
    default = field.default
    if isinstance(default, bool):
        help_text = f"{field.metadata['meaning']} [default: {'on' if default else 'off'}]"
        return click.option(f"{flag}/--no-{flag[2:]}", name, default=None, help=help_text, hidden=hidden)
    shown = ",".join(default) if isinstance(default, tuple) else default
    help_text = field.metadata["meaning"] + (f" [default: {shown}]" if shown not in (None, "") else "")
    choices = field.metadata["choices"]
    return click.option(
        flag, name, type=click.Choice(choices) if choices else str, default=None, help=help_text,
        multiple=isinstance(default, tuple),
        metavar=field.metadata["value"] or None,
        hidden=hidden,
    )  # fmt: skip


def _load(flags: dict[str, Any], config: Path | None) -> LoadedSettings:
    try:
        # click passes () for a repeatable flag that was not given.
        return load_with_sources(
            {name: None if value == () else value for name, value in flags.items()}, os.environ, config
        )
    except BadSetting as error:
        raise click.ClickException(str(error)) from None


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
