"""Sign-in to the console with an identity of an OpenID Connect issuer: authorization code with PKCE, state and nonce.

The browser keeps state, nonce and verifier in a sealed cookie for ten minutes. So servers keep no attempts, and a state without
the cookie of the browser that began is refused. Each state is accepted once by a process, and each code once by the issuer.

Sources: RFC 6749 (4.1), RFC 7636, RFC 9700, OpenID Connect Core 1.0 (3.1).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import threading
import urllib.request
from collections import OrderedDict
from typing import NamedTuple
from urllib.parse import urlencode

from tablegate.gateway.dialect import Gateway
from tablegate.gateway.http import Request
from tablegate.gateway.security.browsers import names_this_server
from tablegate.gateway.security.identities import BadToken, Identity
from tablegate.gateway.security.issuer_keys import BadIssuer, check_url, read_json

COOKIE = "tablegate-sign-in"
SECONDS = 600
_MAX_USED = 10_000
_MAX_CODE_CHARACTERS = 4096


class BadSignIn(Exception):
    """An attempt to sign in that proves no identity. The text is shown."""


class Attempt(NamedTuple):
    """The start of an attempt: the address at the issuer, and the cookie of the browser."""

    address: str
    cookie: str


class OidcSignIn:
    """Sign-in at the issuer without a name, as a client with the id of the settings."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        settings = gateway.settings
        self._client_id = settings.console_oidc_client_id
        file = settings.console_oidc_secret_file
        self._secret = "" if file is None else file.read_text().strip()
        self.is_on = bool(self._client_id) and gateway.identities.own_issuer is not None
        self._used: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    def redirect_uri(self, request: Request, path: str) -> str:
        """Return the address to which the issuer leads the browser. Raises BadSignIn.

        The code comes to this address, so the Host header of a request may not choose it.
        """
        settings, host = self._gateway.settings, request.header("host")
        if settings.console_url:
            return settings.console_url + path
        if not names_this_server(host, settings):
            raise BadSignIn(
                f"The host {host[:256]} is not known to be this server. Its administrator must set --console-url or "
                "--allowed-host."
            )
        return f"{'https' if request.secure else 'http'}://{host}{path}"

    def begin(self, redirect_uri: str) -> Attempt:
        """Return a new attempt. Raises BadSignIn."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        query = {
            "response_type": "code",
            "client_id": self._client_id,
            "redirect_uri": redirect_uri,
            "scope": "openid profile",
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        address = self._endpoint("authorization_endpoint")
        until = self._gateway.real_now_ms() // 1000 + SECONDS
        members = f"{until}|{state}|{nonce}|{verifier}"
        mark = "&" if "?" in address else "?"
        return Attempt(f"{address}{mark}{urlencode(query)}", f"{members}|{self._seal(members)}")

    def identity(self, cookie: str, state: str, code: str, redirect_uri: str) -> Identity:
        """Return the identity that the issuer names for a code. Raises BadSignIn."""
        nonce, verifier = self._checked(cookie, state)
        if not 0 < len(code) <= _MAX_CODE_CHARACTERS:
            raise BadSignIn("The issuer has not confirmed the sign-in. Try again.")
        token = self._exchange(code, verifier, redirect_uri)
        try:
            now_s = self._gateway.real_now_ms() / 1000
            found = self._gateway.identities.verify(token, [self._client_id], now_s, scope="", nonce=nonce)
        except BadToken as error:
            raise BadSignIn(f"The token of the issuer is not accepted: {error}.") from None
        if not found.object_id:
            raise BadSignIn("The token of the issuer names no subject.")
        return found

    def _checked(self, cookie: str, state: str) -> tuple[str, str]:
        """Return (nonce, verifier) of the attempt with this state, which then counts as used. Raises BadSignIn."""
        members, _, seal = cookie.rpartition("|")
        parts = members.split("|")
        is_own = len(parts) == 4 and hmac.compare_digest(seal.encode(), self._seal(members).encode())
        if not is_own or not hmac.compare_digest(state.encode(), parts[1].encode()):
            raise BadSignIn("This browser has not begun this sign-in. Try again.")
        if self._gateway.real_now_ms() // 1000 >= int(parts[0]):
            raise BadSignIn("The sign-in took too long. Try again.")
        with self._lock:
            if state in self._used:
                raise BadSignIn("This sign-in was completed before. Try again.")
            self._used[state] = None
            if len(self._used) > _MAX_USED:
                self._used.popitem(last=False)
        return parts[2], parts[3]

    def _exchange(self, code: str, verifier: str, redirect_uri: str) -> str:
        """Return the ID token for a code. Raises BadSignIn."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "client_id": self._client_id,
            "code_verifier": verifier,
            **({"client_secret": self._secret} if self._secret else {}),
        }
        headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
        endpoint = self._endpoint("token_endpoint")
        try:
            answer = read_json(urllib.request.Request(endpoint, urlencode(form).encode(), headers))
        except BadIssuer:
            raise BadSignIn("The issuer does not accept the code. Try again.") from None
        return str(answer.get("id_token", ""))

    def _endpoint(self, name: str) -> str:
        issuer = self._gateway.identities.own_issuer
        url = "" if issuer is None else str(issuer.metadata.get(name, ""))
        try:
            check_url(url)
        except BadIssuer:
            raise BadSignIn("The issuer cannot be reached now. Try again later.") from None
        return url

    def _seal(self, members: str) -> str:
        return self._gateway.identities.derived_key("console sign-in", members).hex()
