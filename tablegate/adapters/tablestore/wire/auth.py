"""Signatures V2 and V4 of requests and replies.

Pure: depends on a request, a snapshot of credentials and the time. The result is a Caller, NotAuthenticated or
ServiceError. The request gets an authorization if its caller is restricted.

The signature covers "/" + operation, the method, an empty query, and every x-ots-* header except the signatures,
sorted. Source: docs/protocols/table-store.md section 1.2 and 1.3.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import ServiceError, invalid
from tablegate.gateway.http.messages import Request
from tablegate.gateway.model.authorization.authorizations import RequestSource
from tablegate.gateway.model.errors import NotAuthenticated
from tablegate.gateway.security.credentials import Credential, Credentials, Scheme
from tablegate.gateway.security.signatures import hmac_digest

_REQUIRED = (
    "x-ots-date",
    "x-ots-apiversion",
    "x-ots-accesskeyid",
    "x-ots-instancename",
    "x-ots-contentmd5",
)
_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z", re.ASCII)
SIGNATURES = ("x-ots-signature", "x-ots-signaturev4")


class Caller(NamedTuple):
    """The authenticated caller: the access key, the instance, its namespace, and the key that signs the reply."""

    access_id: str
    instance: str
    namespace: str
    signing_key: bytes

    def __repr__(self) -> str:
        return f"Caller({self.access_id!r}, {self.instance!r}, {self.namespace!r})"


def verify(
    request: Request, operation: str, credentials: Credentials, now_ms: int, has_body: bool = True
) -> Caller:
    """Authenticate a request. `has_body`: False if the body and its digest are not available yet.

    Raises NotAuthenticated or ServiceError, in the service's order: headers, date, clock, key, instance, digest of the
    body, signature.
    """
    headers = {name: value.strip() for name, value in request.headers if name.startswith("x-ots-")}
    signature_name = "x-ots-signaturev4" if "x-ots-signaturev4" in headers else "x-ots-signature"
    for name in (*_REQUIRED, signature_name):
        if not headers.get(name):
            raise invalid(f"Missing header: '{name}'.")
    _check_clock(headers["x-ots-date"], now_ms)
    access_id = headers["x-ots-accesskeyid"]
    token, instance = headers.get("x-ots-ststoken", ""), headers["x-ots-instancename"]
    credential = credentials.find_key(Scheme.TABLESTORE, access_id, token, now_ms, instance)
    if credential is None:
        raise NotAuthenticated("unknown-key")
    if len(instance) > limits.INSTANCE_NAME_MAX or not credentials.is_valid_in(credential, instance):
        raise NotAuthenticated("instance")
    if has_body:
        digest = base64.b64encode(hashlib.md5(request.body, usedforsecurity=False).digest())
        if not hmac.compare_digest(digest, headers["x-ots-contentmd5"].encode("latin-1", "replace")):
            raise NotAuthenticated("digest")
    key = _proven_key(credential, headers, operation)
    if credential.session_token and not hmac.compare_digest(
        credential.session_token.encode(), token.encode("latin-1", "replace")
    ):
        raise NotAuthenticated("token")
    if credentials.is_limited or credential.policy is not None or credential.is_of_identity:
        source = RequestSource(request.client, request.secure)
        request.authorization = credentials.authorization(
            credential.identity, credential.policy, source, now_ms
        )
    return Caller(access_id, instance, credentials.namespace(Scheme.TABLESTORE, instance), key)


def claimed(request: Request, credentials: Credentials, now_ms: int) -> str:
    """Return the caller that an unverified request names: the owner of a session, or the access id."""
    access_id, token = request.header("x-ots-accesskeyid"), request.header("x-ots-ststoken")
    instance = request.header("x-ots-instancename")
    found = credentials.find_key(Scheme.TABLESTORE, access_id, token, now_ms, instance)
    return access_id if found is None else found.access_id


def _check_clock(date: str, now_ms: int) -> None:
    if not _DATE.fullmatch(date):
        raise invalid(f"Invalid date format: {date}.")
    try:
        sent_at = datetime.fromisoformat(date)
    except ValueError:
        raise invalid(f"Invalid date format: {date}.") from None
    if abs(sent_at.timestamp() * 1000 - now_ms) > limits.CLOCK_SKEW_MS:
        raise ServiceError("OTSAuthFailed", f"Mismatch between system time and x-ots-date: {date}.")


def _proven_key(credential: Credential, headers: dict[str, str], operation: str) -> bytes:
    """Return the key of the credential that made the signature. Raises NotAuthenticated."""
    signed = string_to_sign(operation, headers)
    if "x-ots-signaturev4" in headers:
        signature = headers["x-ots-signaturev4"].encode("latin-1", "replace")
        for secret in credential.secrets:
            day, region = headers.get("x-ots-signdate", ""), headers.get("x-ots-signregion", "")
            key = derived_key(secret, day, region)
            expected = base64.b64encode(hmac_digest(key, signed + b"ots", "sha256"))
            if hmac.compare_digest(expected, signature):
                return key
    else:
        signature = headers["x-ots-signature"].encode("latin-1", "replace")
        for secret in credential.secrets:
            if hmac.compare_digest(base64.b64encode(hmac_digest(secret.encode(), signed, "sha1")), signature):
                return secret.encode()
    raise NotAuthenticated("signature")


def string_to_sign(operation: str, headers: Mapping[str, str]) -> bytes:
    """Return the signed bytes of a request. `headers` by lower-case name."""
    lines = sorted([f"{name}:{value}\n" for name, value in headers.items() if name not in SIGNATURES])
    return f"/{operation}\nPOST\n\n{''.join(lines)}".encode("latin-1", "replace")


def signing_headers(
    operation: str, body: bytes, headers: Mapping[str, str], access_id: str, secret: str, date: str
) -> dict[str, str]:
    """Return the headers that sign a request by version 2. `headers`: its other x-ots-* headers by lower-case name."""
    signing = {
        "x-ots-date": date,
        "x-ots-accesskeyid": access_id,
        "x-ots-contentmd5": base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode(),
    }
    signed = string_to_sign(operation, {**headers, **signing})
    signature = base64.b64encode(hmac.digest(secret.encode(), signed, "sha1")).decode()
    return {**signing, "x-ots-signature": signature}


@lru_cache(maxsize=1024)
def derived_key(secret: str, day: str, region: str) -> bytes:
    """Return the V4 signing key of a day and a region, in base64. The base64 text itself is the key."""
    key = ("aliyun_v4" + secret).encode()
    for step in (day, region, "ots", "aliyun_v4_request"):
        key = hmac.digest(key, step.encode("latin-1", "replace"), "sha256")
    return base64.b64encode(key)


def reply_signature(caller: Caller, operation: str, headers: Iterable[tuple[str, str]]) -> str:
    """Return the Authorization header of a reply with these x-ots-* headers. Both versions use HMAC-SHA1."""
    lines = sorted([f"{name}:{value}" for name, value in headers])
    signed = "\n".join([*lines, f"/{operation}"]).encode()
    signature = base64.b64encode(hmac_digest(caller.signing_key, signed, "sha1")).decode()
    return f"OTS {caller.access_id}:{signature}"
