"""Commands `record`, `replay` and `shadow`. Errors that an operator can fix are printed as one line."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import click

from tablegate.gateway.command_line.options import FiniteFloatRange, SectionedCommand
from tablegate.gateway.configuration.secrets import masked

_FILE = click.Path(path_type=Path, dir_okay=False)
_CREDENTIALS = (
    "TOML file of credentials (https://github.com/tablegate/tablegate/blob/main/docs/migrate/replaying.md)."
)
_LIMIT = click.option(
    "--limit",
    type=click.IntRange(0),
    default=20,
    show_default=True,
    help="Maximum number of divergences in text output.",
)
_FORMAT = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Format of the report.",
)
_HOST = click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
_ALLOWED = click.option(
    "--allowed-host", "allowed", multiple=True, help="Host name that clients use for this proxy. Repeatable."
)
_PORT = click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="Port to listen on. 0 selects a free port.",
)
_INCOMPLETE_STATUS = 2


@click.command(cls=SectionedCommand)
@click.option("--upstream", metavar="URL", required=True, help="URL of the service: http://HOST:PORT.")
@_HOST
@_PORT
@_ALLOWED
@click.option("--to", "path", type=_FILE, required=True, help="New trace file, such as trace.jsonl.zst.")
@click.option("--bodies/--no-bodies", default=True, help="Record bodies. Replay needs them.")
@click.option(
    "--credentials", type=_FILE, help=f"Sign DynamoDB requests again for the service. {_CREDENTIALS}"
)
def record(
    upstream: str, host: str, port: int, allowed: tuple[str, ...], path: Path, bodies: bool, credentials: Path | None
) -> None:  # fmt: skip
    """Record the requests to a service and its replies.

    Runs a proxy in front of the service until SIGINT or SIGTERM.
    """
    with _errors_as_one_line():
        from tablegate.transfer.traffic.proxies import Hooks, ListenOptions, wait_for_stop_signal
        from tablegate.transfer.traffic.recording import record as run
        from tablegate.transfer.traffic.services import Address, credentials_of

        address = Address(upstream, "--upstream")
        keys = None if credentials is None else credentials_of(credentials)
        hooks = Hooks(_print_note, click.echo, wait_for_stop_signal)
        asyncio.run(run(address, ListenOptions(host, port, allowed), path, bodies, keys, hooks))


@click.command(cls=SectionedCommand)
@click.argument("trace", type=_FILE)
@click.option("--against", metavar="URL", required=True, help="URL of the service: http://HOST:PORT.")
@click.option(
    "--speed",
    type=FiniteFloatRange(0, min_open=True),
    help="Speed relative to the recording, such as 2. Default: no pauses.",
)
@click.option("--credentials", type=_FILE, help=_CREDENTIALS)
@_FORMAT
@_LIMIT
@click.pass_context
def replay(
    context: click.Context, trace: Path, against: str, speed: float | None, credentials: Path | None, form: str, limit: int
) -> None:  # fmt: skip
    """Send a trace's requests to another service and report where its replies diverge.

    Exit status: 0 equal, 1 diverged, 2 incomplete comparison.
    """
    with _errors_as_one_line(_INCOMPLETE_STATUS):
        from tablegate.transfer.traffic.replaying import replay as run
        from tablegate.transfer.traffic.services import Address, credentials_of

        report = asyncio.run(run(trace, Address(against, "--against"), credentials_of(credentials), speed))
    click.echo(report.as_json() if form == "json" else report.as_text(limit))
    context.exit(report.exit_status)


def _share(context: click.Context, parameter: click.Parameter, text: str) -> float:
    if not re.fullmatch(r"\d{1,3}(\.\d+)?%", text) or float(text[:-1]) > 100:
        raise click.BadParameter("expected a percentage of reads, such as 5%")
    return float(text[:-1]) / 100


@click.command(cls=SectionedCommand)
@click.option("--primary", metavar="URL", required=True, help="URL of the service that answers the clients.")
@click.option(
    "--secondary", metavar="URL", required=True, help="URL of the service to compare with the primary."
)
@_HOST
@_PORT
@_ALLOWED
@click.option(
    "--metrics-port", type=click.IntRange(0, 65535), default=0, show_default=True, help="Port of /metrics."
)
@click.option(
    "--compare",
    metavar="PERCENT",
    callback=_share,
    default="5%",
    show_default=True,
    help="Share of reads to compare.",
)
@click.option(
    "--writes", type=click.Choice(["both", "primary"]), required=True, help="Services that receive writes."
)
@click.option("--credentials", type=_FILE, help=f"Sign requests to the secondary. {_CREDENTIALS}")
@click.option("--primary-credentials", type=_FILE, help="Sign DynamoDB requests again for the primary.")
@_FORMAT
@_LIMIT
@click.pass_context
def shadow(
    context: click.Context, primary: str, secondary: str, host: str, port: int, allowed: tuple[str, ...], metrics_port: int,
    compare: float, writes: str, credentials: Path | None, primary_credentials: Path | None, form: str, limit: int,
) -> None:  # fmt: skip
    """Serve replies of a primary service and compare a secondary service with it.

    Exit status: 0 equal, 1 diverged, 2 incomplete comparison.
    """
    with _errors_as_one_line(_INCOMPLETE_STATUS):
        from tablegate.transfer.traffic.proxies import Hooks, ListenOptions, wait_for_stop_signal
        from tablegate.transfer.traffic.services import Address, credentials_of
        from tablegate.transfer.traffic.shadowing import Sampling
        from tablegate.transfer.traffic.shadowing import shadow as run

        addresses = (Address(primary, "--primary"), Address(secondary, "--secondary"))
        if addresses[0].origin == addresses[1].origin:
            raise click.UsageError(
                "--primary and --secondary are the same service: writes would be applied twice"
            )
        given = None if primary_credentials is None else credentials_of(primary_credentials)

        def announce(url: str, metrics: str) -> None:
            click.echo(url)
            click.echo(f"{metrics}/metrics")

        report = asyncio.run(
            run(
                *addresses, ListenOptions(host, port, allowed), metrics_port, Sampling(compare, writes == "both"),
                (given, credentials_of(credentials)), Hooks(_print_note, announce, wait_for_stop_signal),
            )
        )  # fmt: skip
    click.echo(report.as_json() if form == "json" else report.as_text(limit))
    context.exit(report.exit_status)


def _print_note(text: str) -> None:
    click.echo(masked(text), err=True)


@contextlib.contextmanager
def _errors_as_one_line(exit_code: int = 1) -> Iterator[None]:
    """Print a TransferError as one line instead of a traceback."""
    from tablegate.transfer.errors import MissingSoftware, TransferError

    try:
        try:
            yield
        except ModuleNotFoundError as error:
            if error.name not in ("aiohttp", "zstandard", "yarl"):
                raise
            raise MissingSoftware(
                f"Python package {error.name} is missing. Install it with: pip install 'tablegate[traffic]'"
            ) from None
    except TransferError as error:
        click.echo(f"Error: {masked(str(error))}", err=True)
        raise click.exceptions.Exit(exit_code) from None
