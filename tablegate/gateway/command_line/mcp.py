"""mcp: the tables of a running server as tools of an assistant (Model Context Protocol)."""

from __future__ import annotations

import os

import click

from tablegate.gateway.command_line.options import SectionedCommand

_KEY_VARIABLES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


@click.command(cls=SectionedCommand)
@click.option(
    "--url",
    metavar="URL",
    default="http://127.0.0.1:8000",
    show_default=True,
    help="Address of the running server.",
)
@click.option(
    "--region", metavar="REGION", default="us-east-1", show_default=True, help="AWS region of the tables."
)
@click.option("--writes", is_flag=True, help="Also offer the tools put and delete.")
def mcp(url: str, region: str, writes: bool) -> None:
    """Serve tables to an assistant over standard input and output, by the Model Context Protocol.

    Each call is a DynamoDB request to the server at --url, signed with the key in AWS_ACCESS_KEY_ID and
    AWS_SECRET_ACCESS_KEY. So the assistant has the grants and quotas of this key. Requires `tablegate[mcp]`.
    """
    try:
        from tablegate.gateway.command_line import mcp_tools
    except ImportError as error:
        raise click.ClickException(
            f"Python package {error.name} is missing. Install it with: pip install 'tablegate[mcp]'"
        ) from None
    missing = [name for name in _KEY_VARIABLES if not os.environ.get(name)]
    if missing:
        raise click.ClickException(f"{' and '.join(missing)} must be set to the key of the assistant.")
    if not url.startswith(("http://", "https://")):
        raise click.BadParameter("must begin with http:// or https://", param_hint="--url")
    access_id, secret = (os.environ[name] for name in _KEY_VARIABLES)
    mcp_tools.serve(mcp_tools.Tables(url, region, access_id, secret), writes)
