"""Signing keys of an OpenID Connect issuer: discovery and JWKS over HTTPS, cached and rotated.

One thread for each issuer fetches the keys, every REFRESH_S seconds and sooner if a token names an unknown key. Requests never
fetch and never wait, so a slow issuer delays none. A fetch has bounds of time and size, and follows no redirect. The keys of
the last success count for at most KEPT_S seconds.

Sources: OpenID Connect Discovery 1.0 (sections 4.1 and 4.3), RFC 7517.
"""

from __future__ import annotations

import json
import threading
import time
import urllib.request
import weakref
from collections.abc import Sequence
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tablegate.gateway.configuration.checks import is_loopback_address
from tablegate.gateway.observability import logs
from tablegate.gateway.security.signatures import keys_of

if TYPE_CHECKING:
    import jwt

REFRESH_S = 300.0
KEPT_S = 24 * 3600.0
_SOONEST_S = 5.0
"""Seconds between two fetches because of unknown keys, and after a failure."""
_FIRST_WAIT_S = 5.0
_SILENCE_S = 5.0
_FETCH_S = 15.0
_MAX_BYTES = 1 << 20


class BadIssuer(Exception):
    """Raised if the keys of an issuer cannot be fetched. The text gives the reason."""


_opener = urllib.request.OpenerDirector()
"""The HTTP client, without a handler of redirects."""
for _handler in (
    urllib.request.ProxyHandler,
    urllib.request.HTTPHandler,
    urllib.request.HTTPSHandler,
    urllib.request.HTTPDefaultErrorHandler,
    urllib.request.HTTPErrorProcessor,
):
    _opener.add_handler(_handler())


def check_url(url: str) -> None:
    """Check that a URL is HTTPS, or HTTP of a loopback address. Raises BadIssuer."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        raise BadIssuer(f"{url!r} is not a URL") from None
    is_local = parts.scheme == "http" and (host == "localhost" or is_loopback_address(host))
    if not host or parts.username is not None or not (parts.scheme == "https" or is_local):
        raise BadIssuer(f"{url!r} is not an https:// URL. Only loopback addresses may use http://")


class IssuerKeys:
    """The keys of one issuer, for use by several threads."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.metadata: dict[str, Any] = {}
        """The discovery document. Empty before the first success."""
        self._keys: tuple[jwt.PyJWK, ...] = ()
        self._fetched_s = 0.0
        self._tried_s = 0.0
        self._wanted, self._tried = threading.Event(), threading.Event()
        stopping = threading.Event()
        # The thread has no reference to this object between two fetches, so it ends with it.
        self._end = weakref.finalize(self, _stop, stopping, self._wanted)
        arguments = (weakref.ref(self), stopping, self._wanted)
        threading.Thread(target=_refresh, args=arguments, name=f"keys of {url}", daemon=True).start()

    def wait_for_first(self) -> None:
        """Wait for the first fetch, for a few seconds. For the start of a server."""
        self._tried.wait(_FIRST_WAIT_S)

    def current(self) -> Sequence[jwt.PyJWK]:
        """Return the keys, none before the first success."""
        return self._keys if time.monotonic() < self._fetched_s + KEPT_S else ()

    def want_newer(self) -> None:
        """Fetch soon, because a token names an unknown key. Does nothing if the last fetch was just now."""
        if time.monotonic() >= self._tried_s + _SOONEST_S:
            self._wanted.set()

    def fetch(self) -> None:
        """Fetch the keys. Failures are logged, and the keys stay."""
        try:
            metadata = _document(self.url.rstrip("/") + "/.well-known/openid-configuration")
            if metadata.get("issuer") != self.url:
                raise BadIssuer(f"its discovery document is that of {metadata.get('issuer')!r}")
            keys = keys_of(_document(str(metadata.get("jwks_uri"))))
            self.metadata, self._keys, self._fetched_s = metadata, keys, time.monotonic()
        except Exception as error:  # also what PyJWT raises for malformed keys
            logs.error(
                "cannot fetch the keys of an issuer of tokens", None, issuer=self.url, reason=str(error)
            )
        self._tried_s = time.monotonic()
        self._tried.set()


def _stop(stopping: threading.Event, wanted: threading.Event) -> None:
    stopping.set()
    wanted.set()


def _refresh(issuer: weakref.ref[IssuerKeys], stopping: threading.Event, wanted: threading.Event) -> None:
    while not stopping.is_set():
        wanted.clear()
        keys = issuer()
        if keys is None:
            return
        keys.fetch()
        period_s = REFRESH_S if keys.metadata else _SOONEST_S
        del keys
        wanted.wait(period_s)


def _document(url: str) -> dict[str, Any]:
    """Return the JSON object at a URL. Raises BadIssuer."""
    check_url(url)
    return read_json(urllib.request.Request(url, headers={"Accept": "application/json"}))


def read_json(request: urllib.request.Request) -> dict[str, Any]:
    """Send a request to an issuer, and return the JSON object of its answer. Raises BadIssuer."""
    deadline = time.monotonic() + _FETCH_S
    body = b""
    try:
        with _opener.open(request, timeout=_SILENCE_S) as response:
            while piece := response.read1(1 << 16):
                body += piece
                if len(body) > _MAX_BYTES or time.monotonic() > deadline:
                    raise BadIssuer(f"the answer of {request.full_url} is too long or too slow")
        document = json.loads(body)
    except (OSError, HTTPException, ValueError, RecursionError) as error:
        raise BadIssuer(f"{request.full_url}: {error}") from None
    if not isinstance(document, dict):
        raise BadIssuer(f"{request.full_url} did not answer with a JSON object")
    return document
