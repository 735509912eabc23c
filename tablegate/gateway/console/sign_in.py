"""Authentication of the console, and the namespaces and permissions of its users.

With auth `dev` local clients see everything, as in the control API. The pages of credentials, grants and quotas require the
administrator's token there, too.

All others sign in with a credential, the administrator's token or an identity, and get a cookie. For a credential it has the
access id and an expiry, signed with the secret. For an identity it is a session (security/credentials.py). So servers keep no
list of sessions, all server processes accept the cookie, and it ends with the credential. A page of another site can neither send
the cookie (SameSite=Strict) nor read a reply (access.py refuses foreign origins).

An identity of an OpenID Connect issuer signs in by authorization code with PKCE, state and nonce. The browser keeps state, nonce
and verifier in a sealed cookie for ten minutes. So servers keep no attempts, and a state without the cookie of the browser that
began is refused. Each state is accepted once by a process, and each code once by the issuer. Sources: RFC 6749 (4.1), RFC 7636,
RFC 9700, OpenID Connect Core 1.0 (3.1).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import threading
import urllib.request
from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlencode

from tablegate.gateway.configuration.checks import is_loopback_address
from tablegate.gateway.control.access import ADMINISTRATOR
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.http.messages import Request
from tablegate.gateway.model.authorization.authorizations import Authorization, RequestSource
from tablegate.gateway.model.authorization.quotas import covers
from tablegate.gateway.model.tables.tables import is_reserved_namespace
from tablegate.gateway.security.browsers import names_this_server
from tablegate.gateway.security.credentials import ANY_PLACE, SHARED_NAMESPACE, Credential, Scheme, Sessions
from tablegate.gateway.security.identities import ENTRA, ENTRA_SCHEME, BadToken, Identity
from tablegate.gateway.security.issuer_keys import BadIssuer, check_url, read_json

COOKIE = "tablegate-console"
HOURS = 8
_MAX_COOKIE_TOKEN = 3500  # browsers drop cookies of more than 4,096 bytes


@dataclass(frozen=True, slots=True)
class ConsoleUser:
    """The caller of a page.

    - `scope`: the namespaces with the tables that are shown (model/authorization/quotas.py), or None for all.
    - `authorization`: the permissions there, or None if the user is unrestricted.
    - `grantee`: the caller's name in grants. "": all grants are shown.
    """

    name: str
    scope: str | None = None
    authorization: Authorization | None = None
    has_signed_in: bool = True
    grantee: str = ""

    def sees(self, namespace: str) -> bool:
        """True if the tables of a namespace are among the visitor's."""
        if is_reserved_namespace(namespace):
            return False
        return self.scope is None or (bool(self.scope) and covers(self.scope, namespace))

    @property
    def sees_everything(self) -> bool:
        """True if nothing of the server is hidden from the visitor."""
        is_unrestricted = self.authorization is None or self.authorization.is_unrestricted
        return is_unrestricted and self.scope in (None, SHARED_NAMESPACE)


class SignIn:
    """Sign-in and the check of cookies."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._sessions = Sessions(gateway.identities, gateway.credentials, "console")

    def visitor(self, request: Request, cookie: str, namespace: str) -> ConsoleUser | None:
        """Return the visitor of a request, or None without a valid cookie. Raises QuotaExceeded.

        `namespace` is the namespace of the request, "" if it has none.
        """
        if cookie.startswith(f"{ENTRA_SCHEME}|"):
            return self._of_identity(cookie, request, namespace)
        if cookie.startswith(f"{ADMINISTRATOR}|"):
            found = self._of_cookie(cookie, request, namespace)
            if found is not None:
                return found
        if self._gateway.settings.auth == "dev" and is_loopback_address(request.client):
            return ConsoleUser("everybody on this machine", has_signed_in=False)
        return self._of_cookie(cookie, request, namespace)

    def cookie_of(self, access_id: str, secret: str, address: str) -> str | None:
        """Return the cookie for an access id and its secret, or None if they are wrong. Raises TooManyAttempts.

        The administrator signs in as `administrator` with its token. `address` is the client's.
        """
        scheme = self._gateway.attempts.judge(address, access_id, lambda: self._scheme_of(access_id, secret))
        if scheme is None:
            return None
        until = self._gateway.real_now_ms() // 1000 + HOURS * 3600
        return f"{scheme}|{until}|{_seal(secret, scheme, access_id, until)}|{access_id}"

    def cookie_of_identity(self, identity: Identity) -> str | None:
        """Return the cookie for an identity. None if its groups and roles are too many for a cookie."""
        session = self._sessions.issue(identity, HOURS * 3600, self._gateway.real_now_ms() / 1000)
        if session is None or len(session.token) > _MAX_COOKIE_TOKEN:
            return None
        return f"{ENTRA_SCHEME}|{session.access_id}|{session.token}"

    def _of_identity(self, cookie: str, request: Request, namespace: str) -> ConsoleUser | None:
        _, _, rest = cookie.partition("|")
        access_id, _, token = rest.partition("|")
        credential = self._sessions.find(Scheme.AWS, access_id, token, self._gateway.real_now_ms() / 1000)
        if credential is None:
            return None
        caller = credential.identity
        # A session of the console is for no account. So an identity sees no tables where tenants are kept apart.
        scope = SHARED_NAMESPACE if self._gateway.settings.namespaces == "shared" else ""
        source = RequestSource(request.client, request.secure)
        request.authorization = self._gateway.credentials.authorization(
            caller, credential.policy, source, self._gateway.real_now_ms()
        )
        if self._gateway.quotas.is_on:
            self._gateway.quotas.enter(request, Scheme.AWS.value, credential.access_id, scope, scope)
        name = ENTRA + caller.access_id
        return ConsoleUser(name, scope, request.authorization, grantee=name)

    def _scheme_of(self, access_id: str, secret: str) -> str | None:
        for scheme, known_secrets in self._known(access_id):
            if any(hmac.compare_digest(each.encode(), secret.encode()) for each in known_secrets):
                return scheme
        return None

    def _of_cookie(self, cookie: str, request: Request, namespace: str) -> ConsoleUser | None:
        scheme, _, rest = cookie.partition("|")
        until_text, _, rest = rest.partition("|")
        seal, _, access_id = rest.partition("|")
        if not until_text.isdecimal() or len(until_text) > 12:
            return None
        until = int(until_text)
        if self._gateway.real_now_ms() // 1000 >= until:
            return None
        for known, known_secrets in self._known(access_id):
            for each in known_secrets:
                expected = _seal(each, scheme, access_id, until)
                if known == scheme and hmac.compare_digest(expected.encode(), seal.encode()):
                    return self._visitor(known, access_id, request, namespace)
        return None

    def _known(self, access_id: str) -> list[tuple[str, tuple[str, ...]]]:
        """Return (scheme, secrets) of all credentials with an access id."""
        token = self._gateway.settings.admin_token
        if access_id == ADMINISTRATOR:
            return [(ADMINISTRATOR, (token,))] if token else []
        found = [self._gateway.credentials.find(scheme, access_id) for scheme in Scheme]
        return [(each.scheme.value, each.secrets) for each in found if each is not None]

    def _visitor(self, scheme: str, access_id: str, request: Request, namespace: str) -> ConsoleUser | None:
        if scheme == ADMINISTRATOR:
            return ConsoleUser(ADMINISTRATOR)
        gateway = self._gateway
        credential = gateway.credentials.find(Scheme(scheme), access_id)
        if credential is None:
            return None
        scope = scope_of(credential, gateway.settings.namespaces)
        source = RequestSource(request.client, request.secure)
        request.authorization = gateway.credentials.authorization(
            credential.identity, credential.policy, source, gateway.real_now_ms()
        )
        if gateway.quotas.is_on:
            is_own = bool(scope) and covers(scope, namespace)
            gateway.quotas.enter(request, scheme, access_id, namespace if is_own else scope, scope)
        return ConsoleUser(access_id, scope, request.authorization, grantee=credential.grantee)


def scope_of(credential: Credential, namespaces: str) -> str:
    """Return the scope of a credential's own tables: the shared namespace, or those of its place. "" if it has none."""
    if namespaces == "shared":
        return SHARED_NAMESPACE
    scheme, place = credential.scheme, credential.place
    if scheme is Scheme.AZURE or (scheme is Scheme.AWS and namespaces == "keys"):
        place = credential.access_id
    if place == ANY_PLACE:
        return scheme.value
    return "/".join((scheme.value, place.replace("%", "%25").replace("/", "%2F"))) if place else ""


def _seal(secret: str, scheme: str, access_id: str, until: int) -> str:
    message = f"tablegate console\n{scheme}\n{access_id}\n{until}".encode()
    return hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()


STATE_COOKIE = "tablegate-sign-in"
STATE_SECONDS = 600
_MAX_USED = 10_000
_MAX_CODE_CHARACTERS = 4096


class BadSignIn(Exception):
    """An attempt to sign in that proves no identity. The text is shown."""


class SignInAttempt(NamedTuple):
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

    def begin(self, redirect_uri: str) -> SignInAttempt:
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
        until = self._gateway.real_now_ms() // 1000 + STATE_SECONDS
        members = f"{until}|{state}|{nonce}|{verifier}"
        mark = "&" if "?" in address else "?"
        return SignInAttempt(f"{address}{mark}{urlencode(query)}", f"{members}|{self._seal(members)}")

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
