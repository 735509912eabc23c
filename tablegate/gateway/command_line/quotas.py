"""quotas: set, list and remove limits of credentials and namespaces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from tablegate.gateway.command_line.database import ADMINISTRATION_SETTINGS, URL_OPTION, administration
from tablegate.gateway.command_line.options import SectionedGroup, with_settings
from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.security.credentials import Scheme

_RATE = click.FloatRange(min=0, min_open=True)
_OWNER = (
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


def _with_owner(command: Callable[..., None]) -> Any:
    decorated: Any = command
    for decorate in reversed(_OWNER):
        decorated = decorate(decorated)
    return decorated


def _owner(access_id: str | None, scheme: str, namespace: str | None) -> dict[str, Any]:
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
@_with_owner
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

    ACCESS_ID is also entra/OBJECT_ID or group/GROUP, as in grants. The quota of a group is that of all its members together.

    A rate is the total of all server processes. For a credential, --tables and --bytes count those of the namespace that
    it writes to.
    """
    owner = _owner(access_id, scheme, namespace)
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
@_with_owner
@URL_OPTION
@with_settings(*ADMINISTRATION_SETTINGS)
def quotas_remove(
    settings: Settings, access_id: str | None, scheme: str, namespace: str | None, url: str | None
) -> None:
    """Remove the quota of a credential or a namespace."""
    owner = _owner(access_id, scheme, namespace)
    with administration(settings, url) as operate:
        removed = operate("DELETE", "/quotas", **owner)
    click.echo(f"removed {removed['owner']}")
