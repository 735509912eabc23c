"""The command line of traffic: record, replay, shadow. What they do is elsewhere; what can go wrong is one line."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

_FILE = click.Path(path_type=Path, dir_okay=False)
_CREDENTIALS = "TOML file of credentials (docs/migrate/replaying.md)."
_LIMIT = click.option(
    "--limit", type=click.IntRange(0), default=20, show_default=True, help="Divergences shown as text."
)
_FORMAT = click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
_HOST = click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
_ALLOWED = click.option(
    "--allowed-host", "allowed", multiple=True, help="A name under which clients reach this, as for serve."
)
_PORT = click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="Port to listen on; 0: a free one.",
)
_COULD_NOT_TELL = 2


@click.command()
@click.option("--upstream", required=True, help="URL of the service: http://HOST:PORT.")
@_HOST
@_PORT
@_ALLOWED
@click.option("--to", "path", type=_FILE, required=True, help="The trace, a new file: trace.jsonl.zst.")
@click.option(
    "--bodies/--no-bodies", default=True, help="Whether bodies are written down; without, no replay."
)
@click.option(
    "--credentials", type=_FILE, help=f"Sign DynamoDB's requests anew for the service. {_CREDENTIALS}"
)
def record(
    upstream: str, host: str, port: int, allowed: tuple[str, ...], path: Path, bodies: bool, credentials: Path | None
) -> None:  # fmt: skip
    """Write down the requests to a service, and its answers, while passing them on."""
    with _said_clearly():
        from tablegate.transfer.traffic.proxies import Hooks, ListenOptions, until_told
        from tablegate.transfer.traffic.recording import record as run
        from tablegate.transfer.traffic.services import Address
        from tablegate.transfer.traffic.signing import credentials_of

        address = Address(upstream, "--upstream")
        keys = None if credentials is None else credentials_of(credentials)
        hooks = Hooks(_tell, click.echo, until_told)
        asyncio.run(run(address, ListenOptions(host, port, allowed), path, bodies, keys, hooks))


@click.command()
@click.argument("trace", type=_FILE)
@click.option("--against", required=True, help="URL of the service: http://HOST:PORT.")
@click.option(
    "--speed", type=click.FloatRange(0, min_open=True), help="So many times as fast as it was recorded."
)
@click.option("--credentials", type=_FILE, help=_CREDENTIALS)
@_FORMAT
@_LIMIT
@click.pass_context
def replay(
    context: click.Context, trace: Path, against: str, speed: float | None, credentials: Path | None, form: str, limit: int
) -> None:  # fmt: skip
    """Send a trace's requests to another service, and report where its answers diverge.

    Exit codes: 0 equal, 1 diverged, 2 could not tell.
    """
    with _said_clearly(_COULD_NOT_TELL):
        from tablegate.transfer.traffic.replaying import replay as run
        from tablegate.transfer.traffic.services import Address
        from tablegate.transfer.traffic.signing import credentials_of

        report = asyncio.run(run(trace, Address(against, "--against"), credentials_of(credentials), speed))
    click.echo(report.as_json() if form == "json" else report.as_text(limit))
    context.exit(report.exit_status)


def _share(context: click.Context, parameter: click.Parameter, text: str) -> float:
    if not re.fullmatch(r"\d{1,3}(\.\d+)?%", text) or float(text[:-1]) > 100:
        raise click.BadParameter("a share of reads, as 5% is")
    return float(text[:-1]) / 100


@click.command()
@click.option("--primary", required=True, help="URL of the service whose answers are given.")
@click.option("--secondary", required=True, help="URL of the service that is compared with it.")
@_HOST
@_PORT
@_ALLOWED
@click.option(
    "--metrics-port", type=click.IntRange(0, 65535), default=0, show_default=True, help="Port of /metrics."
)
@click.option("--compare", callback=_share, default="5%", show_default=True, help="Share of the reads.")
@click.option("--writes", type=click.Choice(["both", "primary"]), required=True, help="Who gets the writes.")
@click.option("--credentials", type=_FILE, help=f"For the secondary. {_CREDENTIALS}")
@click.option("--primary-credentials", type=_FILE, help="Sign DynamoDB's requests anew for the primary.")
@_FORMAT
@_LIMIT
@click.pass_context
def shadow(
    context: click.Context, primary: str, secondary: str, host: str, port: int, allowed: tuple[str, ...], metrics_port: int,
    compare: float, writes: str, credentials: Path | None, primary_credentials: Path | None, form: str, limit: int,
) -> None:  # fmt: skip
    """Answer from a primary service, ask a secondary the same besides, and report where it diverges.

    Exit codes: 0 equal, 1 diverged, 2 could not tell.
    """
    with _said_clearly(_COULD_NOT_TELL):
        from tablegate.transfer.traffic.proxies import Hooks, ListenOptions, until_told
        from tablegate.transfer.traffic.services import Address
        from tablegate.transfer.traffic.shadowing import Sampling
        from tablegate.transfer.traffic.shadowing import shadow as run
        from tablegate.transfer.traffic.signing import credentials_of

        addresses = (Address(primary, "--primary"), Address(secondary, "--secondary"))
        if addresses[0].origin == addresses[1].origin:
            raise click.UsageError("a service cannot be its own shadow: writes would be done twice")
        given = None if primary_credentials is None else credentials_of(primary_credentials)

        def announce(url: str, metrics: str) -> None:
            click.echo(url)
            click.echo(f"{metrics}/metrics")

        report = asyncio.run(
            run(
                *addresses, ListenOptions(host, port, allowed), metrics_port, Sampling(compare, writes == "both"),
                (given, credentials_of(credentials)), Hooks(_tell, announce, until_told),
            )
        )  # fmt: skip
    click.echo(report.as_json() if form == "json" else report.as_text(limit))
    context.exit(report.exit_status)


COMMANDS: tuple[Any, ...] = (record, replay, shadow)


def _tell(text: str) -> None:
    click.echo(text, err=True)


@contextlib.contextmanager
def _said_clearly(exit_code: int = 1) -> Iterator[None]:
    """What an operator can mend is one line, not a traceback."""
    from tablegate.transfer.errors import MissingSoftware, TransferError

    try:
        try:
            yield
        except ModuleNotFoundError as error:
            if error.name not in ("aiohttp", "zstandard", "yarl"):
                raise
            raise MissingSoftware(f"{error.name} is missing: pip install 'tablegate[traffic]'") from None
    except TransferError as error:
        click.echo(f"Error: {error}", err=True)
        raise click.exceptions.Exit(exit_code) from None
