"""A minimal AWS Security Token Service on the port of DynamoDB: AssumeRoleWithWebIdentity and GetSessionToken.

A token of a trusted issuer is exchanged for temporary keys. Their rights are the grants to the identity of the token. The role
of the request only names the session. Temporary keys of a stored key have its rights, tables and quotas.

Sources: "AssumeRoleWithWebIdentity", "GetSessionToken" and "Common errors" (STS API reference).
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from tablegate.adapters.dynamodb.wire import auth, http
from tablegate.adapters.dynamodb.wire.errors import ServiceError
from tablegate.gateway.configuration.settings import BadSetting
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.model.request_info import RequestInfo, RequestKind
from tablegate.gateway.security.credentials import Credential, Scheme, Session
from tablegate.gateway.security.identities import BadToken, Identity

AUDIENCE = "sts.amazonaws.com"
WEB_IDENTITY, OF_KEY = "AssumeRoleWithWebIdentity", "GetSessionToken"
OPERATIONS = frozenset({WEB_IDENTITY, OF_KEY})
_NAMESPACE = "https://sts.amazonaws.com/doc/2011-06-15/"
_MAX_BODY_BYTES = 64 << 10
_MAX_MEMBERS = 50
_ROLE = re.compile(r"arn:aws(?:-[a-z]+)*:iam::(\d{12}):role/(?:[\x21-\x7e]*/)?([\w+=,.@-]{1,64})", re.ASCII)
_SESSION_NAME = re.compile(r"[\w+=,.@-]{2,64}", re.ASCII)
_DURATION_S = {WEB_IDENTITY: range(900, 43_201), OF_KEY: range(900, 129_601)}
_DEFAULT_DURATION_S = {WEB_IDENTITY: 3600, OF_KEY: 43_200}
_CODES = {
    "MissingAuthenticationTokenException": "MissingAuthenticationToken",
    "IncompleteSignatureException": "IncompleteSignature",
    "InvalidSignatureException": "SignatureDoesNotMatch",
    "UnrecognizedClientException": "InvalidClientTokenId",
}
"""The codes of this service for the errors of wire/auth.py."""
_REFUSALS = frozenset({"AccessDenied", "InvalidIdentityToken", *_CODES.values()})


class _Refusal(Exception):
    """An error of the service: status, code and text."""

    def __init__(self, status: int, code: str, text: str) -> None:
        super().__init__(code)
        self.status, self.code, self.text = status, code, text


class _RoleRequest(NamedTuple):
    """The checked members of AssumeRoleWithWebIdentity."""

    account: str
    role: str
    session_name: str
    token: str
    seconds: int


def matches(request: Request) -> bool:
    """Return True for a request of this service, by its head."""
    headers = request.header_map
    return (
        request.method == "POST"
        and request.path in ("/", "")
        and "x-amz-target" not in headers
        and headers.get("content-type", "").partition(";")[0].strip().lower() == http.FORM
    )


def operation(request: Request) -> str:
    """Return the operation that the head of a request suggests. Only GetSessionToken is signed."""
    return OF_KEY if request.header("authorization") else WEB_IDENTITY


def answer(request: Request, gateway: Gateway) -> Reply:
    """Return the reply to a request, and set its facts for the audit log."""
    name, who, code = operation(request), "", ""
    try:
        given = _form(request)
        if given.get("Action") not in OPERATIONS:
            raise _Refusal(400, "InvalidAction", f"Could not find operation {given.get('Action', '')[:100]}")
        name = given["Action"]
        if name == OF_KEY:
            who, result = _keys_of_key(request, given, gateway)
        else:
            who, result = _keys_of_identity(request, given, gateway)
        status, body = 200, f"<{name}Result>{result}</{name}Result>"
    except _Refusal as refusal:
        status, code = refusal.status, refusal.code
        kind = "Sender" if status < 500 else "Receiver"
        body = (
            f"<Error><Type>{kind}</Type><Code>{code}</Code><Message>{escape(refusal.text)}</Message></Error>"
        )
        request.is_unauthenticated = not gateway.credentials.is_dev
    request.info = RequestInfo(name, RequestKind.SIGN_IN, who, error_code=code, is_refusal=code in _REFUSALS)
    root = "ErrorResponse" if code else f"{name}Response"
    request_id = f"<RequestId>{request.id}</RequestId>"
    metadata = request_id if code else f"<ResponseMetadata>{request_id}</ResponseMetadata>"
    document = f'<{root} xmlns="{_NAMESPACE}">{body}{metadata}</{root}>'
    headers = [("x-amzn-RequestId", request.id), ("Content-Type", "text/xml")]
    return Reply(status, headers, document.encode())


def _form(request: Request) -> dict[str, str]:
    """Return the members of a request. Raises _Refusal if one is given twice."""
    if len(request.body) > _MAX_BODY_BYTES:
        raise _Refusal(413, "RequestEntityTooLarge", "The request is too large.")
    try:
        pairs = parse_qsl(
            request.body.decode("ascii"), keep_blank_values=True, max_num_fields=_MAX_MEMBERS, errors="strict"
        )
    except ValueError:
        raise _Refusal(400, "MalformedInput", "The request is not a form.") from None
    given = dict(pairs)
    if len(given) < len(pairs):
        raise _Refusal(400, "MalformedInput", "A member of the request is given twice.")
    return given


def _role_request(given: Mapping[str, str]) -> _RoleRequest:
    """Return the members of AssumeRoleWithWebIdentity. Raises _Refusal."""
    role, name = _ROLE.fullmatch(_member(given, "RoleArn")), _member(given, "RoleSessionName")
    if role is None:
        raise _invalid("RoleArn")
    if _SESSION_NAME.fullmatch(name) is None:
        raise _invalid("RoleSessionName")
    seconds = _seconds(given, WEB_IDENTITY)
    return _RoleRequest(role[1], role[2], name, _member(given, "WebIdentityToken"), seconds)


def _seconds(given: Mapping[str, str], name: str) -> int:
    """Return the duration of a session. Raises _Refusal."""
    text = given.get("DurationSeconds", str(_DEFAULT_DURATION_S[name]))
    if not re.fullmatch("[0-9]{1,6}", text) or int(text) not in _DURATION_S[name]:
        raise _invalid("DurationSeconds")
    return int(text)


def _member(given: Mapping[str, str], name: str) -> str:
    if not given.get(name):
        raise _invalid(name)
    return given[name]


def _invalid(name: str) -> _Refusal:
    return _Refusal(400, "ValidationError", f"The value of {name} is missing or not valid.")


def _verified(request: Request, token: str, gateway: Gateway) -> Identity:
    """Return the identity of a token. Raises _Refusal."""
    if not gateway.identities.may_carry_tokens(request):
        raise _Refusal(403, "AccessDenied", "Tokens are accepted over HTTPS only.")
    audience = gateway.settings.jwt_audience or AUDIENCE
    try:
        identity = gateway.identities.verify(token, [audience], gateway.real_now_ms() / 1000, scope="")
    except BadToken as error:
        raise _Refusal(400, "InvalidIdentityToken", f"The token is not accepted: {error}.") from None
    if not identity.object_id:
        raise _Refusal(400, "InvalidIdentityToken", "The token names no subject.")
    return identity


def _keys_of_identity(request: Request, given: Mapping[str, str], gateway: Gateway) -> tuple[str, str]:
    """Return the identity of a token, and the result with its new keys. Raises _Refusal."""
    wanted = _role_request(given)
    identity = _verified(request, wanted.token, gateway)
    session = _issued(identity, wanted.seconds, gateway, wanted.account)
    # With separate tenants, keys are valid only in an account that a grant to the identity names.
    now_ms = gateway.real_now_ms()
    if gateway.credentials.find_key(Scheme.AWS, session.access_id, session.token, now_ms) is None:
        raise _Refusal(403, "AccessDenied", f"Not authorized to perform sts:{WEB_IDENTITY}")
    subject, role_id = escape(identity.object_id), session.access_id.replace("ASIA", "AROA", 1)
    arn = f"arn:aws:sts::{wanted.account}:assumed-role/{wanted.role}/{wanted.session_name}"
    return identity.grantee, (
        f"<SubjectFromWebIdentityToken>{subject}</SubjectFromWebIdentityToken><AssumedRoleUser><Arn>{arn}</Arn>"
        f"<AssumedRoleId>{role_id}:{wanted.session_name}</AssumedRoleId></AssumedRoleUser>{_shown(session)}"
    )


def _keys_of_key(request: Request, given: Mapping[str, str], gateway: Gateway) -> tuple[str, str]:
    """Return the access id of a stored key, and the result with its new keys. Raises _Refusal."""
    if not gateway.credentials.is_dev and not gateway.identities.may_carry_tokens(request):
        raise _Refusal(403, "AccessDenied", "Keys are sent over HTTPS only.")
    try:
        key = auth.key_of(request, gateway.credentials, gateway.real_now_ms(), "sts")
    except ServiceError as error:
        raise _Refusal(403, _CODES[error.code], str(error.message)) from None
    if key.session_token:
        raise _Refusal(403, "AccessDenied", "Cannot call GetSessionToken with session credentials")
    if "SerialNumber" in given or "TokenCode" in given:
        text = (
            "MultiFactorAuthentication failed, unable to validate MFA code. This server has no MFA devices."
        )
        raise _Refusal(403, "AccessDenied", text)
    return key.access_id, _shown(_issued(key, _seconds(given, OF_KEY), gateway))


def _issued(owner: Identity | Credential, seconds: int, gateway: Gateway, account: str = "") -> Session:
    try:
        session = gateway.sessions.issue(owner, seconds, gateway.real_now_ms() / 1000, account)
    except BadSetting:
        raise _Refusal(501, "NotImplemented", "Sessions need the setting secret_key.") from None
    if session is None:
        raise _Refusal(400, "PackedPolicyTooLarge", "The groups and roles of the token are too many.")
    return session


def _shown(session: Session) -> str:
    expiration = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(session.expires_s))
    return (
        f"<Credentials><AccessKeyId>{session.access_id}</AccessKeyId><SecretAccessKey>{session.secret}</SecretAccessKey>"
        f"<SessionToken>{session.token}</SessionToken><Expiration>{expiration}</Expiration></Credentials>"
    )
