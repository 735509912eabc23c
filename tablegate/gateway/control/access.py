"""Access to the control API, checked before the rest of a request is read.

With auth `dev`, any client on this machine has access, because it can change all data anyway. All other clients need the
administrator's token. Pages of other origins are refused unless the settings name their origin (security/browsers.py).
"""

from __future__ import annotations

import hmac

from tablegate.gateway.configuration.checks import is_loopback_address
from tablegate.gateway.configuration.settings import ANY, Settings
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.model.errors import NotAllowed
from tablegate.gateway.security.attempts import AttemptLimiter
from tablegate.gateway.security.browsers import foreign_origin

PREFIX = "/_tablegate/"
"""The prefix of all paths of the control API. No dialect has such a path."""
ADMINISTRATOR = "administrator"
"""The name for signing in with the administrator's token."""
CONSOLE = f"{PREFIX}console"
"""The prefix of the console's pages, which do not belong to the control API."""
_SIGN_IN_BYTES, _FORM_BYTES = 8 << 10, 2 << 20
# An entity has at most 1 MiB in UTF-16, and a form encodes a character of two bytes as up to nine.
_ROW_BYTES = 6 << 20


def form_limit(path: str) -> int:
    """Return the maximum size of a form of the console, in bytes."""
    limits = {f"{CONSOLE}/sign-in": _SIGN_IN_BYTES, f"{CONSOLE}/row/put": _ROW_BYTES}
    return limits.get(path, _FORM_BYTES)


def refusal_of_form(request: Request) -> Reply | None:
    """Return the page that refuses a form of the console by its length, before its body is received. None if it is accepted."""
    limit, size = form_limit(request.path), int(request.header("content-length") or 0)
    if not request.path.startswith(CONSOLE) or size <= limit:
        return None
    headers = (
        ("Content-Type", "text/html; charset=utf-8"),
        (
            "Content-Security-Policy",
            "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'",
        ),
        ("X-Content-Type-Options", "nosniff"),
    )
    return Reply(413, headers, _TOO_LONG.format(console=CONSOLE, size=size, limit=limit).encode())


# The frame of templates/console/layout.html, since Flask is not called for a request without its body.
_TOO_LONG = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>This is too long · tablegate</title>
<link rel="stylesheet" href="{console}/static/tokens.css"><link rel="stylesheet" href="{console}/static/console.css"></head>
<body>
<header class="site-header"><div><a class="brand" href="{console}/">tablegate</a></div></header>
<main id="content" class="content"><h1>This is too long</h1>
<p role="alert">The form has {size:,} bytes. The limit is {limit:,} bytes.</p>
<p><a class="button" href="{console}/">All tables</a></p></main>
</body>
</html>
"""


def check(request: Request, settings: Settings, attempts: AttemptLimiter) -> str:
    """Return the name of the caller, "" if it has none. Raises NotAllowed (rule `origin` or `administrator`), TooManyAttempts."""
    check_origin(request, settings)
    given = request.header("authorization")
    if has_token(request, settings.admin_token, ADMINISTRATOR, attempts):
        return ADMINISTRATOR
    if settings.auth == "dev" and not given and is_loopback_address(request.client):
        return ""
    raise token_required()


def check_administrator(caller: str) -> None:
    """Refuse a caller that has not proven the administrator's token. Raises NotAllowed, rule `administrator`.

    Stored credentials outlive auth `dev`, so each caller that administers them needs the token.
    """
    if caller != ADMINISTRATOR:
        raise token_required()


def token_required() -> NotAllowed:
    """Return the refusal of a request without the administrator's token."""
    return NotAllowed(
        "administrator",
        text="The control API requires the administrator's token. Set it with --admin-token and send it in the header "
        "Authorization: Bearer TOKEN. In the console, sign in as administrator.",
    )


def has_token(request: Request, token: str, name: str, attempts: AttemptLimiter) -> bool:
    """True if a request has this bearer token. Wrong ones are counted for `name`. Raises TooManyAttempts."""
    given, expected = request.header("authorization").encode("latin-1"), f"Bearer {token}".encode()
    if not token or not given:
        return False
    proof = attempts.judge(
        request.client, name, lambda: given if hmac.compare_digest(given, expected) else None
    )
    return proof is not None


def check_origin(request: Request, settings: Settings) -> None:
    """Refuse a request of a page from another origin, unless the settings name it. Raises NotAllowed, rule `origin`."""
    origin = request.header("origin")
    if origin and not _is_own(origin, request) and not {origin.lower(), ANY} & {*settings.cors_origin}:
        raise foreign_origin(origin)


def _is_own(origin: str, request: Request) -> bool:
    """True if a page has the origin of this server.

    Behind a proxy that terminates TLS only the browser knows the address. Pages cannot set Sec-Fetch-Site themselves.
    """
    if request.header("sec-fetch-site") == "same-origin":
        return True
    scheme = "https" if request.secure else "http"
    return origin.lower() == f"{scheme}://{request.header('host')}".lower()
