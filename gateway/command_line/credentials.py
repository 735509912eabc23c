"""credentials: stored access keys, which are added, bound to a place, listed, given new secrets and removed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, TextIO

import click

from tablegate.gateway.command_line.flags import with_settings
from tablegate.gateway.command_line.opening import opened_database
from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.security.credentials import ANY_PLACE, Credential, Scheme

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


@click.group()
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
@click.option(
    "--all", "everything", is_flag=True, help="It may do everything, and not only what it is granted."
)
@with_settings(every=False)
def credentials_add(
    settings: Settings, access_id: str, scheme: str, secrets: tuple[str, ...], secret_file: TextIO | None,
    place: str, session_token: str, session_token_file: TextIO | None, everything: bool,
) -> None:  # fmt: skip
    """Store a new credential and print it, without what came from a file; Azure accounts have two keys.

    With --auth strict it may do nothing until it is granted something (tablegate grants add), unless it is made with --all.

    It is good for one AWS account (in every region), one Azure account or one Table Store instance. A Table Store key without
    a place is good for all instances, but for none with --auth strict and --namespaces separate: there --any-place makes
    one for all.
    """
    from tablegate.gateway.security.credential_store import new_secret
    from tablegate.gateway.security.grant_store import ALL

    kind = Scheme(scheme)
    wanted = 2 if kind is Scheme.AZURE else 1
    read = _lines(secret_file)
    given = len(secrets) + len(read)
    if given > wanted:
        raise click.ClickException(f"a credential of {scheme} has {wanted} secret(s), not {given}")
    made = [new_secret(kind) for _ in range(wanted - given)]
    token = "".join(_lines(session_token_file)) or session_token
    credential = Credential(kind, access_id, (*secrets, *read, *made), place, token)
    with opened_database(settings) as opened:
        opened.credential_store.add(credential, [ALL] if everything else [])
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
    with opened_database(settings) as opened:
        _print(opened.credential_store.bind(Scheme(scheme), access_id, place))


@credentials.command("list")
@with_settings(every=False)
def credentials_list(settings: Settings) -> None:
    """List credentials, without their secrets."""
    with opened_database(settings) as opened:
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
    from tablegate.gateway.security.credential_store import BadCredential, new_secret

    kind = Scheme(scheme)
    read = _lines(secret_file)
    if len(read) > 1:
        raise click.ClickException(f"{access_id} gets one new secret, not {len(read)}")
    with opened_database(settings) as opened:
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
    with opened_database(settings) as opened:
        opened.credential_store.remove(Scheme(scheme), access_id)
    click.echo(f"removed {scheme} {access_id}")


@credentials.command("reseal")
@click.option(
    "--new-secret-key-file",
    "file",
    type=click.File("r"),
    required=True,
    help="File of the new key, - for standard input.",
)
@with_settings(every=False)
def credentials_reseal(settings: Settings, file: TextIO) -> None:
    """Encrypt all stored secrets under another secret key, all or none. Servers that run keep what they know; start them anew
    with the new key (docs/operate/secure.md)."""
    from tablegate.gateway.security.secret_cipher import LEAST_KEY_CHARACTERS

    key = "".join(_lines(file)[:1])
    if len(key) < LEAST_KEY_CHARACTERS:
        raise click.ClickException(
            f"the secret key has at least {LEAST_KEY_CHARACTERS} characters, best at random"
        )
    with opened_database(settings) as opened:
        number = opened.credential_store.reseal(key)
    click.echo(f"{number} credentials are sealed with the new key")


def _print(credential: Credential, shown: Iterable[str] = ()) -> None:
    """A line of what a credential is. `shown`: the secrets to tell, which are none that came from a file."""
    parts = [credential.scheme.value, credential.access_id]
    if credential.place:
        parts.append(f"place={credential.place}")
    parts += [f"secret={secret}" for secret in shown]
    if credential.session_token:
        parts.append("session_token=...")
    click.echo("\t".join(parts))
