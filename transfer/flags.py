"""What the commands of transfers have in common: flags, the words about addresses, and how they end.

Loads nothing but the command line's library, so that `tablegate --help` is quick.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import click

from tablegate.transfer.errors import TransferError

KINDS = ("dynamodb", "azure-table", "tablestore", "tablegate")
_ADDRESSES = """
    \b
    An address is one of
      dynamodb://TABLE?region=REGION[&endpoint=URL][&profile=NAME]
      azure-table://ACCOUNT/TABLE[?endpoint=URL]
      tablestore://INSTANCE/TABLE?endpoint=URL
      tablegate:DATABASE-URL#[NAMESPACE/]TABLE   (the database itself, no server)
      file:PATH, - (standard input or output)

    TABLE may be a pattern ('*': all tables). Credentials come from each SDK's own environment variables and files, never from
    an address.
"""


class Seconds(click.ParamType[float]):
    """A time as people write it: 500ms, 2s, 10m, 1h."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)?", str(value))
        if found is None:
            self.fail(f"{value}: write 500ms, 2s, 10m or 1h", param, ctx)
        return float(found[1]) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[found[2] or "s"]


def explained(text: str) -> Callable[[Any], Any]:
    """Give a command its help, with what all of them have in common at its end."""

    def decorate(command: Any) -> Any:
        command.__doc__ = text.rstrip() + "\n" + _ADDRESSES
        return command

    return decorate


@contextlib.contextmanager
def told_clearly(how_to_go_on: Callable[[], str] = lambda: "") -> Iterator[None]:
    """What can go wrong is one line and status 2; so is Ctrl-C, and SIGTERM with it."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except (TransferError, KeyboardInterrupt) as error:
        hint = how_to_go_on()
        told = str(error) or "stopped"
        click.echo(f"Error: {told}" + (f"\nGo on with: {hint}" if hint else ""), err=True)
        _leave(2)
    finally:
        signal.signal(signal.SIGTERM, before)


def _leave(status: int) -> None:
    """End with a status. Threads that wait for a service, perhaps for minutes, are not waited for."""
    waited_for = [each for each in threading.enumerate() if each.name.startswith("copy_")]
    if waited_for:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    raise SystemExit(status)


PARALLEL = click.option(
    "--parallel", type=click.IntRange(1, 64), help="Threads that read, and threads that write.  [default: 4]"
)
ESCAPE_KEYS = click.option(
    "--escape-keys", is_flag=True, default=None,
    help="Write characters that keys of the target cannot have as _xHHHH_, instead of rejecting such rows. "
    "Say it to verify, diff and signature too.",
)  # fmt: skip
