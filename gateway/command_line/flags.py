"""Flags of commands from the table of settings, and Settings from flags.

The settings are defined in `gateway/configuration/settings.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from tablegate.gateway.configuration.loading import load
from tablegate.gateway.configuration.settings import FORMER_NAMES, SETTINGS, BadSetting, Settings

Command = Callable[..., None]


def with_settings(every: bool) -> Callable[[Command], Command]:
    """Add a flag for each setting to a command and call the command with Settings.

    If `every` is false, only the settings that all commands have become flags.
    """

    def decorate(command: Command) -> Command:
        def call(config: Path | None, **given: Any) -> None:
            flags = {name: given.pop(name) for name in names}
            command(_load(flags, config), **given)

        call.__name__, call.__doc__ = command.__name__, command.__doc__
        # click keeps the options of the decorators below this one here.
        vars(call)["__click_params__"] = list(vars(command).get("__click_params__", []))
        names = [name for name, field in SETTINGS.items() if every or field.metadata["everywhere"]]
        names += [former for former, name in FORMER_NAMES.items() if name in names]
        wrapped: Any = call
        for name in reversed(names):
            wrapped = _option(name)(wrapped)
        config_option = click.option(
            "--config",
            type=click.Path(path_type=Path),
            help="TOML file of settings. Flags and environment variables override it. [env: TABLEGATE_CONFIG]",
        )
        return config_option(wrapped)

    return decorate


def _option(name: str) -> Callable[[Any], Any]:
    """Return the flag of a setting by its name or deprecated name. The flag of a deprecated name is hidden from --help."""
    field = SETTINGS[FORMER_NAMES.get(name, name)]
    is_former = name in FORMER_NAMES
    flag = "--" + (name.replace("_", "-") if is_former else field.metadata["flag"] or name.replace("_", "-"))
    default = field.default
    if isinstance(default, bool):
        help_text = f"{field.metadata['meaning']} [default: {'on' if default else 'off'}]"
        return click.option(f"{flag}/--no-{flag[2:]}", name, default=None, help=help_text, hidden=is_former)
    shown = ",".join(default) if isinstance(default, tuple) else default
    help_text = field.metadata["meaning"] + (f" [default: {shown}]" if shown not in (None, "") else "")
    choices = field.metadata["choices"]
    return click.option(
        flag, name, type=click.Choice(choices) if choices else str, default=None, help=help_text,
        multiple=isinstance(default, tuple),
        metavar=None if choices else name.rpartition("_")[2].upper(),
        hidden=is_former,
    )  # fmt: skip


def _load(flags: dict[str, Any], config: Path | None) -> Settings:
    try:
        # click passes () for a repeatable flag that was not given.
        return load(
            {name: None if value == () else value for name, value in flags.items()}, os.environ, config
        )
    except BadSetting as error:
        raise click.ClickException(str(error)) from None
