"""Flags of commands from the table of settings, and Settings from flags.

The settings are defined in `gateway/configuration/settings.py`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
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
