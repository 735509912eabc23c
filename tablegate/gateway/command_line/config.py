"""config: the settings in force and their sources, or an example file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import click

from tablegate.gateway.command_line.flags import ALL_SETTINGS, loaded_settings, with_settings
from tablegate.gateway.command_line.help_sections import SectionedCommand
from tablegate.gateway.configuration.database_urls import without_password
from tablegate.gateway.configuration.settings import SETTINGS, Settings

_COLUMN = 60


@click.command(cls=SectionedCommand)
@click.option(
    "--example",
    is_flag=True,
    help="Print an example file instead: every setting with its meaning and default.",
)
@with_settings(*ALL_SETTINGS)
def config(settings: Settings, example: bool) -> None:
    """Print the settings in force, and where each comes from.

    The output is a file for --config. Secrets and passwords are omitted.
    """
    click.echo("\n".join(_example() if example else _in_force(settings)))


def _in_force(settings: Settings) -> Iterator[str]:
    loaded = loaded_settings()
    sources = {} if loaded is None else loaded.sources
    for group, names in _groups():
        yield f"# {group}"
        for name in names:
            value = getattr(settings, name)
            source = sources.get(name, "default")
            if f"{name}_file" in SETTINGS:  # a secret
                line = f"# {name} is {'set' if value else 'not set'}"
                source = sources.get(name) or sources.get(f"{name}_file", "default")
            elif value is None:
                line = f"# {name} is not set"
            else:
                line = f"{name} = {_toml(value)}"
            yield f"{line:<{_COLUMN}}  # {source}"
        yield ""


def _example() -> Iterator[str]:
    yield "# Settings of tablegate. Remove the # of a line to change a setting. Use the file with:"
    yield "#     tablegate serve --config FILE"
    for group, names in _groups():
        yield f"\n# {group}"
        for name in names:
            field = SETTINGS[name]
            yield f"\n# {field.metadata['meaning']}"
            yield f"# {name} = {'' if field.default is None else _toml(field.default)}".rstrip()


def _groups() -> Iterator[tuple[str, list[str]]]:
    for group, fields in groupby(SETTINGS.values(), key=lambda field: field.metadata["group"]):
        yield group, [field.name for field in fields]


def _toml(value: Any) -> str:
    """Return a value in the form of TOML, without the password of a database URL."""
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    # Strings of JSON are strings of TOML.
    return json.dumps(without_password(str(value)), ensure_ascii=False)
