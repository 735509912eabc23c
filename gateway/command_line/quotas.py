"""quotas: set, list and remove limits of credentials and namespaces."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import click

from tablegate.gateway.command_line.flags import AUDIT_SETTINGS, DATABASE_SETTINGS, with_settings
from tablegate.gateway.command_line.help_sections import SectionedGroup
from tablegate.gateway.command_line.opening import opened_database
from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.model.authorization.quotas import Quota, credential_owner, namespace_owner
from tablegate.gateway.observability import audit
from tablegate.gateway.security.credentials import Scheme
from tablegate.gateway.store.accounts import quotas as rows

_RATE = click.FloatRange(min=0, min_open=True)
_OWNER = (
    click.argument("access_id", required=False),
    click.option(
        "--scheme",
        type=click.Choice([item.value for item in Scheme]),
        default="aws",
        show_default=True,
        help="Credential scheme of ACCESS_ID.",
    ),
    click.option(
        "--namespace",
        help="Namespace to limit instead of a credential: `shared`, or one listed by `tablegate tables`.",
    ),
)


def _with_owner(command: Callable[..., None]) -> Any:
    decorated: Any = command
    for decorate in reversed(_OWNER):
        decorated = decorate(decorated)
    return decorated


def _owner(access_id: str | None, scheme: str, namespace: str | None) -> str:
    if (access_id is None) == (namespace is None):
        raise click.UsageError("Give either ACCESS_ID or --namespace.")
    return credential_owner(scheme, access_id) if access_id is not None else namespace_owner(str(namespace))


@click.group(cls=SectionedGroup)
def quotas() -> None:
    """Limit the use of credentials and namespaces. A running server applies changes within seconds."""


@quotas.command("set")
@_with_owner
@click.option("--requests", type=_RATE, help="Maximum requests per second.")
@click.option("--read-units", type=_RATE, help="Maximum read units (4 KiB each) per second.")
@click.option("--write-units", type=_RATE, help="Maximum write units (1 KiB each) per second.")
@click.option("--bytes", "size", type=click.IntRange(min=0), help="Maximum bytes stored in the namespace.")
@click.option("--tables", type=click.IntRange(min=0), help="Maximum number of tables in the namespace.")
@with_settings(*DATABASE_SETTINGS, *AUDIT_SETTINGS)
def quotas_set(
    settings: Settings, access_id: str | None, scheme: str, namespace: str | None, requests: float | None,
    read_units: float | None, write_units: float | None, size: int | None, tables: int | None,
) -> None:  # fmt: skip
    """Set the quota of a credential or a namespace, replacing its former one. Options not given set no limit.

    A rate is the total of all server processes. For a credential, --tables and --bytes count those of the namespace that
    it writes to.
    """
    owner = _owner(access_id, scheme, namespace)
    quota = Quota(requests, read_units, write_units, size, tables)
    if quota == Quota():
        raise click.UsageError("Give at least one limit, for example --requests 20.")
    with opened_database(settings) as opened:
        with opened.store.write() as session:
            rows.save(session, owner, quota.document(), time.time_ns() // 1_000_000)
        audit.record("quota set", owner=owner, quota=quota.document())
    click.echo(f"{owner}\t{quota.document()}")


@quotas.command("list")
@with_settings(*DATABASE_SETTINGS, *AUDIT_SETTINGS)
def quotas_list(settings: Settings) -> None:
    """List quotas: the credential or namespace, and its limits."""
    with opened_database(settings) as opened, opened.store.read() as session:
        for owner, document, _ in rows.all_of(session):
            click.echo(f"{owner}\t{document}")


@quotas.command("remove")
@_with_owner
@with_settings(*DATABASE_SETTINGS, *AUDIT_SETTINGS)
def quotas_remove(settings: Settings, access_id: str | None, scheme: str, namespace: str | None) -> None:
    """Remove the quota of a credential or a namespace."""
    owner = _owner(access_id, scheme, namespace)
    with opened_database(settings) as opened:
        with opened.store.write() as session:
            if not rows.remove(session, owner):
                raise click.ClickException(f"{owner} has no quota. `tablegate quotas list` lists all.")
        audit.record("quota removed", owner=owner)
    click.echo(f"removed {owner}")
