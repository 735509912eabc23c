"""Options, help and error handling that the transfer commands share.

Imports only click, so that `tablegate --help` is fast.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from tablegate.gateway.configuration.secrets import masked
from tablegate.transfer.errors import ADDRESS_FORMS, TransferError

KINDS = ("dynamodb", "azure-table", "tablestore", "tablegate")
_ADDRESSES = f"""
    \b
    An address is one of
      {ADDRESS_FORMS["dynamodb"]}
      {ADDRESS_FORMS["azure-table"]}
      {ADDRESS_FORMS["tablestore"]}
      {ADDRESS_FORMS["tablegate"]}   (direct access to the database)
      {ADDRESS_FORMS["file"]}, - (standard input or output)

    TABLE may be a pattern, such as '*' for all tables. Credentials come from the environment variables and files of each SDK,
    never from an address.
"""


class TableAddress(click.ParamType[str]):
    """The address of a table, as text. Endpoints parse it (endpoints/addresses.py)."""

    name = "address"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        # Python reads bytes that are not UTF-8 as surrogates.
        if any("\ud800" <= character <= "\udfff" for character in value):
            self.fail("the address is not text in UTF-8", param, ctx)
        return str(value)


class FilePath(click.Path):
    """The path of a file."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, dir_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not str(value):
            self.fail("the name of the file is empty", param, ctx)
        return super().convert(value, param, ctx)


class Seconds(click.ParamType[float]):
    """A duration such as 500ms, 2s, 10m or 1h. Seconds if there is no unit."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)?", str(value))
        if match is None:
            self.fail(f"{value} is not a duration. Use a form such as 500ms, 2s, 10m or 1h", param, ctx)
        return float(match[1]) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[match[2] or "s"]


def explained(text: str) -> Callable[[Any], Any]:
    """Set a command's help text, followed by the common part about addresses."""

    def decorate(command: Any) -> Any:
        command.__doc__ = text.rstrip() + "\n" + _ADDRESSES
        return command

    return decorate


@contextlib.contextmanager
def errors_as_exit_status(advice: Callable[[BaseException], str] = lambda error: "") -> Iterator[None]:
    """Print errors, Ctrl-C and SIGTERM as one line and end with status 2.

    `advice` returns a second line with the command that works after an error, "" if there is none.
    """

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except BrokenPipeError:
        raise
    except (TransferError, OSError, KeyboardInterrupt) as error:
        from tablegate.gateway.command_line.errors import reason_of

        hint = advice(error)
        message = reason_of(error) if isinstance(error, OSError) else str(error) or "stopped"
        click.echo(f"Error: {masked(message)}" + (f"\n{hint}" if hint else ""), err=True)
        _leave(2)
    finally:
        signal.signal(signal.SIGTERM, before)


def warn_of_no_rows(source: str) -> None:
    """Print that a source is empty, which is seldom meant."""
    click.echo(
        f"Warning: {source} has no rows. Check the address and the format if this is not meant", err=True
    )


def _leave(status: int) -> None:
    """End with a status without waiting for threads that may wait for a service for minutes.

    Output that cannot be written is dropped: Python 3.12 and later would try again, and end with status 120.
    """
    from tablegate.transfer.threads import busy_threads

    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if busy_threads():
        sys.stderr.flush()
        os._exit(status)
    raise SystemExit(status)


PARALLEL = click.option(
    "--parallel",
    type=click.IntRange(1, 64),
    help="Number of reading threads and of writing threads.  [default: 4]",
)
QUIET = click.option("--quiet", is_flag=True, help="Print no progress.")
DUPLICATES = click.option(
    "--duplicates", type=click.Choice(["fail", "last"]),
    help="For several rows with one key in the target, such as lines of a file: end with an error, or keep the last row "
    "and count the others.  [default: fail]",
)  # fmt: skip
ESCAPE_KEYS = click.option(
    "--escape-keys", is_flag=True, default=None,
    help="Write characters that the target does not allow in keys as _xHHHH_ instead of rejecting the row. "
    "Use the same setting for verify, diff and signature.",
)  # fmt: skip
