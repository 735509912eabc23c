"""Flags of other programs' command lines, parsed as those programs do: exact names, a value as the next word.

Unknown flags and flags that cannot be supported are errors that name the flag. No flag is ignored silently.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from tablegate.gateway.command_line.errors import one_line_errors
from tablegate.gateway.configuration.settings import MOST_PORT


@dataclass(frozen=True, slots=True)
class ForeignFlag:
    """A flag of another program.

    - `name`: its key in the result of `read`.
    - `has_value`: the next word is its value.
    - `refused`: the reason why it is an error here.
    - `without`: the reason why it has no effect here.
    """

    name: str
    has_value: bool = False
    refused: str = ""
    without: str = ""


class ForeignCommand(click.Command):
    """A command that gets all its arguments unparsed, as `words`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.params["words"] = tuple(args)
        return []


def read(words: Sequence[str], flags: Mapping[str, ForeignFlag], unknown: str) -> dict[str, str]:
    """Return name -> value, "" for a flag without value. Raises ClickException.

    `unknown` is the error text for an unknown flag. A flag without effect is reported on standard error.
    """
    found: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        name, separator, value = word.partition("=")
        flag = flags.get(word) or (flags.get(name) if separator and word.startswith("--") else None)
        if flag is None:
            raise click.ClickException(unknown.format(word=word, name=word.lstrip("-")))
        if flag.refused:
            raise click.ClickException(f"{name} is not supported: {flag.refused}")
        if flag.has_value and word in flags:
            value = next(rest, "")
            if not value:
                raise click.ClickException(f"{word} requires a value")
        if flag.without:
            click.echo(f"{name} has no effect: {flag.without}", err=True)
        found[flag.name] = value if flag.has_value else ""
    return found


@contextlib.contextmanager
def start_errors(port_in_use: Callable[[str, int], str]) -> Iterator[None]:
    """Report errors of the start in one line.

    `port_in_use` returns the other program's message for a host and a port that is in use.
    """
    from tablegate.gateway.server.startup_errors import PortTaken

    try:
        with one_line_errors():
            yield
    except click.ClickException as error:
        cause = error.__context__
        if isinstance(cause, PortTaken):
            click.echo(port_in_use(cause.host, cause.port), err=True)
            raise SystemExit(1) from None
        raise


def port_of(found: Mapping[str, Any], name: str, usual: int) -> int:
    """Return a port number. Raises ClickException."""
    text = found.get(name, str(usual))
    if not text.isdecimal() or int(text) > MOST_PORT:
        raise click.ClickException(f"{text} is not a port number (0 to {MOST_PORT})")
    return int(text)
