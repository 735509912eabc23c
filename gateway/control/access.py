"""Access to the control API, decided before anything else in a request is read.

With auth `dev`, any client on this machine has access, because it can change all data anyway. All other clients need the
administrator's token. Pages of other origins are refused unless the settings name their origin (security/browsers.py).
"""

from __future__ import annotations

import hmac
import ipaddress

from tablegate.gateway.configuration.settings import ANY, Settings
from tablegate.gateway.http import Request
from tablegate.gateway.model.errors import NotAllowed
from tablegate.gateway.security.attempts import AttemptLimiter
from tablegate.gateway.security.browsers import foreign_origin

PREFIX = "/_tablegate/"
"""What all paths of the control API begin with. No dialect has such a path."""
ADMINISTRATOR = "administrator"
"""The name to sign in by with the administrator's token."""
CONSOLE = f"{PREFIX}console"
"""The prefix of the console's pages, which are no part of the control API."""
# A row has at most 400 KB, and a form encodes a byte as up to three.
_SIGN_IN_BYTES, _FORM_BYTES = 8 << 10, 2 << 20


def form_limit(path: str) -> int:
    """Return the number of bytes that a form of the console may have."""
    return _SIGN_IN_BYTES if path == f"{CONSOLE}/sign-in" else _FORM_BYTES


def check(request: Request, settings: Settings, attempts: AttemptLimiter) -> str:
    """Return the name of the caller, "" if it has none. Raises NotAllowed, rule `origin` or `administrator`, with a text that
    says what to do, and TooManyAttempts."""
    check_origin(request, settings)
    given = request.header("authorization")
    if has_token(request, settings.admin_token, ADMINISTRATOR, attempts):
        return ADMINISTRATOR
    if settings.auth == "dev" and not given and is_loopback(request.client):
        return ""
    raise NotAllowed(
        "administrator",
        text="The control API wants the administrator's token: --admin-token, Authorization: Bearer ...",
    )


def has_token(request: Request, token: str, name: str, attempts: AttemptLimiter) -> bool:
    """True if a request has a bearer token. `name`: what its wrong ones are counted by. Raises TooManyAttempts."""
    given, wanted = request.header("authorization").encode("latin-1"), f"Bearer {token}".encode()
    if not token or not given:
        return False
    proof = attempts.judge(
        request.client, name, lambda: given if hmac.compare_digest(given, wanted) else None
    )
    return proof is not None


def check_origin(request: Request, settings: Settings) -> None:
    """Raises NotAllowed, rule `origin`, of what a page of another origin sends that the settings do not name."""
    origin = request.header("origin")
    if origin and not _is_own(origin, request) and not {origin.lower(), ANY} & {*settings.cors_origin}:
        raise foreign_origin(origin)


def _is_own(origin: str, request: Request) -> bool:
    """True if a page came from the address at which it calls. Pages cannot set Sec-Fetch-Site, and behind a proxy that ends TLS
    only the browser knows the address."""
    if request.header("sec-fetch-site") == "same-origin":
        return True
    scheme = "https" if request.secure else "http"
    return origin.lower() == f"{scheme}://{request.header('host')}".lower()


def is_loopback(address: str) -> bool:
    """Whether an address is this machine's own."""
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False
