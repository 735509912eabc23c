"""grants: who may do what; added, listed and taken back."""

from __future__ import annotations

import json
from typing import Any, TextIO

import click

from gateway.command_line.flags import with_settings
from gateway.command_line.opening import opened_database
from gateway.settings import Settings

_SCHEME = click.option(
    "--scheme",
    type=click.Choice(["aws", "azure", "tablestore"]),
    default="aws",
    show_default=True,
    help="Of the credential that KEY is.",
)
_TABLES = "to tables whose names are TABLE (* for any run of characters), with their indexes and streams"


def _words(command: Any) -> Any:
    for word, meaning in reversed(
        (
            ("read", "Single rows may be read"),
            ("query", "Rows of one partition may be read"),
            ("scan", "Rows of all partitions may be read"),
            ("write", "Rows may be put and updated"),
            ("delete", "Rows may be deleted"),
            ("define", "Tables may be made, described, changed and dropped"),
            ("stream", "Change streams may be read"),
            ("admin", "All of this may be done, and policies changed,"),
        )
    ):
        command = click.option(
            f"--{word}",
            multiple=True,
            metavar="TABLE",
            help=f"{meaning} {'in' if word != 'define' else 'of'} TABLE.",
        )(command)
    return command


@click.group()
def grants() -> None:
    """Who may do what (docs/permissions.md). A running server takes changes up within seconds."""


@grants.command("add")
@click.argument("key")
@_SCHEME
@_words
@click.option("--keys", multiple=True, metavar="PATTERN", help="Only in partitions whose key is PATTERN.")
@click.option("--attributes", multiple=True, metavar="PATTERN", help="Only attributes whose name is PATTERN.")
@click.option("--deny", is_flag=True, help="Refuse this instead, whatever else is granted.")
@click.option("--all", "everything", is_flag=True, help="Everything may be done.")
@click.option(
    "--policy", type=click.File("r"), help="A policy of IAM or RAM as a JSON file, - for standard input."
)
@click.option("--role", default="", help="KEY has this role, and what is granted to it (as role/NAME).")
@with_settings(every=False)
def grants_add(
    settings: Settings, key: str, scheme: str, deny: bool, everything: bool, policy: TextIO | None, role: str,
    **given: tuple[str, ...],
) -> None:  # fmt: skip
    """Grant something to a credential, to role/NAME, or to * (all stored credentials), and print the grant's id.

    \b
    tablegate grants add KEY --read 'orders*' --query 'orders*' --write orders
    tablegate grants add KEY --policy FILE
    tablegate grants add KEY --delete orders --deny
    """
    from gateway.security.grant_store import ALL, Written, written_of

    short: dict[str, Any] = {name: list(values) for name, values in given.items() if values}
    if sum((bool(short), everything, policy is not None, bool(role))) != 1:
        raise click.UsageError("say what is granted: words with tables, --all, --policy or --role")
    if everything:
        written = ALL
    elif policy is not None:
        text = policy.read()
        try:
            written = Written(written_of(json.loads(text)).form, text)
        except ValueError as error:
            raise click.ClickException(f"{policy.name}: {error}") from None
    elif role:
        written = Written("role", role)
    else:
        written = Written("short", json.dumps({**short, "deny": True} if deny else short))
    if deny and not short:
        raise click.UsageError("--deny goes with words")
    with opened_database(settings) as opened:
        made = opened.credential_store.grant(_grantee(key, scheme), written)
    click.echo(made.id)


@grants.command("list")
@click.argument("key", required=False)
@_SCHEME
@with_settings(every=False)
def grants_list(settings: Settings, key: str | None, scheme: str) -> None:
    """List grants: id, who, form, what. Of one credential, role or * if KEY is given."""
    with opened_database(settings) as opened:
        for grant in opened.credential_store.grants.load():
            if key is None or grant.grantee == _grantee(key, scheme):
                document = " ".join(grant.document.split())
                click.echo("\t".join((grant.id, grant.grantee, grant.form, document)).rstrip())


@grants.command("remove")
@click.argument("grant_id", metavar="ID")
@with_settings(every=False)
def grants_remove(settings: Settings, grant_id: str) -> None:
    """Take a grant back, by its id."""
    with opened_database(settings) as opened:
        opened.credential_store.grants.remove(grant_id)
    click.echo(f"removed {grant_id}")


def _grantee(key: str, scheme: str) -> str:
    from gateway.security.grant_store import EVERYBODY, ROLE

    return key if key == EVERYBODY or key.startswith(ROLE) else f"{scheme}/{key}"
