"""Protection against web pages: the check of the Host and Origin headers, before a request is handled.

With auth `dev` every client has full access. A page of any site can reach a server on the machine of its visitor in two ways:
- It sends requests, "simple" ones without a preflight. Browsers put the origin of the page into Origin.
- Its host name resolves to that machine after the page was loaded (DNS rebinding). Page and server then have one origin, but
  Host still has that name.

So Host must be a name that an attacker cannot point to an address:
- an IP address, or a single-label name;
- a name below `localhost` (RFC 6761) or `internal` (reserved for private use by ICANN);
- a name of the service, or a name in the settings.
Origin must be of this machine, or in the settings.

Other programs send no Origin and are accepted. Electron applications send `file://` or `app://...`, which no web page can.
(NoSQL Workbench sends `file://`. LocalStack accepts it, too: localstack/aws/handlers/cors.py.) Every web site can create a
sandboxed frame with the origin `null`, so no setting allows `null` by name.

The headers are Host, Origin and Sec-Fetch-Site. The dialect words the refusal (`refuse`).
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable, Iterable
from functools import lru_cache

from tablegate.gateway.configuration.checks import is_loopback_address
from tablegate.gateway.configuration.settings import ANY, Settings
from tablegate.gateway.http.messages import Request
from tablegate.gateway.model.errors import NotAllowed

# uri-host and port (RFC 9110, 7.2). Names as resolvers accept them, with the underscores of container names.
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::\d{0,5})?", re.IGNORECASE | re.ASCII)
_WEB_ORIGIN = re.compile(r"https?://([^/]+)", re.IGNORECASE)
_APPLICATION_ORIGIN = re.compile(r"(?:file|app)://.*", re.IGNORECASE)
_PRIVATE_SUFFIXES = (".localhost", ".internal")


class OriginPolicy:
    """The allowed values of Host and Origin.

    - `is_open`: unauthenticated requests are answered, so requests of pages must be refused.
    - `service_hosts`: the dialects' patterns of the host names of their services.
    """

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
        self.is_allowed: Callable[[str, str, str], bool] = lru_cache(maxsize=256)(self._is_allowed)
        """True if `check` accepts a request with these values of Host, Origin and Sec-Fetch-Site."""

    def check(self, request: Request) -> None:
        """Refuse a request that a foreign page can have sent. Raises NotAllowed, rule `host` or `origin`."""
        headers = request.header_map
        self._check(headers.get("host", ""), headers.get("origin", ""), headers.get("sec-fetch-site", ""))

    def _is_allowed(self, host: str, origin: str, site: str) -> bool:
        try:
            self._check(host, origin, site)
        except NotAllowed:
            return False
        return True

    def _check(self, host: str, origin: str, site: str) -> None:
        if self._guards_hosts and host and not self.is_allowed_host(host):
            raise NotAllowed("host", text=f"The host {host[:256]} is not allowed here (--allowed-host).")
        if self._guards_origins:
            if origin:
                if not self._is_allowed_origin(origin):
                    raise foreign_origin(origin)
            elif site == "cross-site":
                # Browsers request embedded objects (images, scripts) without an Origin.
                raise NotAllowed("origin", text="Pages of other sites are not allowed here (--cors-origin).")

    def is_allowed_host(self, host: str) -> bool:
        """True if a Host header has a name that an attacker cannot point to this server."""
        match = _HOST.fullmatch(host)
        if match is None:
            return False
        name = match.group(1).lower().removesuffix(".")
        if _is_address(name.strip("[]")):
            return True
        if "." not in name or name.endswith(_PRIVATE_SUFFIXES):
            return True
        if name in self._hosts or name in self._own_names or name.endswith(self._suffixes):
            return True
        return any(pattern.fullmatch(name) for pattern in self._service_hosts)

    def is_allowed_page(self, origin: str) -> bool:
        """True if `check` accepts this Origin header."""
        return not self._guards_origins or self._is_allowed_origin(origin)

    def _is_allowed_origin(self, origin: str) -> bool:
        """True if an Origin header is of a page of this machine, of a desktop application, or in the settings."""
        if origin.lower() in self._origins:
            return True
        if _APPLICATION_ORIGIN.fullmatch(origin):
            return True
        match = _WEB_ORIGIN.fullmatch(origin)
        return match is not None and _is_loopback(match.group(1))


def names_this_server(host: str, settings: Settings) -> bool:
    """True if a Host header has a name that the settings give to this server, that of its machine, or a loopback address.

    Any client can write any other name there, so no other name may stand in an address that is sent to a third party.
    """
    match = _HOST.fullmatch(host)
    if match is None:
        return False
    name = match.group(1).lower().removesuffix(".")
    own = {name for name in settings.allowed_host if name != ANY} | {
        settings.host.lower(),
        socket.gethostname().lower(),
    }
    suffixes = tuple(each for each in own if each.startswith("."))
    return name.strip("[]") in own or name.endswith(suffixes) or _is_loopback(host)


def foreign_origin(origin: str) -> NotAllowed:
    """Return the refusal of an Origin header."""
    if origin.lower() == "null":  # of sandboxed frames and local files (RFC 6454, 7.1)
        return NotAllowed(
            "origin", text="The origin null is not allowed here: a sandboxed frame of any page has it."
        )
    return NotAllowed("origin", text=f"The origin {origin[:256]} is not allowed here (--cors-origin).")


def _is_loopback(authority: str) -> bool:
    match = _HOST.fullmatch(authority)
    if match is None:
        return False
    name = match.group(1).lower().removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    return is_loopback_address(name.strip("[]"))


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
