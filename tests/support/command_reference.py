"""The generated pages of docs/reference about commands, and what they share with the other generated pages."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator

import click

from tablegate.gateway import __main__ as program
from tablegate.gateway.configuration.loading import flag_of
from tablegate.gateway.configuration.settings import SETTINGS

GENERATED = "This page is generated from the code by `make reference`."


def cell(text: str) -> str:
    """A text as one cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """The lines of a Markdown table, with an empty line after it."""
    names = [*head]
    yield f"| {' | '.join(names)} |"
    yield "|" + "---|" * len(names)
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def commands() -> dict[str, click.Command]:
    """Every command by the words that call it, without the groups that only hold others."""
    return dict(sorted(_commands_in(program.main, "tablegate")))


def _commands_in(group: click.Group, words: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from _commands_in(command, f"{words} {name}")
        else:
            yield f"{words} {name}", command


# Page -> its title, and the sections of `tablegate --help` with its commands. Pages have at most 2,500 words.
COMMAND_PAGES = {
    "commands.md": ("Commands", ("Server", "Replacements for other programs", "Assistants", "Shell")),
    "commands-data.md": ("Commands for tables and data", ("Tables and data",)),
    "commands-access.md": ("Commands for access", ("Access",)),
    "commands-transfers.md": ("Commands for transfers", ("Transfers between services", "Recorded requests")),
}


def commands_page(page: str) -> Iterator[str]:
    """The commands of one page, with their arguments and options."""
    title, sections = COMMAND_PAGES[page]
    yield f"# {title}\n"
    yield f"{GENERATED} [Settings](settings.md) describes settings."
    yield "Exit status of a command: 0 done, 1 failed, 2 wrong command line. Commands that define other statuses say so.\n"
    if page == "commands.md":
        yield f"These are all {len(commands())} commands:\n"
        yield from table(("page", "commands"), map(_page_row, COMMAND_PAGES))
    first_words = {name for section in sections for name in program._SECTIONS[section]}
    for words, command in commands().items():
        if words.split()[1] in first_words:
            yield from _command_lines(words, command)


def _page_row(page: str) -> tuple[str, str]:
    title, sections = COMMAND_PAGES[page]
    names = (f"`{name}`" for section in sections for name in program._SECTIONS[section])
    return "this page" if page == "commands.md" else f"[{title}]({page})", ", ".join(names)


def _command_lines(words: str, command: click.Command) -> Iterator[str]:
    yield f"## {words}\n"
    context = click.Context(command, info_name=words)
    yield f"```text\n{' '.join([words, *command.collect_usage_pieces(context)])}\n```\n"
    yield from _help_lines(command.help or "")
    own = [each for each in command.params if each.name not in {*SETTINGS, "config"}]
    options = [each for each in own if isinstance(each, click.Option) and not each.hidden]
    if options:
        yield from table(("option", "meaning"), (_option_row(each, context) for each in options))
    settings = [
        each.name
        for each in command.params
        if isinstance(each, click.Option) and each.name in SETTINGS and not each.hidden
    ]
    if settings:
        shown = (
            "all" if len(settings) == len(SETTINGS) else ", ".join(f"`{flag_of(name)}`" for name in settings)
        )
        yield f"Settings: {shown}.\n"


def _help_lines(text: str) -> Iterator[str]:
    """Return the help of a command: paragraphs, and click's output unchanged as a block."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith("\b"):
            yield "```text\n" + paragraph.removeprefix("\b").strip("\n") + "\n```\n"
        else:
            yield " ".join(paragraph.split()).replace("*", "\\*").replace("<", "&lt;") + "\n"


def _option_row(option: click.Option, context: click.Context) -> tuple[str, str]:
    record = option.get_help_record(context)
    names, meaning = record or (", ".join(option.opts), "")
    return f"`{names}`", cell(_readable_range(meaning))


def _readable_range(meaning: str) -> str:
    """Replace click's notation of ranges and defaults, such as `[default: 1; 1<=x<=2]`."""
    meaning = re.sub(r"(\d+)<=x<=(\d+)", r"\1 to \2", meaning)
    meaning = re.sub(r"x>=(\d+)", r"at least \1", meaning)
    return re.sub(r"\[[^\]]*\]$", lambda match: match[0].replace("; ", ", "), meaning)
