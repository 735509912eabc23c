"""credentials: add, bind, list, rotate and remove stored access keys."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, TextIO

import click

from tablegate.gateway.command_line.flags import (
    AUDIT_SETTINGS,
    DATABASE_SETTINGS,
    SECRET_KEY_SETTINGS,
    with_settings,
)
from tablegate.gateway.command_line.help_sections import SectionedGroup
from tablegate.gateway.command_line.opening import opened_database
from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.security.credentials import ANY_PLACE, Credential, Scheme

_SCHEME = click.option(
    "--scheme",
    type=click.Choice([item.value for item in Scheme]),
    default="aws",
    show_default=True,
    help="Credential scheme of ACCESS_ID.",
)
_SECRET_FILE = click.option(
    "--secret-file",
    type=click.File("r"),
    help="File that contains the secret (Azure: a key in each of two lines). - reads standard input.",
)


def _place(meaning: str) -> Callable[[Any], Any]:
    def decorate(command: Any) -> Any:
        any_place = click.option(
            "--any-place", "place", flag_value=ANY_PLACE, help="Make it valid in every Table Store instance."
        )
        return click.option("--place", default="", help=meaning)(any_place(command))

    return decorate


def _lines(file: TextIO | None) -> list[str]:
    """Return the lines of a file. Raises ClickException if it is empty."""
    lines = [] if file is None else [line.strip() for line in file if line.strip()]
    if file is not None and not lines:
        raise click.ClickException(f"Cannot read a secret: {file.name} is empty.")
    return lines


@click.group(cls=SectionedGroup)
def credentials() -> None:
    """Manage access keys, stored encrypted in the database. A running server applies changes within seconds."""


@credentials.command("add")
@click.argument("access_id")
@_SCHEME
@click.option(
    "--secret",
    "secrets",
    multiple=True,
    help="Secret, or one of two Azure keys (repeat it). Generated if not given.",
)
@_SECRET_FILE
@_place("AWS account (12 digits, default 000000000000) or Table Store instance of the credential.")
@click.option(
    "--session-token",
    default="",
    help="Session token that requests must contain (temporary AWS credentials).",
)
@click.option(
    "--session-token-file",
    type=click.File("r"),
    help="File that contains the session token. - reads standard input.",
)
@click.option("--all", "everything", is_flag=True, help="Allow everything, without further grants.")
@with_settings(*DATABASE_SETTINGS, *SECRET_KEY_SETTINGS, *AUDIT_SETTINGS)
def credentials_add(
    settings: Settings, access_id: str, scheme: str, secrets: tuple[str, ...], secret_file: TextIO | None,
    place: str, session_token: str, session_token_file: TextIO | None, everything: bool,
) -> None:  # fmt: skip
    """Store a new credential and print it. Secrets from a file are not printed. Azure accounts have two keys.

    With --auth strict a credential needs grants (tablegate grants add) or --all.

    It is valid for one AWS account (in every region), one Azure account or one Table Store instance. A Table Store key
    without --place is valid for all instances. With --auth strict and --namespaces separate it is valid for none. Use
    --any-place there to make it valid for all.
    """
    from tablegate.gateway.security.credential_store import new_secret
    from tablegate.gateway.security.grant_store import ALL

    kind = Scheme(scheme)
    required = 2 if kind is Scheme.AZURE else 1
    read = _lines(secret_file)
    given = len(secrets) + len(read)
    if given > required:
        raise click.ClickException(f"A credential of {scheme} has {required} secret(s), not {given}.")
    generated = [new_secret(kind) for _ in range(required - given)]
    token = "".join(_lines(session_token_file)) or session_token
    credential = Credential(kind, access_id, (*secrets, *read, *generated), place, token)
    with opened_database(settings) as opened:
        opened.credential_store.add(credential, [ALL] if everything else [])
    _print(credential, [*secrets, *generated])


@credentials.command("bind")
@click.argument("access_id")
@_SCHEME
@_place("New AWS account (12 digits) or Table Store instance of the credential.")
@with_settings(*DATABASE_SETTINGS, *SECRET_KEY_SETTINGS, *AUDIT_SETTINGS)
def credentials_bind(settings: Settings, access_id: str, scheme: str, place: str) -> None:
    """Move a credential to another AWS account or Table Store instance. Its secret does not change."""
    if not place:
        raise click.UsageError("Give --place or --any-place.")
    with opened_database(settings) as opened:
        _print(opened.credential_store.bind(Scheme(scheme), access_id, place))


@credentials.command("list")
@with_settings(*DATABASE_SETTINGS, *SECRET_KEY_SETTINGS, *AUDIT_SETTINGS)
def credentials_list(settings: Settings) -> None:
    """List credentials, without their secrets."""
    with opened_database(settings) as opened:
        for credential in opened.credential_store.load():
            _print(credential)


@credentials.command("rotate")
@click.argument("access_id")
@_SCHEME
@click.option(
    "--key",
    type=click.IntRange(1, 2),
    default=1,
    show_default=True,
    help="Number of the key to replace. Azure accounts have two.",
)
@click.option("--secret", help="New secret. Generated if not given.")
@_SECRET_FILE
@with_settings(*DATABASE_SETTINGS, *SECRET_KEY_SETTINGS, *AUDIT_SETTINGS)
def credentials_rotate(
    settings: Settings, access_id: str, scheme: str, key: int, secret: str | None, secret_file: TextIO | None
) -> None:
    """Replace a secret of a credential and print the new one, unless it was read from a file.

    The old secret is refused once the running servers apply the change, within seconds.
    """
    from tablegate.gateway.security.credential_store import BadCredential, new_secret

    kind = Scheme(scheme)
    read = _lines(secret_file)
    if len(read) > 1:
        raise click.ClickException(f"Give one new secret for {access_id}, not {len(read)}.")
    with opened_database(settings) as opened:
        found = opened.credential_store.find(kind, access_id)
        kept = list(found.secrets)
        if key > len(kept):
            raise BadCredential(f"{access_id} has no key {key}: only Azure accounts have a second key")
        kept[key - 1] = secret or "".join(read) or new_secret(kind)
        changed = dataclasses.replace(found, secrets=tuple(kept))
        opened.credential_store.replace(changed)
    _print(changed, [each for each in kept if each not in read])


@credentials.command("remove")
@click.argument("access_id")
@_SCHEME
@with_settings(*DATABASE_SETTINGS, *SECRET_KEY_SETTINGS, *AUDIT_SETTINGS)
def credentials_remove(settings: Settings, access_id: str, scheme: str) -> None:
    """Remove a credential. Running servers refuse it within seconds."""
    with opened_database(settings) as opened:
        opened.credential_store.remove(Scheme(scheme), access_id)
    click.echo(f"removed {scheme} {access_id}")


@credentials.command("reseal")
@click.option(
    "--new-secret-key-file",
    "file",
    type=click.File("r"),
    required=True,
    help="File that contains the new secret key. - reads standard input.",
)
@with_settings(*DATABASE_SETTINGS, *SECRET_KEY_SETTINGS, *AUDIT_SETTINGS)
def credentials_reseal(settings: Settings, file: TextIO) -> None:
    """Encrypt all stored secrets with another secret key, in one transaction.

    Running servers keep the credentials that they have loaded. Restart them with the new key (docs/operate/secure.md).
    """
    from tablegate.gateway.security.secret_cipher import LEAST_KEY_CHARACTERS

    key = "".join(_lines(file)[:1])
    if len(key) < LEAST_KEY_CHARACTERS:
        raise click.ClickException(
            f"The secret key in {file.name} is too short. Use at least {LEAST_KEY_CHARACTERS} random characters."
        )
    with opened_database(settings) as opened:
        number = opened.credential_store.reseal(key)
    click.echo(f"{number} credentials are encrypted with the new key")


def _print(credential: Credential, shown: Iterable[str] = ()) -> None:
    """Print a credential in one line, with the secrets `shown`."""
    parts = [credential.scheme.value, credential.access_id]
    if credential.place:
        parts.append(f"place={credential.place}")
    parts += [f"secret={secret}" for secret in shown]
    if credential.session_token:
        parts.append("session_token=...")
    click.echo("\t".join(parts))
