"""credentials: add, bind, list, rotate and remove stored access keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TextIO

import click

from tablegate.gateway.command_line.database import (
    ADMINISTRATION_SETTINGS,
    URL_OPTION,
    administration,
    opened_database,
)
from tablegate.gateway.command_line.options import (
    AUDIT_SETTINGS,
    DATABASE_SETTINGS,
    SECRET_KEY_SETTINGS,
    SectionedGroup,
    file_text,
    with_settings,
)
from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.security.credentials import ANY_PLACE, Scheme

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
    lines = [] if file is None else [line.strip() for line in file_text(file).splitlines() if line.strip()]
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
@URL_OPTION
@with_settings(*ADMINISTRATION_SETTINGS, *SECRET_KEY_SETTINGS)
def credentials_add(
    settings: Settings, access_id: str, scheme: str, secrets: tuple[str, ...], secret_file: TextIO | None,
    place: str, session_token: str, session_token_file: TextIO | None, everything: bool, url: str | None,
) -> None:  # fmt: skip
    """Store a new credential and print it. Secrets from a file are not printed. Azure accounts have two keys.

    With --auth strict a credential needs grants (tablegate grants add) or --all.

    It is valid for one AWS account (in every region), one Azure account or one Table Store instance. A Table Store key
    without --place is valid for all instances. With --auth strict and --namespaces separate it is valid for none. Use
    --any-place there to make it valid for all.
    """
    read = _lines(secret_file)
    with administration(settings, url) as operate:
        reply = operate(
            "POST", "/credentials", scheme=scheme, access_id=access_id, secrets=[*secrets, *read], place=place or None,
            session_token="".join(_lines(session_token_file)) or session_token or None, all=everything or None,
        )  # fmt: skip
    _print(reply, [*secrets, *reply["secrets"]])


@credentials.command("bind")
@click.argument("access_id")
@_SCHEME
@_place("New AWS account (12 digits) or Table Store instance of the credential.")
@URL_OPTION
@with_settings(*ADMINISTRATION_SETTINGS, *SECRET_KEY_SETTINGS)
def credentials_bind(settings: Settings, access_id: str, scheme: str, place: str, url: str | None) -> None:
    """Move a credential to another AWS account or Table Store instance. Its secret does not change."""
    if not place:
        raise click.UsageError("Give --place or --any-place.")
    with administration(settings, url) as operate:
        _print(operate("PUT", "/credentials", scheme=scheme, access_id=access_id, place=place))


@credentials.command("list")
@URL_OPTION
@with_settings(*ADMINISTRATION_SETTINGS, *SECRET_KEY_SETTINGS)
def credentials_list(settings: Settings, url: str | None) -> None:
    """List credentials, without their secrets."""
    with administration(settings, url) as operate:
        for credential in operate("GET", "/credentials")["credentials"]:
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
@URL_OPTION
@with_settings(*ADMINISTRATION_SETTINGS, *SECRET_KEY_SETTINGS)
def credentials_rotate(
    settings: Settings, access_id: str, scheme: str, key: int, secret: str | None, secret_file: TextIO | None,
    url: str | None,
) -> None:  # fmt: skip
    """Replace a secret of a credential and print the new one, unless it was read from a file.

    The old secret is refused once the running servers apply the change, within seconds.
    """
    read = _lines(secret_file)
    if len(read) > 1:
        raise click.ClickException(f"Give one new secret for {access_id}, not {len(read)}.")
    given = secret or "".join(read) or None
    with administration(settings, url) as operate:
        reply = operate("PUT", "/credentials", scheme=scheme, access_id=access_id, key=key, secret=given)
    _print(reply, [each for each in reply["secrets"] if each not in read])


@credentials.command("remove")
@click.argument("access_id")
@_SCHEME
@URL_OPTION
@with_settings(*ADMINISTRATION_SETTINGS, *SECRET_KEY_SETTINGS)
def credentials_remove(settings: Settings, access_id: str, scheme: str, url: str | None) -> None:
    """Remove a credential. Running servers refuse it within seconds."""
    with administration(settings, url) as operate:
        operate("DELETE", "/credentials", scheme=scheme, access_id=access_id)
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


def _print(credential: Mapping[str, Any], shown: Iterable[str] = ()) -> None:
    """Print a credential in one line, with the secrets `shown`."""
    parts = [credential["scheme"], credential["access_id"]]
    if credential["place"]:
        parts.append(f"place={credential['place']}")
    parts += [f"secret={secret}" for secret in shown]
    if credential["has_session_token"]:
        parts.append("session_token=...")
    click.echo("\t".join(parts))
