"""Who may use the control API: one decision for all of it, made before a request is looked at any further.

With auth `dev` whoever is on this machine may, since he may do everything with the data anyway. Everybody else has the token of
an administrator, or is refused. Pages in a browser are kept out unless they came from this server itself or from an origin that
the settings name, also pages of this machine, which may otherwise call (security/browsers.py).
"""

from __future__ import annotations

import hmac
import ipaddress
from urllib.parse import urlsplit

from gateway.http import Request
from gateway.model.errors import NotAllowed
from gateway.settings import ANY, Settings

PREFIX = "/_tablegate/"
"""What all paths of the control API begin with. No dialect has such a path."""
CONSOLE = f"{PREFIX}console"
"""Where the console's pages are, which are no part of the control API."""


def check(request: Request, settings: Settings) -> None:
    """Raises NotAllowed, rule `origin` or `administrator`, with a text that says what to do."""
    check_origin(request, settings)
    given = request.header("authorization").encode("latin-1")
    token = settings.admin_token
    if token and hmac.compare_digest(given, f"Bearer {token}".encode()):
        return
    if settings.auth == "dev" and not given and is_loopback(request.client):
        return
    raise NotAllowed(
        "administrator",
        text="The control API wants the administrator's token: --admin-token, Authorization: Bearer ...",
    )


def check_origin(request: Request, settings: Settings) -> None:
    """Raises NotAllowed, rule `origin`, of what a page of another origin sends that the settings do not name."""
    origin = request.header("origin")
    if origin and not _is_own(origin, request) and not {origin.lower(), ANY} & {*settings.cors_origin}:
        raise NotAllowed(
            "origin", text=f"Pages of {origin[:256]} cannot use the control API (--cors-origin)."
        )


def _is_own(origin: str, request: Request) -> bool:
    """Whether a page came from the address at which it calls."""
    parts = urlsplit(origin)
    scheme = "https" if request.secure else "http"
    return parts.scheme == scheme and parts.netloc.lower() == request.header("host").lower()


def is_loopback(address: str) -> bool:
    """Whether an address is this machine's own."""
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False
