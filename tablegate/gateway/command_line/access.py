"""credentials, grants and quotas: manage stored access keys, their permissions, and limits of their use."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TextIO

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

if TYPE_CHECKING:
    from tablegate.gateway.security.grant_store import WrittenGrant


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


def _place_option(meaning: str) -> Callable[[Any], Any]:
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
@_place_option("AWS account (12 digits, default 000000000000) or Table Store instance of the credential.")
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
    _print_credential(reply, [*secrets, *reply["secrets"]])


@credentials.command("bind")
@click.argument("access_id")
@_SCHEME
@_place_option("New AWS account (12 digits) or Table Store instance of the credential.")
@URL_OPTION
@with_settings(*ADMINISTRATION_SETTINGS, *SECRET_KEY_SETTINGS)
def credentials_bind(settings: Settings, access_id: str, scheme: str, place: str, url: str | None) -> None:
    """Move a credential to another AWS account or Table Store instance. Its secret does not change."""
    if not place:
        raise click.UsageError("Give --place or --any-place.")
    with administration(settings, url) as operate:
        _print_credential(operate("PUT", "/credentials", scheme=scheme, access_id=access_id, place=place))


@credentials.command("list")
@URL_OPTION
@with_settings(*ADMINISTRATION_SETTINGS, *SECRET_KEY_SETTINGS)
def credentials_list(settings: Settings, url: str | None) -> None:
    """List credentials, without their secrets."""
    with administration(settings, url) as operate:
        for credential in operate("GET", "/credentials")["credentials"]:
            _print_credential(credential)


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
    _print_credential(reply, [each for each in reply["secrets"] if each not in read])


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

    Running servers keep the credentials that they have loaded. Restart them with the new key (--secret-key-file).
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


def _print_credential(credential: Mapping[str, Any], shown: Iterable[str] = ()) -> None:
    """Print a credential in one line, with the secrets `shown`."""
    parts = [credential["scheme"], credential["access_id"]]
    if credential["place"]:
        parts.append(f"place={credential['place']}")
    parts += [f"secret={secret}" for secret in shown]
    if credential["has_session_token"]:
        parts.append("session_token=...")
    click.echo("\t".join(parts))


_SCHEME_OF_KEY = click.option(
    "--scheme",
    type=click.Choice(["aws", "azure", "tablestore"]),
    help="Credential scheme of KEY. Default: the scheme of the stored credential KEY.",
)


def _action_options(command: Any) -> Any:
    for action, meaning in reversed(
        (
            ("read", "Read single rows of TABLE."),
            ("query", "Read the rows of one partition of TABLE."),
            ("scan", "Read all rows of TABLE, and the split points between them."),
            ("write", "Put and update rows of TABLE."),
            ("delete", "Delete rows of TABLE."),
            ("define", "Create, describe, change and drop TABLE."),
            ("stream", "Read the change streams of TABLE."),
            ("admin", "Do all of this, and manage policies, backups, exports and imports of TABLE."),
        )
    ):
        command = click.option(f"--{action}", multiple=True, metavar="TABLE", help=meaning)(command)
    return command


@click.group(cls=SectionedGroup)
def grants() -> None:
    """Manage permissions. A running server applies changes within seconds."""


@grants.command("add")
@click.argument("key")
@_SCHEME_OF_KEY
@click.option("--read-only", multiple=True, metavar="TABLE", help="Same as --read, --query and --scan.")
@click.option(
    "--read-write", multiple=True, metavar="TABLE", help="Same as --read-only, --write and --delete."
)
@_action_options
@click.option(
    "--keys", multiple=True, metavar="PATTERN", help="Limit the grant to partition keys like PATTERN."
)
@click.option(
    "--attributes", multiple=True, metavar="PATTERN", help="Limit the grant to attributes like PATTERN."
)
@click.option("--deny", is_flag=True, help="Deny instead of allow. A denial overrides every grant.")
@click.option("--all", "everything", is_flag=True, help="Allow everything.")
@click.option(
    "--policy", type=click.File("r"), help="JSON file with an IAM or RAM policy. - reads standard input."
)
@click.option("--role", metavar="NAME", default="", help="Give KEY a role, with the grants of role/NAME.")
@URL_OPTION
@with_settings(*ADMINISTRATION_SETTINGS)
def grants_add(
    settings: Settings, key: str, scheme: str | None, deny: bool, everything: bool, policy: TextIO | None, role: str,
    read_only: tuple[str, ...], read_write: tuple[str, ...], url: str | None, **given: tuple[str, ...],
) -> None:  # fmt: skip
    """Add a grant to KEY and print its id.

    \b
    KEY is the access id of a stored credential, or
      *                       all stored credentials
      role/NAME               a role, given by --role or by a token
      entra/OBJECT_ID         the identity of a token
      group/ID                the members of a group of tokens
      entra/ID@azure/ACCOUNT  one account, as --namespaces separate needs. Also
                              @aws/ACCOUNT, @tablestore/INSTANCE, @azure/*

    TABLE is a pattern: * is any run of characters, ? is one. It covers the indexes, streams, backups, exports and
    imports of a table too.

    \b
    tablegate grants add KEY --read-only 'orders*'
    tablegate grants add KEY --read 'orders*' --query 'orders*' --write orders
    tablegate grants add KEY --policy FILE
    tablegate grants add KEY --delete orders --deny
    """
    from tablegate.gateway.security.grant_store import ALL, WrittenGrant
    from tablegate.gateway.security.short_policies import READ_ONLY, READ_WRITE

    short: dict[str, Any] = {name: list(values) for name, values in given.items() if values}
    for actions, patterns in ((READ_ONLY, read_only), (READ_WRITE, read_write)):
        for action in actions if patterns else ():
            short[action] = [*short.get(action, []), *patterns]
    if sum((bool(short), everything, policy is not None, bool(role))) != 1:
        raise click.UsageError(
            "Give one of: actions with tables (--read-only TABLE), --all, --policy or --role."
        )
    if everything:
        written = ALL
    elif policy is not None:
        written = _policy_of(policy)
    elif role:
        written = WrittenGrant("role", role)
    else:
        written = WrittenGrant("short", json.dumps({**short, "deny": True} if deny else short))
    if deny and not short:
        raise click.UsageError("Use --deny with actions, for example --delete TABLE --deny.")
    with administration(settings, url) as operate:
        grant = operate(
            "POST", "/grants", key=key, scheme=scheme, form=written.form, document=written.document
        )
    click.echo(grant["id"])


def _policy_of(file: TextIO) -> WrittenGrant:
    from tablegate.gateway.security.grant_store import WrittenGrant, written_of

    text = file_text(file)
    try:
        return WrittenGrant(written_of(json.loads(text)).form, text)
    except RecursionError:
        raise click.ClickException(f"{file.name} is nested too deeply.") from None
    except ValueError as error:
        raise click.ClickException(f"{file.name}: {error}") from None


@grants.command("list")
@click.argument("key", required=False)
@_SCHEME_OF_KEY
@URL_OPTION
@with_settings(*ADMINISTRATION_SETTINGS)
def grants_list(settings: Settings, key: str | None, scheme: str | None, url: str | None) -> None:
    """List grants: id, grantee, form, document. KEY limits the list to one credential, role or *."""
    with administration(settings, url) as operate:
        for grant in operate("GET", "/grants", key=key, scheme=scheme)["grants"]:
            document = " ".join(grant["document"].split())
            click.echo("\t".join((grant["id"], grant["grantee"], grant["form"], document)).rstrip())


@grants.command("remove")
@click.argument("grant_id", metavar="ID")
@URL_OPTION
@with_settings(*ADMINISTRATION_SETTINGS)
def grants_remove(settings: Settings, grant_id: str, url: str | None) -> None:
    """Remove a grant by its id."""
    with administration(settings, url) as operate:
        operate("DELETE", "/grants", id=grant_id)
    click.echo(f"removed {grant_id}")


_RATE = click.FloatRange(min=0, min_open=True)
_QUOTA_OWNER = (
    click.argument("access_id", required=False),
    click.option(
        "--scheme",
        type=click.Choice([each.value for each in Scheme]),
        default="aws",
        show_default=True,
        help="Credential scheme of ACCESS_ID. Identities and groups have none.",
    ),
    click.option(
        "--namespace",
        help="Namespace of the quota, instead of a credential: `shared`, or one listed by `tablegate tables`.",
    ),
)


def _with_quota_owner(command: Callable[..., None]) -> Any:
    decorated: Any = command
    for decorate in reversed(_QUOTA_OWNER):
        decorated = decorate(decorated)
    return decorated


def _quota_owner(access_id: str | None, scheme: str, namespace: str | None) -> dict[str, Any]:
    """Return the members that name the owner of a quota."""
    if (access_id is None) == (namespace is None):
        raise click.UsageError("Give either ACCESS_ID or --namespace.")
    if access_id is not None:
        return {"access_id": access_id, "scheme": scheme}
    return {"namespace": namespace}


@click.group(cls=SectionedGroup)
def quotas() -> None:
    """Limit the use of credentials and namespaces. A running server applies changes within seconds."""


@quotas.command("set")
@_with_quota_owner
@click.option("--requests", type=_RATE, help="Maximum requests per second.")
@click.option("--read-units", type=_RATE, help="Maximum read units (4 KiB each) per second.")
@click.option("--write-units", type=_RATE, help="Maximum write units (1 KiB each) per second.")
@click.option("--bytes", "size", type=click.IntRange(min=0), help="Maximum bytes stored in the namespace.")
@click.option("--tables", type=click.IntRange(min=0), help="Maximum number of tables in the namespace.")
@URL_OPTION
@with_settings(*ADMINISTRATION_SETTINGS)
def quotas_set(
    settings: Settings, access_id: str | None, scheme: str, namespace: str | None, requests: float | None,
    read_units: float | None, write_units: float | None, size: int | None, tables: int | None,
    url: str | None,
) -> None:  # fmt: skip
    """Set the quota of a credential or a namespace, replacing its former one. Options not given set no limit.

    \b
    ACCESS_ID is that of a credential, or
      entra/OBJECT_ID         the identity of a token, in all accounts
      group/ID                all members of a group together. Roles have none

    A rate is the total of all server processes. For a credential, --tables and --bytes count those of the namespace that
    it writes to.
    """
    owner = _quota_owner(access_id, scheme, namespace)
    limits = {
        "requests": requests, "read_units": read_units, "write_units": write_units, "bytes": size, "tables": tables
    }  # fmt: skip
    if all(limit is None for limit in limits.values()):
        raise click.UsageError("Give at least one limit, for example --requests 20.")
    with administration(settings, url) as operate:
        quota = operate("PUT", "/quotas", **owner, **limits)
    click.echo(f"{quota['owner']}\t{quota['document']}")


@quotas.command("list")
@URL_OPTION
@with_settings(*ADMINISTRATION_SETTINGS)
def quotas_list(settings: Settings, url: str | None) -> None:
    """List quotas: the credential or namespace, and its limits."""
    with administration(settings, url) as operate:
        for quota in operate("GET", "/quotas")["quotas"]:
            click.echo(f"{quota['owner']}\t{quota['document']}")


@quotas.command("remove")
@_with_quota_owner
@URL_OPTION
@with_settings(*ADMINISTRATION_SETTINGS)
def quotas_remove(
    settings: Settings, access_id: str | None, scheme: str, namespace: str | None, url: str | None
) -> None:
    """Remove the quota of a credential or a namespace."""
    owner = _quota_owner(access_id, scheme, namespace)
    with administration(settings, url) as operate:
        removed = operate("DELETE", "/quotas", **owner)
    click.echo(f"removed {removed['owner']}")
