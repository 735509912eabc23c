"""The command `tablegate grants`: add, list and remove grants."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TextIO

import click

from tablegate.gateway.command_line.database import ADMINISTRATION_SETTINGS, URL_OPTION, administration
from tablegate.gateway.command_line.options import SectionedGroup, file_text, with_settings
from tablegate.gateway.configuration.settings import Settings

if TYPE_CHECKING:
    from tablegate.gateway.security.grant_store import WrittenGrant

_SCHEME = click.option(
    "--scheme",
    type=click.Choice(["aws", "azure", "tablestore"]),
    help="Credential scheme of KEY. Default: the scheme of the stored credential KEY.",
)


def _actions(command: Any) -> Any:
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
    """Manage permissions (docs/operate/grants.md). A running server applies changes within seconds."""


@grants.command("add")
@click.argument("key")
@_SCHEME
@click.option("--read-only", multiple=True, metavar="TABLE", help="Same as --read, --query and --scan.")
@click.option(
    "--read-write", multiple=True, metavar="TABLE", help="Same as --read-only, --write and --delete."
)
@_actions
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
    """Add a grant to a credential, to role/NAME, or to * (all stored credentials), and print its id.

    TABLE is a pattern: * is any run of characters, ? is one. It covers the indexes, streams, backups, exports and
    imports of a table too.

    \b
    tablegate grants add KEY --read-only 'orders*'
    tablegate grants add KEY --read 'orders*' --query 'orders*' --write orders
    tablegate grants add KEY --policy FILE
    tablegate grants add KEY --delete orders --deny
    """
    from tablegate.gateway.security.grant_store import ALL, WrittenGrant
    from tablegate.gateway.security.policies.short_forms import READ_ONLY, READ_WRITE

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
@_SCHEME
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
