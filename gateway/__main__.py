"""The command line: serve, migrate, healthcheck, sweep, tables, streams, credentials.

Turns flags into Settings, and what can go wrong before the first request into one clear line. What commands do is elsewhere.
"""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import os
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

import click

from gateway import __version__
from gateway.database_urls import without_password
from gateway.security.credentials import ANY_PLACE, SHARED_NAMESPACE, Credential, Scheme
from gateway.settings import SETTINGS, BadSetting, Settings, load
from transfer.traffic.commands import COMMANDS

Command = Callable[..., None]


def with_settings(every: bool) -> Callable[[Command], Command]:
    """Give a command a flag for every setting, or for those that all commands have, and call it with Settings."""

    def decorate(command: Command) -> Command:
        def call(config: Path | None, **given: Any) -> None:
            flags = {name: given.pop(name) for name in names}
            command(_load(flags, config), **given)

        call.__name__, call.__doc__ = command.__name__, command.__doc__
        # Where click keeps the options that were put on below this one.
        vars(call)["__click_params__"] = list(vars(command).get("__click_params__", []))
        names = [name for name, field in SETTINGS.items() if every or field.metadata["everywhere"]]
        wrapped: Any = call
        for name in reversed(names):
            wrapped = _option(name)(wrapped)
        config_option = click.option(
            "--config", type=click.Path(path_type=Path), help="TOML file of settings. [env: TABLEGATE_CONFIG]"
        )
        return config_option(wrapped)

    return decorate


def _option(name: str) -> Callable[[Any], Any]:
    field = SETTINGS[name]
    flag = "--" + name.replace("_", "-")
    default = field.default
    if isinstance(default, bool):
        return click.option(f"{flag}/--no-{flag[2:]}", name, default=None, help=field.metadata["meaning"])
    shown = ",".join(default) if isinstance(default, tuple) else default
    help_text = field.metadata["meaning"] + (f" [default: {shown}]" if shown not in (None, "") else "")
    choices = field.metadata["choices"]
    return click.option(
        flag, name, type=click.Choice(choices) if choices else str, default=None, help=help_text,
        multiple=isinstance(default, tuple),
        metavar=None if choices else name.rpartition("_")[2].upper(),
    )  # fmt: skip


def _load(flags: dict[str, Any], config: Path | None) -> Settings:
    try:
        # A flag that may be repeated and was not given is ().
        return load(
            {name: None if value == () else value for name, value in flags.items()}, os.environ, config
        )
    except BadSetting as error:
        raise click.ClickException(str(error)) from None


@click.group(context_settings={"max_content_width": 110, "help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """One server that speaks the DynamoDB, Azure Table and Table Store APIs over SQLite or PostgreSQL.

    Every flag may be given as TABLEGATE_<NAME> in the environment, or in a TOML file named by --config.
    """


@main.command()
@with_settings(every=True)
def serve(settings: Settings) -> None:
    """Serve until told to stop."""
    if settings.workers > 1:
        # Read by the metrics library when it is imported.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = tempfile.mkdtemp(prefix="tablegate-metrics-")
    from gateway.server import serving

    with _said_clearly():
        serving.serve(settings)


@main.command()
@with_settings(every=False)
def migrate(settings: Settings) -> None:
    """Bring the database to this release's schema."""
    from gateway.app import connect
    from gateway.store.migrating import migrate as run

    with _said_clearly():
        database = connect(settings)
        done = run(database)
        database.close()
    shown = without_password(settings.database)
    click.echo(f"{shown}: {'ran ' + ', '.join(done) if done else 'up to date'}")


@main.command()
@click.option("--url", help="The server's address, if not the one that the settings say.")
@with_settings(every=True)
def healthcheck(settings: Settings, url: str | None) -> None:
    """Exit with 0 if a server is there and its database answers."""
    import ssl

    scheme = "https" if settings.is_secure else "http"
    host = settings.host
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_unspecified:
            host = "127.0.0.1"
    address = f"{url or f'{scheme}://{bracketed(host)}:{settings.port}'}/readyz"
    # Whether the server is there is asked, not who it is: its certificate may be for another name.
    context = ssl._create_unverified_context()
    try:
        with urllib.request.urlopen(address, timeout=5, context=context) as reply:
            click.echo(reply.read().decode().strip())
    except OSError as error:
        raise click.ClickException(f"{address}: {error}") from None


@main.command()
@with_settings(every=False)
def sweep(settings: Settings) -> None:
    """Do all background work that is due now: expired rows, new indexes, dropped tables."""
    with _opened(settings) as opened:
        batches = 0
        while opened.engine.background_batch():
            batches += 1
        click.echo(f"nothing more to do after {batches} batches")


@main.command()
@with_settings(every=False)
def tables(settings: Settings) -> None:
    """List each table: its name, and in each dialect its name, key and address ("*": any account or instance)."""
    from gateway.app import listings
    from gateway.store import progress

    with _opened(settings) as opened:
        with opened.store.read() as session:
            found = opened.store.catalog.all(session)
            pieces = progress.listed(session)
        for table in sorted(found, key=lambda item: (item.namespace, item.name)):
            click.echo(f"{table.name}\n  namespace {table.namespace}, {table.state.value}")
            for dialect, listed in listings(settings).items():
                name, keys, address = listed(table)
                click.echo(f"  {dialect}\t{name}\t{keys}\t{address}")
            click.echo()
        indexes = {index.id: f"{table.name}/{index.name}" for table in found for index in table.indexes}
        names = {table.id: table.name for table in found} | indexes
        for piece in pieces:
            name = names.get(piece.id, f"dropped, id {piece.id}")
            click.echo(f"{piece.work}\t{name}\t{piece.done:,} rows done\tabout {piece.left:,} left")


@main.group()
def streams() -> None:
    """Change streams of tables. A running server notices at its next write."""


@streams.command("list")
@with_settings(every=False)
def streams_list(settings: Settings) -> None:
    """List each stream: its table and label, and its shards with their hash slots and parents."""
    from gateway.store import changes

    with _opened(settings) as opened, opened.store.read() as session:
        for stream in changes.all_streams(session):
            state = "enabled" if stream.ended_at_ms is None else "ended"
            click.echo(f"{stream.namespace}\t{stream.table_name}\t{stream.label}\t{state}")
            for shard in changes.shards_of(session, stream.id):
                first, last = shard.slots
                parents = ", ".join(map(str, shard.parents)) or "none"
                state = "open" if shard.closed_at_ms is None else "closed"
                click.echo(f"\tshard {shard.number}\tslots {first}-{last}\tparents {parents}\t{state}")


@streams.command("reshard")
@click.argument("table")
@click.option(
    "--shards", type=click.IntRange(1, 256), required=True, help="How many open shards there shall be."
)
@click.option("--namespace", default=SHARED_NAMESPACE, show_default=True, help="Where the table lives.")
@with_settings(every=False)
def streams_reshard(settings: Settings, table: str, shards: int, namespace: str) -> None:
    """Split or merge the shards of a table's stream. What is in the old ones stays readable, and is read first."""
    from gateway.model.commands import FindTable, Reshard
    from gateway.model.errors import GatewayError, StaleTable

    with _opened(settings) as opened:
        outcome: Any = StaleTable()
        while isinstance(outcome, StaleTable):  # somebody else changed the table in between
            [found] = opened.engine.run([FindTable(namespace, table)])
            if isinstance(found, GatewayError):
                raise click.ClickException(f"there is no table {table} in {namespace}")
            [outcome] = opened.engine.run([Reshard(found, shards)])
        if isinstance(outcome, GatewayError):
            raise click.ClickException(f"{table} has no enabled stream")
        numbers = ", ".join(str(number) for number, _ in outcome.rules.stream.shards)
        click.echo(f"{table} has {len(outcome.rules.stream.shards)} open shards: {numbers}")


_SCHEME = click.option(
    "--scheme", type=click.Choice([item.value for item in Scheme]), default="aws", show_default=True
)
_SECRET_FILE = click.option(
    "--secret-file", type=click.File("r"), help="File of the secret (Azure: two lines), - for standard input."
)


def _place(meaning: str) -> Callable[[Any], Any]:
    def decorate(command: Any) -> Any:
        any_place = click.option(
            "--any-place", "place", flag_value=ANY_PLACE, help="It is good in every Table Store instance."
        )
        return click.option("--place", default="", help=meaning)(any_place(command))

    return decorate


def _lines(file: TextIO | None) -> list[str]:
    """The lines of a file, which must have some."""
    lines = [] if file is None else [line.strip() for line in file if line.strip()]
    if file is not None and not lines:
        raise click.ClickException(f"{file.name} is empty")
    return lines


@main.group()
def credentials() -> None:
    """Access keys, stored encrypted in the database. A running server takes changes up within seconds."""


@credentials.command("add")
@click.argument("access_id")
@_SCHEME
@click.option(
    "--secret", "secrets", multiple=True, help="The secret, or an Azure key (twice). Made if not given."
)
@_SECRET_FILE
@_place("AWS account (12 digits; 000000000000 if not given) or Table Store instance that it belongs to.")
@click.option("--session-token", default="", help="Token that must come with it (temporary AWS credentials).")
@click.option("--session-token-file", type=click.File("r"), help="File that holds it, - for standard input.")
@with_settings(every=False)
def credentials_add(
    settings: Settings, access_id: str, scheme: str, secrets: tuple[str, ...], secret_file: TextIO | None,
    place: str, session_token: str, session_token_file: TextIO | None,
) -> None:  # fmt: skip
    """Store a new credential and print it, without what came from a file; Azure accounts have two keys.

    It is good for one AWS account (in every region), one Azure account or one Table Store instance. A Table Store key without
    a place is good for all instances, but for none with --auth strict and --namespaces separate: there --any-place makes
    one for all.
    """
    from gateway.security.credential_store import new_secret

    kind = Scheme(scheme)
    wanted = 2 if kind is Scheme.AZURE else 1
    read = _lines(secret_file)
    given = len(secrets) + len(read)
    if given > wanted:
        raise click.ClickException(f"a credential of {scheme} has {wanted} secret(s), not {given}")
    made = [new_secret(kind) for _ in range(wanted - given)]
    token = "".join(_lines(session_token_file)) or session_token
    credential = Credential(kind, access_id, (*secrets, *read, *made), place, token)
    with _opened(settings) as opened:
        opened.credential_store.add(credential)
    _print(credential, [*secrets, *made])


@credentials.command("bind")
@click.argument("access_id")
@_SCHEME
@_place("AWS account (12 digits) or Table Store instance that it belongs to from now on.")
@with_settings(every=False)
def credentials_bind(settings: Settings, access_id: str, scheme: str, place: str) -> None:
    """Say where a credential is good; its secret stays."""
    if not place:
        raise click.UsageError("say --place or --any-place")
    with _opened(settings) as opened:
        _print(opened.credential_store.bind(Scheme(scheme), access_id, place))


@credentials.command("list")
@with_settings(every=False)
def credentials_list(settings: Settings) -> None:
    """List credentials, without their secrets."""
    with _opened(settings) as opened:
        for credential in opened.credential_store.load():
            _print(credential)


@credentials.command("rotate")
@click.argument("access_id")
@_SCHEME
@click.option(
    "--key", type=click.IntRange(1, 2), default=1, show_default=True, help="Which of Azure's two keys."
)
@click.option("--secret", help="The new secret. Made if not given.")
@_SECRET_FILE
@with_settings(every=False)
def credentials_rotate(
    settings: Settings, access_id: str, scheme: str, key: int, secret: str | None, secret_file: TextIO | None
) -> None:
    """Give a credential a new secret and print it, unless it was read from a file; the old one is refused from then on."""
    from gateway.security.credential_store import BadCredential, new_secret

    kind = Scheme(scheme)
    read = _lines(secret_file)
    if len(read) > 1:
        raise click.ClickException(f"{access_id} gets one new secret, not {len(read)}")
    with _opened(settings) as opened:
        found = opened.credential_store.find(kind, access_id)
        kept = list(found.secrets)
        if key > len(kept):
            raise BadCredential("only Azure accounts have a second key")
        kept[key - 1] = secret or "".join(read) or new_secret(kind)
        changed = dataclasses.replace(found, secrets=tuple(kept))
        opened.credential_store.replace(changed)
    _print(changed, [each for each in kept if each not in read])


@credentials.command("remove")
@click.argument("access_id")
@_SCHEME
@with_settings(every=False)
def credentials_remove(settings: Settings, access_id: str, scheme: str) -> None:
    """Forget a credential."""
    with _opened(settings) as opened:
        opened.credential_store.remove(Scheme(scheme), access_id)
    click.echo(f"removed {scheme} {access_id}")


def _print(credential: Credential, shown: Iterable[str] = ()) -> None:
    """A line of what a credential is. `shown`: the secrets to tell, which are none that came from a file."""
    parts = [credential.scheme.value, credential.access_id]
    if credential.place:
        parts.append(f"place={credential.place}")
    parts += [f"secret={secret}" for secret in shown]
    if credential.session_token:
        parts.append("session_token=...")
    click.echo("\t".join(parts))


def bracketed(host: str) -> str:
    """A host as a URL has it."""
    return f"[{host}]" if ":" in host else host


@contextlib.contextmanager
def _opened(settings: Settings) -> Iterator[Any]:
    """The store of a database, migrated."""
    from gateway.app import connect, open_store
    from gateway.store.migrating import migrate as run

    if settings.memory:
        raise click.ClickException("a database in memory is its server's alone; name one with --database")
    with _said_clearly():
        database = connect(settings)
        run(database)
        opened = open_store(settings, database)
        try:
            yield opened
        finally:
            opened.close()


@contextlib.contextmanager
def _said_clearly() -> Iterator[None]:
    """What an operator can mend is one line, not a traceback."""
    from sqlalchemy.exc import SQLAlchemyError

    from gateway.model.errors import GatewayError
    from gateway.security.credential_store import BadCredential
    from gateway.security.secret_cipher import WrongKey
    from gateway.server.file_lock import AlreadyHeld
    from gateway.server.serving import Refused
    from gateway.store.databases import Unusable
    from gateway.store.migrating import NewerDatabase

    try:
        yield
    except (BadSetting, BadCredential, WrongKey, Refused, Unusable) as error:
        raise click.ClickException(str(error)) from None
    except AlreadyHeld as error:
        raise click.ClickException(
            f"another server (pid {error.pid or 'unknown'}) has this database"
        ) from None
    except NewerDatabase as error:
        raise click.ClickException(
            f"the database is of a later release of tablegate (its schema is {error.revision}): use that one"
        ) from None
    except SQLAlchemyError as error:
        raise click.ClickException(f"the database: {getattr(error, 'orig', None) or error}") from None
    except GatewayError as error:
        raise click.ClickException(f"the database: {error!r}") from None


for command in COMMANDS:
    main.add_command(command)

if __name__ == "__main__":
    sys.exit(main(prog_name="tablegate"))
