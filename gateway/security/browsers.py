"""Pages in a browser: which Host and Origin headers are taken, decided before anything is done with a request.

With auth `dev` whoever reaches the server may do everything, and a page from anywhere reaches a server on its visitor's
machine in two ways. It sends requests there (a "simple" one without asking first); browsers say in Origin which page sent
them. Or its own name is made to resolve to that machine after it was loaded (DNS rebinding), so that page and server have one
origin; then Host still is that name. So Host must be a name that no stranger can give an address to: an IP address, a name of one
label, one below `localhost` (RFC 6761) or `internal` (reserved for private use by ICANN), the service's own names, and what
the settings name. And Origin must be of this machine, or named in the settings.

Programs that are no browser send no Origin and pass. Electron's send `file://` (NoSQL Workbench: LocalStack lets it in as
this, localstack/aws/handlers/cors.py) or `app://...`, which no page of the web can. Every web site can make a sandboxed frame,
whose origin is `null`, so no setting allows `null` by name.

Knows two headers, and Sec-Fetch-Site. Knows no dialect: their `refuse` words the refusal.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable, Iterable
from functools import lru_cache

from tablegate.gateway.configuration.settings import ANY, OPAQUE_ORIGIN, Settings
from tablegate.gateway.http import Request
from tablegate.gateway.model.errors import NotAllowed

# uri-host and port (RFC 9110, 7.2); names as resolvers take them, underscores of container names included.
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::\d{0,5})?", re.IGNORECASE | re.ASCII)
_WEB_ORIGIN = re.compile(r"https?://([^/]+)", re.IGNORECASE)
_APPLICATION_ORIGIN = re.compile(r"(?:file|app)://.*", re.IGNORECASE)
_PRIVATE_SUFFIXES = (".localhost", ".internal")


class OriginPolicy:
    """What the settings say of Host and Origin. `service_hosts`: the dialects' patterns of their services' own names;
    `is_open`: whoever reaches the server gets an answer, so that pages must be kept out."""

    def __init__(
        self, settings: Settings, is_open: bool, service_hosts: Iterable[re.Pattern[str]] = ()
    ) -> None:
        self._hosts = frozenset(name for name in settings.allowed_host if not name.startswith("."))
        self._suffixes = tuple(name for name in settings.allowed_host if name.startswith("."))
        self._own_names = frozenset((settings.host.lower(), socket.gethostname().lower()))
        self._service_hosts = tuple(service_hosts)
        self._origins = frozenset(settings.cors_origin)
        self._guards_hosts = (is_open or bool(settings.allowed_host)) and ANY not in self._hosts
        self._guards_origins = (is_open or bool(settings.cors_origin)) and ANY not in self._origins
        self.lets_in: Callable[[str, str, str], bool] = lru_cache(maxsize=256)(self._lets_in)
        """Whether `check` has nothing against a request with these values of Host, Origin and Sec-Fetch-Site."""

    def check(self, request: Request) -> None:
        """Raises NotAllowed, rule `host` or `origin`, of a request that a foreign page may have sent."""
        known = request.header_map
        self._check(known.get("host", ""), known.get("origin", ""), known.get("sec-fetch-site", ""))

    def _lets_in(self, host: str, origin: str, site: str) -> bool:
        try:
            self._check(host, origin, site)
        except NotAllowed:
            return False
        return True

    def _check(self, host: str, origin: str, site: str) -> None:
        """What `check` says of these headers' values."""
        if self._guards_hosts and host and not self.takes_host(host):
            raise NotAllowed("host", text=f"The host {host[:256]} is not allowed here (--allowed-host).")
        if self._guards_origins:
            if origin:
                if not self.takes_origin(origin):
                    raise foreign_origin(origin)
            elif site == "cross-site":
                # What a page only embeds (an image, a script) is asked for without an Origin.
                raise NotAllowed("origin", text="Pages of other sites are not allowed here (--cors-origin).")

    def takes_host(self, host: str) -> bool:
        """Whether a Host header names this server by a name that no stranger can point here."""
        found = _HOST.fullmatch(host)
        if found is None:
            return False
        name = found.group(1).lower().removesuffix(".")
        if _is_address(name.strip("[]")):
            return True
        if "." not in name or name.endswith(_PRIVATE_SUFFIXES):
            return True
        if name in self._hosts or name in self._own_names or name.endswith(self._suffixes):
            return True
        return any(pattern.fullmatch(name) for pattern in self._service_hosts)

    def takes_page(self, origin: str) -> bool:
        """True if `check` has nothing against this Origin header."""
        return not self._guards_origins or self.takes_origin(origin)

    def takes_origin(self, origin: str) -> bool:
        """Whether an Origin header is that of a page of this machine, of a desktop application, or named in the settings."""
        if origin.lower() in self._origins:
            return True
        if _APPLICATION_ORIGIN.fullmatch(origin):
            return True
        found = _WEB_ORIGIN.fullmatch(origin)
        return found is not None and _is_loopback(found.group(1))


def foreign_origin(origin: str) -> NotAllowed:
    """The refusal of a page by its Origin header."""
    if origin.lower() == OPAQUE_ORIGIN:
        return NotAllowed(
            "origin", text="The origin null is not allowed here: any page can have it by a sandboxed frame."
        )
    return NotAllowed("origin", text=f"The origin {origin[:256]} is not allowed here (--cors-origin).")


def _is_loopback(authority: str) -> bool:
    found = _HOST.fullmatch(authority)
    if found is None:
        return False
    name = found.group(1).lower().removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    address = name.strip("[]")
    return _is_address(address) and ipaddress.ip_address(address).is_loopback


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
