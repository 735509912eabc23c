"""Flags of other programs' command lines, read as those programs read them: exact names, a value as the next word.

What is no flag of theirs is refused by its name, and so is what cannot be honoured; nothing is left out in silence.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from tablegate.gateway.command_line.errors import told_in_one_line
from tablegate.gateway.configuration.settings import MOST_PORT


@dataclass(frozen=True, slots=True)
class ForeignFlag:
    """A flag: what it is called here, whether the next word is its value. `refused`: why it cannot be honoured; `without`:
    what it is for that this server does not have, which makes it void."""

    name: str
    has_value: bool = False
    refused: str = ""
    without: str = ""


class ForeignCommand(click.Command):
    """A command that is given all words that follow, as `words`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the words as they are."""
        ctx.params["words"] = tuple(args)
        return []


def read(words: Sequence[str], flags: Mapping[str, ForeignFlag], unknown: str) -> dict[str, str]:
    """Name -> value, "" for a flag that has none. Raises ClickException; `unknown` is its text for a word that is no flag.

    A flag that is void here is told on standard error.
    """
    found: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        name, separator, value = word.partition("=")
        flag = flags.get(word) or (flags.get(name) if separator and word.startswith("--") else None)
        if flag is None:
            raise click.ClickException(unknown.format(word=word, name=word.lstrip("-")))
        if flag.refused:
            raise click.ClickException(f"{name} cannot be honoured: {flag.refused}")
        if flag.has_value and word in flags:
            value = next(rest, "")
            if not value:
                raise click.ClickException(f"{word} wants a value")
        if flag.without:
            click.echo(f"{name} has no effect: {flag.without}", err=True)
        found[flag.name] = value if flag.has_value else ""
    return found


@contextlib.contextmanager
def taken_port_told(words: Callable[[str, int], str]) -> Iterator[None]:
    """Within it, what keeps a server from starting is told in one line: of a port that is taken, these words about a host and
    a port, as the other program has them."""
    from tablegate.gateway.server.startup_errors import PortTaken

    try:
        with told_in_one_line():
            yield
    except click.ClickException as error:
        cause = error.__context__
        if isinstance(cause, PortTaken):
            click.echo(words(cause.host, cause.port), err=True)
            raise SystemExit(1) from None
        raise


def port_of(found: Mapping[str, Any], name: str, usual: int) -> int:
    """A port number. Raises ClickException."""
    text = found.get(name, str(usual))
    if not text.isdecimal() or int(text) > MOST_PORT:
        raise click.ClickException(f"{text} is no port number")
    return int(text)
