"""Who looks at the console, and what is theirs.

With auth `dev` whoever is on this machine sees everything, as with the control API. Everybody else signs in, with a credential or
with the administrator's token, and then holds a cookie that says who they are and until when, sealed with the secret they signed
in with: no server keeps a session, every server process knows it, and it ends with the credential. A page of another site can
neither send the cookie (SameSite=Strict) nor read an answer (access.py refuses foreign origins).
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable

from gateway.control import access
from gateway.dialect import Gateway
from gateway.http import Request
from gateway.model.authorizations import Authorization, Source
from gateway.model.fast_dataclasses import dataclass
from gateway.model.namespaces import is_reserved
from gateway.security.credentials import ANY_PLACE, SHARED_NAMESPACE, Credential, Scheme

COOKIE = "tablegate-console"
HOURS = 8
ADMINISTRATOR = "administrator"


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody who may look. `name`: who; `sees`: whether the tables of a namespace are theirs; `authorization`: what they may do
    with these (None: everything); `grantee`: as whom they hold grants ("": they see everybody's)."""

    name: str
    sees: Callable[[str], bool]
    authorization: Authorization | None = None
    has_signed_in: bool = True
    grantee: str = ""


class SignIn:
    """Lets visitors in. Nothing is remembered."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def visitor(self, request: Request, cookie: str) -> Visitor | None:
        """Who sends a request; None: somebody who has to sign in first. Raises NotAllowed for pages of other origins."""
        settings = self._gateway.settings
        access.check_origin(request, settings)
        if settings.auth == "dev" and access.is_loopback(request.client):
            return Visitor("everybody on this machine", _everything, has_signed_in=False)
        return self._of_cookie(cookie, Source(request.client, request.secure))

    def cookie_of(self, access_id: str, secret: str) -> str | None:
        """The cookie of somebody who has this secret; None: nobody has it. A credential's access id with its secret, or
        `administrator` with the administrator's token."""
        until = self._gateway.real_now_ms() // 1000 + HOURS * 3600
        for scheme, secrets in self._known(access_id):
            for each in secrets:
                if hmac.compare_digest(each.encode(), secret.encode()):
                    return f"{scheme}|{until}|{_seal(each, scheme, access_id, until)}|{access_id}"
        return None

    def _of_cookie(self, cookie: str, source: Source) -> Visitor | None:
        scheme, _, rest = cookie.partition("|")
        until_text, _, rest = rest.partition("|")
        seal, _, access_id = rest.partition("|")
        if not until_text.isdecimal() or len(until_text) > 12:
            return None
        until = int(until_text)
        if self._gateway.real_now_ms() // 1000 >= until:
            return None
        for known, secrets in self._known(access_id):
            for each in secrets:
                if known == scheme and hmac.compare_digest(_seal(each, scheme, access_id, until), seal):
                    return self._visitor(known, access_id, source)
        return None

    def _known(self, access_id: str) -> list[tuple[str, tuple[str, ...]]]:
        """(scheme, secrets) of everybody who goes by an access id."""
        token = self._gateway.settings.admin_token
        if access_id == ADMINISTRATOR:
            return [(ADMINISTRATOR, (token,))] if token else []
        found = [self._gateway.credentials.find(scheme, access_id) for scheme in Scheme]
        return [(each.scheme.value, each.secrets) for each in found if each is not None]

    def _visitor(self, scheme: str, access_id: str, source: Source) -> Visitor | None:
        if scheme == ADMINISTRATOR:
            return Visitor(ADMINISTRATOR, _everything)
        credential = self._gateway.credentials.find(Scheme(scheme), access_id)
        if credential is None:
            return None
        namespaces = _namespaces_of(credential, self._gateway.settings.namespaces)
        authorization = self._gateway.credentials.authorization(
            credential, credential.policy, source, self._gateway.real_now_ms()
        )
        return Visitor(
            access_id,
            lambda namespace: namespaces(namespace) and not is_reserved(namespace),
            authorization,
            grantee=f"{scheme}/{access_id}",
        )


def _everything(namespace: str) -> bool:
    return not is_reserved(namespace)


def _namespaces_of(credential: Credential, kept: str) -> Callable[[str], bool]:
    """Which namespaces a credential's own tables live in: one for all, or those that security/credentials.py makes of it."""
    if kept == "shared":
        return lambda namespace: namespace == SHARED_NAMESPACE
    scheme, place = credential.scheme, credential.place
    if scheme is Scheme.AZURE or (scheme is Scheme.AWS and kept == "keys"):
        place = credential.access_id
    if place == ANY_PLACE:
        return lambda namespace: namespace.startswith(f"{scheme.value}/")
    own = "/".join((scheme.value, place.replace("%", "%25").replace("/", "%2F")))
    return lambda namespace: bool(place) and (namespace == own or namespace.startswith(f"{own}/"))


def _seal(secret: str, scheme: str, access_id: str, until: int) -> str:
    said = f"tablegate console\n{scheme}\n{access_id}\n{until}".encode()
    return hmac.new(secret.encode(), said, hashlib.sha256).hexdigest()
