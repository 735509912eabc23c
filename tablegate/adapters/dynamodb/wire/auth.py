"""AWS Signature Version 4 as DynamoDB checks it, in the Authorization header or in the query, with session tokens.

`verify` takes a request, a snapshot of credentials and a time. It returns a Caller or raises the service's error.
If the caller's permissions are limited, it also sets the authorization of the request.

With auth `strict` everything is checked, in the service's order. With auth `dev` a request must have a signature
of the right form, because the signature contains the key id, account and region. Its value and its date are not
checked. So an SDK with made-up credentials works, and an unsigned request gets the service's error, as in every
emulator.

The service does not document two rules that are decided here:
- The payload hash is always that of the received body. x-amz-content-sha256 is ignored (UNSIGNED-PAYLOAD and
  chunked signatures belong to S3).
- An access key id of twelve digits is its own account number. A stored credential may name an account. All others
  have account 000000000000, or that of the settings with auth `dev`.

Sources: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html. Order of
checks and texts: dynalite index.js (captured from the service), test/alternator/test_authorization.py.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from urllib.parse import quote, unquote_to_bytes

from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.errors import ServiceError
from tablegate.adapters.dynamodb.wire.signature_claims import (
    Caller,
    SignatureClaim,
    claim_of,
    claim_of_header,
)
from tablegate.gateway.http.messages import Request
from tablegate.gateway.model.authorization.authorizations import RequestSource
from tablegate.gateway.security.credentials import CALLERS_KEPT, Credential, Credentials, Scheme
from tablegate.gateway.security.signatures import hmac_digest

# Canonical requests


_EMPTY_HASH = hashlib.sha256(b"").hexdigest()


def canonical_request(request: Request, signed_headers: tuple[str, ...]) -> bytes:
    """Return the canonical form of a request."""
    values = dict.fromkeys(signed_headers, "")
    earlier: set[str] = set()
    for name, value in request.headers:
        if name in values:
            folded = " ".join(value.split())
            values[name] = f"{values[name]},{folded}" if name in earlier else folded
            earlier.add(name)
    headers = "".join(f"{name}:{value}\n" for name, value in values.items())
    payload = hashlib.sha256(request.body).hexdigest() if request.body else _EMPTY_HASH
    text = (
        f"{request.method}\n{_canonical_path(request.path)}\n{_canonical_query(request.query) if request.query else ''}\n"
        f"{headers}\n{';'.join(signed_headers)}\n{payload}"
    )
    return text.encode("latin-1", "replace")


def _canonical_path(path: str) -> str:
    """Remove dot segments and empty ones, and percent-encode once more (all services but S3)."""
    if path == "/":
        return path
    segments: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del segments[-1:]
        elif segment not in ("", "."):
            segments.append(segment)
    trailing = "/" if segments and path.endswith("/") else ""
    return quote("/" + "/".join(segments) + trailing, safe="/-_.~", encoding="latin-1", errors="replace")


def _canonical_query(query: str) -> str:
    """Sort pairs by encoded name, then value, without the signature."""
    pairs = []
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        encoded = _encode(name)
        if pair and encoded != "X-Amz-Signature":
            pairs.append((encoded, _encode(value)))
    return "&".join(f"{name}={value}" for name, value in sorted(pairs))


def _encode(text: str) -> str:
    return quote(unquote_to_bytes(text.encode("latin-1", "replace")), safe="-_.~")


# Verification


DEFAULT_REGION = "us-east-1"

_ALGORITHM = "AWS4-HMAC-SHA256"
_SERVICE = "dynamodb"
_TERMINATOR = "aws4_request"
_REGION = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_ACCOUNT = re.compile(r"[0-9]{12}")
_BASIC_DATE = re.compile(r"[0-9]{8}T[0-9]{6}Z")
_MUST_BE_SIGNED = {"host": "Host", "x-amz-date": "X-Amz-Date", "x-amz-target": "X-Amz-Target"}
_SIGNED = frozenset({"host", "content-type", "content-encoding"})
_HEAD_KEPT_CHARACTERS = 512


def verify(request: Request, credentials: Credentials, now_ms: int) -> Caller:
    """Return the caller of a request, by its signature. `now_ms`: milliseconds since 1970.

    Raises ServiceError: MissingAuthenticationToken, IncompleteSignature, InvalidSignature or UnrecognizedClient,
    checked in this order (rule 5).
    """
    query = request.query
    if credentials.is_dev and not query:
        # Cache of unverified claims, by the header's text without the signature.
        headers = request.header_map
        head, _, signature = headers.get("authorization", "").rpartition("Signature=")
        cached: Caller | None = credentials.callers.get(head)
        if cached is not None and signature.isalnum() and (headers.get("x-amz-date") or headers.get("date")):
            return cached
    claim = claim_of(request, query) if "X-Amz-" in query else claim_of_header(request)
    if credentials.is_dev:
        return _unverified_caller(request, claim, credentials, now_ms)
    credential, region = _proven_key(request, claim, credentials, now_ms, _SERVICE)
    if credentials.is_limited or credential.policy is not None or credential.is_of_identity:
        source = RequestSource(request.client, request.secure, region)
        request.authorization = credentials.authorization(
            credential.identity, credential.policy, source, now_ms
        )
    return _caller(credentials, credential, credential.access_id, region)


def key_of(request: Request, credentials: Credentials, now_ms: int, service: str) -> Credential:
    """Return the credential that signed a request to a service of AWS. With auth `dev` nothing is proven.

    Raises the same errors as `verify`.
    """
    claim = claim_of(request, request.query)
    if not credentials.is_dev:
        return _proven_key(request, claim, credentials, now_ms, service)[0]
    access_id, _ = _unverified_scope(claim.credential)
    found = credentials.find_key(Scheme.AWS, access_id, claim.token, now_ms)
    return found or Credential(Scheme.AWS, access_id, ())


def _proven_key(
    request: Request, claim: SignatureClaim, credentials: Credentials, now_ms: int, service: str
) -> tuple[Credential, str]:
    """Return the credential that made a signature, and the region."""
    date, scope, region, credential = _checked_head(request, claim, credentials, now_ms, service)
    text = string_to_sign(request, claim.signed_headers, date, scope)
    is_signed = False
    for secret in credential.secrets:
        key = signing_key(secret, date[:8], region, service)
        is_signed |= _is_equal(hmac_digest(key, text, "sha256").hex(), claim.signature)
    if not is_signed:
        raise _mismatch(canonical_request(request, claim.signed_headers), text)
    return credential, region


def check_head(request: Request, credentials: Credentials, now_ms: int) -> None:
    """Check the parts of a signature that need no body: its form, its date, and that its key exists.

    Raises the same errors as `verify`. Does nothing with auth `dev`.
    """
    if not credentials.is_dev:
        _checked_head(request, claim_of(request, request.query), credentials, now_ms, _SERVICE)


def _checked_head(
    request: Request, claim: SignatureClaim, credentials: Credentials, now_ms: int, service: str
) -> tuple[str, str, str, Credential]:
    """Return (date, scope, region, credential) of a claim."""
    date = _checked_date(claim, now_ms)
    _check_signed_headers(request, claim.signed_headers)
    access_id, scope, region = _checked_scope(claim, date, service)
    credential = credentials.find_key(Scheme.AWS, access_id, claim.token, now_ms)
    if credential is None or not _is_equal(credential.session_token, claim.token):
        raise ServiceError(
            "UnrecognizedClientException", "The security token included in the request is invalid."
        )
    return date, scope, region, credential


def claimed(request: Request, credentials: Credentials, now_ms: int) -> Caller | None:
    """Return the caller that an unverified request names. None if its form is unreadable."""
    try:
        claim = claim_of(request, request.query)
    except ServiceError:
        return None
    return _claimed_caller(claim, credentials, now_ms)


def _claimed_caller(claim: SignatureClaim, credentials: Credentials, now_ms: int) -> Caller:
    access_id, region = _unverified_scope(claim.credential)
    credential = credentials.find_key(Scheme.AWS, access_id, claim.token, now_ms)
    return _caller(credentials, credential, credential.access_id if credential else access_id, region)


def authorization(request: Request, access_id: str, secret: str, region: str) -> str:
    """Return the Authorization header for a request that has Host and X-Amz-Date.

    All headers are signed that affect the result.
    """
    date = request.header("x-amz-date")
    signed = tuple(
        sorted({name for name, _ in request.headers if name in _SIGNED or name.startswith("x-amz-")})
    )
    scope = f"{date[:8]}/{region}/{_SERVICE}/{_TERMINATOR}"
    text = string_to_sign(request, signed, date, scope)
    signature = hmac.digest(signing_key(secret, date[:8], region), text, "sha256").hex()
    return f"{_ALGORITHM} Credential={access_id}/{scope}, SignedHeaders={';'.join(signed)}, Signature={signature}"


def string_to_sign(request: Request, signed_headers: tuple[str, ...], date: str, scope: str) -> bytes:
    """Return the text of a request that its signature covers."""
    digest = hashlib.sha256(canonical_request(request, signed_headers)).hexdigest()
    return f"{_ALGORITHM}\n{date}\n{scope}\n{digest}".encode("latin-1", "replace")


@lru_cache(maxsize=1024)
def signing_key(secret: str, day: str, region: str, service: str = _SERVICE) -> bytes:
    """Return the signing key of a secret for a day, region and service. Cached, because it takes four HMACs."""
    key = b"AWS4" + secret.encode()
    for part in (day, region, service, _TERMINATOR):
        key = hmac.digest(key, part.encode("latin-1", "replace"), "sha256")
    return key


def _caller(credentials: Credentials, credential: Credential | None, access_id: str, region: str) -> Caller:
    account = credential.place if credential is not None else ""
    if not account:
        account = access_id if _ACCOUNT.fullmatch(access_id) else credentials.default_account
    return _cached_caller(access_id, account, region, credentials.aws_namespace(access_id, account, region))


def _unverified_caller(
    request: Request, claim: SignatureClaim, credentials: Credentials, now_ms: int
) -> Caller:
    """Return the caller of an unverified claim of any form. A claim in a header is cached by its text."""
    caller, callers = _claimed_caller(claim, credentials, now_ms), credentials.callers
    head, _, signature = request.header("authorization").rpartition("Signature=")
    if 0 < len(head) <= _HEAD_KEPT_CHARACTERS and signature.isalnum():
        if len(callers) >= CALLERS_KEPT:
            callers.clear()
        callers[head] = caller
    return caller


_cached_caller = lru_cache(maxsize=1024)(Caller)


@lru_cache(maxsize=1024)
def _unverified_scope(credential: str) -> tuple[str, str]:
    parts = credential.split("/")
    # A key id may contain slashes: count from the end.
    if len(parts) < 5:
        return parts[0], DEFAULT_REGION
    region = parts[-3] if _REGION.fullmatch(parts[-3]) else DEFAULT_REGION
    return "/".join(parts[:-4]), region


def _is_equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


def _mismatch(canonical: bytes, to_sign: bytes) -> ServiceError:
    """Return the error for a wrong signature.

    It shows the expected input of the signature, as the service does. None of it is secret.
    """
    return ServiceError(
        "InvalidSignatureException",
        "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key "
        "and signing method. Consult the service documentation for details.\n\n"
        f"The Canonical String for this request should have been\n'{canonical.decode('latin-1')}'\n\n"
        f"The String-to-Sign should have been\n'{to_sign.decode('latin-1')}'\n",
    )


# Checks


def _checked_date(claim: SignatureClaim, now_ms: int) -> str:
    """Return the time of signing in basic format. Raises ServiceError if it is too old or in the future."""
    parsed = _parsed_date(claim.date)
    if parsed is None:
        text = f"Date must be in ISO-8601 'basic format'. Got '{claim.date}'. See http://en.wikipedia.org/wiki/ISO_8601"
        raise ServiceError("IncompleteSignatureException", text)
    moment_ms, date = parsed
    skew_ms = limits.CLOCK_SKEW_MS
    lifetime_ms = _lifetime_ms(claim.expires) if claim.expires else skew_ms
    if moment_ms < now_ms - lifetime_ms:
        span = f"{lifetime_ms // 60_000} min." if lifetime_ms % 60_000 == 0 else f"{lifetime_ms // 1000} sec."
        earliest = f"{_basic_date(now_ms - lifetime_ms)} ({_basic_date(now_ms)} - {span})"
        text = f"Signature expired: {date} is now earlier than {earliest}"
        raise ServiceError("InvalidSignatureException", text)
    if moment_ms > now_ms + skew_ms:
        latest = f"{_basic_date(now_ms + skew_ms)} ({_basic_date(now_ms)} + {skew_ms // 60_000} min.)"
        text = f"Signature not yet current: {date} is still later than {latest}"
        raise ServiceError("InvalidSignatureException", text)
    return date


def _check_signed_headers(request: Request, signed: tuple[str, ...]) -> None:
    """Check that host is signed, and the date and the target if they are sent.

    If the target were not signed, a captured GetItem could be replayed as a DeleteItem. The service requires host
    and every x-amz-* header (IAM user guide, "Create a signed AWS API request", canonical headers). Of the other
    headers only the session token is read here. It is compared with the stored one, and the guide lets some
    clients add it after signing.
    """
    for name, header_text in _MUST_BE_SIGNED.items():
        if name not in signed and (name == "host" or request.header(name)):
            name_text = "Host' or ':authority" if name == "host" else header_text
            text = f"'{name_text}' must be a 'SignedHeader' in the AWS Authorization."
            raise ServiceError("InvalidSignatureException", text)


def _lifetime_ms(expires: str) -> int:
    if not (expires.isascii() and expires.isdigit()) or int(expires[:12]) > limits.PRESIGNED_SECONDS:
        text = f"X-Amz-Expires must be a number of seconds of at most {limits.PRESIGNED_SECONDS}, got '{expires}'"
        raise ServiceError("IncompleteSignatureException", text)
    return int(expires) * 1000


@lru_cache(maxsize=256)
def _parsed_date(text: str) -> tuple[int, str] | None:
    """Parse a date in basic format or in that of the HTTP Date header."""
    try:
        if _BASIC_DATE.fullmatch(text):
            moment = datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        else:
            moment = parsedate_to_datetime(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return int(moment.timestamp() * 1000), moment.strftime("%Y%m%dT%H%M%SZ")


def _basic_date(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")


def _checked_scope(claim: SignatureClaim, date: str, service: str) -> tuple[str, str, str]:
    """Return (access id, scope to sign, region) of a credential.

    Raises ServiceError if the scope is not this service's.
    """
    if claim.algorithm != _ALGORITHM:
        text = f"Unsupported AWS 'algorithm': '{claim.algorithm}' (only {_ALGORITHM} for now). "
        raise ServiceError("IncompleteSignatureException", text)
    day = date[:8]
    access_id, region = _valid_scope(claim.credential, day, service)
    if not access_id:
        raise _scope_error(claim.credential, date, service)
    return access_id, f"{day}/{region}/{service}/{_TERMINATOR}", region


@lru_cache(maxsize=1024)
def _valid_scope(credential: str, day: str, service: str) -> tuple[str, str]:
    """Return (access id, region) of a credential that is right in every part, or two empty texts."""
    parts = credential.rstrip("/").split("/")
    is_valid = len(parts) == 5 and parts[1] == day and parts[3:] == [service, _TERMINATOR]
    return (parts[0], parts[2]) if is_valid and _REGION.fullmatch(parts[2]) else ("", "")


def _scope_error(credential: str, date: str, expected: str) -> ServiceError:
    """Return the error for a malformed credential, or for each wrong part of its scope."""
    parts = credential.rstrip("/").split("/")
    if len(parts) != 5:
        text = (
            "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, "
            f"got '{credential}'"
        )
        return ServiceError("IncompleteSignatureException", text)
    _, day, region, service, terminator = parts
    text = ""
    if not _REGION.fullmatch(region):
        text += f"Credential should be scoped to a valid region, not '{region}'. "
    if service != expected:
        text += f"Credential should be scoped to correct service: '{expected}'. "
    if terminator != _TERMINATOR:
        text += f"Credential should be scoped with a valid terminator: '{_TERMINATOR}', not '{terminator}'. "
    if day != date[:8]:
        text += (
            "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: "
            f"'{day}' != '{date[:8]}', from '{date}'. "
        )
    if text:
        return ServiceError("InvalidSignatureException", text.rstrip())
    return ServiceError(
        "UnrecognizedClientException", "The security token included in the request is invalid."
    )
